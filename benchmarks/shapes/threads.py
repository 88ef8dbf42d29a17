"""Thread lists, and the end of a long thread; no other checkpointer has these."""

from __future__ import annotations

from pathlib import Path

from langchain_core.messages import BaseMessage, HumanMessage

from benchmarks.contenders import CONTENDERS
from benchmarks.lanes import Step, Work
from benchmarks.shape import Aim, Shape
from benchmarks.text import SHORT, dialogue, humans
from langmem_ext import ThreadChatMessageHistory, Threads

BATCH = 10_000
"""Messages that a history is given at a time."""


def listing(contender: str, folder: Path, *, count: int, samples: int) -> Work:
    """The first page of many threads and the one after it, of all and of one owner in a hundred."""
    with CONTENDERS[contender](folder) as opened:
        said = humans(SHORT)
        for number in range(count):
            history = ThreadChatMessageHistory(
                f"thread-{number}", opened.saver.log, owner=f"owner-{number % 100}"
            )
            history.add_messages([HumanMessage(next(said).text)])
        threads = Threads(opened.saver)

        def pages(**wanted: str) -> int:
            first = threads.list(limit=50, **wanted)  # type: ignore[arg-type]  # an owner
            return len(first) + len(threads.list(limit=50, after=first[-1], **wanted))  # type: ignore[arg-type]

        for number in range(samples):
            yield Step("two_pages", pages)
            yield Step("two_pages_of_one", lambda owner=f"owner-{number % 100}": pages(owner=owner))  # type: ignore[misc]
        return {}


def tail(contender: str, folder: Path, *, messages: int, samples: int) -> Work:
    """The end of a long thread, by messages and by tokens, by a program that has just started."""
    with CONTENDERS[contender](folder) as opened:
        history = ThreadChatMessageHistory("long", opened.saver)
        said: list[BaseMessage] = dialogue(min(BATCH, messages), rich=False)
        for _ in range(-(-messages // BATCH)):
            history.add_messages([message.model_copy(update={"id": None}) for message in said])
        threads = Threads(opened.saver)
        for _ in range(samples):
            opened.saver.log.caches.forget()
            yield Step("last_50", lambda: threads.messages("long", last=50))
            opened.saver.log.caches.forget()
            yield Step("last_4000_tokens", lambda: history.window(4_000))
        return {}


SHAPES = (
    Shape(
        "threads",
        "two pages of 50 of 100,000 threads",
        listing,
        ("delta",),
        {"count": 100_000, "samples": 10},
        {"count": 120, "samples": 1},
        (
            Aim("CPU in ms, two pages of 50 of 100,000 threads", "two_pages_cpu_ms", at_most=20),
            Aim("CPU in ms, the same of one owner", "two_pages_of_one_cpu_ms", at_most=20),
        ),
        slow=True,
    ),
    Shape(
        "tail",
        "the end of 1,000,000 messages",
        tail,
        ("delta",),
        {"messages": 1_000_000, "samples": 10},
        {"messages": 100, "samples": 1},
        (
            Aim("CPU in ms, the last 50 of 1,000,000 messages", "last_50_cpu_ms", at_most=10),
            Aim(
                "CPU in ms, the last 4,000 tokens of 1,000,000 messages, cold",
                "last_4000_tokens_cpu_ms",
                at_most=1,
            ),
        ),
        slow=True,
    ),
)
