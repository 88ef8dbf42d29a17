"""A parameter that a conversation can ask for: its declaration, and what an attempt to read it from a reply gave.

Pure values, shared by the catalog (which makes them), the extractors (which read them) and the plan (which asks by them).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, time
from enum import StrEnum
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator

from langmem_ext.names import in_words

Role: TypeAlias = Literal["from", "to"]
"""Which of a pair a value is: the origin, start or pick-up (`from`), or the destination, end or return (`to`)."""

Bound: TypeAlias = str | int | float | None
"""One end of what a value may be: a time `HH:MM`, an ISO date or a number; None where that end is open."""

ExtractionStatus: TypeAlias = Literal["filled", "abstained", "dontcare", "declined", "question"]


class ParamType(StrEnum):
    """What kind of value a parameter holds; each has an extractor of its own."""

    ENUM = "enum"
    BOOLEAN = "boolean"
    INTEGER = "integer"
    NUMBER = "number"
    MONEY = "money"
    DATE = "date"
    TIME = "time"
    PLACE = "place"
    PERSON = "person"
    NAME = "name"
    ADDRESS = "address"
    EMAIL = "email"
    PHONE = "phone"
    IDENTIFIER = "identifier"
    TEXT = "text"


class Param(BaseModel):
    """The declaration of one parameter.

    Attributes:
        name: Key under which its value stands in `params`.
        type: Kind of value.
        description: What it is, in a few words; prompts and extractors use its nouns.
        prompt: The question that asks for it.
        clarified_prompt: The question after a wrong answer; empty: `prompt` with the examples.
        examples: Values as a user would write them.
        pattern: Regular expression a value must match as a whole (identifiers and text).
        enum: Allowed values, each with the synonyms users say for it.
        role: Which of a pair it is (two dates, two places), for replies that hold both.
        bounds: The lowest and the highest value: times `HH:MM`, ISO dates or numbers; an end that is None is open.
        future: Whether a date must be today or later.
        labels: What users are shown for an allowed value; without one its name in words.
        help: What is said to a user who asks what it is, or does not have it; without it the description and examples.
        default: The value that is taken when any will do for the user.
        on_declined: What happens when the user does not have it: ask again and say what it is for, go on without it where the tool can,
            hand over to the catalog's `escalate_to`, or drop the request.
        max_attempts: Wrong answers accepted before `on_exhausted`.
        on_exhausted: What happens then: hand over to the catalog's `escalate_to`, drop the plan, or go on asking.
        keep: `thread`: the value survives the request that asked for it; `plan`: it is dropped when another begins.
        sensitive: Its value never reaches logs, telemetry, titles or a search index.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    type: ParamType = ParamType.TEXT
    description: str = ""
    prompt: str = ""
    clarified_prompt: str = ""
    examples: tuple[str, ...] = ()
    pattern: str | None = None
    enum: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    role: Role | None = None
    bounds: tuple[Bound, Bound] | None = None
    future: bool = False
    labels: Mapping[str, str] = Field(default_factory=dict)
    help: str = ""
    default: JsonValue = None
    on_declined: Literal["ask", "skip", "escalate", "cancel"] = "ask"
    max_attempts: int = Field(default=3, ge=1)
    on_exhausted: Literal["escalate", "cancel", "ask"] = "escalate"
    keep: Literal["plan", "thread"] = "plan"
    sensitive: bool = False

    @field_validator("bounds", mode="before")
    @classmethod
    def _two_ends(cls, value: object) -> object:
        """Both ends as plain values; whether they fit the type is the catalog's to check, which may only infer it."""
        if value is None:
            return None
        ends = [_plain(end) for end in value] if isinstance(value, list | tuple) else []
        if len(ends) != 2 or not all(end is None or (isinstance(end, str | int | float) and not isinstance(end, bool)) for end in ends):
            raise ValueError("must be a list of two, the lowest and the highest value; either may be null")
        return tuple(ends)


def label(param: Param, value: JsonValue) -> JsonValue:
    """A value as users are shown it: an allowed value by its label, or its name in words."""
    if not param.enum or not isinstance(value, str):
        return value
    return param.labels.get(value) or in_words(value)


def _plain(end: object) -> object:
    """A date or a time of day as text."""
    if isinstance(end, time):
        return f"{end:%H:%M}"
    return end.isoformat() if type(end) is date else end


@dataclass(frozen=True, slots=True)
class Extraction:
    """What one extractor found in one reply.

    Attributes:
        status: `filled`: `value` holds it. `abstained`: nothing in the reply is a value of this parameter. `dontcare`: the user has no
            preference. `declined`: the user does not have it or will not give it. `question`: the user asked something back.
        value: The normalised value as plain JSON (dates ISO 8601 `YYYY-MM-DD`, times `HH:MM`, money and numbers as numbers).
        raw: The words of the reply it was read from, as the user wrote them; also where they were understood and not taken.
        span: Where they stand, as `[start, end)` character offsets; None when they stand nowhere ("yes" to a proposed value).
        confidence: 0 to 1.
        reason: Why, in a few words, for tests and traces; never holds the value. `out of bounds`: `raw` names a value that the parameter's
            bounds exclude. `morning or evening`: `raw` names an hour and leaves its half of the day open.
        choices: The readings of `raw` that are left open; nothing was taken.
        problem: What is wrong with a value out of bounds, as a sentence that does not hold it: "it must be between 11:00 and 23:00".
    """

    status: ExtractionStatus
    value: JsonValue = None
    raw: str = ""
    span: tuple[int, int] | None = None
    confidence: float = 0.0
    reason: str = ""
    choices: tuple[JsonValue, ...] = ()
    problem: str = ""
