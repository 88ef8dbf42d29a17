"""What a run of the benchmarks found, as it is printed and kept."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Number = Annotated[float, Field(allow_inf_nan=False)]


class Model(BaseModel):
    """What all of a record's parts have in common."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Machine(Model):
    """Where it ran: nothing that names the machine or its owner."""

    cpu: str
    cores: int
    memory_gb: Number
    system: str


class Verdict(Model):
    """An aim, and what became of it.

    Attributes:
        what: What is aimed at.
        ours: Our figure.
        against: The contender that it is compared with; None where the aim is a figure.
        theirs: Its figure.
        ratio: Ours by theirs, or theirs by ours where the aim is to be so many times better; our
            figure where nobody is compared with.
        bound: What the ratio must not exceed (`at_most`) or must reach (`at_least`); None where it
            is only told.
        sense: Which of the two.
        reached: Whether it does; None where nothing is aimed at.
    """

    what: str
    ours: Number
    against: str | None
    theirs: Number | None
    ratio: Number
    bound: Number | None
    sense: Literal["at_most", "at_least"]
    reached: bool | None


class ShapeResult(Model):
    """What one shape found.

    Attributes:
        name: The shape's.
        title: What is done, in words.
        settings: Its sizes.
        figures: Metrics by contender. `…_cpu_ms`, `…_wall_ms`: medians; `…_p99_ms`: wall; `…@n`: at
            turn n.
        errors: What went wrong, by contender.
        verdicts: Its aims.
        load: The machine's load average (one minute) when it began and when it ended.
        seconds: How long it took.
    """

    name: str
    title: str
    settings: dict[str, object]
    figures: dict[str, dict[str, Number]]
    errors: dict[str, str]
    verdicts: list[Verdict]
    load: tuple[Number, Number]
    seconds: Number


class Record(Model):
    """A whole run."""

    format: Literal[1] = 1
    date: str
    commit: str | None
    machine: Machine
    versions: dict[str, str]
    shapes: list[ShapeResult]
