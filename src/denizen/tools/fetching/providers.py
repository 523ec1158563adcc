"""Search services: how each is asked, and how its answer is read."""

import html
from collections.abc import Callable, Mapping
from html.parser import HTMLParser
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

import msgspec

from denizen.config.pattern import pattern

_TAG = pattern(r"</?[a-zA-Z][^<>]*>")


class SearchRequest(msgspec.Struct, frozen=True):
    """A request to a search service; `path` follows its address."""

    path: str
    method: Literal["GET", "POST"] = "GET"
    params: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    json: Mapping[str, Any] | None = None


class SearchResult(msgspec.Struct, frozen=True):
    """One page that was found, as the service describes it."""

    title: str = ""
    url: str = ""
    snippet: str = ""


class SearchProvider(msgspec.Struct, frozen=True):
    """A search service at `base_url`, which a setting may replace; `variable` is where its key usually is.

    `ask` makes the request for a query, a number of results and a key; `read` raises ValueError for anything else.
    """

    title: str
    base_url: str
    variable: str
    ask: Callable[[str, int, str], SearchRequest]
    read: Callable[[bytes], list[SearchResult]]


class _Hit(msgspec.Struct):
    title: str = ""
    url: str = ""
    description: str | None = None
    content: str | None = None

    def plain(self) -> SearchResult:
        return SearchResult(_plain(self.title), self.url, _plain(self.description or self.content or ""))


class _Hits(msgspec.Struct):
    results: list[_Hit] = []


class _BraveAnswer(msgspec.Struct):
    web: _Hits | None = None


def _ask_brave(query: str, count: int, key: str) -> SearchRequest:
    """As api-dashboard.search.brave.com/api-reference/web/search/get documents it."""
    params = {"q": query, "count": str(count)}
    return SearchRequest("/res/v1/web/search", params=params, headers={"X-Subscription-Token": key})


def _read_brave(data: bytes) -> list[SearchResult]:
    answer = msgspec.json.decode(data, type=_BraveAnswer)
    return [hit.plain() for hit in answer.web.results] if answer.web else []


def _ask_searxng(query: str, _count: int, _key: str) -> SearchRequest:
    """As docs.searxng.org/dev/search_api documents it: the server sets how many results there are."""
    return SearchRequest("/search", params={"q": query, "format": "json"})


def _ask_tavily(query: str, count: int, key: str) -> SearchRequest:
    """As docs.tavily.com/documentation/api-reference/endpoint/search documents it."""
    headers = {"Authorization": f"Bearer {key}"}
    return SearchRequest("/search", "POST", headers=headers, json={"query": query, "max_results": count})


def _read_hits(data: bytes) -> list[SearchResult]:
    return [hit.plain() for hit in msgspec.json.decode(data, type=_Hits).results]


def _ask_duckduckgo(query: str, _count: int, _key: str) -> SearchRequest:
    """The page for browsers without scripts: there is no documented interface."""
    return SearchRequest("/html/", params={"q": query})


def _read_duckduckgo(data: bytes) -> list[SearchResult]:
    page = _DuckDuckGoPage()
    page.feed(data.decode(errors="replace"))
    page.close()
    if page.wants_person:
        raise ValueError("it wants to see that a person asks, and answers no programs for now")
    return [
        SearchResult(" ".join(title.split()), url, " ".join(snippet.split())) for url, title, snippet in page.results
    ]


class _DuckDuckGoPage(HTMLParser):
    """Takes the links of class `result__a` and the texts of class `result__snippet`; advertisements are left out."""

    def __init__(self) -> None:
        super().__init__()
        self.results: list[tuple[str, str, str]] = []
        self.wants_person = False
        self._part = ""  # of a result: `title` or `snippet`, while its tag is open
        self._tag = ""
        self._skipping = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        classes = (attributes.get("class") or "").split()
        self.wants_person |= any(each.startswith("anomaly-modal") for each in classes)
        if "result__a" in classes:
            url = _target(attributes.get("href") or "")
            self._part, self._tag = "title" if url else "", tag
            self._skipping = not url
            if url:
                self.results.append((url, "", ""))
        elif "result__snippet" in classes and self.results and not self._skipping:
            self._part, self._tag = "snippet", tag

    def handle_endtag(self, tag: str) -> None:
        if tag == self._tag:
            self._part = ""

    def handle_data(self, data: str) -> None:
        if self._part:
            url, title, snippet = self.results[-1]
            self.results[-1] = (url, title + data, snippet) if self._part == "title" else (url, title, snippet + data)


def _target(link: str) -> str:
    """Where a link of DuckDuckGo's leads in the end; empty for an advertisement."""
    place = urlsplit(link)
    if place.netloc.endswith("duckduckgo.com"):
        return next(iter(parse_qs(place.query).get("uddg", [])), "") if place.path == "/l/" else ""
    return link


def _plain(text: str) -> str:
    """The text without marks such as `<strong>`, in a line."""
    return " ".join(html.unescape(_TAG.sub("", text)).split())


PROVIDERS: Mapping[str, SearchProvider] = {
    "brave": SearchProvider("Brave", "https://api.search.brave.com", "BRAVE_API_KEY", _ask_brave, _read_brave),
    "duckduckgo": SearchProvider("DuckDuckGo", "https://html.duckduckgo.com", "", _ask_duckduckgo, _read_duckduckgo),
    "searxng": SearchProvider("SearXNG", "", "", _ask_searxng, _read_hits),
    "tavily": SearchProvider("Tavily", "https://api.tavily.com", "TAVILY_API_KEY", _ask_tavily, _read_hits),
}
"""The services by their names in the configuration; one without an address has none of its own."""
