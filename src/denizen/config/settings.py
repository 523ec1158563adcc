"""Every setting of `denizen.toml`, with its default."""

from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec

Section = TypeVar("Section", bound=msgspec.Struct)

_Count = Annotated[int, msgspec.Meta(ge=1)]
_CountOrNone = Annotated[int, msgspec.Meta(ge=0)]
_Amount = Annotated[float, msgspec.Meta(ge=0)]
_Positive = Annotated[float, msgspec.Meta(gt=0)]


class _Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file: immutable, and strict about its keys."""


Reasoning = Literal["none", "low", "medium", "high"] | _CountOrNone
"""How much a model thinks before it answers: a level, or tokens at most."""


class CallOptions(_Table, frozen=True, kw_only=True):
    """Options of each request; those that aren't set are left to the provider."""

    reasoning: Reasoning | None = None
    """How much the model thinks before it answers, or the most tokens for that; sent in each provider's form."""
    temperature: float | None = None
    """Sent to the provider unchanged, like the next six; not sent unless set."""
    top_p: float | None = None
    """Probability mass that tokens are sampled from."""
    top_k: int | None = None
    """How many of the likeliest tokens are sampled from."""
    frequency_penalty: float | None = None
    """Penalty for tokens that were used often."""
    presence_penalty: float | None = None
    """Penalty for tokens that were used at all."""
    seed: int | None = None
    """Makes answers repeatable, where the provider offers that."""
    stop: list[str] | None = None
    """Texts that end an answer."""
    extra_body: dict[str, Any] = {}
    """Further fields of the provider's request, sent unchanged."""

    @property
    def options(self) -> dict[str, Any]:
        """The options that are sent to the provider as they are, where set."""
        names = CallOptions.__struct_fields__[1:]  # all but `reasoning`
        return {name: value for name in names if (value := getattr(self, name)) not in (None, {})}


class Prices(_Table, frozen=True, kw_only=True):
    """US dollars per million tokens, in place of the catalogue's."""

    input: _Amount | None = None
    """Tokens that are sent."""
    output: _Amount | None = None
    """Tokens of the answer."""
    cache_read: _Amount | None = None
    """Tokens read from the provider's cache; not set: the price of `input`."""
    cache_write: _Amount | None = None
    """Tokens written to the cache; not set: the price of `input`."""


class ModelSettings(CallOptions, frozen=True, kw_only=True):
    """Settings of one model, which override its provider's and `[agent]`: `[models."provider:model"]`."""

    context_window: _CountOrNone = 0
    """The context window in tokens; 0: its server's or the catalogue's, otherwise 200,000."""
    max_tokens: _CountOrNone = 0
    """Tokens of one answer; 0: `agent.max_tokens`."""
    api: Literal["", "anthropic", "chat", "openai", "gemini", "responses"] = ""
    """The wire format: `anthropic`, `gemini`, `responses` (OpenAI's), or `chat` (OpenAI Chat Completions, also called
    `openai`); empty: as the provider means it, `chat` for one that isn't known."""
    cache_life: Literal["5m", "1h"] = "5m"
    """How long Anthropic's models keep a prompt in their cache after it was last read; what is written for an hour
    costs more."""
    betas: list[str] = []
    """Beta features of Anthropic's API: `["context-1m-2025-08-07"]`."""
    prices: Prices = Prices()


UNSET = ModelSettings()
"""Those of a model for which the user set nothing."""


class AuthProfileSettings(_Table, frozen=True, kw_only=True):
    """A provider's key; several are tried in turn."""

    id: str
    """Its name in events and the usage line."""
    api_key: str = ""
    """The key, best as a reference: `"${ANTHROPIC_API_KEY}"`."""


class ProviderSettings(ModelSettings, frozen=True, kw_only=True):
    """How to reach a provider: `[providers.NAME]`."""

    base_url: str = ""
    """The server's address; empty: the provider's own."""
    auth_profiles: list[AuthProfileSettings] = []
    """The keys, tried in turn: `[{ id = "primary", api_key = "${KEY_1}" }]`; empty: the provider's usual variable."""
    headers: dict[str, str] = {}
    """Sent with every request."""
    project: str = ""
    """The project of Google's cloud that `vertex` belongs to; empty: `GOOGLE_CLOUD_PROJECT`, else the credentials'."""
    location: str = ""
    """The region of `vertex`, such as `europe-west4`; empty: `GOOGLE_CLOUD_LOCATION`, otherwise `global`."""


class AgentSettings(CallOptions, frozen=True, kw_only=True):
    """Limits and options of the agent: `[agent]`."""

    workspace_dir: Path = Path("~/.denizen/workspace")
    """The workspace outside a git repository, with the bootstrap files; the default moves with the home."""
    restrict_to_workspace: bool = True
    """Refuse files outside the workspace."""
    actions: Literal["", "native", "shell"] = ""
    """The action format: `native` calls, or `shell` commands in the text; empty: the profile's."""
    driver: str = ""
    """The driver of a turn: `simple`, `planning`, `reflective`, a package's, or a file; empty: as the profile says."""
    timezone: str = ""
    """The user's time zone, such as `Europe/Berlin`: it decides which day it is; empty: the machine's."""
    when_busy: Literal["wait", "fail"] = "wait"
    """Whether a message waits or fails while its session is busy in this process."""
    max_iterations: _Count = 25
    """Model calls in one turn."""
    max_tokens: _Count = 8192
    """Tokens of one answer."""
    max_retries: _CountOrNone = 3
    """Retries of one model call, over all auth profiles."""
    max_tool_result_chars: _Count = 50_000
    """Characters of a tool's result that the model sees."""
    max_cost_usd: _Amount = 5.0
    """US dollars of one turn."""
    max_mcp_tools: _CountOrNone = 40
    """The most tools of MCP servers that the model sees; with more, it searches them instead."""


class BudgetSettings(_Table, frozen=True, kw_only=True):
    """The most that may be spent, over all processes of the home: `[budget]`."""

    session_usd: _Amount = 20.0
    """US dollars of one session."""
    day_usd: _Amount = 50.0
    """US dollars of one day (UTC)."""


class RetentionSettings(_Table, frozen=True, kw_only=True):
    """How long data that nobody uses is kept. The gateway deletes the rest once a day, and `denizen sessions prune`."""

    session_days: _Amount = 0.0
    """Days after its last use that a session is deleted, with all that was said in it; 0: never."""
    empty_session_days: _Amount = 30.0
    """The same for sessions in which nothing was said; 0: never."""
    spend_days: _Amount = 400.0
    """Days that the sum of what a day or a session cost is kept after the last call it counts; 0: for good."""
    log_days: _Amount = 0.0
    """Days that the log of a character's run in a text world is kept; 0: for good."""


class Rule(_Table, frozen=True, kw_only=True):
    """A decision about a tool's calls: one element of `policy.rules`; the last match wins."""

    tool: str
    """The tool's name, or `*`; for tools of MCP servers also a shell pattern: `mcp_github_*`."""
    match: str = "*"
    """A shell pattern over the call's main argument (the command, the path, the address)."""
    decide: Literal["allow", "ask", "deny"]
    """Whether the call runs, asks a person, or is refused."""
    examples: list[str] = []
    """Arguments that must match; checked when the file is read."""
    not_examples: list[str] = []
    """Arguments that must not match."""


class PolicySettings(_Table, frozen=True, kw_only=True):
    """Which calls may run: `[policy]`."""

    rules: list[Rule] = []
    """Your own rules, over the default policy: `[{ tool = "bash", match = "git status*", decide = "allow" }]`."""
    auto_approve: Literal["low", "medium", "high"] = "high"
    """The risk of an edit or command up to which nobody is asked: deleting, configuration, entry points and public API
    are high; comments, docstrings, prose and commands known to read only are low."""
    park_hours: _Amount = 24.0
    """Hours that a parked turn waits for an answer before it continues without."""


class HookSettings(_Table, frozen=True, kw_only=True):
    """Your command that runs at events of a turn, and may refuse them: one element of `hooks`."""

    event: Literal["turn_start", "turn_end", "before_tool", "after_tool", "notice"]
    """The event that runs it."""
    command: str
    """The shell command, run with your rights in the workspace. It gets the event as JSON on standard input; with exit
    status 2, `turn_start` and `before_tool` are refused with the words on its standard error."""
    match: str = "*"
    """A shell pattern over the tool's name."""
    timeout: Annotated[float, msgspec.Meta(gt=0, le=600)] = 10.0
    """Seconds after which it is ended, and counts as failed."""


_TOOLCHAINS = (
    *(".pyenv", ".local/bin", ".local/share/uv", ".cargo", ".rustup", ".nvm", ".volta", ".bun", ".deno", "go"),
    *(".sdkman", ".rbenv", ".asdf", ".local/share/mise"),
)


class SandboxSettings(_Table, frozen=True, kw_only=True):
    """The sandbox of commands: `[sandbox]`."""

    network: bool = False
    """Commands may use the network."""
    toolchains: list[str] = msgspec.field(default_factory=lambda: [*_TOOLCHAINS])
    """Folders of your home directory that commands may read; the rest of it is hidden."""
    environment: list[str] = []
    """Environment variables that commands see although they look like secrets or lead out of the sandbox."""
    withhold: list[str] = []
    """Further environment variables that commands don't see: names, or shell patterns (`INTERNAL_*`)."""
    memory_mb: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Megabytes of memory for one process of a command; 0: as much as the machine has. AddressSanitizer: 30000000."""
    processes: _Count = 4096
    """Processes and threads that a command may have at a time; root isn't limited."""


class SearchSettings(_Table, frozen=True, kw_only=True):
    """Which service `web_search` asks: `[web.search]`."""

    provider: Literal["", "brave", "duckduckgo", "searxng", "tavily"] = ""
    """The service; empty: the one whose key is in the environment (`BRAVE_API_KEY`, `TAVILY_API_KEY`)."""
    api_key: str = ""
    """Its key, best as a reference: `"${BRAVE_API_KEY}"`; empty: that of the environment."""
    base_url: str = ""
    """Its address; empty: the service's own. SearXNG has none: `http://localhost:8080`."""


class WebSettings(_Table, frozen=True, kw_only=True):
    """Limits of `web_fetch`: `[web]`."""

    allow_private: list[str] = []
    """Host names or networks (`10.0.0.0/8`) that it may fetch although they are private."""
    max_bytes: _Count = 5_000_000
    """Bytes of one page."""
    timeout: _Positive = 30.0
    """Seconds for one page, or one search."""
    search: SearchSettings = SearchSettings()


class EmbeddingSettings(_Table, frozen=True, kw_only=True):
    """A server for embeddings, which find facts by meaning: `[memory.embeddings]`."""

    base_url: str = ""
    """Its address, with OpenAI's API: `http://localhost:11434/v1`; empty: facts are found by words."""
    model: str = ""
    """The model's name there."""
    api_key: str = ""
    """The key, best as a reference: `"${OPENAI_API_KEY}"`; empty: no key is sent."""


class MemorySettings(_Table, frozen=True, kw_only=True):
    """How memory is kept and searched: `[memory]`."""

    recent_days: _CountOrNone = 3
    """Days, today included, whose daily notes are in the prompt."""
    embeddings: EmbeddingSettings = EmbeddingSettings()


class PackagesSettings(_Table, frozen=True, kw_only=True):
    """What `package` knows beyond lock files: `[packages]`."""

    advisories: Path | None = None
    """A file or folder of advisories in OSV's format, which `package audit` reads without the network."""


McpTrait = Literal["reads", "writes", "executes", "network", "sends", "private", "untrusted", "changes"]


class McpServer(_Table, frozen=True, kw_only=True):
    """An MCP server, which gives the agent tools: `[mcp.NAME]`, a program (`command`) or an address (`url`)."""

    command: str = ""
    """The program to start. It is yours, and runs outside the sandbox."""
    args: list[str] = []
    """The program's arguments."""
    env: dict[str, str] = {}
    """Its environment, besides PATH, HOME, LANG and the like: `{ TOKEN = "${TOKEN}" }`; keys only as named here."""
    cwd: str = ""
    """The folder that it runs in; empty: the workspace."""
    url: str = ""
    """The address of a server that is reached over HTTP (streamable HTTP)."""
    headers: dict[str, str] = {}
    """Sent with every request; a server with a sign-in needs none: `denizen mcp login NAME`."""
    traits: list[McpTrait] | None = None
    """The traits of its tools: `["reads"]` for a clock; unless set, every trait."""
    roots: list[str] = []
    """The folders that it learns of as its roots; `.` is the workspace."""
    timeout: _Positive = 60.0
    """Seconds for one call; waiting for your answer doesn't count."""
    start_timeout: _Positive = 30.0
    """Seconds to start or connect, and to list what it has."""
    enabled: bool = True
    """Use this server."""


class Config(_Table, frozen=True, kw_only=True):
    """The whole of `denizen.toml`.

    `home` and `workspace` are not settings of the file: `load_config` finds them (None: `$DENIZEN_HOME` or
    `~/.denizen`; `agent.workspace_dir`).
    """

    model: str = ""
    """The model: `provider:model`; empty: by a key in the environment, else a local server, else `offline`."""
    fallback_models: list[str] = []
    """Models that are asked when the first one fails."""
    proxy: str = ""
    """The proxy that leads to model servers, but not to this machine: `"http://proxy.example:3128"`; empty: that of the
    environment (`HTTPS_PROXY`, `NO_PROXY`)."""
    hooks: list[HookSettings] = []
    """Commands that run at events of a turn: `[[hooks]]`, `event = "before_tool"`, `command = "…"`."""
    tools: dict[str, dict[str, Any]] = {}
    """Arguments that a tool gets when the model doesn't give them, a table for each: `[tools.grep] context = 2`."""
    channels: dict[str, Any] = {}
    """The gateway's channels, by name: `[channels.telegram]`. The page of each kind lists its settings."""
    people: dict[str, dict[str, str | bool]] = {}
    """One person's ids on several channels, `[people.ann]`: `telegram = "123"`, `matrix = "@ann:example.org"`. With
    `owner = true` they are an owner; with `session = "one"` their direct chats share a session, otherwise each has one
    (`"per channel"`)."""
    providers: dict[str, ProviderSettings] = {}
    """The providers, by name."""
    models: dict[str, ModelSettings] = {}
    """Settings of single models, by name: `provider:model`."""
    mcp: dict[str, McpServer] = {}
    """The MCP servers, by name."""
    agent: AgentSettings = AgentSettings()
    budget: BudgetSettings = BudgetSettings()
    retention: RetentionSettings = RetentionSettings()
    policy: PolicySettings = PolicySettings()
    sandbox: SandboxSettings = SandboxSettings()
    web: WebSettings = WebSettings()
    packages: PackagesSettings = PackagesSettings()
    memory: MemorySettings = MemorySettings()

    home: Path | None = None
    workspace: Path | None = None

    def section(self, world: str, table: type[Section]) -> Section:
        """The settings of a world, as they were read from `[world]`; else the defaults."""
        found = getattr(self, world, None)
        return found if isinstance(found, table) else table()
