"""What was decided about a thread's messages, as events: plain JSON, kept beside the messages, never in them.

| event | says |
|---|---|
| `{"kind": "trim", "at": key, "chars": n}` | of this tool output so many characters are shown |
| `{"kind": "offload", "at": key}` | of this tool output its beginning and its end are shown, with a reference to the rest |
| `{"kind": "thoughts", "through": key}` | the reasoning of messages up to this one is left out |
| `{"kind": "cut", "through": key, "place": n, "kept": [key, …], "text": …, "by": …, "known": …, "at": n, "covers": [key, …], "dropped": n}` | up to this message, the `n`th, only those kept are shown; the text replaces the others, those covered for the first time; what is known of the request is told behind it |
| `{"kind": "nudge", "after": key, "text": …}` | after this message the model is warned that it repeats itself |
| `{"kind": "failed", "at": n}` | a summary failed when the thread had so many messages |
| `{"kind": "restore"}` | nothing that was decided before holds any more |

A request is a function of the messages and these. So long as no event is added, it begins with the
request before it, byte for byte; a fork of a thread inherits them with its state; and a `restore`
brings everything back, because nothing was ever taken away. What a cut has made void is not carried
along, so that a thread may be cut a thousand times.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from langchain_core.messages import BaseMessage

from langmem_ext.errors import InvalidInput

ContextEvent: TypeAlias = dict[str, Any]
RESTORE: Final[ContextEvent] = {"kind": "restore"}


def key_of(message: BaseMessage, position: int) -> str:
    """The key of a message in events: its id, or its position if it has no usable id.

    An id that looks like a position is not usable.
    """
    return message.id if message.id and message.id[0] != "@" else f"@{position}"


@dataclass(frozen=True, slots=True)
class Cut:
    """Where the shown part of a thread begins.

    Attributes:
        through: The last message that is not shown.
        kept: The messages up to it that are shown nevertheless.
        text: What replaces the others; empty for nothing.
        by: Who wrote the text: `marker`, `extract`, `model`; `compact` for what a model wrote of
            the whole thread.
        dropped: How many messages it replaces.
        known: The known values of the user's request, behind the text.
        place: The position of the last message that is not shown; None if it was not recorded.
        at: How many messages the thread had when it was cut.
    """

    through: str
    kept: tuple[str, ...]
    text: str
    by: str
    dropped: int
    known: str = ""
    place: int | None = None
    at: int = 0


@dataclass(frozen=True, slots=True)
class Decisions:
    """What holds of all that was decided.

    Attributes:
        cut: The newest one.
        trims: How many characters are shown of a tool output.
        offloads: The tool outputs of which a preview is shown.
        thoughts: The last message whose reasoning is left out.
        nudges: Warnings to the model after a message.
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
        fields |= {
            "trims": dict(self.trims),
            "offloads": set(self.offloads),
            "nudges": dict(self.nudges),
        }
        for event in events:
            try:
                _apply(fields, event)
            except (KeyError, TypeError, ValueError, AttributeError):
                raise InvalidInput(
                    f"{event!r} is not an event of context governance: pass the events that an"
                    " earlier call returned, or nothing"
                ) from None
        return Decisions(**fields | {"offloads": frozenset(fields["offloads"])})


NOTHING = Decisions()


def decided(events: Sequence[ContextEvent]) -> Decisions:
    """What holds after these events. An event of a kind that a newer release knows is skipped.

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
            fields["cut"] = Cut(
                str(event["through"]),
                kept,
                str(event["text"]),
                str(event["by"]),
                int(event["dropped"]),
                known=str(event.get("known", "")),
                place=int(event["place"]) if "place" in event else None,
                at=int(event.get("at", 0)),
            )
        case "nudge":
            fields["nudges"][str(event["after"])] = str(event["text"])
        case "failed":
            fields["failed"] = int(event["at"])
        case "restore":
            fields |= {
                "cut": None,
                "trims": {},
                "offloads": set(),
                "thoughts": None,
                "nudges": {},
                "failed": None,
            }


def in_force(events: Sequence[ContextEvent], shown: Collection[str]) -> list[ContextEvent]:
    """The events still in force: the newest of a kind that replaces, none from before a restore.

    Args:
        events: What was decided.
        shown: The keys of the messages that are shown: what was decided about others does not
            matter any more.
    """
    kept: list[ContextEvent] = []
    newest: set[str] = set()
    for event in reversed(events):
        kind = event["kind"]
        if kind == RESTORE["kind"]:
            break
        if kind in newest or (kind in _PLACED and event.get("at", event.get("after")) not in shown):
            continue
        if kind in _SINGLE:
            newest.add(kind)
        kept.append(event)
    return kept[::-1]


_PLACED: Final = frozenset({"trim", "offload", "nudge"})
_SINGLE: Final = frozenset({"cut", "thoughts", "failed"})
