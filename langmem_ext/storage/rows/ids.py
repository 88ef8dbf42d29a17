"""Checkpoint, task and message ids as bytes: 16 for a canonical UUID, else the text.

Each decodes to the same id, and within each form the order is the same.

A thread's checkpoints are ordered by their keys. A checkpoint's key is its id, unless it followed
the newest and has a lower id, because its clock was behind: then its key sorts after all others of
the thread (`key_behind`).

Ids of different forms do not sort as their texts do. To sort alike, every other id would have to be
stored after the bytes of the UUID before it, 16 more bytes in every row that names one. LangGraph
names its checkpoints by UUIDs alone; a thread that mixes both is made by hand.
"""

from __future__ import annotations

import os
import random
import secrets
import time
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b

from langmem_ext.errors import DamagedRow, InvalidInput

UUID_LENGTH = 16


@lru_cache(maxsize=4096)
def encode_id(text: str) -> bytes:
    """An id as bytes that sort as the ids of its form do.

    A canonical UUID (lower case, with dashes) is its 16 bytes. Any other text is its UTF-8 with a
    zero byte appended (and a second one if that makes 16), so that the two forms never collide.

    Raises:
        InvalidInput: The id has a NUL character.
    """
    if len(text) == 36 and text[8] == text[13] == text[18] == text[23] == "-":
        try:
            value = bytes.fromhex(digits := text.replace("-", ""))
        except ValueError:
            pass
        else:
            if len(value) == UUID_LENGTH and value.hex() == digits:
                return value
    if "\0" in text:
        raise InvalidInput("an id has a NUL character (\\0): use printable characters")
    raw = text.encode("utf-8", "surrogatepass") + b"\0"
    return raw + b"\0" if len(raw) == UUID_LENGTH else raw


def decode_id(raw: bytes) -> str:
    """The id that `encode_id` encoded.

    Raises:
        DamagedRow: The bytes are not an id.
    """
    if not isinstance(raw, bytes):
        raise DamagedRow(
            "an id is invalid: `langmem-ext doctor` shows where; other threads stay readable"
        )
    if len(raw) == UUID_LENGTH:
        digits = raw.hex()
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
    return raw.rstrip(b"\0").decode("utf-8", "surrogatepass")


_COUNT_LENGTH = 8


def key_behind(raw: bytes) -> bytes:
    """A key that sorts after `raw`, a checkpoint's key.

    It is the same key with a count appended; no id is encoded so.
    """
    base, count = (
        (raw[:-_COUNT_LENGTH], raw[-_COUNT_LENGTH:])
        if is_behind(raw)
        else (raw, bytes(_COUNT_LENGTH))
    )
    if len(base) + _COUNT_LENGTH == UUID_LENGTH:
        base += b"\0"
    # The last byte is odd: an encoded text ends with a zero byte.
    return base + (int.from_bytes(count, "big") + 1 | 1).to_bytes(_COUNT_LENGTH, "big")


def is_behind(raw: bytes) -> bool:
    """Whether a key is one that `key_behind` made."""
    return len(raw) > _COUNT_LENGTH and len(raw) != UUID_LENGTH and raw[-1] & 1 == 1


def is_uuid(raw: bytes) -> bool:
    """Whether an id is a UUID."""
    return len(raw) == UUID_LENGTH


_UUID_EPOCH_MS = 12_219_292_800_000
"""Milliseconds from 1582-10-15, from which version 6 UUIDs count, to 1970."""

_MOMENT = 10_000_000
"""A second, in the units of such an id."""


def first_id_at(milliseconds: int) -> bytes:
    """The lowest version 6 UUID of a Unix time in milliseconds, or of now if that is a moment ago.

    LangGraph gives such ids to checkpoints that are made then: several in a millisecond.
    """
    then, now = milliseconds * 10_000, time.time_ns() // 100
    ticks = _UUID_EPOCH_MS * 10_000 + (now if 0 <= now - then < _MOMENT else then)
    high = (ticks >> 12 & (1 << 48) - 1) << 16 | 6 << 12 | ticks & 0xFFF
    return high.to_bytes(8, "big") + bytes(8)


def readable(raw: object) -> str:
    """An id for people, even if it is invalid."""
    if not isinstance(raw, bytes):
        return repr(raw)
    with suppress(ValueError):
        return decode_id(raw)
    return raw.hex()


@lru_cache(maxsize=4096)
def thread_number(thread_id: str) -> int:
    """A thread's number if it follows from the id: 63 bits, the same in every database."""
    return (
        int.from_bytes(
            blake2b(thread_id.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big"
        )
        >> 1
    )


def new_generation() -> int:
    """A new thread's generation, which differs from that of a deleted thread with its number."""
    return secrets.randbits(31)


def new_version() -> int:
    """A thread's version after a write: one that it did not have before."""
    return _chance.getrandbits(62)


_chance = random.Random()  # this module's own: a program may seed the global one
if hasattr(os, "register_at_fork"):  # else there is no fork
    os.register_at_fork(after_in_child=_chance.seed)
