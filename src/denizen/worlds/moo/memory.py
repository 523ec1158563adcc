"""A character's memory and skills."""

from collections.abc import Sequence

import msgspec

from denizen.config.home import places, project_folder
from denizen.config.redact import Redactor
from denizen.errors import ToolRefused
from denizen.memory import LongTermMemory, open_memory
from denizen.memory.sqlite import FactFile
from denizen.memory.store import FactStore
from denizen.ports import Tool, Traits
from denizen.prompt import Skill, SkillPins, find_skills
from denizen.runtime.clock import Clock
from denizen.tools.function import tool
from denizen.tools.memory import memory_tools
from denizen.worlds.moo.folder import AgentFolder

MAX_SKILL_CHARS = 20_000


def open_character_memory(folder: AgentFolder, clock: Clock) -> LongTermMemory:
    """Open the character's own memory, or with `moo.agent = "home"` the home's with its notes. The caller closes it."""
    config = folder.config
    home, workspace = places(config)
    redact = Redactor.from_environ(folder.loaded.environ, folder.loaded.secrets).text
    if folder.settings.agent == "home":
        of_home = msgspec.structs.replace(config, workspace=config.agent.workspace_dir)
        return open_memory(of_home, clock=clock, redact=redact, with_notes=True)
    own = FactStore(FactFile(project_folder(home, workspace) / "memory.db"), "m", clock)
    return LongTermMemory(project=None, user=own, clock=clock, redact=redact)


def load_skills(folder: AgentFolder) -> tuple[Sequence[Skill], Sequence[str]]:
    """The skills in the agent's directory, or with `moo.agent = "home"` the home's, and notices about skipped ones."""
    home, _ = places(folder.config)
    place = folder.config.agent.workspace_dir if folder.settings.agent == "home" else folder.path
    found, notices = find_skills(place, place, trusted=False)
    skills, changed = SkillPins(home).admit(found)
    return skills, [*notices, *changed]


def memory_and_skill_tools(memory: LongTermMemory, skills: Sequence[Skill]) -> list[Tool]:
    """The tools `remember`, `recall` and `forget`, and `skill` if there are skills."""

    @tool(traits=Traits.READS | Traits.REPEATABLE)
    async def skill(name: str) -> str:
        """Read a skill: how to do something, step by step.

        Args:
            name: One of those that you know
        """
        for each in skills:
            if each.name == name:
                return each.path.read_text("utf-8", errors="replace")[:MAX_SKILL_CHARS]
        raise ToolRefused(f"unknown skill {name!r}; available: {', '.join(each.name for each in skills)}")

    return [*memory_tools(memory), *([skill] if skills else [])]
