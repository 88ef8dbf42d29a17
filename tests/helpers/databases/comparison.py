"""Normal forms: what two savers gave back, so that they can be compared.

A form is plain nested tuples in which types are written down (`True`, `1` and `1.0` differ, lists
and tuples differ, the order of a dict's keys counts) and generated ids are replaced by the order in
which they were first seen. Two runs of one program must have equal forms; `first_difference` says
where they do not.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.types import Interrupt, Send, StateSnapshot
from pydantic import BaseModel

Form = tuple[Any, ...]

GENERATED_ID = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{32}\b"
)
CHANNEL_VERSION = re.compile(r"(\d{32})\.(.+)")
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?\+00:00")
CONFIG_KEYS = ("thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint_map")


class Names:
    """Replaces generated ids by their order of appearance; with `keep=True` leaves all ids.

    With `late`, a message id that may come late and is missing equals a generated one.
    """

    def __init__(self, *, keep: bool = False, late: bool | None = None) -> None:
        self._keep = keep
        self._late = not keep if late is None else late
        self._seen: dict[str, str] = {}

    def text(self, text: str) -> str:
        """Give `text` with the generated ids and the moments inside it replaced."""
        if self._keep:
            return text
        if version := CHANNEL_VERSION.fullmatch(text):
            return f"<version {int(version[1])} {self._number(text)}>"
        return GENERATED_ID.sub(
            lambda found: f"<id {self._number(found[0])}>", MOMENT.sub("<moment>", text)
        )

    def message_id(self, value: Any, *, late: bool) -> Form:
        """Give a message id; where ids may come `late`, a missing one equals a generated one."""
        if late and self._late and (value is None or GENERATED_ID.fullmatch(str(value))):
            return ("late id",)
        return self.form(value)

    def _number(self, text: str) -> str:
        return self._seen.setdefault(text, str(len(self._seen)))

    def form(self, value: Any, *, late: bool = False) -> Form:
        """Give the normal form of any value a channel may hold."""
        if isinstance(value, str) and type(value) is str:
            return ("str", self.text(value))
        if value is None or type(value) in (bool, int, float, bytes, bytearray):
            return (type(value).__name__, repr(value))
        if isinstance(value, dict):
            return (
                type(value).__qualname__,
                *((self.form(k), self.form(v, late=late)) for k, v in value.items()),
            )
        if isinstance(value, set | frozenset):
            return (type(value).__qualname__, *sorted(self.form(item) for item in value))
        if isinstance(value, list | tuple) and not hasattr(value, "_asdict"):
            return (type(value).__qualname__, *(self.form(item, late=late) for item in value))
        return self._object(value, late)

    def _object(self, value: Any, late: bool) -> Form:
        name = f"{type(value).__module__}.{type(value).__qualname__}"
        if isinstance(value, BaseMessage):
            fields = {**value.__dict__, **(value.__pydantic_extra__ or {})}
            if calls := fields.get("tool_calls"):
                # A saver that builds messages by their constructor puts the keys of calls that
                # somebody has replaced in order.
                fields["tool_calls"] = [
                    dict(sorted(call.items())) if isinstance(call, dict) else call for call in calls
                ]
            parts = [
                (k, self.message_id(v, late=late) if k == "id" else self.form(v, late=late))
                for k, v in fields.items()
            ]
            return (name, *parts)
        if isinstance(value, BaseModel):
            return (name, *((k, self.form(v, late=late)) for k, v in value.__dict__.items()))
        if isinstance(value, Send):
            return (name, value.node, self.form(value.arg, late=late))
        if isinstance(value, Interrupt):
            return (name, self.form(value.value, late=late), self.text(value.id))
        if isinstance(value, Enum):
            return (name, value.name)
        if dataclasses.is_dataclass(value):
            return (
                name,
                *(
                    (field.name, self.form(getattr(value, field.name), late=late))
                    for field in dataclasses.fields(value)
                ),
            )
        if hasattr(value, "_asdict"):
            return (name, *((k, self.form(v, late=late)) for k, v in value._asdict().items()))
        if isinstance(value, BaseException):
            return (name, self.text(str(value)))
        return (name, self.text(repr(value)))

    def config(self, config: Mapping[str, Any] | None) -> Form | None:
        """Give what a config says about a checkpoint's position; other keys are the caller's."""
        if config is None:
            return None
        return tuple(
            (key, self.form(config["configurable"][key]))
            for key in CONFIG_KEYS
            if key in config["configurable"]
        )

    def moment(self, text: str | None) -> str | None:
        """Check that `text` is an ISO moment with a zone; its value differs from run to run."""
        if text is None or self._keep:
            return text
        assert datetime.fromisoformat(text).tzinfo is not None
        return "<moment>"

    def unordered(self, values: Mapping[str, Any], *, late: bool = False) -> Form:
        """Give a mapping whose order means nothing, such as the channels of a checkpoint.

        Messages in LangGraph's own channels get their ids while they are being saved.
        """
        return tuple(
            (self.text(key), self.form(values[key], late=late or key.startswith("__")))
            for key in sorted(values)
        )

    def snapshot(self, snapshot: StateSnapshot) -> Form:
        """Give all that a `StateSnapshot` says."""
        values = (
            self.unordered(snapshot.values)
            if isinstance(snapshot.values, dict)
            else self.form(snapshot.values)
        )
        tasks = tuple(
            (
                self.text(task.id),
                task.name,
                self.form(task.path),
                self.form(task.error),
                self.form(task.interrupts),
                (
                    self.snapshot(task.state)
                    if isinstance(task.state, StateSnapshot)
                    else self.form(task.state)
                ),
                self.form(task.result, late=True),
            )
            for task in snapshot.tasks
        )
        return (
            ("values", values),
            ("next", self.form(snapshot.next)),
            ("config", self.config(snapshot.config)),
            ("metadata", self.unordered(snapshot.metadata or {})),
            ("created_at", self.moment(snapshot.created_at)),
            ("parent_config", self.config(snapshot.parent_config)),
            ("tasks", tasks),
            ("interrupts", self.form(snapshot.interrupts)),
        )

    def checkpoint(self, found: CheckpointTuple | None) -> Form | None:
        """Give all that a `CheckpointTuple` says."""
        if found is None:
            return None
        checkpoint: dict[str, Any] = dict(found.checkpoint)
        values, moment = checkpoint.pop("channel_values"), checkpoint.pop("ts", None)
        seen = {
            node: self.unordered(versions)
            for node, versions in checkpoint.pop("versions_seen", {}).items()
        }
        versions = self.unordered(checkpoint.pop("channel_versions", {}))
        return (
            ("config", self.config(found.config)),
            ("parent_config", self.config(found.parent_config)),
            ("metadata", self.unordered(found.metadata)),
            ("checkpoint", self.unordered(checkpoint), self.moment(moment)),
            ("channel_versions", versions),
            ("versions_seen", tuple(sorted(seen.items()))),
            ("channel_values", self.unordered(values)),
            ("pending_writes", self.form(found.pending_writes, late=True)),
        )


def first_difference(expected: Any, actual: Any, path: str = "") -> str | None:
    """Say where two forms first differ, or give None if they are equal."""
    if expected == actual:
        return None
    if isinstance(expected, tuple) and isinstance(actual, tuple):
        for index, (left, right) in enumerate(zip(expected, actual, strict=False)):
            if found := first_difference(left, right, f"{path}/{_step(left, index)}"):
                return found
        return (
            f"{path}: length {len(expected)} expected, {len(actual)} found\n  expected"
            f" {expected!r}\n  found    {actual!r}"
        )
    return f"{path}: expected {expected!r}, found {actual!r}"


def _step(form: Any, index: int) -> str:
    named = (
        isinstance(form, Sequence)
        and not isinstance(form, str)
        and len(form) > 1
        and isinstance(form[0], str)
    )
    return f"{index}:{form[0]}" if named else str(index)


def assert_same(expected: Any, actual: Any, what: str) -> None:
    """Fail with the place of the first difference; `what` says which observation is compared."""
    difference = first_difference(expected, actual)
    assert difference is None, f"{what} differs from the reference at {difference}"
