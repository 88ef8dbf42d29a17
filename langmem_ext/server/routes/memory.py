"""Routes under `/langmem` for the memories of conversations, and for the tasks that write them.

A conversation is a thread, and a user an owner.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeAlias

from fastapi import APIRouter, HTTPException, Path, Query, Response
from pydantic import BaseModel, Field, ValidationError

from langmem_ext import StoredMemory
from langmem_ext.errors import InvalidInput
from langmem_ext.messages.annotations import shown_text
from langmem_ext.server import wire
from langmem_ext.server.guard import AtDesk
from langmem_ext.server.queue import Task, TaskState
from langmem_ext.server.routes.messages import task_of
from langmem_ext.server.routes.threads import Body, Note, ThreadId
from langmem_ext.server.service import Desk
from langmem_ext.server.tasks import GENERATE, generate

UserId: TypeAlias = Annotated[str, Path(description="An owner.", examples=["1"], max_length=1000)]
Sync: TypeAlias = Annotated[bool, Query(description="Answer only when it is done.")]
IncludeEmpty: TypeAlias = Annotated[
    bool, Query(description="Include conversations without messages.")
]
Clamp: TypeAlias = Annotated[
    int, Query(ge=-1, le=1_000_000, description="Maximum number of conversations; -1 for all.")
]
OnlyNeeding: TypeAlias = Annotated[
    bool, Query(description="Only idle conversations without a memory, or with an old one.")
]
Idle: TypeAlias = Annotated[
    float | None,
    Query(
        ge=0,
        le=1e9,
        description="Seconds since a conversation was last written; default: half an hour.",
    ),
]


class NewMemory(Body):
    """A memory that was written elsewhere."""

    conversation_id: Annotated[str, Field(min_length=1, max_length=1000, examples=["order-17"])]
    memory_data: Note = Field(
        examples=[
            {
                "main_topics": ["orders"],
                "action": ["call back"],
                "typical_observation": "Is in a hurry.",
            }
        ]
    )


class Batch(Body):
    """The conversations whose memories to write: by their ids, a user's, or all that need one."""

    conversation_ids: Annotated[list[str], Field(max_length=1000)] | None = None
    user_id: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    only_needing: bool = True
    include_empty: bool = False
    clamp: Annotated[int, Field(ge=-1, le=1_000_000)] = -1
    idle: Annotated[float, Field(ge=0, le=1e9)] | None = None


class NewTask(Body):
    """A task."""

    task_type: Literal["GENERATE_MEMORY_BATCH"]
    payload: Batch = Field(default_factory=Batch)


def add_memory_routes(router: APIRouter) -> None:
    """Add the routes."""
    add: Callable[..., Any] = router.add_api_route
    tags: dict[str, Any] = {"tags": ["memory"], "response_model": None}
    add("/langmem/memories", put, methods=["POST"], **tags)
    add("/langmem/internal/conversations/{thread_id}/memory", get, methods=["GET"], **tags)
    add(
        "/langmem/internal/conversations/{thread_id}/messages_for_brain",
        messages_for_brain,
        methods=["GET"],
        **tags,
    )
    add("/langmem/internal/users/{user_id}/memories", of_user, methods=["GET"], **tags)
    tags["tags"] = ["tasks"]
    add("/langmem/tasks", new_task, methods=["POST"], status_code=202, **tags)
    add("/langmem/tasks/trigger-memory-generation", trigger, methods=["POST"], **tags)
    add("/langmem/tasks/trigger-memory-generation/sync", trigger_sync, methods=["POST"], **tags)
    add(
        "/langmem/tasks/generate-memory-for-conversation/{thread_id}",
        for_conversation,
        methods=["POST"],
        **tags,
    )
    add("/langmem/tasks/generate-memories-for-user/{user_id}", for_user, methods=["POST"], **tags)
    add("/langmem/tasks/{task_id}", task, methods=["GET"], **tags)


# -- memories --------------------------------------------------------------------------------------


async def put(body: NewMemory, desk: AtDesk) -> Response:
    """Store a conversation's memory, replacing the earlier one."""
    data = _checked(body.memory_data, desk.schema)
    return await wire.answer(_shape(await desk.memories.aput(body.conversation_id, data)))


async def get(thread_id: ThreadId, desk: AtDesk) -> Response:
    """The memory of a conversation."""
    await desk.threads.aget(thread_id)
    memory = await desk.memories.aget(thread_id)
    if memory is None:
        failure = await desk.memories.afailure(thread_id)
        raise HTTPException(
            404,
            f"conversation {thread_id!r} has no memory"
            f" yet{'' if failure is None else f': {failure.reason}'}",
        )
    return await wire.answer(_shape(memory))


async def of_user(user_id: UserId, desk: AtDesk) -> Response:
    """The memories of all conversations of a user."""
    memories = desk.of(user_id).memories
    return await wire.answer([_shape(memory) for memory in await memories.aall()])


async def messages_for_brain(thread_id: ThreadId, desk: AtDesk) -> Response:
    """The messages of a conversation, for an external writer; sensitive values are hidden."""
    dated = await desk.threads.adated_messages(thread_id)
    shown = [
        {
            "id": message.id,
            "role": message.type,
            "content": shown_text(vars(message)),
            "created_at": moment.isoformat(),
        }
        for message, moment in dated
    ]
    return await wire.answer({"conversation_id": thread_id, "messages": shown})


# -- tasks -----------------------------------------------------------------------------------------


async def new_task(body: NewTask, desk: AtDesk) -> Response:
    """Start a task that writes memories."""
    if body.payload.user_id is not None:
        desk.of(body.payload.user_id)
    return await _generated(desk, body.payload, sync=False)


async def trigger(
    desk: AtDesk,
    sync: Sync = False,
    include_empty: IncludeEmpty = False,
    clamp: Clamp = -1,
    idle: Idle = None,
) -> Response:
    """Start a task that writes all memories that are needed."""
    return await _generated(
        desk, Batch(include_empty=include_empty, clamp=clamp, idle=idle), sync=sync
    )


async def trigger_sync(
    desk: AtDesk, include_empty: IncludeEmpty = False, clamp: Clamp = -1, idle: Idle = None
) -> Response:
    """Write all memories that are needed."""
    return await _generated(
        desk, Batch(include_empty=include_empty, clamp=clamp, idle=idle), sync=True
    )


async def for_conversation(thread_id: ThreadId, desk: AtDesk, sync: Sync = False) -> Response:
    """Start a task that writes one conversation's memory, whether it needs one or not."""
    await desk.threads.aget(thread_id)
    return await _generated(desk, Batch(conversation_ids=[thread_id]), sync=sync)


async def for_user(
    user_id: UserId,
    desk: AtDesk,
    only_needing: OnlyNeeding = True,
    include_empty: IncludeEmpty = False,
    clamp: Clamp = -1,
    sync: Sync = False,
) -> Response:
    """Start a task that writes the memories of a user's conversations."""
    desk.of(user_id)
    batch = Batch(
        user_id=user_id, only_needing=only_needing, include_empty=include_empty, clamp=clamp
    )
    return await _generated(desk, batch, sync=sync)


async def task(task_id: Annotated[str, Path(max_length=1000)], desk: AtDesk) -> Response:
    """The state of a task."""
    return await wire.answer(_task_shape(await task_of(desk, task_id)))


async def _generated(desk: Desk, batch: Batch, *, sync: bool) -> Response:
    if batch.clamp == 0:
        raise InvalidInput("clamp is how many conversations at most, at least 1; -1: all")
    desk.generator  # noqa: B018 - raises if there is no model
    payload = batch.model_dump(exclude_none=True)
    if sync:
        return await wire.answer({"status": "done", "result": await generate(desk, payload)})
    task = Task(GENERATE, payload, desk.owner)
    await desk.queue.put(task)
    return await wire.answer(_task_shape(TaskState(task)), status=202)


def _checked(data: Note, schema: type[BaseModel]) -> dict[str, Any]:
    """A memory in the form of its schema.

    Raises:
        InvalidInput: It does not fit the schema.
    """
    try:
        return schema.model_validate(data).model_dump(mode="json")
    except ValidationError as error:
        places = sorted(
            {".".join(map(str, mistake["loc"])) for mistake in error.errors(include_input=False)}
        )
        raise InvalidInput(f"this is no memory: see {', '.join(places)}") from None


def _shape(memory: StoredMemory) -> wire.Shape:
    return {
        "conversation_id": memory.thread_id,
        "memory_data": memory.data,
        "messages": memory.messages,
        "conversation_updated_at": memory.thread_updated_at.isoformat(),
        "updated_at": memory.written_at.isoformat(),
    }


def _task_shape(state: TaskState) -> wire.Shape:
    return {
        "task_id": state.task.id,
        "task_type": state.task.kind,
        "status": state.status,
        "attempts": state.attempts,
        "result": state.result,
        "error": state.error,
        "created_at": state.created_at.isoformat(),
        "updated_at": state.updated_at.isoformat(),
    }
