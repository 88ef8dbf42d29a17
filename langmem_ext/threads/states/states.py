"""`ThreadStates`: threads with their states, found by their states and metadata.

A user interface lists these: each thread with its values, whether it waits, and for what. No graph
is needed; if there is one, it knows more (`threads.states.snapshot`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.types import PregelTask, StateSnapshot

from langmem_ext._internal import html
from langmem_ext._internal.json import jsonable
from langmem_ext._internal.stepping import aperform, perform
from langmem_ext.checkpointer.saver import DeltaSaver
from langmem_ext.checkpointer.values import config_of
from langmem_ext.errors import DamagedRow, InvalidInput
from langmem_ext.log.message_log import thread_key
from langmem_ext.messages.annotations import shown_text
from langmem_ext.messages.turns import calls_of
from langmem_ext.storage.operation import Operation
from langmem_ext.storage.threads import list as listing_ops
from langmem_ext.storage.threads.list import ThreadFilter, metadata_text
from langmem_ext.threads.rows import ThreadId
from langmem_ext.threads.states.snapshot import INPUT, Status, snapshot_of, status_of
from langmem_ext.threads.states.taken import Graph, refusal_of
from langmem_ext.threads.validation import checked_limit, checked_metadata
from langmem_ext.types import ThreadInfo, ThreadKey

Order: TypeAlias = Literal["updated_at", "created_at", "id", "status"]

PAGE: Final = 64
"""How many threads are read first if their states or metadata decide; each further page is twice as
long."""

LONGEST_PAGE: Final = 1024
"""The maximum number of threads that are read together."""

SHOWN: Final = 6
"""How many messages of a state a notebook shows."""

MOST_IDS: Final = 1000
"""How many threads can be searched for by their ids at a time."""


@dataclass(frozen=True, slots=True)
class StatedThread:
    """A thread and its newest state.

    Attributes:
        info: The thread's description.
        state: The state of its newest checkpoint; None if it has none.
        damage: Why its state cannot be read; None if it can.
    """

    info: ThreadInfo
    state: StateSnapshot | None = None
    damage: str | None = None

    @property
    def status(self) -> Status:
        """Its status."""
        if self.damage is not None:
            return "error"
        return "idle" if self.state is None else status_of(self.state)

    def _repr_html_(self) -> str:
        values = self.state.values if self.state is not None else {}
        others = tuple(values) if isinstance(values, dict) else ()
        messages = values.get("messages") if isinstance(values, dict) else None
        rows = [
            (message.type, shown_text(vars(message)) or calls_of(message))
            for message in (messages if isinstance(messages, list) else [])[-SHOWN:]
            if isinstance(message, BaseMessage)
        ]
        rows += [
            ("status", self.status),
            ("waits for", self.info.waiting_for or ""),
            ("next", ", ".join(self.state.next if self.state is not None else ())),
            ("channels", ", ".join(others)),
            ("damage", self.damage or ""),
        ]
        title = self.info.title or self.info.id
        return html.titled(title, html.table(row for row in rows if row[1]))


@dataclass(frozen=True, slots=True)
class ThreadQuery:
    """Which threads to search for. Archived threads are left out.

    Attributes:
        metadata, values: What their metadata and their state must contain: each name with an equal
            value; objects are compared in the same way.
        default_metadata: Metadata that every thread has unless it has other values under these
            names.
        ids: Only these threads.
        status: Only threads with this status.
        order, descending: What they are sorted by.
        offset, limit: How many to skip, and the maximum number to return.
    """

    metadata: Mapping[str, Any] | None = None
    values: Mapping[str, Any] | None = None
    default_metadata: Mapping[str, Any] | None = None
    ids: Sequence[ThreadId] | None = None
    status: Status | None = None
    order: Order = "updated_at"
    descending: bool = True
    offset: int = 0
    limit: int = 10


Page: TypeAlias = "Operation[Any] | Sequence[str]"
Steps: TypeAlias = Generator[Page, Any, Any]


class ThreadStates:
    """The threads that a saver stores, with their states.

    Args:
        saver: The saver; threads of other owners than its own are not found.
        graph: The graph of the threads, if there is one: what it cannot apply is a thread's error.

    Example:
        `[thread.info.title for thread in
        ThreadStates(saver).search(ThreadQuery(status="interrupted"))]`
    """

    def __init__(self, saver: DeltaSaver, graph: Graph | None = None) -> None:
        self.saver = saver
        self._graph = graph

    # -- one thread --------------------------------------------------------------------------------

    def get(self, thread_id: ThreadId) -> StatedThread:
        """A thread with its newest state.

        Raises:
            ThreadNotFound: The thread does not exist, or belongs to another owner.
            DamagedRow: Its state does not decode.
        """
        thread: StatedThread = perform(self._get(thread_id), self._answer)
        return thread

    async def aget(self, thread_id: ThreadId) -> StatedThread:
        """Async twin of `get`."""
        thread: StatedThread = await aperform(self._get(thread_id), self._aanswer)
        return thread

    def state(
        self, thread_id: ThreadId, *, checkpoint_id: str | None = None, namespace: str = ""
    ) -> StateSnapshot | None:
        """The state of a thread: the newest, or that of a checkpoint; None if there is none.

        Raises:
            DamagedRow: The state does not decode.
        """
        checkpoint = self.saver.get_tuple(_config(thread_id, namespace, checkpoint_id))
        return self._snapshot(checkpoint, live=checkpoint_id is None)

    async def astate(
        self, thread_id: ThreadId, *, checkpoint_id: str | None = None, namespace: str = ""
    ) -> StateSnapshot | None:
        """Async twin of `state`."""
        checkpoint = await self.saver.aget_tuple(_config(thread_id, namespace, checkpoint_id))
        return self._snapshot(checkpoint, live=checkpoint_id is None)

    def history(
        self,
        thread_id: ThreadId,
        *,
        namespace: str = "",
        before: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        limit: int | None = None,
    ) -> Iterator[StateSnapshot]:
        """The states of a thread, the newest first.

        Args:
            thread_id: The thread.
            namespace: A subgraph's namespace.
            before: Only states before this checkpoint.
            metadata: Values that the checkpoints' metadata must have, by plain name.
            limit: The maximum number. Default: all.
        """
        checkpoints = self.saver.list(
            _config(thread_id, namespace), **_listed(thread_id, namespace, before, metadata, limit)
        )
        return map(snapshot_of, checkpoints)

    async def ahistory(
        self,
        thread_id: ThreadId,
        *,
        namespace: str = "",
        before: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        limit: int | None = None,
    ) -> AsyncGenerator[StateSnapshot, None]:
        """Async twin of `history`."""
        options = _listed(thread_id, namespace, before, metadata, limit)
        async for checkpoint in self.saver.alist(_config(thread_id, namespace), **options):
            yield snapshot_of(checkpoint)

    # -- several -----------------------------------------------------------------------------------

    def search(self, wanted: ThreadQuery, *, states: bool = True) -> list[StatedThread]:
        """The threads that match; one whose state is damaged is included, with its `damage`.

        A search by metadata reads the rows that may match; one by status or values reads states
        until it has found enough.

        Args:
            wanted: Which threads.
            states: Whether their states are needed.

        Raises:
            InvalidInput: The query is invalid.
        """
        threads: list[StatedThread] = perform(self._search(wanted, states), self._answer)
        return threads

    async def asearch(self, wanted: ThreadQuery, *, states: bool = True) -> list[StatedThread]:
        """Async twin of `search`."""
        threads: list[StatedThread] = await aperform(self._search(wanted, states), self._aanswer)
        return threads

    def count(self, wanted: ThreadQuery) -> int:
        """How many threads match; offset and limit are ignored."""
        number: int = perform(self._count(wanted), self._answer)
        return number

    async def acount(self, wanted: ThreadQuery) -> int:
        """Async twin of `count`."""
        number: int = await aperform(self._count(wanted), self._aanswer)
        return number

    # -- steps -------------------------------------------------------------------------------------

    def _get(self, thread_id: ThreadId) -> Steps:
        info = yield listing_ops.read_thread(ThreadKey(thread_key(thread_id), self.saver.owner))
        [state] = yield [info.id]
        if isinstance(state, DamagedRow):
            raise state
        return StatedThread(info, state)

    def _search(self, wanted: ThreadQuery, states: bool) -> Steps:
        sieve = _Sieve.of(wanted, self.saver.owner)
        limit = checked_limit(wanted.limit, "threads per page")
        if (
            isinstance(wanted.offset, bool)
            or not isinstance(wanted.offset, int)
            or wanted.offset < 0
        ):
            raise InvalidInput(
                f"offset must be a number of threads to skip, 0 or more, not {wanted.offset!r}"
            )
        if sieve.in_rows and wanted.order != "status":
            rows = yield sieve.page(wanted.offset, limit)
            return (
                (yield from self._stated(rows)) if states else [StatedThread(row) for row in rows]
            )
        threads: list[StatedThread] = []
        end = None if wanted.order == "status" else wanted.offset + limit
        yield from self._sift(sieve, threads, end, states)
        if wanted.order == "status":
            threads.sort(key=lambda thread: thread.status, reverse=wanted.descending)
        return threads[wanted.offset : wanted.offset + limit]

    def _count(self, wanted: ThreadQuery) -> Steps:
        sieve = _Sieve.of(wanted, self.saver.owner)
        if sieve.in_rows and wanted.ids is None:
            return (yield listing_ops.count_threads(sieve.filter))
        threads: list[StatedThread] = []
        yield from self._sift(sieve, threads, None, states=False)
        return len(threads)

    def _sift(
        self, sieve: _Sieve, threads: list[StatedThread], enough: int | None, states: bool
    ) -> Steps:
        """Read rows, and add the threads that match, until there are enough."""
        at, size = 0, PAGE
        while enough is None or len(threads) < enough:
            rows = yield sieve.page(at, size)
            kept = [row for row in rows if sieve.takes_row(row)]
            needed = states or sieve.by_state
            stated = (
                (yield from self._stated(kept)) if needed else [StatedThread(row) for row in kept]
            )
            threads += [thread for thread in stated if sieve.takes_state(thread)]
            if len(rows) < size:
                return
            at, size = at + size, min(2 * size, LONGEST_PAGE)

    def _stated(self, rows: Sequence[ThreadInfo]) -> Generator[Page, Any, list[StatedThread]]:
        states = yield [row.id for row in rows]
        return [
            (
                StatedThread(row, None, str(state))
                if isinstance(state, DamagedRow)
                else StatedThread(row, state)
            )
            for row, state in zip(rows, states, strict=True)
        ]

    def _snapshot(
        self, checkpoint: CheckpointTuple | None, *, live: bool = True
    ) -> StateSnapshot | None:
        """A checkpoint's state; with an error if the graph cannot go on from it."""
        if checkpoint is None:
            return None
        snapshot = snapshot_of(checkpoint, live=live)
        if self._graph is None or not live or (why := refusal_of(self._graph, checkpoint)) is None:
            return snapshot
        failed = PregelTask("", INPUT, ("__pregel_pull", INPUT), why)
        return snapshot._replace(tasks=(*snapshot.tasks, failed))

    # -- running the steps -------------------------------------------------------------------------

    def _answer(self, asked: Page) -> Any:
        """Rows of an operation, or the newest states of threads; `DamagedRow` for damaged ones."""
        if not isinstance(asked, Sequence):
            return self.saver.log.run(asked, write=False)
        states: list[StateSnapshot | DamagedRow | None] = []
        while len(states) < len(asked):
            try:
                for checkpoint in self.saver.get_all(
                    [_config(name) for name in asked[len(states) :]]
                ):
                    states.append(self._snapshot(checkpoint))
            except DamagedRow as error:
                states.append(error)
        return states

    async def _aanswer(self, asked: Page) -> Any:
        """Async twin of `_answer`."""
        if not isinstance(asked, Sequence):
            return await self.saver.log.arun(asked, write=False)
        states: list[StateSnapshot | DamagedRow | None] = []
        while len(states) < len(asked):
            try:
                async for checkpoint in self.saver.aget_all(
                    [_config(name) for name in asked[len(states) :]]
                ):
                    states.append(self._snapshot(checkpoint))
            except DamagedRow as error:
                states.append(error)
        return states


@dataclass(frozen=True, slots=True)
class _Sieve:
    """Filters threads: by row in the database, then by metadata, then by state."""

    wanted: ThreadQuery
    filter: ThreadFilter
    keys: tuple[ThreadKey, ...] | None
    metadata: Mapping[str, Any]
    values: Mapping[str, Any]

    @classmethod
    def of(cls, wanted: ThreadQuery, owner: str | None) -> _Sieve:
        metadata = checked_metadata(wanted.metadata or {})
        defaults = wanted.default_metadata or {}
        texts = _leaves({name: value for name, value in metadata.items() if name not in defaults})
        keys = None
        if wanted.ids is not None:
            if len(wanted.ids) > MOST_IDS:
                raise InvalidInput(
                    f"at most {MOST_IDS} threads can be asked for by their ids at a time, not"
                    f" {len(wanted.ids)}"
                )
            keys = tuple(
                ThreadKey(name, owner) for name in dict.fromkeys(map(thread_key, wanted.ids))
            )
        values = {} if wanted.values is None else jsonable(dict(wanted.values))
        return cls(
            wanted,
            ThreadFilter(owner=owner, status="active", noted=tuple(texts)),
            keys,
            metadata,
            values,
        )

    @property
    def by_state(self) -> bool:
        return self.wanted.status is not None or bool(self.values) or self.wanted.order == "status"

    @property
    def in_rows(self) -> bool:
        """Whether the database alone decides."""
        return not self.by_state and self.keys is None and not self.metadata

    def page(self, offset: int, limit: int) -> Operation[list[ThreadInfo]]:
        if self.keys is not None:
            return listing_ops.read_threads(self.keys[offset : offset + limit])
        name = "updated_at" if self.wanted.order == "status" else self.wanted.order
        order = f"{name} {'desc' if self.wanted.descending else 'asc'}"
        return listing_ops.pick_threads(self.filter, order, offset=offset, limit=limit)

    def takes_row(self, row: ThreadInfo) -> bool:
        return row.status == "active" and contains(
            {**(self.wanted.default_metadata or {}), **row.metadata}, self.metadata
        )

    def takes_state(self, thread: StatedThread) -> bool:
        if self.wanted.status is not None and thread.status != self.wanted.status:
            return False
        if not self.values:
            return True
        values = None if thread.state is None else thread.state.values
        if not isinstance(values, Mapping):
            return False
        return contains(
            jsonable({name: values[name] for name in self.values if name in values}), self.values
        )


def contains(whole: Mapping[str, Any], part: Mapping[str, Any]) -> bool:
    """Whether a JSON object has all that another one has; other values must be equal."""
    for name, value in part.items():
        if name not in whole:
            return False
        other = whole[name]
        if isinstance(value, Mapping) and isinstance(other, Mapping):
            if not contains(other, value):
                return False
        elif isinstance(value, bool) is not isinstance(other, bool) or value != other:
            return False
    return True


def _leaves(metadata: Mapping[str, Any]) -> Iterator[str]:
    """Texts that the JSON of all matching metadata has; numbers have several spellings."""
    for name, value in metadata.items():
        if isinstance(value, Mapping):
            yield from _leaves(value)
        elif value is None or isinstance(value, str | bool):
            yield metadata_text({name: value})[1:-1]


def _config(
    thread_id: ThreadId, namespace: str = "", checkpoint_id: str | None = None
) -> RunnableConfig:
    config = config_of(thread_key(thread_id), namespace, checkpoint_id or "")
    if not checkpoint_id:
        config["configurable"].pop("checkpoint_id", None)
    return config


def _listed(
    thread_id: ThreadId,
    namespace: str,
    before: str | None,
    metadata: Mapping[str, Any] | None,
    limit: int | None,
) -> dict[str, Any]:
    return {
        "filter": None if metadata is None else dict(metadata),
        "before": None if before is None else _config(thread_id, namespace, before),
        "limit": limit,
    }
