"""Measure `DeltaStore` beside LangGraph's own stores, one after the other on this machine.

    python -m benchmarks.store [--items 20000] [--vectors 10000] [--json]

Each figure is the CPU time and the wall time of one call, in milliseconds: the median of several
rounds. Databases are files, with every commit on disk. Vectors are random, of 384 numbers; `find`
is by vectors alone, `hybrid` by vectors and words.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias
from zlib import crc32

from langgraph.store.base import BaseStore, IndexConfig, PutOp
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore

from langmem_ext import DeltaStore

Figures: TypeAlias = dict[str, tuple[float, float]]
"""CPU and wall milliseconds of a call, by what it does."""

NAMESPACES = 100
DIMS = 384
ROUNDS = 7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--vectors", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    found: dict[str, Figures] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, opened in contenders(Path(folder)):
            with opened(None) as store:
                found[name] = calls(store, args.items)
                if name == "DeltaStore":
                    found[name] |= words(store)
            if name == "SqliteStore" and not hasattr(sqlite3.Connection, "enable_load_extension"):
                continue  # this Python loads no extension
            for hybrid in (False, True) if name == "DeltaStore" else (False,):
                with opened(
                    index(), **({"hybrid": hybrid} if name == "DeltaStore" else {})
                ) as store:
                    found[name] |= queries(store, args.vectors, "hybrid" if hybrid else "find")
    print(json.dumps(found) if args.json else table(found))


def contenders(folder: Path) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Each store by its name, with what opens a new one."""

    @contextmanager
    def delta(config: IndexConfig | None, **options: Any) -> Iterator[BaseStore]:
        with DeltaStore.open(
            folder / f"delta-{random.random()}.db", index=config, **options
        ) as store:
            yield store

    @contextmanager
    def memory(config: IndexConfig | None) -> Iterator[BaseStore]:
        yield InMemoryStore(index=config)

    @contextmanager
    def sqlite(config: IndexConfig | None) -> Iterator[BaseStore]:
        with SqliteStore.from_conn_string(
            str(folder / f"peer-{random.random()}.db"), index=config
        ) as store:
            store.setup()
            yield store

    yield "DeltaStore", delta
    yield "InMemoryStore", memory
    yield "SqliteStore", sqlite


def index() -> IndexConfig:
    return {"dims": DIMS, "embed": embed, "fields": ["text"]}


def embed(texts: Sequence[str]) -> list[list[float]]:
    """A vector of each text, the same each time: one of a thousand, with a number of its own."""
    return [[*VECTORS[crc32(text.encode()) % 1_000], len(text) % 97 / 97] for text in texts]


VECTORS = [
    [random.Random(DIMS * at + place).gauss(0, 1) for place in range(DIMS - 1)]
    for at in range(1_000)
]


def value(at: int) -> dict[str, Any]:
    return {
        "n": at,
        "tag": str(at % 7),
        "text": f"prefers window seats and vegetarian meals on flight {at}",
    }


def namespace(at: int) -> tuple[str, ...]:
    return ("users", str(at % NAMESPACES))


def fill(store: BaseStore, count: int) -> None:
    for first in range(0, count, 1_000):
        store.batch(
            [
                PutOp(namespace(at), f"k{at}", value(at))
                for at in range(first, min(first + 1_000, count))
            ]
        )


def calls(store: BaseStore, count: int) -> Figures:
    """What the calls cost that need no model."""
    fill(store, count)
    return {
        "put": timed(lambda at: store.put(namespace(at), f"k{at}", value(at)), 40),
        "get": timed(lambda at: store.get(namespace(at), f"k{at}"), 100),
        "search a namespace, 10": timed(lambda at: store.search(namespace(at), limit=10), 40),
        "filter n > x over all": timed(
            lambda at: store.search((), filter={"n": {"$gt": count - 10}}, limit=10), 1
        ),
    }


def words(store: BaseStore) -> Figures:
    """What queries cost that words alone answer, over all items."""
    rare = timed(lambda at: store.search((), query=str(1_000 + at), limit=10), 1)
    return {
        "a rare word in all": rare,
        "a word of each in all": timed(lambda at: store.search((), query="flight", limit=10), 1),
    }


def queries(store: BaseStore, count: int, name: str) -> Figures:
    """What queries cost."""
    fill(store, count)
    return {
        f"{name} in all": timed(lambda at: store.search((), query=f"flight {at}", limit=10), 1),
        f"{name} in a namespace": timed(
            lambda at: store.search(namespace(at), query=f"flight {at}", limit=10), 5
        ),
    }


def timed(call: Callable[[int], object], count: int) -> tuple[float, float]:
    """The median of the rounds, of a call; the first round warms up."""
    spent = []
    for turn in range(ROUNDS + 1):
        cpu, wall = time.process_time(), time.perf_counter()
        for at in range(turn * count, (turn + 1) * count):
            call(at)
        spent.append(
            ((time.process_time() - cpu) / count * 1e3, (time.perf_counter() - wall) / count * 1e3)
        )
    return median(cpu for cpu, _ in spent[1:]), median(wall for _, wall in spent[1:])


def table(found: dict[str, Figures]) -> str:
    names = list(dict.fromkeys(name for figures in found.values() for name in figures))
    lines = [f"{'ms CPU / wall':26}" + "".join(f"{contender:>22}" for contender in found)]
    for name in names:
        cells = (figures.get(name) for figures in found.values())
        lines.append(
            f"{name:26}"
            + "".join(
                f"{'–' if one is None else f'{one[0]:.3f} / {one[1]:.3f}':>22}" for one in cells
            )
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
