"""The routes of LangGraph's SDK for threads (`get_client().threads`), without a graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, Literal, TypeAlias

from fastapi import APIRouter, Header, Path, Query, Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from langmem_ext.messages.annotations import as_sent
from langmem_ext.server import runs, wire
from langmem_ext.server.guard import AtDesk
from langmem_ext.server.problems import NotServed
from langmem_ext.server.service import Desk, place
from langmem_ext.threads.states.states import StatedThread, ThreadQuery

ThreadId: TypeAlias = Annotated[
    str, Path(description="The thread's id.", examples=["order-17"], max_length=1000)
]
CheckpointId: TypeAlias = Annotated[str, Path(description="A checkpoint's id.", max_length=1000)]
Prefer: TypeAlias = Annotated[
    str | None, Header(description="`return=minimal`: answer without content.")
]
Subgraphs: TypeAlias = Annotated[
    bool, Query(description="Include the states of subgraphs; needs a graph.")
]
Select: TypeAlias = Annotated[
    list[str] | None, Query(description="Only these values, by name.", max_length=1000)
]
Note: TypeAlias = dict[str, Any]
Sent: TypeAlias = Annotated[Any, AfterValidator(as_sent)]
SentNote: TypeAlias = Annotated[Note, AfterValidator(as_sent)]
Limit: TypeAlias = Annotated[int, Field(ge=1, le=1000)]
Offset: TypeAlias = Annotated[int, Field(ge=0, le=1_000_000_000)]
Status: TypeAlias = Literal["idle", "busy", "interrupted", "error"]


class Body(BaseModel):
    """A request's content: unknown names are ignored, as by LangGraph's server."""

    model_config = ConfigDict(extra="ignore")


class NewThread(Body):
    """A thread to create."""

    thread_id: str | None = Field(None, examples=["order-17"], min_length=1, max_length=1000)
    metadata: Note | None = Field(None, examples=[{"customer": "c-9"}])
    if_exists: Literal["raise", "do_nothing"] | None = None
    ttl: Any = None
    supersteps: list[Any] | None = None


class ThreadChange(Body):
    """Metadata to set on a thread; other names are kept."""

    metadata: Note | None = Field(None, examples=[{"customer": "c-9"}])
    ttl: Any = None


class ThreadFilter(Body):
    """Which threads to search for."""

    metadata: Note | None = None
    values: Note | None = None
    status: Status | None = None


class ThreadSearch(ThreadFilter):
    """Which threads to search for, and which page of them."""

    ids: list[str] | None = Field(None, max_length=1000)
    limit: Limit = 10
    offset: Offset = 0
    sort_by: (
        Literal["thread_id", "status", "created_at", "updated_at", "state_updated_at"] | None
    ) = None
    sort_order: Literal["asc", "desc"] | None = None
    select: list[wire.Field] | None = None
    extract: dict[str, str] | None = Field(None, max_length=10)


class Prune(Body):
    """Threads to delete, or of which to keep only the newest state."""

    thread_ids: list[str] = Field(max_length=1000)
    strategy: Literal["delete", "keep_latest"] = "delete"


class Checkpoint(Body):
    """A checkpoint's id and namespace."""

    checkpoint_id: Annotated[str, Field(max_length=1000)] | None = None
    checkpoint_ns: Annotated[str, Field(max_length=10_000)] = ""


class AtCheckpoint(Body):
    """Which state to read."""

    checkpoint: Checkpoint
    subgraphs: bool | None = None
    select: list[str] | None = None


class History(Body):
    """Which of a thread's states to read."""

    limit: Limit = 10
    before: str | Checkpoint | None = None
    metadata: Note | None = None
    checkpoint: Checkpoint | None = None
    select: list[str] | None = None


class StateUpdate(Body):
    """What to write to a thread's state, as if a node had returned it."""

    values: Sent = None
    as_node: str | None = None
    checkpoint: Checkpoint | None = None
    checkpoint_id: str | None = Field(None, max_length=1000)


ORDERS: dict[str, Any] = {"thread_id": "id", "state_updated_at": "updated_at"}
"""Names of orders that are called differently here."""


def add_thread_routes(router: APIRouter) -> None:
    """Add the routes that need no graph, and those that check for one when they are called."""
    add: Callable[..., Any] = router.add_api_route
    tags = {"tags": ["threads"], "response_model": None}
    add("/threads", create, methods=["POST"], **tags)
    add("/threads/search", search, methods=["POST"], **tags)
    add("/threads/count", count, methods=["POST"], **tags)
    add("/threads/prune", prune, methods=["POST"], **tags)
    add("/threads/{thread_id}", get, methods=["GET"], **tags)
    add("/threads/{thread_id}", update, methods=["PATCH"], **tags)
    add("/threads/{thread_id}", delete, methods=["DELETE"], status_code=204, **tags)
    add("/threads/{thread_id}/copy", copy, methods=["POST"], **tags)
    add("/threads/{thread_id}/state", state, methods=["GET"], **tags)
    add("/threads/{thread_id}/state", update_state, methods=["POST"], **tags)
    add("/threads/{thread_id}/state/checkpoint", state_at, methods=["POST"], **tags)
    add("/threads/{thread_id}/state/{checkpoint_id}", state_of, methods=["GET"], **tags)
    add("/threads/{thread_id}/history", history, methods=["POST"], **tags)


# -- threads ---------------------------------------------------------------------------------------


async def create(body: NewThread, desk: AtDesk) -> Response:
    """Create an empty thread."""
    _require_no_ttl(body.ttl)
    if body.supersteps:
        desk.graph  # noqa: B018 - raises if there is no graph
        raise NotServed(
            "a thread is not made with states of its own here: make it, then update its state"
        )
    made = await desk.threads.acreate(
        body.thread_id, metadata=body.metadata, exist_ok=body.if_exists == "do_nothing"
    )
    return await wire.answer(
        wire.thread_shape(await desk.states.aget(made.id), desk.graph_metadata)
    )


async def get(thread_id: ThreadId, desk: AtDesk) -> Response:
    """A thread, with the values of its newest state and what it waits for."""
    return await _thread(desk, await desk.states.aget(thread_id))


async def update(
    thread_id: ThreadId, body: ThreadChange, desk: AtDesk, prefer: Prefer = None
) -> Response:
    """Set metadata of a thread; a value of null removes its name."""
    _require_no_ttl(body.ttl)
    await desk.threads.anote(thread_id, body.metadata or {})
    if prefer is not None and "return=minimal" in prefer:
        return Response(status_code=204)
    return await _thread(desk, await desk.states.aget(thread_id))


async def delete(thread_id: ThreadId, desk: AtDesk) -> Response:
    """Delete a thread with everything it has."""
    await desk.threads.aget(thread_id)
    await desk.threads.adelete(thread_id)
    return Response(status_code=204)


async def copy(thread_id: ThreadId, desk: AtDesk) -> Response:
    """Copy a thread with everything it has; the copy."""
    made = await desk.threads.afork(thread_id)
    return await _thread(desk, await desk.states.aget(made.id))


async def search(body: ThreadSearch, desk: AtDesk) -> Response:
    """Threads that match, by default the last written first."""
    extract = body.extract or {}
    wire.require_paths(extract)
    order = ORDERS.get(body.sort_by or "updated_at", body.sort_by or "updated_at")
    page = replace(
        _wanted(desk, body),
        order=order,
        descending=body.sort_order != "asc",
        offset=body.offset,
        limit=body.limit + 1,
    )
    if body.ids is not None:
        page = replace(page, ids=body.ids)
    needed = not body.select or bool(wire.OF_STATE & {*body.select}) or bool(extract)
    threads = await desk.states.asearch(page, states=needed)
    end = body.offset + body.limit
    more = {"X-Pagination-Next": str(end)} if len(threads) > body.limit else {}
    headers = {"X-Pagination-Total": str(body.offset + len(threads)), **more}
    busy = desk.runs.busy()
    shapes = [
        wire.thread_shape(thread, desk.graph_metadata, busy=thread.info.id in busy)
        for thread in threads[: body.limit]
    ]
    return await wire.answer(
        [wire.selected(shape, body.select or (), extract) for shape in shapes], headers=headers
    )


async def count(body: ThreadFilter, desk: AtDesk) -> Response:
    """How many threads match."""
    return await wire.answer(await desk.states.acount(_wanted(desk, body)))


async def prune(body: Prune, desk: AtDesk) -> Response:
    """Delete threads, or all of their states but the newest."""
    existing = await desk.states.asearch(
        ThreadQuery(ids=body.thread_ids, limit=len(body.thread_ids) or 1), states=False
    )
    names = [thread.info.id for thread in existing]
    await desk.saver.aprune(names, strategy=body.strategy)
    return await wire.answer({"pruned_count": len(names)})


# -- states ----------------------------------------------------------------------------------------


async def state(
    thread_id: ThreadId, desk: AtDesk, subgraphs: Subgraphs = False, select: Select = None
) -> Response:
    """The newest state of a thread."""
    return await _state(desk, thread_id, Checkpoint(), subgraphs, select)


async def state_of(
    thread_id: ThreadId,
    checkpoint_id: CheckpointId,
    desk: AtDesk,
    subgraphs: Subgraphs = False,
    select: Select = None,
) -> Response:
    """The state that a checkpoint holds."""
    return await _state(desk, thread_id, Checkpoint(checkpoint_id=checkpoint_id), subgraphs, select)


async def state_at(thread_id: ThreadId, body: AtCheckpoint, desk: AtDesk) -> Response:
    """The state that a checkpoint holds, perhaps a subgraph's."""
    return await _state(desk, thread_id, body.checkpoint, bool(body.subgraphs), body.select)


async def update_state(thread_id: ThreadId, body: StateUpdate, desk: AtDesk) -> Response:
    """Write to a thread's state, as if a node had returned it; the new checkpoint."""
    at = body.checkpoint or Checkpoint(checkpoint_id=body.checkpoint_id)
    graph = desk.graph
    await desk.threads.aget(thread_id)
    config = place(thread_id, at.checkpoint_id, at.checkpoint_ns)
    made = await runs.update_state(
        graph, desk.saver.log, config, body.values, body.as_node, wait=desk.limits.wait
    )
    checkpoint = wire.checkpoint_shape(made)
    return await wire.answer(
        {"checkpoint": checkpoint, **(checkpoint or {}), "configurable": checkpoint}
    )


async def history(thread_id: ThreadId, body: History, desk: AtDesk) -> Response:
    """The states of a thread, the newest first."""
    await desk.threads.aget(thread_id)
    before = body.before.checkpoint_id if isinstance(body.before, Checkpoint) else body.before
    namespace = body.checkpoint.checkpoint_ns if body.checkpoint is not None else ""
    states = await desk.history(
        thread_id, namespace=namespace, before=before, metadata=body.metadata, limit=body.limit
    )
    return await wire.answer(
        [wire.selected_state(wire.state_shape(state), body.select) for state in states]
    )


# -- parts -----------------------------------------------------------------------------------------


async def _thread(desk: Desk, thread: StatedThread) -> Response:
    return await wire.answer(
        wire.thread_shape(thread, desk.graph_metadata, busy=thread.info.id in desk.runs.busy())
    )


async def _state(
    desk: Desk, thread_id: str, at: Checkpoint, subgraphs: bool, select: list[str] | None
) -> Response:
    await desk.threads.aget(thread_id)
    state = await desk.state(
        thread_id, checkpoint_id=at.checkpoint_id, namespace=at.checkpoint_ns, subgraphs=subgraphs
    )
    shape = wire.empty_state(thread_id) if state is None else wire.state_shape(state)
    return await wire.answer(wire.selected_state(shape, select))


def _wanted(desk: Desk, body: ThreadFilter) -> ThreadQuery:
    """The query; which threads are busy is known to this process alone."""
    status = None if body.status == "busy" else body.status
    ids = [*desk.runs.busy()] if body.status == "busy" else None
    return ThreadQuery(
        metadata=body.metadata,
        values=body.values,
        default_metadata=desk.graph_metadata,
        ids=ids,
        status=status,
    )


def _require_no_ttl(ttl: Any) -> None:
    if ttl is not None:
        raise NotServed(
            "a thread has no time to live of its own here: `langmem-ext sweep` deletes those that"
            " have expired"
        )
