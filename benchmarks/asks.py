"""Score the parameter extractors on a file of asks: question, next message, expected value.

Reads any of four layouts of such files (one JSON object per line), told apart by their fields. A
row's parameters are made from slot names, descriptions and possible values alone, never from the
gold value. Run it: `python -m benchmarks.asks PATH --per-type`.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import JsonValue

from langmem_ext.waiting.catalog.inference import infer_role, infer_type
from langmem_ext.waiting.catalog.param import Extraction, Param, ParamType, doubtful_below
from langmem_ext.waiting.extract import Reply, extract
from langmem_ext.waiting.understand.acts.assent import yes_or_no

Verdict: TypeAlias = Literal["right", "wrong", "open", "abstained", "filled"]
"""`open`: the right words, not taken because they leave open what they mean ("7": morning or
evening?); the readings are given instead. `filled`: a value was given where the row has none.
"""

CONFIDENCES = (0.5, 0.75)
"""Where a table of values that answer nothing divides them: up to the first, up to the second,
above it."""

NOW = datetime(2019, 3, 1)


@dataclass(frozen=True, slots=True)
class Slot:
    """What a row says of one requested slot, besides its value."""

    name: str
    description: str = ""
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """One ask.

    Attributes:
        number: Its line in the file, from 1.
        slot: What is asked for.
        others: What the same question asks for besides.
        prompt: The agent's question; made from the slots' names where the file has none.
        utterance: The user's next message.
        gold: Every form of the right value, in lower case; empty when the message gives none.
        suggested: The value the agent proposed, when it proposed exactly one.
        kind: What the file says about the message.
    """

    number: int
    slot: Slot
    others: tuple[Slot, ...]
    prompt: str
    utterance: str
    gold: frozenset[str]
    suggested: str | None
    kind: str

    @property
    def single(self) -> bool:
        """Whether the question asked for this slot alone."""
        return not self.others


Record: TypeAlias = Mapping[str, JsonValue]


def rows(path: str | Path) -> Iterator[Row]:
    """The rows of an asks file, in its order.

    Args:
        path: One JSON object per line.
    """
    with open(path, encoding="utf-8") as lines:
        records: list[Record] = [json.loads(line) for line in lines if line.strip()]
    schema = {
        (_text(record, "service"), _text(record, "slot")): _slot(record) for record in records
    }
    together: dict[tuple[str, ...], dict[str, None]] = {}
    for record in records:
        together.setdefault(_turn(record), {}).setdefault(_text(record, "slot"))
    for number, record in enumerate(records, start=1):
        name = _text(record, "slot")
        requested = (
            _texts(record, "requested_slots_in_prompt")
            or _texts(record, "requested_slots")
            or list(together[_turn(record)])
        )
        others = [
            schema.get((_text(record, "service"), other), Slot(other))
            for other in dict.fromkeys(requested)
            if other != name
        ]
        suggested = _texts(record, "suggested_values")
        yield Row(
            number=number,
            slot=_slot(record),
            others=tuple(others),
            prompt=_text(record, "system_prompt") or _question(requested),
            utterance=_text(record, "user_utterance"),
            gold=_gold(record),
            suggested=suggested[0] if len(suggested) == 1 else None,
            kind=_text(record, "kind"),
        )


def _text(record: Record, key: str) -> str:
    value = record.get(key)
    return "" if value is None else str(value)


def _texts(record: Record, key: str) -> list[str]:
    value = record.get(key)
    return (
        [str(item) for item in value]
        if isinstance(value, list)
        else []
        if value is None
        else [str(value)]
    )


def _slot(record: Record) -> Slot:
    return Slot(
        _text(record, "slot"),
        _text(record, "slot_description"),
        tuple(_texts(record, "possible_values")),
    )


def _question(requested: Sequence[str]) -> str:
    """A question for slots where the file has no wording; a slot listed twice was asked again."""
    count = Counter(requested)
    again = [slot for slot in count if count[slot] == max(count.values())]
    return " ".join(f"What is the {slot.replace('_', ' ')}?" for slot in again)


def _turn(record: Record) -> tuple[str, ...]:
    """The key that rows of one question share; a row's own if the file lists what was asked."""
    return tuple(
        _text(record, key) for key in ("task_id", "trial", "msg", "system_prompt", "user_utterance")
    )


def _gold(record: Record) -> frozenset[str]:
    keys = ("gold_value", "gold_canonical", "gold_all_values", "gold_all")
    return frozenset(
        _plain(value) for key in keys for value in _texts(record, key) if _plain(value)
    )


def _plain(text: str) -> str:
    """As it is compared: letter case and closing punctuation aside."""
    return text.strip().rstrip(".,!?").lower()


def params_of(row: Row) -> list[Param]:
    """The parameters of a row's question, the asked one first."""
    return [_param(slot) for slot in (row.slot, *row.others)]


def _param(slot: Slot) -> Param:
    kind = infer_type(slot.name, slot.description, slot.values)
    listed = kind in (ParamType.ENUM, ParamType.INTEGER)
    return Param(
        name=slot.name,
        type=kind,
        description=slot.description,
        enum={value: () for value in slot.values} if listed else {},
        role=infer_role(slot.name, slot.description),
    )


def reply_of(row: Row, *, now: datetime = NOW) -> Reply:
    """A row's message as an extractor sees it."""
    return Reply(
        row.utterance,
        prompt=row.prompt,
        others=params_of(row)[1:],
        now=now,
    )


def judge(row: Row, extraction: Extraction) -> Verdict:
    """Whether an extraction equals a gold form, but for letter case and closing punctuation."""
    if not row.gold:
        return "filled" if extraction.status == "filled" else "abstained"
    if row.gold == {"dontcare"}:
        return (
            "right"
            if extraction.status == "dontcare"
            else "wrong"
            if extraction.status == "filled"
            else "abstained"
        )
    if extraction.status != "filled":
        return "open" if extraction.choices and _plain(extraction.raw) in row.gold else "abstained"
    given = {_plain(extraction.raw), _plain(str(extraction.value))}
    return "right" if given & row.gold else "wrong"


@dataclass(frozen=True, slots=True)
class Scored:
    """A row with what was made of it."""

    row: Row
    param: Param
    extraction: Extraction
    verdict: Verdict
    micros: float

    @property
    def doubtful(self) -> bool:
        """Whether the graph confirms the value before it counts."""
        return self.extraction.confidence < doubtful_below(self.param)


def score(row: Row, *, now: datetime = NOW) -> Scored:
    """Extract one row and judge it."""
    param, reply = params_of(row)[0], reply_of(row, now=now)
    start = time.thread_time()
    accepts = row.suggested is not None and yes_or_no(row.utterance)
    extraction = (
        Extraction("filled", row.suggested, confidence=0.85) if accepts else extract(param, reply)
    )
    micros = (time.thread_time() - start) * 1e6
    return Scored(row, param, extraction, judge(row, extraction), micros)


def table(scored: Sequence[Scored], *, per_type: bool = False) -> str:
    """The figures as text: rows with a value by single and multi request, rows without apart."""
    lines = [f"{'':28}{'rows':>7}{'right':>8}{'wrong':>8}{'open':>8}{'abstain':>9}"]
    for title, single in (("single request", True), ("multi request", False)):
        part = [item for item in scored if item.row.gold and item.row.single is single]
        lines += _lines(title, part, _line, per_type=per_type)
    without = [item for item in scored if not item.row.gold]
    if without:
        low, high = CONFIDENCES
        columns = f"{'doubted':>9}{'filled':>8}{f'<= {low}':>8}{f'<= {high}':>8}{f'> {high}':>9}"
        lines += ["", f"{'replies without a value':28}{'rows':>7}{columns}"]
        lines += _lines("all", without, _filled_line, per_type=per_type)
    micros = sorted(item.micros for item in scored)
    if len(micros) > 1:
        lines.append(
            f"CPU per call: p50 {statistics.median(micros):.0f} us, p95"
            f" {micros[int(0.95 * len(micros))]:.0f} us, max {micros[-1]:.0f} us"
        )
    return "\n".join(lines)


def _lines(
    title: str,
    part: Sequence[Scored],
    line: Callable[[str, Sequence[Scored]], str],
    *,
    per_type: bool,
) -> list[str]:
    lines = [line(title, part)] if part else []
    kinds = sorted({item.param.type for item in part}) if per_type else []
    return lines + [
        line(f"  {kind}", [item for item in part if item.param.type == kind]) for kind in kinds
    ]


def _line(title: str, part: Sequence[Scored]) -> str:
    count = Counter(item.verdict for item in part)
    share = [
        f"{100 * count[verdict] / len(part):7.1f}%"
        for verdict in ("right", "wrong", "open", "abstained")
    ]
    return f"{title:28}{len(part):7}{''.join(share[:3])}{share[3]:>9}"


def _filled_line(title: str, part: Sequence[Scored]) -> str:
    """How many replies without a value get one, at once or when confirmed, how confidently."""
    low, high = CONFIDENCES
    read = [item for item in part if item.verdict == "filled"]
    filled = [item.extraction.confidence for item in read if not item.doubtful]
    doubted = 100 * (len(read) - len(filled)) / len(part)
    counts = (
        sum(c <= low for c in filled),
        sum(low < c <= high for c in filled),
        sum(c > high for c in filled),
    )
    rate = 100 * len(filled) / len(part)
    return (
        f"{title:28}{len(part):7}{doubted:8.1f}%{rate:7.1f}%{counts[0]:8}{counts[1]:8}{counts[2]:9}"
    )


def _shown(item: Scored) -> str:
    found = item.extraction
    return (
        f"{item.row.number}: {item.param.name} ({item.param.type}, {item.param.role}) of"
        f" {[slot.name for slot in item.row.others]}\n   agent: {item.row.prompt[-200:]}\n   user: "
        f" {item.row.utterance}\n   gold {sorted(item.row.gold)}  got {found.status}"
        f" {found.value!r} (raw {found.raw!r}, {found.confidence}, {found.reason})"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Score the parameter extractors on an asks file.")
    parser.add_argument("path", type=Path, help="a file of asks, one JSON object per line")
    parser.add_argument("--limit", type=int, help="only the first LIMIT rows")
    parser.add_argument("--skip", type=int, default=0, help="leave out the first SKIP rows")
    parser.add_argument("--per-type", action="store_true", help="one line per parameter type")
    parser.add_argument(
        "--show",
        nargs=2,
        metavar=("VERDICT", "N"),
        help="print N rows of a verdict: wrong, open, abstained or filled",
    )
    parser.add_argument("--type", help="show only rows of this type")
    parser.add_argument(
        "--now",
        type=datetime.fromisoformat,
        default=NOW,
        help="when the messages were written (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    chosen = list(rows(options.path))[options.skip :][: options.limit]
    scored = [score(row, now=options.now) for row in chosen]
    print(table(scored, per_type=options.per_type))
    if options.show:
        verdict, count = options.show
        shown = [
            item
            for item in scored
            if item.verdict == verdict and (not options.type or item.param.type == options.type)
        ]
        for item in random.Random(0).sample(shown, min(int(count), len(shown))):
            print(_shown(item))


if __name__ == "__main__":
    main()
