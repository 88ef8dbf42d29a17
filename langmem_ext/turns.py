"""Threads read as turns, for who goes on with them: within their time, their owner and their limit of turns."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar, get_args

from langchain_core.messages import BaseMessage

from langmem_ext.errors import DamagedRow, InvalidInput, TurnLimitReached
from langmem_ext.files import complete
from langmem_ext.meaning import CheckpointMeaning
from langmem_ext.messages.turns import ConversationTurn, cut_turns
from langmem_ext.retention import Retention
from langmem_ext.source import Source
from langmem_ext.storage.clock import now_ms
from langmem_ext.storage.effects import Op
from langmem_ext.storage.history_ops import read_conversation
from langmem_ext.storage.retention_ops import read_live
from langmem_ext.storage.tally_ops import read_answers
from langmem_ext.types import PackedValue, Snapshot, ThreadInfo

T = TypeVar("T")

OnLimit: TypeAlias = Literal["trim", "error"]
OnDamage: TypeAlias = Literal["raise", "skip"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """How threads are gone on with.

    Attributes:
        max_turns: How many whole turns are shown, the newest; None: all.
        on_limit: `trim`: a thread may have more turns than are shown. `error`: it may not.
        on_damage: What a damaged thread is: `raise`: an error. `skip`: one without memory.

    Raises:
        InvalidInput: One cannot be used.
    """

    max_turns: int | None
    on_limit: OnLimit
    on_damage: OnDamage

    def __post_init__(self) -> None:
        checked_turns(self.max_turns, "max_turns")
        if self.on_limit not in get_args(OnLimit):
            raise InvalidInput(f"on_limit is 'trim' or 'error', not {self.on_limit!r}")
        if self.on_damage not in get_args(OnDamage):
            raise InvalidInput(f"on_damage is 'raise' or 'skip', not {self.on_damage!r}")


def checked_turns(count: int | None, name: str) -> int | None:
    """A number of turns; None for all.

    Raises:
        InvalidInput: It is none.
    """
    if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 1):
        raise InvalidInput(f"{name} is how many turns, at least 1, or None for all; not {count!r}")
    return count


@dataclass(frozen=True, slots=True)
class Transcript:
    """A thread as turns.

    Attributes:
        info: Its row; None where it could not be read.
        system: Its system messages.
        turns: All of its turns.
    """

    info: ThreadInfo | None = None
    system: tuple[BaseMessage, ...] = ()
    turns: tuple[ConversationTurn, ...] = ()

    def last(self, count: int | None) -> list[ConversationTurn]:
        """The newest turns."""
        return list(self.turns if count is None else self.turns[-count:])

    def messages(self, count: int | None) -> list[BaseMessage]:
        """What a model is given: the system messages and the newest turns, with each content of a file that these refer to."""
        shown = self.last(count)
        left_out = self.turns[: len(self.turns) - len(shown)]
        return [*self.system, *complete(_of(shown), _of(left_out))]


def _of(turns: Sequence[ConversationTurn]) -> list[BaseMessage]:
    return [message for turn in turns for message in turn.messages]


class TurnReader:
    """Reads threads as turns.

    Args:
        source: The database.
        retention: How long threads live.
        limits: How they are gone on with.
    """

    def __init__(self, source: Source, retention: Retention, limits: Limits) -> None:
        self.source = source
        self.limits = limits
        self._retention = retention
        self._told: set[str] = set()

    def live(self, thread_id: object) -> Op[ThreadInfo]:
        """The operation that reads the row of a thread that has not expired (`read_live`)."""
        return read_live(self.source.key(thread_id), self._retention.cutoff(now_ms()), CheckpointMeaning(self.source.codec))

    def read(self, thread_id: object) -> Transcript:
        """A thread as turns; an empty one where it is damaged, and that is no error.

        Raises:
            ThreadNotFound: There is none, or it is another owner's (`ThreadExpired`: it has expired).
            DamagedRow: It is damaged, and that is an error.
        """
        try:
            info, packed = self.source.log.run(self._read(thread_id), write=False)
            return Transcript(info, *cut_turns(self.source.codec.load_value(PackedValue(messages=packed))))
        except DamagedRow as error:
            self.pass_over(thread_id, error)
            return Transcript()

    def _read(self, thread_id: object) -> Op[tuple[ThreadInfo, list[Snapshot]]]:
        info = yield from self.live(thread_id)
        return info, (yield from read_conversation(self.source.key(thread_id), None, **self.source.tools))

    def open(self, thread_id: str) -> str:
        """See that a thread can be gone on with; its id.

        Raises:
            ThreadNotFound: There is none (`ThreadExpired`: it has expired).
            TurnLimitReached: It has as many turns as it may have.
            DamagedRow: It is damaged, and that is an error.
        """
        if self.limits.on_limit == "error":
            self.require_room(thread_id, self.read(thread_id))
            return thread_id
        try:
            self.source.log.run(self.live(thread_id), write=False)
        except DamagedRow as error:
            self.pass_over(thread_id, error)
        return thread_id

    def count(self, thread_id: object, pick: Callable[[object], T | None]) -> tuple[list[T], Sequence[ConversationTurn]]:
        """What is picked from every answer that a thread's log holds, and its turns; no turns where only its graph can read them.

        Raises:
            ThreadNotFound: There is none, or it is another owner's; one that has expired is still there.
            DamagedRow: An answer is damaged.
        """
        codec = self.source.codec
        found, packed = self.source.log.run(self._count(thread_id, lambda packed: pick(codec.load_message(packed))), write=False)
        return found, cut_turns(codec.load_value(PackedValue(messages=packed)))[1]

    def _count(self, thread_id: object, pick: Callable[[Snapshot], T | None]) -> Op[tuple[list[T], list[Snapshot]]]:
        key = self.source.key(thread_id)
        found = yield from read_answers(key, pick, **self.source.tools)
        try:
            return found, (yield from read_conversation(key, None, **self.source.tools))
        except InvalidInput:
            return found, []

    def pass_over(self, thread_id: object, error: DamagedRow) -> None:
        """Go on without a damaged thread, and say so once; or raise what was found."""
        if self.limits.on_damage == "raise":
            raise error
        if str(thread_id) not in self._told:
            self._told.add(str(thread_id))
            _log.warning("thread %r is damaged, and gone on with without memory: `langmem-ext doctor` says what of it", str(thread_id))

    def require_room(self, thread_id: object, transcript: Transcript) -> None:
        """See that a thread may have one more turn.

        Raises:
            TurnLimitReached: It may not.
        """
        most = self.limits.max_turns
        if self.limits.on_limit == "error" and most is not None and len(transcript.turns) >= most:
            count = len(transcript.turns)
            raise TurnLimitReached(
                f"thread {str(thread_id)!r} has {count} turns, of at most {most}: begin a new one, or allow more (max_turns)"
            )
