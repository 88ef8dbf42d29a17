"""A parameter that a conversation can ask for, and the result of reading it from a reply.

Pure values, shared by the catalog (which makes them), the extractors (which read them) and the plan
(which asks by them).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time
from difflib import get_close_matches
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    PrivateAttr,
    field_validator,
)

from langmem_ext._internal.names import in_words
from langmem_ext.errors import InvalidInput

if TYPE_CHECKING:
    from langmem_ext.waiting.extract.reply import Reply

Role: TypeAlias = Literal["from", "to"]
"""Which of a pair a value is: the origin, start or pick-up (`from`), or the destination, end or
return (`to`)."""

Bound: TypeAlias = str | int | float | None
"""One end of what a value may be: a time `HH:MM`, an ISO date or a number; None where that end is
open."""

Extractor: TypeAlias = Callable[["Param", "Reply"], Iterable["Extraction"]]
"""Reads the values of one type from a reply: for each, an `Extraction` that is `filled`, with its
`span` and its `confidence`. It must be pure: no I/O, and the same result for the same arguments."""

Normaliser: TypeAlias = Callable[[Any], JsonValue]
"""Converts a value to its stored form; raises ValueError if it is invalid."""

Validator: TypeAlias = Callable[[Any], str | None]
"""What is wrong with a value, as a sentence for the user that does not contain it; None if
valid."""

ExtractionStatus: TypeAlias = Literal["filled", "abstained", "dontcare", "declined", "question"]


class ParamType(StrEnum):
    """The kinds of values of parameters; each has its own extractor and normal form.

    Attributes:
        ENUM: One of `enum`, as listed there; with `open_values` also other words.
        BOOLEAN: A truth value.
        INTEGER: A whole number.
        NUMBER: A number.
        MONEY: A number; the currency is the parameter's.
        DATE: `YYYY-MM-DD`.
        TIME: `HH:MM`, on a clock of 24 hours.
        DATETIME: `YYYY-MM-DDTHH:MM`, on the user's clock, without a time zone.
        DURATION: A number of the parameter's `units`; without these an ISO 8601 duration
            (`PT1H30M`).
        PLACE: The name of a place.
        PERSON: A person's name.
        NAME: The name of something else.
        ADDRESS: A postal address.
        EMAIL: An e-mail address.
        PHONE: A telephone number.
        URL: A web address with its scheme: `https://www.example.com/x`.
        IDENTIFIER: A code that matches `pattern`, or does not look like a word.
        TEXT: Any text.
    """

    ENUM = "enum"
    BOOLEAN = "boolean"
    INTEGER = "integer"
    NUMBER = "number"
    MONEY = "money"
    DATE = "date"
    TIME = "time"
    DATETIME = "datetime"
    DURATION = "duration"
    PLACE = "place"
    PERSON = "person"
    NAME = "name"
    ADDRESS = "address"
    EMAIL = "email"
    PHONE = "phone"
    URL = "url"
    IDENTIFIER = "identifier"
    TEXT = "text"


_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def _as_seconds(value: object) -> object:
    """A length of time in seconds: "30m", "2h", "3d", or a number of seconds."""
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smhdw]?)\s*", value)
    if match is None:
        raise ValueError("must be a number of seconds, or a duration like '30m', '2h' or '3d'")
    return float(match[1]) * _SECONDS[match[2] or "s"]


Seconds: TypeAlias = Annotated[
    float, BeforeValidator(_as_seconds), Field(gt=0, allow_inf_nan=False)
]


@dataclass(frozen=True, slots=True)
class Extensions:
    """Functions of the application, by their names in a catalog.

    Attributes:
        extractors: Types of parameters: `type: iban`. The name of a built-in type replaces its own.
        validators: What parameters name as their `validator`.
        normalisers: What parameters name as their `normaliser`.
    """

    extractors: Mapping[str, Extractor] = field(default_factory=dict)
    validators: Mapping[str, Validator] = field(default_factory=dict)
    normalisers: Mapping[str, Normaliser] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what cannot be called.

        Raises:
            InvalidInput: Something is no function: every one is named.
        """
        wrong = [
            f"{kind}[{name!r}]"
            for kind in ("extractors", "validators", "normalisers")
            for name, function in getattr(self, kind).items()
            if not callable(function)
        ]
        if wrong:
            raise InvalidInput(f"{', '.join(wrong)}: pass a function")


NONE: Final = Extensions()


class Param(BaseModel):
    """The declaration of one parameter.

    Attributes:
        name: Key of its value in `params`.
        type: Kind of value, or the name of an extractor passed to `build_waiting_graph`.
        description: What it is, in a few words; prompts and extractors use its nouns.
        prompt: The question that asks for it.
        clarified_prompt: The question after a wrong answer; empty: `prompt` with the examples.
        examples: Values as a user would write them.
        pattern: Regular expression a value must match as a whole (identifiers and text).
        enum: Allowed values, each with the synonyms users say for it.
        open_values: Whether values outside of `enum` are accepted.
        units: The unit of a number ("minutes", "kg", "EUR"). A duration with units is a number of
            them, else ISO 8601 (`PT1H30M`).
        validator: Name of a function passed to `build_waiting_graph`; it returns what is wrong with
            a value.
        normaliser: Name of a function passed to `build_waiting_graph`; it converts a value to the
            stored form.
        role: Which of a pair it is (two dates, two places), for messages with both.
        bounds: The lowest and the highest value: times `HH:MM` (also of a datetime), ISO dates,
            ISO durations (`PT1H`) or numbers; None: no limit.
        future: Whether a date must be today or later, a datetime later than now.
        labels: What users see for an allowed value. Default: its name in words.
        help: The answer to a user who asks what it is, or does not have it. Default: the
            description and examples.
        default: The value to use if any value will do for the user.
        on_declined: What happens when the user does not have it: ask again and say what it is for,
            continue without it if the tool allows that, hand over to the catalog's `escalate_to`,
            or cancel the request.
        min_confidence: Below this confidence (0 to 1) a value is confirmed before it counts: "Did
            you mean Springfield?". Default: by type, see `doubtful_below`. A sensitive value is
            never shown for that.
        timeout: Seconds, or "30m", "2h", "3d", after which an unanswered question has expired: the
            user who comes back is asked whether to continue. Default: the catalog's.
        max_attempts: Wrong answers accepted before `on_exhausted`.
        on_exhausted: What happens then: hand over to the catalog's `escalate_to`, cancel the
            request, or keep asking.
        keep: `thread`: the value outlives its request; `plan`: it is dropped when another request
            starts.
        sensitive: Its value never reaches logs, telemetry, titles or a search index.
        local_only: Whether only rules read it: the model does not see the parameter, its values, or
            the answers to its question.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    type: Annotated[ParamType | str, Field(union_mode="left_to_right")] = ParamType.TEXT
    description: str = ""
    prompt: str = ""
    clarified_prompt: str = ""
    examples: tuple[str, ...] = ()
    pattern: str | None = None
    enum: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    open_values: bool = False
    units: str = ""
    validator: str | None = None
    normaliser: str | None = None
    role: Role | None = None
    bounds: tuple[Bound, Bound] | None = None
    future: bool = False
    labels: Mapping[str, str] = Field(default_factory=dict)
    help: str = ""
    default: JsonValue = None
    on_declined: Literal["ask", "skip", "escalate", "cancel"] = "ask"
    min_confidence: float | None = Field(default=None, ge=0, le=1)
    timeout: Seconds | None = None
    max_attempts: int = Field(default=3, ge=1)
    on_exhausted: Literal["escalate", "cancel", "ask"] = "escalate"
    keep: Literal["plan", "thread"] = "plan"
    sensitive: bool = False
    local_only: bool = False

    _extractor: Extractor | None = PrivateAttr(default=None)
    _validate: Validator | None = PrivateAttr(default=None)
    _normalise: Normaliser | None = PrivateAttr(default=None)

    @field_validator("type")
    @classmethod
    def _no_slip(cls, value: ParamType | str) -> ParamType | str:
        """Other names are types of the application, but not one that is nearly a built-in one."""
        types = [kind.value for kind in ParamType]
        if near := get_close_matches(value, types, n=1, cutoff=0.8) if value not in types else ():
            raise ValueError(f"unknown type {value!r}; did you mean {near[0]!r}?")
        return value

    @field_validator("bounds", mode="before")
    @classmethod
    def _two_ends(cls, value: object) -> object:
        """Both ends as plain values, not checked against the type.

        The catalog checks them, because it may have to infer the type first.
        """
        if value is None:
            return None
        ends = [_plain(end) for end in value] if isinstance(value, list | tuple) else []
        if len(ends) != 2 or not all(
            end is None or (isinstance(end, str | int | float) and not isinstance(end, bool))
            for end in ends
        ):
            raise ValueError(
                "must be a list of two: the lowest and the highest value, either may be null"
            )
        return tuple(ends)

    @property
    def extractor(self) -> Extractor | None:
        """The application's function that reads its type; None for what is built in."""
        return self._extractor

    def with_extensions(self, extensions: Extensions) -> Self:
        """The same, with the application's functions that it names, as far as they are there."""
        own = self.model_copy()
        own._extractor = extensions.extractors.get(self.type)
        own._validate = extensions.validators.get(self.validator or "")
        own._normalise = extensions.normalisers.get(self.normaliser or "")
        return own

    def normalised(self, value: JsonValue) -> JsonValue:
        """The value as it is stored.

        Raises:
            ValueError: The parameter's normaliser refuses it.
        """
        return value if self._normalise is None else self._normalise(value)

    def problem_with(self, value: JsonValue) -> str | None:
        """What the parameter's validator finds wrong with a value; None if nothing."""
        return None if self._validate is None else self._validate(value)


_DOUBTFUL: Mapping[str, float] = {
    ParamType.TEXT: 0.4,
    ParamType.NAME: 0.5,
    ParamType.PLACE: 0.5,
    ParamType.PERSON: 0.56,
    ParamType.DATETIME: 0.55,
    ParamType.ENUM: 0.5,
}
"""Types of which nearly any words may be a value, or mean one: where nothing in a reply marks it,
it is confirmed."""


def doubtful_below(param: Param) -> float:
    """The confidence below which a value of this parameter is confirmed before it counts."""
    return _DOUBTFUL.get(param.type, 0.0) if param.min_confidence is None else param.min_confidence


_CODE = re.compile(r"_|[a-z][A-Z]")
"""In names of allowed values that are written for programs: `wrong_item`, `notWanted`."""


def label(param: Param, value: JsonValue) -> JsonValue:
    """A value as users are shown it: an allowed value by its label, or its name in words."""
    if not isinstance(value, str):
        return value
    if param.enum and (value in param.enum or not param.open_values):
        return param.labels.get(value) or (in_words(value) if _CODE.search(value) else value)
    if param.type == ParamType.DATETIME:
        return value.replace("T", " ")
    return _length_in_words(value) if param.type == ParamType.DURATION else value


def _length_in_words(value: str) -> str:
    """An ISO duration as users say it: "1 hour 30 minutes"; any other text stays as it is."""
    match = ISO_DURATION.fullmatch(value)
    counts = (
        [(name.rstrip("s"), count) for name, count in match.groupdict().items() if count]
        if match
        else []
    )
    return (
        " ".join(f"{count} {unit}{'' if count == '1' else 's'}" for unit, count in counts) or value
    )


ISO_DURATION: Final = re.compile(
    r"P(?=.)(?:(?P<years>\d+)Y)?(?:(?P<months>\d+)M)?(?:(?P<weeks>\d+)W)?(?:(?P<days>\d+)D)?"
    r"(?:T(?=.)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+)S)?)?"
)
"""A duration as ISO 8601 writes it."""


def _plain(end: object) -> object:
    """A date, a moment or a time of day as text."""
    if isinstance(end, time):
        return f"{end:%H:%M}"
    if isinstance(end, datetime):
        return f"{end:%Y-%m-%dT%H:%M}"
    return end.isoformat() if isinstance(end, date) else end


@dataclass(frozen=True, slots=True)
class Extraction:
    """The result of an extractor for one reply.

    Attributes:
        status: `filled`: `value` holds it. `abstained`: nothing in the reply is a value of this
            parameter. `dontcare`: the user has no preference. `declined`: the user does not have it
            or will not give it. `question`: the user asked something back.
        value: The normalised value as plain JSON (dates ISO 8601 `YYYY-MM-DD`, times `HH:MM`, money
            and numbers as numbers).
        raw: The words of the reply that it was read from, as written; also if they were understood
            and not used.
        span: Their position, as `[start, end)` character offsets; None if not in the reply.
        confidence: 0 to 1.
        reason: Why, in a few words, for tests and traces; never holds the value. `out of bounds`:
            `raw` names a value that the parameter's bounds exclude. `morning or evening`: `raw`
            names an hour and leaves its half of the day open.
        choices: The readings of `raw` that are left open; nothing was taken.
        problem: What is wrong with a value out of bounds, as a sentence that does not hold it: "it
            must be between 11:00 and 23:00".
        half: What was said of a value that is not whole: the day of a moment, without its time.
    """

    status: ExtractionStatus
    value: JsonValue = None
    raw: str = ""
    span: tuple[int, int] | None = None
    confidence: float = 0.0
    reason: str = ""
    choices: tuple[JsonValue, ...] = ()
    problem: str = ""
    half: str = ""
