"""Graphs with `DeltaChannel`s, and random steps with them, on one saver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

from comparison import Names
from hypothesis import strategies as st
from langchain_core.messages import RemoveMessage
from langchain_core.runnables import RunnableConfig
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import _messages_delta_reducer
from langgraph.types import Command, Overwrite, Send, interrupt
from programs import Durability
from samples import Said, json_values, said
from savers import Calls, Mode, ReferenceShelf, Shelf

CHANNELS = ("messages", "notes", "table")


def joined(state: list[Any], writes: Sequence[list[Any]]) -> list[Any]:
    """Reducer of a list: order matters, so that writes replayed in another order are seen."""
    return [*state, *(item for write in writes for item in write)]


def merged(state: dict[str, Any], writes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Reducer of a dict: the later write wins."""
    return {key: value for source in (state, *writes) for key, value in source.items()}


class DeltaState(TypedDict, total=False):
    messages: Annotated[list[Any], DeltaChannel(_messages_delta_reducer, snapshot_frequency=3)]
    notes: Annotated[list[Any], DeltaChannel(joined, snapshot_frequency=1000)]
    table: Annotated[dict[str, Any], DeltaChannel(merged, snapshot_frequency=2)]
    plain: Any


@dataclass(frozen=True)
class Turn:
    """One call: input, what the nodes write, and where it starts."""

    messages: tuple[Said, ...]
    notes: tuple[Any, ...]
    sends: int
    remove: bool
    overwrite: bool
    ask: bool
    durability: Durability
    at: int | None


@dataclass(frozen=True)
class Answer:
    value: Any


@dataclass(frozen=True)
class Edit:
    messages: tuple[Said, ...]
    at: int | None


@dataclass(frozen=True)
class Reopen:
    pass


Step = Turn | Answer | Edit | Reopen
earlier = st.one_of(st.none(), st.none(), st.integers(0, 9))
several = st.lists(said, min_size=1, max_size=2).map(tuple)
turns = st.builds(
    Turn,
    several,
    st.lists(json_values, max_size=2).map(tuple),
    st.integers(0, 3),
    st.booleans(),
    st.sampled_from([False, False, True]),
    st.sampled_from([False, False, True]),
    st.sampled_from(["sync", "async", "exit"]),
    earlier,
)
steps = st.one_of(
    turns,
    turns,
    turns,
    st.builds(Answer, json_values),
    st.builds(Edit, several, earlier),
    st.just(Reopen()),
)


class DeltaSession:
    """Carries out the steps on one saver and says what can be read."""

    def __init__(self, shelf: Shelf | ReferenceShelf, mode: Mode) -> None:
        self.shelf = shelf
        self.calls = Calls(mode)
        self.names = Names()
        self.turn = Turn((), (), 0, False, False, False, "sync", None)
        self.builder = self._builder()
        self.graph = self.builder.compile(checkpointer=shelf.saver)

    def _builder(self) -> Any:
        builder = StateGraph(DeltaState)
        for name in ("first", "worker", "last"):
            builder.add_node(name, self._node(name))
        builder.add_edge(START, "first")
        builder.add_conditional_edges("first", self._route, ["worker", "last"])
        builder.add_edge("worker", "last")
        builder.add_edge("last", END)
        return builder

    def _node(self, name: str) -> Any:
        def node(state: dict[str, Any]) -> Any:
            return getattr(self, f"_{name}")(state)

        async def anode(state: dict[str, Any]) -> Any:
            return getattr(self, f"_{name}")(state)

        return anode if self.calls.mode == "async" else node

    def _route(self, state: dict[str, Any]) -> Any:
        return [Send("worker", {"n": n}) for n in range(self.turn.sends)] or "last"

    def _first(self, state: dict[str, Any]) -> dict[str, Any]:
        notes: Any = [*self.turn.notes, len(state.get("messages", []))]
        update = {"notes": Overwrite(notes) if self.turn.overwrite else notes, "plain": len(notes)}
        if self.turn.remove and state.get("messages"):
            update["messages"] = [RemoveMessage(id=str(state["messages"][0].id))]
        return update

    def _worker(self, state: dict[str, Any]) -> dict[str, Any]:
        n = state["n"]
        return {
            "notes": [f"worker {n}"],
            "table": {"who": n, f"worker {n}": [n]},
            "messages": [("ai", f"from {n}")],
        }

    def _last(self, state: dict[str, Any]) -> dict[str, Any]:
        answer = [interrupt("more?")] if self.turn.ask else []
        return {"notes": answer, "table": {"seen": list(state.get("notes", []))[-2:]}}

    async def _config_at(self, at: int | None) -> RunnableConfig:
        config: RunnableConfig = {"configurable": {"thread_id": "t"}}
        history = (
            await self.calls.collect(self.graph, "get_state_history", config)
            if at is not None
            else []
        )
        return history[at % len(history)].config if at is not None and history else config

    async def _step(self, step: Step) -> Any:
        match step:
            case Turn():
                self.turn = step
                given = {"messages": [one.build() for one in step.messages]}
                return await self.calls.call(
                    self.graph,
                    "invoke",
                    given,
                    await self._config_at(step.at),
                    durability=step.durability,
                )
            case Answer(value):
                config = await self._config_at(None)
                if not (await self.calls.call(self.graph, "get_state", config)).interrupts:
                    return "nothing waits"
                return await self.calls.call(
                    self.graph, "invoke", Command(resume=value), config, durability="sync"
                )
            case Edit(messages, at):
                update = {"messages": [one.build() for one in messages], "notes": ["edited"]}
                await self.calls.call(
                    self.graph, "update_state", await self._config_at(at), update, as_node="first"
                )
            case Reopen():
                self.graph = self.builder.compile(checkpointer=await self.shelf.reopen())
        return None

    async def carry_out(self, step: Step, *, observed: bool) -> list[tuple[str, Any]]:
        """Carry out one step and give its result and, if `observed`, everything that can be read
        afterwards, by name.
        """
        try:
            result = self.names.form(await self._step(step))
        except Exception as error:
            result = ("raised", type(error).__qualname__, self.names.text(str(error)))
        return [("result", result), *(await self._observe() if observed else [])]

    async def _observe(self) -> list[tuple[str, Any]]:
        config = await self._config_at(None)
        head = await self.calls.call(self.graph, "get_state", config)
        history = await self.calls.collect(self.graph, "get_state_history", config)
        listed = await self.calls.collect(self.shelf.saver, "list", config)
        rebuilt = [
            await self.calls.call(
                self.shelf.saver,
                "get_delta_channel_history",
                config=snapshot.config,
                channels=list(CHANNELS),
            )
            for snapshot in history[:3] + history[-1:]
        ]
        return [
            ("get_state", self.names.snapshot(head)),
            ("get_state_history", tuple(self.names.snapshot(snapshot) for snapshot in history)),
            ("list", tuple(self.names.checkpoint(without_snapshots(found)) for found in listed)),
            (
                "get_delta_channel_history",
                tuple(self.names.unordered(one, late=True) for one in rebuilt),
            ),
        ]


def without_snapshots(found: CheckpointTuple) -> CheckpointTuple:
    """Leave out what a checkpoint says of the delta channels.

    InMemorySaver shows a snapshot in the checkpoints after it too, as long as the channel keeps its
    version; a saver that gives a checkpoint back as it was put does not. What is rebuilt from
    either is compared as state and as delta history.
    """
    values = {
        key: value
        for key, value in found.checkpoint["channel_values"].items()
        if key not in CHANNELS
    }
    return found._replace(checkpoint={**found.checkpoint, "channel_values": values})
