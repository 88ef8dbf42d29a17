"""The files of exports and imports: paths, URLs, open files.

A path or a URL gets the whole export or nothing. An import is read line by line, and no further
than the limit.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import shutil
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Final, TypeAlias
from uuid import uuid4

from langmem_ext._internal.secret_names import masked_parameters
from langmem_ext.errors import InvalidInput, MalformedExport, MissingExtra

Place: TypeAlias = str | os.PathLike[str] | IO[str] | IO[bytes]
"""A path, a URL that fsspec supports, `-` for standard input and output, or an open file, of text
or of bytes."""

Write: TypeAlias = Callable[[bytes], Any]

GZIP: Final = ".gz"
"""The suffix of compressed files."""

GZIP_MAGIC: Final = b"\x1f\x8b"
"""The first bytes of compressed files."""

_SQLITE: Final = b"SQLite format 3\0"
_BESIDE: Final = ("-wal", "-shm", "-journal")
"""Suffixes of the files that SQLite keeps beside a database: their content is a part of it."""

_FILE_URL: Final = "file://"
"""A URL that is a path: it must be written whole or not at all, and must not be a database; fsspec
would write to it directly."""

_URL: Final = re.compile(r"[\w+.\-]+://\S*")

_OPEN_MODE: Final = 0o600

_UNIQUE: Final = 12
"""Random characters that distinguish concurrent exports to one path."""

_ABANDONED: Final = 3600
"""Seconds without a write after which an export has been killed; one that lives writes every few
moments."""


@contextmanager
def written(place: Place) -> Iterator[Write]:
    """Write to a place; a path or URL has all of it when the context ends, or nothing on error.

    Raises:
        InvalidInput: It cannot be written.
        MissingExtra: It is a URL, and fsspec is not installed.
    """
    if not isinstance(place, str | os.PathLike):
        yield _writer_of(place)
        return
    name = os.fspath(place)
    if name == "-":
        yield _writer_of(sys.stdout)
        return
    try:
        with (
            _written_url(name) if _is_url(name) else _written_path(_path_of(name)) as raw,
            _compressing(raw, name) as file,
        ):
            yield file.write
    except OSError as error:
        raise InvalidInput(
            f"{_without_secrets(name)} cannot be written ({_reason(error, name)}): pass another"
            " path, or a URL"
        ) from error


def _path_of(name: str) -> Path:
    """The path that a name is.

    Raises:
        InvalidInput: It is invalid.
    """
    if not name or "\0" in name:
        raise InvalidInput(f"{name!r} is not a path: pass the path of a file")
    return Path(name.removeprefix(_FILE_URL))


@contextmanager
def _written_path(path: Path) -> Iterator[IO[bytes]]:
    """A new file beside the one it replaces, which only the user may read."""
    if path.is_dir():
        raise InvalidInput(f"{path} is a directory: pass the path of a file in it")
    if _is_database(path) or any(
        path.name.endswith(end) and _is_database(path.with_name(path.name.removesuffix(end)))
        for end in _BESIDE
    ):
        raise InvalidInput(f"{path} is a database file: pass another path")
    if path.exists() and not path.is_file():
        # A pipe or a device: there is nothing to take the place of, and it must stay what it is.
        with path.open("wb") as opened:
            yield opened
        return
    path = Path(os.path.realpath(path))  # a link stays one, and what it leads to is replaced
    _remove_abandoned(path)
    beside = path.with_name(f".{path.name}.{uuid4().hex[:_UNIQUE]}")
    file = os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OPEN_MODE), "wb")
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise


def _remove_abandoned(path: Path) -> None:
    """Remove what killed exports to this path have left beside it: files not written for long."""
    begun = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{{_UNIQUE}}}")
    with suppress(OSError):  # a folder that cannot be read can be written to all the same
        for left in [left for left in os.scandir(path.parent) if begun.fullmatch(left.name)]:
            with suppress(OSError):  # another export was faster
                if time.time() - left.stat(follow_symlinks=False).st_mtime > _ABANDONED:
                    os.unlink(left.path)


def _is_database(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as there:
        return there.read(len(_SQLITE)) == _SQLITE


@contextmanager
def _written_url(url: str) -> Iterator[IO[bytes]]:
    """A file that is sent to the URL when it is complete; if stopped before, nothing is sent."""
    target = _opened_url(url, "wb")
    with tempfile.TemporaryFile() as file:
        yield file
        file.seek(0)
        try:
            with target as remote:
                shutil.copyfileobj(file, remote, 1 << 20)
        except Exception as error:
            raise InvalidInput(
                f"{_without_secrets(url)} cannot be written ({type(error).__name__})"
            ) from error


@contextmanager
def _compressing(raw: IO[bytes], name: str) -> Iterator[IO[bytes]]:
    if not name.endswith(GZIP):
        yield raw
        return
    with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as file:
        yield file  # type: ignore[misc]  # it is a file of bytes


def _writer_of(file: Any) -> Write:
    if isinstance(file, io.RawIOBase | io.BufferedIOBase):
        return file.write
    if not callable(getattr(file, "write", None)):
        raise InvalidInput(
            f"cannot write to {type(file).__name__}: pass a path, a URL or a file open for writing"
        )
    buffer = getattr(file, "buffer", None)
    if file is sys.stdout and buffer is not None:
        file.flush()
        return buffer.write  # type: ignore[no-any-return]
    return lambda body: file.write(body.decode("utf-8", "surrogatepass"))


@contextmanager
def read_lines(place: Place, *, max_bytes: int, max_line: int) -> Iterator[Iterator[bytes]]:
    """The lines of a place, without their ends.

    Args:
        place: Where to read.
        max_bytes: How much there may be, decompressed.
        max_line: How long a line may be.

    Raises:
        InvalidInput: It cannot be read.
        MissingExtra: It is a URL, and fsspec is not installed.
        MalformedExport: There is more than is allowed, or it is damaged; raised while it is read.
    """
    if not isinstance(place, str | os.PathLike):
        yield _lines(place, max_bytes, max_line)
        return
    name = os.fspath(place)
    if name == "-":
        yield _lines(getattr(sys.stdin, "buffer", sys.stdin), max_bytes, max_line)
        return
    try:
        with (
            _opened_url(name, "rb") if _is_url(name) else _path_of(name).open("rb") as raw,
            _expanding(raw, name) as file,
        ):
            yield _lines(file, max_bytes, max_line)
    except OSError as error:
        raise InvalidInput(
            f"{_without_secrets(name)} cannot be read ({_reason(error, name)}): pass the path of an"
            " export"
        ) from error


@contextmanager
def _expanding(raw: IO[bytes], name: str) -> Iterator[IO[bytes]]:
    if not name.endswith(GZIP):
        yield raw
        return
    with gzip.GzipFile(fileobj=raw, mode="rb") as file:
        yield file  # type: ignore[misc]  # it is a file of bytes


def _lines(file: Any, max_bytes: int, max_line: int) -> Iterator[bytes]:
    if not callable(getattr(file, "readline", None)):
        raise InvalidInput(
            f"cannot read from {type(file).__name__}: pass a path, a URL or a file open for reading"
        )
    number, left = 0, max_bytes
    while True:
        number += 1
        try:
            line = file.readline(max_line + 2)
            body = line.encode() if isinstance(line, str) else bytes(line)
        except UnicodeError as error:
            raise MalformedExport(
                number, "it is not text: this is not an export of threads, or it is damaged"
            ) from error
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise MalformedExport(number, f"the file is damaged ({error}): export again") from error
        if not body:
            return
        left -= len(body)
        body = body.removesuffix(b"\n").removesuffix(b"\r")
        if len(body) > max_line:
            raise MalformedExport(
                number, f"it is longer than {max_line} bytes: if you trust the file, raise max_line"
            )
        if left < 0:
            raise MalformedExport(
                number,
                f"the file holds more than {max_bytes} bytes: if you trust it, raise max_bytes",
            )
        yield body


# -- URLs ------------------------------------------------------------------------------------------


def _is_url(name: str) -> bool:
    return "::" in name or ("://" in name and not name.startswith(_FILE_URL))


def _opened_url(url: str, mode: str) -> Any:
    """A context manager that opens a URL.

    Raises:
        MissingExtra: fsspec is not installed.
        InvalidInput: fsspec does not support the URL.
    """
    try:
        fsspec = import_module("fsspec")
    except ImportError as error:
        raise MissingExtra("an export to or from a URL", "fsspec") from error
    try:
        return fsspec.open(url, mode)
    except (ImportError, ValueError) as error:
        raise InvalidInput(
            f"{_without_secrets(url)} cannot be opened ({_reason(error, url)}): pass a URL that"
            " fsspec supports"
        ) from error


def _without_secrets(url: str) -> str:
    """A URL without what is before its host's `@`, and with secret parameters masked."""
    scheme, separator, rest = url.partition("://")
    return masked_parameters(f"{scheme}{separator}{rest.rpartition('@')[2]}") if separator else url


def _reason(error: OSError | ImportError | ValueError, name: str) -> str:
    """Why a place is invalid, without quoting a URL: it may hold a secret."""
    if isinstance(error, OSError):
        return type(error).__name__ if _is_url(name) else str(error.strerror or error)
    return _URL.sub(lambda url: _without_secrets(url[0]), str(error))
