"""LangGraph's operations as steps of a batch: checked before any of them runs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from langchain_core.runnables.config import var_child_runnable_config
from langgraph.store.base import (
    GetOp,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchOp,
)

from langmem_ext.errors import InvalidInput
from langmem_ext.log.message_log import MessageLog, thread_key
from langmem_ext.storage.checkpoints.late_writes import origin_of
from langmem_ext.store.filters import Narrowing, narrowing, require_filter
from langmem_ext.store.index import Index, words_of
from langmem_ext.store.names import bytes_of, common_prefix, path_of
from langmem_ext.store.operations import Get, Listing, Put, Query, Run, Search, SourceThread, Step
from langmem_ext.store.ranking import words_of_query
from langmem_ext.store.values import dump_value
from langmem_ext.store.vectors import Vectors
from langmem_ext.types import CHECKPOINTER, ThreadKey

_MINUTE_MS: Final = 60_000

LONGEST_TTL: Final = 1_000 * 366 * 24 * 60
"""The maximum time to live of an item, in minutes: a thousand years."""

_UNBOUNDED: Final = Narrowing("", {})


class ThreadPut(PutOp):
    """A put of an item that comes from threads of the same database (`on_threads`)."""

    threads: Sequence[SourceThread] = ()


def on_threads(op: PutOp, threads: Iterable[SourceThread]) -> PutOp:
    """A put whose item is deleted with the last of these threads, in the same transaction.

    Only a `DeltaStore` supports it: other stores may not recognise it as a put.
    """
    put = ThreadPut(*op)
    put.threads = tuple(threads)
    return put


def run_of(log: MessageLog) -> Run | None:
    """The calling run, if its checkpoints are in the same database; else None.

    They may be stored through another open log, which then knows what is late.
    """
    config = var_child_runnable_config.get()
    configurable = {} if config is None else config.get("configurable") or {}
    saver = configurable.get(CHECKPOINTER)
    of_run = getattr(saver, "log", None)
    if not isinstance(of_run, MessageLog) or not of_run.has_database_of(log):
        return None
    namespace = configurable.get("checkpoint_ns") or ""
    origin = origin_of(configurable, namespace, None, task=None)
    if origin is None:
        return None
    owner = getattr(saver, "owner", None)
    key = ThreadKey(thread_key(configurable.get("thread_id")), owner)
    return Run(key, origin, of_run.caches)


@dataclass(slots=True)
class Plan:
    """A batch: its steps, and by their positions the texts and queries to embed first."""

    steps: list[Step] = field(default_factory=list)
    texts: dict[int, list[str]] = field(default_factory=dict)
    queries: dict[int, str] = field(default_factory=dict)

    @property
    def writes(self) -> bool:
        """Whether it puts or deletes anything."""
        return any(isinstance(step, Put) for step in self.steps)

    @property
    def is_heavy(self) -> bool:
        """Whether it may read so much that it must not run on an event loop."""
        return bool(self.queries) or any(
            isinstance(step, Search) and step.is_heavy for step in self.steps
        )

    def all_texts(self) -> list[str]:
        """The texts of the puts that will be run, each once."""
        puts = [(at, step) for at, step in enumerate(self.steps) if isinstance(step, Put)]
        last = {(put.path, put.key): at for at, put in puts}
        return list(dict.fromkeys(text for at in last.values() for text in self.texts.get(at, ())))

    def all_queries(self) -> list[str]:
        """The queries, each once."""
        return list(dict.fromkeys(self.queries.values()))

    def complete(
        self,
        index: Index,
        texts: Mapping[str, bytes],
        queries: Mapping[str, bytes | None],
        vectors: Vectors,
        *,
        hybrid: bool,
    ) -> None:
        """Give its steps the vectors of their texts and queries.

        Args:
            index: The index of the vectors.
            texts: The vector of each text.
            queries: The vector of each query.
            vectors: Compares them.
            hybrid: Whether words count as well.
        """
        for at, step in enumerate(self.steps):
            if isinstance(step, Put) and at in self.texts:
                own = self.texts[at]
                vectors_of = [texts[text] for text in own if text in texts]
                self.steps[at] = replace(
                    step, words=words_of(own), vectors=vectors_of, signature=index.signature
                )
            elif isinstance(step, Search) and at in self.queries:
                query = self.queries[at]
                words = words_of_query(query) if hybrid else ()
                self.steps[at] = replace(step, query=Query(words, queries.get(query), vectors))


def plan_batch(ops: Iterable[Op], index: Index) -> Plan:
    """The plan of a batch.

    Raises:
        InvalidInput: An operation is invalid; the error names it.
    """
    plan = Plan()
    for at, op in enumerate(ops):
        try:
            plan.steps.append(_step(op))
            if isinstance(op, PutOp) and op.value is not None:
                plan.texts[at] = index.texts(op.value, op.index)
            elif isinstance(op, SearchOp) and op.query:
                plan.queries[at] = op.query
        except InvalidInput as error:
            raise InvalidInput(f"{_named(op)}: {error}; nothing was changed") from None
    return plan


def _step(op: Op) -> Step:
    if isinstance(op, PutOp):
        return _put(op)
    if isinstance(op, GetOp):
        return Get(path_of(op.namespace), bytes_of(op.key), bool(op.refresh_ttl))
    if isinstance(op, SearchOp):
        return _search(op)
    if isinstance(op, ListNamespacesOp):
        return _listing(op)
    raise InvalidInput(f"a store has no operation {type(op).__name__}")


def _named(op: Op) -> str:
    place = getattr(op, "namespace", None) or getattr(op, "namespace_prefix", None) or ()
    key = f"{op.key!r} in " if isinstance(op, PutOp | GetOp) else ""
    return f"{type(op).__name__} of {key}{place!r}"


def _put(op: PutOp) -> Put:
    path, key = path_of(op.namespace), bytes_of(op.key)
    if op.value is None:
        return Put(_named(op), path, key, None)
    text, plain = dump_value(op.value)
    fields = None if op.index is None else json.dumps(op.index)
    threads = op.threads if isinstance(op, ThreadPut) else ()
    ttl = milliseconds(op.ttl)
    return Put(_named(op), path, key, text, plain, fields, ttl=ttl, threads=threads)


def milliseconds(ttl: object) -> int | None:
    """How long an item lives, from LangGraph's minutes; None for ever.

    Raises:
        InvalidInput: It is invalid.
    """
    if ttl is None:
        return None
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not 0 < ttl <= LONGEST_TTL:
        raise InvalidInput(f"a ttl is a number of minutes above 0, or None for ever, not {ttl!r}")
    return max(1, math.ceil(ttl * _MINUTE_MS))


def _search(op: SearchOp) -> Search:
    _require_count(op.limit, "limit")
    _require_count(op.offset, "offset")
    if op.query is not None and not isinstance(op.query, str):
        raise InvalidInput(f"a query is a text, not {type(op.query).__name__}")
    wanted: dict[str, Any] = {}
    if op.filter:
        require_filter(op.filter)
        wanted = op.filter
    return Search(
        path_of(op.namespace_prefix),
        wanted,
        narrowing(wanted) if wanted else _UNBOUNDED,
        op.limit,
        op.offset,
        None,
        bool(op.refresh_ttl),
    )


def _listing(op: ListNamespacesOp) -> Listing:
    _require_count(op.limit, "limit")
    _require_count(op.offset, "offset")
    if op.max_depth is not None:
        _require_count(op.max_depth, "max_depth")
    conditions = []
    for condition in op.match_conditions or ():
        path_of(condition.path)
        conditions.append(MatchCondition(condition.match_type, tuple(condition.path)))
        if condition.match_type not in ("prefix", "suffix"):
            kind = condition.match_type
            raise InvalidInput(f"namespaces match by prefix or suffix, not {kind!r}")
    path = path_of(common_prefix(conditions))
    return Listing(path, tuple(conditions), op.max_depth, op.limit, op.offset)


def _require_count(number: object, name: str) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 1 << 62:
        raise InvalidInput(f"{name} is a whole number from 0 to 2**62 - 1, not {number!r}")
