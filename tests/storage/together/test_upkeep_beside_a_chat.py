"""Promise: one process chats, another one sweeps, searches, exports, copies and deletes other
threads: nothing of the chat is lost.
"""

from __future__ import annotations

import io
import os
import random
from datetime import timedelta
from typing import Any

import pytest
from forked_workers import forks
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from prune_reference import assert_sound

from langmem_ext import DeltaSaver, Retention, ThreadChatMessageHistory, ThreadNotFound, Threads

SOAK = os.environ.get("LANGMEM_EXT_SOAK") == "1"
OPERATIONS = 10_000 if SOAK else 150
"""What the second process does while the first one chats."""

CHATS = 5
"""Threads of the chat."""


def chat(url: str, done: Any) -> list[int]:
    """Say something in one thread after the other until the other process has done its work, and
    look at what is there each time.
    """
    turns = [0] * CHATS
    with DeltaSaver.open(url, synchronous="normal", retention=Retention(keep_last=20)) as saver:
        builder = StateGraph(MessagesState).add_node(
            "answer", lambda state: {"messages": [AIMessage(f"answer {len(state['messages'])}")]}
        )
        graph = builder.add_edge(START, "answer").compile(checkpointer=saver)
        while not done.is_set() or min(turns) < 3:
            for at in range(CHATS):
                config: Any = {"configurable": {"thread_id": f"chat-{at}"}}
                said = graph.invoke(
                    {"messages": [HumanMessage(f"prompt {turns[at]} of chat {at}")]}, config
                )["messages"]
                turns[at] += 1
                assert [message.text for message in said] == conversation(at, turns[at])
    return turns


def conversation(at: int, turns: int) -> list[str]:
    """What a thread of the chat has said after so many turns."""
    return [
        text
        for turn in range(turns)
        for text in (f"prompt {turn} of chat {at}", f"answer {2 * turn + 1}")
    ]


class Upkeep:
    """Does whatever people do with threads, to all but those of the chat."""

    def __init__(self, threads: Threads, seed: int) -> None:
        self.threads = threads
        self.chance = random.Random(seed)
        self.made = 0
        self.there: dict[str, int] = {}

    def work(self) -> None:
        """Do one thing, and see that it was done."""
        if not self.there:
            self.make()
            return
        getattr(
            self,
            self.chance.choice(
                ("make", "make", "search", "export", "copy", "delete", "compact", "sweep", "listed")
            ),
        )()

    def _one(self) -> str:
        return self.chance.choice(sorted(self.there))

    def make(self) -> None:
        self.made += 1
        name, count = f"other-{self.made}", self.chance.randrange(1, 6)
        ThreadChatMessageHistory(name, self.threads.log).add_messages(
            [HumanMessage(f"zebra {name} {at}") for at in range(count)]
        )
        self.there[name] = count

    def search(self) -> None:
        name = self._one()
        assert len(self.threads.search("zebra", thread=name, limit=50)) == self.there[name]
        assert {
            hit.thread_id for hit in self.threads.search("zebra", limit=50)
        } <= self.there.keys()

    def export(self) -> None:
        name, told = self._one(), io.StringIO()
        self.threads.export_to(told, name)
        taken = self.threads.import_from(io.StringIO(told.getvalue()))
        [copy] = taken.ids.values()
        self.there[copy] = self.there[name]

    def copy(self) -> None:
        name = self._one()
        self.there[self.threads.fork(name).id] = self.there[name]

    def delete(self) -> None:
        name = self._one()
        del self.there[name]
        assert self.threads.delete(name).threads == 1
        with pytest.raises(ThreadNotFound):
            self.threads.get(name)

    def compact(self) -> None:
        self.threads.log.compact()

    def sweep(self) -> None:
        assert self.threads.sweep().threads == 0

    def listed(self) -> None:
        found = {
            thread.id: thread.messages
            for thread in self.threads.each()
            if not thread.id.startswith("chat-")
        }
        assert found == self.there


@pytest.mark.process
def test_a_chat_loses_nothing_to_the_upkeep_of_other_threads(url: str) -> None:
    context = forks()
    with (
        DeltaSaver.open(url, synchronous="normal") as saver,
        context.Manager() as manager,
        context.Pool(1) as pool,
    ):
        done = manager.Event()
        talking = pool.apply_async(chat, (url, done))
        threads = Threads(saver, ttl=timedelta(days=1))
        upkeep = Upkeep(threads, seed=OPERATIONS)
        for _ in range(OPERATIONS):
            upkeep.work()
            if len(upkeep.there) > 60:
                upkeep.delete()
        done.set()
        turns = talking.get(600)
        assert min(turns) >= 3
        for at, count in enumerate(turns):
            assert [message.text for message in threads.messages(f"chat-{at}")] == conversation(
                at, count
            )
            assert (
                len(threads.search(f'"of chat {at}"', thread=f"chat-{at}", limit=10_000)) == count
            )
        upkeep.listed()
        assert_sound(saver)
