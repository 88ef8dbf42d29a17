"""The routes of LangGraph's SDK for runs and assistants.

They are enough for Agent Chat UI, deep-agents-ui and Agent Inbox.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Annotated, Any, Final, Literal, TypeAlias
from urllib.parse import quote

from fastapi import APIRouter, HTTPException, Path, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import Field
from starlette.types import Message, Receive, Scope, Send

from langmem_ext import __version__
from langmem_ext._internal.json import json_bytes
from langmem_ext.errors import ThreadNotFound
from langmem_ext.server import wire
from langmem_ext.server.guard import AtDesk
from langmem_ext.server.problems import NotServed
from langmem_ext.server.routes.threads import (
    Body,
    Checkpoint,
    Limit,
    Note,
    Offset,
    Sent,
    SentNote,
    ThreadId,
)
from langmem_ext.server.runs import USER, Run, Work, check, command_of, config_of
from langmem_ext.server.service import Assistant, Desk

RunId: TypeAlias = Annotated[str, Path(description="A run's id.", max_length=100)]
Mode: TypeAlias = Literal[
    "values", "updates", "messages", "messages-tuple", "custom", "debug", "tasks", "checkpoints"
]
Nodes: TypeAlias = Literal["*"] | list[str]

HEARTBEAT: Final = 15.0
"""Seconds after which something is sent, so that nobody takes the connection for dead."""

AHEAD: Final = 256
"""How many events a run may be ahead of its reader."""


class Config(Body):
    """The config of a run."""

    configurable: Note | None = None
    tags: list[str] | None = None
    recursion_limit: Annotated[int, Field(ge=1, le=10_000)] | None = None


class NewRun(Body):
    """A run of the graph on an input, or on a command that answers an interrupt."""

    assistant_id: str = Field(examples=["agent"])
    input: Sent = Field(
        None, examples=[{"messages": [{"role": "user", "content": "Where is my order?"}]}]
    )
    command: SentNote | None = Field(None, examples=[{"resume": "O-12345"}])
    config: Config | None = None
    context: Note | None = None
    metadata: Note | None = None
    stream_mode: Mode | list[Mode] | None = None
    stream_subgraphs: bool | None = None
    interrupt_before: Nodes | None = None
    interrupt_after: Nodes | None = None
    checkpoint: Checkpoint | None = None
    checkpoint_id: Annotated[str, Field(max_length=1000)] | None = None
    durability: Literal["sync", "async", "exit"] | None = None
    multitask_strategy: Literal["reject", "enqueue", "interrupt", "rollback"] | None = None
    if_not_exists: Literal["create", "reject"] | None = None
    on_disconnect: Literal["cancel", "continue"] | None = None
    webhook: Any = None
    after_seconds: Any = None


class AssistantSearch(Body):
    """Which assistants to list."""

    graph_id: str | None = None
    limit: Limit = 10
    offset: Offset = 0


_log = logging.getLogger(__name__)

NEEDS_A_QUEUE: Final = (
    ("POST", "/runs"),
    ("POST", "/runs/wait"),
    ("POST", "/runs/stream"),
    ("POST", "/runs/batch"),
    ("POST", "/runs/cancel"),
    ("POST", "/runs/crons"),
    ("POST", "/runs/crons/search"),
    ("POST", "/runs/crons/count"),
    ("POST", "/threads/{thread_id}/runs/crons"),
    ("GET", "/threads/{thread_id}/runs/{run_id}/stream"),
    ("GET", "/threads/{thread_id}/stream"),
    ("POST", "/threads/{thread_id}/commands"),
    ("POST", "/threads/{thread_id}/stream/events"),
)
"""Routes of the SDK that are answered with 501."""


def add_run_routes(router: APIRouter) -> None:
    """Add the routes."""
    add: Callable[..., Any] = router.add_api_route
    tags: dict[str, Any] = {"tags": ["runs"], "response_model": None}
    for method, path in NEEDS_A_QUEUE:
        add(path, not_served, methods=[method], include_in_schema=False)
    add("/threads/{thread_id}/runs", create, methods=["POST"], **tags)
    add("/threads/{thread_id}/runs", list_runs, methods=["GET"], **tags)
    add("/threads/{thread_id}/runs/wait", wait, methods=["POST"], **tags)
    add("/threads/{thread_id}/runs/stream", stream, methods=["POST"], **tags)
    add("/threads/{thread_id}/runs/{run_id}", get, methods=["GET"], **tags)
    add("/threads/{thread_id}/runs/{run_id}/join", join, methods=["GET"], **tags)
    add("/threads/{thread_id}/runs/{run_id}/cancel", cancel, methods=["POST"], **tags)
    tags["tags"] = ["assistants"]
    add("/assistants/search", search_assistants, methods=["POST"], **tags)
    add("/assistants/{assistant_id}", get_assistant, methods=["GET"], **tags)
    add("/info", info, methods=["GET"], **tags)
    add("/ok", ok, methods=["GET"], **tags)


async def not_served() -> Response:
    """A route that needs a queue of runs."""
    raise NotServed(
        "this server has no queue of runs: run on a thread (`/threads/{id}/runs/stream`), or use"
        " LangGraph's agent server"
    )


# -- runs ------------------------------------------------------------------------------------------


async def create(thread_id: ThreadId, body: NewRun, desk: AtDesk) -> Response:
    """Begin a run, which goes on after this is answered; the run."""
    run = await _begin(desk, thread_id, body, _pass_over)
    return await wire.answer(_shape(run), headers=_headers(run, ""))


async def wait(thread_id: ThreadId, body: NewRun, desk: AtDesk) -> Response:
    """Run the graph until it ends or waits; its values, with interrupts under `__interrupt__`."""
    run = await _begin(desk, thread_id, body, _pass_over)
    left = partial(_leave, run, body)
    headers = _headers(run, "/join")
    return _Streamed(_until_over(run), desk, left, media_type="application/json", headers=headers)


async def stream(thread_id: ThreadId, body: NewRun, desk: AtDesk) -> Response:
    """Run the graph, and stream it as server-sent events."""
    events = _Events()
    run = await _begin(desk, thread_id, body, events.put)
    left = partial(_leave, run, body, events)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", **_headers(run, "/stream")}
    return _Streamed(events.read(), desk, left, media_type="text/event-stream", headers=headers)


async def list_runs(
    thread_id: ThreadId,
    desk: AtDesk,
    limit: Annotated[int, Query(ge=1, le=1000)] = 10,
    offset: Annotated[int, Query(ge=0, le=1_000_000_000)] = 0,
    status: Annotated[str | None, Query()] = None,
) -> Response:
    """The runs of a thread that this process knows, the newest first."""
    await desk.threads.aget(thread_id)
    runs = [
        run for run in desk.runs.of_thread(thread_id, desk.owner) if status in (None, run.status)
    ]
    return await wire.answer(list(map(_shape, runs[offset : offset + limit])))


async def get(thread_id: ThreadId, run_id: RunId, desk: AtDesk) -> Response:
    """A run that this process knows."""
    await desk.threads.aget(thread_id)
    return await wire.answer(_shape(desk.runs.get(thread_id, run_id, desk.owner)))


async def join(thread_id: ThreadId, run_id: RunId, desk: AtDesk) -> Response:
    """Wait for a run to end; its values, and under `__interrupt__` what it waits for."""
    await desk.threads.aget(thread_id)
    run = desk.runs.get(thread_id, run_id, desk.owner)
    return _Streamed(_until_over(run), desk, media_type="application/json")


async def cancel(
    thread_id: ThreadId,
    run_id: RunId,
    desk: AtDesk,
    wait: Annotated[bool, Query(description="Answer with 204 when it has ended.")] = False,
    action: Annotated[Literal["interrupt", "rollback"], Query()] = "interrupt",
) -> Response:
    """Stop a run; its thread goes on from its last step."""
    if action == "rollback":
        raise NotServed(
            "a run is stopped here, and what it did stays: cancel with action=interrupt, then go"
            " back by a checkpoint"
        )
    run = desk.runs.get(thread_id, run_id, desk.owner)
    assert run.task is not None
    run.task.cancel()
    # A node may take its time to end: until then it is accepted, no more.
    ended = wait and (await asyncio.wait([run.task], timeout=desk.limits.wait))[0]
    return Response(status_code=204 if ended else 202)


async def _begin(
    desk: Desk, thread_id: str, body: NewRun, emit: Callable[[str, Any], Awaitable[None]]
) -> Run:
    """Begin the requested run."""
    graph, assistant = desk.graph, desk.assistant
    assert assistant is not None  # else there is no graph
    if not assistant.is_called(body.assistant_id):
        raise HTTPException(
            404,
            f"there is no graph {body.assistant_id!r} here: this server runs {assistant.name!r}",
        )
    if (
        body.webhook is not None
        or body.after_seconds is not None
        or body.multitask_strategy in ("interrupt", "rollback")
    ):
        await not_served()
    if body.command is not None and body.input is not None:
        raise HTTPException(422, "a run has an input or a command, not both")
    strategy = body.multitask_strategy or "enqueue"
    run = Run(thread_id, assistant.id, desk.owner, body.metadata or {}, strategy)
    work = _work(run, assistant, body)
    try:
        thread = await desk.threads.aget(thread_id)
    except ThreadNotFound:
        if body.if_not_exists != "create":
            raise
        await check(graph, work.config, work.input)  # else there would be a thread of nothing
        thread = await desk.threads.acreate(thread_id, exist_ok=True)
    run.owner = thread.owner if desk.owner is None else desk.owner
    patience = 0 if strategy == "reject" else desk.limits.wait
    await desk.runs.begin(run, graph, desk.saver.log, work, emit, wait=patience)
    return run


def _work(run: Run, assistant: Assistant, body: NewRun) -> Work:
    at = body.checkpoint.model_dump(exclude_none=True) if body.checkpoint is not None else {}
    if at.pop("checkpoint_ns", ""):
        raise HTTPException(422, "a run begins at a checkpoint of the graph, not of a subgraph")
    if body.checkpoint_id is not None:
        at["checkpoint_id"] = body.checkpoint_id
    client_config = {} if body.config is None else body.config.model_dump(exclude_none=True)
    modes = body.stream_mode or "values"
    before, after = body.interrupt_before, body.interrupt_after
    context = body.context
    if run.owner is not None and context is not None and USER in context:
        context = {**context, USER: run.owner}  # as in `configurable`
    return Work(
        input=body.input if body.command is None else command_of(body.command),
        config=config_of(run, assistant.name, client_config, at),
        modes=[modes] if isinstance(modes, str) else modes,
        subgraphs=bool(body.stream_subgraphs),
        context=context,
        # As `converse`: a step that is reported is stored.
        options={
            "interrupt_before": before,
            "interrupt_after": after,
            "durability": body.durability or "sync",
        },
    )


async def _pass_over(name: str, data: Any) -> None:
    """Nobody listens."""


class _Streamed(StreamingResponse):
    """A response whose reader is dropped if it takes nothing for too long.

    Args:
        content: What is sent.
        desk: Says for how long.
        left: Called in the end, even if nothing was read.
        options: Of the response.
    """

    def __init__(
        self,
        content: AsyncIterator[bytes],
        desk: Desk,
        left: Callable[[], None] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(content, **options)
        self._patience = desk.limits.reader_seconds
        self._left = left

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sent(message: Message) -> None:
            async with asyncio.timeout(self._patience):
                await send(message)

        try:
            await super().__call__(scope, receive, sent)
        except* TimeoutError:  # its server closes the connection, for the response is unfinished
            _log.warning("a reader took nothing for %g s: it was dropped", self._patience)
        finally:
            if self._left is not None:
                self._left()


class _Events:
    """The events of a run on their way to a reader; without one, they are dropped."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._room = asyncio.Semaphore(AHEAD)
        self._read = True

    async def put(self, name: str, data: Any) -> None:
        """Queue an event once there is room; an empty name is the end, which waits for nobody."""
        if not name:
            self._queue.put_nowait(None)
        elif self._read:
            content = await asyncio.to_thread(json_bytes, data)
            await self._room.acquire()
            self._queue.put_nowait(b"event: " + name.encode() + b"\ndata: " + content + b"\n\n")

    async def read(self) -> AsyncIterator[bytes]:
        """The events as they are sent."""
        while True:
            try:
                event = await asyncio.wait_for(self._queue.get(), HEARTBEAT)
            except TimeoutError:
                yield b": still at work\n\n"
                continue
            if event is None:
                return
            self._room.release()
            yield event

    def close(self) -> None:
        """Drop all events: nobody reads any more."""
        self._read = False
        self._queue = asyncio.Queue()
        self._room.release()  # for the event that may wait: no other one is put


def _leave(run: Run, body: NewRun, events: _Events | None = None) -> None:
    """Let a run go on without its reader, or stop it, as was asked for."""
    if events is not None:
        events.close()
    if body.on_disconnect == "cancel" and run.task is not None:
        run.task.cancel()


async def _until_over(run: Run) -> AsyncIterator[bytes]:
    """A run's result, once it has ended; until then white space."""
    assert run.task is not None
    while not run.task.done():
        await asyncio.wait([run.task], timeout=HEARTBEAT)
        if not run.task.done():
            yield b"\n"
    yield await asyncio.to_thread(json_bytes, {} if run.result is None else run.result)


def _headers(run: Run, end: str) -> dict[str, str]:
    place = f"/threads/{quote(run.thread_id, safe='')}/runs/{run.id}"
    return {"Location": f"{place}{end}", "Content-Location": place}


def _shape(run: Run) -> wire.Shape:
    return {
        "run_id": run.id,
        "thread_id": run.thread_id,
        "assistant_id": run.assistant_id,
        "created_at": run.created_at.isoformat(),
        "updated_at": run.updated_at.isoformat(),
        "status": run.status,
        "metadata": run.metadata,
        "multitask_strategy": run.strategy,
    }


# -- assistants ------------------------------------------------------------------------------------


async def search_assistants(body: AssistantSearch, desk: AtDesk) -> Response:
    """The server's graph, as its only assistant."""
    assistants = (
        []
        if desk.assistant is None or body.graph_id not in (None, desk.assistant.name)
        else [desk.assistant]
    )
    return await wire.answer(
        [
            wire.assistant_shape(assistant.id, assistant.name)
            for assistant in assistants[body.offset : body.offset + body.limit]
        ]
    )


async def get_assistant(
    assistant_id: Annotated[str, Path(max_length=1000)], desk: AtDesk
) -> Response:
    """The server's graph, by its name or by its id as an assistant."""
    if desk.assistant is None or not desk.assistant.is_called(assistant_id):
        raise HTTPException(404, f"there is no assistant {assistant_id!r} here")
    return await wire.answer(wire.assistant_shape(desk.assistant.id, desk.assistant.name))


async def info(desk: AtDesk) -> Response:
    """Which server this is."""
    return await wire.answer(
        {
            "name": "langmem-ext",
            "version": __version__,
            "flags": {"assistants": desk.assistant is not None, "crons": False},
        }
    )


async def ok() -> Response:
    """The server answers."""
    return await wire.answer({"ok": True})
