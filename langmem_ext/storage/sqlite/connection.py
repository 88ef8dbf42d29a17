"""SQLite connections: opened, or taken over from a caller, and their errors as ours."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote
from weakref import WeakValueDictionary

from langmem_ext.errors import (
    ConnectionInUse,
    DamagedRow,
    NotADatabase,
    StorageError,
    StorageUnavailable,
)
from langmem_ext.storage.schema.migrations import APPLICATION_ID
from langmem_ext.storage.sqlite.lease import FLOCK, SET_LOCK
from langmem_ext.storage.sqlite.migrate import read_rows

with suppress(ImportError):  # not on Windows
    import fcntl

BUSY_TIMEOUT_MS: Final = 5_000
"""How long SQLite itself waits for another process's lock, in milliseconds."""

LOCK_DEADLINE_S: Final = 60.0
"""How many seconds an operation keeps trying to begin before it gives up."""

_LARGEST_PAGE: Final = 65_536
"""Bytes that a page of SQLite's has at most."""

_HEADER_BYTES: Final = 100
_WITH_LOG: Final = b"\2\2"


class SharedLock:
    """The lock of a connection: all users of a connection in this process share it.

    Attributes:
        connection: The connection.
        lock: Held while something runs on the connection.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.lock = threading.RLock()


_locks: WeakValueDictionary[int, SharedLock] = WeakValueDictionary()
_locks_lock = threading.Lock()


def lock_of(connection: sqlite3.Connection) -> SharedLock:
    """The lock of a connection; it lives as long as somebody keeps it."""
    with _locks_lock:
        lock = _locks.get(id(connection))
        if lock is None or lock.connection is not connection:
            lock = _locks[id(connection)] = SharedLock(connection)
        return lock


def storage_error(error: sqlite3.Error | UnicodeDecodeError, path: str) -> StorageError:
    """SQLite's error as one of ours, with what to do next."""
    text = str(error)
    place = path or "the database"
    if isinstance(error, UnicodeDecodeError) or "decode to UTF-8" in text:
        # SQLite's message is left out: it shows the text.
        return DamagedRow(
            f"{place} holds a text that is damaged: `langmem-ext doctor` says which; other threads"
            " stay readable"
        )
    code = getattr(error, "sqlite_errorname", "") or ""
    if code.startswith("SQLITE_NOTADB") or "not a database" in text:
        return NotADatabase(
            f"{place} is not a SQLite database: pass the path of a database, or of a file that does"
            " not exist yet"
        )
    if code.startswith("SQLITE_CORRUPT") or "malformed" in text:
        return _damaged(code, place, text)
    if code.startswith("SQLITE_READONLY"):
        forbidden = path and not (
            os.access(path, os.W_OK) and os.access(Path(path).parent, os.W_OK)
        )
        way_out = (
            "check that the file and its directory are writable"
            if forbidden
            else "open it without mode=ro"
        )
        return StorageUnavailable(f"{place} is read-only ({text}): {way_out}")
    misplaced = _misplaced(path)
    if misplaced or code.startswith(("SQLITE_CANTOPEN", "SQLITE_PERM")) or "unable to open" in text:
        what = (
            misplaced
            or f"{place} cannot be opened for writing ({text}): check that its directory exists"
            " and is writable"
        )
        return StorageUnavailable(what)
    if code.startswith("SQLITE_FULL"):
        return StorageUnavailable(
            f"the disk of {place} is full ({text}): free some space and try again"
        )
    if is_busy(error):
        return StorageUnavailable(
            f"{place} has been locked by another program for over {LOCK_DEADLINE_S:.0f} s: end it"
            " and try again"
        )
    if "created in a thread" in text:
        return StorageUnavailable(
            "the passed connection is bound to one thread: open it with sqlite3.connect(…,"
            " check_same_thread=False)"
        )
    if isinstance(error, sqlite3.ProgrammingError) and "closed" in text:
        return StorageUnavailable(f"the connection to {place} is closed: open it again")
    return StorageError(f"{place} refused an operation ({text}); nothing was changed")


def _misplaced(path: str) -> str:
    """Why there can be no file at a path, and what to do; empty if there can."""
    if path in {"", ":memory:"}:
        return ""
    if Path(path).is_dir():
        return f"{path} is a directory: pass the path of a database file in it"
    folder = Path(path).absolute().parent
    return (
        "" if folder.exists() else f"{path} cannot be opened: create the directory {folder} first"
    )


def _damaged(code: str, place: str, text: str) -> StorageError:
    if code == "SQLITE_CORRUPT_VTAB":
        return StorageError(
            f"the search index of {place} is damaged ({text}): `langmem-ext doctor --fix` rebuilds"
            " it from the messages"
        )
    return StorageError(
        f"{place} is damaged ({text}): restore it from a copy, or read what is left with sqlite3's"
        " .recover"
    )


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection holds a lock that is needed, by SQLite's error code.

    The message may be that of an application's trigger.
    """
    # Extended codes (a snapshot that is too old, a shared cache) say more in their upper bits.
    # Errors of Python itself have no code.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
    )


def connect(path: str, read_only: bool, private: bool) -> sqlite3.Connection:
    """Open a database, or create it; if it is private, only its user can read it.

    Raises:
        StorageError: It cannot be opened (its subclasses say why).
    """
    name = path
    if read_only:
        folder, log = Path(path).parent, Path(f"{path}-wal")
        # If no file can be made beside it, nobody writes it: then SQLite needs none either.
        immutable = "" if os.access(folder, os.W_OK) or log.exists() else "&immutable=1"
        name = f"file:{quote(path)}?mode=ro{immutable}"
    elif private and path not in {"", ":memory:"}:
        # SQLite gives the files beside a database its permissions.
        with suppress(OSError):  # it exists, or cannot be made: SQLite says why
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        return sqlite3.connect(
            name,
            uri=read_only,
            isolation_level=None,
            check_same_thread=False,
            timeout=BUSY_TIMEOUT_MS / 1000,
        )
    except sqlite3.Error as error:
        raise storage_error(error, path) from error


def require_log(path: str) -> None:
    """Require that a file is not the rest of a database whose write-ahead log was lost.

    Until SQLite first copies the log into it (after 4 MB, or when the last process closes it), the
    file of a database that this package has made is one page, which says whose it is and that there
    is a log (`migrate.mark_new`). A later loss cannot be noticed: the file is then a valid earlier
    state.

    Raises:
        StorageError: There is no log, so all that was stored is missing.
    """
    # The last process that closes the database copies the log before deleting it: then the file has
    # more than a page. This is checked twice, for another process may be opening the database.
    if _lacks_log(path) and _lacks_log(path):
        raise StorageError(
            f"{path} has lost its write-ahead log, which held all that was stored: put"
            f" {Path(path).name}-wal back beside it, or restore a backup (`VACUUM INTO` or"
            " `langmem-ext threads export --all` make one while the database is in use); if"
            " nothing was stored there, delete the file"
        )


def _lacks_log(path: str) -> bool:
    """Whether a file is one page whose header says that there is a log, and there is none."""
    try:
        if os.path.exists(f"{path}-wal") or os.stat(path).st_size > _LARGEST_PAGE:
            return False
        header = read_header(path)
    except OSError:  # the file does not exist, or SQLite says what is wrong
        return False
    # By SQLite's file format: the number of pages, the application's id.
    pages_and_application = int.from_bytes(header[28:32]), int.from_bytes(header[68:72])
    return says_log(header) and pages_and_application == (1, APPLICATION_ID)


def read_header(path: str | Path) -> bytes:
    """The header of a file that has no log beside it.

    If there is a log, the file may be open in this process: closing it after reading would drop the
    locks that show other processes that it is in use, and the last of them would delete the log.

    Raises:
        OSError: It cannot be read.
    """
    with open(path, "rb") as file:
        return file.read(_HEADER_BYTES)


def says_log(header: bytes) -> bool:
    """Whether a file's header says that changes are written to a write-ahead log."""
    return header[18:20] == _WITH_LOG


_SHARED_BYTES: Final = (0x40000002, 510)
"""Where SQLite's readers lock a file, and how many bytes (`SHARED_FIRST` of its source `os.h`)."""


class FileWatch:
    """Watches that a database's file, its write-ahead log and lock file stay those at its path.

    SQLite goes on writing into a file that was deleted, or replaced by a backup: all of that is
    lost with the process.

    Args:
        path: The file; nothing is watched in memory.
        with_log: Whether the log stays the same, too, for as long as the database is open.
    """

    def __init__(self, path: str, *, with_log: bool) -> None:
        self._path = path
        ends = ("", "-wal", "-shm") if with_log else ("",)
        named = [] if path in {"", ":memory:"} else [f"{path}{end}" for end in ends]
        self._known = {name: known for name in named if (known := _identity(name)) is not None}

    def add(self, name: str, found: os.stat_result) -> None:
        """Watch one more file, which was opened when this was found of it.

        Raises:
            StorageUnavailable: It is not the one at its path, or not the one that was watched.
        """
        # A new dict: another thread may be going through this one.
        self._known = {name: (found.st_dev, found.st_ino), **self._known}
        self.require()

    def require(self) -> None:
        """Require it.

        Raises:
            StorageUnavailable: They are not.
        """
        for name, known in self._known.items():
            if _identity(name) != known:
                raise StorageUnavailable(
                    f"{name} is no longer the file that was opened: it was deleted, or another was"
                    " put in its place, so nothing more is read or stored here. Put the right file"
                    f" there, and open {Path(self._path).name} again"
                )

    def close(self, connection: sqlite3.Connection) -> None:
        """Close a connection to the file.

        Who closes the last one brings the log into the file, and deletes it. A connection whose
        index of the log was taken away knows only a part of what others have written there: it must
        find that it is not the last.
        """
        changed = [name for name, known in self._known.items() if _identity(name) != known]
        with _held(self._path) if changed == [f"{self._path}-shm"] else nullcontext():
            connection.close()


@contextmanager
def _held(path: str) -> Iterator[None]:
    """Hold a file as another reader does: SQLite's lock on its shared bytes.

    This kind of lock is in the way of the same process, too. Only Linux has it.
    """
    file = os.open(path, os.O_RDONLY)
    try:
        if SET_LOCK is not None:
            lock = FLOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, *_SHARED_BYTES, 0)
            with suppress(OSError):
                fcntl.fcntl(file, SET_LOCK, lock)
        yield
    finally:
        os.close(file)


def _identity(path: str) -> tuple[int, int] | None:
    """What is the same for a file as long as it exists; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def absolute(path: str) -> str:
    """The file's resolved path, by which all processes find the same lock file."""
    return path if path in {"", ":memory:"} else str(Path(path).resolve())


def adopt(connection: sqlite3.Connection) -> sqlite3.Connection:
    """A connection that a caller passed.

    Raises:
        ConnectionInUse: It is inside a transaction.
    """
    if connection.in_transaction:
        raise ConnectionInUse(
            "the passed connection has an open transaction: commit or roll it back first (with"
            " autocommit=False it always has one: open it without)"
        )
    return connection


def path_of(connection: sqlite3.Connection) -> str:
    """The file of a passed connection; empty for a database in memory."""
    try:
        rows = read_rows(connection, "PRAGMA database_list")
    except sqlite3.Error as error:
        raise storage_error(error, "the passed connection") from error
    return str(Path(rows[0][2])) if rows and rows[0][2] else ""
