"""Whose a line is: what a command gave, all of it and nothing else, and who said the rest."""

import pytest
from tests.worlds.moo.captures import chunks

from denizen.worlds.moo.attribution import Attribution, OutputTiming
from denizen.worlds.moo.lines import LineReader, Markers, Passage
from denizen.worlds.moo.negotiation import gmcp_said
from denizen.worlds.moo.server_text import CommandOutput, Room, ServerLine
from denizen.worlds.moo.speech import SpokenMessage, message_of
from denizen.worlds.moo.telnet import PromptMark, Subnegotiation, TelnetParser, TelnetText

TIMING = OutputTiming()


class Replay:
    """One user's side of a capture: what was sent is sent, what came comes, at its time."""

    def __init__(self, scene: str, user: str, markers: Markers | None = None) -> None:
        self.attribution = Attribution(OutputTiming(settle=0.1))  # the recorded player didn't wait longer
        self.attribution.marks_prompts = True
        self.attribution.frames = bool(markers)
        parser, reader = TelnetParser(), LineReader(markers, 80)
        for chunk in (chunk for chunk in chunks(scene) if chunk.who == user):
            self._wait(chunk.t)
            if chunk.dir == "out" and not chunk.data.startswith(b"\xff"):
                if chunk.data.startswith(b"a11y"):
                    self.attribution.lines.clear()  # those of the sign-in
                self.attribution.sent(chunk.data.decode().strip(), chunk.t)
            for event in parser.feed(chunk.data) if chunk.dir == "in" else ():
                match event:
                    case TelnetText(data):
                        for passage in reader.feed(data):
                            self.attribution.passage(passage, chunk.t)
                    case PromptMark():
                        for passage in reader.prompt():
                            self.attribution.passage(passage, chunk.t)
                        self.attribution.prompt(chunk.t)
                    case Subnegotiation() if said := gmcp_said(event):
                        self._note(said.package, said.value, chunk.t)
                    case _:
                        pass
        self._wait(float("inf"))

    def _wait(self, until: float) -> None:
        while (due := self.attribution.next_due) is not None and due <= until:
            self.attribution.pass_time(due)

    def _note(self, package: str, value: dict[str, str], now: float) -> None:
        if package == "Char.Name":
            self.attribution.name = value["name"]
        elif message := message_of(value):
            self.attribution.message(message, now)

    @property
    def outputs(self) -> list[tuple[str, list[str]]]:
        assert not [output for output in self.attribution.outputs if output.problem and output.command != "@quit"]
        return [(output.command, [*output.lines]) for output in self.attribution.outputs]


def test_each_command_of_a_builder_has_its_own_output_with_the_look_after_a_move() -> None:
    replay = Replay("build", "mason")
    outputs = dict(replay.outputs)
    assert outputs['teleport "Site Hut"'] == [
        "You move to Site Hut (#59).",
        "Site Hut",
        "There's not much to see here.",
    ]
    assert outputs["go north"][1:] == [
        "You arrive at #61 (The Library).",
        "The Library",
        "There's not much to see here.",
    ]
    assert outputs['@burrow east to "The Annex"'] == [
        "Dug east to The Annex (#65).",
        "Tunnelled west back to The Library (#61).",
        "You are now in The Annex (#65).",
        "The Annex",
        "There's not much to see here.",
    ]
    assert outputs["@rooms"][0] == "Rooms in the world:"
    assert not replay.attribution.lines
    assert replay.attribution.room == Room("61", "The Library")


def test_pages_are_proven_whole_and_unwrapped() -> None:
    heard = Replay("pages", "foreman").attribution.lines
    proven = [line for line in heard if line.channel == "page"]
    assert proven[0] == ServerLine(
        'Mason pages, "Token: Mason done. Rooms: #9, #22; then rest"', channel="page", talker="Mason"
    )
    assert f'Mason pages, "{"abcdefghi " * 15}end"' in [line.text for line in proven]
    assert 'Mason pages, "cut here: [/nope]"' in [line.text for line in proven]  # whose line never came


def test_no_forgery_is_proven_to_be_from_whom_it_names() -> None:
    heard = Replay("pages", "foreman").attribution.lines
    assert {line.talker for line in heard} == {"", "Mason"}
    forged = [line for line in heard if "Player" in line.text]
    assert len(forged) >= 4
    assert {(line.talker, line.channel) for line in forged} <= {("", ""), ("Mason", "emote")}


def test_the_talk_of_others_is_no_output() -> None:
    replay = Replay("pages", "mason")
    outputs = dict(replay.outputs)
    assert outputs["say Token: Foreman go."] == ["You: Token: Foreman go."]
    assert outputs['page foreman with "All is built."'] == ["Your message has been sent."]
    assert outputs["page foreman with one; say two"] == ["Your message has been sent.", "You: two"]
    assert [line for line in replay.attribution.lines if line.talker] == [
        ServerLine('Foreman pages, "Token: Mason go."', channel="page", talker="Foreman")
    ]


def test_frames_are_read_and_what_comes_while_idle_is_nobodys_output() -> None:
    replay = Replay("delimiters", "tinker", Markers(">>START-42<<", ">>END-42<<", "{CMD", "CMD}"))
    outputs = dict(replay.outputs)
    assert outputs["go north"][2:] == ["Loft", "There's not much to see here."]
    assert outputs["@survey"][0] == "Loft (#61)"
    texts = [line.text for line in replay.attribution.lines]
    assert 'Foreman pages, "Token: Tinker go."' in texts


MESSAGE = SpokenMessage("say", "Foreman", "hi")
SHOWN = Passage(["Foreman: hi"])


@pytest.fixture
def busy() -> Attribution:
    """With a command in flight, and GMCP."""
    attribution = Attribution(TIMING)
    attribution.marks_prompts = attribution.frames = True
    attribution.name = "Mason"
    attribution.message(SpokenMessage("say", "Foreman", "before"), 0)
    attribution.passage(Passage(["Foreman: before"]), 0)
    attribution.lines.clear()
    attribution.sent("say hi", 1)
    return attribution


PROVEN = ServerLine("Foreman: hi", channel="say", talker="Foreman")


@pytest.mark.parametrize("is_first", [True, False])
def test_a_message_and_its_line_may_come_in_either_order(busy: Attribution, is_first: bool) -> None:
    if is_first:
        busy.message(MESSAGE, 1.1)
    busy.passage(SHOWN, 1.2)
    if not is_first:
        busy.message(MESSAGE, 1.3)
    busy.passage(Passage(["You: hi"]), 1.4)
    busy.prompt(1.5)
    assert [*busy.lines] == [PROVEN]
    assert [*busy.outputs] == [CommandOutput("say hi", ["You: hi"])]


def test_an_own_line_that_comes_after_the_prompt_is_waited_for(busy: Attribution) -> None:
    busy.prompt(1.5)
    assert not busy.outputs
    busy.passage(Passage(["You: hi"]), 1.9)
    busy.pass_time(1.9)
    assert [*busy.outputs] == [CommandOutput("say hi", ["You: hi"])]


def test_a_line_that_nobody_vouches_for_is_told_without_a_talker(busy: Attribution) -> None:
    busy.passage(SHOWN, 1.2)
    assert not busy.lines
    busy.pass_time(1.2 + TIMING.proof)
    assert [*busy.lines] == [ServerLine("Foreman: hi", is_unproven=True)]


def test_a_message_whose_line_never_comes_is_told(busy: Attribution) -> None:
    busy.message(MESSAGE, 1.2)
    busy.pass_time(1.2 + TIMING.text)
    assert [*busy.lines] == [PROVEN]


def test_where_the_server_names_talkers_the_first_line_waits_for_its_message_too() -> None:
    attribution = Attribution(TIMING)
    attribution.marks_prompts = attribution.frames = attribution.proves = True
    attribution.passage(SHOWN, 1.0)
    assert not attribution.lines
    attribution.message(MESSAGE, 1.2)
    assert [*attribution.lines] == [PROVEN]


def test_who_comes_and_goes_is_no_output(busy: Attribution) -> None:
    busy.passage(Passage(["#34 (Zed) has connected."]), 1.1)
    busy.passage(Passage(["Zed waves his hat."]), 1.2)
    busy.passage(Passage(["You: hi"]), 1.3)
    busy.prompt(1.4)
    busy.pass_time(9)
    assert [line.text for line in busy.lines] == ["#34 (Zed) has connected.", "Zed waves his hat."]
    assert [output.lines for output in busy.outputs] == [["You: hi"]]


def test_what_the_command_prints_is_its_own_whatever_it_looks_like(busy: Attribution) -> None:
    busy.passage(Passage(["Foreman: hi"], printed=True), 1.1)
    busy.prompt(1.2)
    busy.message(MESSAGE, 1.3)
    busy.pass_time(9)
    assert [output.lines for output in busy.outputs] == [["Foreman: hi"]]
    assert [*busy.lines] == [PROVEN]


def test_a_command_without_its_prompt_times_out_and_the_late_prompt_ends_no_other(busy: Attribution) -> None:
    busy.pass_time(1 + TIMING.timeout)
    (output,) = busy.outputs
    assert "no prompt" in output.problem
    assert busy.owed == 1
    busy.prompt(60)
    assert busy.owed == 0


def test_an_abandoned_command_loses_no_line(busy: Attribution) -> None:
    busy.passage(Passage(["You: hi"]), 1.1)
    busy.abandon()
    assert (busy.owed, [line.text for line in busy.lines]) == (1, ["You: hi"])


def test_a_server_without_prompt_marks_is_done_when_it_is_quiet() -> None:
    attribution = Attribution(TIMING)
    attribution.sent("look", 0)
    attribution.passage(Passage(["A room."]), 0.2)
    attribution.passage(Passage(["Bob: hello"]), 0.3)
    assert attribution.next_due == pytest.approx(0.3 + TIMING.quiet)
    attribution.pass_time(0.95)
    assert [*attribution.outputs] == [CommandOutput("look", ["A room.", "Bob: hello"])]


def test_the_end_of_the_connection_tells_all_and_is_the_right_end_of_quit(busy: Attribution) -> None:
    busy.message(MESSAGE, 1.1)
    busy.end("closed")
    assert ([*busy.lines], [output.problem for output in busy.outputs]) == ([PROVEN], ["closed"])
    busy.sent("@quit", 2)
    busy.end("closed")
    assert busy.outputs[-1] == CommandOutput("@quit", [])


@pytest.mark.parametrize("value", [None, [], {"channel": "say"}, {"channel": "say", "talker": "A", "text": 1}])
def test_a_message_that_is_none_is_passed_over(value: object) -> None:
    assert message_of(value) is None
