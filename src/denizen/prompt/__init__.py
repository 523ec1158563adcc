"""The system prompt: who the agent is, its user's files, its tools and skills, its limits."""

from denizen.prompt.agents import AgentFile, find_agents
from denizen.prompt.bootstrap import PromptFile
from denizen.prompt.build import build_prompt
from denizen.prompt.pins import SkillPins
from denizen.prompt.skills import Skill, find_skills

__all__ = [
    "AgentFile",
    "PromptFile",
    "Skill",
    "SkillPins",
    "build_prompt",
    "find_agents",
    "find_skills",
]
