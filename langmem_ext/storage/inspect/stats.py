"""Operations that count what a database holds. No content is decoded."""

from __future__ import annotations

from dataclasses import dataclass

from langmem_ext.storage.inspect import stats_sql as sql
from langmem_ext.storage.operation import PAUSE, Op, fetch, fetch_one, operation
from langmem_ext.storage.prune.prune import measure_thread


@dataclass(frozen=True, slots=True)
class Measured:
    """Counts of one thread.

    Attributes:
        number, id: The thread's.
        bytes: About how many bytes the thread's rows take, with their entries in indexes.
        text, rest: Bytes of its messages' texts, and of what the columns do not hold.
        messages, human: How many messages it has, and how many from a person.
        checkpoints: How many checkpoints it has.
    """

    number: int
    id: str
    bytes: int
    text: int
    rest: int
    messages: int
    human: int
    checkpoints: int


@operation
def measure_file() -> Op[tuple[dict[str, int], bool]]:
    """Bytes by table and index, `free` and of the whole `file`; and whether pages were counted.

    If they were not, only the last two are included.
    """
    [(page, pages, free)] = yield from fetch(sql.SELECT_PAGES)
    sizes = {"free": page * free, "file": page * pages}
    if (yield from fetch_one(sql.HAS_PAGE_TABLE)) is None:
        return sizes, False
    return sizes | {name: size for name, size in (yield from fetch(sql.SUM_PAGES))}, True


@operation
def count_rows() -> Op[tuple[int, int, int, int, int]]:
    """How many threads, checkpoints, rows of pending writes, items and values there are."""
    threads, checkpoints, writes, items, values = (yield from fetch(sql.COUNT_ROWS))[0]
    return threads, checkpoints, writes, items, values


@operation
def measure_threads(after: int, limit: int) -> Op[list[Measured]]:
    """Measure a page of threads, by their numbers."""
    page: list[Measured] = []
    for number, name in (yield from fetch(sql.SELECT_THREADS, after=after, limit=limit)):
        has = yield from measure_thread(number)
        [counts] = yield from fetch(sql.MEASURE_MESSAGES, thread=number)
        text, rest, messages, human = map(int, counts)
        page.append(
            Measured(number, str(name), has.bytes, text, rest, messages, human, has.checkpoints)
        )
        yield PAUSE
    return page
