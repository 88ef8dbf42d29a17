"""The findings of an examination: each names its thread, its checkpoints and its row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

Severity: TypeAlias = Literal["note", "wrong", "damaged"]

MOST: Final = 20
"""How many findings of one kind, and checkpoints of one finding, are reported; the rest are
counted."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding of an examination.

    Attributes:
        kind: Its kind: `file`, `page`, `thread`, `orphan`, `counter`, `head`,
            `column`, `item`, `value`, `word`, `namespace`, `checkpoint`, `write`, `reference`,
            `parent`, `double`, `unused`, `foreign`, `large`, `search`, `store` or `more`.
        severity: `note`: not an error. `wrong`: a derived column does not match, or rows belong to
            no thread. `damaged`: stored data cannot be read any more.
        thread: The thread's id; None if it concerns no thread, or one without a row.
        checkpoints: Ids of affected checkpoints, the first ones of many.
        place: Table and key of the row.
        message: What is wrong, and what to do next.
        fixable: Whether `fix` can repair it.
        fixed: Whether it was repaired.
    """

    kind: str
    severity: Severity
    thread: str | None
    checkpoints: tuple[str, ...]
    place: str
    message: str
    fixable: bool = False
    fixed: bool = False


@dataclass(slots=True)
class Findings:
    """The findings of one thread, or of none, bounded in number.

    Attributes:
        thread: The thread's id.
    """

    thread: str | None
    _found: list[Finding] = field(default_factory=list)
    _counts: Counter[tuple[str, Severity, bool]] = field(default_factory=Counter)

    def add(
        self,
        kind: str,
        severity: Severity,
        place: str,
        message: str,
        *,
        checkpoints: Iterable[str] = (),
        fixable: bool = False,
    ) -> None:
        """Note a finding; the first few of each kind are kept, the others counted.

        A row may be read twice, and is reported once.
        """
        if any(
            (known.kind, known.place, known.message) == (kind, place, message)
            for known in self._found
            if known.kind == kind
        ):
            return
        self._counts[kind, severity, fixable] += 1
        if self._counts[kind, severity, fixable] > MOST:
            return
        affected = tuple(dict.fromkeys(checkpoints))
        more = (
            f" ({len(affected) - MOST} more checkpoints are affected)"
            if len(affected) > MOST
            else ""
        )
        self._found.append(
            Finding(kind, severity, self.thread, affected[:MOST], place, message + more, fixable)
        )

    def take(self, other: Findings) -> None:
        """Add what another has collected about the same thread."""
        for finding in other._found:
            self.add(
                finding.kind,
                finding.severity,
                finding.place,
                finding.message,
                checkpoints=finding.checkpoints,
                fixable=finding.fixable,
            )
        for key, count in other._counts.items():
            self._counts[key] += max(count - MOST, 0)

    def __bool__(self) -> bool:
        return bool(self._found)

    def has(self, kind: str) -> bool:
        """Whether there are any of a kind."""
        return any(finding.kind == kind for finding in self._found)

    @property
    def fixable(self) -> bool:
        """Whether a repair would put any of them right."""
        return any(finding.fixable for finding in self._found)

    def reported(self, *, fixed: bool) -> Iterator[Finding]:
        """The findings in order; with `fixed`, the fixable ones are marked as fixed."""
        for finding in self._found:
            yield replace(finding, fixed=True) if fixed and finding.fixable else finding
        for (kind, severity, fixable), count in self._counts.items():
            if count > MOST:
                message = f"{count - MOST} more findings of the kind {kind!r}"
                yield Finding(
                    "more", severity, self.thread, (), kind, message, fixable, fixed and fixable
                )
