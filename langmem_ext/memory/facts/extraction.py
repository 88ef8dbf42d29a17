"""Facts that a model finds in a conversation, each with the messages that say so.

No message is read twice: how far was read is stored with the facts, in one batch. The
model is shown what is known already, so that it leaves that out and calls a subject what it was
called before. A fact must name a message of the user's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.store.base import Item, PutOp
from pydantic import BaseModel, Field

from langmem_ext.errors import InvalidInput
from langmem_ext.memory.calls import Call, Steps, Work
from langmem_ext.memory.conversation import Conversation, read_conversation
from langmem_ext.memory.facts.facts import Fact, Facts, FactSource
from langmem_ext.memory.items import label_of
from langmem_ext.memory.memories import ConversationMemories, began
from langmem_ext.memory.prompts.texts import SYSTEM_PROMPT
from langmem_ext.memory.prompts.versions import Prompt
from langmem_ext.memory.structured import StructuredModel
from langmem_ext.messages.annotations import HIDDEN
from langmem_ext.messages.token_costs.tokens import TokenCounter
from langmem_ext.types import ThreadInfo

KNOWN: Final = 50
"""How many known facts the model is shown, the latest ones."""

MOST: Final = 50
"""Facts that are taken from one answer."""


class SaidFact(BaseModel):
    """One fact."""

    subject: str = Field(description="what it is about, in one to three words, like: home city")
    text: str = Field(description="the fact, in one short sentence that can be understood alone")
    messages: list[int] = Field(description="numbers of the messages in which the user says so")


class SaidFacts(BaseModel):
    """What the user said that lasts; an empty list if there is nothing."""

    facts: list[SaidFact] = Field(description="the facts; empty if there are none")


class FactExtractor:
    """Finds facts in conversations.

    Args:
        memories: The memories stored beside the facts.
        model: Finds them.
        prompt: The prompt.
        chunk_tokens: What one request may hold of a conversation, in tokens.
        counter: Counts them.
    """

    def __init__(
        self,
        memories: ConversationMemories,
        model: StructuredModel,
        prompt: Prompt,
        chunk_tokens: int,
        counter: TokenCounter,
    ) -> None:
        self._memories, self._model, self._prompt = memories, model, prompt
        self._chunk_tokens, self._counter = chunk_tokens, counter

    def extracting(
        self, thread: ThreadInfo, dated: Sequence[tuple[BaseMessage, datetime]]
    ) -> Steps[list[Fact]]:
        """Find the facts in what a thread's messages say that were not read before, and store them.

        Raises:
            Unusable: An answer is of another form; what was found before it is stored.
            ThreadDeleted: The thread was deleted meanwhile.
            Exception: Whatever the model raises.
        """
        root, store = self._memories.root, self._memories.stores.of(thread.owner)
        place = (*root, "read", label_of(thread.owner))
        begun = began(thread) if self._memories.is_own else None
        read: Item | None = yield Call(store, "get", place, thread.id)
        begin = _behind(dated, None if read is None else read.value.get("message_id"))
        messages = [message for message, _ in dated[begin:]]
        conversation: Conversation = yield Work(
            read_conversation, messages, self._chunk_tokens, self._counter
        )
        times = {
            message.id: when + timedelta(microseconds=at)
            for at, (message, when) in enumerate(dated)
        }
        facts = Facts(store, owner=thread.owner, namespace=root)
        extracted: list[Fact] = []
        for piece, end in zip(conversation.pieces, conversation.ends, strict=True):
            answer = yield from self._asked(facts, piece)
            new = _accepted(answer, thread.id, conversation.messages, times)
            writes = [facts.adding(fact, begun) for fact in new]
            if end:
                through = {"message_id": conversation.messages[end - 1].id}
                put = PutOp(place, thread.id, through, index=False)
                writes.append(self._memories.with_source(thread, put))
            yield Call(store, "batch", writes)
            extracted += new
        return extracted

    def _asked(self, facts: Facts, piece: str) -> Steps[SaidFacts]:
        known: list[Fact] = yield Call(facts, "recall", limit=KNOWN)
        quoted = json.dumps(
            [{"subject": fact.subject, "text": fact.text} for fact in known], ensure_ascii=False
        )
        data = [("known", quoted), ("conversation", piece)] if known else [("conversation", piece)]
        prompt = yield from self._prompt.reading()
        return (yield from self._model.asked(SaidFacts, SYSTEM_PROMPT, [prompt], data))


def _behind(dated: Sequence[tuple[BaseMessage, datetime]], message_id: str | None) -> int:
    """Where the messages begin that follow a message; 0 where it is not there."""
    return next(
        (
            at + 1
            for at, (message, _) in enumerate(dated)
            if message_id and message.id == message_id
        ),
        0,
    )


def _accepted(
    answer: SaidFacts,
    thread_id: str,
    messages: Sequence[BaseMessage],
    times: Mapping[str | None, datetime],
) -> list[Fact]:
    """The facts of an answer that name a message of the user's and tell of nothing hidden."""
    facts = []
    for said_fact in answer.facts[:MOST]:
        cited = [
            messages[number - 1]
            for number in sorted(set(said_fact.messages))
            if 1 <= number <= len(messages)
        ]
        ids = [message.id for message in cited if isinstance(message, HumanMessage) and message.id]
        if not ids or HIDDEN in said_fact.text + said_fact.subject:
            continue
        try:
            facts.append(
                Fact.new(
                    said_fact.text,
                    said_fact.subject,
                    times[ids[-1]],
                    [FactSource(thread_id, name) for name in ids],
                )
            )
        except InvalidInput:  # empty, too long, or not to be stored
            continue
    return facts
