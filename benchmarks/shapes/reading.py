"""Reading what is stored: a thread's history, and a long thread in a new process."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.contenders import CONTENDERS, Opened
from benchmarks.graph import Talk, conversation, thread
from benchmarks.lanes import Step, Work
from benchmarks.shape import Aim, Shape
from benchmarks.text import SHORT, dialogue, humans, replies


def history(contender: str, folder: Path, *, checkpoints: int, samples: int) -> Work:
    """List a thread's checkpoints: only that, and with every message of every state looked at."""
    with CONTENDERS[contender](folder) as opened:
        talk = Talk(opened, conversation(opened, replies(SHORT, rich=False)))
        for message in islice(humans(SHORT), -(-checkpoints // 3)):
            talk.say(message)

        def listed() -> list[Any]:
            return list(opened.saver.list(talk.config, limit=checkpoints))

        def read() -> int:
            states = (found.checkpoint["channel_values"] for found in listed())
            return sum(
                len(message.content) for state in states for message in state.get("messages", [])
            )

        for _ in range(samples):
            yield Step("list", listed)
            yield Step("list_and_read", read)
        return {}


def cold(contender: str, folder: Path, *, messages: int, samples: int, rich: bool = False) -> Work:
    """Open the database and read a long thread's newest state, with nothing in memory."""
    with CONTENDERS[contender](folder) as opened:
        Talk(
            opened,
            conversation(opened, replies(SHORT, rich=rich)),
            begin=dialogue(messages, rich=rich),
        )
    for _ in range(samples):
        opening = CONTENDERS[contender](folder)

        def read(opening: Any = opening) -> None:
            reopened: Opened = opening.__enter__()
            found = reopened.saver.get_tuple(thread())
            assert len(found.checkpoint["channel_values"]["messages"]) == messages

        yield Step("open", read)
        opening.__exit__(None, None, None)
    return {}


SHAPES = (
    Shape(
        "list",
        "list() of 1,000 checkpoints",
        history,
        ("sqlite", "delta"),
        {"checkpoints": 1000, "samples": 2},
        {"checkpoints": 6, "samples": 1},
        (
            Aim("CPU, list() of 1,000 checkpoints", "list_cpu_ms", "sqlite", at_least=40),
            Aim("CPU, the same, every message looked at", "list_and_read_cpu_ms", "sqlite"),
        ),
        burst=2,
    ),
    Shape(
        "cold",
        "a thread of 20,000 messages, opened cold",
        cold,
        ("sqlite", "delta"),
        {"messages": 20000, "samples": 5},
        {"messages": 8, "samples": 1},
        (
            Aim("CPU in ms, cold open of 20,000 messages", "open_cpu_ms", at_most=180),
            Aim("CPU, the same", "open_cpu_ms", "sqlite"),
        ),
        burst=1,
    ),
)
