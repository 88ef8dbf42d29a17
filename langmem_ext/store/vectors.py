"""The vectors of an index, compared with a query's.

With numpy (extra `vectors`) the vectors of a large store are kept in memory, and stay current: a
vector never changes, and gets a number that no other had, so the count and the highest number tell
whether any was added or deleted. Without numpy, or if they are too many to keep, the database
compares them if it can (`Driver.compares_vectors`); else they are read and compared one by one. The
results are the same.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from operator import mul
from typing import TYPE_CHECKING, Any, Final

from langmem_ext.storage.operation import PAUSE, Op, fetch, operation
from langmem_ext.storage.schema.store import MOST_DIMS
from langmem_ext.store import statements as sql

if TYPE_CHECKING:
    import numpy

    Floats = numpy.ndarray[Any, numpy.dtype[numpy.float32]]
    Numbers = numpy.ndarray[Any, numpy.dtype[numpy.int64]]

FEW: Final = 1_000
"""Up to so many items, vectors are read rather than kept."""

PAGE: Final = 2_000
"""How many vectors are read at a time."""

LARGEST: Final = 512 * 1024 * 1024
"""The maximum bytes of vectors that are kept."""

HAS_NUMPY: Final = find_spec("numpy") is not None


@dataclass(frozen=True, slots=True)
class _Kept:
    """Vectors in memory, by their numbers, which rise."""

    numbers: Numbers
    items: Numbers
    matrix: Floats

    def __len__(self) -> int:
        return len(self.numbers)


class Vectors:
    """The vectors of one index.

    Args:
        signature: The index.
        dims: How many numbers each has.

    Attributes:
        by_numpy: Whether numpy compares them: it is installed, and they are not too many.
        by_database: Whether the database can compare them; None if it has not been asked.
    """

    def __init__(self, signature: int, dims: int) -> None:
        self._signature = signature
        self._dims = dims
        self._kept: _Kept | None = None
        self.by_numpy = HAS_NUMPY
        self.by_database: bool | None = None

    @property
    def looks(self) -> bool:
        """Whether the database must be asked if it can compare them."""
        return not self.by_numpy and self.by_database is None

    def forget(self, thread_id: str | None = None) -> None:
        """Drop what is kept, after a failure, unless that was a thread's: it may be rolled back.

        The database may have lost what compares vectors, so it is asked again.
        """
        if thread_id is None:
            self._kept = self.by_database = None

    def scores(self, query: bytes, count: int, within: dict[str, Any]) -> Op[dict[int, float]]:
        """The cosine of each item's best vector and the query's.

        Args:
            query: The query's vector, as it would be stored.
            count: How many items are searched.
            within: The parameters that select them; if they are many, the result may have more.
        """
        few = HAS_NUMPY and count <= FEW
        if HAS_NUMPY and not few:
            kept = yield from self._renewed()
            if kept is not None:
                return self._compare(query, kept.items, kept.matrix)
        where = {**within, "signature": self._signature}
        if self.by_database and not few and self._dims <= MOST_DIMS:
            return _nearest((yield from fetch(sql.SELECT_COSINES, **where, query=query)))
        rows = yield from fetch(sql.SELECT_VECTORS, **where)
        if HAS_NUMPY:
            kept = self._stacked([(0, *row) for row in rows])
            return self._compare(query, kept.items, kept.matrix)
        return _nearest(_cosines(query, rows))

    @operation
    def count(self) -> Op[None]:
        """Find out whether numpy can compare them."""
        yield from self._counted()

    def _counted(self) -> Op[tuple[int, int]]:
        """How many vectors there are, and the highest number."""
        [(count, last)] = yield from fetch(sql.COUNT_VECTORS, signature=self._signature)
        self.by_numpy = HAS_NUMPY and count * self._dims * 4 <= LARGEST
        return count, last

    def _renewed(self) -> Op[_Kept | None]:
        """The vectors as they are now; None if they are too many to keep."""
        count, last = yield from self._counted()
        if not self.by_numpy:
            self._kept = None
            return None
        kept = self._kept or self._stacked([])
        if len(kept) != count or (count and kept.numbers[-1] != last):
            kept = self._joined(kept, (yield from self._read(kept)))
            if len(kept) != count:
                kept = yield from self._left(kept)
            if len(kept) != count:  # a vector with an earlier number was stored late
                empty = self._stacked([])
                kept = self._joined(empty, (yield from self._read(empty)))
            self._kept = kept
        return kept

    def _read(self, kept: _Kept) -> Op[list[_Kept]]:
        after = int(kept.numbers[-1]) if len(kept) else -1
        read: list[_Kept] = []
        where = {"signature": self._signature, "limit": PAGE}
        while rows := (yield from fetch(sql.SELECT_VECTORS_BEHIND, **where, after=after)):
            read.append(self._stacked(rows))
            after = rows[-1][0]
            yield PAUSE
        return read

    def _left(self, kept: _Kept) -> Op[_Kept]:
        """The kept vectors without those that were deleted."""
        import numpy  # noqa: PLC0415 (an extra)

        rows = yield from fetch(sql.SELECT_VECTOR_NUMBERS, signature=self._signature)
        left = numpy.isin(kept.numbers, numpy.array([number for (number,) in rows], numpy.int64))
        return _Kept(kept.numbers[left], kept.items[left], kept.matrix[left])

    def _stacked(self, rows: Sequence[tuple[int, int, bytes]]) -> _Kept:
        import numpy  # noqa: PLC0415 (an extra)

        matrix = numpy.frombuffer(b"".join(row[2] for row in rows), "<f4")
        return _Kept(
            numpy.array([row[0] for row in rows], numpy.int64),
            numpy.array([row[1] for row in rows], numpy.int64),
            matrix.reshape(len(rows), self._dims),
        )

    def _joined(self, kept: _Kept, more: Sequence[_Kept]) -> _Kept:
        import numpy  # noqa: PLC0415 (an extra)

        all_ = [kept, *more]
        return _Kept(
            numpy.concatenate([part.numbers for part in all_]),
            numpy.concatenate([part.items for part in all_]),
            numpy.concatenate([part.matrix for part in all_]),
        )

    def _compare(self, query: bytes, items: Numbers, matrix: Floats) -> dict[int, float]:
        import numpy  # noqa: PLC0415 (an extra)

        # Not `@`: its threads wait for busy processors longer than they compute.
        cosines = numpy.einsum("ij,j->i", matrix, numpy.frombuffer(query, "<f4"))
        rising = numpy.argsort(cosines, kind="stable")
        # The nearest of an item's vectors comes last, and stays.
        return dict(zip(items[rising].tolist(), cosines[rising].tolist(), strict=True))


def _cosines(query: bytes, rows: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, float]]:
    form = struct.Struct(f"<{len(query) // 4}f")
    wanted = form.unpack(query)
    return ((item, sum(map(mul, wanted, form.unpack(vector)))) for item, vector in rows)


def _nearest(rows: Iterable[tuple[int, float]]) -> dict[int, float]:
    """By item, the cosine of the nearest of its vectors."""
    scores: dict[int, float] = {}
    for item, cosine in rows:
        scores[item] = max(scores.get(item, -1.0), cosine)
    return scores
