"""A parameter that a conversation can ask for: its declaration, and what an attempt to read it from a reply gave.

Pure values, shared by the catalog (which makes them), the extractors (which read them) and the plan (which asks by them).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, JsonValue

Role: TypeAlias = Literal["from", "to"]
"""Which of a pair a value is: the origin, start or pick-up (`from`), or the destination, end or return (`to`)."""

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
    max_attempts: int = Field(default=3, ge=1)
    on_exhausted: Literal["escalate", "cancel", "ask"] = "escalate"
    keep: Literal["plan", "thread"] = "plan"
    sensitive: bool = False


@dataclass(frozen=True, slots=True)
class Extraction:
    """What one extractor found in one reply.

    Attributes:
        status: `filled`: `value` holds it. `abstained`: nothing in the reply is a value of this parameter. `dontcare`: the user has no
            preference. `declined`: the user does not have it or will not give it. `question`: the user asked something back.
        value: The normalised value as plain JSON (dates ISO 8601 `YYYY-MM-DD`, times `HH:MM`, money and numbers as numbers).
        raw: The words of the reply it was read from, as the user wrote them.
        span: Where they stand, as `[start, end)` character offsets; None when they stand nowhere ("yes" to a proposed value).
        confidence: 0 to 1.
        reason: Why, in a few words, for tests and traces; never holds the value.
    """

    status: ExtractionStatus
    value: JsonValue = None
    raw: str = ""
    span: tuple[int, int] | None = None
    confidence: float = 0.0
    reason: str = ""
