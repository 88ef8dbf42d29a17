"""Routes under `/langmem` for messages that are answered by polling, and for their prompts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, Final, TypeAlias
from uuid import uuid4

from fastapi import APIRouter, HTTPException, Path, Query, Response
from pydantic import Field

from langmem_ext.server import wire
from langmem_ext.server.guard import AtDesk
from langmem_ext.server.queue import Task, TaskState
from langmem_ext.server.routes.threads import Body, Note, ThreadId
from langmem_ext.server.service import Desk
from langmem_ext.server.tasks import DELIVER, MESSAGES

MessageId: TypeAlias = Annotated[str, Path(description="A message's id.", max_length=1000)]

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
    """Accept a message; once accepted, it is delivered, even if the server dies."""
    desk.graph  # noqa: B018 - raises if there is no graph
    await desk.threads.acreate(thread_id, exist_ok=True)
    message_id = str(uuid4())
    payload = {
        "conversation_id": thread_id,
        "message_id": message_id,
        "content": body.content,
        "config": body.config,
    }
    # The task has the message's id, so that its answer is found by it.
    await desk.queue.put(Task(DELIVER, payload, desk.owner, message_id))
    message = {
        "id": message_id,
        "conversation_id": thread_id,
        "content": body.content,
        "purpose": body.purpose,
        "created_at": datetime.now(UTC).isoformat(),
    }
    return await wire.answer({"message": message, "task_id": message_id}, status=202)


async def response(
    message_id: MessageId,
    desk: AtDesk,
    wait: Annotated[float, Query(ge=0, le=LONGEST, description="Seconds to wait.")] = 30.0,
) -> Response:
    """The answer to a message; until there is one, 202 with the state of its delivery."""
    deadline = time.monotonic() + wait
    while True:
        state = await task_of(desk, message_id)
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
    item = await desk.keeping.aget(MESSAGES, message_id)
    if item is None or desk.owner not in (None, item.value["owner"]):
        raise HTTPException(404, f"there is no message {message_id!r} here that was answered")
    await desk.threads.aget(item.value["conversation_id"])
    return await wire.answer(item.value["steps"])


async def task_of(desk: Desk, task_id: str) -> TaskState:
    """The state of a task that the caller may see.

    Raises:
        HTTPException: The task is not found.
    """
    state = await desk.queue.get(task_id)
    if state is None or desk.owner not in (None, state.task.owner):
        raise HTTPException(404, f"there is no task {task_id!r} here, or it has ended long ago")
    return state
