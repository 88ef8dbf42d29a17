"""Random programs of bare saver calls, for which the reference's answers are exact.

A `Branch` plays the part of LangGraph's loop: it holds the live values of a thread, changes them
(in place, too), gives ids late, and puts checkpoints with the versions that changed. Two branches
never share an object.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from comparison import Names
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base.id import uuid6
from langgraph.types import Interrupt, Overwrite, Send
from mutations import edit, spoil, tweaked, twist
from samples import Said, lists, ones, said, tables, values
from savers import Calls, Mode, ReferenceShelf, Shelf

CHANNELS = ("messages", "files", "value", "log")
PATHS = ("", "~a", "~b", "~b, 1")
EDITS = ("flag", "deep", "content", "metadata")
NAMESPACES = ("", "child:1", "child:1|deep:2")

DAY = 24 * 60 * 60 * 10**7 >> 12
"""A day, in what the first half of a version 6 UUID counts."""


@dataclass(frozen=True)
class Change:
    """How a channel's live value changes before a put; `told` gives it a new version."""

    channel: str
    how: str
    said: Said
    value: Any
    which: int
    told: bool


@dataclass(frozen=True)
class Put:
    """Put a checkpoint on top of an earlier one (counted back from the newest; None: a root)."""

    thread: str
    namespace: str
    parent: int | None
    changes: tuple[Change, ...]
    metadata: dict[str, Any]
    lean: bool
    late_ids: bool


@dataclass(frozen=True)
class PutWrites:
    """Put a task's writes on a checkpoint, counted back from the newest.

    -1 is the next one, whose put is still under way.
    """

    thread: str
    namespace: str
    at: int
    task: int
    writes: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class PutAgain:
    """Put a checkpoint's id a second time, with other metadata: an update."""

    thread: str
    namespace: str
    at: int


@dataclass(frozen=True)
class Delete:
    thread: str


@dataclass(frozen=True)
class Reopen:
    pass


@dataclass(frozen=True)
class Meddle:
    pass


# Texts that a message's content has, too: what is found by content must not be taken for something
# else.
written_values = st.one_of(
    st.lists(
        st.builds(Said, st.sampled_from(["human", "ai"]), st.sampled_from(["a", "b"])), max_size=2
    ),
    said,
    values,
    st.builds(lambda message: Send("worker", {"messages": [message], "n": 1}), said),
    st.builds(lambda value: (Interrupt(value, "0" * 32),), values),
    st.builds(lambda message: Overwrite([message]), said),
)
writes = st.lists(
    st.tuples(
        st.sampled_from(
            [
                *CHANNELS,
                "__pregel_tasks",
                "__interrupt__",
                "__resume__",
                "__error__",
                "__scheduled__",
            ]
        ),
        written_values,
    ),
    min_size=1,
    max_size=3,
).map(tuple)
told = st.sampled_from([True, True, True, False])
message_ways = (
    ["append"] * 4 + ["in place"] * 5 + ["drop", "replace", "turn", "set", "clear", "absent"]
)
value_ways = (
    ["in place"] * 3 + ["tweak"] * 3 + ["set"] * 3 + ["extend"] * 2 + ["append", "clear", "absent"]
)
new_values = st.one_of(values, lists, tables, ones)
changes = st.one_of(
    st.builds(
        Change,
        st.just("messages"),
        st.sampled_from(message_ways),
        said,
        new_values,
        st.integers(0, 5),
        told,
    ),
    st.builds(
        Change,
        st.sampled_from(["files", "log", "value"]),
        st.sampled_from(value_ways),
        said,
        new_values,
        st.integers(0, 9),
        told,
    ),
)
extra_metadata = st.sampled_from(
    [
        {},
        {"note": "nul \x00"},
        {"flag": True, "n": 1, "f": 1.0},
        {"deep": {"a": [None, 1.5, (1, 2)]}},
    ]
)
parents = st.sampled_from([0] * 8 + [1, 2, 5, None])


@st.composite
def turns(draw: st.DrawFn) -> list[Any]:
    """The calls of one step of a graph: a checkpoint, its tasks' writes, sometimes another call."""
    thread = draw(st.sampled_from(["t1"] * 7 + ["t2"]))
    namespace = draw(st.sampled_from([""] * 6 + [*NAMESPACES]))
    several = st.lists(changes, min_size=1, max_size=3).map(tuple)
    put = draw(
        st.builds(
            Put,
            st.just(thread),
            st.just(namespace),
            parents,
            several,
            extra_metadata,
            st.booleans(),
            st.booleans(),
        )
    )
    tasks = st.integers(0, 3)
    early = draw(
        st.lists(
            st.builds(PutWrites, st.just(thread), st.just(namespace), st.just(-1), tasks, writes),
            max_size=1,
        )
    )
    at = st.sampled_from([0, 0, 0, 0, 1, 3])
    later = draw(
        st.lists(
            st.builds(PutWrites, st.just(thread), st.just(namespace), at, tasks, writes), max_size=4
        )
    )
    return [*early, put, *later, *draw(st.lists(others, max_size=1))]


others = st.sampled_from(
    [
        Reopen(),
        Reopen(),
        Meddle(),
        Meddle(),
        Delete("t1"),
        Delete("t2"),
        PutAgain("t1", "", 0),
        PutAgain("t1", "", 2),
    ]
)
# A thread to begin with, so that the first drawn call already finds something to change.
OPENING = Put(
    "t1",
    "",
    None,
    (
        Change("messages", "append", Said(extra=2), None, 1, True),
        Change("messages", "append", Said("ai", "call", "m2", 1), None, 1, True),
        Change("files", "set", Said(), {f"key{n}": 1 for n in range(10)}, 0, True),
        Change("log", "set", Said(), [1, [True], {"a": 1.0}], 0, True),
        Change("value", "set", Said(), (1, [1]), 0, True),
    ),
    {},
    False,
    True,
)
call_lists = st.lists(turns(), min_size=4, max_size=8).map(
    lambda drawn: [OPENING, *(call for calls in drawn for call in calls)]
)


Call = Put | PutWrites | PutAgain | Delete | Reopen | Meddle
Place = tuple[str, str]


@dataclass
class Live:
    """What a running graph holds of a thread and namespace: objects last put, and written since."""

    values: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    fresh: list[BaseMessage] = field(default_factory=list)
    put: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)


class Branch:
    """Runs calls on one saver; what it passes depends only on the calls and `ids`."""

    def __init__(self, shelf: Shelf | ReferenceShelf, mode: Mode, ids: list[str]) -> None:
        self.shelf = shelf
        self.calls = Calls(mode)
        self.ids = ids
        self.used = 0
        self.named = 0
        self.live: dict[Place, Live] = {}
        self.handed_out: list[Any] = []
        self.deleted: set[str] = set()

    async def carry_out(self, call: Call, *, last: bool) -> list[tuple[str, Any]]:
        """Run one call and give what is readable afterwards, by name, there or everywhere."""
        match call:
            case Put():
                await self._put(call)
            case PutWrites():
                await self._put_writes(call)
            case PutAgain(thread, namespace, at):
                if (put := self._put_at(thread, namespace, at)) is not None:
                    config, checkpoint, metadata, versions = put[1]
                    await self.calls.call(
                        self.shelf.saver,
                        "put",
                        config,
                        checkpoint,
                        {**metadata, "again": True},
                        versions,
                    )
            case Delete(thread):
                await self.calls.call(self.shelf.saver, "delete_thread", thread)
                self.live = {place: live for place, live in self.live.items() if place[0] != thread}
                self.deleted.add(thread)
            case Reopen():
                await self.shelf.reopen()
                for live in self.live.values():
                    live.values.clear()
            case Meddle():
                await self._meddle()
        here = (
            {(call.thread, call.namespace)}
            if isinstance(call, Put | PutWrites | PutAgain) and not last
            else set(self.live)
        )
        return await self.observe(here & set(self.live))

    def _live(self, thread: str, namespace: str) -> Live:
        return self.live.setdefault((thread, namespace), Live())

    def _put_at(self, thread: str, namespace: str, at: int) -> tuple[str, tuple[Any, ...]] | None:
        put = self._live(thread, namespace).put
        return put[-1 - at % len(put)] if put else None

    def _config(
        self, thread: str, namespace: str, checkpoint_id: str | None = None
    ) -> RunnableConfig:
        place = {"thread_id": thread, "checkpoint_ns": namespace}
        return {
            "configurable": {**place, "checkpoint_id": checkpoint_id} if checkpoint_id else place,
            "metadata": {"lang": "en"},
        }

    async def _load(self, call: Put, live: Live) -> str | None:
        """Give the parent's id; continue with the parent's live objects, or with what is read."""
        parent = (
            None if call.parent is None else self._put_at(call.thread, call.namespace, call.parent)
        )
        if parent is None:
            live.values, live.versions = {}, {}
            return None
        if parent is not live.put[-1] or not live.values:
            found = await self.calls.call(
                self.shelf.saver, "get_tuple", self._config(call.thread, call.namespace, parent[0])
            )
            live.values = dict(found.checkpoint["channel_values"])
            live.versions = dict(found.checkpoint["channel_versions"])
        return parent[0]

    async def _put(self, call: Put) -> None:
        live = self._live(call.thread, call.namespace)
        parent = await self._load(call, live)
        number, self.used = self.used, self.used + 1
        told = {change.channel for change in call.changes if self._change(live, change)}
        if live.fresh:
            if call.late_ids:
                self._name(live.fresh)
            messages = live.values.get("messages")
            live.values["messages"] = [
                *(messages if isinstance(messages, list) else []),
                *live.fresh,
            ]
            told.add("messages")
        versions = {
            channel: f"{number + 1:032}.0.{index}{number}"
            for index, channel in enumerate(sorted(told))
        }
        live.versions = {**live.versions, **versions}
        checkpoint: dict[str, Any] = {
            "v": 4,
            "id": self.ids[number],
            "ts": (
                (
                    datetime(2024, 5, 6, tzinfo=UTC)
                    + timedelta(seconds=number, microseconds=number % 3)
                ).isoformat()
            ),
            "channel_values": {
                channel: value for channel, value in live.values.items() if channel in live.versions
            },
            "channel_versions": dict(live.versions),
            "versions_seen": {
                "__input__": {},
                "node": {channel: live.versions[channel] for channel in list(live.versions)[:2]},
            },
        }
        if not call.lean:
            checkpoint |= {"updated_channels": sorted(told) or None, "pending_sends": []}
        metadata = {"source": "loop", "step": number, "parents": {}, **deepcopy(call.metadata)}
        config = self._config(call.thread, call.namespace, parent)
        kept = deepcopy((config, checkpoint, metadata, versions))
        await self.calls.call(self.shelf.saver, "put", config, checkpoint, metadata, versions)
        live.put.append((self.ids[number], kept))
        self._name(live.fresh)
        live.fresh = []

    def _name(self, messages: list[BaseMessage]) -> None:
        for message in messages:
            if message.id is None:
                self.named += 1
                message.id = f"{self.named:08x}-1111-4111-8111-111111111111"

    def _change(self, live: Live, change: Change) -> bool:
        """Change a channel's live value; say whether the saver is told."""
        value = live.values.get(change.channel)
        listed = value if isinstance(value, list) else []
        which = change.which % len(listed) if listed else 0
        ways: dict[str, Callable[[], Any]] = {
            "append": lambda: [*listed, self._said(change)],
            "extend": lambda: [*listed, deepcopy(change.value)],
            "drop": lambda: [*listed[:which], *listed[which + 1 :]],
            "replace": lambda: [*listed[:which], self._said(change), *listed[which + 1 :]],
            "turn": lambda: [*listed[which:], *listed[:which]],
            "in place": lambda: changed_in_place(value, which, EDITS[change.said.extra]),
            "tweak": lambda: tweaked(value, f"key{change.which}", change.value, move=change.told),
            "set": lambda: deepcopy(change.value),
            "clear": lambda: [],
        }
        if change.how == "absent":
            live.values.pop(change.channel, None)
            return True
        # A channel cannot come to hold something unnoticed; only what it holds already changes
        # behind its back.
        appears = change.channel not in live.values or change.channel not in live.versions
        live.values[change.channel] = ways[change.how]()
        return change.told or appears

    def _said(self, change: Change) -> BaseMessage:
        """Give a change's message; most have an id on entering a channel, as reducers give one."""
        message = change.said.message()
        if change.which:
            self._name([message])
        return message

    async def _put_writes(self, call: PutWrites) -> None:
        live = self._live(call.thread, call.namespace)
        at = (
            (self.ids[self.used],)
            if call.at < 0
            else self._put_at(call.thread, call.namespace, call.at)
        )
        if at is None or (call.at < 0 and call.thread in self.deleted):
            # of a thread that was deleted, writes wait for their checkpoint, which is put next here
            return
        if not any(live.put for (thread, _), live in self.live.items() if thread == call.thread):
            # A run asks for its thread before it writes to it.
            await self.calls.call(self.shelf.saver, "get_tuple", self._config(call.thread, ""))
        written = [(channel, built(value)) for channel, value in call.writes]
        task = f"{call.task:08x}-2222-5222-8222-222222222222"
        config = self._config(call.thread, call.namespace, at[0])
        await self.calls.call(
            self.shelf.saver, "put_writes", config, written, task, PATHS[call.task]
        )
        for channel, value in written:
            if channel == "messages" and isinstance(value, list):
                live.fresh += [message for message in value if isinstance(message, BaseMessage)]
            else:
                self.handed_out.append(value)

    async def _meddle(self) -> None:
        for value in (*self.handed_out, *await self.calls.collect(self.shelf.saver, "list", None)):
            spoil(value)
        self.handed_out.clear()

    async def observe(self, places: set[Place]) -> list[tuple[str, Any]]:
        """Give all that the saver tells about some threads and namespaces, exactly."""
        names, saver = Names(keep=True), self.shelf.saver
        seen: list[tuple[str, Any]] = []
        for thread, namespace in sorted(places):
            live = self.live[thread, namespace]
            config: RunnableConfig = {
                "configurable": {"thread_id": thread, "checkpoint_ns": namespace}
            }
            head = await self.calls.call(saver, "get_tuple", config)
            listed = await self.calls.collect(saver, "list", config)
            flagged = await self.calls.collect(
                saver, "list", config, filter={"flag": True}, limit=2
            )
            seen.append((f"{thread} {namespace} get_tuple", names.checkpoint(head)))
            seen.append(
                (f"{thread} {namespace} list", tuple(names.checkpoint(found) for found in listed))
            )
            seen.append(
                (
                    f"{thread} {namespace} list(filter, limit)",
                    tuple(names.checkpoint(found) for found in flagged),
                )
            )
            for checkpoint_id, _ in live.put[-2:]:
                at = {"configurable": {**config["configurable"], "checkpoint_id": checkpoint_id}}
                one = await self.calls.call(saver, "get_tuple", at)
                delta = await self.calls.call(
                    saver, "get_delta_channel_history", config=at, channels=list(CHANNELS)
                )
                seen.append(
                    (f"{thread} {namespace} get_tuple({checkpoint_id})", names.checkpoint(one))
                )
                seen.append(
                    (
                        f"{thread} {namespace} get_delta_channel_history",
                        names.unordered({k: dict(v) for k, v in delta.items()}),
                    )
                )
        everything = await self.calls.collect(saver, "list", None)
        seen.append(
            ("list(None)", tuple(sorted(repr(names.config(found.config)) for found in everything)))
        )
        return seen


def built(value: Any) -> Any:
    """Build what a write holds: its messages anew, the rest copied."""
    if isinstance(value, Said):
        return value.message()
    if isinstance(value, list) and any(isinstance(item, Said) for item in value):
        return [built(item) for item in value]
    if isinstance(value, Send):
        return Send(
            value.node, {**value.arg, "messages": [built(item) for item in value.arg["messages"]]}
        )
    if isinstance(value, Overwrite):
        return Overwrite([built(item) for item in value.value])
    return deepcopy(value)


def changed_in_place(value: Any, which: int, how: str) -> Any:
    """Change the object that stands there, and give the same object."""
    if isinstance(value, list) and value and isinstance(value[which], BaseMessage):
        edit(value[which], how)
    else:
        twist(value)
    return value


def new_ids(count: int) -> list[str]:
    """Give ascending checkpoint ids of tomorrow: newer than whatever a program makes first."""
    first = uuid6().int + (DAY << 80)
    return [str(UUID(int=first + (number << 80))) for number in range(count)]
