"""Prompts are stored in versions, one of them is used, and no writer loses another's."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from doubles import answering, called, talk
from langgraph.store.memory import InMemoryStore

from langmem_ext import DeltaStore, InvalidInput, MemoryGenerator, MessageLog, PromptVersions


async def test_the_active_version_is_the_one_that_is_used(mode: str) -> None:
    prompts = PromptVersions(InMemoryStore())
    assert await called(mode, prompts, "active", "greeting") is None
    first = await called(mode, prompts, "add", "greeting", "Say hello.")
    second = await called(mode, prompts, "add", "greeting", "Say hi.")
    third = await called(mode, prompts, "add", "greeting", "Say nothing.", set_active=False)
    assert (await called(mode, prompts, "active", "greeting")) == second
    versions = await called(mode, prompts, "versions", "greeting")
    assert [(version.text, version.active) for version in versions] == [
        ("Say nothing.", False),
        ("Say hi.", True),
        ("Say hello.", False),
    ]
    assert (await called(mode, prompts, "activate", "greeting", first.id)).text == "Say hello."
    assert [
        version.id
        for version in await called(mode, prompts, "versions", "greeting")
        if version.active
    ] == [first.id]
    assert await called(mode, prompts, "activate", "greeting", None) is None
    with pytest.raises(InvalidInput, match="no version"):
        await called(mode, prompts, "activate", "farewell", third.id)
    assert await called(mode, prompts, "versions", "greeting.") == []


async def test_the_same_text_is_the_same_version(mode: str) -> None:
    prompts = PromptVersions(InMemoryStore())
    first = await called(mode, prompts, "add", "greeting", "Say hello.")
    await called(mode, prompts, "add", "greeting", "Say hi.")
    again = await called(mode, prompts, "add", "greeting", "Say hello.")
    assert again == first
    assert len(await called(mode, prompts, "versions", "greeting")) == 2


@pytest.mark.parametrize(
    ("name", "text"), [("", "x"), ("x", ""), ("x", " \n"), ("x", "\0"), (5, "x"), ("\ud800", "x")]
)
def test_what_is_no_prompt_is_refused(name: str, text: str) -> None:
    store = InMemoryStore()
    with pytest.raises(InvalidInput):
        PromptVersions(store).add(name, text)
    assert store.search(()) == []


async def test_a_generation_is_asked_for_by_the_active_version(mode: str, tmp_path: Path) -> None:
    with closing(MessageLog.open(tmp_path / "memory.db")) as log:
        prompts = PromptVersions(DeltaStore(log))
        talk(log, "t1", "Hello.")
        model = answering(
            lambda prompt: (
                {"facts": []}
                if "FACTS" in prompt or "List what" in prompt
                else {"main_topics": ["x"]}
            )
        )
        generator = MemoryGenerator(log, model, prompt=prompts, facts=True, facts_prompt=prompts)
        await called(mode, generator, "generate", "t1")
        assert "Read the following conversation" in model.asked[-1], "the usual one"
        prompts.add("memory_generation", "MEMORY: what is the student curious about?")
        prompts.add("fact_extraction", "FACTS: what does the student know?")
        talk(log, "t1", "Hello.", "Hello.", "I know all.")
        await called(mode, generator, "generate", "t1")
        assert "FACTS: what does" in model.asked[-2]
        assert "MEMORY: what is" in model.asked[-1]
