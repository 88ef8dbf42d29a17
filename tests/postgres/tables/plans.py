"""How PostgreSQL carried out what it was sent: the plans that `auto_explain` writes to a server's
log, with what was met on the way.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

SETTINGS: Final[Mapping[str, str]] = {
    "session_preload_libraries": "auto_explain",
    "auto_explain.log_min_duration": "0",
    "auto_explain.log_analyze": "on",
    "auto_explain.log_timing": "off",
    "auto_explain.log_format": "json",
}
"""Of a server that explains each statement as `EXPLAIN (ANALYZE, FORMAT JSON)` does, while it
carries it out."""

_PLAN: Final = re.compile(r"^.*LOG:  duration: .* plan:\n((?:\t.*\n)+)", re.MULTILINE)
_PARTITION: Final = re.compile(r"(\w+?)_(\d+)")


@dataclass(frozen=True)
class Plan:
    """How one statement was carried out.

    Attributes:
        sql: The statement.
        met: Of each table that has partitions, those in which it looked for rows.
        pruned: Whether partitions were left out only when it was carried out: its plan serves any
            parameters.
    """

    sql: str
    met: Mapping[str, frozenset[int]]
    pruned: bool

    @property
    def partitions(self) -> frozenset[int]:
        """Those in which it looked for rows of any table."""
        return frozenset().union(*self.met.values())


class Log:
    """A server's log, read from where it was last left."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "log"
        self._at = self._file.stat().st_size

    def plans(self) -> list[Plan]:
        """The plans since then."""
        with self._file.open(encoding="utf-8") as file:
            file.seek(self._at)
            text = file.read()
        self._at += len(text.encode())
        return [_plan(json.loads(found)) for found in _PLAN.findall(text)]


def _plan(told: Mapping[str, Any]) -> Plan:
    met: dict[str, set[int]] = defaultdict(set)
    pruned = False
    for node in _nodes(told["Plan"]):
        pruned = pruned or "Subplans Removed" in node
        if (found := _PARTITION.fullmatch(node.get("Relation Name", ""))) and node["Actual Loops"]:
            met[found[1]].add(int(found[2]))
    return Plan(told["Query Text"], {table: frozenset(at) for table, at in met.items()}, pruned)


def _nodes(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield node
    for below in node.get("Plans", ()):
        yield from _nodes(below)
