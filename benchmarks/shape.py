"""A shape: work that every contender does, and what is aimed at."""

from __future__ import annotations

import json
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.contenders import CONTENDERS
from benchmarks.lanes import Apart, Figures, Here, Lane, Sample, Work, race
from benchmarks.machine import load
from benchmarks.record import ShapeResult, Verdict

RATES = "_per_s"
"""How metrics end of which more is better."""


@dataclass(frozen=True)
class Aim:
    """A figure's aim: with `at_most` ours by theirs, else a factor; without a bound it is reported.

    Attributes:
        what: In words.
        metric: Whose figure.
        against: The contender compared with; None where the bound is a figure of its own.
        at_most: The bound, or None.
        at_least: The bound, or None.
        ours: Which contender is ours.
    """

    what: str
    metric: str
    against: str | None = None
    at_most: float | None = None
    at_least: float | None = None
    ours: str = "delta"

    def judge(self, figures: Mapping[str, Figures]) -> Verdict | None:
        """What became of it; None where a figure is missing."""
        ours = figures.get(self.ours, {}).get(self.metric)
        theirs = figures.get(self.against, {}).get(self.metric) if self.against else 1.0
        if ours is None or not theirs:
            return None
        inverted = self.at_most is None and bool(self.against) and not self.metric.endswith(RATES)
        if inverted and not ours:
            return None
        ratio = theirs / ours if inverted else ours / theirs
        bound = self.at_least if self.at_most is None else self.at_most
        return Verdict(
            what=self.what,
            ours=ours,
            against=self.against,
            theirs=theirs if self.against else None,
            ratio=ratio,
            bound=bound,
            sense="at_least" if self.at_most is None else "at_most",
            reached=(
                None
                if bound is None
                else ratio <= bound
                if self.at_most is not None
                else ratio >= bound
            ),
        )


@dataclass(frozen=True)
class Shape:
    """Work that every contender does.

    Attributes:
        name: What it is called on the command line.
        title: What is done, in words.
        work: Does it for one contender: called with the contender's name, a folder, and the
            settings.
        contenders: Who does it.
        settings: Its sizes.
        small: Sizes of a run that only shows that it works.
        aims: What is aimed at.
        slow: Left out of the fast set.
        burst: How many steps a contender takes at a time.
    """

    name: str
    title: str
    work: Callable[..., Work]
    contenders: tuple[str, ...]
    settings: dict[str, Any]
    small: dict[str, Any]
    aims: tuple[Aim, ...] = ()
    slow: bool = False
    burst: int = 5

    def run(
        self, *, small: bool = False, apart: bool = True, only: Iterable[str] | None = None
    ) -> ShapeResult:
        """Let the contenders do the work in turns."""
        settings = self.settings | (self.small if small else {})
        names = [
            name
            for name in self.contenders
            if name in CONTENDERS and (only is None or name in only)
        ]
        started, before = time.monotonic(), load()
        with TemporaryDirectory(prefix="benchmark-") as root:
            lanes: dict[str, Lane] = {}
            try:
                for name in names:
                    folder = Path(root, name)
                    folder.mkdir()
                    lanes[name] = (Apart if apart else Here)(
                        partial(self.work, name, **settings), folder
                    )
                samples, figures, errors = race(lanes, burst=self.burst)
            finally:
                for lane in lanes.values():
                    lane.close()
        found = {name: summary(samples[name]) | figures[name] for name in figures}
        return ShapeResult(
            name=self.name,
            title=self.title,
            settings=json.loads(json.dumps(settings)),  # as a record that is read gives them
            figures=found,
            errors=errors,
            verdicts=[verdict for aim in self.aims if (verdict := aim.judge(found))],
            load=(before, load()),
            seconds=round(time.monotonic() - started, 1),
        )


def summary(samples: Iterable[Sample]) -> Figures:
    """Medians of every kind of steps."""
    kinds: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.kind:
            kinds[sample.kind].append(sample)
    found: Figures = {}
    for kind, alike in kinds.items():
        name, at, mark = kind.partition("@")
        found[f"{name}_cpu_ms{at}{mark}"] = statistics.median(sample.cpu for sample in alike) * 1000
        found[f"{name}_wall_ms{at}{mark}"] = (
            statistics.median(sample.wall for sample in alike) * 1000
        )
        if len(alike) >= 50:
            found[f"{name}_p99_ms{at}{mark}"] = (
                statistics.quantiles([sample.wall for sample in alike], n=100)[98] * 1000
            )
    return found
