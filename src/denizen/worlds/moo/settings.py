"""The settings of an agent in a text world: `[moo]`, in its own directory or the home."""

from typing import Annotated, Any, Literal

import msgspec

_Count = Annotated[int, msgspec.Meta(ge=1)]
_Seconds = Annotated[float, msgspec.Meta(ge=0)]


class MooSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where an agent plays, when it thinks, and how it acts."""

    transport: Literal["ssh", "telnet", "telnets"] = "ssh"
    """How the server is reached; `telnets` is telnet over TLS."""
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
    """Seconds that the output of one command is waited for."""
    command_rate_per_second: Annotated[float, msgspec.Meta(gt=0)] = 4.0
    """The most commands that are sent in a second."""
    acting: Literal["", "queued", "awaited"] = ""
    """How calls run: `awaited`, each call waits for its output, which the model sees before the next; `queued`, calls
    are sent one by one after the cycle, when the world is quiet. Empty: `awaited` where the model has native calls."""
    tools: list[str] = []
    """Tools that the agent has besides those of its SOUL.md; with none named in either, it has all."""
    tool_calls_per_cycle: _Count = 40
    """Calls of one cycle; then it ends, and a token that the agent holds is passed on."""
    memory_window_lines: Annotated[int, msgspec.Meta(ge=20)] = 60
    """Lines of the world that the model sees; the older half is summarised ten lines before they are full."""
    memory_window_tokens: Annotated[int, msgspec.Meta(ge=500)] = 8_000
    """Tokens of those lines, of the lines that come during a cycle, and about those of one result; older ones go."""
    line_characters: Annotated[int, msgspec.Meta(ge=80)] = 4_000
    """Characters of a line of the world that the model sees."""
    world_cycles_per_hour: _Count = 60
    """Cycles in an hour that lines of the world cause; then only the timer, the operator and the token begin one."""
    session_usd: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """US dollars after which the character thinks no more, for good; 0: only `budget.day_usd` counts."""
    clear_window_on_wakeup: bool = True
    """The window is emptied when the timer wakes the agent."""
    idle_wakeup_seconds: _Seconds = 60.0
    """Seconds of quiet after which the agent is woken; 0: never, only pages and its goal make it think."""
    timer_only: bool = False
    """Only the timer makes it think; what the world shows is recorded."""
    stall_timeout_seconds: _Seconds = 0.0
    """Seconds after which whoever holds the token is paged again; 0: nobody is."""
    token_chain: list[str] = []
    """The workers that pass the token on, in order; `MOO_TOKEN_CHAIN` (names between commas) overrides it."""
    foreman: str = "Foreman"
    """The player who begins the chain and is told when a part is done."""
    chain_secret: str = ""
    """What the pages of a chain are signed with, for servers that don't prove who sent one."""
    use_baseline: bool = True
    """`baseline.md` next to the agent's directory comes before its own context."""
    max_tokens: _Count = 2048
    """Tokens of one answer."""
    structured_output_retries: Annotated[int, msgspec.Meta(ge=0)] = 2
    """How often the model is asked again in a cycle after a reply that can't be carried out."""
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
        """What of it goes to the provider with each request."""
        given = {name: getattr(self, name) for name in ("temperature", "top_p", "top_k", "min_p", "repeat_penalty")}
        found = {name: value for name, value in given.items() if value is not None}
        local = {name: found.pop(name) for name in ("min_p", "repeat_penalty") if name in found}
        return found | ({"extra_body": local} if local else {})
