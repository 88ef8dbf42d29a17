"""Random programs, drawn by hypothesis and run by `sessions.Session`, once per saver.

A program is plain data, so that a failing one prints as its own reproduction. Whatever it builds is
built anew for each run: two runs never share an object. Nodes are driven by the script of the step
that runs them; nothing in a program is random once it is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from hypothesis import strategies as st
from samples import TEXTS, Order, Said, json_values, keys, lists, ones, said, tables, values

Durability = Literal["sync", "async", "exit"]


# -- actions: what a node does ---------------------------------------------------------------------


@dataclass(frozen=True)
class Say:
    messages: tuple[Said, ...]


@dataclass(frozen=True)
class Remove:
    which: int


@dataclass(frozen=True)
class Replace:
    which: int
    message: Said


@dataclass(frozen=True)
class Rearrange:
    """Keep the last `keep` messages, turned round by `turn`: drop a prefix, drop all, reorder."""

    keep: int
    turn: int


@dataclass(frozen=True)
class Edit:
    """Change a message in place; the channel is written only with `touch`."""

    which: int
    how: Literal["content", "flag", "deep", "metadata", "call", "name", "attribute"]
    touch: bool


@dataclass(frozen=True)
class Twist:
    """Change a channel's value in place, deep inside; the channel is written only with `touch`."""

    channel: str
    touch: bool


@dataclass(frozen=True)
class Write:
    channel: str
    value: Any


@dataclass(frozen=True)
class Tweak:
    """Write a dict that differs in one key, which is set, moved to the end, or removed (None)."""

    channel: str
    key: str
    value: Any
    move: bool


@dataclass(frozen=True)
class Quote:
    """Put the very object that stands in the message list into another channel as well."""

    channel: str
    which: int


@dataclass(frozen=True)
class Ask:
    value: Any
    times: int = 1


@dataclass(frozen=True)
class Fail:
    """Raise, the first time that the node comes here in this step."""


Action = Say | Remove | Replace | Rearrange | Edit | Twist | Write | Tweak | Quote | Ask | Fail

channel_writes = st.one_of(
    st.builds(Write, st.just("value"), values),
    st.builds(Write, st.just("files"), tables),
    st.builds(Write, st.just("log"), lists),
    st.builds(Write, st.just("table"), tables),
    st.builds(Write, st.just("total"), st.sampled_from([0, 1, 2])),
    st.builds(Write, st.just("best"), st.sampled_from(TEXTS)),
    st.builds(Write, st.just("flash"), values),
    st.builds(
        Write, st.sampled_from(["topic", "events"]), st.lists(st.sampled_from(TEXTS), max_size=2)
    ),
    st.builds(Write, st.just("scratch"), values),
)
quiet_actions = st.one_of(
    st.builds(Say, st.lists(said, min_size=1, max_size=3).map(tuple)),
    st.builds(Say, st.lists(said, min_size=1, max_size=3).map(tuple)),
    st.builds(Remove, st.integers(0, 9)),
    st.builds(Replace, st.integers(0, 9), said),
    st.builds(Rearrange, st.integers(0, 5), st.integers(0, 2)),
    channel_writes,
    channel_writes,
    st.builds(
        Tweak,
        st.sampled_from(["files", "files", "value"]),
        keys,
        st.one_of(st.none(), ones, json_values),
        st.booleans(),
    ),
    st.builds(Quote, st.sampled_from(["value", "log", "files", "table"]), st.integers(0, 9)),
    st.builds(Ask, json_values, st.integers(1, 2)),
    st.just(Fail()),
)
mutations = st.one_of(
    st.builds(
        Edit,
        st.integers(0, 9),
        st.sampled_from(
            ["content", "flag", "flag", "deep", "deep", "metadata", "call", "name", "attribute"]
        ),
        st.booleans(),
    ),
    st.builds(
        Twist, st.sampled_from(["value", "files", "files", "log", "log", "table"]), st.booleans()
    ),
)
worker_actions = st.one_of(
    st.builds(Say, st.lists(said, min_size=1, max_size=2).map(tuple)),
    st.builds(Write, st.just("log"), lists),
    st.builds(Write, st.just("table"), tables),
    st.builds(Ask, json_values),
    st.just(Fail()),
)


@dataclass(frozen=True)
class Script:
    """What the nodes do in one step, where `first` goes on to, and how often `last` goes back."""

    first: tuple[Action, ...] = ()
    last: tuple[Action, ...] = ()
    worker: tuple[Action, ...] = ()
    child: tuple[Action, ...] = ()
    sends: tuple[Said, ...] = ()
    through_child: bool = False
    by_command: bool = False
    rounds: int = 1


@st.composite
def scripts(draw: st.DrawFn, mutating: bool) -> Script:
    actions = st.one_of(quiet_actions, mutations) if mutating else quiet_actions
    several = st.lists(actions, max_size=3).map(tuple)
    return Script(
        first=draw(several),
        last=draw(several),
        worker=draw(st.lists(worker_actions, max_size=2).map(tuple)),
        child=draw(st.lists(actions, max_size=2).map(tuple)),
        sends=draw(st.one_of(st.just(()), st.lists(said, max_size=3).map(tuple))),
        through_child=draw(st.sampled_from([False, False, True])),
        by_command=draw(st.booleans()),
        rounds=draw(st.sampled_from([1, 1, 2])),
    )


# -- steps: what the caller does -------------------------------------------------------------------


@dataclass(frozen=True)
class Invoke:
    """Run the graph on new input, from the head or from an earlier checkpoint.

    `at` counts back from the newest.
    """

    thread: str
    messages: tuple[Said, ...]
    script: Script
    durability: Durability
    writes: tuple[Write, ...] = ()
    at: int | None = None


@dataclass(frozen=True)
class Resume:
    """Answer the interrupts that wait: by id (all, or only the first), or bare."""

    thread: str
    answer: Any
    how: Literal["all by id", "first by id", "bare"]
    durability: Durability
    say: tuple[Said, ...] = ()


@dataclass(frozen=True)
class Continue:
    """`invoke(None)`: go on where a node failed, or replay from an earlier checkpoint."""

    thread: str
    durability: Durability
    at: int | None = None


@dataclass(frozen=True)
class Update:
    thread: str
    writes: tuple[Say | Write | Remove, ...]
    as_node: str | None
    at: int | None = None


@dataclass(frozen=True)
class BulkUpdate:
    thread: str
    supersteps: tuple[tuple[Say | Write, ...], ...]


@dataclass(frozen=True)
class Reopen:
    """Close the saver and open the database again: what is read next is read cold."""


@dataclass(frozen=True)
class Meddle:
    """Change deeply everything ever read or passed in: neither store nor later reads may notice."""

    thread: str


@dataclass(frozen=True)
class Forget:
    thread: str


Step = Invoke | Resume | Continue | Update | BulkUpdate | Reopen | Meddle | Forget


@dataclass(frozen=True)
class Program:
    steps: tuple[Step, ...]
    child_keeps_state: bool = False


threads = st.sampled_from(["t1", "t1", "t1", "t2"])
earlier = st.one_of(st.none(), st.none(), st.integers(0, 9))
updates = st.one_of(
    st.builds(Say, st.lists(said, min_size=1, max_size=2).map(tuple)),
    st.builds(Remove, st.integers(0, 9)),
    channel_writes,
)


@st.composite
def invocations(draw: st.DrawFn) -> Invoke:
    mutating = draw(st.sampled_from([True, True, False]))
    script = draw(scripts(mutating))
    writes = draw(st.lists(channel_writes, max_size=2).map(tuple))
    # LangGraph's accumulating Topic gives savers its own list and extends it in place: beside a
    # saver that is at work, unless "sync".
    extends = any(
        isinstance(one, Write) and one.channel == "topic"
        for one in (*script.first, *script.last, *script.child, *writes)
    )
    return Invoke(
        thread=draw(threads),
        messages=draw(st.lists(said, max_size=3).map(tuple)),
        script=script,
        durability=(
            "sync" if mutating or extends else draw(st.sampled_from(["sync", "async", "exit"]))
        ),
        writes=writes,
        at=draw(earlier),
    )


# A step that goes on where a script was left keeps to "sync": that script may change values in
# place.
steps: st.SearchStrategy[Step] = st.one_of(
    invocations(),
    invocations(),
    invocations(),
    st.builds(
        Resume,
        threads,
        json_values,
        st.sampled_from(["all by id", "all by id", "first by id", "bare"]),
        st.just("sync"),
        st.lists(said, max_size=1).map(tuple),
    ),
    st.builds(Continue, threads, st.just("sync"), st.one_of(st.none(), st.integers(0, 9))),
    st.builds(
        Update,
        threads,
        st.lists(updates, max_size=3).map(tuple),
        st.sampled_from([None, "first", "last", "first"]),
        earlier,
    ),
    st.builds(
        BulkUpdate,
        threads,
        st.lists(st.lists(updates, max_size=2).map(tuple), min_size=1, max_size=3).map(tuple),
    ),
    st.just(Reopen()),
    st.builds(Meddle, threads),
    st.builds(Meddle, threads),
    st.builds(Forget, st.just("t2")),
)
# A thread to begin with, so that the first drawn step already finds something to remove, to change
# in place and to tweak.
OPENING = Invoke(
    thread="t1",
    messages=(Said(extra=2), Said("ai", "call", "m2", 1), Said("tool", "result")),
    script=Script(last=(Say((Said("ai", "answer", None, 2),)),)),
    durability="sync",
    writes=(
        Write("files", {f"key{n}": 1 for n in range(10)}),
        Write("log", [1, [True], {"a": 1.0}]),
        Write("value", (Order("O-2", [1]), [1])),
    ),
)
programs = st.builds(
    lambda drawn, keeps: Program((OPENING, *drawn), keeps),
    st.lists(steps, min_size=5, max_size=8),
    st.booleans(),
)

REFUSED = Program(
    (
        OPENING,
        Invoke("t1", (), Script(first=(Rearrange(1, 0), Remove(0)), through_child=True), "sync"),
        Resume("t1", None, "all by id", "sync"),
        Meddle("t1"),
        Update("t1", (Say((Said(),)),), "first"),
    )
)
"""A subgraph is given a message list that its reducer refuses, when the graph runs and whenever its
state is read."""
