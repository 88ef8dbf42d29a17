"""Measure `DeltaSaver` beside its peers, and print what is aimed at as ratios.

    python -m benchmarks                     the fast set, a few minutes
    python -m benchmarks --all --record      everything, most of an hour, and keep what was found
    python -m benchmarks --only short turn-1600 --contenders delta memory

PostgresSaver takes part when it is installed (`pip install langgraph-checkpoint-postgres
'psycopg[binary]'`) and BENCHMARK_POSTGRES is the URL of a server on which databases may be made and
dropped.
"""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import machine, report, results
from benchmarks.contenders import CONTENDERS
from benchmarks.record import Record, ShapeResult
from benchmarks.shapes import SHAPES


def main() -> int:
    args = arguments().parse_args()
    if args.list:
        print(
            "\n".join(
                f"{shape.name:18} {'slow' if shape.slow else '':6}{shape.title}"
                for shape in SHAPES.values()
            )
        )
        return 0
    if args.show:
        return show(args.show)
    record = measure(
        args.only or [name for name, shape in SHAPES.items() if args.all or not shape.slow],
        args.contenders,
    )
    print("\n" + "\n".join(report.summary(record)))
    if any(result.errors for result in record.shapes):
        return 1
    if args.record:
        print(f"\nkept in {results.keep(record).name}")
    return 0


def measure(names: list[str], contenders: list[str] | None) -> Record:
    """Run the shapes, and print what each found when it is done."""
    found: list[ShapeResult] = []
    record = Record(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=machine.commit(),
        machine=machine.machine(),
        versions=machine.versions(),
        shapes=found,
    )
    print(report.header(record), flush=True)
    for name in names:
        found.append(SHAPES[name].run(only=contenders))
        print("\n".join(report.shape_lines(found[-1], record.machine.cores)), flush=True)
    return record.model_copy(update={"shapes": found})


def show(shown: Path) -> int:
    """Print a recorded run."""
    record = results.read(shown)
    print(report.header(record))
    for result in record.shapes:
        print("\n".join(report.shape_lines(result, record.machine.cores)))
    print("\n" + "\n".join(report.summary(record)))
    return 0


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--all", action="store_true", help="the slow shapes too")
    parser.add_argument(
        "--only", nargs="+", choices=SHAPES, metavar="SHAPE", help="these shapes (see --list)"
    )
    parser.add_argument(
        "--contenders",
        nargs="+",
        choices=CONTENDERS,
        metavar="NAME",
        help=f"these only, of {', '.join(CONTENDERS)}",
    )
    parser.add_argument(
        "--record", action="store_true", help="keep what was found, as JSON in benchmarks/results"
    )
    parser.add_argument(
        "--show", type=Path, metavar="FILE", help="print a recorded run, and measure nothing"
    )
    parser.add_argument("--list", action="store_true", help="name the shapes, and measure nothing")
    return parser


if __name__ == "__main__":
    sys.exit(main())
