"""Which conversations need a memory, by what a caller asks for and a thread's row. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, TypedDict

from langmem_ext.errors import InvalidInput
from langmem_ext.log.message_log import bound_owner
from langmem_ext.memory.memories import Failure, StoredMemory
from langmem_ext.types import ThreadInfo

IDLE: Final = timedelta(minutes=30)
"""How long a conversation has been at rest before a memory of it is written."""

RETRY: Final = timedelta(hours=1)
"""How long after a failure a conversation that has not gone on is tried again."""


_INSTANT: Final = timedelta(milliseconds=1)


class Wanted(TypedDict, total=False):
    """Which conversations need a memory."""

    idle: timedelta
    """Only those that were not written for so long; half an hour by default."""
    stale: timedelta
    """A memory will do that lacks what was written so soon after what it was made from; 0 by
    default."""
    owner: str | None
    """Only this owner's."""
    include_empty: bool
    """Those without messages, too; nothing is written for them."""
    clamp: int | None
    """At most so many; -1 or None: all."""
    retry: timedelta
    """One whose last generation failed, and that has not gone on, is left out for so long; an hour
    by default."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What a caller asks for, checked; see `Wanted`.

    Attributes:
        only_needing: Only those that need a memory; else all of them, at rest or not.

    Raises:
        InvalidInput: Something cannot be asked for.
    """

    idle: timedelta = IDLE
    stale: timedelta = timedelta(0)
    owner: str | None = None
    include_empty: bool = False
    clamp: int | None = None
    retry: timedelta = RETRY
    only_needing: bool = True

    @classmethod
    def of(cls, wanted: Wanted, bound: str | None, *, only_needing: bool = True) -> Selection:
        """What a caller asks for who is bound to an owner."""
        if unknown := wanted.keys() - Wanted.__annotations__.keys():
            raise InvalidInput(
                f"conversations cannot be chosen by {min(unknown)!r}: use one of"
                f" {', '.join(Wanted.__annotations__)}"
            )
        fields: dict[str, Any] = {**wanted, "owner": bound_owner(None, wanted.get("owner"))}
        if bound is not None and fields["owner"] not in (None, bound):
            raise InvalidInput("this is bound to another owner: ask without one")
        return cls(**fields, only_needing=only_needing)

    def __post_init__(self) -> None:
        for name in ("idle", "stale", "retry"):
            if not isinstance(length := getattr(self, name), timedelta) or length < timedelta(0):
                raise InvalidInput(
                    f"{name} is a length of time, a timedelta of 0 or more, not {length!r}"
                )
        if self.clamp is not None and (
            type(self.clamp) is not int or (self.clamp < 1 and self.clamp != -1)
        ):
            raise InvalidInput(
                "clamp is how many conversations at most, at least 1 (-1 or None: all), not"
                f" {self.clamp!r}"
            )

    def listed(self, now: datetime) -> dict[str, Any]:
        """What `Threads.list` is asked for: archived conversations, too."""
        owner = {} if self.owner is None else {"owner": self.owner}
        # `until` leaves its own moment out.
        until = {"until": now - self.idle + _INSTANT} if self.only_needing and self.idle else {}
        return {"status": None, **owner, **until}

    def left(self, chosen: int) -> int | None:
        """How many more are wanted; None: all."""
        return None if self.clamp in (None, -1) else max(0, self.clamp - chosen)

    def takes(
        self,
        thread: ThreadInfo,
        memory: StoredMemory | None,
        failure: Failure | None,
        now: datetime,
    ) -> bool:
        """Whether a memory of the conversation is to be written."""
        if not thread.messages and not self.include_empty:
            return False
        if not self.only_needing:
            return True
        if memory is not None and thread.updated_at - memory.thread_updated_at <= self.stale:
            return False
        return (
            failure is None
            or failure.thread_updated_at != thread.updated_at
            or now - failure.at >= self.retry
        )
