"""A character's memory and skills, its own or the home's; and its goal after a clean stop."""

from pathlib import Path

import pytest
from tests.worlds.moo.play import playing, text

from denizen.config.load import load
from denizen.memory import open_memory
from denizen.messages import AssistantMessage, Text, ToolCall
from denizen.testing import FakeClock
from denizen.worlds.moo.folder import AgentFolder, open_folder
from denizen.worlds.moo.memory import load_skills, memory_and_skill_tools, open_character_memory

SKILL = "---\nname: baking\ndescription: How to bake bread.\n---\nKnead for ten minutes.\n"


def character(root: Path, settings: str = "") -> AgentFolder:
    folder = root / "Mason"
    folder.mkdir(exist_ok=True)
    (folder / "SOUL.md").write_text("# Name\nMason\n")
    (folder / "denizen.toml").write_text(f'[moo]\nuser = "Mason"\n{settings}')
    return open_folder(folder, environ=environ(root))


def environ(root: Path) -> dict[str, str]:
    return {"HOME": str(root), "DENIZEN_HOME": str(root / "home")}


@pytest.mark.parametrize(("setting", "is_shared"), [("", False), ('agent = "home"', True)])
async def test_memory_is_own_or_shared_with_the_home(tmp_path: Path, setting: str, is_shared: bool) -> None:
    clock = FakeClock()
    folder = character(tmp_path, setting)
    loaded = load(environ=environ(tmp_path), workspace=tmp_path / "home" / "workspace")
    chat, world = open_memory(loaded.config, clock=clock), open_character_memory(folder, clock)
    await chat.remember("Ann likes tea.", source="chat")
    await world.remember("The key is under the mat.", source="moo")
    try:
        assert bool(await world.recall("tea", 10)) == is_shared
        assert bool(await chat.recall("key", 10)) == is_shared
        assert await world.recall("key", 10)
    finally:
        chat.close()
        world.close()


async def test_facts_from_others_are_marked_as_untrusted(tmp_path: Path) -> None:
    memory = open_character_memory(character(tmp_path), FakeClock())
    remembers = ToolCall("1", "remember", {"text": "Bob owns the castle."})
    script = [AssistantMessage([remembers], stop_reason="tool_calls"), text("Interesting.")]
    async with playing(tmp_path, script, more=memory_and_skill_tools(memory, [])) as play:
        play.world.say('Bob says, "I own the castle."')
        await play.until(lambda: play.asked == 2)
        [fact] = await memory.recall("castle", 10)
        assert fact.untrusted
    memory.close()


@pytest.mark.parametrize(("setting", "place"), [("", "Mason"), ('agent = "home"', "home/workspace")])
async def test_skills_are_named_in_the_prompt_and_can_be_read(tmp_path: Path, setting: str, place: str) -> None:
    (tmp_path / place / "skills" / "baking").mkdir(parents=True)
    (tmp_path / place / "skills" / "baking" / "SKILL.md").write_text(SKILL)
    folder = character(tmp_path, setting)
    skills, notices = load_skills(folder)
    assert notices == []
    memory = open_character_memory(folder, FakeClock())
    reads = AssistantMessage([ToolCall("1", "skill", {"name": "baking"})], stop_reason="tool_calls")
    async with playing(
        tmp_path, [reads, text("I see.")], more=memory_and_skill_tools(memory, skills), skills=skills
    ) as play:
        play.brain.instruct("Bake bread.")
        await play.until(lambda: play.asked == 2)
        first, second = play.model.requests
        assert "- baking: How to bake bread." in first.system
        assert "Knead for ten minutes." in str(second.messages)
    memory.close()


@pytest.mark.parametrize(("resume", "goal"), [(True, "Find the key."), (False, "")])
async def test_goal_survives_a_clean_stop_with_resume(tmp_path: Path, resume: bool, goal: str) -> None:
    async with playing(tmp_path, [AssistantMessage([Text("GOAL: Find the key.")])], resume=resume) as play:
        play.brain.instruct("Find the key.")
        await play.until(lambda: play.brain.goal)
    async with playing(tmp_path, [text("...")] * 9, resume=resume) as play:
        assert play.brain.goal == goal
