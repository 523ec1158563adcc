"""The one scene that every contender plays: a question, a call of one tool, a final answer."""

SYSTEM = "You are a helpful assistant. Use the tool to look the weather up."
QUESTION = "What is the weather in Berlin today?"
TOOL_NAME = "weather"
TOOL_TEXT = "Look up the weather of a city."
CITY = "Berlin"
RESULT = "Sunny with 21 degrees and a light wind"
ANSWER = "It is sunny in Berlin."
MODEL = "gpt-4o-mini"  # a model with a known price, so that its cost is counted
KEY = "sk-loopback"
GEMINI_PATH = f"/models/{MODEL}:streamGenerateContent?alt=sse"
PER_TURN = 4  # messages of a turn: question, call, result, answer
TICKET = "ticket-"  # and eight digits: says which message a reply is to
CHUNKS = 2000  # text deltas of one streamed reply


class WrongAnswer(Exception):
    """A contender did not play the scene: the figures of its run would mean nothing."""


class Weather:
    """The tool's work, and how often it was done."""

    def __init__(self) -> None:
        self.calls = 0

    def look_up(self, city: str) -> str:
        """Give the weather of `city`; raises `WrongAnswer` for any city but the one asked about."""
        if city != CITY:
            raise WrongAnswer(f"the tool was asked about {city!r}")
        self.calls += 1
        return RESULT
