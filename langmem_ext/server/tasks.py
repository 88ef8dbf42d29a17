"""What tasks do: write memories of conversations, and deliver a message to a thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.store.base import PutOp

from langmem_ext import GenerationReport
from langmem_ext.errors import InvalidInput
from langmem_ext.server.prompts_seen import PromptsSeen
from langmem_ext.server.queue import Task
from langmem_ext.server.runs import allowed_of

if TYPE_CHECKING:
    from langmem_ext.server.service import Desk, Service

GENERATE: Final = "GENERATE_MEMORY_BATCH"
"""Write memories: of the threads in `conversation_ids`, of the threads of `user_id`, or of all that
need one."""

DELIVER: Final = "DELIVER_MESSAGE"
"""Deliver a message: `conversation_id`, `message_id`, `content`. By its id it is delivered once,
however often this is tried."""

KINDS: Final = (GENERATE, DELIVER)

MESSAGES: Final = ("langmem", "messages")
"""The namespace of messages' answers in a store."""


async def perform_task(service: Service, task: Task) -> Any:
    """Run a task; its result, as JSON.

    Args:
        service: The service that the task is for.
        task: The task.

    Raises:
        InvalidInput: The kind of task is unknown, or its payload is invalid.
        ThreadBusy: Others are using the thread: it was not tried.
        Exception: Whatever a model or a graph raises: the task may be tried again.
    """
    desk = await service.desk(task.owner)
    if task.kind == GENERATE:
        return await generate(desk, task.payload)
    if task.kind == DELIVER:
        return await deliver(desk, task)
    raise InvalidInput(
        f"there are no tasks of the kind {task.kind!r}: use one of {', '.join(KINDS)}"
    )


async def generate(desk: Desk, payload: Mapping[str, Any]) -> dict[str, Any]:
    """Write memories; how many were written, and why others were not."""
    generator = desk.generator
    if (names := payload.get("conversation_ids")) is not None:
        return asdict(GenerationReport.of([await generator.agenerate(name) for name in names]))
    wanted: dict[str, Any] = {
        "include_empty": bool(payload.get("include_empty")),
        "clamp": payload.get("clamp"),
    }
    if (owner := payload.get("user_id")) is not None:
        only_needing = payload.get("only_needing", True) is not False
        return asdict(
            await generator.agenerate_for_owner(owner, only_needing=only_needing, **wanted)
        )
    if (idle := payload.get("idle")) is not None:
        wanted["idle"] = timedelta(seconds=idle)
    return asdict(await generator.agenerate_needing(**wanted))


async def deliver(desk: Desk, task: Task) -> dict[str, Any]:
    """Deliver a message; its answer. The prompts that models were sent are kept with it."""
    payload = task.payload
    thread_id, message_id = payload["conversation_id"], payload["message_id"]
    # A conversation that was deleted since then stays deleted.
    thread = await desk.threads.aget(thread_id)
    seen = PromptsSeen()
    config: RunnableConfig = {
        "configurable": allowed_of(payload.get("config") or {}, desk.owner),
        "callbacks": [seen],
    }
    turn = await desk.converse(
        payload["content"], thread_id, message_id, config, seen=payload["seen"]
    )
    reply = _answer_in(await desk.threads.amessages(thread_id), message_id)
    answer = {
        "id": None if reply is None else reply.id,
        "conversation_id": thread_id,
        "in_reply_to": message_id,
        "content": turn.reply,
        "waiting_for": turn.waiting_for,
    }
    record = {
        "owner": desk.owner,
        "conversation_id": thread_id,
        "message_id": message_id,
        "steps": seen.steps,
    }
    kept = [
        desk.memories.with_source(thread, PutOp(MESSAGES, key, record, index=False))
        for key in (task.id, answer["id"])
        if key is not None
    ]
    await desk.memories.stores.of(desk.owner).abatch(kept)
    return answer


def _answer_in(messages: list[BaseMessage], message_id: str) -> AIMessage | None:
    """The agent's last message after a message."""
    at = next((place for place, message in enumerate(messages) if message.id == message_id), -1)
    replies = [message for message in messages[at + 1 :] if isinstance(message, AIMessage)]
    return replies[-1] if replies else None
