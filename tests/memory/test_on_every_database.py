"""Memories are kept in the database's own store, on SQLite and PostgreSQL.

They are kept for each owner, and across killed processes.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from doubles import answering, called, talk
from repository import ROOT

from langmem_ext import (
    ConversationMemories,
    DeltaSaver,
    Facts,
    MemoryGenerator,
    MessageLog,
    Threads,
)

THREADS = 500


def remembering(prompt: str) -> dict[str, Any]:
    if "List what the user says" in prompt:
        return {
            "facts": [
                {
                    "subject": "name",
                    "text": prompt.split("user: ")[1].split("\n")[0],
                    "messages": [1],
                }
            ]
        }
    return {"main_topics": [prompt.split("user: ")[1].split("\n")[0]]}


async def test_memories_and_facts_are_their_owners(url: str, mode: str) -> None:
    with closing(MessageLog.open(url)) as log:
        for owner in ("ann@example.org", "bob", None):
            talk(log, f"of {owner}", f"I am {owner}.", owner=owner)
        generator = MemoryGenerator(log, answering(remembering), facts=True)
        report = await called(mode, generator, "generate_needing", idle=timedelta(0))
        assert (report.written, report.failed) == (3, 0)
        for owner in ("ann@example.org", "bob"):
            saver = DeltaSaver(log, owner=owner)
            memories = ConversationMemories(saver)
            assert [
                memory.data["main_topics"] for memory in await called(mode, memories, "all")
            ] == [[f"I am {owner}."]]
            assert (await called(mode, memories, "get", f"of {owner}")).messages == (
                f"of {owner}-0",
            )
            assert await called(mode, memories, "get", "of None") is None
            assert [
                fact.text for fact in await called(mode, Facts(saver.store, owner=owner), "recall")
            ] == [f"I am {owner}."]
            assert len(saver.store.search(())) == 3, "a memory, a fact, and how far was read"
        assert len(generator.memories.all()) == 3
        await called(mode, Threads(log), "delete", "of bob")
        assert DeltaSaver(log, owner="bob").store.search(()) == []


async def test_what_a_database_remembers_is_found_by_its_words(url: str, mode: str) -> None:
    with closing(MessageLog.open(url)) as log:
        facts = Facts(DeltaSaver(log).store, owner="ann")
        for text, subject in (
            ("Lives in Oslo", "home city"),
            ("Has a dog called Rex", "dog"),
            ("Likes green tea", "drink"),
        ):
            await called(mode, facts, "remember", text, subject=subject)
        found = await called(mode, facts, "recall", "green tea", limit=1)
        assert [fact.text for fact in found] == ["Likes green tea"]
        assert len(DeltaSaver(log, owner="ann").store.search(())) == 3, "they are marked as hers"


@pytest.mark.process
@pytest.mark.slow
def test_a_run_that_is_killed_goes_on_and_writes_each_memory_once(tmp_path: Path) -> None:
    path, chance = tmp_path / "memory.db", random.Random(7)
    with closing(MessageLog.open(path)) as log:
        for at in range(THREADS):
            talk(log, f"t{at}", f"This is question {at}.")
    asked: list[str] = []
    kills = 0
    for _ in range(60):
        told = run_until_killed(path, chance.randrange(1, 140))
        asked += [line for line in told if line != "done"]
        if "done" in told:
            break
        kills += 1
    assert kills >= 5
    with closing(MessageLog.open(path)) as log:
        memories = {
            memory.thread_id: memory.data["main_topics"]
            for memory in ConversationMemories(log).all()
        }
    assert memories == {f"t{at}": [f"topic {at}"] for at in range(THREADS)}
    # Whoever is killed loses what it was working on: four conversations at most, and only these are
    # asked for again.
    assert set(asked) == {str(at) for at in range(THREADS)}
    assert len(asked) <= THREADS + 4 * kills


def run_until_killed(path: Path, lines: int) -> list[str]:
    """What the program has said until it was killed, after so many lines; or until it had done."""
    paths = os.pathsep.join([str(ROOT), *sys.path])
    environment = {**os.environ, "PYTHONPATH": paths}
    program = subprocess.Popen(
        [sys.executable, str(Path(__file__).parent / "killed.py"), str(path)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert program.stdout is not None
    said = []
    with program:
        for line in program.stdout:
            said.append(line.strip())
            if len(said) == lines and "done" not in said:
                program.kill()
    return said
