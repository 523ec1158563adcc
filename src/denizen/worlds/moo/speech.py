"""Who said what: GMCP's word for it, and the forms of the lines that show it."""

import re
from typing import Any

import msgspec

from denizen.worlds.moo.lines import Passage, plain
from denizen.worlds.moo.quoting import one_line, unescaped
from denizen.worlds.moo.server_text import ServerLine

_SPOKEN = {
    "page": '{talker} pages, "{text}"',
    "say": "{talker}: {text}",
    "whisper": "{talker} whispers to you: {text}",
    "emote": "{talker} {text}",
}
_TALK = re.compile(r'(?:[^:"]{1,60}: |.{1,60} pages?, "|.{1,60} whispers to you: |You sense that )')
_PAGE = re.compile(r'.{1,60} pages?, "')
_CONNECTED = re.compile(r"#\d+ \((?P<name>.{1,60})\) has (?:dis)?connected\.$")
_PRESENCE = re.compile(rf"{_CONNECTED.pattern}|(?P<names>[^()]{{1,200}}) (?:is|are) here\.$")


class SpokenMessage(msgspec.Struct, frozen=True):
    """A spoken message as GMCP sends it: whole, and from its true talker."""

    channel: str
    talker: str
    text: str

    def line(self, shown: str = "") -> ServerLine:
        """The message as a line; as it was `shown` if that is all of its text and names the talker."""
        is_whole = _letters(shown) == _letters(self.text) and self._begins(shown)
        form = "{text}" if is_whole else _SPOKEN.get(self.channel, "{talker}: {text}")
        return ServerLine(form.format(talker=self.talker, text=self.text), self.channel, self.talker)

    def is_in(self, passage: Passage) -> bool:
        """Whether the passage shows it, however wrapped, worded, and with its markup rendered."""
        line = " ".join(passage.lines)
        spoken = self._begins(line)
        if spoken and _letters(self.text) in {_letters(line), _letters(spoken["words"] or "")}:
            return True
        shown, line = _letters(line), _letters(self.line().text)
        if self.channel != "page":
            return shown == line
        return shown.endswith((_letters(f"pages {self.text}"), _letters(f"page {self.text}")))

    def _begins(self, line: str) -> re.Match[str] | None:
        """How a line begins that names the talker, as servers write them: `[Public] Bob: …`, `Bob says, "…"`."""
        return re.match(
            rf'(?:[(\[<]\w{{1,30}}[)\]>]:? )?{re.escape(self.talker)}\b(?:[^":]{{0,40}}[":](?P<words>.*))?', line
        )

    def may_be(self, passage: Passage) -> bool:
        """Whether the passage has its form, if perhaps another text: `:smile:` is rendered, too."""
        start = f"{self.talker} " if self.channel == "emote" else self.line().text.partition(self.text)[0]
        return any(line.startswith((start, "They page, ")) for line in passage.lines)


def message_of(value: Any) -> SpokenMessage | None:
    """The message in a value of Comm.Channel.Text, or None."""
    if not isinstance(value, dict):
        return None
    fields = (value.get("channel"), value.get("talker"), value.get("text"))
    if not all(isinstance(field, str) for field in fields):
        return None
    channel, talker, text = map(str, fields)
    return SpokenMessage(channel, talker, unescaped(one_line(plain(text.encode()))))


def looks_spoken(line: str) -> bool:
    """Whether the line has the form of something said by someone."""
    return bool(_TALK.match(line))


def is_page(line: ServerLine) -> bool:
    """Whether the line is a page; where the server doesn't say who talks, by its form, which proves nothing."""
    return line.channel == "page" or (not line.channel and _PAGE.match(line.text) is not None)


def is_connection_notice(line: str) -> bool:
    """Whether the line reports that someone connected or disconnected."""
    return bool(_CONNECTED.match(line))


def names_in(line: str) -> set[str]:
    """The names in a line that reports who came, went, or is here."""
    found = _PRESENCE.match(line)
    if not found:
        return set()
    return {found["name"]} if found["name"] else {*re.split(r", (?:and )?| and ", found["names"])}


def _letters(text: str) -> str:
    """The text without what wrapping and rendering change: spaces, signs, and markup."""
    return re.sub(r"\[/?[a-zA-Z#@][^\[\]]*\]|[\W_]", "", text)
