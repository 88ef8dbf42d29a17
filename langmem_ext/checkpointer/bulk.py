"""Many checkpoints at once: stored in their order, all or none, and outlined page by page."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Final, Literal, TypeAlias

from langchain_core.runnables import RunnableConfig

from langmem_ext.checkpointer.validation import several
from langmem_ext.checkpointer.values import config_of
from langmem_ext.log.codec import MessageCodec
from langmem_ext.log.message_log import MessageLog, thread_key
from langmem_ext.storage.checkpoints import bulk as transfer_ops
from langmem_ext.storage.operation import Operation
from langmem_ext.storage.rows.clock import Times
from langmem_ext.storage.threads import rows_in_out as transit_ops
from langmem_ext.storage.threads.list import ThreadFilter
from langmem_ext.types import ThreadKey

Put: TypeAlias = tuple[Literal["put", "put_writes"], tuple[Any, ...]]
"""A saver's method that writes, and its arguments."""

Outline: TypeAlias = list[tuple[RunnableConfig, list[tuple[str, str]]]]
"""The config of each checkpoint, and the task and channel of each of its pending writes, in their
order."""

THREADS: Final = 64
"""How many threads are outlined together."""


def together(
    ops: list[Operation[None]], times: Sequence[Times] | None, owner: str | None
) -> Operation[None]:
    """Operations that write, as one: all of them are stored, or none.

    Args:
        ops: The operations, for any threads.
        times: The time of each of them. Default: now.
        owner: The threads' owner.
    """
    if times is not None:
        ops = [op.with_arguments(times=moment) for op, moment in zip(ops, times, strict=True)]
    # In the drivers' order, so that two processes lock the rows of two threads in the same order.
    ops = sorted(ops, key=lambda op: op.thread or "")
    threads = {op.thread for op in ops}
    only = threads.pop() if len(threads) == 1 else None
    whole = transfer_ops.store_puts(None if only is None else ThreadKey(only, owner), ops)
    whole.heavy = any(op.heavy for op in ops)
    return whole


def outline(
    log: MessageLog, owner: str | None, codec: MessageCodec, thread_ids: Sequence[Any] | None
) -> Generator[Operation[Any], Any, Outline]:
    """The steps that read the ids of checkpoints and pending writes (`DeltaSaver.outline`)."""
    names = (
        []
        if thread_ids is None
        else list(dict.fromkeys(map(thread_key, several(thread_ids, "thread ids"))))
    )
    after = 0
    while thread_ids is None and (
        rows := (yield transit_ops.list_ids(ThreadFilter(owner=owner), after))
    ):
        names += [name for _, name in rows]
        after = rows[-1][0]
    outlined: Outline = []
    for start in range(0, len(names), THREADS):
        keys = [ThreadKey(name, owner) for name in names[start : start + THREADS]]
        stored = yield transfer_ops.stored(keys, caches=log.caches, codec=codec)
        for key, places in zip(keys, stored, strict=True):
            for place, writes in places.items():
                outlined.append(
                    (
                        config_of(key.id, *place),
                        [(task, write.channel) for task, write in writes],
                    )
                )
    return outlined


def thread_times(
    owner: str | None, thread_ids: Sequence[Any]
) -> Generator[Operation[Any], Any, dict[str, tuple[int, int]]]:
    """The steps that read when threads were first and last written."""
    keys = [ThreadKey(name, owner) for name in dict.fromkeys(map(thread_key, thread_ids))]
    times: dict[str, tuple[int, int]] = {}
    for start in range(0, len(keys), THREADS):
        times |= yield transfer_ops.read_times(keys[start : start + THREADS])
    return times


def checkpoints(puts: Sequence[Put]) -> list[RunnableConfig]:
    """The config of each checkpoint that was put."""
    return [arguments[0] for method, arguments in puts if method == "put"]
