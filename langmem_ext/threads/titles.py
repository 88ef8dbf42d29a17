"""Titles by a model: a conversation's first exchange in a few words, written in the background.

A thread has a title from its first prompt as soon as that is stored. A `TitleWriter` lets a model
write a better one. A title that a caller has set is never replaced, and the model sees no sensitive
value.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig

from langmem_ext._internal.models import NOSTREAM_TAG, make_model
from langmem_ext.errors import InvalidInput
from langmem_ext.log.message_log import thread_key
from langmem_ext.messages.annotations import HIDDEN, shown_text, title_of
from langmem_ext.storage.threads import list as listing_ops
from langmem_ext.threads.rows import ThreadId
from langmem_ext.threads.threads import Threads
from langmem_ext.types import ThreadInfo, ThreadKey

INSTRUCTION: Final = (
    "Write a title for this conversation: at most eight words, in the language of the user, no"
    " quotation marks, nothing but the title."
)

SHOWN: Final = 2000
"""The maximum number of characters of each of the two messages that the model sees."""

_CONFIG: Final[RunnableConfig] = {"tags": [NOSTREAM_TAG], "run_name": "title"}

_log = logging.getLogger(__name__)


class TitleWriter:
    """Lets a model name conversations.

    Args:
        threads: The conversations.
        model: A chat model, or its name for `init_chat_model` (needs the extra `agents`).
        instruction: The prompt for the title.

    Raises:
        MissingExtra: The model is a name, and the extra is not installed.
        InvalidInput: The model is not found, or the instruction is empty.

    Example:
        ```
        with TitleWriter(Threads(saver), "openai:gpt-5-mini") as titles:
            converse(graph, "Where is my order?", thread_id="t1")
            titles.submit("t1")
        ```
    """

    def __init__(
        self, threads: Threads, model: BaseChatModel | str, *, instruction: str = INSTRUCTION
    ) -> None:
        if not isinstance(instruction, str) or not instruction.strip():
            raise InvalidInput(
                "the instruction must be non-empty text: omit it for the default one"
            )
        self._threads = threads
        self._model = make_model(model)
        self._instruction = instruction
        self._worker: ThreadPoolExecutor | None = None

    def write(self, thread_id: ThreadId) -> ThreadInfo:
        """Let the model name a thread, and wait for it; returns the thread.

        A thread that a caller has named, that has no prompt yet, or whose first prompt is hidden,
        is left unchanged.

        Raises:
            ThreadNotFound: The thread does not exist.
            Exception: Whatever the model raises; the title is unchanged.
        """
        key, log = ThreadKey(thread_key(thread_id), self._threads.owner), self._threads.log
        titled_by = log.run(listing_ops.read_titled_by(key), write=False)
        prompt = None if titled_by is None else self._prompt(self._threads.messages(thread_id))
        if titled_by is None or prompt is None:
            return self._threads.get(thread_id)
        title = _title_in(self._model.invoke(prompt, _CONFIG))
        if title is None:
            return self._threads.get(thread_id)
        return log.run(listing_ops.write_title(key, title, titled_by), write=True)

    async def awrite(self, thread_id: ThreadId) -> ThreadInfo:
        """Async twin of `write`."""
        key, log = ThreadKey(thread_key(thread_id), self._threads.owner), self._threads.log
        titled_by = await log.arun(listing_ops.read_titled_by(key), write=False)
        prompt = (
            None if titled_by is None else self._prompt(await self._threads.amessages(thread_id))
        )
        if titled_by is None or prompt is None:
            return await self._threads.aget(thread_id)
        title = _title_in(await self._model.ainvoke(prompt, _CONFIG))
        if title is None:
            return await self._threads.aget(thread_id)
        return await log.arun(listing_ops.write_title(key, title, titled_by), write=True)

    def submit(self, thread_id: ThreadId) -> Future[ThreadInfo | None]:
        """Let the model name a thread in the background.

        An error is logged, and the thread keeps its title.
        """
        if self._worker is None:
            self._worker = ThreadPoolExecutor(
                max_workers=1, thread_name_prefix="langmem-ext-titles"
            )
        return self._worker.submit(self._try, thread_id)

    def close(self) -> None:
        """Wait for the title being written; titles not begun yet are dropped.

        Idempotent.
        """
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.shutdown(wait=True, cancel_futures=True)

    def __enter__(self) -> TitleWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _try(self, thread_id: ThreadId) -> ThreadInfo | None:
        try:
            return self.write(thread_id)
        except Exception as error:  # a provider may raise anything; its text may quote the messages
            _log.warning("no title was generated: %s", type(error).__name__)
            return None

    def _prompt(self, messages: Sequence[BaseMessage]) -> list[BaseMessage] | None:
        """The prompt for the model; None if there is nothing to show it."""
        asked = next((message for message in messages if isinstance(message, HumanMessage)), None)
        shown = "" if asked is None else shown_text(vars(asked)).strip()
        if not shown or shown == HIDDEN:
            return None
        answers = (
            shown_text(vars(message)).strip()
            for message in messages
            if isinstance(message, AIMessage)
        )
        answer = next((text for text in answers if text), "")
        dialogue = f"User: {shown[:SHOWN]}" + (f"\n\nAssistant: {answer[:SHOWN]}" if answer else "")
        return [SystemMessage(self._instruction), HumanMessage(dialogue)]


def _title_in(answer: BaseMessage) -> str | None:
    """The title in a model's answer: its first non-empty line, without quotes and full stop."""
    for line in str(answer.text).splitlines():
        bare = line.strip().removeprefix("Title:").strip().strip("\"'`*“”„«»").rstrip(".").strip()
        if bare:
            return title_of({"content": bare})
    return None
