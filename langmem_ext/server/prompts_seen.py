"""Keeps the prompts that models were sent for a message, to be looked up later."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.outputs import LLMResult

from langmem_ext.messages.annotations import shown_text

LONGEST: Final = 100_000
"""How many characters of a prompt are kept."""

MOST: Final = 50
"""How many model calls are kept."""


class PromptsSeen(BaseCallbackHandler):
    """Records each call of a chat model; sensitive values are hidden.

    Attributes:
        steps: A dict for each call: `step`, `node`, `model`, `prompt`, `reply`, `started_at`.
    """

    run_inline = True

    def __init__(self) -> None:
        self.steps: list[dict[str, Any]] = []
        self._at: dict[UUID, dict[str, Any]] = {}

    def on_chat_model_start(
        self,
        serialized: dict[str, Any] | None,
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A model is called."""
        if len(self.steps) >= MOST:
            return
        known = metadata or {}
        step = {
            "step": "model",
            "node": known.get("langgraph_node"),
            "model": known.get("ls_model_name") or (serialized or {}).get("name"),
            "prompt": "\n\n".join(map(_shown, messages[0] if messages else ()))[:LONGEST],
            "reply": None,
            "started_at": datetime.now(UTC).isoformat(),
        }
        self._at[run_id] = step
        self.steps.append(step)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """A model has answered."""
        if (step := self._at.pop(run_id, None)) is not None:
            step["reply"] = _reply(response.generations)[:LONGEST]


def _shown(message: BaseMessage) -> str:
    return f"{message.type}: {shown_text(vars(message))}"


def _reply(generations: Sequence[Sequence[Any]]) -> str:
    generation = generations[0][0] if generations and generations[0] else None
    message = getattr(generation, "message", None)
    return (
        shown_text(vars(message))
        if isinstance(message, BaseMessage)
        else str(getattr(generation, "text", ""))
    )
