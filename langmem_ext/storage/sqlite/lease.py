"""Leases of threads among all processes that use one file.

A lease is one byte of `<database>-lock`, chosen by the thread id's hash, under an
open-file-description lock: it ends with its process, however that ends. It is released explicitly,
because a forked child shares the description and would keep it.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Callable
from contextlib import suppress

from langmem_ext.errors import StorageUnavailable
from langmem_ext.storage.driver import Leases

try:
    import fcntl

    SET_LOCK: int | None = getattr(fcntl, "F_OFD_SETLK", None)
except ImportError:  # pragma: no cover - not on POSIX
    SET_LOCK = None
# If the system has no such locks (they are Linux's), leases hold within one process.

_OPEN_MODE = 0o600
_WRITE = 0o222
FLOCK = struct.Struct("hhqqi")


class FileLeases(Leases):
    """Leases among all processes that use one database file.

    Args:
        database: The file.
        held: Called with the lock file's path and state when a lease was taken. Others that find
            another file there can take the same lease.
    """

    def __init__(self, database: str, held: Callable[[str, os.stat_result], None]) -> None:
        super().__init__()
        self._database = database
        self._path = f"{database}-lock"
        self._held_file = held

    def take(self, thread_id: str) -> object | None:
        """Take the lease now; None if another holds it."""
        if SET_LOCK is None:  # pragma: no cover
            return super().take(thread_id)
        try:
            descriptor = self._open()
        except OSError as error:
            raise StorageUnavailable(
                f"the lock file {self._path} cannot be opened ({error}): check that it may be"
                " written"
            ) from error
        try:
            fcntl.fcntl(descriptor, SET_LOCK, _byte_of(thread_id, fcntl.F_WRLCK))
            self._held_file(self._path, os.fstat(descriptor))
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor, thread_id, os.getpid()

    def _open(self) -> int:
        try:
            return os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _OPEN_MODE)
        # Who may write the database must be able to drive its threads, whoever makes the lock, and
        # nobody else may lock others out.
        with suppress(OSError):
            database = os.stat(self._database)
            writers = database.st_mode & _WRITE
            os.fchmod(descriptor, _OPEN_MODE | writers | writers << 1)
            if os.geteuid() == 0:
                os.fchown(descriptor, database.st_uid, database.st_gid)
        return descriptor

    def give_back(self, token: object) -> None:
        """End a lease that `take` gave."""
        if not isinstance(token, tuple):  # pragma: no cover
            super().give_back(token)
            return
        descriptor, thread_id, taker = token
        assert SET_LOCK is not None
        try:
            # A forked child that leaves the context must not end its parent's lease.
            if taker == os.getpid():
                fcntl.fcntl(descriptor, SET_LOCK, _byte_of(thread_id, fcntl.F_UNLCK))
        finally:
            os.close(descriptor)


def _byte_of(thread_id: str, kind: int) -> bytes:
    """A `struct flock` for a thread's byte."""
    offset = int.from_bytes(
        hashlib.blake2b(thread_id.encode("utf-8", "surrogatepass"), digest_size=7).digest(), "big"
    )
    return FLOCK.pack(kind, os.SEEK_SET, offset, 1, 0)
