"""What is done to threads rather than in them: copied and pruned."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver

from benchmarks.contenders import CONTENDERS, Opened
from benchmarks.graph import Talk, conversation, thread
from benchmarks.lanes import Step, Work
from benchmarks.shape import Aim, Shape
from benchmarks.text import SHORT, humans, replies


def spoken(opened: Opened, name: object, turns: int) -> None:
    """Let a thread come about turn by turn."""
    talk = Talk(opened, conversation(opened, replies(SHORT, rich=False)), name)
    for message in islice(humans(SHORT), turns):
        talk.say(message)


def copying(contender: str, folder: Path, *, turns: int, samples: int) -> Work:
    """Copy a thread with its history: by `copy_thread`, or through a saver's public interface."""
    with CONTENDERS[contender](folder) as opened:
        spoken(opened, "source", turns)
        before = opened.bytes()
        own = type(opened.saver).copy_thread is not BaseCheckpointSaver.copy_thread
        for number in range(samples):
            yield Step(
                "copy",
                partial(
                    opened.saver.copy_thread if own else partial(put_again, opened.saver),
                    "source",
                    f"copy-{number}",
                ),
            )
        assert len(list(opened.saver.list(thread("copy-0")))) == len(
            list(opened.saver.list(thread("source")))
        )
        return {"bytes": opened.bytes(), "bytes_per_copy": (opened.bytes() - before) / samples}


def put_again(saver: Any, source: str, target: str) -> None:
    """Read every checkpoint of a thread and put it under another name."""
    for found in reversed(list(saver.list(thread(source)))):
        parent = (
            found.parent_config["configurable"]["checkpoint_id"] if found.parent_config else None
        )
        config = {
            "configurable": {"thread_id": target, "checkpoint_ns": "", "checkpoint_id": parent}
        }
        stored = saver.put(
            config, found.checkpoint, found.metadata, found.checkpoint["channel_versions"]
        )
        writes: dict[str, list[tuple[str, Any]]] = defaultdict(list)
        for task, channel, value in found.pending_writes or []:
            writes[task].append((channel, value))
        for task, values in writes.items():
            saver.put_writes(stored, values, task)


def pruning(contender: str, folder: Path, *, turns: int, samples: int) -> Work:
    """Prune a thread to its newest checkpoint; then free the disk space."""
    with CONTENDERS[contender](folder) as opened:
        for number in range(samples):
            spoken(opened, number, turns)
        before = opened.bytes()
        for number in range(samples):
            yield Step("prune", partial(opened.saver.prune, [str(number)]))
        yield Step("compact", opened.saver.log.compact)
        left = sum(len(list(opened.saver.list(thread(number)))) for number in range(samples))
        return {"checkpoints_left": left / samples, "bytes_before": before, "bytes": opened.bytes()}


SHAPES = (
    Shape(
        "copy",
        "copy a thread of 100 turns with its history (SqliteSaver: read and put again)",
        copying,
        ("sqlite", "delta"),
        {"turns": 100, "samples": 5},
        {"turns": 2, "samples": 1},
        (Aim("CPU, copying a thread of 100 turns", "copy_cpu_ms", "sqlite"),),
        burst=1,
    ),
    Shape(
        "prune",
        "prune a thread of 100 turns to its newest checkpoint; compact the file",
        pruning,
        ("delta",),
        {"turns": 100, "samples": 5},
        {"turns": 2, "samples": 1},
    ),
)
