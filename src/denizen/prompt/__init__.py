"""What a model is told before the conversation: who it is, its user's files, its tools, its limits."""

from denizen.prompt.bootstrap import PromptFile, read_bootstrap, scaffold
from denizen.prompt.build import build_prompt
from denizen.prompt.skills import Skill, find_skills

__all__ = ["PromptFile", "Skill", "build_prompt", "find_skills", "read_bootstrap", "scaffold"]
