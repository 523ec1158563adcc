"""The arguments of a call, from the words of its command; and the command that asks for a call."""

import difflib
import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

from denizen.actions.shell.commands import (
    PROSE,
    Parameter,
    Parameters,
    command_name,
    parameters_of,
    plain_text,
)
from denizen.actions.shell.reply import Command, plain_prose, read_reply
from denizen.actions.shell.words import WHOLLY_QUOTED, Word, Words, quote
from denizen.errors import ToolRefused
from denizen.messages import ToolCall
from denizen.ports import MISUSED, Toolset

_OPTION = re.compile(r"(?<!\S)--[A-Za-z][\w-]*(?=[\s=]|\Z)")
_MEMBER = re.compile(r"""\s*["']?(\w+)["']?\s*[=:]\s*("[^"]*"|'[^']*'|[^\s,"'{}]+)\s*(?:,|\Z)""")
_SHOWN = 60
"""Characters of a wrong word that the model is shown."""


def arguments_of(command: Command, parameters: Parameters) -> dict[str, Any]:
    """The call's arguments. Raises ToolRefused where the command is wrong, with words for the model."""
    reading = _Arguments(command, parameters)
    if command.name in PROSE and parameters.positional:
        reading.take_prose()
    elif parameters.command_line:
        reading.take_command_line(command.words)
    else:
        reading.take_words(command.words)
    return reading.checked()


class _Arguments:
    def __init__(self, command: Command, parameters: Parameters) -> None:
        self._body = command.body
        self._parameters = parameters
        options = {parameter.option: parameter for parameter in parameters.every}
        self._options = {"in": options["path"], **options} if "path" in options else options
        self._given: dict[str, Any] = {}

    def take_prose(self) -> None:
        """Options, then prose as it stands, and options or a table of them; or one quoted word and options."""
        words, _ = Words(self._body).read(0)
        taken = self._take_options(words)
        rest = words[taken:]
        if rest and self._is_quoted(rest):
            self.take_words(rest)
            return
        start = rest[0].start if rest else 0
        end = self._take_table() or self._take_last_options(start)
        text = self._body[start:end].strip()
        alone = end < len(self._body) and WHOLLY_QUOTED.fullmatch(text)
        if text := (Words(text).read(0)[0][0].text if alone else plain_prose(text)) if rest or not taken else "":
            self._given[self._parameters.positional[0].name] = text

    def _take_last_options(self, start: int) -> int:
        """Take the options that the prose ends with; where they begin."""
        end = len(self._body)
        for option in reversed([*_OPTION.finditer(self._body, start + 1)]):
            words, _ = Words(self._body[option.start() : end]).read(0)
            name, equals, first = words[0].text.partition("=")
            values = [*([first] if equals else []), *(word.text for word in words[1:])]
            parameter, meant = self._find(name)
            if parameter is None or not self._is_value(parameter, values):
                break
            self._given.setdefault(parameter.name, self._value(parameter, " ".join(values)) if values else meant)
            end = option.start()
        return end

    def _is_value(self, parameter: Parameter, values: Sequence[str]) -> bool:
        """Whether what follows an option is its value and nothing else: of a text there may be several words."""
        if not values:
            return parameter.flag
        try:
            parameter.value(values[0])
        except ValueError:
            return False
        return len(values) == 1 or (parameter.kinds == ["string"] and not parameter.choices)

    def _take_table(self) -> int:
        """Take the table of options that the prose ends with, `, {context = "tests"}`; where it begins, 0: nowhere."""
        body = self._body.rstrip()
        at = body.rfind("{") if body.endswith("}") else -1
        members = _MEMBER.findall(body, at + 1, len(body) - 1) if at > 0 else []
        found = [(self._find(f"--{name}")[0], value) for name, value in members]
        if not found or not all(parameter for parameter, _ in found) or _MEMBER.sub("", body[at + 1 : -1]).strip():
            return 0
        for parameter, value in found:
            if parameter:
                self._given[parameter.name] = self._value(parameter, value.strip("\"'"))
        return len(body[:at].rstrip().removesuffix(","))

    def _is_quoted(self, words: Sequence[Word]) -> bool:
        quoted = WHOLLY_QUOTED.match(self._body, words[0].start)
        if quoted is None:
            return False
        return self._known(words[1]) if len(words) > 1 else not self._body[quoted.end() :].strip()

    def take_command_line(self, words: Sequence[Word]) -> None:
        """Options, then a command line as it stands; one quoted word, or a document, is what it holds."""
        taken = self._take_options(words)
        rest = words[taken + 1 :] if taken < len(words) and _is_end(words[taken]) else words[taken:]
        if rest:
            line = self._body[rest[0].start :].strip()
            alone = len(rest) == 1 and (WHOLLY_QUOTED.fullmatch(line) or line.startswith("<<"))
            self._given[self._parameters.positional[0].name] = rest[0].text if alone else line

    def take_words(self, words: Sequence[Word]) -> None:
        """Options anywhere, and words by their place; behind `--` all are such."""
        bare: list[Word] = []
        at = 0
        while at < len(words):
            if not words[at].option:
                bare.append(words[at])
                at += 1
            elif _is_end(words[at]):
                bare += words[at + 1 :]
                break
            else:
                at = self._take_option(words, at)
        self._take_positional(bare)

    def _take_options(self, words: Sequence[Word]) -> int:
        """Take the options at the beginning; how many words they are."""
        at = 0
        while at < len(words) and self._known(words[at]):
            at = self._take_option(words, at)
        return at

    def _known(self, word: Word) -> bool:
        return word.option and self._find(word.text.partition("=")[0])[0] is not None

    def _find(self, name: str) -> tuple[Parameter | None, bool]:
        """The parameter that `--name` means, and what a flag then is."""
        name = name[2:].replace("_", "-").strip("-")
        if name in self._options:
            return self._options[name], True
        negated = self._options.get(name.removeprefix("no-"))
        return (negated, False) if negated and negated.flag else (None, True)

    def _take_option(self, words: Sequence[Word], at: int) -> int:
        """Take an option and its value in; where the next word is."""
        name, equals, text = words[at].text.partition("=")
        parameter, meant = self._find(name)
        if parameter is None:
            raise ToolRefused(f"there is no option {name[:_SHOWN]}{self._nearest(name)}")
        after = at + 1
        if not equals:
            following = words[after] if after < len(words) else None
            if parameter.flag and not (following and following.text in {"true", "false"}):
                self._given[parameter.name] = meant
                return after
            if following is None or self._known(following):
                raise ToolRefused(f"{name} needs a value: {parameter.expected}")
            text, after = following.text, after + 1
        value = self._value(parameter, text)
        self._give(parameter, value if meant else not value)
        return after

    def _give(self, parameter: Parameter, value: Any) -> None:
        """What is given again replaces what was, or adds to it where there may be several."""
        earlier = self._given.get(parameter.name)
        both = isinstance(earlier, list) and isinstance(value, list)
        self._given[parameter.name] = [*earlier, *value] if both else value

    def _take_positional(self, words: Sequence[Word]) -> None:
        places = [each for each in self._parameters.positional if each.name not in self._given]
        if words and not places:
            raise ToolRefused(f"it takes no {words[0].text[:_SHOWN]!r}")
        for place, word in zip(places[:-1], words, strict=False):
            self._given[place.name] = self._value(place, word.text)
        if rest := words[len(places) - 1 :]:
            self._given[places[-1].name] = self._rest(places[-1], rest)

    def _rest(self, place: Parameter, words: Sequence[Word]) -> Any:
        """The last place takes all that is left: a list of words, or bare ones with the blanks between them."""
        if len(words) == 1:
            return self._value(place, words[0].text)
        if place.several:
            values = [self._value(place, word.text) for word in words]
            return [each for value in values for each in (value if isinstance(value, list) else [value])]
        if not all(word.bare for word in words):
            raise ToolRefused(f"there are too many words: {place.option} is one, so quote all of it together")
        return self._value(place, words[0].text + "".join(word.gap + word.text for word in words[1:]))

    def _value(self, parameter: Parameter, text: str) -> Any:
        try:
            return parameter.value(text)
        except ValueError:
            raise ToolRefused(f"{parameter.option} must be {parameter.expected}, not {text[:_SHOWN]!r}") from None

    def _nearest(self, name: str) -> str:
        near = difflib.get_close_matches(name[2 : _SHOWN + 2], self._options, 1, 0.5)
        return f"; did you mean --{near[0]}?" if near else ""

    def checked(self) -> dict[str, Any]:
        """The arguments in the order of the parameters. Raises ToolRefused where one is missing."""
        missing = [each.option for each in self._parameters.every if each.required and each.name not in self._given]
        if missing:
            raise ToolRefused(f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing")
        names = [parameter.name for parameter in self._parameters.every]
        return {name: self._given[name] for name in names if name in self._given}


def _is_end(word: Word) -> bool:
    return word.option and word.text == "--"


def show(call: ToolCall, tools: Toolset) -> str:
    """The command in one line, without its `$( )`; read again it gives the same arguments."""
    tool = tools.get(call.name)
    name = (command_name(tool, tools) if tool else "") or call.name
    if tool is None or MISUSED in call.args:
        return name
    parameters = parameters_of(tool.schema)
    return _as_it_stands(name, call, parameters) or " ".join([name, *_words(name, call.args, parameters)])


def _as_it_stands(name: str, call: ToolCall, parameters: Parameters) -> str:
    """With its prose or command line as it is; empty where that would be read as something else."""
    if not parameters.positional or not (parameters.command_line or name in PROSE):
        return ""
    text = call.args.get(parameters.positional[0].name)
    if not isinstance(text, str) or "\n" in text:
        return ""
    line = " ".join([name, *_options(call.args, parameters.positional[:1], parameters), text])
    return line if _read(line, parameters) == call.args else ""


def _read(line: str, parameters: Parameters) -> dict[str, Any] | None:
    found = read_reply(f"$({line})").commands
    if len(found) != 1 or found[0].end != len(line) + 3:
        return None
    try:
        return arguments_of(found[0], parameters)
    except ToolRefused:
        return None


def _words(name: str, args: dict[str, Any], parameters: Parameters) -> list[str]:
    places = [*takewhile(lambda place: place.name in args, parameters.positional)]
    options = [*_options(args, places, parameters)]
    values = [word for place in places for word in _values(place, args[place.name])]
    first_options = parameters.command_line and name not in PROSE
    return [*options, *values] if first_options else [*values, *options]


def _options(args: dict[str, Any], places: Sequence[Parameter], parameters: Parameters) -> Iterator[str]:
    known = {parameter.name: parameter for parameter in parameters.every}
    by_place = {place.name for place in places}
    for name in (name for name in args if name not in by_place):
        option = known[name].option if name in known else name
        if name in known and known[name].flag and isinstance(args[name], bool):
            yield f"--{option}" if args[name] else f"--no-{option}"
        else:
            yield f"--{option} {quote(plain_text(args[name]))}"


def _values(place: Parameter, value: Any) -> list[str]:
    """A list word by word where that says the same."""
    if isinstance(value, list) and (len(value) > 1 or (value and place.kinds == ["array"])):
        words = [plain_text(each) for each in value]
        if not any(
            isinstance(each, (list, dict)) or word.startswith("[") for each, word in zip(value, words, strict=True)
        ):
            return [quote(word) for word in words]
    return [quote(plain_text(value))]
