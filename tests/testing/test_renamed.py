"""Names that the last version exported work for one more, with a warning that says what to use."""

import pytest

import denizen.testing


@pytest.mark.parametrize(("old", "new"), [("Reply", "LoopbackReply"), ("Request", "LoopbackRequest")])
def test_old_names_work_with_a_warning(old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"is now {new}"):
        assert getattr(denizen.testing, old) is getattr(denizen.testing, new)
