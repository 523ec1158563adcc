"""Secrets are replaced wherever they stand, however they are escaped or cut, and nothing else is."""

import json
import logging
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from denizen.config.redact import RedactingFilter, Redactor
from denizen.messages import AssistantMessage, Text, ToolCall

KEY = "sk-canary-0123456789"
ODD = 'pa"w\\d/ü\n\t'

secrets = st.lists(st.text("ab", min_size=8, max_size=12) | st.text(min_size=8, max_size=12), min_size=1, max_size=3)


# Text


def test_secret_is_replaced_wherever_it_stands() -> None:
    assert Redactor([KEY]).text(f"key={KEY}, again {KEY}{KEY}") == "key=[redacted], again [redacted][redacted]"


def test_text_without_secrets_is_the_same_object() -> None:
    text = "nothing to hide here, sk-canary-012"
    assert Redactor([KEY]).text(text) is text


@pytest.mark.parametrize(
    "written",
    [ODD, json.dumps(ODD), msgspec.json.encode(ODD).decode(), quote(ODD.strip(), safe=""), json.dumps({"a": ODD})],
)
def test_escaped_secret_is_found(written: str) -> None:
    found = Redactor([ODD]).text(f"<{written}>")
    assert "[redacted]" in found
    assert "p" not in found.replace("[redacted]", "").replace("\\n\\t", "")


@pytest.mark.parametrize(
    "written", ["sk/canary%2B1234%3D%C3%A9", "sk%2Fcanary%2B1234%3D%C3%A9", "sk%2fcanary%2b1234%3d%c3%a9"]
)
def test_a_secret_in_a_url_is_found_however_that_is_escaped(written: str) -> None:
    assert Redactor(["sk/canary+1234=é"]).text(f"https://host/{written}?a") == "https://host/[redacted]?a"


def test_longer_secret_wins() -> None:
    assert Redactor(["canary-12", "canary-12-longer"]).text("canary-12-longer") == "[redacted]"


def test_short_secret_is_ignored() -> None:
    assert Redactor(["1234567", "", " "]).text("1234567 ") == "1234567 "


def test_white_space_around_a_secret_is_not_part_of_it() -> None:
    assert Redactor([f" {KEY}\n"]).text(KEY) == "[redacted]"


def test_lines_of_a_secret_are_secrets() -> None:
    pem = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----\n"
    assert Redactor([pem]).text(pem) == "[redacted]\n"
    assert (
        Redactor([pem]).text("1: -----BEGIN KEY-----\n2: MIIEvQIBADANBgkq") == "1: -----BEGIN KEY-----\n2: [redacted]"
    )


def test_without_secrets_nothing_changes() -> None:
    redactor = Redactor()
    assert redactor.text("x") == "x"
    assert redactor.data(b"x") == b"x"
    assert redactor.value({"a": "x"}) == {"a": "x"}
    assert redactor.stream().feed("x") == "x"


@given(secrets, st.text())
def test_no_secret_is_left(secrets: list[str], text: str) -> None:
    kept = Redactor(secrets).text(text + secrets[0] + text)
    longest = max((secret.strip() for secret in secrets), key=len)
    assert len(longest) < 8 or longest not in kept


# Bytes and values


def test_bytes_are_redacted_in_json_too() -> None:
    redactor = Redactor([ODD])
    data = json.dumps({"text": ODD}).encode()
    assert json.loads(redactor.data(data)) == {"text": "[redacted]\n\t"}
    assert redactor.data(msgspec.json.encode({"x": json.dumps([ODD])})) == b'{"x":"[\\"[redacted]\\\\n\\\\t\\"]"}'
    assert redactor.data(b"\xff plain") == b"\xff plain"


def test_values_are_redacted_at_any_depth() -> None:
    message = AssistantMessage(
        [Text(KEY), ToolCall("c", "x", {KEY: [1, (KEY, None)], "n": 2.5})], stop_reason="tool_calls"
    )
    redacted = Redactor([KEY, "tool_calls"]).value({"m": message})["m"]
    assert redacted == AssistantMessage(
        [Text("[redacted]"), ToolCall("c", "x", {"[redacted]": [1, ("[redacted]", None)], "n": 2.5})],
        stop_reason="tool_calls",  # one of a fixed set: no place for a secret
    )


def test_value_without_secrets_is_the_same_object() -> None:
    value = {"m": AssistantMessage([Text("x"), ToolCall("c", "x", {"a": [1, {"b": ("c",)}]})])}
    assert Redactor([KEY]).value(value) is value


# Streams


def test_secret_that_comes_in_pieces_is_replaced() -> None:
    stream = Redactor([KEY]).stream()
    assert [stream.feed(piece) for piece in ("The key is sk-", "canary-", "0123456789", ", keep it")] == [
        "The key is ",
        "",
        "[redacted]",
        ", keep it",
    ]


def test_what_only_began_like_a_secret_is_shown_as_soon_as_that_is_known() -> None:
    stream = Redactor([KEY]).stream()
    assert [stream.feed("sk-can"), stream.feed("oe"), stream.feed(" sk"), stream.flush(), stream.flush()] == [
        "",
        "sk-canoe",
        " ",
        "sk",
        "",
    ]


def test_ordinary_text_is_not_held_back() -> None:
    stream = Redactor([KEY]).stream()
    assert [stream.feed(word) for word in ("Ask ", "me ", "anything.")] == ["Ask ", "me ", "anything."]


@given(secrets, st.lists(st.text("ab") | st.text() | st.integers(0, 11), max_size=12))
@example(["abcdefgh", "efghijkl"], ["abcdefgh", "ijkl"])
@example(["abcdefgh", "abcdefghijkl"], ["abcdefgh", "ij", "kl"])
@example(["xxabcdef", "cdefghij"], ["xxabcdef", "ghij"])
@example(["aaaaaaaa", "aaaaaaaaab"], ["aaaaaaaaaa", "aaaab"])
def test_pieces_give_what_the_whole_would(secrets: list[str], pieces: list[str | int]) -> None:
    redactor = Redactor(secrets)
    texts = [piece if isinstance(piece, str) else secrets[piece % len(secrets)][: piece + 1] for piece in pieces]
    stream = redactor.stream()
    assert "".join([*map(stream.feed, texts), stream.flush()]) == redactor.text("".join(texts))


# The environment


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY",
        "openai_key",
        "GITHUB_TOKEN",
        "CLIENT_SECRET",
        "DB_PASSWORD",
        "MYSQL_PASSWD",
        "AWS_CREDENTIALS",
        "GH_PAT",
    ],
)
def test_variables_named_like_secrets_are(name: str) -> None:
    assert Redactor.from_environ({name: KEY}).text(KEY) == "[redacted]"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PATH", "/usr/bin:/bin"),
        ("HOME", "/home/someone"),
        ("KEYBOARD_LAYOUT", "de-latin1-nodeadkeys"),
        ("SSH_KEY_PATH", "/home/someone/.ssh/id_rsa"),
        ("POSTGRES_PASSWORD", "postgres"),
        ("API_TOKEN_MODE", "disabled"),
        ("PATIENCE", "0123456789"),
    ],
)
def test_other_variables_are_not(name: str, value: str) -> None:
    assert Redactor.from_environ({name: value}).text(value) == value


def test_password_within_a_url_is_a_secret() -> None:
    url = "postgres://ann:s3cr3t-canary@db.example.org/shop"
    assert Redactor.from_environ({"DATABASE_URL": url}).text(url) == "postgres://ann:[redacted]@db.example.org/shop"


def test_further_secrets_may_be_added() -> None:
    assert Redactor.from_environ({}, ["disabled"]).text("disabled") == "[redacted]"


# Logs


@pytest.fixture
def logger(caplog: pytest.LogCaptureFixture) -> logging.Logger:
    caplog.handler.addFilter(RedactingFilter(Redactor([KEY])))
    return logging.getLogger("somewhere.deep")


def test_log_messages_and_their_arguments_are_redacted(
    logger: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    logger.warning("key %s of %d", {"key": KEY}, 3)
    logger.warning(KEY)
    assert caplog.messages == ["key {'key': '[redacted]'} of 3", "[redacted]"]


def test_tracebacks_are_redacted(logger: logging.Logger, caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise ValueError(KEY)
    except ValueError:
        logger.exception("It failed", stack_info=True)
    assert "ValueError: [redacted]" in caplog.text
    assert KEY not in caplog.text


def test_message_that_does_not_fit_its_arguments_is_redacted(
    logger: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    logger.warning("%d keys", KEY)
    assert caplog.messages == ["%d keys ('[redacted]',)"]
