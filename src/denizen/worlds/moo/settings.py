"""The settings of an agent in a text world: `[moo]`, in its own directory or the home."""

from typing import Annotated, Any, Literal

import msgspec

_Count = Annotated[int, msgspec.Meta(ge=1)]
_Seconds = Annotated[float, msgspec.Meta(ge=0)]


class MooSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The world that an agent plays in, when it thinks, and how it acts."""

    transport: Literal["ssh", "telnet", "telnets"] = "ssh"
    """The transport; `telnets` is telnet over TLS."""
    host: str = "localhost"
    """The server's name or address."""
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)] = 8022
    """The server's port."""
    user: str = ""
    """The player to sign in as; `name+site` chooses a site."""
    password: str = ""
    """Its password, best as a reference: `"${MOO_PASSWORD}"`; empty: the variable that `password_env` names."""
    password_env: Annotated[str, msgspec.Meta(pattern=r"^MOO_\w*PASSWORD$", examples=["MOO_MASON_PASSWORD"])] = (
        "MOO_PASSWORD"  # noqa: S105 (its name)
    )
    """The variable of the environment, or of `.env` in the home, that holds the password."""
    key_file: str = ""
    """An SSH key to sign in with, in place of a password."""
    login: tuple[str, ...] = ("connect {user} {password}",)
    """Lines that sign in over telnet, and over SSH where the welcome asks for one."""
    command_timeout: Annotated[float, msgspec.Meta(gt=0)] = 40.0
    """The longest wait for the output of one command, in seconds."""
    command_rate_per_second: Annotated[float, msgspec.Meta(gt=0)] = 4.0
    """The most commands that are sent in a second."""
    acting: Literal["", "queued", "awaited"] = ""
    """How calls run: `awaited`, each call waits for its output, which the model sees before the next; `queued`, calls
    are sent one by one after the cycle, when the world is quiet. Empty: `awaited` where the model has native calls."""
    tools: list[str] = []
    """Tools besides those named in SOUL.md; if neither names any, all tools."""
    agent: Literal["own", "home"] = "own"
    """Whose memory and skills the character uses: its `own`, or the `home`'s, which it then shares with the assistant
    in chats. Others in the world may talk it into revealing them."""
    resume: bool = False
    """After a clean stop, continue as after a crash, with its goal and its summary of the world."""
    tool_calls_per_cycle: _Count = 40
    """The most calls in one cycle; then it ends, and passes on a token that the agent holds."""
    memory_window_lines: Annotated[int, msgspec.Meta(ge=20)] = 60
    """Lines of the world that the model sees; the older half is summarised ten lines before they are full."""
    memory_window_tokens: Annotated[int, msgspec.Meta(ge=500)] = 8_000
    """Tokens of those lines, of the lines that come during a cycle, and about those of one result; older ones go."""
    line_characters: Annotated[int, msgspec.Meta(ge=80)] = 4_000
    """Characters of a line of the world that the model sees."""
    world_cycles_per_hour: _Count = 60
    """The most cycles in an hour that the world's lines start; then only the timer, the operator and the token do."""
    session_usd: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """US dollars after which the character stops thinking, for good; 0: only `budget.day_usd` counts."""
    clear_window_on_wakeup: bool = True
    """The window is emptied when the timer wakes the agent."""
    idle_wakeup_seconds: _Seconds = 60.0
    """Seconds of quiet after which the agent is woken; 0: never, only pages and its goal start a cycle."""
    timer_only: bool = False
    """Only the timer starts a cycle; the world's lines are recorded."""
    stall_timeout_seconds: _Seconds = 0.0
    """Seconds after which the token's holder is paged again; 0: never."""
    token_chain: list[str] = []
    """The workers that pass the token on, in order; `MOO_TOKEN_CHAIN` (names between commas) overrides it."""
    foreman: str = "Foreman"
    """The player who begins the chain and gets the done pages."""
    chain_secret: str = ""
    """The secret that signs a chain's pages, for servers that don't prove who sent one."""
    use_baseline: bool = True
    """`baseline.md` next to the agent's directory comes before its own context."""
    max_tokens: _Count = 2048
    """Tokens of one answer."""
    structured_output_retries: Annotated[int, msgspec.Meta(ge=0)] = 2
    """Retries in a cycle after a reply that can't be carried out."""
    temperature: float | None = None
    """Sent to the provider as it is, like the next four; not sent unless set."""
    top_p: float | None = None
    """Probability mass that tokens are sampled from."""
    top_k: int | None = None
    """How many of the likeliest tokens are sampled from."""
    min_p: float | None = None
    """The least probability of a token, relative to the likeliest (local servers)."""
    repeat_penalty: float | None = None
    """Penalty for tokens that were used (local servers)."""

    @property
    def sampling(self) -> dict[str, Any]:
        """The sampling options that go to the provider with each request."""
        given = {name: getattr(self, name) for name in ("temperature", "top_p", "top_k", "min_p", "repeat_penalty")}
        found = {name: value for name, value in given.items() if value is not None}
        local = {name: found.pop(name) for name in ("min_p", "repeat_penalty") if name in found}
        return found | ({"extra_body": local} if local else {})
