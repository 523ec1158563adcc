"""The arguments of a call, from the words of its command; and the command that asks for a call."""

import difflib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import takewhile
from typing import Any

from denizen.actions.shell.commands import PROSE, Parameter, Parameters, command_name, parameters_of, plain_text
from denizen.actions.shell.reply import ShellCommand, plain_prose, read_reply
from denizen.actions.shell.splitting import WHOLLY_QUOTED, Word, WordSplitter, quote
from denizen.config.pattern import pattern
from denizen.errors import ToolRefused
from denizen.messages import ToolCall
from denizen.ports import MISUSED, Toolset

_OPTION = pattern(r"(?<!\S)--[A-Za-z][\w-]*(?=[\s=]|\Z)")
_MEMBER = pattern(r"""\s*["']?(\w+)["']?\s*[=:]\s*("[^"]*"|'[^']*'|[^\s,"'{}]+)\s*(?:,|\Z)""")
_CONTEXT_AND_WEIGHT = pattern(
    r""",\s*(?P<context>"[^"]+"|'[^']+'|[^\W\d][^,"']{0,60}?)\s*,\s*(?P<weight>0?\.\d+|[01]\.0+)\s*\Z"""
)
"""What ends the form of three parts: `store("…", "architecture", 0.8)`."""
_MAX_SHOWN_CHARS = 60
"""Characters of a wrong word that the model is shown."""


def arguments_of(command: ShellCommand, parameters: Parameters) -> dict[str, Any]:
    """The call's arguments. Raises ToolRefused if the command is wrong, with words for the model."""
    reader = _Arguments(command.body, parameters)
    if command.name in PROSE and parameters.positional:
        reader.take_prose()
    elif parameters.command_line:
        reader.take_command_line(command.words)
    else:
        reader.take_words(command.words)
    missing = [each.option for each in parameters.every if each.required and each.name not in reader.given]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise ToolRefused(f"{' and '.join(missing)} {verb} missing")
    return {each.name: reader.given[each.name] for each in parameters.every if each.name in reader.given}


class _Arguments:
    def __init__(self, body: str, parameters: Parameters) -> None:
        self.given: dict[str, Any] = {}
        self._body = body
        self._places = parameters.positional
        options = {parameter.option: parameter for parameter in parameters.every}
        self._options = {"in": options["path"], **options} if "path" in options else options

    def take_prose(self) -> None:
        """Options, then unchanged prose, and options or a table of them; or one quoted word and options."""
        words, _ = WordSplitter(self._body).read(0)
        taken = self._take_options(words)
        rest = words[taken:]
        quoted = WHOLLY_QUOTED.match(self._body, rest[0].start) if rest else None
        if quoted and (self._is_option(rest[1]) if len(rest) > 1 else not self._body[quoted.end() :].strip()):
            self.take_words(rest)
            return
        start = rest[0].start if rest else 0
        end = self._take_table() or self._take_last_parts() or self._take_last_options(start)
        text = self._body[start:end].strip()
        alone = end < len(self._body) and WHOLLY_QUOTED.fullmatch(text)
        if taken and not rest:
            return
        if text := WordSplitter(text).read(0)[0][0].text if alone else plain_prose(text):
            self.given[self._places[0].name] = text

    def _take_last_options(self, start: int) -> int:
        """Take the options that the prose ends with; where they begin. Each has its value and nothing else."""
        end = len(self._body)
        for option in reversed([*_OPTION.finditer(self._body, start + 1)]):
            words, _ = WordSplitter(self._body[option.start() : end]).read(0)
            name, equals, first = words[0].text.partition("=")
            values = [*([first] if equals else []), *(word.text for word in words[1:])]
            parameter, meant = self._find(name)
            if parameter is None or not (values or parameter.flag):
                break
            if values:
                try:
                    parameter.value(values[0])
                except ValueError:
                    break
                if len(values) > 1 and (parameter.kinds != ["string"] or parameter.choices):
                    break
            self.given.setdefault(parameter.name, self._value(parameter, " ".join(values)) if values else meant)
            end = option.start()
        return end

    def _take_table(self) -> int:
        """Take the table of options that the prose ends with, `, {context = "tests"}`; where it begins, 0: nowhere."""
        body = self._body.rstrip()
        at = body.rfind("{") if body.endswith("}") else -1
        members = _MEMBER.findall(body, at + 1, len(body) - 1) if at > 0 else []
        found = [(parameter, value) for name, value in members if (parameter := self._find(f"--{name}")[0])]
        if not found or len(found) < len(members) or _MEMBER.sub("", body[at + 1 : -1]).strip():
            return 0
        for parameter, value in found:
            self.given[parameter.name] = self._value(parameter, value.strip("\"'"))
        return len(body[:at].rstrip().removesuffix(","))

    def _take_last_parts(self) -> int:
        """Take the context and the weight that the prose ends with; where they begin, 0: nowhere."""
        found = _CONTEXT_AND_WEIGHT.search(self._body)
        parts = found.groupdict() if found else {}
        if not found or not all(self._find(f"--{name}")[0] for name in parts):
            return 0
        for name, value in parts.items():
            self.given[name] = self._value(self._options[name], value.strip("\"'"))
        return found.start()

    def take_command_line(self, words: Sequence[Word]) -> None:
        """Options, then an unchanged command line; the contents of a single quoted word or here-document."""
        taken = self._take_options(words)
        rest = words[taken + 1 :] if taken < len(words) and words[taken].ends_options else words[taken:]
        if rest:
            line = self._body[rest[0].start :].strip()
            alone = len(rest) == 1 and (WHOLLY_QUOTED.fullmatch(line) or line.startswith("<<"))
            self.given[self._places[0].name] = rest[0].text if alone else line

    def take_words(self, words: Sequence[Word]) -> None:
        """Options anywhere, and words by their place; after `--` all are such."""
        bare: list[Word] = []
        at = 0
        while at < len(words):
            if not words[at].option:
                bare.append(words[at])
                at += 1
            elif words[at].ends_options:
                bare += words[at + 1 :]
                break
            else:
                at = self._take_option(words, at)
        places = [each for each in self._places if each.name not in self.given]
        if bare and not places:
            raise ToolRefused(f"it takes no {bare[0].text[:_MAX_SHOWN_CHARS]!r}")
        for place, word in zip(places[:-1], bare, strict=False):
            self.given[place.name] = self._value(place, word.text)
        # the last place takes all that is left: a list of words, or bare ones with the blanks between them
        rest = bare[len(places) - 1 :]
        last = places[-1] if rest else None
        if last and last.several and len(rest) > 1:
            values = [self._value(last, word.text) for word in rest]
            self.given[last.name] = [
                each for value in values for each in (value if isinstance(value, list) else [value])
            ]
        elif last and len(rest) > 1 and not all(word.bare for word in rest):
            raise ToolRefused(f"too many words: {last.option} takes one, so quote all of it together")
        elif last:
            text = rest[0].text + "".join(word.gap + word.text for word in rest[1:])
            self.given[last.name] = self._value(last, text)

    def _take_options(self, words: Sequence[Word]) -> int:
        """Take the options at the beginning; how many words they are."""
        at = 0
        while at < len(words) and self._is_option(words[at]):
            at = self._take_option(words, at)
        return at

    def _is_option(self, word: Word) -> bool:
        return word.option and self._find(word.text.partition("=")[0])[0] is not None

    def _find(self, name: str) -> tuple[Parameter | None, bool]:
        """The parameter that `--name` means, and what a flag then is."""
        name = name[2:].replace("_", "-").strip("-")
        if name in self._options:
            return self._options[name], True
        negated = self._options.get(name.removeprefix("no-"))
        return (negated, False) if negated and negated.flag else (None, True)

    def _take_option(self, words: Sequence[Word], at: int) -> int:
        """Take an option and its value in; where the next word is. Given again it replaces, or adds to a list."""
        name, equals, text = words[at].text.partition("=")
        parameter, meant = self._find(name)
        if parameter is None:
            near = difflib.get_close_matches(name[2 : _MAX_SHOWN_CHARS + 2], self._options, 1, 0.5)
            hint = f"; did you mean --{near[0]}?" if near else ""
            raise ToolRefused(f"unknown option {name[:_MAX_SHOWN_CHARS]}{hint}")
        after = at + 1
        if not equals:
            following = words[after] if after < len(words) else None
            if parameter.flag and not (following and following.text in {"true", "false"}):
                self.given[parameter.name] = meant
                return after
            if following is None or self._is_option(following):
                raise ToolRefused(f"{name} needs a value: {parameter.expected}")
            text, after = following.text, after + 1
        value, earlier = self._value(parameter, text), self.given.get(parameter.name)
        if isinstance(earlier, list) and isinstance(value, list):
            value = [*earlier, *value]
        elif not meant:
            value = not value
        self.given[parameter.name] = value
        return after

    def _value(self, parameter: Parameter, text: str) -> Any:
        try:
            return parameter.value(text)
        except ValueError:
            raise ToolRefused(
                f"{parameter.option} must be {parameter.expected}, not {text[:_MAX_SHOWN_CHARS]!r}"
            ) from None


def show(call: ToolCall, tools: Toolset) -> str:
    """The command in one line, without its `$( )`; read again it gives the same arguments."""
    tool = tools.get(call.name)
    name = (command_name(tool, tools) if tool else "") or call.name
    if tool is None or MISUSED in call.args:
        return name
    args, parameters = call.args, parameters_of(tool.schema)
    if parameters.positional and (parameters.command_line or name in PROSE):
        text = args.get(parameters.positional[0].name)
        if isinstance(text, str) and "\n" not in text:
            line = " ".join([name, *_options(args, parameters.positional[:1], parameters), text])
            found = read_reply(f"$({line})").commands
            with suppress(ToolRefused):  # unchanged, it would be read as something else
                if len(found) == 1 and found[0].end == len(line) + 3 and arguments_of(found[0], parameters) == args:
                    return line
    places = [*takewhile(lambda place: place.name in args, parameters.positional)]
    options = [*_options(args, places, parameters)]
    values = [word for place in places for word in _words(place, args[place.name])]
    options_first = parameters.command_line and name not in PROSE
    return " ".join([name, *options, *values] if options_first else [name, *values, *options])


def _options(args: dict[str, Any], places: Sequence[Parameter], parameters: Parameters) -> Iterator[str]:
    known = {parameter.name: parameter for parameter in parameters.every}
    for name, value in args.items():
        option = known[name].option if name in known else name
        if any(name == place.name for place in places):
            continue
        if name in known and known[name].flag and isinstance(value, bool):
            yield f"--{option}" if value else f"--no-{option}"
        else:
            yield f"--{option} {quote(plain_text(value))}"


def _words(place: Parameter, value: Any) -> list[str]:
    """A list word by word where that says the same."""
    if isinstance(value, list) and (len(value) > 1 or (value and place.kinds == ["array"])):
        words = [plain_text(each) for each in value]
        if not any(
            isinstance(each, (list, dict)) or word.startswith("[") for each, word in zip(value, words, strict=True)
        ):
            return [quote(word) for word in words]
    return [quote(plain_text(value))]
