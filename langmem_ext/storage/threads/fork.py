"""The operation that forks a thread: an independent copy that ends at an earlier checkpoint."""

from __future__ import annotations

from langmem_ext.errors import InvalidInput, ThreadNotFound
from langmem_ext.messages.manifest import Runs, ranges_of
from langmem_ext.storage.cache import ThreadCache, ThreadCaches
from langmem_ext.storage.checkpoints import sql
from langmem_ext.storage.checkpoints.lookup import header_of
from langmem_ext.storage.checkpoints.messages import load_items
from langmem_ext.storage.checkpoints.thread_row import find_thread
from langmem_ext.storage.operation import PAUSE, PAUSE_EVERY, Op, fetch, fetch_one, operation
from langmem_ext.storage.prune.mark import FrameworkFacts, Reach, newest_of
from langmem_ext.storage.prune.prune import cut_thread
from langmem_ext.storage.rows.checkpoint import longest_runs
from langmem_ext.storage.rows.ids import encode_id
from langmem_ext.storage.schema.dialect import NUMBER
from langmem_ext.storage.threads.copy import Copy, copy_thread
from langmem_ext.storage.threads.list import read_info
from langmem_ext.storage.threads.sql import SET_TOOL
from langmem_ext.types import Codec, ThreadKey


@operation
def fork_thread(
    source: ThreadKey,
    target: Copy,
    *,
    checkpoint: str | None,
    message: str | None,
    now: int,
    facts: FrameworkFacts,
    caches: ThreadCaches,
) -> Op[None]:
    """Copy a thread up to a point in it.

    Args:
        source: The thread.
        target: The copy; its owner is the source's.
        checkpoint: Id of the root's checkpoint that the copy ends with; None for the whole thread.
        message: Id of the message that the copy's conversation ends with, instead of a checkpoint.
        now: Unix milliseconds.
        facts: What the checkpoints mean to their framework.
        caches: The caches of this process.

    Raises:
        ThreadNotFound: The thread does not exist.
        InvalidInput: It has no such checkpoint or message; or the target is not empty.
    """
    thread = yield from find_thread(source, caches, lock=True)
    if thread is None:
        raise ThreadNotFound(f"thread {source.id!r} not found; see `langmem-ext threads list`")
    end = None
    if message is not None:
        end = yield from _step_of(source.id, thread.number, message, facts)
    elif checkpoint is not None:
        end = encode_id(checkpoint)
        if not (
            yield from fetch(sql.HAS_CHECKPOINT, thread=thread.number, namespace=0, checkpoint=end)
        ):
            raise InvalidInput(
                f"thread {source.id!r} has no checkpoint {checkpoint!r}: see the"
                " `get_state_history` of its graph"
            )
    yield from copy_thread(source, target, now=now, caches=caches)
    if end is not None:
        yield from cut_thread(ThreadKey(target.id), end, facts=facts, caches=caches)
        yield from _retell_tool(ThreadKey(target.id), facts.codec)


def _retell_tool(key: ThreadKey, codec: Codec) -> Op[None]:
    """Set a copy's tool to that of its own newest turn that names one.

    It may have none, and be a chat, because it ends earlier.
    """
    info = yield from read_info(key)
    row = yield from fetch_one(sql.SELECT_LATEST_CHECKPOINT, thread=info.number, namespace=0)
    if info.tool is None or row is None:
        return
    cache = ThreadCache(info.number)
    runs = longest_runs((yield from header_of(cache, 0, row)).values)
    if not runs:
        return  # only the graph can read its messages, or it has none
    yield from fetch(
        SET_TOOL, thread=info.number, tool=(yield from _newest_tool(cache, runs, codec))
    )


def _newest_tool(cache: ThreadCache, runs: Runs, codec: Codec) -> Op[str | None]:
    """The tool of the last message that names one; damaged messages name none."""
    for start, end in reversed(list(ranges_of(runs))):
        for last in range(end, start, -PAUSE_EVERY):
            first = max(start, last - PAUSE_EVERY)
            yield from load_items(cache, codec, first, last, damaged=True)
            for number in range(last - 1, first - 1, -1):
                packed = cache.content.get(number)
                tool = None if packed is None else codec.item_row(packed).tool
                if tool is not None:
                    return tool
            yield PAUSE
    return None


def _step_of(thread_id: str, number: int, message: str, facts: FrameworkFacts) -> Op[bytes]:
    """The last checkpoint that ends with a message; else the first one that has it.

    No checkpoint ends with a message that came together with later ones.
    """
    items = yield from fetch(sql.FIND_ITEM_OF_THREAD, thread=number, message_id=encode_id(message))
    numbers = {key & NUMBER for (key,) in items}
    reach = Reach(number, facts)
    yield from reach.read()
    first: bytes | None = None
    last: bytes | None = None
    for count, place in enumerate(reach.rows if numbers else (), start=1):
        if place[0] == 0:
            runs = longest_runs((yield from reach.header(place)).values)
            if runs and runs[-1] - 1 in numbers:
                last = place[1]
            elif first is None and any(
                start <= item < end for start, end in ranges_of(runs) for item in numbers
            ):
                first = place[1]
        if count % PAUSE_EVERY == 0:
            yield PAUSE
    if last is None and first is None:
        yield from _require_list(reach, thread_id)
        raise InvalidInput(
            f"no checkpoint of thread {thread_id!r} has a message {message!r}: `threads history"
            " --json` shows the ids"
        )
    return last or first or b""


def _require_list(reach: Reach, thread_id: str) -> Op[None]:
    """Require that the newest checkpoint's conversation is a list, whose contents are known."""
    newest = next(newest_of((place for place in reach.rows if place[0] == 0), 1), None)
    header = None if newest is None else (yield from reach.header(newest))
    if header is not None and header.versions.get("messages") and "messages" not in header.values:
        raise InvalidInput(
            f"thread {thread_id!r} keeps its messages as a DeltaChannel, which only its graph can"
            " read: fork it at a checkpoint"
        )
