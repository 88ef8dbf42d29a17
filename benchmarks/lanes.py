"""Contenders work by turns, each in its own process, so that noise hits all alike.

A contender's work is a generator. It yields `Step`s, which are measured; what it does between them
is not. It returns its figures.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Protocol, TypeAlias

Figures: TypeAlias = dict[str, float]


@dataclass(frozen=True)
class Step:
    """A piece of work to be measured.

    Attributes:
        kind: Steps of one kind are alike: their median means something. Empty for one that only
            warms up.
        run: Does it.
    """

    kind: str
    run: Callable[[], object]


Work: TypeAlias = Generator[Step, None, Figures]
Begin: TypeAlias = Callable[[Path], Work]
"""Begins a contender's work in a folder of its own; can be pickled."""


@dataclass(frozen=True)
class Sample:
    """What a step took, in seconds; the CPU time is all of the process's threads'."""

    kind: str
    cpu: float
    wall: float


@dataclass(frozen=True)
class Failure:
    """The work ended with an error."""

    text: str


def take(work: Work) -> Sample | Figures:
    """Do the next step; give the figures if there is none."""
    try:
        step = next(work)
    except StopIteration as done:
        figures: Figures = done.value
        return figures
    wall, cpu = time.perf_counter(), time.process_time()
    step.run()
    return Sample(step.kind, time.process_time() - cpu, time.perf_counter() - wall)


class Here:
    """A lane in this process, for runs whose times do not matter."""

    def __init__(self, begin: Begin, folder: Path) -> None:
        self._work = begin(folder)

    def take(self) -> Sample | Figures | Failure:
        """Do the next step."""
        return take(self._work)

    def close(self) -> None:
        """Leave the work where it is."""
        self._work.close()


class Apart:
    """A lane in a process of its own."""

    def __init__(self, begin: Begin, folder: Path) -> None:
        context = get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other, begin, folder))
        self._process.start()
        other.close()

    def take(self) -> Sample | Figures | Failure:
        """Have the next step done, and wait for it."""
        try:
            self._pipe.send(None)
            answer: Sample | Figures | Failure = self._pipe.recv()
        except (EOFError, BrokenPipeError):
            self._process.join(1)
            return Failure(f"the process ended with exit code {self._process.exitcode}")
        return answer

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        self._process.join(10)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def _serve(pipe: Connection, begin: Begin, folder: Path) -> None:
    try:
        work = begin(folder)
        while True:
            pipe.recv()
            pipe.send(take(work))
    except EOFError:
        pass
    except BaseException as error:
        traceback.print_exc()
        pipe.send(Failure(traceback.format_exception_only(error)[0].strip()))


class Lane(Protocol):
    """Where a contender does its work."""

    def take(self) -> Sample | Figures | Failure:
        """Do the next step; give the figures if there is none."""

    def close(self) -> None:
        """Stop."""


def race(
    lanes: Mapping[str, Lane], *, burst: int = 1
) -> tuple[dict[str, list[Sample]], dict[str, Figures], dict[str, str]]:
    """Let the lanes take `burst` steps each by turns until all are done.

    Returns samples, figures and errors by contender.

    A process that has just been woken finds the processor's caches full of another's data; where
    steps take a millisecond or two, a burst keeps that from being most of what is measured.
    """
    samples: dict[str, list[Sample]] = {name: [] for name in lanes}
    figures: dict[str, Figures] = {}
    errors: dict[str, str] = {}
    while running := [name for name in lanes if name not in figures and name not in errors]:
        for name in (name for name in running for _ in range(burst)):
            if name in figures or name in errors:
                continue
            match lanes[name].take():
                case Sample() as sample:
                    samples[name].append(sample)
                case Failure(text):
                    errors[name] = text
                case taken:
                    figures[name] = taken
    return samples, figures, errors
