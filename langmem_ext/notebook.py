"""For notebooks: `%load_ext langmem_ext`, a bar for progress, and a picture of a thread's forks.

Objects of the package show themselves as tables (`_repr_html_`). This module needs IPython.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib import import_module
from typing import Any, Final

from langgraph.types import StateSnapshot

from langmem_ext._internal import html
from langmem_ext.errors import InvalidInput
from langmem_ext.log.message_log import existing
from langmem_ext.threads.threads import Threads

_STEP: Final = (150, 74)
"""Distance of two checkpoints of a picture, across and down, in pixels."""

_BOX: Final = (126, 44)
"""Size of a checkpoint in it."""


class Picture:
    """An SVG that a notebook shows.

    Args:
        svg: Its text.
    """

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg


def fork_tree(history: Sequence[StateSnapshot]) -> Picture:
    """A thread's checkpoints as a tree: each branch in a row of its own, the newest at the top.

    Args:
        history: What `list(graph.get_state_history(config))` gave.

    Example:
        `fork_tree(list(graph.get_state_history(config)))`
    """
    oldest_first = list(reversed(history))
    parents = {_id(state.config): _id(state.parent_config) for state in oldest_first}
    rows = _rows([_id(state.config) for state in history], parents)
    columns: dict[str, int] = {}
    parts = []
    for state in oldest_first:
        name = _id(state.config)
        parent = parents[name]
        columns[name] = columns.get(parent, -1) + 1
        place = _place(columns[name], rows[name])
        if parent in columns:
            parts.append(_line(_place(columns[parent], rows[parent]), place))
        parts.append(_box(place, state, head=name == _id(history[0].config)))
    width = (max(columns.values(), default=0) + 1) * _STEP[0]
    height = (max(rows.values(), default=0) + 1) * _STEP[1]
    return Picture(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"'
        f' font-family="sans-serif" font-size="12">{"".join(parts)}</svg>'
    )


def _rows(newest_first: Sequence[str], parents: Mapping[str, str]) -> dict[str, int]:
    """The row of each checkpoint: that of its newest descendant, which begins one."""
    rows: dict[str, int] = {}
    branches = 0
    for name in newest_first:
        if name in rows:
            continue
        at = name
        while at in parents and at not in rows:
            rows[at] = branches
            at = parents[at]
        branches += 1
    return rows


def _id(config: Any) -> str:
    return config["configurable"]["checkpoint_id"] if config else ""


def _place(column: int, row: int) -> tuple[int, int]:
    return column * _STEP[0] + 8, row * _STEP[1] + 8


def _line(start: tuple[int, int], end: tuple[int, int]) -> str:
    (x1, y1), (x2, y2) = (
        (start[0] + _BOX[0], start[1] + _BOX[1] // 2),
        (end[0], end[1] + _BOX[1] // 2),
    )
    middle = (x1 + x2) // 2
    return (
        f'<path d="M{x1} {y1} C{middle} {y1} {middle} {y2} {x2} {y2}" fill="none"'
        ' stroke="#818b98" stroke-width="1.5"/>'
    )


def _box(place: tuple[int, int], state: StateSnapshot, *, head: bool) -> str:
    """A checkpoint: its step and what comes next; the head is filled, one that waits is ringed."""
    x, y = place
    waits = bool(state.interrupts)
    step = (state.metadata or {}).get("step", "")
    then = "waits" if waits else ", ".join(state.next) or "at rest"
    fill, ink = ("#0b7a53", "#ffffff") if head else ("#f6f8fa", "#1f2328")
    edge = "#bc4c00" if waits else "#0b7a53" if head else "#818b98"
    return (
        f'<rect x="{x}" y="{y}" width="{_BOX[0]}" height="{_BOX[1]}" rx="8" fill="{fill}"'
        f' stroke="{edge}" stroke-width="{2 if waits or head else 1}"/>'
        f'<text x="{x + 10}" y="{y + 18}" fill="{ink}" font-weight="bold">step {step}</text>'
        f'<text x="{x + 10}" y="{y + 35}" fill="{ink}">{escape(then[:18])}</text>'
    )


class Piece:
    """HTML that a notebook shows.

    Args:
        text: Its text.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    def _repr_html_(self) -> str:
        return self.text


class ProgressBar:
    """Shows progress as a bar: `copy_saver(…, progress=ProgressBar("Copying"))`.

    Takes what copies and imports report (`done`, `total`), and counts all other calls.

    Args:
        title: What is in progress.
    """

    def __init__(self, title: str) -> None:
        self._title = title
        self._count = 0
        self._handle: Any = None

    def __call__(self, progress: object) -> None:
        """Show how far it is."""
        self._count += 1
        done = getattr(progress, "done", self._count)
        total = getattr(progress, "total", None)
        length = f' value="{done}" max="{total}"' if total else ""
        amount = f"{done:,} of {total:,}" if total else f"{done:,}"
        bar = f"{escape(self._title)} <progress{length}></progress> {amount}"
        if self._handle is None:  # no dependency: who sees this runs in IPython
            self._handle = import_module("IPython.display").display(Piece(bar), display_id=True)
        else:
            self._handle.update(Piece(bar))


class _Magics:
    """`%threads DATABASE` and `%thread ID [DATABASE]`; the database that was named last is kept."""

    def __init__(self) -> None:
        self._database = ""

    def threads(self, line: str) -> Piece:
        """The threads that were used last."""
        with self._opened(line) as threads:
            head = ("thread", "title", "status", "waits for", "messages", "last used")
            rows = [
                (info.id, info.title, info.status, info.waiting_for, info.messages, info.updated_at)
                for info in threads.list(limit=20)
            ]
        return Piece(html.table(rows, head))

    def thread(self, line: str) -> Piece:
        """A thread and its newest turns."""
        name, _, database = line.partition(" ")
        with self._opened(database) as threads:
            pieces: list[Any] = [threads.get(name), *threads.turns(name, last=10)]
        return Piece("".join(piece._repr_html_() for piece in pieces))

    def _opened(self, database: str) -> Threads:
        self._database = database.strip().strip("'\"") or self._database
        if not self._database:
            raise InvalidInput("no database is named: write %threads DATABASE, a path or a URL")
        return Threads(existing(self._database, read_only=True))


def load(ipython: Any) -> None:
    """Give IPython the magics `%threads` and `%thread`."""
    magics = _Magics()
    ipython.register_magic_function(magics.threads, "line", "threads")
    ipython.register_magic_function(magics.thread, "line", "thread")
