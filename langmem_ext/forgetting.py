"""The half of a saver that forgets and copies: threads, checkpoints, runs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Literal
from uuid import UUID

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver

from langmem_ext.codec import MessageCodec
from langmem_ext.errors import InvalidInput
from langmem_ext.log import MessageLog, require_storable, thread_key
from langmem_ext.meaning import CheckpointMeaning
from langmem_ext.retention import Keeper, Retention, Steps, arun_steps, checked_now, run_steps
from langmem_ext.saver_terms import several
from langmem_ext.storage import forget_ops
from langmem_ext.storage.clock import now_ms
from langmem_ext.storage.copy_ops import Copy, copy_thread
from langmem_ext.storage.effects import Operation
from langmem_ext.storage.ids import new_generation
from langmem_ext.storage.retention_ops import Surroundings
from langmem_ext.telemetry import Emitter, Sink
from langmem_ext.types import Pruned, ThreadKey

Strategy = Literal["keep_latest", "delete"]


class ForgettingSaver(BaseCheckpointSaver[Any]):
    """What `DeltaSaver` forgets with. A thread of another owner than the saver's is not there for it."""

    log: MessageLog
    owner: str | None
    retention: Retention | None
    telemetry: Sequence[Sink]
    _keeper: Keeper | None = None

    @property
    @abstractmethod
    def codec(self) -> MessageCodec:
        """Packs and loads values."""

    def _keep(self, retention: Retention | None, emitter: Emitter) -> None:
        """Apply a retention from here on."""
        self.retention, self.telemetry = retention, emitter.sinks
        if retention is not None:
            self._keeper = Keeper(retention, self.log, Surroundings(self.owner, CheckpointMeaning(self.codec), self.log.indexes), emitter)

    def _after_put(self, config: RunnableConfig) -> Callable[[], object] | None:
        """What a put gives occasion for; None: nothing."""
        keeper, thread_id = self._keeper, thread_key(config["configurable"]["thread_id"])
        return partial(keeper.step, thread_id, now_ms()) if keeper is not None and keeper.is_due(thread_id) else None

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread with everything it has. Nothing happens if there is none (or it is another owner's)."""
        self.log.run(self._delete_thread(thread_id), write=True)

    async def adelete_thread(self, thread_id: str) -> None:
        """Async twin of `delete_thread`."""
        await self.log.arun(self._delete_thread(thread_id), write=True)

    def _delete_thread(self, thread_id: str) -> Operation[Pruned]:
        return forget_ops.drop_thread(ThreadKey(thread_key(thread_id), self.owner), indexes=self.log.indexes, dry_run=False)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints whose metadata has one of these values of `run_id`, with their pending writes, in all threads.

        A checkpoint that a `DeltaChannel` of a later one is rebuilt from stays: without it the later one would read as something else.
        What a run wrote to a checkpoint of an earlier run (the answer to a question) stays with that checkpoint, as on every saver. A
        thread that has lost all of its checkpoints is still there, and empty.
        """
        self.log.run(self._delete_for_runs(run_ids), write=True)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Async twin of `delete_for_runs`."""
        await self.log.arun(self._delete_for_runs(run_ids), write=True)

    def _delete_for_runs(self, run_ids: Iterable[str]) -> Operation[Pruned]:
        runs = list(dict.fromkeys(map(_run_of, several(run_ids, "run ids"))))
        return forget_ops.delete_runs(runs, self.owner, meaning=CheckpointMeaning(self.codec), indexes=self.log.indexes)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread with everything it has: checkpoints, forks, pending writes, namespaces. Nothing happens if there is none.

        The two share nothing afterwards. Ids and versions are the source's; metadata that names the source's `thread_id` names the copy's.
        The copy belongs to the source's owner. It costs what its rows weigh: nothing is read or encoded again.

        Raises:
            InvalidInput: The target is the source, or has something already.
            ThreadNotFound: The target belongs to another owner.
        """
        self.log.run(self._copy_thread(source_thread_id, target_thread_id), write=True)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Async twin of `copy_thread`."""
        await self.log.arun(self._copy_thread(source_thread_id, target_thread_id), write=True)

    def _copy_thread(self, source_thread_id: str, target_thread_id: str) -> Operation[bool]:
        source = ThreadKey(thread_key(source_thread_id), self.owner)
        return copy_thread(source, Copy(thread_key(target_thread_id), new_generation()), now=now_ms(), indexes=self.log.indexes)

    def prune(  # type: ignore[override]  # it says what it did
        self,
        thread_ids: Sequence[str],
        *,
        strategy: Strategy = "keep_latest",
        keep_last: int | None = None,
        older_than: timedelta | datetime | None = None,
        dry_run: bool = False,
    ) -> Pruned:
        """Delete checkpoints of threads, their pending writes, and the messages and values that nothing refers to then.

        What stays reads as before. The newest checkpoint of every namespace always stays, and so do the ancestors that a `DeltaChannel` of
        what stays is rebuilt from, each of them whole: a graph with several that are stored at different times keeps more than asked. A
        checkpoint whose parent has gone still names it. Branches are not told apart: the newest checkpoint of a namespace is the one with
        the highest id, and the head of an older branch goes with the rest.

        Each thread is pruned in a transaction of its own, or left as it is.

        Args:
            thread_ids: The threads; those that are not there are passed over.
            strategy: `keep_latest`: the newest checkpoint of each namespace stays. `delete`: the threads go with everything they have, also
                those that wait for an answer.
            keep_last: How many of the newest of each namespace stay instead of one.
            older_than: Only checkpoints go that are older than so long, or were made before a moment; one made exactly then stays.
            dry_run: Only say what would be deleted.

        Raises:
            InvalidInput: An argument cannot be used; nothing was changed.
        """
        total = Pruned()
        for op in self._prune(thread_ids, strategy, keep_last, older_than, dry_run):
            total += self.log.run(op, write=not dry_run)
        return total

    async def aprune(  # type: ignore[override]  # it says what it did
        self,
        thread_ids: Sequence[str],
        *,
        strategy: Strategy = "keep_latest",
        keep_last: int | None = None,
        older_than: timedelta | datetime | None = None,
        dry_run: bool = False,
    ) -> Pruned:
        """Async twin of `prune`."""
        total = Pruned()
        for op in self._prune(thread_ids, strategy, keep_last, older_than, dry_run):
            total += await self.log.arun(op, write=not dry_run)
        return total

    def _prune(
        self,
        thread_ids: Iterable[str],
        strategy: str,
        keep_last: int | None,
        older_than: timedelta | datetime | None,
        dry_run: bool,
    ) -> list[Operation[Pruned]]:
        """One operation for each thread."""
        keys = [ThreadKey(name, self.owner) for name in dict.fromkeys(map(thread_key, several(thread_ids, "thread ids")))]
        if strategy == "delete":
            if keep_last is not None or older_than is not None:
                raise InvalidInput("strategy='delete' keeps nothing: leave out keep_last and older_than, or the strategy")
            return [forget_ops.drop_thread(key, indexes=self.log.indexes, dry_run=dry_run) for key in keys]
        if strategy != "keep_latest":
            raise InvalidInput(f"there is no strategy {strategy!r}: use 'keep_latest' or 'delete'")
        policy = forget_ops.Policy(last=checked_count(keep_last, "keep_last"), before=_moment(older_than))
        meaning = CheckpointMeaning(self.codec)
        return [forget_ops.prune_thread(key, policy, meaning=meaning, indexes=self.log.indexes, dry_run=dry_run) for key in keys]

    # -- retention and space -------------------------------------------------------------------------------------------------------------

    def sweep(self, *, now: datetime | None = None, dry_run: bool = False) -> Pruned:
        """Apply the saver's `Retention` to every thread that it may see, each in a transaction of its own.

        The clock is read once, so what expires does not depend on how long the sweep takes. A thread that was written meanwhile stays; one
        that is damaged is passed over, with a warning.

        Args:
            now: The moment to take for now, with its time zone.
            dry_run: Only say what would be deleted.

        Raises:
            InvalidInput: The saver has no retention, or `now` has no time zone.
        """
        return run_steps(self.log, self._sweep(now, dry_run))

    async def asweep(self, *, now: datetime | None = None, dry_run: bool = False) -> Pruned:
        """Async twin of `sweep`."""
        return await arun_steps(self.log, self._sweep(now, dry_run))

    def _sweep(self, now: datetime | None, dry_run: bool) -> Steps:
        if self._keeper is None:
            raise InvalidInput("the saver has nothing to sweep by: open it with retention=Retention(…)")
        return self._keeper.sweep_steps(now_ms() if now is None else checked_now(now), dry_run=dry_run)

    def compact(self, *, full: bool = False) -> int:
        """Give the space of what was deleted back to the file system; see `MessageLog.compact`."""
        return self.log.compact(full=full)

    async def acompact(self, *, full: bool = False) -> int:
        """Async twin of `compact`."""
        return await self.log.acompact(full=full)


def checked_count(count: int | None, name: str) -> int:
    """A number of checkpoints; one for None.

    Raises:
        InvalidInput: It is none.
    """
    if count is None:
        return 1
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InvalidInput(f"{name} is how many checkpoints of each namespace stay, at least 1, not {count!r}")
    return count


def _run_of(run_id: object) -> str:
    if isinstance(run_id, bool) or not isinstance(run_id, str | int | UUID):
        raise InvalidInput(f"a run id is a text, an int or a UUID, not {type(run_id).__name__}: pass what metadata has as run_id")
    text = str.__str__(run_id) if isinstance(run_id, str) else str(run_id)
    require_storable(text, "a run id")
    return text


def _moment(older_than: timedelta | datetime | None) -> datetime | None:
    """The moment that `older_than` means now."""
    if older_than is None:
        return None
    if isinstance(older_than, timedelta) and older_than >= timedelta():
        now = datetime.fromtimestamp(now_ms() / 1000, UTC)
        return now - min(older_than, now - datetime.min.replace(tzinfo=UTC))
    if isinstance(older_than, datetime) and older_than.tzinfo is not None:
        return older_than
    raise InvalidInput(f"older_than is a timedelta that is not negative, or a datetime with its time zone, not {older_than!r}")


def _do_all(works: Iterable[Callable[[], object]]) -> None:
    for work in works:
        work()
