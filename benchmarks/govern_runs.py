"""Governs every prefix of recorded conversations: requests are valid, in budget and stable.

    python -m benchmarks.govern_runs FILE… [--budgets 2000 4000 8000] [--limit N] [--every N]
    [--only NAME …] [--json | --record]

FILE holds conversations with tool calls, in OpenAI's message format (tau-bench's JSON) or as
actions and observations (InterCode's lines). Wherever a model would be called, each contender
(`contexts.py`) says what it would send, and two checkers written from OpenAI's and Anthropic's
documentation judge it (`provider_rules.py`). Ours is also given every other beginning, where nobody
would call a model.

Columns, one line for every contender and budget: requests; those that OpenAI or Anthropic would
refuse; those over the budget (cl100k of texts and calls, and four a message); those without the
system prompt, the first task, the user's latest message, or the latest tool round where it fits;
those that were not sent (with all pins and a shortened round in budget: `refused_wrongly`); those
that change when they are governed once more (only ours is asked), and conversations whose messages
were changed. Then, of the requests that left something out (`cut`): the share of the budget that
was used, and how often it was below 60 %; how many were decided anew; the share of requests that
begin with all of the request before, byte for byte; and the loops: episodes in which a contender
nudged or stopped, and those in which it did so at another request than a count by hand, or not at
all.

The exit status is 1 if ours has a request that is invalid, over budget, without a pin, refused
wrongly or changed by governing it again, a wrong nudge or stop, or a message of a conversation
changed. Ranks come with the extra `tokens-offline`, or from the folder that TIKTOKEN_CACHE_DIR
names.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from langchain_core.messages import BaseMessage

from benchmarks import machine, report, results
from benchmarks.contexts import Open, Request, contexts
from benchmarks.provider_rules import anthropic_problems, openai_problems
from benchmarks.record import Record, ShapeResult, Verdict
from benchmarks.recorded_runs import Prefix, Run, read_runs, ruled_tokens
from langmem_ext.context.budget.counters import TiktokenCounter
from langmem_ext.messages.token_costs.memo import Memo
from langmem_ext.messages.token_costs.tokens import ApproximateCounter

NUDGE, STOP = 3, 6
"""From how many identical rounds in a turn on the model is told, and the turn ended."""

LEAST_USED, LEAST_STABLE = 0.6, 0.9
"""Aims: of the budget where something was left out, and of the requests that begin with the one
before."""

OURS = "ours"
FORBIDDEN = (
    "invalid_openai",
    "invalid_anthropic",
    "over",
    "no_system",
    "no_task",
    "no_user",
    "refused_wrongly",
    "changed_again",
    "changed_input",
    "loop_wrong",
)
"""What ours must have none of."""


@dataclass(slots=True)
class Findings:
    """What one contender did with one budget.

    Attributes:
        counts: How many requests, and how many of them did what.
        stable: Of the pairs of requests, by file, those whose second begins with the first.
        used: The share of the budget that each request that left something out used.
        milliseconds: CPU of each request.
        examples: Where what must not be was seen, a few of each.
    """

    counts: Counter[str] = field(default_factory=Counter)
    stable: Counter[str] = field(default_factory=Counter)
    used: list[float] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)
    examples: dict[str, list[str]] = field(default_factory=dict)

    def see(self, what: str, where: str, *, seen: bool = True) -> None:
        """Count what was seen, and remember where."""
        if seen:
            self.counts[what] += 1
            self.examples.setdefault(what, []).append(where)

    def figures(self) -> dict[str, float]:
        """What is printed of it, by column."""
        counts, used = self.counts, sorted(self.used)
        found: dict[str, float] = {name: float(counts[name]) for name in COUNTED}
        if used:
            found |= {
                "used_min": used[0],
                "used_p5": used[len(used) // 20],
                "used_p50": statistics.median(used),
            }
        if counts["pairs"]:
            found["same_prefix"] = sum(self.stable.values()) / counts["pairs"]
            found |= {
                f"same_prefix_{word}": share / counts[f"pairs {word}"]
                for word, share in self.stable.items()
            }
        spent = sorted(self.milliseconds)
        found |= (
            {"cpu_ms": statistics.median(spent), "cpu_p99_ms": spent[int(len(spent) * 0.99)]}
            if spent
            else {}
        )
        return {name: round(value, 4) for name, value in found.items()}


COUNTED = (
    "requests",
    "invalid_openai",
    "invalid_anthropic",
    "over",
    "no_system",
    "no_task",
    "no_user",
    "no_round",
    "refused",
    "refused_wrongly",
    "changed_again",
    "changed_input",
    "cut",
    "used_below",
    "compacted",
    "nudged",
    "stopped",
    "loop_wrong",
    "others",
)


# -- one request -----------------------------------------------------------------------------------


def follow(run: Run, opened: Open, budget: int, found: Findings, *, others: bool) -> None:
    """Make a conversation's requests one after the other, and judge each.

    With `others`, every other prefix's requests are judged too, and each request twice.
    """
    context, stored = opened(budget), _bytes(run.messages)
    before: list[BaseMessage] | None = None
    loops = _Loops()
    for prefix in run.prefixes():
        if not prefix.calls_model and not (others and prefix.pins.get("user")):
            continue
        where = f"{run.name}, {len(prefix.messages)} messages, budget {budget}"
        start = time.process_time()
        request = context(prefix.messages, keep=prefix.calls_model)
        found.milliseconds.append((time.process_time() - start) * 1000)
        found.counts["requests" if prefix.calls_model else "others"] += 1
        if request.messages is None:
            found.counts["refused"] += 1
            found.see("refused_wrongly", where, seen=prefix.needed() <= budget)
            continue
        judge(prefix, request.messages, budget, found, where)
        if others and prefix.loop() < STOP:  # of a turn that is ended nothing is sent
            again = opened(budget)(request.messages).messages
            found.see("changed_again", where, seen=_bytes(again or ()) != _bytes(request.messages))
        if prefix.calls_model:
            found.counts["compacted"] += request.compacted
            if before is not None:
                found.counts.update(("pairs", f"pairs {run.source}"))
                found.stable[run.source] += _begins(request.messages, before)
            before = request.messages
            loops.see(prefix, request)
    found.see("changed_input", f"{run.name}, budget {budget}", seen=_bytes(run.messages) != stored)
    found.counts["nudged"] += bool(loops.nudged)
    found.counts["stopped"] += bool(loops.stopped)
    found.see("loop_wrong", f"{run.name}, budget {budget}", seen=not loops.right)


def judge(
    prefix: Prefix, sent: Sequence[BaseMessage], budget: int, found: Findings, where: str
) -> None:
    """Find what is wrong with a request, and what share of the budget it uses if cut."""
    tokens = ruled_tokens(sent)
    found.see("invalid_openai", where, seen=bool(openai_problems(sent)))
    found.see("invalid_anthropic", where, seen=bool(anthropic_problems(sent)))
    found.see("over", where, seen=tokens > budget)
    words = {_words(message) for message in sent}
    for name, pin in prefix.pins.items():
        found.see(f"no_{name}", where, seen=_words(pin) not in words)
    shown = all(_words(message) in words for message in prefix.messages[prefix.latest_round :])
    found.see("no_round", where, seen=not shown and prefix.wanted() <= budget)
    whole = ruled_tokens(prefix.messages)
    if whole > budget or tokens < whole:
        found.counts["cut"] += 1
        found.used.append(tokens / budget)
        found.see("used_below", where, seen=tokens < LEAST_USED * budget)


def _words(message: BaseMessage) -> str:
    """What a message says, whatever the request did to its ids."""
    calls = [(call["name"], call["args"]) for call in getattr(message, "tool_calls", [])]
    return repr((message.type, message.content, calls))


def _begins(sent: Sequence[BaseMessage], before: Sequence[BaseMessage]) -> bool:
    """Whether a request begins with all of the one before, byte for byte."""
    return _bytes(sent[: len(before)]) == _bytes(before)


def _bytes(messages: Sequence[BaseMessage]) -> list[str]:
    return [repr(message) for message in messages]


@dataclass(slots=True)
class _Loops:
    """When a conversation was nudged and stopped, and when it should have been, counted by hand."""

    nudged: list[int] = field(default_factory=list)
    stopped: list[int] = field(default_factory=list)
    nudge_due: list[int] = field(default_factory=list)
    stop_due: list[int] = field(default_factory=list)
    _turn: int = -1

    def see(self, prefix: Prefix, request: Request) -> None:
        length, count = len(prefix.messages), prefix.loop()
        if request.nudged:
            self.nudged.append(length)
        if request.stopped:
            self.stopped.append(length)
        if count >= NUDGE:
            self.nudge_due.append(length)
        if count >= STOP:
            self.stop_due.append(length)

    @property
    def right(self) -> bool:
        """Whether the first nudge and the first stop came when due, and none came otherwise."""
        return (
            self.nudged[:1] == self.nudge_due[:1]
            and self.stopped[:1] == self.stop_due[:1]
            and {*self.nudged} <= {*self.nudge_due}
        )


# -- all of them -----------------------------------------------------------------------------------


def measure(
    runs: Sequence[Run], budget: int, contenders: Mapping[str, Open]
) -> tuple[ShapeResult, dict[str, Findings]]:
    """All conversations at one budget, for every contender."""
    start, load, found = (
        time.perf_counter(),
        machine.load(),
        {name: Findings() for name in contenders},
    )
    for name, opened in contenders.items():
        for run in runs:
            follow(run, opened, budget, found[name], others=name.startswith(OURS))
    figures = {name: findings.figures() for name, findings in found.items()}
    result = ShapeResult(
        name=f"govern-{budget}",
        title=f"{len(runs)} recorded conversations, every request at {budget:,} tokens",
        settings={"budget": budget, "runs": len(runs), "nudge": NUDGE, "stop": STOP},
        figures=figures,
        errors={},
        verdicts=list(verdicts(figures[OURS], budget)) if OURS in figures else [],
        load=(load, machine.load()),
        seconds=round(time.perf_counter() - start, 1),
    )
    return result, found


def verdicts(ours: Mapping[str, float], budget: int) -> list[Verdict]:
    """What is aimed at."""
    aims = [(name, 0.0, "at_most") for name in (*FORBIDDEN, "no_round")] + [
        ("used_min", LEAST_USED, "at_least"),
        ("same_prefix", LEAST_STABLE, "at_least"),
    ]
    return [
        Verdict(
            what=f"{budget:,} tokens: {name}",
            ours=ours[name],
            against=None,
            theirs=None,
            ratio=ours[name],
            bound=bound,
            sense="at_most" if sense == "at_most" else "at_least",
            reached=ours[name] <= bound if sense == "at_most" else ours[name] >= bound,
        )
        for name, bound, sense in aims
        if name in ours
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the arguments, measure, print; 1 if ours did what it must not."""
    options = _parser().parse_args(arguments)
    runs = [run for path in options.files for run in read_runs(path, options.limit)][
        :: options.every
    ]
    contenders = contexts(
        {"ruled": Memo(TiktokenCounter()), "approximate": Memo(ApproximateCounter())}
    )
    if unknown := {*(options.only or ())} - {*contenders}:
        sys.exit(
            f"no such contender: {', '.join(sorted(unknown))}; there are {', '.join(contenders)}"
        )
    chosen = {
        name: opened
        for name, opened in contenders.items()
        if not options.only or name in options.only
    }
    record = Record(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        commit=machine.commit(),
        machine=machine.machine(),
        versions=machine.versions(),
        shapes=[],
    )
    if not options.json:
        print(report.header(record), flush=True)
    for budget in options.budgets:
        result, found = measure(runs, budget, chosen)
        record.shapes.append(result)
        if not options.json:
            print(
                "\n".join(
                    [*report.shape_lines(result, record.machine.cores), *_examples(found.get(OURS))]
                ),
                flush=True,
            )
    if options.json:
        print(record.model_dump_json())
    if options.record:
        print(f"\nkept in {results.keep(record).name}", file=sys.stderr)
    return int(
        any(
            result.figures.get(OURS, {}).get(name) for result in record.shapes for name in FORBIDDEN
        )
    )


def _examples(found: Findings | None) -> list[str]:
    """Where ours did what it must not: the first places of each."""
    wrong = (
        [
            (name, found.examples[name])
            for name in (*FORBIDDEN, "no_round", "used_below")
            if name in found.examples
        ]
        if found
        else []
    )
    return [f"  {name}: {'; '.join(places[:3])}" for name, places in wrong]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="recorded conversations"
    )
    parser.add_argument(
        "--budgets",
        nargs="+",
        type=int,
        default=[2000, 4000, 8000],
        metavar="TOKENS",
        help="default: 2000 4000 8000",
    )
    parser.add_argument(
        "--limit", type=int, metavar="N", help="only the first N conversations of each file"
    )
    parser.add_argument(
        "--every", type=int, default=1, metavar="N", help="of these, only every Nth: a sample"
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these contenders only")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--record", action="store_true", help="keep what was found, as JSON in benchmarks/results"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
