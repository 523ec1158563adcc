"""Who takes part: the floor, Denizen, those who visit its gateway, and its peers at their pinned versions."""

from benchmarks.contenders import Entry

FLOOR = Entry("floor", "aiohttp", "benchmarks.floor", "aiohttp, msgspec", own_environment=False)
DENIZEN = Entry("denizen", "denizen", "benchmarks.ours", "denizen", own_environment=False)
VISITORS = Entry("visitors", "aiohttp", "benchmarks.gateway", "", own_environment=False)
NANOBOT = Entry("nanobot", "nanobot-ai", "benchmarks.peers.nanobot", "nanobot, nanobot.nanobot")
PEERS = (
    Entry("agno", "agno", "benchmarks.peers.agno", "agno.agent, agno.models.openai"),
    Entry("openai-agents", "openai-agents", "benchmarks.peers.openai_agents", "agents"),
    Entry("strands", "strands-agents", "benchmarks.peers.strands", "strands, strands.models.openai"),
    Entry("langchain", "langchain", "benchmarks.peers.langchain", "langchain.agents, langchain_openai"),
    Entry("pydantic-ai", "pydantic-ai-slim", "benchmarks.peers.pydantic_ai", "pydantic_ai, pydantic_ai.models.openai"),
    Entry("smolagents", "smolagents", "benchmarks.peers.smolagents", "smolagents"),
    NANOBOT,
)

KEPT = {  # where a session is, by a store's name
    "memory": "in memory",
    "disk": "on disk",
    "open": "on disk, held open",
    "synced": "synced to disk",
    "tmpfs": "on tmpfs",
}
