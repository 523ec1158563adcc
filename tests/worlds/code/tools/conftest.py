"""The fixtures of the core tools' tests."""

from tests.tools.conftest import call, shown, turn, workspace

__all__ = ["call", "shown", "turn", "workspace"]
