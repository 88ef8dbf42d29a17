"""Measure `DeltaSaver` beside its peers, and print what was aimed at as ratios.

python -m benchmarks                     the fast set, a few minutes
python -m benchmarks --all               everything, an hour
python -m benchmarks --only short turn-1600 --contenders delta memory
"""

from __future__ import annotations

import argparse
import os
import sys
from datetime import UTC, datetime

from benchmarks.machine import commit, machine, versions
from benchmarks.record import Record, ShapeResult
from benchmarks.report import header, shape_lines
from benchmarks.shapes import SHAPES
from benchmarks.shapes.applications import RUNS


def main() -> int:
    args = arguments().parse_args()
    if args.list:
        print("\n".join(f"{shape.name:18} {'slow  ' if shape.slow else '      '}{shape.title}" for shape in SHAPES.values()))
        return 0
    if args.tool_runs:
        os.environ[RUNS] = args.tool_runs
    names = args.only or [name for name, shape in SHAPES.items() if args.all or not shape.slow]
    record = Record(
        date=datetime.now(UTC).isoformat(timespec="seconds"), commit=commit(), machine=machine(), versions=versions(), shapes=[]
    )
    print(header(record), flush=True)
    results: list[ShapeResult] = []
    for name in names:
        if why := SHAPES[name].needs():
            print(f"\n{name}: left out: {why}")
            continue
        results.append(SHAPES[name].run(only=args.contenders))
        print("\n".join(shape_lines(results[-1])), flush=True)
    return 1 if any(result.errors for result in results) else 0


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="the slow shapes too")
    parser.add_argument("--only", nargs="+", choices=SHAPES, metavar="NAME", help="these shapes (see --list)")
    parser.add_argument("--contenders", nargs="+", metavar="NAME", help="these contenders only")
    parser.add_argument(
        "--tool-runs", metavar="PATH", help="recorded conversations with tool calls (tau-bench's JSON), for the shape 'tools'"
    )
    parser.add_argument("--list", action="store_true", help="name the shapes and do nothing")
    return parser


if __name__ == "__main__":
    sys.exit(main())
