"""A database of langgraph-checkpoint-sqlite, opened read-only: it and its folder stay unchanged.

Everything is read as of one moment. A database that its application has open is read through its
own write-ahead log. One that nobody has open is read as an immutable file, because SQLite would
otherwise leave two files beside it, and is checked again and again: if somebody opens it meanwhile,
reading ends with an error.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import quote

from langmem_ext._internal.url import Address, require_path
from langmem_ext.errors import (
    DamagedRow,
    InvalidInput,
    NotADatabase,
    StorageError,
    StorageUnavailable,
)
from langmem_ext.storage.operation import Row
from langmem_ext.storage.sqlite.connection import read_header, says_log, storage_error

_SELECT_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table'"
_SELECT_COLUMNS = "SELECT name FROM pragma_table_info(:table)"
_SELECT_THREADS = (
    "SELECT thread_id, count(*) FROM checkpoints GROUP BY thread_id ORDER BY thread_id"
)
_SELECT_CHECKPOINTS = (
    "SELECT checkpoint_ns, checkpoint_id FROM checkpoints WHERE thread_id = :thread ORDER BY"
    " checkpoint_id, checkpoint_ns"
)
_SELECT_CHECKPOINT = (
    "SELECT parent_checkpoint_id, type, checkpoint, metadata FROM checkpoints"
    " WHERE thread_id = :thread AND checkpoint_ns = :namespace AND checkpoint_id = :id"
)
_SELECT_PLACES = (
    "SELECT checkpoint_ns, checkpoint_id, task_id, idx FROM writes WHERE thread_id = :thread"
)
_SELECT_WRITES = (
    "SELECT task_id, {path}, idx, channel, type, value FROM writes WHERE thread_id = :thread AND"
    " checkpoint_ns = :namespace AND checkpoint_id = :id ORDER BY 2, 1, 3"
)

_COLUMNS: Final = {
    "checkpoints": {
        "thread_id",
        "checkpoint_ns",
        "checkpoint_id",
        "parent_checkpoint_id",
        "type",
        "checkpoint",
        "metadata",
    },
    "writes": {
        "thread_id",
        "checkpoint_ns",
        "checkpoint_id",
        "task_id",
        "idx",
        "channel",
        "type",
        "value",
    },
}
_OF_THIS_PACKAGE: Final = "langmem_migration"

_MAGIC: Final = b"SQLite format 3\0"
"""The value of byte 18 of a file in WAL mode."""


@dataclass(frozen=True, slots=True)
class SourceCheckpoint:
    """A checkpoint's row.

    Attributes:
        thread, namespace, id, parent: Its key, and the checkpoint that it follows, or None.
        kind, blob: The checkpoint, as a serializer wrote it.
        metadata: The metadata, mostly as JSON.
    """

    thread: str
    namespace: str
    id: str
    parent: str | None
    kind: str
    blob: bytes
    metadata: bytes | str | None


@dataclass(frozen=True, slots=True)
class SourceWrite:
    """A pending write's row: task, task path, index, channel and the serialized value."""

    task: str
    path: str
    index: int
    channel: str
    kind: str
    blob: bytes


class SaverFile:
    """A database of langgraph-checkpoint-sqlite.

    Args:
        path: The file.

    Raises:
        StorageUnavailable: It does not exist, or cannot be read.
        NotADatabase: It is not a SQLite database, or not one of langgraph-checkpoint-sqlite.
        InvalidInput: It is a database of this package.
    """

    def __init__(self, path: Address) -> None:
        if str(path).startswith(("postgresql://", "postgres://")):
            raise InvalidInput(
                "a SqliteSaver database is a file: for a PostgresSaver, use copy_saver"
            )
        require_path(str(path))
        self.path = Path(path).resolve()
        self._closing = ExitStack()
        try:
            self._immutable = False
            self._connection = self._open()
            self._stamp = self._stat()
            self._has_path = self._look_at_tables()
            # From here on everything is read as of now, even if the application writes.
            self._connection.execute("BEGIN")
            self.threads: Mapping[str, int] = dict(self._read(_SELECT_THREADS))
        except sqlite3.Error as error:
            self.close()
            raise storage_error(error, str(path)) from error
        except BaseException:
            self.close()
            raise

    # -- opening -----------------------------------------------------------------------------------

    def _open(self) -> sqlite3.Connection:
        if not self.path.is_file():
            raise StorageUnavailable(
                f"database {self.path} not found: pass the path of a SqliteSaver database"
            )
        place, options = self.path, "mode=ro"
        if _beside(self.path, "-wal").exists():
            if not _beside(self.path, "-shm").exists():
                place = self._copied()
        elif self._says_log():
            self._immutable = True
            options = "mode=ro&immutable=1"
        connection = sqlite3.connect(
            f"file:{quote(str(place))}?{options}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
        )
        self._closing.callback(connection.close)
        return connection

    def _says_log(self) -> bool:
        """Whether the file says that it has a write-ahead log, if there is none."""
        try:
            header = read_header(self.path)
        except OSError as error:
            raise StorageUnavailable(
                f"{self.path} cannot be read ({error.strerror}): check its permissions"
            ) from error
        if header and not header.startswith(_MAGIC):
            raise NotADatabase(
                f"{self.path} is not a SQLite database: pass the path of a SqliteSaver database"
            )
        return says_log(header)

    def _copied(self) -> Path:
        """A copy in a folder of its own.

        Of a file that was copied with its log, but without the log's index, SQLite makes that.
        """
        folder = Path(self._closing.enter_context(TemporaryDirectory(prefix="langmem-ext-")))
        for suffix in ("", "-wal"):
            shutil.copyfile(_beside(self.path, suffix), folder / f"source{suffix}")
        return folder / "source"

    def _look_at_tables(self) -> bool:
        """Check that the tables are a SqliteSaver's; whether its writes have a task path.

        Later releases added that path.
        """
        tables = {name for (name,) in self._read(_SELECT_TABLES)}
        if "checkpoints" not in tables and _OF_THIS_PACKAGE in tables:
            raise InvalidInput(
                f"{self.path} is a langmem_ext database already: open it with DeltaSaver.open,"
                " nothing needs importing"
            )
        columns = {
            table: {name for (name,) in self._read(_SELECT_COLUMNS, table=table)}
            for table in _COLUMNS
        }
        for table, wanted in _COLUMNS.items():
            if missing := sorted(wanted - columns[table]):
                what = (
                    f"table {table!r}"
                    if table not in tables
                    else f"column {missing[0]!r} in its table {table!r}"
                )
                raise NotADatabase(
                    f"{self.path} is not a database of langgraph-checkpoint-sqlite 2 or later (it"
                    f" has no {what}): give the file that a SqliteSaver has written"
                )
        return "task_path" in columns["writes"]

    # -- reading -----------------------------------------------------------------------------------

    def checkpoints(self, thread: str) -> list[tuple[str, str]]:
        """Namespace and id of each of a thread's checkpoints, oldest first."""
        return [
            (namespace, checkpoint)
            for namespace, checkpoint in self._read(_SELECT_CHECKPOINTS, thread=thread)
        ]

    def places(self, thread: str) -> dict[tuple[str, str], set[tuple[str, int]]]:
        """Task and index of each of a thread's pending writes, by namespace and checkpoint."""
        places: dict[tuple[str, str], set[tuple[str, int]]] = {}
        for namespace, checkpoint, task, index in self._read(_SELECT_PLACES, thread=thread):
            places.setdefault((namespace, checkpoint), set()).add((task, index))
        return places

    def checkpoint(
        self, thread: str, namespace: str, checkpoint_id: str
    ) -> SourceCheckpoint | None:
        """A checkpoint; None if there is none.

        Raises:
            DamagedRow: The row cannot be read.
        """
        what = f"checkpoint {checkpoint_id} of thread {thread!r}"
        rows = self._read_row(
            _SELECT_CHECKPOINT, what, thread=thread, namespace=namespace, id=checkpoint_id
        )
        if not rows:
            return None
        parent, kind, blob, metadata = rows[0]
        if not isinstance(blob, bytes) or not isinstance(kind, str):
            raise DamagedRow(f"{what} has no value")
        return SourceCheckpoint(
            thread, namespace, checkpoint_id, parent or None, kind, blob, metadata
        )

    def writes(self, thread: str, namespace: str, checkpoint_id: str) -> list[SourceWrite]:
        """A checkpoint's pending writes, in LangGraph's order.

        Raises:
            DamagedRow: They cannot be read.
        """
        what = f"the pending writes of checkpoint {checkpoint_id} of thread {thread!r}"
        statement = _SELECT_WRITES.format(path="task_path" if self._has_path else "''")
        rows = self._read_row(statement, what, thread=thread, namespace=namespace, id=checkpoint_id)
        if not all(isinstance(kind, str) for *_, kind, _ in rows):
            raise DamagedRow(f"{what} have no value")
        return [
            SourceWrite(task, path, index, channel, kind, blob or b"")
            for task, path, index, channel, kind, blob in rows
        ]

    def _read(self, statement: str, **params: Any) -> Sequence[Row]:
        return self._connection.execute(statement, params).fetchall()

    def _read_row(self, statement: str, what: str, **params: Any) -> Sequence[Row]:
        try:
            return self._read(statement, **params)
        except sqlite3.Error as error:
            raise DamagedRow(f"{what} cannot be read ({error})") from error

    # -- the file ----------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Bytes of the file, and of what its application has not yet moved from the log into it."""
        return sum(size for size, _ in self._stat())

    def check_unchanged(self) -> None:
        """Make sure that what is being read as an immutable file was not written since.

        Raises:
            StorageError: It was.
        """
        if self._immutable and (self._stat() != self._stamp or _beside(self.path, "-wal").exists()):
            raise StorageError(
                f"{self.path} was changed by another program during the import: run the import"
                " again"
            )

    def _stat(self) -> list[tuple[int, int]]:
        files = [self.path, _beside(self.path, "-wal")]
        return [(file.stat().st_size, file.stat().st_mtime_ns) for file in files if file.exists()]

    def close(self) -> None:
        """Close it; idempotent."""
        self._closing.close()


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)
