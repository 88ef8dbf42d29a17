"""The shapes that LangGraph's SDK sends and expects: threads, states, checkpoints."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeAlias, get_args

from fastapi import Response
from langchain_core.runnables import RunnableConfig
from langgraph.types import Interrupt, PregelTask, StateSnapshot

from langmem_ext._internal.json import json_bytes, jsonable
from langmem_ext.errors import InvalidInput
from langmem_ext.threads.states.states import StatedThread
from langmem_ext.types import ThreadInfo

Shape: TypeAlias = dict[str, Any]

Field: TypeAlias = Literal[
    "thread_id",
    "created_at",
    "updated_at",
    "state_updated_at",
    "metadata",
    "config",
    "status",
    "values",
    "interrupts",
]
"""The fields of a thread that can be selected."""

OF_STATE: Final = frozenset({"status", "values", "interrupts"})
"""The fields for which the thread's state must be read."""

EXTRACTED: Final = ("values", "metadata", "config", "interrupts")
"""The fields at which a path into a thread may begin."""

_ALIAS: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_PART: Final = re.compile(r"\.([^.\[\]]+)|\[(-?\d+)\]")


async def answer(
    content: Any, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Content as JSON, which is written off the event loop: it may be long."""
    body = await asyncio.to_thread(json_bytes, content)
    return Response(body, status, headers, "application/json")


def thread_shape(thread: StatedThread, metadata: Mapping[str, Any], *, busy: bool = False) -> Shape:
    """A thread.

    Args:
        thread: The thread, with its state.
        metadata: Metadata that every thread has.
        busy: Whether a run is working on it.
    """
    shape = _row_shape(thread.info, metadata)
    shape["status"] = "busy" if busy else thread.status
    shape["values"] = None if thread.state is None else thread.state.values
    if thread.damage is not None:
        shape["error"] = thread.damage
    if thread.state is not None:
        asking = {
            task.id: list(map(interrupt_shape, task.interrupts))
            for task in thread.state.tasks
            if task.interrupts
        }
        shape["interrupts"] = asking
        errors = [task.error for task in thread.state.tasks if task.error is not None]
        if errors:
            shape["error"] = str(errors[0])
    return shape


def _row_shape(info: ThreadInfo, metadata: Mapping[str, Any]) -> Shape:
    return {
        "thread_id": info.id,
        "created_at": info.created_at.isoformat(),
        "updated_at": info.updated_at.isoformat(),
        "state_updated_at": info.updated_at.isoformat(),
        "metadata": {**metadata, **info.metadata},
        "config": {},
    }


def selected(shape: Shape, select: Sequence[str], extract: Mapping[str, str]) -> Shape:
    """The selected fields of a thread and its extracted paths; all fields if none is named.

    Raises:
        InvalidInput: An alias is invalid or the name of a field, or a path is invalid.
    """
    chosen = {name: shape[name] for name in select if name in shape} if select else dict(shape)
    if extract:
        plain = jsonable({name: shape.get(name) for name in EXTRACTED})
        chosen["extracted"] = {alias: _value_at(plain, path) for alias, path in extract.items()}
    return chosen


def require_paths(extract: Mapping[str, str]) -> None:
    """Require that paths can be extracted.

    Raises:
        InvalidInput: An alias is invalid or the name of a field, or a path is invalid.
    """
    for alias, path in extract.items():
        if not _ALIAS.fullmatch(alias) or alias in get_args(Field):
            raise InvalidInput(
                "what is extracted is named by letters, digits and '_', and not like a field:"
                f" {alias!r} cannot be used"
            )
        root = re.split(r"[.\[]", path)[0]
        if root not in EXTRACTED:
            raise InvalidInput(
                f"the path of {alias!r} must begin with one of {', '.join(EXTRACTED)}, like"
                " values.messages[-1].content"
            )


def _value_at(value: Any, path: str) -> Any:
    """The value at a path like `values.messages[-1].content`; None if there is none."""
    for name, place in _PART.findall(f".{path}"):
        if place and isinstance(value, list) and -len(value) <= int(place) < len(value):
            value = value[int(place)]
        elif name and isinstance(value, dict):
            value = value.get(name)
        else:
            return None
    return value


def state_shape(state: StateSnapshot) -> Shape:
    """A state."""
    return {
        "values": state.values,
        "next": list(state.next),
        "tasks": list(map(_task_shape, state.tasks)),
        "metadata": state.metadata,
        "created_at": state.created_at,
        "checkpoint": checkpoint_shape(state.config),
        "parent_checkpoint": checkpoint_shape(state.parent_config),
        "interrupts": list(map(interrupt_shape, state.interrupts)),
        "checkpoint_id": _id_of(state.config),
        "parent_checkpoint_id": _id_of(state.parent_config),
    }


def selected_state(shape: Shape, select: Sequence[str] | None) -> Shape:
    """A state with only the selected values; with all if `select` is None."""
    values = shape["values"]
    if select is None or not isinstance(values, dict):
        return shape
    return {**shape, "values": {name: values[name] for name in select if name in values}}


def empty_state(thread_id: str) -> Shape:
    """The state of a thread that has none."""
    config: RunnableConfig = {"configurable": {"thread_id": thread_id}}
    return state_shape(StateSnapshot({}, (), config, None, None, None, (), ()))


def _task_shape(task: PregelTask) -> Shape:
    nested = task.state
    return {
        "id": task.id,
        "name": task.name,
        "path": task.path,
        "error": None if task.error is None else str(task.error),
        "interrupts": list(map(interrupt_shape, task.interrupts)),
        "checkpoint": nested["configurable"] if isinstance(nested, dict) else None,
        "state": state_shape(nested) if isinstance(nested, StateSnapshot) else None,
        "result": task.result,
    }


def interrupt_shape(interrupt: Interrupt) -> Shape:
    """An interrupt."""
    shape: Shape = {"id": interrupt.id, "value": interrupt.value}
    schema = getattr(interrupt, "response_schema", None)
    return shape if schema is None else {**shape, "response_schema": schema}


def checkpoint_shape(config: RunnableConfig | None) -> Shape | None:
    """The checkpoint that a config names; None if it names none."""
    configurable = (config or {}).get("configurable") or {}
    if not configurable.get("checkpoint_id"):
        return None
    names = ("checkpoint_id", "thread_id", "checkpoint_ns", "checkpoint_map")
    return {name: configurable[name] for name in names if name in configurable}


def _id_of(config: RunnableConfig | None) -> str | None:
    checkpoint = checkpoint_shape(config)
    return None if checkpoint is None else checkpoint["checkpoint_id"]


STARTED: Final = datetime.now(UTC).isoformat()
"""When a server's graph was registered: when the server started."""


def assistant_shape(assistant_id: str, graph_id: str) -> Shape:
    """A graph that can be run, in the form of the platform's assistant."""
    return {
        "assistant_id": assistant_id,
        "graph_id": graph_id,
        "name": graph_id,
        "description": None,
        "config": {},
        "context": {},
        "metadata": {"created_by": "system"},
        "version": 1,
        "created_at": STARTED,
        "updated_at": STARTED,
    }
