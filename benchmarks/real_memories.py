"""The memories that a real small model writes of conversations: what must hold, whatever it says.

    python -m benchmarks.real_model .venv-model/bin/python --memories conversations.json

The file is a list of conversations: each a list of OpenAI's messages, or an object that has one.
The shortest are taken. The model is held to the memory's form by a grammar; its words are its own,
and are printed to be judged. What is checked: each conversation ends in a memory or in a reason,
what was stored cites messages of its thread alone, and a second run has nothing left to do.
"""

from __future__ import annotations

import json
import time
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage, convert_to_messages
from langchain_core.runnables import Runnable
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

from langmem_ext import (
    ConversationMemoryData,
    MemoryGenerator,
    MessageLog,
    ThreadChatMessageHistory,
    Threads,
)

COUNT = 10
PIECE = 300
"""Tokens of a conversation in one request, as they are counted here."""

ANSWER = 200
SHOWN = 3


class HeldToForm(ChatOpenAI):
    """Has llama.cpp's server hold an answer to a form by its grammar, in the server's own words."""

    def with_structured_output(  # type: ignore[override]
        self, schema: Any, **_: Any
    ) -> Runnable[Any, Any]:
        """Bind the form."""
        form: type[BaseModel] = schema
        held = {"type": "json_object", "schema": _short(form.model_json_schema())}
        return self.bind(extra_body={"max_tokens": ANSWER, "response_format": held})


def _short(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with bounds: a small model does not end a list by itself."""
    for field in schema["properties"].values():
        if field.get("type") == "array":
            field |= {"minItems": 1, "maxItems": 3}
            field["items"] = {"type": "string", "maxLength": 80}
        else:
            field["maxLength"] = 160
    return {**schema, "required": list(schema["properties"])}


def conversations_in(path: Path) -> list[list[BaseMessage]]:
    """The shortest conversations of a file."""
    found = [_messages(one) for one in json.loads(path.read_text())]
    talks = [talk for talk in found if talk]
    return sorted(talks, key=lambda talk: sum(len(message.text) for message in talk))[:COUNT]


def _messages(conversation: Any) -> list[BaseMessage]:
    if isinstance(conversation, dict):
        lists = (value for value in conversation.values() if _is_talk(value))
        conversation = next(lists, [])
    return convert_to_messages(conversation) if _is_talk(conversation) else []


def _is_talk(value: object) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, dict) and "role" in one for one in value)
    )


def remember(url: str, path: Path) -> tuple[dict[str, Any], list[str]]:
    """Have the memories written; the figures, and what went wrong."""
    body = {"max_tokens": ANSWER}
    model = HeldToForm(
        model="local",
        base_url=url,
        api_key="none",
        max_retries=0,
        temperature=0.2,
        timeout=600,
        extra_body=body,
    )
    began = time.monotonic()
    with closing(MessageLog.open(":memory:")) as log:
        ids: dict[str, set[str]] = {}
        for at, talk in enumerate(conversations_in(path)):
            named = [one.model_copy(update={"id": f"t{at}-{n}"}) for n, one in enumerate(talk)]
            ThreadChatMessageHistory(f"t{at}", log).add_messages(named)
            ids[f"t{at}"] = {str(one.id) for one in named}
        generator = MemoryGenerator(log, model, chunk_tokens=PIECE, concurrency=1)
        report = generator.generate_needing(idle=timedelta(0))
        memories = generator.memories.all()
        wrong = [
            f"{memory.thread_id} cites messages that are not its own"
            for memory in memories
            if not set(memory.messages) <= ids[memory.thread_id]
        ]
        for memory in memories:
            ConversationMemoryData.model_validate(memory.data)
        if report.written + report.failed != len(ids) or report.written != len(memories):
            wrong.append(f"{report.written} written, {report.failed} failed of {len(ids)}")
        if not report.written:
            wrong.append("no memory was written")
        if generator.needing_memory(idle=timedelta(0)):
            wrong.append("a conversation needs a memory again, without having gone on")
        for memory in memories[:SHOWN]:
            title = Threads(log).get(memory.thread_id).title
            print(json.dumps({"title": title, **memory.data}, ensure_ascii=False), flush=True)
    figures = {
        "run": "memories",
        "seconds": round(time.monotonic() - began, 1),
        "conversations": len(ids),
        "written": report.written,
        "failed": report.failed,
    }
    return figures, wrong
