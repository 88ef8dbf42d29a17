"""Compressed columns, each marked as such: a database may hold both kinds.

A compressed column is a BLOB of `MARK`, a byte that names the format, and a zstd frame without its
magic number. No msgpack begins with the mark, and a text that is not compressed is not a BLOB. The
frame holds the length of its content. It has no checksum of its own: its row has a check
(`storage.rows.checksum`), which a reader compares before it expands anything. A frame with a
checksum is read, too.

The format's byte also names the dictionary: phrases that are common in conversations, programs and
data, without which a short message would not shrink. A released dictionary is never changed; a new
one gets another byte. It is not made from conversations: a dictionary of a thread's own messages
would have to outlive them, but deleted messages must not be stored anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any, Final, Protocol

from langmem_ext.errors import MissingExtra

MARK: Final = b"\xc1"

DICTIONARIES: Final = {b"\xc1": "dictionary-1.zdict"}
"""By the byte of a format. The first is the mark again: with one bit of either flipped, hardly a
row is msgpack (`expand`)."""

FORMAT: Final = b"\xc1"
"""The format that is written."""

LEVEL: Final = 6
"""Level 19 makes texts 2 to 4 % smaller and takes three to five times as long."""

MIN_BYTES: Final = 64
"""The minimum size. Few shorter texts shrink by a tenth."""

WORTH: Final = 0.9
"""The maximum share that must be left: a saved byte or two is not worth an unreadable column."""

MAX_BYTES: Final = 64 * 1024 * 1024
"""The maximum size. Larger content is stored as it is, and a frame that claims to hold more is
damaged or forged."""

RATIO: Final = 256
"""How many bytes one compressed byte may expand to: a file that somebody sends must not hold far
more than it seems to (`messages.size_limits`). Content that shrinks further is mostly one byte
repeated; it is stored as it is."""

HEAD_BYTES: Final = 12
"""The first bytes of a column, which hold its content's length."""

_PREFIX: Final = MARK + FORMAT
_FLIPPED: Final = frozenset(MARK[0] ^ 1 << bit for bit in range(8) if bit != 2)
"""What a flipped bit can turn the mark into. In msgpack of more than three bytes, only C5, a long
`bytes` value, can come before C1."""
_MAGIC: Final = b"\x28\xb5\x2f\xfd"


class Engine(Protocol):
    """zstd as this package uses it, with the dictionary; not for two threads at once."""

    def compress(self, body: bytes) -> bytes:
        """A whole frame."""

    def decompress(self, frame: bytes, length: int) -> bytes:
        """The content of a frame, up to a limit; raises any exception if it is not a frame."""


def require() -> None:
    """Require that compressed columns can be written and read here.

    Raises:
        MissingExtra: There is no zstd.
    """
    _idle.append(_borrow())


def shrink(body: bytes) -> bytes:
    """Bytes as a column holds them: compressed, if that saves a tenth.

    Raises:
        MissingExtra: There is no zstd.
    """
    if not MIN_BYTES <= len(body) <= MAX_BYTES:
        return body
    engine = _borrow()
    try:
        stored = _PREFIX + engine.compress(body)[len(_MAGIC) :]
    finally:
        _idle.append(engine)
    return stored if len(body) / RATIO <= len(stored) <= WORTH * len(body) else body


def shrink_text(text: str) -> str | bytes:
    """A text as a column holds it."""
    if len(text) * 4 < MIN_BYTES:
        return text
    body = text.encode()
    stored = shrink(body)
    return text if stored is body else stored


def expand(stored: bytes) -> bytes:
    """The bytes that `shrink` compressed.

    Raises:
        ValueError: They are damaged, or of a newer release (also zstd's own errors; the caller
            names the row).
        MissingExtra: They are compressed, and there is no zstd.
    """
    if stored[:1] != MARK:
        if stored[1:2] == FORMAT and len(stored) > 3 and stored[0] in _FLIPPED:
            raise ValueError("its first byte is invalid")
        return stored
    length = original_length(stored)
    if not 0 < length <= min(MAX_BYTES, RATIO * len(stored)):
        raise ValueError(f"it claims to have {length} bytes")
    engine = _borrow()
    try:
        body = engine.decompress(_MAGIC + stored[len(_PREFIX) :], length)
    finally:
        _idle.append(engine)
    if len(body) != length:
        raise ValueError("its length does not match its header")
    return body


def expand_text(stored: object) -> object:
    """The text that `shrink_text` compressed; any other content of the column as it is.

    Raises:
        ValueError: As `expand`; also for a BLOB that is not a compressed text.
        MissingExtra: It is compressed, and there is no zstd.
    """
    if not isinstance(stored, bytes):
        return stored
    if stored[:1] != MARK:
        raise ValueError("a text of it is invalid")
    return expand(stored).decode()


def original_length(stored: bytes) -> int:
    """How many bytes a compressed column holds, from its first `HEAD_BYTES`; no zstd is needed.

    Raises:
        ValueError: The length is missing.
    """
    if stored[: len(_PREFIX)] != _PREFIX:
        raise ValueError("its compression is unknown: a newer release may have written it")
    flags = stored[len(_PREFIX)] if len(stored) > len(_PREFIX) else 0
    whole = bool(flags & 0x20)  # a "single segment": its length takes the place of a window's size
    size = (int(whole), 2, 4, 8)[flags >> 6]
    start = len(_PREFIX) + 1 + (not whole)
    if flags & 0x03 or not size or len(stored) < start + size:
        raise ValueError("its compressed data does not state its length")
    return int.from_bytes(stored[start : start + size], "little") + (256 if size == 2 else 0)


# -- zstd ------------------------------------------------------------------------------------------

_idle: Final[list[Engine]] = []
"""Engines that nobody is using: contexts are costly to make, and the threads that need one come and
go."""


def _borrow() -> Engine:
    try:
        return _idle.pop()
    except IndexError:
        return _maker()()


@cache
def _maker() -> Callable[[], Engine]:
    """The factory of engines: `zstandard` if installed, else Python's own zstd.

    `zstandard` takes a tenth of the time to read a short text.
    """
    dictionary = files("langmem_ext.storage.rows").joinpath(DICTIONARIES[FORMAT]).read_bytes()
    for name, engine in (("zstandard", _Zstandard), ("compression.zstd", _StandardLibrary)):
        try:
            module = import_module(name)
        except ImportError:
            continue
        return lambda: engine(module, dictionary)
    raise MissingExtra("a compressed database", "zstd")


class _Zstandard:
    """Of the package `zstandard`."""

    def __init__(self, zstandard: Any, dictionary: bytes) -> None:
        shared = zstandard.ZstdCompressionDict(dictionary, dict_type=zstandard.DICT_TYPE_FULLDICT)
        shared.precompute_compress(level=LEVEL)
        options = {
            "compression_level": LEVEL,
            "write_content_size": True,
            "write_checksum": False,
            "write_dict_id": False,
        }
        parameters = zstandard.ZstdCompressionParameters(**options)
        self._compress = zstandard.ZstdCompressor(
            compression_params=parameters, dict_data=shared
        ).compress
        self._decompress = zstandard.ZstdDecompressor(dict_data=shared).decompress

    def compress(self, body: bytes) -> bytes:
        frame: bytes = self._compress(body)
        return frame

    def decompress(self, frame: bytes, length: int) -> bytes:
        body: bytes = self._decompress(frame, max_output_size=length, allow_extra_data=False)
        return body


class _StandardLibrary:
    """Of Python's own `compression.zstd`."""

    def __init__(self, zstd: Any, dictionary: bytes) -> None:
        self._zstd = zstd
        self._dictionary = zstd.ZstdDict(dictionary).as_digested_dict
        names = zstd.CompressionParameter
        options = {names.compression_level: LEVEL, names.checksum_flag: 0, names.dict_id_flag: 0}
        self._compressor = zstd.ZstdCompressor(options=options, zstd_dict=self._dictionary)

    def compress(self, body: bytes) -> bytes:
        frame: bytes = self._compressor.compress(body, self._compressor.FLUSH_FRAME)
        return frame

    def decompress(self, frame: bytes, length: int) -> bytes:
        decompressor = self._zstd.ZstdDecompressor(zstd_dict=self._dictionary)
        body: bytes = decompressor.decompress(frame, length + 1)
        if not decompressor.eof or decompressor.unused_data:
            raise ValueError("it does not end where it should")
        return body
