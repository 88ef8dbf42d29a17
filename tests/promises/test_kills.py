"""Promise: nothing acknowledged is lost.

Killed anywhere, a conversation goes on in another process and ends as if nothing had happened.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from nursery import Nursery
from postgres.server import SHARED
from savers import Backend

pytestmark = pytest.mark.process


SOAK = os.environ.get("LANGMEM_EXT_SOAK") == "1"
RANDOM_KILLS = 1000 if SOAK else 12
SHARDS = 2
SHARE = {"file": 1 if SOAK else 3, "postgres": 1 if SOAK else 5}
"""It is killed at one of so many steps, which chance picks: at every so many it might always be the
same moment of a transaction.

After a kill, a test on PostgreSQL waits until the server has noticed."""


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    nursery = Nursery(Path(__file__).parents[1] / "helpers/programs/dying.py")
    yield nursery
    nursery.close()


Talk = Callable[..., Any]


@pytest.fixture(scope="module")
def talk(nursery: Nursery, durable: Backend) -> Talk:
    """Have a conversation on a database of its own, of the kind; what came of it."""

    def run(**command: Any) -> Any:
        with SHARED.own_schemas():
            if durable.name == "postgres":
                command["url"] = durable.new_url(Path())
            return nursery.run(**command)

    return run


@pytest.fixture(scope="module")
def undisturbed(talk: Talk) -> Any:
    """The same conversation in one process that is not killed."""
    return talk()


def test_the_undisturbed_conversation_does_something_worth_killing(undisturbed: Any) -> None:
    said = [message[1] for message in undisturbed["end"]["messages"]]
    assert undisturbed["died"] == 0
    assert undisturbed["steps"] > 60
    assert any("O-12345" in text and "cancel" in text.lower() for text in said)
    assert undisturbed["end"]["values"]["plan"] is None
    assert [
        row
        for row in undisturbed["end"]["shop"]["orders"]
        if row[0] == "O-12345" and "cancelled" in row
    ]


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_killed_before_any_statement_and_before_and_after_any_commit_it_ends_the_same(
    shard: int, durable: Backend, talk: Talk, undisturbed: Any
) -> None:
    steps = range(shard, undisturbed["steps"], SHARDS)
    for step in sorted(random.Random(shard).sample(steps, len(steps) // SHARE[durable.name])):
        found = talk(dies_at=step)
        # Writes that wait at the same time share a commit, so that a conversation has a few steps
        # more or less.
        assert found["died"] == -9 or step > undisturbed["steps"] * 0.9, (
            f"step {step} was never reached"
        )
        assert found["end"] == undisturbed["end"], (
            f"killed at step {step}, after {found['answered']} answers"
        )
        # What a killed node has told, the next process tells again: nothing is missing, and nothing
        # is told that did not come about.
        assert sorted(set(found["events"])) == sorted(undisturbed["events"]), (
            f"killed at step {step}"
        )


def seconds_of(talk: Talk) -> float:
    """How long the conversation takes, undisturbed."""
    started = time.monotonic()
    talk()
    return time.monotonic() - started


@pytest.mark.timeout(3600)
def test_killed_at_any_moment_it_ends_the_same(talk: Talk, undisturbed: Any) -> None:
    length = min(seconds_of(talk) for _ in range(3))
    chance = random.Random(20261121)
    died = 0
    for number in range(RANDOM_KILLS):
        seconds = chance.uniform(0, length)
        found = talk(after_s=seconds)
        if found["died"] == -9:
            died += 1
        else:
            length *= 0.8  # the machine is less busy than it was
        assert set(found["events"]) == set(undisturbed["events"]), (
            f"kill {number}, after {seconds * 1000:.1f} ms"
        )
        assert found["end"] == undisturbed["end"], (
            f"kill {number}, after {seconds * 1000:.1f} ms and {found['answered']} answers"
        )
    assert died > RANDOM_KILLS / 4
