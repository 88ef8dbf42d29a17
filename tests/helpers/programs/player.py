"""Plays acts on a saver, by itself and by a graph."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, TypedDict
from uuid import UUID

from acts import PATHS, Act, Change, GoOn, Put, PutAgain, PutWrites, Run, Update, Writes
from langchain_core.messages import BaseMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig
from langgraph.channels import EphemeralValue, Topic, UntrackedValue
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base.id import uuid6
from langgraph.errors import EmptyInputError, InvalidUpdateError
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.graph.message import REMOVE_ALL_MESSAGES, _messages_delta_reducer
from langgraph.types import Command, Overwrite, Send, StateUpdate, interrupt
from mutations import edit, twist
from samples import Said
from savers import Calls, Mode

DAY = 24 * 60 * 60 * 10**7 >> 12
"""A day, in what the first half of a version 6 UUID counts."""


# -- the graph's state -----------------------------------------------------------------------------


def joined(state: list[Any], writes: Sequence[list[Any]]) -> list[Any]:
    """Reducer of a list of deltas: order matters, so that writes in another order are seen."""
    return [*state, *(item for write in writes for item in write)]


class State(TypedDict, total=False):
    messages: Annotated[list[Any], add_messages]
    log: Annotated[list[Any], operator.add]
    table: Annotated[dict[str, Any], operator.or_]
    topic: Annotated[list[str], Topic(str, accumulate=True)]
    flash: Annotated[Any, EphemeralValue(Any, guard=False)]
    scratch: Annotated[Any, UntrackedValue(Any, guard=False)]
    notes: Annotated[list[Any], DeltaChannel(joined, snapshot_frequency=1000)]
    snapped: Annotated[list[Any], DeltaChannel(joined, snapshot_frequency=2)]
    said: Annotated[list[Any], DeltaChannel(_messages_delta_reducer, snapshot_frequency=3)]
    value: Any


class ChildState(TypedDict, total=False):
    messages: Annotated[list[Any], add_messages]
    notes: Annotated[list[Any], DeltaChannel(joined, snapshot_frequency=3)]


class NodeFailure(Exception):
    """What a node raises."""


REFUSALS = (
    NodeFailure,
    NotImplementedError,
    ValueError,
    TypeError,
    InvalidUpdateError,
    EmptyInputError,
)


# -- playing ---------------------------------------------------------------------------------------


@dataclass
class Branch:
    """What a caller holds of a thread and namespace: what it has put, and its living values."""

    put: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, Any] = field(default_factory=dict)

    def at(self, back: int | None) -> tuple[str, tuple[Any, ...]] | None:
        return self.put[-1 - back % len(self.put)] if self.put and back is not None else None


class Player:
    """Plays acts on one saver; what it passes depends only on the acts."""

    def __init__(self, saver: Any, mode: Mode = "sync") -> None:
        self.calls = Calls(mode)
        self.branches: dict[tuple[str, str], Branch] = {}
        self.ids = uuid6().int + (DAY << 80)  # of tomorrow: newer than what a graph makes
        self.number = self.turns = 0
        self.deleted: set[str] = set()
        self.script, self.failed = Run("g"), set[str]()
        self.saver, self.graph = saver, self._graph().compile(checkpointer=saver)

    async def play(self, act: Act) -> None:
        """Play one act. What LangGraph refuses, it refuses whatever the saver is."""
        match act:
            case Put():
                await self._put(act)
            case PutAgain():
                await self._put_again(act)
            case PutWrites():
                await self._put_writes(act)
            case _:
                with suppress(*REFUSALS):
                    await self._run(act)

    def forget(self, thread: str, ids: set[str] | None = None) -> None:
        """Remember no more of a thread, or of some of its checkpoints, that have been deleted."""
        for (name, _), branch in self.branches.items():
            if name == thread:
                branch.put = [put for put in branch.put if ids is not None and put[0] not in ids]
                branch.values = {}
        if ids is None:
            self.deleted.add(thread)

    # -- bare calls --------------------------------------------------------------------------------

    def _id(self, ahead: int = 0) -> str:
        return str(UUID(int=self.ids + (self.number + ahead << 80)))

    def _branch(self, act: Any) -> Branch:
        return self.branches.setdefault((act.thread, act.namespace), Branch())

    async def _put(self, act: Put) -> None:
        branch = self._branch(act)
        parent = branch.at(act.parent)
        config = place(act.thread, act.namespace, parent[0] if parent else None)
        if parent is None:
            branch.values, branch.versions = {}, {}
        elif parent is not branch.put[-1] or not branch.values:
            found = (await self.calls.call(self.saver, "get_tuple", config)).checkpoint
            branch.values = dict(found["channel_values"])
            branch.versions = dict(found["channel_versions"])
        told = {change.channel: 0 for change in act.changes if changed(branch, change)}
        versions = {
            channel: f"{self.number + 1:032}.0.{index}{self.number}"
            for index, channel in enumerate(sorted(told))
        }
        branch.versions = {**branch.versions, **versions}
        seen = {channel: branch.versions[channel] for channel in list(branch.versions)[:2]}
        checkpoint = {
            "v": 4,
            "id": self._id(),
            "ts": (datetime(2024, 5, 6, tzinfo=UTC) + timedelta(seconds=self.number)).isoformat(),
            "channel_values": {
                name: value for name, value in branch.values.items() if name in branch.versions
            },
            "channel_versions": dict(branch.versions),
            "versions_seen": {"__input__": {}, "node": seen},
            "updated_channels": sorted(told) or None,
        }
        metadata = {"source": "loop", "step": self.number, "parents": {}, **deepcopy(act.metadata)}
        kept = deepcopy((config, checkpoint, metadata, versions))
        await self.calls.call(self.saver, "put", config, checkpoint, metadata, versions)
        branch.put.append((self._id(), kept))
        self.number += 1

    async def _put_again(self, act: PutAgain) -> None:
        if (put := self._branch(act).at(act.at)) is not None:
            config, checkpoint, metadata, versions = deepcopy(put[1])
            metadata |= {"again": True}
            await self.calls.call(self.saver, "put", config, checkpoint, metadata, versions)

    async def _put_writes(self, act: PutWrites) -> None:
        put = self._branch(act).at(act.at)
        if put is None and act.at >= 0 or act.at < 0 and act.thread in self.deleted:
            return  # of a thread that was deleted, writes wait for their checkpoint
        if not any(one.put for (name, _), one in self.branches.items() if name == act.thread):
            await self.calls.call(self.saver, "get_tuple", place(act.thread, ""))  # as a run does
        config = place(act.thread, act.namespace, self._id() if act.at < 0 or not put else put[0])
        task = f"{act.task:08x}-2222-5222-8222-222222222222"
        given = [(channel, built(value)) for channel, value in act.writes]
        await self.calls.call(self.saver, "put_writes", config, given, task, PATHS[act.task])

    # -- the graph ---------------------------------------------------------------------------------

    def _graph(self) -> Any:
        child = StateGraph(ChildState).add_node("child", self._node("child"))
        builder = StateGraph(State)
        for name in ("first", "worker", "last"):
            builder.add_node(name, self._node(name))
        builder.add_node("child", child.add_edge(START, "child").compile(checkpointer=True))
        builder.add_edge(START, "first").add_conditional_edges("first", self._after_first)
        return builder.add_edge("worker", "last").add_edge("child", "last").add_edge("last", END)

    def _node(self, name: str) -> Any:
        def node(state: dict[str, Any]) -> Any:
            return self._act(name, state)

        async def anode(state: dict[str, Any]) -> Any:
            return self._act(name, state)

        return node if self.calls.mode == "sync" else anode

    def _after_first(self, state: dict[str, Any]) -> Any:
        script = self.script
        sends = [
            Send("worker", {"n": n, "messages": [Said().message()]}) for n in range(script.sends)
        ]
        return [*sends, *(["child"] if script.child else [] if sends else ["last"])]

    def _act(self, name: str, state: dict[str, Any]) -> dict[str, Any]:
        script, answer = self.script, []
        if name in script.asks:
            answer = [interrupt({"from": name, "about": state.get("messages", [])[-1:]})]
        if name == script.fails and name not in self.failed:
            self.failed.add(name)
            raise NodeFailure(name)
        if name == "worker":
            return {
                "messages": [("ai", f"from {state['n']}")],
                "log": answer,
                "notes": [state["n"]],
            }
        if name == "child":
            return {"messages": [("ai", "below")], "notes": answer}
        if name == "last" and script.twist:
            changed_in_place(state.get(script.twist))
        given = script.first if name == "first" else script.last
        update = update_of(given, state, sync=script.durability == "sync")
        return update | ({"log": [*update.get("log", []), *answer]} if answer else {})

    async def _run(self, act: Run | GoOn | Update) -> None:
        config: RunnableConfig = {"configurable": {"thread_id": act.thread}}
        if act.at is not None:
            history = await self.calls.collect(self.graph, "get_state_history", config)
            config = history[act.at % len(history)].config if history else config
        config["max_concurrency"] = 1  # so that what changes in place does so after it is stored
        self.turns += 1
        config["metadata"] = {"run_id": f"run-{self.turns % 3}"}
        match act:
            case Run():
                self.script, self.failed = act, set()
                given = {"messages": [one.build() for one in act.given], "log": [1]}
                how = {"durability": "sync" if act.twist else act.durability}
                await self.calls.call(self.graph, "invoke", given, config, **how)
            case GoOn():
                if (command := await self._answer(act, config)) is not ...:
                    await self.calls.call(self.graph, "invoke", command, config, durability="sync")
            case Update():
                state = (await self.calls.call(self.graph, "get_state", config)).values
                steps = [
                    [StateUpdate(update_of(one, state, sync=True), act.as_node)]
                    for one in act.supersteps
                ]
                await self.calls.call(self.graph, "bulk_update_state", config, steps)

    async def _answer(self, act: GoOn, config: RunnableConfig) -> Any:
        if act.how == "none":
            return None
        waiting = (await self.calls.call(self.graph, "get_state", config)).interrupts
        if act.how == "bare" or not waiting:
            return Command(resume=deepcopy(act.answer)) if waiting else ...
        some = waiting[: 1 if act.how == "first" else None]
        return Command(resume={one.id: deepcopy(act.answer) for one in some})


def place(thread: str, namespace: str, checkpoint: str | None = None) -> RunnableConfig:
    """The config that names a checkpoint, or the newest of a namespace."""
    named = {"checkpoint_id": checkpoint} if checkpoint else {}
    return {"configurable": {"thread_id": thread, "checkpoint_ns": namespace, **named}}


def built(value: Any) -> Any:
    """A value of its own: messages anew, the rest copied."""
    if isinstance(value, Said):
        return value.message()
    if isinstance(value, list):
        return [built(item) for item in value]
    if isinstance(value, Send):
        return Send(value.node, {name: built(item) for name, item in value.arg.items()})
    if isinstance(value, Overwrite):
        return Overwrite(built(value.value))
    return deepcopy(value)


def changed(branch: Branch, change: Change) -> bool:
    """Change a channel's value; say whether the saver is told."""
    name, known = change.channel, branch.values.get(change.channel)
    listed = known if isinstance(known, list) else []
    # A channel cannot come to hold something unnoticed; only what it holds changes so.
    appears = name not in branch.values or name not in branch.versions
    match change.how:
        case "absent":
            branch.values.pop(name, None)
            return True
        case "append":
            branch.values[name] = [*listed, built(change.value)]
        case "drop":
            branch.values[name] = listed[1:]
        case "turn":
            branch.values[name] = listed[::-1]
        case "set":
            branch.values[name] = built(change.value)
        case "in place":
            changed_in_place(known)
            branch.values[name] = known
    return change.told or appears


def changed_in_place(value: Any) -> None:
    """Change the object that stands there, as careless nodes do."""
    if isinstance(value, list) and value and isinstance(value[-1], BaseMessage):
        edit(value[len(value) // 2], ("flag", "deep", "content", "metadata")[len(value) % 4])
    else:
        twist(value)


def update_of(writes: Writes, state: dict[str, Any], *, sync: bool) -> dict[str, Any]:
    """What a node returns. A number among messages replaces or removes one, or all."""
    update: dict[str, Any] = {}
    messages: list[BaseMessage] = state.get("messages", [])
    for channel, value in writes:
        match channel, value:
            case "messages", int():
                update.setdefault("messages", []).extend(edits(messages, value))
            case (("messages" | "said"), _):
                update.setdefault(channel, []).append(value.build())
            case "topic", _ if not sync:
                pass  # LangGraph extends its list in place, beside a saver that is at work
            case _:
                update[channel] = built(value)
    return update


def edits(messages: list[BaseMessage], how: int) -> list[Any]:
    """Messages that remove, replace or rearrange others."""
    if not messages:
        return []
    chosen = messages[how % len(messages)]
    match how % 4:
        case 0:
            return [RemoveMessage(id=str(chosen.id))]
        case 1:
            return [Said("ai", "replaced", chosen.id).message()]
        case 2:
            return [RemoveMessage(id=REMOVE_ALL_MESSAGES), *messages[::-1]]
    return [chosen]
