"""An operation that is run again, and may have been stored by an earlier run: its connection broke before anyone was told.

What an operation does is mostly the same however often it is done; what it appends, makes and counts is not. So it looks first for what its
earlier run has left (`effects.Trace`): where that is there, it tells what that run was about to tell, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from langmem_ext.storage.effects import Op, Operation, Trace, operation
from langmem_ext.types import ThreadKey

T = TypeVar("T")


def recalled(op: Operation[T], told: Sequence[T]) -> Operation[T]:
    """An operation as it is run again.

    Args:
        op: The operation.
        told: What an earlier run was about to tell that may have been stored; empty where there was none.
    """
    trace, thread = (op.trace, op.thread) if told else (None, None)
    return op if trace is None or thread is None else _unless_left(ThreadKey(thread), trace, op, told[0])


@operation
def _unless_left(key: ThreadKey, trace: Trace, op: Operation[T], told: T) -> Op[T]:
    return told if (yield from trace.is_left(key.id)) else (yield from op)
