"""Secrets are replaced wherever they are, however they are escaped or cut, and nothing else is."""

import json
import logging
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from denizen.config.redact import MARK, RedactingFilter, Redactor, is_secret
from denizen.messages import AssistantMessage, Text, ToolCall

KEY = "sk-canary-0123456789"
ODD = 'pa"w\\d/ü\n\t'

secrets = st.lists(st.text("ab", min_size=8, max_size=12) | st.text(min_size=8, max_size=12), min_size=1, max_size=3)


def named(secrets: list[str]) -> dict[str, str]:
    return {str(number): secret for number, secret in enumerate(secrets)}


# Text


def test_a_secret_is_replaced_wherever_it_is() -> None:
    assert (
        Redactor({"KEY": KEY}).text(f"key={KEY}, again {KEY}{KEY}")
        == "key=[redacted:KEY], again [redacted:KEY][redacted:KEY]"
    )


def test_text_without_secrets_is_the_same_object() -> None:
    text = "nothing to hide here, sk-canary-012"
    assert Redactor({"KEY": KEY}).text(text) is text


@pytest.mark.parametrize(
    "written",
    [ODD, json.dumps(ODD), msgspec.json.encode(ODD).decode(), quote(ODD.strip(), safe=""), json.dumps({"a": ODD})],
)
def test_escaped_secret_is_found(written: str) -> None:
    found = Redactor({"KEY": ODD}).text(f"<{written}>")
    assert "[redacted:KEY" in found
    assert "p" not in MARK.sub("", found).replace("\\n\\t", "")


@pytest.mark.parametrize(
    "written", ["sk/canary%2B1234%3D%C3%A9", "sk%2Fcanary%2B1234%3D%C3%A9", "sk%2fcanary%2b1234%3d%c3%a9"]
)
def test_a_secret_in_a_url_is_found_however_that_is_escaped(written: str) -> None:
    assert (
        Redactor({"KEY": "sk/canary+1234=é"})
        .text(f"https://host/{written}?a")
        .startswith("https://host/[redacted:KEY#")
    )


def test_longer_secret_wins() -> None:
    assert Redactor({"A": "canary-12", "B": "canary-12-longer"}).text("canary-12-longer") == "[redacted:B]"


def test_short_secret_is_ignored() -> None:
    assert Redactor({"A": "1234567", "B": "", "C": " "}).text("1234567 ") == "1234567 "


def test_white_space_around_a_secret_is_not_part_of_it() -> None:
    assert Redactor({"KEY": f" {KEY}\n"}).text(KEY) == "[redacted:KEY]"


def test_lines_of_a_secret_are_secrets() -> None:
    pem = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----\n"
    assert Redactor({"KEY": pem}).text(pem) == "[redacted:KEY]\n"
    assert (
        Redactor({"KEY": pem}).text("1: -----BEGIN KEY-----\n2: MIIEvQIBADANBgkq")
        == "1: -----BEGIN KEY-----\n2: [redacted:KEY#2]"
    )


def test_without_secrets_nothing_changes() -> None:
    redactor = Redactor()
    assert redactor.text("x") == "x"
    assert not redactor.found_in(b"x")
    assert redactor.value({"a": "x"}) == {"a": "x"}
    assert redactor.stream().feed("x") == "x"


@given(secrets, st.text())
def test_no_secret_is_left(secrets: list[str], text: str) -> None:
    kept = Redactor(named(secrets)).text(text + secrets[0] + text)
    longest = max((secret.strip() for secret in secrets), key=len)
    assert len(longest) < 8 or longest not in kept


# Bytes and values


def test_secrets_are_found_in_bytes_of_json_too() -> None:
    redactor = Redactor({"KEY": ODD})
    assert redactor.found_in(json.dumps({"text": ODD}).encode())
    assert redactor.found_in(msgspec.json.encode({"x": json.dumps([ODD])}))
    assert not redactor.found_in(b"\xff plain")


def test_values_are_redacted_at_any_depth() -> None:
    message = AssistantMessage(
        [Text(KEY), ToolCall("c", "x", {KEY: [1, (KEY, None)], "n": 2.5})], stop_reason="tool_calls"
    )
    redacted = Redactor({"KEY": KEY, "B": "tool_calls"}).value({"m": message})["m"]
    assert redacted == AssistantMessage(
        [Text("[redacted:KEY]"), ToolCall("c", "x", {"[redacted:KEY]": [1, ("[redacted:KEY]", None)], "n": 2.5})],
        stop_reason="tool_calls",  # one of a fixed set: no place for a secret
    )


def test_value_without_secrets_is_the_same_object() -> None:
    value = {"m": AssistantMessage([Text("x"), ToolCall("c", "x", {"a": [1, {"b": ("c",)}]})])}
    assert Redactor({"KEY": KEY}).value(value) is value


# Streams


def test_secret_that_comes_in_pieces_is_replaced() -> None:
    stream = Redactor({"KEY": KEY}).stream()
    assert [stream.feed(piece) for piece in ("The key is sk-", "canary-", "0123456789", ", keep it")] == [
        "The key is ",
        "",
        "[redacted:KEY]",
        ", keep it",
    ]


def test_what_only_began_like_a_secret_is_shown_as_soon_as_that_is_known() -> None:
    stream = Redactor({"KEY": KEY}).stream()
    assert [stream.feed("sk-can"), stream.feed("oe"), stream.feed(" sk"), stream.flush(), stream.flush()] == [
        "",
        "sk-canoe",
        " ",
        "sk",
        "",
    ]


def test_ordinary_text_is_not_held_back() -> None:
    stream = Redactor({"KEY": KEY}).stream()
    assert [stream.feed(word) for word in ("Ask ", "me ", "anything.")] == ["Ask ", "me ", "anything."]


@given(secrets, st.lists(st.text("ab") | st.text() | st.integers(0, 11), max_size=12))
@example(["abcdefgh", "efghijkl"], ["abcdefgh", "ijkl"])
@example(["abcdefgh", "abcdefghijkl"], ["abcdefgh", "ij", "kl"])
@example(["xxabcdef", "cdefghij"], ["xxabcdef", "ghij"])
@example(["aaaaaaaa", "aaaaaaaaab"], ["aaaaaaaaaa", "aaaab"])
def test_pieces_give_what_the_whole_would(secrets: list[str], pieces: list[str | int]) -> None:
    redactor = Redactor(named(secrets))
    texts = [piece if isinstance(piece, str) else secrets[piece % len(secrets)][: piece + 1] for piece in pieces]
    stream = redactor.stream()
    assert "".join([*map(stream.feed, texts), stream.flush()]) == redactor.text("".join(texts))


# What is put back


@pytest.mark.parametrize(
    "text", [f"K={KEY}\n", f"K={ODD}", json.dumps({"a": ODD}), f"?k={quote(ODD.strip(), safe='')}"]
)
def test_what_was_taken_out_can_be_put_back(text: str) -> None:
    redactor = Redactor({"A_KEY": KEY, "ODD_KEY": ODD})
    kept = redactor.text(text)
    marks = MARK.findall(kept)
    assert marks
    assert redactor.put_back({"content": kept}, marks) == {"content": text}


def test_a_secret_of_several_lines_is_put_back_line_by_line() -> None:
    pem = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----"
    redactor = Redactor({"PEM": pem})
    kept = redactor.text("1: MIIEvQIBADANBgkq\n2: hkiG9w0BAQEFAASC")
    assert kept == "1: [redacted:PEM#2]\n2: [redacted:PEM#3]"
    assert redactor.put_back(kept, MARK.findall(kept)) == "1: MIIEvQIBADANBgkq\n2: hkiG9w0BAQEFAASC"


def test_only_the_marks_that_are_named_are_put_back() -> None:
    redactor = Redactor({"A": KEY, "B": "other-canary-987"})
    assert redactor.put_back("[redacted:A] [redacted:B] [redacted:C]", ["[redacted:A]"]) == (
        f"{KEY} [redacted:B] [redacted:C]"
    )
    assert redactor.secret("[redacted:C]") == ""


# The environment


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY",
        "openai_key",
        "githubToken",
        "GITHUB_TOKEN",
        "CLIENT_SECRET",
        "DB_PASSWORD",
        "PGPASSWORD",
        "MYSQL_PASSWD",
        "AWS_CREDENTIALS",
        "GH_PAT",
    ],
)
def test_variables_named_like_secrets_are(name: str) -> None:
    assert Redactor.from_environ({name: KEY}).text(KEY) == f"[redacted:{name}]"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PATH", "/usr/bin:/bin"),
        ("HOME", "/home/someone"),
        ("KEYBOARD_LAYOUT", "de-latin1-nodeadkeys"),
        ("KEYCLOAK_REALM", "realm-0123456789"),
        ("TOKENIZER", "cl100k_base_2024"),
        ("SSH_KEY_PATH", "/home/someone/.ssh/id_rsa"),
        ("PWD", "/data1/shop (copy)"),
        ("PATIENCE", "0123456789"),
    ],
)
def test_names_count_by_whole_words(name: str, value: str) -> None:
    assert not is_secret(name, value)
    assert Redactor.from_environ({name: value}).text(value) == value


@pytest.mark.parametrize(
    "value",
    [
        "http://localhost:8080",
        "https://id.example.org/realms/shop/keys",
        "/run/secrets/database",
        "~/keys/id_ed25519",
        "./certs/server.pem",
        "certs/server.pem",
        "123456789",
        "postgres",
        "disabled",
        "round-robin",
        "SERVICE_ACCOUNT",
    ],
)
def test_addresses_paths_numbers_and_words_are_no_secrets(value: str) -> None:
    assert not is_secret("API_KEY", value)
    assert Redactor.from_environ({"API_KEY": value}, {"x.default": value}).text(value) == value


@pytest.mark.parametrize(
    "value",
    [
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "/x9alrXUtnFEMI/K7MDENG",
        "hunterPassword",
        "eyJhbGci.eyJzdWIi.SflKxwRJ",
    ],
)
def test_what_only_resembles_a_path_or_a_word_is_a_secret(value: str) -> None:
    assert is_secret("API_KEY", value)


def test_password_within_a_url_is_a_secret() -> None:
    url = "postgres://ann:s3cr3t-canary@db.example.org/shop"
    assert Redactor.from_environ({"DATABASE_URL": url}).text(url) == (
        "postgres://ann:[redacted:DATABASE_URL.password]@db.example.org/shop"
    )


def test_further_secrets_may_be_added() -> None:
    assert Redactor.from_environ({}, {"x.default": KEY}).text(KEY) == "[redacted:x.default]"


# Logs


@pytest.fixture
def logger(caplog: pytest.LogCaptureFixture) -> logging.Logger:
    caplog.handler.addFilter(RedactingFilter(Redactor({"KEY": KEY})))
    return logging.getLogger("somewhere.deep")


def test_log_messages_and_their_arguments_are_redacted(
    logger: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    logger.warning("key %s of %d", {"key": KEY}, 3)
    logger.warning(KEY)
    assert caplog.messages == ["key {'key': '[redacted:KEY]'} of 3", "[redacted:KEY]"]


def test_tracebacks_are_redacted(logger: logging.Logger, caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise ValueError(KEY)
    except ValueError:
        logger.exception("It failed", stack_info=True)
    assert "ValueError: [redacted:KEY]" in caplog.text
    assert KEY not in caplog.text


def test_message_that_does_not_fit_its_arguments_is_redacted(
    logger: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    logger.warning("%d keys", KEY)
    assert caplog.messages == ["%d keys ('[redacted:KEY]',)"]
