"""Routes under `/langmem` list waiting threads, answer one, and preview a request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Response
from langchain_core.runnables import RunnableConfig
from pydantic import Field

from langmem_ext.context.govern import govern
from langmem_ext.context.governor import EVENTS
from langmem_ext.messages.shown import shown
from langmem_ext.server import wire
from langmem_ext.server.guard import AtDesk
from langmem_ext.server.routes.threads import Body, Note, ThreadId
from langmem_ext.server.runs import allowed_of
from langmem_ext.threads.states.states import StatedThread, ThreadQuery

if TYPE_CHECKING:
    from langmem_ext.waiting.turn import Turn


class Reply(Body):
    """A user's message to a thread, whatever state that is in."""

    text: str = Field(examples=["It's O-12345"], max_length=100_000)
    message_id: Annotated[str, Field(min_length=1, max_length=1000)] | None = Field(
        None, description="A message with the same id is delivered only once."
    )
    interrupt_id: Annotated[str, Field(max_length=1000)] | None = Field(
        None,
        description="The `interrupt_id` of the question that is answered; empty if none was seen."
        " If another one waits by now, the answer is 409, and nothing is delivered.",
    )
    config: Note | None = Field(
        None,
        examples=[{"tz": "Europe/Rome"}],
        description="The part of `configurable` that the graph sees.",
    )


def add_waiting_routes(router: APIRouter) -> None:
    """Add the routes."""
    add: Callable[..., Any] = router.add_api_route
    tags = {"tags": ["langmem"], "response_model": None}
    add("/langmem/waiting", waiting, methods=["GET"], **tags)
    add("/langmem/threads/{thread_id}/reply", reply, methods=["POST"], **tags)
    add("/langmem/threads/{thread_id}/context", context, methods=["GET"], **tags)


async def waiting(
    desk: AtDesk,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
    offset: Annotated[int, Query(ge=0, le=1_000_000_000)] = 0,
) -> Response:
    """The waiting threads, each with its question, the last written first.

    Sensitive values are hidden.
    """
    threads = await desk.states.asearch(
        ThreadQuery(status="interrupted", limit=limit, offset=offset)
    )
    return await wire.answer(await asyncio.to_thread(_waiting_shapes, threads))


async def reply(thread_id: ThreadId, body: Reply, desk: AtDesk) -> Response:
    """Answer what a thread waits for, or send it a new message; the turn that follows."""
    desk.graph  # noqa: B018 - raises if there is no graph
    await desk.threads.aget(thread_id)
    config: RunnableConfig = {"configurable": allowed_of(body.config or {}, desk.owner)}
    turn = await desk.converse(
        body.text, thread_id, body.message_id, config, interrupt_id=body.interrupt_id
    )
    return await wire.answer({"thread_id": thread_id, **turn_shape(turn)})


async def context(
    thread_id: ThreadId,
    desk: AtDesk,
    budget: Annotated[
        int, Query(ge=1, le=10_000_000, description="The maximum size of the request, in tokens.")
    ] = 4096,
    system: Annotated[
        str | None, Query(description="The system prompt, which counts, too.", max_length=100_000)
    ] = None,
) -> Response:
    """What a model would be sent of a thread within a budget, and what would be left out.

    Nothing is changed. Sensitive values are hidden.
    """
    thread = await desk.states.aget(thread_id)
    messages = await desk.threads.amessages(thread_id)
    values = thread.state.values if thread.state is not None else None
    events = values.get(EVENTS) or () if isinstance(values, dict) else ()
    governed = await asyncio.to_thread(
        partial(govern, messages, budget=budget, events=events, system=system)
    )
    plan = governed.plan
    counts = {
        name: getattr(plan, name) for name in ("limit", "before", "after", "messages", "sent")
    }
    request = list(map(shown, governed.messages))
    return await wire.answer({**counts, "rows": plan.rows, "request": request})


def turn_shape(turn: Turn) -> wire.Shape:
    """The turn after one message."""
    return {
        "reply": turn.reply,
        "waiting_for": turn.waiting_for,
        "interrupt_id": turn.interrupt_id,
        "attempt": turn.attempt,
        "params_keys": turn.params_keys,
        "usage": turn.usage,
        "interrupts": list(map(wire.interrupt_shape, turn.interrupts)),
    }


def _waiting_shapes(threads: Sequence[StatedThread]) -> list[wire.Shape]:
    # Imported late, as in `Desk.converse`.
    from langmem_ext.waiting.turn import read_turn, reply_of  # noqa: PLC0415

    return [
        _waiting_shape(
            thread,
            turn_shape(replace(read_turn(state, {}), reply=reply_of(state, masked=True))),
            state.next,
        )
        for thread in threads
        if (state := thread.state) is not None  # else it would not wait
    ]


def _waiting_shape(thread: StatedThread, turn: wire.Shape, following: Sequence[str]) -> wire.Shape:
    info = thread.info
    times = {"updated_at": info.updated_at.isoformat(), "created_at": info.created_at.isoformat()}
    return {
        "thread_id": info.id,
        "title": info.title,
        "owner": info.owner,
        "tags": info.tags,
        **times,
        "next": following,
        **turn,
    }
