"""One conversation: how its database grows, and what a turn costs when it has grown."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path

from benchmarks.contenders import CONTENDERS
from benchmarks.graph import Talk, conversation
from benchmarks.lanes import Figures, Step, Work
from benchmarks.shape import Aim, Shape
from benchmarks.text import LONG, SHORT, Lengths, dialogue, humans, raw_bytes, replies

MARKS = (25, 50, 100, 200, 300, 400, 500, 600, 700, 800)


def growth(
    contender: str,
    folder: Path,
    *,
    turns: int,
    marks: Sequence[int],
    characters: Lengths = SHORT,
    rich: bool = False,
) -> Work:
    """A conversation from its first turn; bytes at some of them, and by what the messages take."""
    with CONTENDERS[contender](folder) as opened:
        talk = Talk(opened, conversation(opened, replies(characters, rich=rich)))
        sizes: dict[int, int] = {}
        for turn, message in zip(range(1, turns + 1), humans(characters), strict=False):
            yield Step(_part(turn, marks), partial(talk.say, message))
            if turn in marks and opened.size:
                sizes[turn] = opened.bytes()
        raw = list(accumulate(raw_bytes(talk.messages())))
        found: Figures = {f"raw@{turn}": raw[2 * turn - 1] for turn in marks}
        for turn, size in sizes.items():
            found |= {
                f"bytes@{turn}": size,
                f"by_raw@{turn}": size / raw[2 * turn - 1],
                f"bytes_per_turn@{turn}": size / turn,
            }
        return found


def _part(turn: int, marks: Sequence[int]) -> str:
    """The kind of a turn: those shortly before a mark show what a turn costs there."""
    return next((f"turn@{mark}" for mark in marks if mark - min(50, mark // 2) < turn <= mark), "")


def turns(
    contender: str,
    folder: Path,
    *,
    messages: int,
    samples: int,
    threads: int = 1,
    rich: bool = False,
) -> Work:
    """Turns of threads that already have so many messages.

    The first two turns of each thread warm up, and so do the first of many threads.
    """
    with CONTENDERS[contender](folder) as opened:
        graph = conversation(opened, replies(SHORT, rich=rich))
        said = humans(SHORT)
        begin = max(0, messages - samples - 4) // 2 * 2
        for name in range(threads):
            talk = Talk(opened, graph, name, begin=dialogue(begin, rich=rich))
            for number in range(samples + 2):
                yield Step(
                    "turn" if number >= 2 and name >= threads // 5 else "",
                    partial(talk.say, next(said)),
                )
        return {}


def _growth(
    name: str,
    title: str,
    contenders: tuple[str, ...],
    aims: tuple[Aim, ...],
    *,
    slow: bool = False,
    **settings: object,
) -> Shape:
    small = {"turns": 4, "marks": (2, 4)}
    return Shape(
        name,
        title,
        growth,
        contenders,
        {"turns": 800, "marks": MARKS} | settings,
        small,
        aims,
        slow,
    )


def _turns(
    messages: int,
    *,
    rich: bool,
    samples: int,
    threads: int = 1,
    aims: tuple[Aim, ...] = (),
    slow: bool = False,
) -> Shape:
    words = "provider metadata" if rich else "plain"
    return Shape(
        f"turn-{messages}{'-rich' if rich else ''}",
        f"a turn at {messages:,} messages, {words}",
        turns,
        ("none", "memory", "sqlite", "postgres", "delta"),
        {"messages": messages, "samples": samples, "threads": threads, "rich": rich},
        {"messages": 8, "samples": 1, "threads": 1},
        aims,
        slow,
    )


def _cpu(
    what: str, against: str, *, at_most: float | None = None, at_least: float | None = None
) -> Aim:
    return Aim(f"CPU per turn, {what}", "turn_cpu_ms", against, at_most=at_most, at_least=at_least)


SHAPES = (
    _growth(
        "short",
        "800 turns of short messages, from the first",
        ("none", "memory", "sqlite", "deltachannel", "postgres", "delta", "delta-zstd"),
        (
            Aim("bytes / raw, 800 short turns", "by_raw@800", at_most=1.3),
            Aim("the same, compressed", "by_raw@800", at_most=1.1, ours="delta-zstd"),
            Aim(
                "CPU of turns 751 to 800, compressed", "turn_cpu_ms@800", "delta", ours="delta-zstd"
            ),
            Aim("database bytes at 800 turns", "bytes@800", at_most=900_000),
            Aim("database bytes at 800 turns", "bytes@800", "sqlite", at_least=1000),
            Aim("database bytes at 800 turns", "bytes@800", "deltachannel"),
            Aim("database bytes at 800 turns", "bytes@800", "postgres"),
        ),
    ),
    _growth(
        "long",
        "800 turns of 2,000 characters each way",
        ("delta", "delta-zstd"),
        (
            Aim("bytes / raw, 800 long turns", "by_raw@800", at_most=1.1),
            Aim("the same, compressed", "by_raw@800", at_most=0.6, ours="delta-zstd"),
            Aim(
                "CPU of turns 751 to 800, long and compressed",
                "turn_cpu_ms@800",
                "delta",
                ours="delta-zstd",
            ),
        ),
        characters=LONG,
    ),
    _growth(
        "rich",
        "800 turns, provider metadata on the agent's messages",
        ("delta", "delta-zstd"),
        (
            Aim("bytes / raw, 800 turns with provider metadata", "by_raw@800", at_most=1.0),
            Aim("the same, compressed", "by_raw@800", ours="delta-zstd"),
        ),
        rich=True,
    ),
    _turns(
        20,
        rich=False,
        samples=6,
        threads=20,
        aims=(
            _cpu("20 messages", "memory", at_most=1.4),
            _cpu("20 messages", "sqlite", at_most=0.9),
        ),
    ),
    _turns(200, rich=False, samples=30),
    _turns(
        1600,
        rich=False,
        samples=20,
        aims=(_cpu("1,600 messages", "memory", at_least=3.5), _cpu("1,600 messages", "sqlite")),
    ),
    _turns(
        1600,
        rich=True,
        samples=20,
        aims=(
            _cpu("1,600 messages, rich", "memory", at_least=2.5),
            _cpu("1,600 messages, rich", "sqlite"),
        ),
    ),
    _turns(20000, rich=False, samples=7, aims=(_cpu("20,000 messages", "none", at_most=4.5),)),
    _turns(20000, rich=True, samples=7, aims=(_cpu("20,000 messages, rich", "none", at_most=8),)),
)
