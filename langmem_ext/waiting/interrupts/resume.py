"""What a resume value means to a question of ours, in whichever client's form it comes.

One table of shapes (`_SHAPES`): words, values by parameter, MCP elicitation, decisions of
LangChain's `HumanInTheLoopMiddleware`, answers of the Agent Inbox, AG-UI's resume entries and what
its bridge to LangGraph makes of them, and messages of A2A. What is of none of these is refused.

Pure and total: nothing but the refusal is raised, whatever a value is. A node that fails once its
question was answered is run again with the same answer for ever, so nothing may fail after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

from langchain_core.messages import BaseMessage, HumanMessage
from pydantic import JsonValue

from langmem_ext._internal.json import json_value
from langmem_ext._internal.names import in_words
from langmem_ext.errors import InvalidInput
from langmem_ext.messages.annotations import NAMESPACE, moment_in, notes_of
from langmem_ext.types import CONFIRMATION
from langmem_ext.waiting.policy.value_text import in_text

_DEPTH: Final = 8
"""Shapes inside one another that are followed."""

_WRAPPERS: Final = ("text", "content", "value", "answer", "args")
"""Keys under which clients put an answer: one, beside nothing that may say something else."""
_BESIDE: Final = frozenset(
    {"type", "kind", "role", "id", NAMESPACE, "name", "example", "index", "annotations"}
    | {"extras", "metadata", "additional_kwargs", "response_metadata", "mediaType", "filename"}
    | {"messageId", "contextId", "taskId", "referenceTaskIds", "extensions"}
    | {"message_id", "context_id", "task_id", "reference_task_ids", "media_type"}
    | {"interruptId", "interrupt_id", "requestState", "_meta"}
)
"""What an answer, a message or a block of text has beside what it says: no words."""

Act: TypeAlias = Literal["words", "values", "decline", "cancel"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a client's answer means.

    Attributes:
        act: The user said words, gave values, will not answer, or drops the request.
        text: The words; of any other act its text in the log.
        values: The values, by parameter.
        approved: Whether the values come with a yes: who edits a call approves what it becomes.
    """

    act: Act
    text: str
    values: Mapping[str, JsonValue] = field(default_factory=dict)
    approved: bool = False

    def note(self) -> dict[str, JsonValue] | None:
        """What is noted on the user's message; None for words, which say it themselves.

        No approval: anybody may write a note.
        """
        if self.act == "words":
            return None
        return {"act": self.act, "values": dict(self.values)}


@dataclass(frozen=True, slots=True)
class Expected:
    """What a question of ours takes.

    Attributes:
        param: What is asked for.
        names: The parameters that may be given as values; none where what is asked is sensitive.
        says_yes: Whether yes is an answer: to a confirmation, or to a value that is proposed.
        id: The interrupt's id; empty where it is not known.
        tool: The tool as whose call the question is shown.
    """

    param: str
    names: frozenset[str] = frozenset()
    says_yes: bool = False
    id: str = ""
    tool: str = ""

    def is_of(self, name: object) -> bool:
        """Whether an edit is of the call that is shown: of no other tool."""
        return name in (None, self.tool)

    @classmethod
    def by(cls, payload: Mapping[str, Any], interrupt_id: str = "") -> Expected:
        """What the question with this payload takes."""
        action, schema = payload.get("action_request"), payload.get("response_schema")
        args = action["args"] if isinstance(action, Mapping) else {}
        fields = schema["properties"] if isinstance(schema, Mapping) else {}
        says_yes = payload.get("reason") == CONFIRMATION or bool(args.get(payload["param"]))
        tool = action.get("action", "") if isinstance(action, Mapping) else ""
        return cls(payload["param"], frozenset((*args, *fields)), says_yes, interrupt_id, tool)


def read_answer(value: object, expected: Expected) -> Answer | None:
    """What a resume value means.

    Args:
        value: The value, as a client gives it.
        expected: What the question takes.

    Returns:
        The answer; None where it says nothing, or answers an earlier question: it is asked again.

    Raises:
        InvalidInput: It is of no shape that is known. The message does not quote it.
    """
    try:
        return _read(value, expected, _DEPTH)
    except InvalidInput:
        raise
    except Exception:  # whatever a foreign object does when it is looked at
        raise _refusal(expected) from None


def resumed_id(value: object) -> str | None:
    """The message id that a resume value brings along."""
    if isinstance(value, BaseMessage):
        return value.id or None
    message_id = value.get("id") if isinstance(value, dict) else None
    return message_id if isinstance(message_id, str) and message_id else None


def resumed_message(value: object) -> HumanMessage | None:
    """The user's message that a resume value brings along, where it is more than text."""
    message = value.get("message") if isinstance(value, dict) else None
    return message if isinstance(message, HumanMessage) else None


def resumed_moment(value: object) -> datetime | None:
    """When the answer was written, if the resume value says so."""
    return moment_in(_notes(value).get("at"))


def is_unseen(value: object) -> bool:
    """Whether the resume value says that its words were written before the question was asked."""
    return _notes(value).get("unseen") is True


def _notes(value: object) -> Mapping[str, Any]:
    """What `converse` notes beside an answer."""
    return notes_of({"additional_kwargs": value})


def _read(value: Any, expected: Expected, depth: int) -> Answer | None:
    if depth == 0:
        raise _refusal(expected)
    if value is None or (isinstance(value, str | list | tuple | Mapping) and not value):
        return None
    for shape in _SHAPES:
        for answer in shape(value, expected, depth - 1):
            return answer
    raise _refusal(expected)


def _refusal(expected: Expected) -> InvalidInput:
    names = [expected.param, *sorted(expected.names - {expected.param})]
    values = ", ".join(f'"{name}": …' for name in names)
    return InvalidInput(
        f"this is no answer to the question for {expected.param!r}: give words as text, values as "
        f'{{{values}}}, or {{"action": "decline"}} or {{"action": "cancel"}}. Nothing was changed'
    )


# -- what an answer may be -----------------------------------------------------------------------


def _words(text: str) -> Answer | None:
    storable = text.encode("utf-8", "replace").decode().strip()
    return Answer("words", storable) if storable else None


def _approved(expected: Expected) -> Answer | None:
    """Yes to what is shown; where nothing is, the question is asked again."""
    return Answer("words", "yes") if expected.says_yes else None


def _declined(expected: Expected) -> Answer:
    return Answer("decline", "no" if expected.param == CONFIRMATION else "I'd rather not say.")


_CANCELLED: Final = Answer("cancel", "cancel")


def _values(
    values: Mapping[str, Any], expected: Expected, *, approved: bool = False
) -> Answer | None:
    """The answer that gives values by parameter; empty values are left out."""
    if not values.keys() <= expected.names | {expected.param, CONFIRMATION}:
        raise _refusal(expected)
    known = {
        name: json_value(value, name)
        for name, value in values.items()
        if value not in (None, "", [], {})
    }
    if CONFIRMATION in known:
        word = in_text(known.pop(CONFIRMATION)).strip().lower()
        approved = word in ("yes", "true")
        if not approved:
            return _words("no" if word == "false" else word)
    if not known:
        return _approved(expected) if approved else None
    if not expected.names:
        return _words(in_text(known[expected.param]))
    phrases = [
        in_text(value) if name == expected.param else f"{in_words(name)} {in_text(value)}"
        for name, value in known.items()
    ]
    return Answer("values", ", ".join(phrases).encode("utf-8", "replace").decode(), known, approved)


# -- the table of shapes: each gives the answer, or nothing where a value is not of its shape ----


def _plain(value: Any, expected: Expected, depth: int) -> Iterator[Answer | None]:
    """Text, a number, a truth value, a message of LangChain."""
    if isinstance(value, str | int | float):
        yield _words(value if isinstance(value, str) else in_text(json_value(value, "an answer")))
    elif isinstance(value, BaseMessage):
        yield _read(value.content, expected, depth)


def _listed(value: Any, expected: Expected, depth: int) -> Iterator[Answer | None]:
    """A list of one, as the Agent Inbox and AG-UI send it; parts of a message."""
    if not isinstance(value, list | tuple):
        return
    answers = [answer for item in value if (answer := _read(item, expected, depth)) is not None]
    acts = [answer for answer in answers if answer.act != "words"]
    if not acts:
        yield _words(", ".join(answer.text for answer in answers))
    elif len(answers) == 1 or (len(acts) == 1 and not acts[0].approved):
        yield acts[0]  # words beside an approval may take it back: it stands alone


def _alone(beside: Mapping[Any, object], *known: str) -> bool:
    """Whether what stands beside an answer says nothing: "no" beside a yes would be lost."""
    return all(key in _BESIDE or key in known or beside[key] is None for key in beside)


def _by_name(value: Any, expected: Expected, depth: int) -> Iterator[Answer | None]:
    """Values by parameter: a form's content, AG-UI's payload."""
    if isinstance(value, Mapping) and value.keys() <= expected.names | {expected.param}:
        yield _values(value, expected)


def _elicited(value: Any, expected: Expected, depth: int) -> Iterator[Answer | None]:
    """MCP: the answer to an elicitation, alone or by the key of its question."""
    match value:
        case {"action": "accept", "content": Mapping() as content, **more} if _alone(more):
            if CONFIRMATION in content and len(content) > 1:
                raise _refusal(expected)  # the form of a confirmation takes a yes alone
            yield _values(content, expected)
        case {"action": "accept", **more} if _alone(more):
            yield _approved(expected)
        case {"action": "decline"}:
            yield _declined(expected)
        case {"action": "cancel"}:
            yield _CANCELLED
        case {"responses": Mapping() as responses, **more} | {
            "inputResponses": Mapping() as responses,
            **more,
        } if _alone(more):
            if [*responses] == [expected.param]:
                yield _read(responses[expected.param], expected, depth)
            elif responses.keys() <= expected.names - {expected.param}:
                yield None  # an earlier question of the same request


def _decided(value: Any, expected: Expected, depth: int) -> Iterator[Answer | None]:
    """LangChain: a decision on the tool call as which the question is shown."""
    match value:
        case {"decisions": [decision], **more} if _alone(more):
            yield _read(decision, expected, depth)
        case {"type": "approve", **more} if _alone(more):
            yield _approved(expected)
        case {"type": "edit", "edited_action": {"args": Mapping() as args, **call}, **more} if (
            expected.is_of(call.get("name")) and _alone(call) and _alone(more)
        ):
            yield _values(args, expected, approved=True)
        case {"type": "respond", "message": str(words)}:
            yield _words(words)
        case {"type": "reject", "message": str(words)} if words.strip():
            yield _words(f"no, {words}" if expected.says_yes else words)
        case {"type": "reject"}:
            yield _words("no") if expected.says_yes else _declined(expected)


def _from_inbox(value: Any, expected: Expected, depth: int) -> Iterator[Answer | None]:
    """The Agent Inbox."""
    match value:
        case {"type": "response", "args": str(words)}:
            yield _words(words)
        case {"type": "edit" | "accept", "args": {"args": Mapping() as args, **call}, **more} if (
            expected.is_of(call.get("action")) and _alone(call, "action") and _alone(more)
        ):
            yield _values(args, expected, approved=True)
        case {"type": "accept", "args": None, **more} if _alone(more):
            yield _approved(expected)
        case {"type": "ignore"}:
            yield _declined(expected)


def _entered(value: Any, expected: Expected, depth: int) -> Iterator[Answer | None]:
    """AG-UI: an entry of `resume`, or what its bridge to LangGraph makes of one or of several."""
    match value:
        case {"__agui_resume_map__": Mapping() as entries, **more} if _alone(more):
            only = next(iter(entries.values())) if len(entries) == 1 and not expected.id else None
            yield _read(entries.get(expected.id, only), expected, depth)
        case {"__agui_cancelled__": True, "interrupt_id": str(name)} | {
            "interruptId": str(name)
        } if expected.id not in ("", name):
            yield None  # an entry for an earlier question
        case {"__agui_cancelled__": True} | {"status": "cancelled"}:
            yield _CANCELLED
        case {"status": "resolved", **more} if _alone(more, "payload"):
            yield _read(more.get("payload"), expected, depth)


def _sent(value: Any, expected: Expected, depth: int) -> Iterator[Answer | None]:
    """A2A: a message's parts."""
    match value:
        case {"parts": list(parts), **more} if _alone(more):
            yield _read(parts, expected, depth)
        case {"data": Mapping() as data, **more} if _alone(more):
            yield _read(data, expected, depth)


def _wrapped(value: Any, expected: Expected, depth: int) -> Iterator[Answer | None]:
    """An answer under a usual key; a message, or a block of its text, as JSON."""
    if isinstance(value, Mapping) and value.get("type", "text") in ("text", "human"):
        whole = resumed_message(value)
        match [key for key in value if key not in _BESIDE and value[key] is not whole]:
            case [key] if key in _WRAPPERS:
                yield _read(value[key], expected, depth)


Shape: TypeAlias = Callable[[Any, Expected, int], Iterator[Answer | None]]

_SHAPES: Final[tuple[Shape, ...]] = (
    _plain,
    _listed,
    _by_name,
    _elicited,
    _decided,
    _from_inbox,
    _entered,
    _sent,
    _wrapped,
)
"""The shapes that are known; the first that a value has counts."""
