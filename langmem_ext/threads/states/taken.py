"""Whether a graph's channels take a value: a rehearsal on copies, which runs no node.

LangGraph stores an input, or a command's update, before it applies them. If a reducer or the
state's schema then raises, the thread keeps what cannot be applied: reading its state raises, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from langgraph.channels.base import BaseChannel
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.pregel import Pregel
from langgraph.pregel._io import map_command, map_input
from langgraph.pregel._write import ChannelWrite
from langgraph.types import Command, Send
from pydantic import ValidationError

from langmem_ext.errors import ConversationError, InvalidInput, cause
from langmem_ext.storage.checkpoints.late_writes import NULL_TASK
from langmem_ext.threads.states.snapshot import BRANCH, INNER, INPUT, RESUME, ROOT, SENT

Graph: TypeAlias = "Pregel[Any, Any, Any, Any]"
Writes: TypeAlias = Iterable[tuple[str, Any]]

AS_INPUT: Final = "__input__"
"""The node in whose name LangGraph writes an input (`update_state`)."""

COPY: Final = "__copy__"
"""The node in whose name LangGraph copies a checkpoint."""

LONGEST: Final = 300
"""Characters of a reducer's own words in an error."""

_SEND: Final = "__pregel_send"
"""The key of a config under which LangGraph's writers find who takes what they write."""


def require_taken(
    graph: Graph,
    held: CheckpointTuple | None,
    value: Any,
    *,
    as_node: str | None = AS_INPUT,
    rebuilt: Mapping[str, Any] | None = None,
    kept: Mapping[str, bool] = MappingProxyType({}),
) -> None:
    """Require that a graph takes an input, a `Command`, or an update of its state.

    Args:
        graph: The graph.
        held: The checkpoint that it follows, from the graph's checkpointer; None if there is none.
        value: The input or command; None to continue the thread.
        as_node: The node that an update is written as; None for the one that ran last.
        rebuilt: Values that the checkpoint does not hold (those of `DeltaChannel`s), by channel.
        kept: Channels that get no other value than they have, each with whether it may be emptied;
            what is sent to a node has none of those that may, and the others as they are.

    Raises:
        InvalidInput: The graph does not take it.
        ConversationError: The graph takes nothing there.
    """
    if value is None:
        return
    if as_node == COPY:
        raise InvalidInput("a checkpoint is copied as it is: copy it, then update its state")
    rehearsal = _Rehearsal(graph, held, rebuilt or {}, kept)
    value = deepcopy(value)  # a reducer may change what it is given
    before = _of_step(held)
    try:
        rehearsal.take(before)
    except InvalidInput as error:
        raise ConversationError(
            f"an earlier command cannot be applied, so nothing can follow it ({error}): go on from"
            " an earlier checkpoint"
        ) from None
    if isinstance(value, Command):  # LangGraph applies it together with the commands before it
        together = _Rehearsal(graph, held, rebuilt or {}, kept)
        together.take([*before, *together.written_by_command(value)])
    elif as_node in (AS_INPUT, INPUT):
        rehearsal.take_input(value)
    else:
        rehearsal.take(rehearsal.written_by(as_node, value))


def refusal_of(graph: Graph, held: CheckpointTuple) -> InvalidInput | None:
    """Why what is stored in a thread cannot be applied by its graph; None if it can."""
    writes = [write for write in held.pending_writes or () if write[1] in graph.channels]
    if not writes and not any(node.mapper for node in graph.nodes.values()):
        return None
    if writes:  # a reducer may change what it is given
        held = held._replace(checkpoint=deepcopy(held.checkpoint), pending_writes=deepcopy(writes))
    rehearsal = _Rehearsal(graph, held, {})
    waiting = [name for name in held.checkpoint["channel_values"] if name.startswith(BRANCH)]
    try:
        rehearsal.take(_of_step(held))
        rehearsal.require_read(waiting)
        rehearsal.take((name, value) for task, name, value in writes if task != NULL_TASK)
    except InvalidInput as error:
        return error
    return None


def _of_step(held: CheckpointTuple | None) -> list[tuple[str, Any]]:
    """What commands have written to a checkpoint's step."""
    pending = () if held is None else held.pending_writes or ()
    return [(name, value) for task, name, value in pending if task == NULL_TASK]


class _Rehearsal:
    """A graph's channels as a checkpoint holds them. One whose value is not known takes all."""

    def __init__(
        self,
        graph: Graph,
        held: CheckpointTuple | None,
        rebuilt: Mapping[str, Any],
        kept: Mapping[str, bool] = MappingProxyType({}),
    ) -> None:
        stored = {} if held is None else held.checkpoint["channel_values"]
        values = {**stored, **rebuilt}
        self._graph = graph
        self._kept = {name: (deepcopy(values.get(name)), kept[name]) for name in kept}
        self._channels: dict[str, BaseChannel[Any, Any, Any]] = {
            name: spec.from_checkpoint(values[name]) if name in values else spec.copy()
            for name, spec in graph.channels.items()
            if isinstance(spec, BaseChannel)
            and (name in values or held is None or not isinstance(spec, DeltaChannel))
        }

    def take(self, writes: Writes) -> None:
        """Apply the writes of one step."""
        by_channel: dict[str, list[Any]] = {}
        for name, value in writes:
            by_channel.setdefault(name, []).append(value)
        for name, values in by_channel.items():
            self._require_kept(name, values)
            if name in self._channels:
                with _refusing(f"the channel {name!r}"):
                    self._channels[name].update(values)
        self.require_read(by_channel)
        for sent in by_channel.get(SENT, ()):
            if isinstance(sent, Send) and (node := self._graph.nodes.get(sent.node)) is not None:
                for name in self._kept if isinstance(sent.arg, Mapping) else ():
                    self._require_kept(name, (sent.arg.get(name),), sent=True)
                self._map(f"the node {sent.node!r}", node.mapper, sent.arg)

    def _require_kept(self, name: str, values: Iterable[Any], *, sent: bool = False) -> None:
        """Require that a channel gets no value but the one that it has, or none if it may."""
        held, may_be_empty = self._kept.get(name, (None, True))
        allowed = ([] if sent and may_be_empty else [held or None]) + [None] * may_be_empty
        if name in self._kept and any((value or None) not in allowed for value in values):
            raise InvalidInput(
                f"only the graph itself writes the channel {name!r}:"
                f" {'leave it out' if may_be_empty else 'pass it as it is, or no state at all'}"
            )

    def take_input(self, value: Any) -> None:
        """Apply an input, and what the graph's beginning makes of it."""
        with _refusing("the input"):
            writes = list(map_input(self._graph.input_channels, value))
        if not writes:
            raise InvalidInput(
                "the input has no value for the graph: it takes"
                f" {', '.join(self._graph.input_channels)}"
            )
        start = self._graph.nodes.get(INPUT)
        if start is None or self._graph.input_channels != INPUT:
            self.take(writes)
            return
        self.take(self.written_by(INPUT, value))
        if not all(isinstance(writer, ChannelWrite) for writer in start.writers):  # a router
            graph: Any = self._graph
            schema = graph.builder.state_schema
            self._read("the state", graph.builder.schemas[schema], graph.schema_to_mapper[schema])

    def written_by(self, as_node: str | None, value: Any) -> list[tuple[str, Any]]:
        """What a node's return is written as; not what its routers, an application's code, say."""
        others = (name for name in self._graph.nodes if name != INPUT)
        node = self._graph.nodes.get(as_node or next(others, INPUT))
        written: list[tuple[str, Any]] = []
        with _refusing("the state"):
            for writer in () if node is None else node.writers:
                if isinstance(writer, ChannelWrite):
                    writer.invoke(value, {"configurable": {_SEND: written.extend}})
        return [write for write in written if as_node or not write[0].startswith(BRANCH)]

    def written_by_command(self, command: Command[Any]) -> list[tuple[str, Any]]:
        """What a command writes: to the graph's own channels, and for its nodes to come."""
        with _refusing("the command"):
            writes = [(name, value) for _, name, value in map_command(command)]
        for name, value in writes:
            node = value.node if isinstance(value, Send) else name.removeprefix(BRANCH)
            if name.startswith(BRANCH) or isinstance(value, Send):
                if node not in self._graph.nodes:
                    raise InvalidInput(f"the graph has no node {node!r} to go to")
            elif name != RESUME and (
                name not in self._graph.channels or (name != ROOT and name.startswith(INNER))
            ):
                raise InvalidInput(f"the graph has no channel {name!r} to update")
        return writes

    def require_read(self, names: Iterable[str]) -> None:
        """Require that the nodes that some channels start can read the state."""
        for name in names:
            node = self._graph.nodes.get(name.removeprefix(BRANCH))
            if name.startswith(BRANCH) and node is not None:
                self._read(f"the node {name.removeprefix(BRANCH)!r}", node.channels, node.mapper)

    def _read(self, where: str, names: Iterable[str], mapper: Callable[[Any], Any] | None) -> None:
        if mapper is None or isinstance(names, str) or not self._channels.keys() >= {*names}:
            return  # it takes any state, or reads what a run alone has
        channels = {name: self._channels[name] for name in names}
        values = {name: held.get() for name, held in channels.items() if held.is_available()}
        self._map(where, mapper, values)

    @staticmethod
    def _map(where: str, mapper: Callable[[Any], Any] | None, value: Any) -> None:
        if mapper is not None:
            with _refusing(where):
                mapper(value)


@contextmanager
def _refusing(where: str) -> Iterator[None]:
    """Raise what a graph's code raises as a refusal."""
    try:
        yield
    except Exception as error:  # a reducer may raise anything
        raise InvalidInput(
            f"the graph does not take this: {where} refuses it ({_reason(error)})"
        ) from cause(error)


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        mistakes = error.errors(include_input=False, include_url=False, include_context=False)
        said = "; ".join(
            f"{'.'.join(map(str, mistake['loc']))}: {mistake['msg']}" for mistake in mistakes
        )
    else:
        said = f"{type(error).__name__}: {error}".strip().split("\n")[0]
    return said if len(said) <= LONGEST else f"{said[:LONGEST]}…"
