"""Routes under `/langmem` for messages that are answered by polling, and for their prompts."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Annotated, Any, Final, TypeAlias
from uuid import UUID, uuid4, uuid5

from fastapi import APIRouter, HTTPException, Path, Query, Response
from pydantic import Field

from langmem_ext.memory.memories import began
from langmem_ext.server import wire
from langmem_ext.server.guard import AtDesk
from langmem_ext.server.queue import Task, TaskState
from langmem_ext.server.routes.threads import Body, Note, ThreadId
from langmem_ext.server.service import Desk, place
from langmem_ext.server.tasks import DELIVER, MESSAGES
from langmem_ext.store.operations import SourceThread
from langmem_ext.threads.states.held import interrupts_in

MessageId: TypeAlias = Annotated[str, Path(description="A message's id.", max_length=1000)]

MESSAGE_IDS: Final = UUID("6f2c8a52-8f0e-4c50-9d55-6f5f0c1f6a0b")
"""The namespace of the ids of tasks whose messages were named by their senders."""

LOOK: Final = 0.1
"""Seconds between two checks of a task while waiting for it."""

LONGEST: Final = 60.0
"""The maximum number of seconds to wait for an answer."""


class NewMessage(Body):
    """A user's message."""

    content: str = Field(examples=["Hello"], max_length=100_000)
    purpose: Annotated[str, Field(max_length=100)] = Field(
        "chat", description="Returned with the message."
    )
    message_id: Annotated[str, Field(min_length=1, max_length=1000)] | None = Field(
        None, description="A message that is sent again with the same id is delivered only once."
    )
    config: Note | None = Field(None, examples=[{"tz": "Europe/Rome"}])


def add_message_routes(router: APIRouter) -> None:
    """Add the routes."""
    add: Callable[..., Any] = router.add_api_route
    tags = {"tags": ["messages"], "response_model": None}
    add(
        "/langmem/conversations/{thread_id}/messages",
        send,
        methods=["POST"],
        status_code=202,
        **tags,
    )
    add("/langmem/messages/{message_id}/response", response, methods=["GET"], **tags)
    add("/langmem/messages/{message_id}/pipeline_steps", pipeline_steps, methods=["GET"], **tags)


async def send(thread_id: ThreadId, body: NewMessage, desk: AtDesk) -> Response:
    """Accept a message; once accepted, it is delivered, even if the server dies.

    Messages of a conversation are delivered in the order in which they were accepted.
    """
    desk.graph  # noqa: B018 - raises if there is no graph
    message_id = body.message_id or str(uuid4())
    # The task has the message's id, so that its answer is found by it.
    task_id = message_id if body.message_id is None else _name(desk.owner, message_id)
    payload = {**body.model_dump(), "conversation_id": thread_id, "message_id": message_id}
    state = None if body.message_id is None else await desk.queue.get(task_id, desk.owner)
    if state is None or state.task.owner != desk.owner:
        thread = await desk.threads.acreate(thread_id, exist_ok=True)
        source = SourceThread(thread.id, began(thread))
        held = await desk.saver.aget_tuple(place(thread_id))
        accepted = {**payload, "seen": [one.id for one in interrupts_in(held)]}
        task = Task(DELIVER, accepted, desk.owner, task_id, line=thread_id, thread=source)
        await desk.queue.put(task)
        state = await desk.queue.get(task_id, desk.owner) or TaskState(task)
    if {**state.task.payload, **payload} != state.task.payload:
        raise HTTPException(
            409, f"another message was sent with the id {message_id!r}: send this one with its own"
        )
    message = {
        "id": message_id,
        "conversation_id": thread_id,
        "content": body.content,
        "purpose": body.purpose,
        "created_at": state.created_at.isoformat(),
    }
    return await wire.answer({"message": message, "task_id": task_id}, status=202)


async def response(
    message_id: MessageId,
    desk: AtDesk,
    wait: Annotated[float, Query(ge=0, le=LONGEST, description="Seconds to wait.")] = 30.0,
) -> Response:
    """The answer to a message; until there is one, 202 with the state of its delivery."""
    deadline = time.monotonic() + wait
    while True:
        state = await task_of(desk, _name(desk.owner, message_id), message_id)
        if state.status == "done":
            return await wire.answer(state.result)
        if state.status == "failed":
            raise HTTPException(409, f"the message was not answered: {state.error}")
        if time.monotonic() >= deadline:
            return await wire.answer(
                {"status": state.status, "attempts": state.attempts, "error": state.error},
                status=202,
            )
        await asyncio.sleep(LOOK)


async def pipeline_steps(message_id: MessageId, desk: AtDesk) -> Response:
    """The model calls between a message and its answer, with prompts; by the id of either.

    Sensitive values are hidden.
    """
    stores, owner = desk.memories.stores, desk.owner
    own = await stores.aclaimed(MESSAGES, _name(owner, message_id), owner)
    item = own or await stores.aclaimed(MESSAGES, message_id, owner)
    if item is None:
        raise HTTPException(404, f"there is no message {message_id!r} here that was answered")
    await desk.threads.aget(item.value["conversation_id"])
    return await wire.answer(item.value["steps"])


async def task_of(desk: Desk, *task_ids: str) -> TaskState:
    """The state of the first of these tasks that the caller may see.

    Raises:
        HTTPException: None is found.
    """
    for task_id in task_ids:
        state = await desk.queue.get(task_id, desk.owner)
        if state is not None and desk.owner in (None, state.task.owner):
            return state
    raise HTTPException(404, f"there is no task {task_ids[-1]!r} here, or it has ended long ago")


def _name(owner: str | None, message_id: str) -> str:
    """The task of a message whose sender chose its id: other owners may choose the same."""
    return str(uuid5(MESSAGE_IDS, json.dumps([owner, message_id])))
