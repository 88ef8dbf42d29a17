"""The steps of a thread as a tree: which follows which, what ran in each, where it forked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from langmem_ext.inspector.sources.source import Step, StepFacts

WINDOW: Final = 40
"""Steps that a page shows."""

ABOVE: Final = 12
"""Steps that are shown above the one that is looked at."""

LANE: Final = 14
"""Pixels from one branch to the next."""

HEIGHT: Final = 36
"""Pixels of a step's row."""

MOST_LANES: Final = 8
"""Branches side by side that are told apart."""


@dataclass(frozen=True, slots=True)
class Line:
    """A piece of a branch in a step's row, as an SVG path; `own`: it leads to the shown step."""

    path: str
    own: bool


@dataclass(frozen=True, slots=True)
class Row:
    """A step as the timeline shows it.

    Attributes:
        step: The step.
        label: The nodes that ran, or what else made it.
        at: When it was made.
        x: Where its dot is.
        lines: The branches that pass.
        own: Whether the step that is looked at is this one, or follows it.
        current: Whether it is the one.
        head: Whether it is the newest of the thread.
        asked: Whether a question was asked at it.
        tip: Whether nothing follows it.
    """

    step: Step
    label: str
    at: datetime | None
    x: float
    lines: tuple[Line, ...]
    own: bool
    current: bool
    head: bool
    asked: bool
    tip: bool


@dataclass(frozen=True, slots=True)
class Timeline:
    """A window of a thread's steps.

    Attributes:
        rows: The steps, the newest first.
        total: How many the thread has.
        first: The place of the first one that is shown.
        newer, older: Ids of steps around which the window above and below is; None where there is
        none.
        width: Pixels of the tree.
        previous, following: Ids of the step that the looked-at one follows, and of the newest that
        follows it.
        branches: How many steps nothing follows.
    """

    rows: tuple[Row, ...]
    total: int
    first: int
    newer: str | None
    older: str | None
    width: int
    previous: str | None
    following: str | None
    branches: int


def window_of(steps: Sequence[Step], at: str) -> slice:
    """Which steps are shown when one is looked at."""
    place = next((place for place, step in enumerate(steps) if step.id == at), 0)
    first = max(min(place - ABOVE, len(steps) - WINDOW), 0)
    return slice(first, first + WINDOW)


def ancestors_of(steps: Sequence[Step], at: str) -> list[str]:
    """The step and those before it, back to the first."""
    parents = {step.id: step.parent for step in steps}
    chain: list[str] = []
    here: str | None = at
    while here is not None and here in parents:
        chain.append(here)
        here = parents.pop(here)
    return chain


def timeline_of(steps: Sequence[Step], facts: Mapping[str, StepFacts], at: str) -> Timeline:
    """The steps around one of them, as a tree.

    Args:
        steps: All of them, the newest first.
        facts: What those that are shown say, and those that they follow.
        at: The one that is looked at.
    """
    shown = window_of(steps, at)
    chain = ancestors_of(steps, at)
    own = frozenset(chain)
    followed = {step.parent for step in steps}
    lanes: list[str | None] = []
    rows: list[Row] = []
    widest = 1
    for place, step in enumerate(steps[: shown.stop]):
        lane, lines, lanes = _pass(lanes, step, own, drawn=place >= shown.start)
        if place < shown.start:
            continue
        widest = max(widest, lane + 1, len(lanes))
        fact = facts.get(step.id)
        rows.append(
            Row(
                step=step,
                label=label_of(step, facts),
                at=None if fact is None else fact.at,
                x=_x(lane),
                lines=tuple(lines),
                own=step.id in own,
                current=step.id == at,
                head=place == 0,
                asked=fact is not None
                and any(write.channel == "__interrupt__" for write in fact.written),
                tip=step.id not in followed,
            )
        )
    return Timeline(
        rows=tuple(rows),
        total=len(steps),
        first=shown.start,
        newer=steps[max(shown.start - WINDOW + ABOVE, 0)].id if shown.start else None,
        older=(
            steps[min(shown.stop + ABOVE, len(steps) - 1)].id if shown.stop < len(steps) else None
        ),
        width=LANE * min(widest, MOST_LANES) + 6,
        previous=chain[1] if len(chain) > 1 else None,
        following=next((step.id for step in steps if step.parent == at), None),
        branches=sum(step.id not in followed for step in steps),
    )


def _pass(
    lanes: list[str | None], step: Step, own: frozenset[str], *, drawn: bool
) -> tuple[int, list[Line], list[str | None]]:
    """Go past a step: its lane, the lines of its row, and what each lane waits for below it."""
    arriving = [lane for lane, awaited in enumerate(lanes) if awaited == step.id]
    free = next((lane for lane, awaited in enumerate(lanes) if awaited is None), len(lanes))
    lane = arriving[0] if arriving else free
    lines: list[Line] = []
    middle = HEIGHT / 2
    if drawn:
        for place, awaited in enumerate(lanes):
            if awaited is None:
                continue
            if awaited == step.id:
                lines.append(
                    Line(_curve(_x(place), 0, _x(lane), middle), step.id in own and place == lane)
                )
            else:
                lines.append(
                    Line(
                        f"M{_x(place)} 0V{HEIGHT}",
                        awaited in own and awaited != step.id and _is_own_lane(lanes, place, own),
                    )
                )
        if step.parent is not None:
            lines.append(Line(f"M{_x(lane)} {middle}V{HEIGHT}", step.id in own))
    below = [None if awaited == step.id else awaited for awaited in lanes]
    if lane == len(below):
        below.append(None)
    below[lane] = step.parent
    while below and below[-1] is None:
        below.pop()
    return lane, lines, below


def _is_own_lane(lanes: Sequence[str | None], place: int, own: frozenset[str]) -> bool:
    """Whether a lane is drawn as the shown step's: the first of those that wait for one step."""
    return (
        next(lane for lane, awaited in enumerate(lanes) if awaited == lanes[place]) == place
        and lanes[place] in own
    )


def _x(lane: int) -> float:
    return min(lane, MOST_LANES - 1) * LANE + 9


def _curve(x0: float, y0: float, x1: float, y1: float) -> str:
    return f"M{x0} {y0}V{y1}" if x0 == x1 else f"M{x0} {y0}C{x0} {y1} {x1} {y0} {x1} {y1}"


def nodes_of(step: Step, facts: Mapping[str, StepFacts]) -> list[str]:
    """The nodes that ran to make a step: those whose seen versions changed."""
    here = facts.get(step.id)
    before = facts.get(step.parent) if step.parent else None
    if here is None or (step.parent and before is None):
        return []
    seen: Mapping[str, Any] = {} if before is None else before.seen
    return [
        node
        for node, versions in here.seen.items()
        if versions and versions != seen.get(node) and not node.startswith("__inter")
    ]


def label_of(step: Step, facts: Mapping[str, StepFacts]) -> str:
    """What made a step, in a few words."""
    if step.source == "input":
        return "input"
    nodes = nodes_of(step, facts)
    named = [node for node in nodes if not node.startswith("__")]
    if step.source == "update":
        return f"edit as {named[0]}" if len(named) == 1 else "edit"
    if step.source == "fork":
        return "fork"
    if named:
        return " + ".join(named[:3]) + (f" + {len(named) - 3} more" if len(named) > 3 else "")
    return "start" if nodes else f"step {step.number}" if step.number is not None else "step"
