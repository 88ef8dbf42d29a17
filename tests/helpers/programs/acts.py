"""What applications do with a saver, drawn by hypothesis as plain data; `Player` plays it on any.

Whatever an act holds is built anew whenever it is played: two savers never share an object.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from hypothesis import strategies as st
from langgraph.types import Interrupt, Overwrite, Send
from samples import Said, json_values, lists, ones, said, tables, values

NAMESPACES = ("", "child:1", "child:1|deep:2")
CHANNELS = ("messages", "files", "value", "log")
DELTAS = ("notes", "snapped", "said", *CHANNELS)
PATHS = ("~b, 1", "~a", "", "~b")
"""Of the tasks, in another order than theirs: by these their writes are read."""


# -- bare calls ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """How a channel's value changes before a put; `told` gives it a new version."""

    channel: str
    how: Literal["set", "append", "drop", "turn", "in place", "absent"]
    value: Any
    told: bool


@dataclass(frozen=True)
class Put:
    """Put a checkpoint on top of an earlier one (counted back from the newest; None: a root)."""

    thread: str
    namespace: str
    parent: int | None
    changes: tuple[Change, ...]
    metadata: dict[str, Any]


@dataclass(frozen=True)
class PutAgain:
    """Put a checkpoint's id a second time, with other metadata: an update."""

    thread: str
    namespace: str
    at: int


@dataclass(frozen=True)
class PutWrites:
    """Put a task's writes on a checkpoint, counted back from the newest; -1 is the next one."""

    thread: str
    namespace: str
    at: int
    task: int
    writes: tuple[tuple[str, Any], ...]


bare_threads = st.sampled_from(["a", "a", "a", "b"])
namespaces = st.sampled_from(["", "", "", *NAMESPACES])
changes = st.builds(
    Change,
    st.sampled_from(["messages", *CHANNELS]),
    st.sampled_from(["append", "append", "set", *["in place"] * 3, "drop", "turn", "absent"]),
    st.one_of(said, said, values, lists, tables, ones),
    st.sampled_from([True, True, False]),
)
labels = st.sampled_from(
    [
        {},
        {"flag": True, "n": 1, "f": 1.0},
        {"flag": 1, "n": 1.0, "f": True},
        {"note": "nul \x00", "run_id": "run-1"},
        {"deep": {"a": [None, 1.5, (1, 2)]}, "run_id": "run-2"},
        {"counters_since_delta_snapshot": {"log": [1, 1]}},
    ]
)
puts = st.builds(
    Put,
    bare_threads,
    namespaces,
    st.sampled_from([0, 0, 0, 0, 1, 2, 5, None]),
    st.lists(changes, min_size=1, max_size=3).map(tuple),
    labels,
)
SPECIAL = ("__pregel_tasks", "__interrupt__", "__resume__", "__error__", "__scheduled__")
writes = st.tuples(
    st.sampled_from([*CHANNELS, *SPECIAL]),
    st.one_of(
        said,
        values,
        st.lists(said, max_size=2),
        st.builds(lambda one: Send("worker", {"messages": [one], "n": 1}), said),
        st.builds(lambda value: (Interrupt(value, "0" * 32),), values),
        st.builds(lambda one: Overwrite([one]), said),
    ),
)
put_writes = st.builds(
    PutWrites,
    bare_threads,
    namespaces,
    st.sampled_from([0, 0, 0, 1, 3, -1]),
    st.integers(0, 3),
    st.lists(writes, min_size=1, max_size=3).map(tuple),
)
puts_again = st.builds(PutAgain, bare_threads, namespaces, st.integers(0, 2))


# -- graphs ----------------------------------------------------------------------------------------

Writes = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Run:
    """Run the graph on new input, from the head or from an earlier checkpoint."""

    thread: str
    given: tuple[Said, ...] = (Said(),)
    first: Writes = ()
    last: Writes = ()
    sends: int = 0
    child: bool = False
    asks: tuple[str, ...] = ()
    fails: str = ""
    twist: str = ""
    durability: Literal["sync", "async", "exit"] = "sync"
    at: int | None = None


@dataclass(frozen=True)
class GoOn:
    """Answer what waits: by id (all, or only the first) or bare; or go on without an answer."""

    thread: str
    how: Literal["all", "first", "bare", "none"]
    answer: Any = None
    at: int | None = None


@dataclass(frozen=True)
class Update:
    thread: str
    supersteps: tuple[Writes, ...]
    as_node: str | None = None
    at: int | None = None


graph_threads = st.sampled_from(["g", "g", "g", "h"])
earlier = st.one_of(st.none(), st.none(), st.integers(0, 9))
channel_writes = st.one_of(
    st.tuples(st.just("messages"), st.one_of(said, said, st.integers(0, 9))),
    st.tuples(st.sampled_from(["value", "flash", "scratch"]), values),
    st.tuples(st.just("log"), lists),
    st.tuples(st.just("table"), tables),
    st.tuples(st.just("topic"), st.lists(st.sampled_from(["", "a"]), max_size=2)),
    st.tuples(st.sampled_from(["notes", "notes", "snapped"]), lists),
    st.tuples(st.just("notes"), st.builds(Overwrite, lists)),
    st.tuples(st.just("said"), said),
)
several = st.lists(channel_writes, max_size=2).map(tuple)
runs = st.builds(
    Run,
    graph_threads,
    st.lists(said, max_size=2).map(tuple),
    several,
    several,
    st.sampled_from([0, 0, 2]),
    st.sampled_from([False, False, True]),
    st.sampled_from([(), (), ("last",), ("worker",), ("child", "last")]),
    st.sampled_from(["", "", "", "first", "last", "child"]),
    st.sampled_from(["", "", "value", "log", "table", "messages"]),
    st.sampled_from(["sync", "async", "exit"]),
    earlier,
)
go_ons = st.builds(
    GoOn, graph_threads, st.sampled_from(["all", "all", "first", "bare", "none"]), json_values
)
replays = st.builds(GoOn, graph_threads, st.just("none"), st.none(), st.integers(0, 9))
updates = st.builds(
    Update,
    graph_threads,
    st.lists(several, min_size=1, max_size=2).map(tuple),
    st.sampled_from([None, "first", "last"]),
    earlier,
)
acts = st.one_of(puts, put_writes, puts_again, runs, runs, go_ons, replays, updates)
programs = st.lists(acts, min_size=4, max_size=10)
Act = Put | PutAgain | PutWrites | Run | GoOn | Update


def deltas(durability: Literal["sync", "async", "exit"]) -> list[Act]:
    """A thread whose channels of deltas are rebuilt across snapshots and a fork; it waits."""
    turns = [
        Run(
            "g",
            (Said(content=f"turn {n}", id=f"h{n}"),),
            first=(("notes", [{"n": n}]), ("snapped", [n]), ("said", Said(content=f"said {n}"))),
            last=(("notes", [n, True]),),
            sends=2,
            durability=durability,
        )
        for n in range(6)
    ]
    overwritten = (("notes", Overwrite(["anew"])),)
    fork = Run("g", at=4, first=overwritten, durability=durability)
    return [*turns, fork, Run("g", asks=("last",), last=turns[0].first)]
