"""Operations on a conversation's turns: found by columns; only the requested messages are read.

A turn begins with a user's message, unless that is between a tool call and the call's result
(`messages.turns`). Roles and the calls that results answer are columns. Calls are not, so an AI
message is read to match a result with its call.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from langmem_ext.messages.call_ids import call_ids_in
from langmem_ext.messages.manifest import Runs, length_of, numbers_of, ranges_of, runs_of
from langmem_ext.messages.packed import fields_of
from langmem_ext.storage.cache import ThreadCache, ThreadCaches
from langmem_ext.storage.checkpoints import sql
from langmem_ext.storage.checkpoints.messages import read_messages
from langmem_ext.storage.operation import PAUSE, PAUSE_EVERY, Op, fetch, operation
from langmem_ext.storage.rows.checkpoint import ValueRef
from langmem_ext.storage.rows.compression import MARK
from langmem_ext.storage.rows.ids import encode_id
from langmem_ext.storage.rows.message import HUMAN_CODES, SYSTEM_CODES, TOOL_CODES
from langmem_ext.storage.schema.dialect import INSTR, KEY, NUMBER, WITHIN
from langmem_ext.storage.threads.history import list_of_conversation
from langmem_ext.types import Codec, Snapshot, ThreadKey

PAGE: Final = 1024
"""How many rows' roles are read at a time."""

NEAR: Final = 64
"""A result's call is searched for among so many messages before it; only then is the whole
conversation read."""

FRAGMENTS: Final = 256
"""A list of more ranges than this is read whole: each range would be a query of its own."""

SELECT_MARKS = (
    f"SELECT {KEY}, role, tool_call_id FROM item WHERE {WITHIN}"
    f" AND role IN {(*HUMAN_CODES, *TOOL_CODES)} ORDER BY {KEY} DESC LIMIT :limit"
)
SELECT_APART = (
    f"SELECT {KEY}, role FROM item WHERE {WITHIN} AND (role IS NULL OR role IN {SYSTEM_CODES})"
    f" ORDER BY {KEY}"
)
SELECT_NAMING = (
    f"SELECT {KEY} FROM item WHERE {WITHIN} AND rest IS NOT NULL AND (role IS NULL OR {INSTR}(rest,"
    f" :part) > 0 OR {INSTR}(substr(rest, 1, 2), :mark) > 0) ORDER BY {KEY}"
)
_MODELS: Final = ("ai", "AIMessageChunk")


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a conversation.

    Attributes:
        messages: Its system messages, wherever they are, and the messages of its newest turns:
            their exact bytes.
        left_out: How many turns come before these; 0 if they were not counted.
        begin: How many messages of the list come before these turns.
    """

    messages: list[Snapshot]
    left_out: int = 0
    begin: int = 0


def read_tail(
    key: ThreadKey, count: int | None, *, numbered: bool = False, caches: ThreadCaches, codec: Codec
) -> Op[Tail]:
    """The newest turns of a thread's conversation.

    Args:
        key: The thread.
        count: How many turns, at least; None for all.
        numbered: Whether to count the turns before them.
        caches: The caches of this process.
        codec: Reads items.

    Raises:
        ThreadNotFound: The thread does not exist.
        InvalidInput: Its graph keeps messages in a `DeltaChannel`.
    """
    cache, ref = yield from list_of_conversation(key, caches=caches, codec=codec)
    apart = (
        None
        if count is None or len(ref.runs) > 2 * FRAGMENTS
        else (yield from _apart(cache, ref.runs))
    )
    begin = left_out = 0
    if apart is not None and count is not None:
        turns = _Turns(cache, codec, ref.runs)
        begin = yield from turns.find(count)
        left_out = (yield from turns.count()) - count if numbered and begin else 0
    shown = [*(at for at in apart or () if at < begin), *range(begin, length_of(ref.runs))]
    messages = yield from _read(cache, codec, ref, shown)
    caches.keep(cache)
    return Tail(messages, left_out, begin)


@operation
def read_naming(
    key: ThreadKey,
    parts: Collection[str],
    *,
    before: int | None = None,
    caches: ThreadCaches,
    codec: Codec,
) -> Op[list[Snapshot]]:
    """A conversation's messages that contain one of some texts, oldest first, and perhaps others.

    The texts are searched for outside the message's own text.

    Args:
        key: The thread.
        parts: The texts.
        before: Only so many of the first messages are searched.
        caches: The caches of this process.
        codec: Reads items.

    Raises:
        ThreadNotFound: The thread does not exist.
        InvalidInput: Its graph keeps messages in a `DeltaChannel`.
    """
    cache, ref = yield from list_of_conversation(key, caches=caches, codec=codec)
    positions: set[int] = set()
    for part in parts:
        passed = 0
        for first, end in ranges_of(ref.runs):
            params = {
                "low": first,
                "high": end,
                "part": part.encode("utf-8", "surrogatepass"),
                "mark": MARK,
            }
            rows = yield from fetch(SELECT_NAMING, thread=cache.number, **params)
            positions.update(passed + (key & NUMBER) - first for (key,) in rows)
            passed += end - first
    messages = yield from _read(
        cache, codec, ref, sorted(at for at in positions if before is None or at < before)
    )
    caches.keep(cache)
    return messages


def has_message(key: ThreadKey, message_id: str, *, caches: ThreadCaches, codec: Codec) -> Op[bool]:
    """Whether a message of this id is in a thread's conversation."""
    cache, ref = yield from list_of_conversation(key, caches=caches, codec=codec)
    for first, end in ranges_of(ref.runs):
        if (
            yield from fetch(
                sql.FIND_ITEM,
                thread=cache.number,
                low=first,
                high=end,
                message_id=encode_id(message_id),
            )
        ):
            return True
    return False


def _apart(cache: ThreadCache, runs: Runs) -> Op[list[int] | None]:
    """Positions of system messages in a list; None if a message's row does not show its role."""
    positions = []
    passed = 0
    for first, end in ranges_of(runs):
        for key, role in (yield from fetch(SELECT_APART, thread=cache.number, low=first, high=end)):
            if role is None:
                return None
            positions.append(passed + (key & NUMBER) - first)
        passed += end - first
    return positions


def _read(
    cache: ThreadCache, codec: Codec, ref: ValueRef, positions: list[int]
) -> Op[list[Snapshot]]:
    """The messages at some positions of a list, in order."""
    numbers = numbers_of(ref.runs)
    bare = set(numbers_of(ref.nameless))
    nameless = runs_of(at for at, position in enumerate(positions) if position in bare)
    return (
        yield from read_messages(
            cache, codec, runs_of([numbers[position] for position in positions]), nameless
        )
    )


@dataclass(slots=True)
class _Turns:
    """Where the turns of a list begin, found from its end.

    Attributes:
        cache, codec: Read messages.
        runs: The list.
        users: Positions of the user's messages that were looked at, the last one first.
        known: Whether a message is a user's, by the position of each that was looked at.
        results: Positions of tools' results that were looked at and not yet matched with their
            calls, the last one first, and the calls that they answer.
        within: Positions of the user's messages that are between a call and its result.
        earliest: The position of the first call that was matched with its result: later user's
            messages that are still to be looked at are within, too.
        ended: Whether the whole list was looked at.
    """

    cache: ThreadCache
    codec: Codec
    runs: Runs
    users: list[int] = field(default_factory=list)
    results: list[tuple[int, str]] = field(default_factory=list)
    known: dict[int, bool] = field(default_factory=dict)
    within: set[int] = field(default_factory=set)
    earliest: int = field(init=False)
    ended: bool = False
    _numbers: list[int] = field(init=False)
    _low: int = field(init=False)
    _calls: dict[int, frozenset[str]] = field(default_factory=dict)
    _answerable: dict[str, list[int]] | None = None

    def __post_init__(self) -> None:
        """Begin at the end."""
        self._numbers = numbers_of(self.runs)
        self._low = self.earliest = len(self._numbers)

    def find(self, count: int) -> Op[int]:
        """Where the newest `count` turns begin; 0 if no turn comes before them."""
        wanted = count
        while True:
            while len(self.users) <= wanted and not self.ended:
                yield from self._look_back()
            if len(self.users) <= wanted:
                return 0  # what comes before the first user's message belongs to its turn
            yield from self._settle(self.users[wanted - 1])
            starts = [user for user in self.users[:wanted] if user not in self.within]
            if len(starts) >= count:
                return starts[count - 1]
            wanted += count - len(starts)

    def count(self) -> Op[int]:
        """How many turns the list has; it must have a user's message."""
        while not self.ended:
            yield from self._look_back()
        yield from self._settle(self.users[-1])
        return len(set(self.users[:-1]) - self.within) + 1

    def _look_back(self) -> Op[None]:
        """Look at the roles of a page of messages before those that were looked at."""
        passed = 0
        ranges = []
        for first, end in ranges_of(self.runs):
            ranges.append((passed, first, min(end, first + self._low - passed)))
            passed += end - first
        left = PAGE
        for before, first, end in reversed([part for part in ranges if part[1] < part[2]]):
            rows = yield from fetch(
                SELECT_MARKS, thread=self.cache.number, low=first, high=end, limit=left
            )
            for key, role, call in rows:
                at = before + (key & NUMBER) - first
                self.known[at] = role in HUMAN_CODES
                if self.known[at]:
                    self.users.append(at)
                    self.within |= {at} if at > self.earliest else set()
                elif isinstance(call, str):
                    self.results.append((at, call))
            left -= len(rows)
            if not left:
                self._low = before + (rows[-1][0] & NUMBER) - first
                yield PAUSE
                return
        self.ended = True

    def _settle(self, begin: int) -> Op[None]:
        """Match the results after a position with their calls; find the user's messages between."""
        still = []
        for count, (at, call) in enumerate(self.results, start=1):
            if at < begin:
                still.append((at, call))
                continue
            caller = yield from self._caller_of(at, call)
            if caller is not None:
                # The last one comes first: those behind the call and before its result.
                low = bisect_right(self.users, -at, key=lambda user: -user)
                self.within.update(
                    self.users[low : bisect_left(self.users, -caller, key=lambda user: -user)]
                )
                self.earliest = min(self.earliest, caller)
            if count % PAUSE_EVERY == 0:
                yield PAUSE
        self.results = still

    def _caller_of(self, at: int, call: str) -> Op[int | None]:
        """The position of the newest call of an id before a result; None if there is none."""
        for place in range(at - 1, max(at - 1 - NEAR, -1), -1):
            if self.known.get(place):
                break
            if place not in self.known and call in (yield from self._calls_at(place)):
                return place
        if self._answerable is None:
            self._answerable = {}
            for place in range(len(self._numbers)):
                for call_id in (yield from self._calls_at(place)):
                    self._answerable.setdefault(call_id, []).append(place)
        places = self._answerable.get(call, [])
        count = bisect_left(places, at)
        return places[count - 1] if count else None

    def _calls_at(self, place: int) -> Op[frozenset[str]]:
        """The ids of the calls that a message makes."""
        if place not in self._calls:
            number = self._numbers[place]
            [packed] = yield from read_messages(self.cache, self.codec, (number, number + 1), ())
            fields = fields_of(packed)
            self._calls[place] = frozenset(
                call_ids_in(fields) if fields.get("type") in _MODELS else ()
            )
            yield PAUSE
        return self._calls[place]
