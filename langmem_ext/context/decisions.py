"""What was decided about a thread's messages, as events: plain JSON, kept beside the messages, never in them.

| event | says |
|---|---|
| `{"kind": "trim", "at": key, "chars": n}` | of this tool output so many characters are shown |
| `{"kind": "offload", "at": key}` | of this tool output its beginning and its end are shown, with a reference to the rest |
| `{"kind": "thoughts", "through": key}` | the reasoning of messages up to this one is left out |
| `{"kind": "cut", "through": key, "kept": [key, …], "text": …, "by": …, "covers": [key, …], "dropped": n}` | up to this message only those kept are shown; the text stands for the others |
| `{"kind": "nudge", "after": key, "text": …}` | after this message the model is told that it repeats itself |
| `{"kind": "failed", "at": n}` | a summary failed when the thread had so many messages |
| `{"kind": "restore"}` | nothing that was decided before holds any more |

A request is a function of the messages and these. So long as no event is added, it begins with the request before it, byte for byte; a fork of
a thread inherits them with its state; and a `restore` brings everything back, because nothing was ever taken away.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from langchain_core.messages import BaseMessage

from langmem_ext.errors import InvalidInput

ContextEvent: TypeAlias = dict[str, Any]
RESTORE: ContextEvent = {"kind": "restore"}


def key_of(message: BaseMessage, position: int) -> str:
    """What an event calls a message: its id, or where it stands if it has none."""
    return message.id or f"@{position}"


@dataclass(frozen=True, slots=True)
class Cut:
    """Where the shown part of a thread begins.

    Attributes:
        through: The last message that is not shown.
        kept: The messages up to it that are shown nevertheless.
        text: What stands for the others; empty for nothing.
        by: Who wrote the text: `marker`, `extract`, `model`.
        dropped: How many messages it stands for.
    """

    through: str
    kept: tuple[str, ...]
    text: str
    by: str
    dropped: int


@dataclass(frozen=True, slots=True)
class Decisions:
    """What holds of all that was decided.

    Attributes:
        cut: The newest one.
        trims: How many characters are shown of a tool output.
        offloads: The tool outputs of which a preview is shown.
        thoughts: The last message whose reasoning is left out.
        nudges: What the model is told after a message.
        failed: How many messages the thread had when a summary failed for the last time.
    """

    cut: Cut | None = None
    trims: Mapping[str, int] = field(default_factory=dict)
    offloads: frozenset[str] = frozenset()
    thoughts: str | None = None
    nudges: Mapping[str, str] = field(default_factory=dict)
    failed: int | None = None

    def and_then(self, events: Iterable[ContextEvent]) -> Decisions:
        """These, and what more was decided.

        Raises:
            InvalidInput: What is given are no events of this package.
        """
        fields: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        fields |= {"trims": dict(self.trims), "offloads": set(self.offloads), "nudges": dict(self.nudges)}
        for event in events:
            try:
                _apply(fields, event)
            except (KeyError, TypeError, ValueError, AttributeError):
                raise InvalidInput(
                    f"{event!r} is no event of context governance: give what an earlier call returned as events, or nothing"
                ) from None
        return Decisions(**fields | {"offloads": frozenset(fields["offloads"])})


NOTHING = Decisions()


def decided(events: Sequence[ContextEvent]) -> Decisions:
    """What holds after these events. An event of a kind that a newer release knows is passed over.

    Raises:
        InvalidInput: What is given are no events of this package.
    """
    return NOTHING.and_then(events)


def _apply(fields: dict[str, Any], event: ContextEvent) -> None:
    match event["kind"]:
        case "trim":
            fields["trims"][str(event["at"])] = int(event["chars"])
        case "offload":
            fields["offloads"].add(str(event["at"]))
        case "thoughts":
            fields["thoughts"] = str(event["through"])
        case "cut":
            kept = tuple(map(str, event["kept"]))
            fields["cut"] = Cut(str(event["through"]), kept, str(event["text"]), str(event["by"]), int(event["dropped"]))
        case "nudge":
            fields["nudges"][str(event["after"])] = str(event["text"])
        case "failed":
            fields["failed"] = int(event["at"])
        case "restore":
            fields |= {"cut": None, "trims": {}, "offloads": set(), "thoughts": None, "nudges": {}, "failed": None}


def still_told(events: Iterable[ContextEvent], shown: Collection[str]) -> list[ContextEvent]:
    """The events without those about outputs and places that are not shown any more.

    Args:
        events: What was decided.
        shown: The keys of the messages that are shown.
    """
    return [event for event in events if event["kind"] not in _PLACED or event.get("at", event.get("after")) in shown]


_PLACED = frozenset({"trim", "offload", "nudge"})
