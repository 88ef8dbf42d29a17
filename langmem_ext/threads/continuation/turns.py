"""Threads read as turns, to continue them within their lifetime, owner and limit of turns."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar, get_args

from langchain_core.messages import BaseMessage

from langmem_ext.checkpointer.delta_channels import LangGraphFacts
from langmem_ext.errors import (
    DamagedRow,
    InvalidInput,
    ThreadExpired,
    ThreadNotFound,
    TurnLimitReached,
)
from langmem_ext.log.retention import Retention
from langmem_ext.log.scope import DatabaseView
from langmem_ext.messages.annotations import files_of
from langmem_ext.messages.packed import fields_of
from langmem_ext.messages.turns import ConversationTurn, cut_turns
from langmem_ext.storage.operation import Op, Operation, operation
from langmem_ext.storage.prune.expire import read_live
from langmem_ext.storage.rows.clock import now_ms
from langmem_ext.storage.threads.history import read_conversation
from langmem_ext.storage.threads.list import read_answers
from langmem_ext.storage.threads.turns import Tail, has_message, read_naming, read_tail
from langmem_ext.threads.continuation.files import complete, contents_in
from langmem_ext.types import PackedValue, Snapshot, ThreadInfo, ThreadKey

T = TypeVar("T")

OnLimit: TypeAlias = Literal["trim", "error"]
OnDamage: TypeAlias = Literal["raise", "skip"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """How threads are continued.

    Attributes:
        max_turns: How many of the newest whole turns are shown; None for all.
        on_limit: `trim`: a thread may have more turns than are shown. `error`: it may not.
        on_damage: `raise`: a damaged thread is an error. `skip`: it continues without what cannot
            be read.

    Raises:
        InvalidInput: An option is invalid.
    """

    max_turns: int | None
    on_limit: OnLimit
    on_damage: OnDamage

    def __post_init__(self) -> None:
        checked_turns(self.max_turns, "max_turns")
        if self.on_limit not in get_args(OnLimit):
            raise InvalidInput(f"on_limit must be 'trim' or 'error', not {self.on_limit!r}")
        if self.on_damage not in get_args(OnDamage):
            raise InvalidInput(f"on_damage must be 'raise' or 'skip', not {self.on_damage!r}")


def checked_turns(count: int | None, name: str) -> int | None:
    """A number of turns; None for all.

    Raises:
        InvalidInput: It is invalid.
    """
    if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 1):
        raise InvalidInput(
            f"{name} must be a number of turns, at least 1, or None for all, not {count!r}"
        )
    return count


@dataclass(frozen=True, slots=True)
class Transcript:
    """A thread as turns.

    Attributes:
        info: Its row; None if it could not be read.
        system: Its system messages.
        turns: Its turns, or the newest of them.
        left_out: How many turns come before these, if they were counted.
        earlier: Messages before these turns that may have the content of a file that one of the
            turns refers to.
    """

    info: ThreadInfo | None = None
    system: tuple[BaseMessage, ...] = ()
    turns: tuple[ConversationTurn, ...] = ()
    left_out: int = 0
    earlier: tuple[BaseMessage, ...] = ()

    def last(self, count: int | None) -> list[ConversationTurn]:
        """The newest turns."""
        return list(self.turns if count is None else self.turns[-count:])

    def messages(self, count: int | None) -> list[BaseMessage]:
        """What a model is sent: system messages and the newest turns, with their files."""
        shown = self.last(count)
        left_out = self.turns[: len(self.turns) - len(shown)]
        return [*self.system, *complete(_of(shown), [*self.earlier, *_of(left_out)])]


def _contents_before(tail: Tail) -> set[str]:
    """The SHA-256 of each content that turns refer to and only earlier messages may have."""
    referred = (
        [file for packed in tail.messages for file in files_of(fields_of(packed))]
        if tail.begin
        else []
    )
    return {file.sha256 for file in referred if file.again and file.sha256 is not None}


def _of(turns: Sequence[ConversationTurn]) -> list[BaseMessage]:
    return [message for turn in turns for message in turn.messages]


class TurnReader:
    """Reads threads as turns.

    Args:
        view: The database.
        retention: How long threads live.
        limits: How they are continued.
    """

    def __init__(self, view: DatabaseView, retention: Retention, limits: Limits) -> None:
        self.view = view
        self.limits = limits
        self._retention = retention
        self._warned: set[str] = set()

    def live(self, thread_id: object) -> Operation[ThreadInfo]:
        """The operation that reads the row of a thread that has not expired (`read_live`)."""
        return read_live(
            self.view.key(thread_id),
            self._retention.cutoff(now_ms()),
            LangGraphFacts(self.view.codec),
        )

    def read(
        self,
        thread_id: object,
        count: int | None = None,
        *,
        numbered: bool = False,
        with_files: bool = False,
    ) -> Transcript:
        """A thread as turns; if it is damaged and that is no error, the undamaged part.

        That is all of these turns, or none.

        Args:
            thread_id: The thread.
            count: How many of the newest turns are needed; None for all.
            numbered: Whether to count the turns before them.
            with_files: Whether to read the contents that they refer to.

        Raises:
            ThreadNotFound: It does not exist, or belongs to another owner (`ThreadExpired`: it has
                expired).
            DamagedRow: It is damaged, and that is an error.
        """
        reading = self._read(
            self.live(thread_id), self.view.key(thread_id), count, numbered, with_files
        )
        try:
            info, tail, earlier = self.view.log.run(reading, write=False)
        except DamagedRow as error:
            self.pass_over(thread_id, error)
            try:
                info, tail, earlier = self._read_what_is_sound(
                    thread_id, count, numbered, with_files
                )
            except DamagedRow:
                return Transcript()
        system, turns = cut_turns(self._load(thread_id, tail.messages), tail.left_out)
        return Transcript(info, system, turns, tail.left_out, tuple(self._load(thread_id, earlier)))

    @operation
    def _read(
        self,
        live: Operation[ThreadInfo],
        key: ThreadKey,
        count: int | None,
        numbered: bool,
        with_files: bool,
    ) -> Op[tuple[ThreadInfo, Tail, list[Snapshot]]]:
        info = yield from live
        tail = yield from read_tail(key, count, numbered=numbered, **self.view.tools)
        wanted = _contents_before(tail) if with_files else set()
        earlier = (
            (yield from read_naming(key, wanted, before=tail.begin, **self.view.tools))
            if wanted
            else []
        )
        return info, tail, earlier

    def _read_what_is_sound(
        self, thread_id: object, count: int | None, numbered: bool, with_files: bool
    ) -> tuple[ThreadInfo, Tail, list[Snapshot]]:
        """`_read` for a damaged thread: the turns, and the undamaged contents before them.

        Raises:
            DamagedRow: The turns themselves are damaged.
        """
        log, key = self.view.log, self.view.key(thread_id)
        info, tail, earlier = log.run(
            self._read(self.live(thread_id), key, count, numbered, with_files=False), write=False
        )
        for digest in sorted(_contents_before(tail)) if with_files else ():
            with suppress(DamagedRow):
                earlier += log.run(
                    read_naming(key, {digest}, before=tail.begin, **self.view.tools), write=False
                )
        return info, tail, earlier

    def _load(self, thread_id: object, packed: list[Snapshot]) -> list[BaseMessage]:
        loaded: list[BaseMessage] = self.view.load(PackedValue(messages=packed), thread_id)
        return loaded

    def find_contents(
        self, thread_id: object, digests: Collection[str], but: str | None = None
    ) -> Operation[dict[str, str]]:
        """The operation that finds which contents of files a thread has; their paths by SHA-256.

        Args:
            thread_id: The thread.
            digests: The SHA-256 of each content.
            but: The id of a message to ignore.

        Raises:
            ThreadExpired: The thread has expired.
        """
        return self._find_contents(self.live(thread_id), self.view.key(thread_id), digests, but)

    @operation
    def _find_contents(
        self, live: Operation[ThreadInfo], key: ThreadKey, digests: Collection[str], but: str | None
    ) -> Op[dict[str, str]]:
        try:
            yield from live
        except ThreadExpired:
            raise
        except ThreadNotFound:  # its first message will make it
            return {}
        packed = (yield from read_naming(key, digests, **self.view.tools)) if digests else []
        return contents_in(message for message in self._load(key.id, packed) if message.id != but)

    def open(self, thread_id: str) -> str:
        """Require that a thread can be continued; its id.

        Raises:
            ThreadNotFound: It does not exist (`ThreadExpired`: it has expired).
            TurnLimitReached: It has reached its maximum number of turns.
            DamagedRow: It is damaged, and that is an error.
        """
        most = self.limits.max_turns
        if self.limits.on_limit == "error" and most is not None:
            read = self.read(thread_id, most, numbered=True)
            if read.left_out + len(read.turns) >= most:
                raise self._full(thread_id, read.left_out + len(read.turns))
            return thread_id
        try:
            self.view.log.run(self.live(thread_id), write=False)
        except DamagedRow as error:
            self.pass_over(thread_id, error)
        return thread_id

    def count(
        self, thread_id: object, pick: Callable[[object], T | None]
    ) -> tuple[list[T], Sequence[ConversationTurn]]:
        """What `pick` returns for each answer in the log, and the conversation's turns.

        There are no turns if only the graph can read them.

        Raises:
            ThreadNotFound: It does not exist, or belongs to another owner; an expired thread still
                exists.
            DamagedRow: An answer is damaged.
        """
        key = self.view.key(thread_id)
        answers, packed = self.view.log.run(
            self._count(key, lambda packed: pick(self._load(thread_id, [packed])[0])), write=False
        )
        return answers, cut_turns(self._load(thread_id, packed))[1]

    @operation
    def _count(
        self, key: ThreadKey, pick: Callable[[Snapshot], T | None]
    ) -> Op[tuple[list[T], list[Snapshot]]]:
        answers = yield from read_answers(key, pick, **self.view.tools)
        try:
            return answers, (yield from read_conversation(key, None, **self.view.tools))
        except InvalidInput:
            return answers, []

    def pass_over(self, thread_id: object, error: DamagedRow) -> None:
        """Go on without a damaged thread, and log it once; or raise the error."""
        if self.limits.on_damage == "raise":
            raise error
        if str(thread_id) not in self._warned:
            self._warned.add(str(thread_id))
            _log.warning(
                "thread %r is damaged and continues without the unreadable rows: see `langmem-ext"
                " doctor`",
                str(thread_id),
            )

    def require_room(self, thread_id: object, added: Sequence[BaseMessage]) -> Op[None]:
        """The operation that checks, in the writing transaction, that messages may be added.

        Raises:
            TurnLimitReached: They would begin one turn too many.
        """
        most = self.limits.max_turns
        if self.limits.on_limit == "trim" or most is None:
            return
        key, tools = self.view.key(thread_id), self.view.tools
        try:
            tail = yield from read_tail(key, most, numbered=True, **tools)
            fresh = []
            for message in added:  # a message that is sent again has its turn already
                if message.id is None or not (yield from has_message(key, message.id, **tools)):
                    fresh.append(message)
        except ThreadNotFound:
            tail, fresh = Tail([]), list(added)
        stored = self._load(thread_id, tail.messages)
        before, after = (
            tail.left_out + len(cut_turns(messages)[1]) for messages in (stored, [*stored, *fresh])
        )
        if after > max(most, before):
            raise self._full(thread_id, before)

    def _full(self, thread_id: object, count: int) -> TurnLimitReached:
        most = self.limits.max_turns
        return TurnLimitReached(
            f"thread {str(thread_id)!r} has {count} turns, the maximum is {most}: start a new one,"
            " or raise max_turns"
        )
