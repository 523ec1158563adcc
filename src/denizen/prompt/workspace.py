"""The prompt of an agent that works in a workspace: what it is made of, and how it is put together."""

import platform
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from denizen.errors import ToolRefused
from denizen.ports import SystemPrompt, ToolGuide
from denizen.prompt.bootstrap import PromptFile, read_bootstrap, scaffold, trusted_lines
from denizen.prompt.build import build_prompt
from denizen.prompt.pins import SkillPins
from denizen.prompt.skills import Skill
from denizen.trusted.session_files import NAMES, SessionFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspacePrompt:
    """Builds the system prompt from the user's files in `own_folder` and the project's in `workspace`.

    `identity` says who the agent is, unless `instructions` do; `lists_tools` is False if the action format does.
    `guides` are for agents that have one of their tools. `pins` leave out skills that were changed; `notes` are the
    latest daily ones by their paths, and MEMORY.md where that isn't in `own_folder`. What commands changed in
    `session_files` is left out.
    """

    own_folder: Path
    workspace: Path
    model: str
    tools: Sequence[str]
    guides: Sequence[ToolGuide] = ()
    skills: Sequence[Skill] = ()
    skill_notices: Sequence[str] = ()
    pins: SkillPins | None = None
    session_files: SessionFiles
    notes: Callable[[], Sequence[tuple[str, str]]] = lambda: ()
    identity: str
    instructions: str = ""
    lists_tools: bool = True

    @property
    def made_for(self) -> Sequence[Any]:
        """The workspace, the model, the tools, the instructions, the skills and the guides."""
        skills, guides = [skill.name for skill in self.skills], [guide.text for guide in self._fitting_guides()]
        return [str(self.workspace), self.model, list(self.tools), *filter(None, [self.instructions, skills, guides])]

    def for_agent(self, *, tools: Sequence[str], model: str, instructions: str = "") -> "WorkspacePrompt":
        """The prompt of an agent like this one with these tools, that model, and its own `instructions`, if any."""
        return replace(self, tools=tools, model=model, instructions=instructions or self.instructions)

    def build(self, began: datetime) -> SystemPrompt:
        """The prompt; writes a starter AGENTS.md into the user's own folder if it has none. Raises ConfigError."""
        scaffold(self.own_folder, self.session_files)
        notes, unreadable = dict[str, str](), list[str]()
        try:
            notes = dict(self.notes())
        except ToolRefused as refused:
            unreadable = [f"{refused}."]
        files, unread = read_bootstrap(
            self.own_folder,
            self.workspace,
            given=lambda path: notes.get(path.name, self.session_files.counted([path])[0]),
        )
        files += [PromptFile(path, trusted_lines(text)) for path, text in notes.items() if path not in NAMES]
        skills, changed = self.pins.use(self.skills) if self.pins else (self.skills, ())
        guides = self._fitting_guides()
        text = build_prompt(
            files=files,
            skills=skills,
            tools=self.tools,
            guides=guides,
            started=began,
            platform=f"{platform.system().lower()} {platform.machine()}",
            workspace=self.workspace,
            model=self.model,
            identity=self.identity,
            instructions=self.instructions,
            listed=self.lists_tools,
        )
        return SystemPrompt(
            text,
            private=any(file.is_users for file in files),
            untrusted=bool(guides),
            quoted=[guide.text for guide in guides],
            notices=[*unread, *unreadable, *self.skill_notices, *changed, *self._set_aside()],
        )

    def _set_aside(self) -> list[str]:
        return [
            f"{path} goes on as it was before a command, an MCP server or a hook changed it. "
            f"See how: denizen skills check. To accept it: denizen trust {shlex.quote(str(path))}"
            for path in self.session_files.set_aside()
        ]

    def _fitting_guides(self) -> list[ToolGuide]:
        return [guide for guide in self.guides if not {*guide.tools}.isdisjoint(self.tools)]
