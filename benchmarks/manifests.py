"""How fragmented a thread's list of messages has become: a look into our own layout."""

from __future__ import annotations

from typing import Any

from benchmarks.lanes import Figures
from langmem_ext import DeltaSaver
from langmem_ext.storage.checkpoints.lookup import read_header
from langmem_ext.storage.checkpoints.thread_row import find_thread
from langmem_ext.storage.operation import Op, operation
from langmem_ext.storage.rows.ids import encode_id
from langmem_ext.types import ThreadKey


def manifest_runs(saver: Any, config: Any) -> Figures:
    """How many runs of items stand in the newest checkpoint itself; nothing for other savers."""
    if not isinstance(saver, DeltaSaver):
        return {}
    newest = saver.get_tuple(config)
    assert newest is not None
    configurable = newest.config["configurable"]
    return {
        "runs": saver.log.run(
            _runs(saver, configurable["thread_id"], configurable["checkpoint_id"]), write=False
        )
    }


@operation
def _runs(saver: DeltaSaver, thread_id: str, checkpoint_id: str) -> Op[int]:
    thread = yield from find_thread(ThreadKey(thread_id, None))
    assert thread is not None
    cache = saver.log.caches.of(thread_id, thread.row(), saver.codec)
    header = yield from read_header(cache, 0, encode_id(checkpoint_id))
    assert header is not None
    return max(
        (len(ref.runs) - (ref.manifest[1] if ref.manifest is not None else 0)) // 2
        for ref in header.values.values()
    )
