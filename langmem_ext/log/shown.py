"""What an object's `repr` shows of its database: its address, and its size if that is known."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from langmem_ext.storage.driver import Driver
from langmem_ext.storage.operation import Statement
from langmem_ext.storage.threads.list import MOST_GLANCED, glance_at_database, glance_at_thread
from langmem_ext.types import ThreadKey


@dataclass(frozen=True, slots=True)
class ReprFacts:
    """What a `repr` says of a database.

    Attributes:
        driver: The database.
        owner: Whose threads are counted; None: everybody's.
        thread: The thread that is shown; None: the whole database is.
        noted: What else is known, by name; None is left out.
    """

    driver: Driver
    owner: str | None = None
    thread: ThreadKey | None = None
    noted: dict[str, str | None] = field(default_factory=dict)

    def parts(self, *, counted: bool) -> list[str]:
        """The words between the brackets of a `repr`.

        Args:
            counted: Whether the database may be asked.
        """
        known = {"owner": self.owner if self.thread is None else self.thread.owner} | self.noted
        parts = [] if self.thread is None else [repr(self.thread.id)]
        parts += [
            self.driver.place,
            *(f"{name}={value!r}" for name, value in known.items() if value is not None),
        ]
        if self.driver.closed:
            return [*parts, "closed"]
        return [*parts, *(self._counts() if counted else ())]

    def _counts(self) -> list[str]:
        rows = self.driver.glance(self._question())
        if rows is None:
            return []
        if self.thread is not None:
            return [_counted(rows[0][0] or 0 if rows else 0, "message")]
        [(threads, messages)] = rows
        if threads > MOST_GLANCED:
            return [f"over {MOST_GLANCED:,} threads"]
        return [_counted(threads, "thread"), _counted(messages or 0, "message")]

    def _question(self) -> Statement:
        return (
            glance_at_database(self.owner) if self.thread is None else glance_at_thread(self.thread)
        )


class Showing:
    """Gives an object a `repr` that names its database and counts what is there.

    Like `DeltaSaver('/home/me/memory.db', 3 threads, 41 messages)`. It never fails, never
    waits and shows no password. It counts in SQLite alone, at most 1,000 threads, and leaves the
    counts out where it might wait: on a server, on an event loop, inside a transaction, and while
    another thread uses the connection. A notebook has an event loop, too, but a person looks there:
    what a cell ends with is shown with its counts.
    """

    def _repr_facts(self) -> ReprFacts:
        """What is shown; each class that shows itself says it."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self._as_text(counted=not _on_event_loop())

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What IPython shows."""
        printer.text(self._as_text(counted=True))

    def _as_text(self, *, counted: bool) -> str:
        parts = ["…"]  # of one that is not made yet
        with suppress(Exception):
            facts = self._repr_facts()
            parts = facts.parts(counted=False)
            parts = facts.parts(counted=counted)  # a damaged row may hold anything
        return f"{type(self).__name__}({', '.join(parts)})"


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _on_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
