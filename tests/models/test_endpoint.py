"""Where an address leads, and that nothing of it or of a header can say more on the wire than it should."""

import base64

import pytest

from denizen.errors import ConfigError
from denizen.models.endpoint import Endpoint


def fields(base_url: str, **headers: str) -> dict[str, str]:
    """The header fields of a request to it."""
    return Endpoint(base_url, "/ask", "base_url", headers).headers


# Addresses


@pytest.mark.parametrize(
    ("base_url", "line", "host"),
    [
        ("http://localhost:8080/v1", "/v1/ask", "localhost:8080"),
        ("HTTP://LocalHost:80/v1/", "/v1/ask", "localhost"),
        ("https://api.example.com:443", "/ask", "api.example.com"),
        ("https://api.example.com:80//", "/ask", "api.example.com:80"),
        ("http://[::1]:8080/v1", "/v1/ask", "[::1]:8080"),
        ("http://[FE80::1%eth0]/v1", "/v1/ask", "[fe80::1%eth0]"),
        ("http://my_server:1/v1", "/v1/ask", "my_server:1"),
        ("http://bücher.example/ä b", "/%C3%A4%20b/ask", "xn--bcher-kva.example"),
        ("http://h/a%20b/50%25", "/a%20b/50%25/ask", "h"),
        ("http://h/v1?api-version=2 5&x=ä", "/v1/ask?api-version=2+5&x=%C3%A4", "h"),
        ("http://h/v1/?api-version=1", "/v1/ask?api-version=1", "h"),
        (" http://h/v1\n", "/v1/ask", "h"),
        ("http://h/v1\r\nX-Forged: 1", "/v1X-Forged:%201/ask", "h"),
        ("http://h/v1\0\x7f", "/v1%00%7F/ask", "h"),
    ],
)
def test_request_goes_where_the_address_says(base_url: str, line: str, host: str) -> None:
    url = Endpoint(base_url, "/ask", "base_url").url
    assert (url.raw_path_qs, url.host_port_subcomponent) == (line, host)


@pytest.mark.parametrize(
    "base_url",
    [
        "http://h:0/v1",
        "http://h:65536/v1",
        "http://h:http/v1",
        "http://h:-1/v1",
        "http://[::1/v1",
        "http://::1/v1",
        "http://[localhost]/v1",
        "http://a b/v1",
        "http://a..b/v1",
        "http://.b/v1",
        f"http://{'a' * 64}/v1",
        "http://a\0b/v1",
        "http://a%0d%0ab/v1",
        "http://a\u2028b/v1",
        "http://a'b/v1",
        "http:///v1",
        "http://h/v1#part",
        "http://h/\udcff",
        "http://me:\udcff@h/",
        "ws://h/v1",
    ],
)
def test_address_that_can_t_be_one_is_refused_with_its_setting(base_url: str) -> None:
    with pytest.raises(ConfigError, match=r"providers.x.base_url is .*not an http or https address"):
        Endpoint(base_url, "/ask", "providers.x.base_url")


def test_refused_address_shows_no_password() -> None:
    with pytest.raises(ConfigError) as caught:
        Endpoint("https://me:secret@h:0/v1", "/ask", "base_url")
    assert "secret" not in str(caught.value)


# Header fields


@pytest.mark.parametrize(
    ("login", "token"),
    [("me:secret", "me:secret"), ("me", "me:"), (":secret", ":secret"), ("m%40e:s%3Aä", "m@e:s:ä")],
)
def test_name_and_password_of_an_address_become_basic_authorization(login: str, token: str) -> None:
    endpoint = Endpoint(f"http://{login}@h/v1", "/ask", "base_url")
    assert endpoint.headers["authorization"] == f"Basic {base64.b64encode(token.encode()).decode()}"
    assert (endpoint.base_url, str(endpoint.url)) == ("http://h/v1", "http://h/v1/ask")


def test_key_overrides_the_address_s_password() -> None:
    assert fields("http://me:secret@h/v1", Authorization="Bearer key")["authorization"] == "Bearer key"


def test_later_fields_override_earlier_ones_in_whatever_case() -> None:
    headers = Endpoint(
        "http://h", "/ask", "base_url", {"X-A": "1", "X-B": "2"}, {"x-a": "3", "USER-AGENT": "me"}
    ).headers
    assert headers == {"content-type": "application/json", "user-agent": "me", "x-a": "3", "x-b": "2"}


@pytest.mark.parametrize(
    "value", ["a\r\nX-Forged: 1", "a\nb", "a\rb", "a\0b", "a\x85b", "a\u2028b", "a\ud800", "a\u00a0b"]
)
def test_value_that_could_end_a_line_is_refused_without_showing_it(value: str) -> None:
    with pytest.raises(ConfigError, match=r"X-Team .*control character") as caught:
        fields("http://h", **{"X-Team": value})
    assert value not in str(caught.value)


@pytest.mark.parametrize("name", ["", "a b", "a:", "a\r\nb", "a\0", "Größe", "Content-Length", "transfer-encoding"])
def test_field_that_isn_t_the_user_s_to_set_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"provider's headers"):
        fields("http://h", **{name: "1"})


def test_value_may_hold_what_can_be_printed() -> None:
    assert "ä, 7; \U0001f600" in fields("http://h", **{"X-Team": "ä, 7; \U0001f600"}).values()
