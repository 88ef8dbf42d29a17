"""Telemetry: what happens in conversations, as names and counts, never as values.

An `Event` cannot be made with anything else: its name, its keys and the type of each are a closed
list, and a name is a word that a catalog or a program declares. Sinks take events; one that fails
breaks nothing.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

from langmem_ext.errors import InvalidInput

LOGGER: Final = "langmem_ext.telemetry"
"""The logger that `LoggingSink` writes to."""

FIELD: Final = "langmem_ext"
"""The attribute of a log record, and the key in a custom stream, that holds an event."""

_log = logging.getLogger(__name__)

_NAME: Final = re.compile(r"[^\W\d][\w.:-]{0,79}")

Payload: TypeAlias = Mapping[str, str | int | None | tuple[str, ...]]


def is_name(value: object) -> bool:
    """Whether this is a name as programs declare it: a word of at most 80 characters."""
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def _is_names(value: object) -> bool:
    return isinstance(value, tuple) and all(map(is_name, value))


def _is_name_or_none(value: object) -> bool:
    return value is None or is_name(value)


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _one_of(*words: str) -> Callable[[object], bool]:
    return lambda value: isinstance(value, str) and value in words


KEYS: Final[Mapping[str, Callable[[object], bool]]] = {
    "attempt": _is_count,
    "by": _one_of("user", "tool"),
    "duration_ms": _is_count,
    "intent": _is_name_or_none,
    "messages": _is_count,
    "param": is_name,
    "params": _is_names,
    "source": _one_of("rules", "model"),
    "status": _one_of("ok", "error"),
    "step": _is_count,
    "threads": _is_count,
    "tool": is_name,
}
"""Every key of a payload, and what its value must be."""

EVENTS: Final[Mapping[str, frozenset[str]]] = {
    "received": frozenset(),
    "classified": frozenset({"intent", "source"}),
    "asked": frozenset({"param", "attempt"}),
    "filled": frozenset({"params", "by"}),
    "tool_called": frozenset({"tool", "status", "step", "duration_ms"}),
    "respond": frozenset({"intent", "status"}),
    "summarised": frozenset({"messages"}),
    "expired": frozenset({"threads"}),
}
"""Every event, and the keys that its payload may have."""


@dataclass(frozen=True, slots=True)
class MemoryFigures:
    """What a thread remembers at an event: names and a count.

    Attributes:
        history_count: How many messages its history has.
        params_keys: The names of the parameters it knows, sorted.
        waiting_for_param: The parameter whose question waits; None when none does.

    Raises:
        InvalidInput: Something is no name, or no count.
    """

    history_count: int
    params_keys: tuple[str, ...] = ()
    waiting_for_param: str | None = None

    def __post_init__(self) -> None:
        if not _is_count(self.history_count):
            raise InvalidInput("history_count must be a whole number of 0 or more")
        if not _is_names(self.params_keys) or not _is_name_or_none(self.waiting_for_param):
            raise InvalidInput(
                "params_keys and waiting_for_param must be parameter names of one word, in a tuple"
            )


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened.

    Attributes:
        name: One of `received`, `classified`, `asked`, `filled`, `tool_called`, `respond`,
            `summarised`, `expired`.
        payload: More about it, by keys of a closed list.
        memory: What the thread remembers then; None for `expired`, which is about many threads.
        thread_id: The thread.
        turn_id: The id of the user's message that the turn is about.
        time: When it was, with its time zone.

    Raises:
        InvalidInput: It has a name or a key that is not in the list, or a value of another type
            than the key's. What it was is not said.
    """

    name: str
    payload: Payload = field(default_factory=dict)
    memory: MemoryFigures | None = None
    thread_id: str | None = None
    turn_id: str | None = None
    time: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __post_init__(self) -> None:
        keys = EVENTS.get(self.name) if isinstance(self.name, str) else None
        if keys is None:
            raise InvalidInput(f"the name of an event must be one of {', '.join(EVENTS)}")
        if not set(self.payload) <= keys:
            raise InvalidInput(
                f"the payload of {self.name} has an unknown key; it may have:"
                f" {', '.join(sorted(keys)) or 'none'}"
            )
        for key, value in self.payload.items():
            if not KEYS[key](value):
                raise InvalidInput(
                    f"{key} of {self.name} has the wrong type: events hold names and counts, never"
                    " values"
                )
        if not (self.memory is None or isinstance(self.memory, MemoryFigures)):
            raise InvalidInput("memory must be a MemoryFigures")
        if not all(
            identifier is None or isinstance(identifier, str)
            for identifier in (self.thread_id, self.turn_id)
        ):
            raise InvalidInput("thread_id and turn_id must be strings")
        object.__setattr__(self, "payload", dict(self.payload))

    def as_dict(self) -> dict[str, Any]:
        """The event as plain JSON; what is not known is left out."""
        fields: dict[str, Any] = {
            "event": self.name,
            "time": self.time.isoformat(timespec="milliseconds"),
        }
        if self.thread_id is not None:
            fields["thread_id"] = self.thread_id
        if self.turn_id is not None:
            fields["turn_id"] = self.turn_id
        if self.memory is not None:
            fields["memory"] = {
                "history_count": self.memory.history_count,
                "params_keys": list(self.memory.params_keys),
                "waiting_for_param": self.memory.waiting_for_param,
            }
        return fields | {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in self.payload.items()
        }


@runtime_checkable
class Sink(Protocol):
    """Takes events, in line, from any thread or event loop: it must be quick and thread-safe."""

    def emit(self, event: Event) -> None:
        """Take one event.

        An error it raises is logged once, by its class, and breaks nothing.
        """
        ...


class Emitter:
    """Gives events to sinks.

    Args:
        sinks: The sinks; none makes everything here cost nothing.

    Raises:
        InvalidInput: One of them is no sink.
    """

    def __init__(self, sinks: Iterable[Sink] = ()) -> None:
        self.sinks = tuple(sinks)
        for sink in self.sinks:
            if isinstance(sink, type) or not isinstance(sink, Sink):
                raise InvalidInput(
                    "telemetry must be a list of sinks, objects with a method emit(event), like"
                    " LoggingSink()"
                )
        self._failed: set[int] = set()

    def __bool__(self) -> bool:
        return bool(self.sinks)

    def emit(self, event: Event) -> None:
        """Give the event to every sink."""
        for place, sink in enumerate(self.sinks):
            try:
                sink.emit(event)
            except Exception as error:  # whatever it is: a turn is worth more than its trace
                if place not in self._failed:
                    self._failed.add(place)
                    _log.warning(
                        "telemetry sink %s failed with %s; this is logged once",
                        type(sink).__name__,
                        type(error).__name__,
                    )


class LoggingSink:
    """Logs events at INFO: the name as the message, the event as the attribute `langmem_ext`.

    Args:
        logger: The logger. Default: `langmem_ext.telemetry`.
        level: The records' level.
    """

    def __init__(self, logger: logging.Logger | None = None, level: int = logging.INFO) -> None:
        self._logger = logger or logging.getLogger(LOGGER)
        self._level = level

    def emit(self, event: Event) -> None:
        """Log the event."""
        self._logger.log(self._level, event.name, extra={FIELD: event.as_dict()})


class JsonFormatter(logging.Formatter):
    """Formats a log record as one line of JSON, with all fields of its event.

    Of an exception it shows the class only.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        fields: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
        }
        event = getattr(record, FIELD, None)
        if isinstance(event, dict):
            fields |= event
        else:
            fields["message"] = record.getMessage()
        if record.exc_info and record.exc_info[0] is not None:
            fields["error"] = record.exc_info[0].__name__
        return json.dumps(fields, ensure_ascii=False, default=lambda value: type(value).__name__)
