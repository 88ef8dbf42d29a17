"""Runs random programs: one scripted graph, and everything that can be read afterwards."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

from comparison import Form, Names
from langchain_core.messages import BaseMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig
from langgraph.channels import EphemeralValue, Topic, UntrackedValue
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, Send, StateUpdate, interrupt
from mutations import edit, spoil, tweaked, twist
from programs import (
    Ask,
    BulkUpdate,
    Continue,
    Edit,
    Fail,
    Forget,
    Invoke,
    Meddle,
    Program,
    Quote,
    Rearrange,
    Remove,
    Reopen,
    Replace,
    Resume,
    Say,
    Script,
    Step,
    Tweak,
    Twist,
    Update,
    Write,
)
from savers import Calls, Mode, ReferenceShelf, Shelf


class NodeFailure(Exception):
    """What a scripted node raises."""


def merged(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    """Reducer of a table: later keys win, the empty string deletes."""
    return {
        key: value
        for key, value in {**left, **right}.items()
        if not (isinstance(value, str) and value == "")
    }


def longest(left: str, right: str) -> str:
    """Reducer of a single value that often stays as it is."""
    return max(left, right, key=len)


class State(TypedDict, total=False):
    messages: Annotated[list[Any], add_messages]
    log: Annotated[list[Any], operator.add]
    table: Annotated[dict[str, Any], merged]
    total: Annotated[int, operator.add]
    best: Annotated[str, longest]
    value: Any
    files: Any
    flash: Annotated[Any, EphemeralValue(Any, guard=False)]
    topic: Annotated[list[str], Topic(str, accumulate=True)]
    events: Annotated[list[str], Topic(str)]
    scratch: Annotated[Any, UntrackedValue(Any, guard=False)]


class ChildState(TypedDict, total=False):
    messages: Annotated[list[Any], add_messages]
    notes: Annotated[list[Any], operator.add]


NEUTRAL: dict[str, Any] = {"log": [], "table": {}, "messages": []}


def _named(said: Any, task: int) -> Any:
    """A task's message with an id, if it is one and has none."""
    nameless = isinstance(said, BaseMessage) and said.id is None
    return said.model_copy(update={"id": f"{task}: {said.text}"}) if nameless else said


@dataclass
class Session:
    """One program's life on one saver: runs its steps and records what each leaves readable."""

    shelf: Shelf | ReferenceShelf
    mode: Mode
    program: Program
    names: Names = field(default_factory=Names)
    script: Script = field(default_factory=Script)
    rounds: int = 0
    failed: set[str] = field(default_factory=set)
    handed_out: list[Any] = field(default_factory=list)
    held: list[tuple[Any, Form]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.calls = Calls(self.mode)
        self.builder = self._builder()
        self.graph = self._compiled()

    # -- the graph ---------------------------------------------------------------------------------

    def _builder(self) -> StateGraph[Any]:
        child = StateGraph(ChildState)
        child.add_node("child", self._node("child"))
        child.add_edge(START, "child")
        builder = StateGraph(State)
        builder.add_node("first", self._node("first"))
        builder.add_node("last", self._node("last"))
        builder.add_node("worker", self._node("worker"))
        builder.add_node(
            "child", child.compile(checkpointer=True if self.program.child_keeps_state else None)
        )
        builder.add_edge(START, "first")
        builder.add_conditional_edges(
            "first", lambda state: END if self.script.by_command else self._after_first(), None
        )
        builder.add_edge("worker", "last")
        builder.add_edge("child", "last")
        builder.add_conditional_edges("last", self._after_last, ["first", END])
        return builder

    def _compiled(self) -> Any:
        return self.builder.compile(checkpointer=self.shelf.saver)

    def _node(self, name: str) -> Any:
        def node(state: dict[str, Any]) -> Any:
            return self._act(name, state)

        async def anode(state: dict[str, Any]) -> Any:
            return self._act(name, state)

        return anode if self.mode == "async" else node

    def _after_first(self) -> list[Any]:
        sends: list[Any] = [
            Send("worker", {"messages": [said.message()], "n": n})
            for n, said in enumerate(self.script.sends)
        ]
        return [*sends, *(["child"] if self.script.through_child else [] if sends else ["last"])]

    def _after_last(self, state: dict[str, Any]) -> str:
        self.rounds += 1
        return "first" if self.rounds < self.script.rounds else END

    def _act(self, node: str, state: dict[str, Any]) -> Any:
        update: dict[str, Any] = (
            {"notes": [len(state.get("messages", []))]} if node == "child" else {}
        )
        if node == "worker":
            update["messages"] = list(state["messages"])
        for action in getattr(self.script, node):
            self._do(action, node, state, update)
        if node == "worker" and any(isinstance(action, Ask) for action in self.script.child):
            # While a question waits, LangGraph gives the ids of what the workers said in place, and
            # stores it beside: whether with ids is a race.
            update["messages"] = [_named(message, state["n"]) for message in update["messages"]]
        if node == "first" and self.script.by_command:
            return Command(update=update, goto=self._after_first())
        return update

    def _do(self, action: Any, node: str, state: dict[str, Any], update: dict[str, Any]) -> None:
        messages: list[BaseMessage] = state.get("messages", [])
        match action:
            case Ask(value, times):
                for _ in range(times):
                    update.setdefault("log", []).append(interrupt(deepcopy(value)))
            case Fail():
                # Which of several tasks in one step are cancelled by a failure is LangGraph's own
                # race.
                alone = node not in ("worker", "child") or len(self._after_first()) == 1
                if alone and node not in self.failed:
                    self.failed.add(node)
                    raise NodeFailure(f"{node} fails once")
            case Write(channel, _):
                built = written(action)
                joined = (
                    [*update.get("log", []), *built]
                    if channel == "log"
                    else {**update.get("table", {}), **built}
                    if channel == "table"
                    else built
                )
                update[channel] = joined
            case Tweak(channel):
                update[channel] = tweaked(
                    state.get(channel), action.key, action.value, move=action.move
                )
            case Twist(channel, touch):
                twist(state.get(channel))
                if touch and channel in state:
                    update.setdefault(channel, NEUTRAL.get(channel, state[channel]))
            case _:
                self._on_messages(action, messages, update)

    def _on_messages(
        self, action: Any, messages: list[BaseMessage], update: dict[str, Any]
    ) -> None:
        said = update.setdefault("messages", []) if not isinstance(action, Quote | Edit) else []
        chosen = (
            messages[action.which % len(messages)]
            if messages and hasattr(action, "which")
            else None
        )
        match action:
            case Say(spoken):
                said.extend(one.build() for one in spoken)
            case Remove() if chosen is not None:
                said.append(RemoveMessage(id=str(chosen.id)))
            case Replace(_, by) if chosen is not None:
                replacement = by.message()
                replacement.id = chosen.id
                said.append(replacement)
            case Rearrange(keep, turn):
                kept = messages[len(messages) - keep :] if keep < len(messages) else list(messages)
                turn = turn % len(kept) if kept else 0
                said.extend([RemoveMessage(id=REMOVE_ALL_MESSAGES), *kept[turn:], *kept[:turn]])
            case Edit(_, how, touch) if chosen is not None:
                edit(chosen, how)
                if touch:
                    update.setdefault("messages", [])
            case Quote(channel, _) if chosen is not None:
                if channel == "log":
                    update["log"] = [*update.get("log", []), chosen]
                else:
                    update[channel] = {
                        **(update.get("table", {}) if channel == "table" else {}),
                        "quoted": chosen,
                    }

    # -- the steps ---------------------------------------------------------------------------------

    def config(self, thread: str, *, one_by_one: bool = False) -> RunnableConfig:
        """Give a thread's config; `one_by_one` lets background saves finish in order.

        Changing values in place needs that.
        """
        config: RunnableConfig = {"configurable": {"thread_id": thread}}
        if one_by_one:
            config["max_concurrency"] = 1
        return config

    async def carry_out(self, step: Step, *, last: bool) -> list[tuple[str, Any]]:
        """Run one step; give what is readable by name, all if `last` or the past may differ."""
        try:
            outcome = await self._step(step)
            result: Any = ("gave", *self._given_back(outcome))
        except Exception as error:
            result = self._raised(error)
        if not last and isinstance(step, Invoke | Resume | Continue):
            return [("result", result), *await self.observe_head(step.thread)]
        threads = ["t1", "t2"] if last or isinstance(step, Reopen | Forget) else [step.thread]
        return [
            ("result", result),
            *[seen for thread in threads for seen in await self.observe(thread)],
        ]

    async def _step(self, step: Step) -> Any:
        match step:
            case Invoke():
                return await self._invoke(step)
            case Resume():
                return await self._resume(step)
            case Continue(thread, durability, at):
                config = await self._config_at(thread, at, one_by_one=True)
                return await self._keep(
                    await self.calls.call(self.graph, "invoke", None, config, durability=durability)
                )
            case Update(thread, writes, as_node, at):
                config = await self._config_at(thread, at)
                update = await self._values(thread, writes)
                return names_of(
                    await self.calls.call(
                        self.graph, "update_state", config, update, as_node=as_node
                    )
                )
            case BulkUpdate(thread, supersteps):
                updates = [
                    [StateUpdate(await self._values(thread, writes), "last")]
                    for writes in supersteps
                ]
                return names_of(
                    await self.calls.call(
                        self.graph, "bulk_update_state", self.config(thread), updates
                    )
                )
            case Reopen():
                await self.shelf.reopen()
                self.graph = self._compiled()
            case Meddle(thread):
                await self._meddle(thread)
            case Forget(thread):
                await self.calls.call(self.shelf.saver, "delete_thread", thread)
        return None

    def _raised(self, error: Exception) -> Form:
        return ("raised", type(error).__qualname__, self.names.text(str(error)))

    def _given_back(self, outcome: Any) -> Form:
        """Give a step's result; parallel interrupts are in the order their tasks finished."""
        if not isinstance(outcome, dict):
            return (self.names.form(outcome),)
        interrupts = sorted(
            repr(self.names.form(one.value)) for one in outcome.get("__interrupt__", ())
        )
        return (
            self.names.form(
                {key: value for key, value in outcome.items() if key != "__interrupt__"}
            ),
            interrupts,
        )

    async def _invoke(self, step: Invoke) -> Any:
        self.script, self.rounds, self.failed = step.script, 0, set()
        mutating = any(
            isinstance(a, Edit | Twist)
            for a in (*step.script.first, *step.script.last, *step.script.child)
        )
        config = await self._config_at(step.thread, step.at, one_by_one=mutating)
        given = {
            "messages": [said.build() for said in step.messages],
            **{write.channel: written(write) for write in step.writes},
        }
        self.handed_out.append(given)
        return await self._keep(
            await self.calls.call(self.graph, "invoke", given, config, durability=step.durability)
        )

    async def _resume(self, step: Resume) -> Any:
        config = self.config(step.thread, one_by_one=True)
        waiting = (await self.calls.call(self.graph, "get_state", config)).interrupts
        if not waiting and step.how != "bare":
            return "nothing waits"
        answers = {
            one.id: deepcopy(step.answer)
            for one in waiting[: 1 if step.how == "first by id" else None]
        }
        update = {"messages": [said.build() for said in step.say]} if step.say else None
        command: Command[Any] = Command(
            resume=deepcopy(step.answer) if step.how == "bare" else answers, update=update
        )
        return await self._keep(
            await self.calls.call(self.graph, "invoke", command, config, durability=step.durability)
        )

    async def _keep(self, result: Any) -> Any:
        self.handed_out.append(result)
        return result

    async def _config_at(
        self, thread: str, at: int | None, *, one_by_one: bool = False
    ) -> RunnableConfig:
        config = self.config(thread, one_by_one=one_by_one)
        if at is None:
            return config
        history = await self.calls.collect(self.graph, "get_state_history", config)
        return {**config, **history[at % len(history)].config} if history else config

    async def _values(self, thread: str, writes: Sequence[Any]) -> dict[str, Any]:
        update: dict[str, Any] = {}
        state = (await self.calls.call(self.graph, "get_state", self.config(thread))).values
        for write in writes:
            self._do(write, "update", state, update)
        self.handed_out.append(update)
        return update

    async def _meddle(self, thread: str) -> None:
        config = self.config(thread)
        read = [
            await self.calls.call(self.graph, "get_state", config),
            *await self.calls.collect(self.graph, "get_state_history", config),
            await self.calls.call(self.shelf.saver, "get_tuple", config),
            *await self.calls.collect(self.shelf.saver, "list", config),
        ]
        for value in (*self.handed_out, *read):
            spoil(value)
        self.handed_out.clear()

    # -- what can be read --------------------------------------------------------------------------

    async def observe_head(self, thread: str) -> list[tuple[str, Any]]:
        """Give what a graph and a saver tell about a thread's newest checkpoint.

        A graph puts the writes that wait into the state that it gives. What its own reducer then
        raises, it raises on every saver.
        """
        config = self.config(thread)
        try:
            head = await self.calls.call(self.graph, "get_state", config, subgraphs=True)
        except ValueError as error:
            state = self._raised(error)
        else:
            self.held.append((head, Names(keep=True).snapshot(head)))
            state = self.names.snapshot(head)
        newest = await self.calls.call(self.shelf.saver, "get_tuple", config)
        return [(f"{thread} get_state", state), (f"{thread} newest", self.names.checkpoint(newest))]

    async def observe(self, thread: str) -> list[tuple[str, Any]]:
        """Give all that a graph and a saver tell about a thread."""
        config = self.config(thread)
        newest = await self.observe_head(thread)
        history = await self.calls.collect(self.graph, "get_state_history", config)
        listed = await self.calls.collect(self.shelf.saver, "list", config)
        by_namespace: dict[str, list[Any]] = {}
        for found in listed:
            by_namespace.setdefault(found.config["configurable"]["checkpoint_ns"], []).append(found)
        roots = [
            found.config["configurable"]["checkpoint_id"]
            for found in reversed(by_namespace.get("", []))
        ]
        groups = sorted(by_namespace.values(), key=lambda group: by_age(group, roots))
        singles = [
            await self.calls.call(self.shelf.saver, "get_tuple", group[i].config)
            for group in groups
            for i in (0, len(group) // 2, -1)
        ]
        some: list[Any] = []
        if history:
            root: RunnableConfig = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
            before = history[len(history) // 4].config
            some = await self.calls.collect(
                self.shelf.saver, "list", root, filter={"source": "loop"}, before=before, limit=2
            )
        return [
            *newest,
            (
                f"{thread} get_state_history",
                tuple(self.names.snapshot(snapshot) for snapshot in history),
            ),
            (
                f"{thread} list",
                tuple(tuple(self.names.checkpoint(found) for found in group) for group in groups),
            ),
            (f"{thread} get_tuple", tuple(self.names.checkpoint(found) for found in singles)),
            (
                f"{thread} list(filter, before, limit)",
                tuple(self.names.checkpoint(found) for found in some),
            ),
        ]

    def check_held(self) -> None:
        """Check that no snapshot that was read earlier has changed since."""
        for snapshot, form in self.held:
            assert Names(keep=True).snapshot(snapshot) == form, (
                "a state that was read earlier has changed since"
            )


def by_age(group: Sequence[Any], roots: Sequence[str]) -> tuple[bool, int, list[str]]:
    """Order the namespaces of a thread: the root, then by age of the root's checkpoint they follow.

    Ids alone would not do: where a clock is behind, those of a later step are lower.
    """
    places = [found.config["configurable"] for found in reversed(group)]
    parent = (group[-1].metadata or {}).get("parents", {}).get("")
    age = roots.index(parent) if parent in roots else -1
    return (places[0]["checkpoint_ns"] != "", age, [place["checkpoint_id"] for place in places])


def names_of(config: RunnableConfig) -> dict[str, Any]:
    """Give what a returned config says about the checkpoint."""
    return {
        key: value
        for key, value in sorted(config["configurable"].items())
        if key in ("thread_id", "checkpoint_ns", "checkpoint_id")
    }


def written(write: Write) -> Any:
    """Give a write's value, built anew."""
    return deepcopy(write.value)
