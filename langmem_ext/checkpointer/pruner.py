"""The operations by which a saver deletes and copies threads, checkpoints and runs.

A saver does not see threads of other owners than its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Literal
from uuid import UUID

from langchain_core.runnables import RunnableConfig

from langmem_ext.checkpointer.delta_channels import LangGraphFacts
from langmem_ext.checkpointer.validation import several
from langmem_ext.errors import InvalidInput
from langmem_ext.log.codec import MessageCodec
from langmem_ext.log.message_log import MessageLog, require_storable, thread_key
from langmem_ext.log.retention import Keeper, Retention, Steps, checked_now
from langmem_ext.storage.operation import Operation
from langmem_ext.storage.prune import prune as forget_ops
from langmem_ext.storage.prune.expire import Surroundings
from langmem_ext.storage.rows.clock import now_ms
from langmem_ext.storage.rows.ids import new_generation
from langmem_ext.storage.threads.copy import Copy, copy_thread
from langmem_ext.telemetry import Emitter
from langmem_ext.types import Pruned, ThreadKey

Strategy = Literal["keep_latest", "delete"]


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which checkpoints of a thread to delete, by a caller's options (`DeltaSaver.prune`)."""

    strategy: str
    keep_last: int | None
    older_than: timedelta | datetime | None


def keeper_of(
    retention: Retention | None,
    log: MessageLog,
    owner: str | None,
    codec: MessageCodec,
    emitter: Emitter,
) -> Keeper | None:
    """The object that applies a saver's retention; None if it has none."""
    if retention is None:
        return None
    around = Surroundings(owner, LangGraphFacts(codec), log.caches)
    return Keeper(retention, log, around, emitter)


def after_put(keeper: Keeper | None, config: RunnableConfig) -> Callable[[], object] | None:
    """The upkeep that is due after a put; None if nothing is due."""
    thread_id = thread_key(config["configurable"]["thread_id"])
    if keeper is None or not keeper.is_due(thread_id):
        return None
    return partial(keeper.step, thread_id, now_ms())


def drop(log: MessageLog, owner: str | None, thread_id: str) -> Operation[Pruned]:
    """Deletes a thread and everything that it holds."""
    key = ThreadKey(thread_key(thread_id), owner)
    return forget_ops.drop_thread(key, caches=log.caches, dry_run=False)


def drop_runs(
    log: MessageLog, owner: str | None, codec: MessageCodec, run_ids: Iterable[str]
) -> Operation[Pruned]:
    """Deletes the checkpoints of runs."""
    runs = list(dict.fromkeys(map(_run_of, several(run_ids, "run ids"))))
    facts = LangGraphFacts(codec)
    return forget_ops.delete_runs(runs, owner, facts=facts, caches=log.caches)


def copied(log: MessageLog, owner: str | None, source: str, target: str) -> Operation[bool]:
    """Copies a thread."""
    return copy_thread(
        ThreadKey(thread_key(source), owner),
        Copy(thread_key(target), new_generation()),
        now=now_ms(),
        caches=log.caches,
    )


def pruned(
    log: MessageLog,
    owner: str | None,
    codec: MessageCodec,
    thread_ids: Iterable[str],
    chosen: Chosen,
    *,
    dry_run: bool,
) -> list[Operation[Pruned]]:
    """The operations that prune threads, one for each.

    Raises:
        InvalidInput: An option is invalid.
    """
    keys = [
        ThreadKey(name, owner)
        for name in dict.fromkeys(map(thread_key, several(thread_ids, "thread ids")))
    ]
    if chosen.strategy == "delete":
        if chosen.keep_last is not None or chosen.older_than is not None:
            raise InvalidInput(
                "strategy='delete' takes neither keep_last nor older_than: omit them, or the"
                " strategy"
            )
        return [forget_ops.drop_thread(key, caches=log.caches, dry_run=dry_run) for key in keys]
    if chosen.strategy != "keep_latest":
        raise InvalidInput(f"unknown strategy {chosen.strategy!r}: use 'keep_latest' or 'delete'")
    policy = forget_ops.Policy(
        last=checked_count(chosen.keep_last, "keep_last"), before=_moment(chosen.older_than)
    )
    facts = LangGraphFacts(codec)
    return [
        forget_ops.prune_thread(key, policy, facts=facts, caches=log.caches, dry_run=dry_run)
        for key in keys
    ]


def sweep_steps(keeper: Keeper | None, now: datetime | None, *, dry_run: bool) -> Steps:
    """Applies a saver's retention to every thread that it can see.

    Raises:
        InvalidInput: The saver has no retention, or `now` has no time zone.
    """
    if keeper is None:
        raise InvalidInput("the saver has no retention: open it with retention=Retention(…)")
    return keeper.sweep_steps(now_ms() if now is None else checked_now(now), dry_run=dry_run)


def checked_count(count: int | None, name: str) -> int:
    """A number of checkpoints; one for None.

    Raises:
        InvalidInput: `count` is invalid.
    """
    if count is None:
        return 1
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InvalidInput(f"{name} must be at least 1 checkpoint per namespace, not {count!r}")
    return count


def _run_of(run_id: object) -> str:
    if isinstance(run_id, bool) or not isinstance(run_id, str | int | UUID):
        raise InvalidInput(
            f"a run id must be a string, an int or a UUID, not {type(run_id).__name__}: pass the"
            " run_id of the metadata"
        )
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
    raise InvalidInput(
        "older_than must be a non-negative timedelta, or a datetime with a time zone, not"
        f" {older_than!r}"
    )
