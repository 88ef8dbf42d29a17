"""`MemoryGenerator`: has a model write the memories of conversations that need one.

A conversation needs a memory when it has come to rest and none was written since. What its row says
is enough to know that; its messages are read only for the model. A generation writes a whole memory
in place of the one before, or nothing: a model that fails, refuses or answers nonsense leaves what
there was, and why is kept beside it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from os import PathLike
from typing import Any, Literal, TypeAlias, Unpack

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langgraph.store.base import BaseStore
from pydantic import BaseModel

from langmem_ext._internal.interruption import pass_on
from langmem_ext.context.summary.checks import Unusable
from langmem_ext.context.summary.summary import CHUNK_TOKENS
from langmem_ext.errors import DamagedRow, InvalidInput, ThreadDeleted, ThreadNotFound
from langmem_ext.log.message_log import Database
from langmem_ext.memory.calls import Call, Steps, Together, Work, arun, run
from langmem_ext.memory.conversation import Conversation, read_conversation
from langmem_ext.memory.facts.extraction import FactExtractor
from langmem_ext.memory.facts.facts import Fact
from langmem_ext.memory.items import ROOT, Namespace, in_pages
from langmem_ext.memory.memories import PAGE, ConversationMemories, Failure, StoredMemory
from langmem_ext.memory.prompts.texts import CARRY_ON, FACTS_PROMPT, MEMORY_PROMPT, SYSTEM_PROMPT
from langmem_ext.memory.prompts.versions import Prompt, PromptVersions
from langmem_ext.memory.schema import ConversationMemoryData
from langmem_ext.memory.selection import Selection, Wanted
from langmem_ext.memory.structured import StructuredModel
from langmem_ext.messages.token_costs.tokens import ApproximateCounter, TokenCounter
from langmem_ext.storage.rows.clock import moment_of, now_ms
from langmem_ext.threads.rows import ThreadId
from langmem_ext.types import ThreadInfo

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Generation:
    """What came of a generation.

    Attributes:
        thread_id: The conversation.
        outcome: `written`; `failed`: the memory is what it was; `empty`: nothing was said, so
            nothing was written; `gone`: the conversation was deleted meanwhile, and nothing is left
            of it.
        reason: Why it failed, in words that quote nothing of the conversation.
        memory: The memory that was written.
        facts: What facts were found that were not known, if they are looked for.
    """

    thread_id: str
    outcome: Literal["written", "failed", "empty", "gone"]
    reason: str | None = None
    memory: StoredMemory | None = None
    facts: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True)
class GenerationReport:
    """What came of several generations.

    Attributes:
        written, failed, empty, gone: How many had this outcome.
        reasons: Why those failed that did, and how many for each reason.
        swept: How many memories and facts were deleted first, because the threads that they stood
            on are gone.
    """

    written: int
    failed: int
    empty: int
    gone: int
    reasons: dict[str, int]
    swept: int = 0

    @classmethod
    def of(cls, generations: list[Generation], swept: int = 0) -> GenerationReport:
        """Of these generations."""
        counts = {outcome: 0 for outcome in ("written", "failed", "empty", "gone")}
        reasons: dict[str, int] = {}
        for generation in generations:
            counts[generation.outcome] += 1
            if generation.reason is not None:
                reasons[generation.reason] = reasons.get(generation.reason, 0) + 1
        return cls(**counts, reasons=reasons, swept=swept)


Progress: TypeAlias = Callable[[Generation], object]
"""Called with each generation when it has ended."""


class MemoryGenerator:
    """Has a model write the memories of conversations.

    Sensitive values are hidden from the model: what views of a thread hide (`mark_sensitive`) never
    reaches a memory.

    Args:
        log: The database: a `MessageLog`, a `DeltaSaver`, a path or a URL.
        model: A chat model, or its name for `init_chat_model` (needs the extra `agents`). A time
            limit is set on the model itself (most take a `timeout`).
        store: Where the memories are kept: any LangGraph store, by default the database's own
            (`DeltaStore`). A namespace of another store belongs to one database.
        schema: What a memory holds: any pydantic model.
        prompt: The model's instructions: a text, the path of a file, which is read now, or
            `PromptVersions`, whose active version is read at each generation.
        facts: Whether the model also looks for facts (`Facts`), in messages not yet read for
            them.
        facts_prompt: The instructions for facts, in the same forms.
        owner: Bind to an owner: only this owner's conversations are visible.
        namespace: The namespace of the store under which memories are kept.
        chunk_tokens: The maximum tokens of a conversation in one request; a longer conversation
            is read in pieces, one after the other.
        counter: Counts tokens; the approximation by default.
        concurrency: How many conversations are worked on at once.

    Attributes:
        memories: The memories as they are stored.

    Raises:
        MissingExtra: The model is a name, and the extra is not installed.
        InvalidInput: An argument is invalid.

    Example:
        `MemoryGenerator(log, "openai:gpt-5-mini").generate("t1").memory.data["main_topics"]`
    """

    def __init__(
        self,
        log: Database,
        model: BaseChatModel | str,
        *,
        store: BaseStore | None = None,
        schema: type[BaseModel] = ConversationMemoryData,
        prompt: str | PathLike[str] | PromptVersions = MEMORY_PROMPT,
        facts: bool = False,
        facts_prompt: str | PathLike[str] | PromptVersions = FACTS_PROMPT,
        owner: str | None = None,
        namespace: Namespace = ROOT,
        chunk_tokens: int = CHUNK_TOKENS,
        counter: TokenCounter | None = None,
        concurrency: int = 4,
    ) -> None:
        for name, number in (("chunk_tokens", chunk_tokens), ("concurrency", concurrency)):
            if type(number) is not int or number < 1:
                raise InvalidInput(f"{name} is a number of at least 1, not {number!r}")
        self.schema = schema
        self._model = StructuredModel(model, "memory")
        self._prompt = Prompt(prompt, "memory_generation", MEMORY_PROMPT)
        self._chunk_tokens = chunk_tokens
        self._counter = counter or ApproximateCounter()
        self._concurrency = concurrency
        self.memories = ConversationMemories(log, store, owner=owner, namespace=namespace)
        asked, memories = Prompt(facts_prompt, "fact_extraction", FACTS_PROMPT), self.memories
        extractor = FactExtractor(memories, self._model, asked, chunk_tokens, self._counter)
        self._facts = extractor if facts else None

    # -- which conversations -----------------------------------------------------------------------

    def needing_memory(self, **wanted: Unpack[Wanted]) -> list[ThreadInfo]:
        """The conversations that need a memory, the one written last first.

        No message is read for it.

        Args:
            wanted: Which (`Wanted`): `idle`, `stale`, `owner`, `include_empty`, `clamp`, `retry`.

        Raises:
            InvalidInput: An argument is invalid.
        """
        return run(self._needing(self._selection(wanted)))

    async def aneeding_memory(self, **wanted: Unpack[Wanted]) -> list[ThreadInfo]:
        """Async twin of `needing_memory`."""
        return await arun(self._needing(self._selection(wanted)))

    # -- generating --------------------------------------------------------------------------------

    def generate(self, thread_id: ThreadId) -> Generation:
        """Have the model write the memory of a conversation, whether it needs one or not.

        It looks for facts, too, if it is to.

        Raises:
            ThreadNotFound: The conversation does not exist.
            StorageError: It cannot be read, or the memory not be stored.
        """
        return run(self._generate(thread_id))

    async def agenerate(self, thread_id: ThreadId) -> Generation:
        """Async twin of `generate`."""
        return await arun(self._generate(thread_id))

    def generate_needing(
        self, *, progress: Progress | None = None, **wanted: Unpack[Wanted]
    ) -> GenerationReport:
        """Have the model write the memories that are needed.

        Each memory is stored as soon as it is written: if this is stopped, call it again to
        continue with the rest. In the database's own store, memories of deleted
        threads are removed first.

        Args:
            progress: Called with each generation when it has ended.
            wanted: Which conversations, as `needing_memory` takes them.

        Raises:
            InvalidInput: An argument is invalid.
            StorageError: The database or the store cannot be used.
        """
        return run(self._generate_all(self._selection(wanted), progress))

    async def agenerate_needing(
        self, *, progress: Progress | None = None, **wanted: Unpack[Wanted]
    ) -> GenerationReport:
        """Async twin of `generate_needing`."""
        return await arun(self._generate_all(self._selection(wanted), progress))

    def generate_for_owner(
        self,
        owner: str,
        *,
        only_needing: bool = True,
        include_empty: bool = False,
        clamp: int | None = None,
        progress: Progress | None = None,
    ) -> GenerationReport:
        """Have the model write the memories of an owner's conversations.

        Args:
            owner: The owner.
            only_needing: Only conversations that need a memory; else all, idle or not.
            include_empty: Include conversations without messages; nothing is written for them.
            clamp: The maximum number of conversations; -1 or None: all.
            progress: Called with each generation when it has ended.

        Raises:
            InvalidInput: An argument is invalid.
            StorageError: The database or the store cannot be used.
        """
        return run(
            self._generate_all(self._of_owner(owner, only_needing, include_empty, clamp), progress)
        )

    async def agenerate_for_owner(
        self,
        owner: str,
        *,
        only_needing: bool = True,
        include_empty: bool = False,
        clamp: int | None = None,
        progress: Progress | None = None,
    ) -> GenerationReport:
        """Async twin of `generate_for_owner`."""
        return await arun(
            self._generate_all(self._of_owner(owner, only_needing, include_empty, clamp), progress)
        )

    # -- steps -------------------------------------------------------------------------------------

    def _selection(self, wanted: Wanted, *, only_needing: bool = True) -> Selection:
        return Selection.of(wanted, self.memories.threads.owner, only_needing=only_needing)

    def _of_owner(
        self, owner: str, only_needing: bool, include_empty: bool, clamp: int | None
    ) -> Selection:
        if owner is None:
            raise InvalidInput(
                "name the owner whose memories are to be written; generate_needing is for"
                " everybody's"
            )
        return self._selection(
            {"owner": owner, "include_empty": include_empty, "clamp": clamp},
            only_needing=only_needing,
        )

    def _needing(self, selection: Selection) -> Steps[list[ThreadInfo]]:
        now, after, threads = moment_of(now_ms()), None, list[ThreadInfo]()
        while selection.left(len(threads)) != 0:
            chosen, after = yield from self._page(selection, now, after)
            threads += chosen
            if after is None:
                break
        return threads[: selection.left(0)]

    def _page(
        self, selection: Selection, now: datetime, after: ThreadInfo | None
    ) -> Steps[tuple[list[ThreadInfo], ThreadInfo | None]]:
        """The next conversations that are wanted, and the one that the next page begins behind.

        The latter is None behind the last page.
        """
        threads = self.memories.threads
        page: list[ThreadInfo] = yield Call(
            threads, "list", limit=PAGE, after=after, **selection.listed(now)
        )
        known = yield from self.memories.beside(page)
        chosen = [
            thread
            for thread, of_it in zip(page, known, strict=True)
            if selection.takes(thread, *of_it, now)
        ]
        return chosen, page[-1] if len(page) == PAGE else None

    def _generate_all(
        self, selection: Selection, progress: Progress | None
    ) -> Steps[GenerationReport]:
        swept = (yield from self.memories.sweeping()) if self.memories.is_own else 0
        now, after, done = moment_of(now_ms()), None, list[Generation]()
        while selection.left(len(done)) != 0:
            chosen, after = yield from self._page(selection, now, after)
            for together in in_pages(chosen[: selection.left(len(done))], self._concurrency):
                ended: list[Generation] = yield Together(
                    [self._generate_one(thread.id) for thread in together]
                )
                done += ended
                if progress is not None:
                    for generation in ended:
                        progress(generation)
            if after is None:
                break
        return GenerationReport.of(done, swept)

    def _generate_one(self, thread_id: str) -> Steps[Generation]:
        """A generation among others: one conversation that cannot be read stops none of them."""
        try:
            return (yield from self._generate(thread_id))
        except ThreadNotFound:
            return Generation(thread_id, "gone")
        except (DamagedRow, InvalidInput) as error:
            return Generation(thread_id, "failed", str(error))

    def _generate(self, thread_id: ThreadId) -> Steps[Generation]:
        thread: ThreadInfo = yield Call(self.memories.threads, "get", thread_id)
        dated: list[tuple[BaseMessage, datetime]] = yield Call(
            self.memories.threads, "dated_messages", thread.id
        )
        conversation: Conversation = yield Work(
            read_conversation, [message for message, _ in dated], self._chunk_tokens, self._counter
        )
        if not conversation.pieces:
            return Generation(thread.id, "empty")
        try:
            facts = (
                [] if self._facts is None else (yield from self._facts.extracting(thread, dated))
            )
            data = yield from self._asked(conversation)
        except ThreadDeleted:
            return Generation(thread.id, "gone")
        except Exception as error:  # whatever a provider raises; its text may say what was said
            pass_on(error)
            reason = _reason(error)
            _log.warning("no memory was written: %s", reason)
            there = yield from self.memories.noting(
                thread, Failure(reason, thread.updated_at, moment_of(now_ms()))
            )
            return (
                Generation(thread.id, "failed", reason) if there else Generation(thread.id, "gone")
            )
        memory = StoredMemory(
            thread.id, data, conversation.ids(), thread.updated_at, moment_of(now_ms())
        )
        there = yield from self.memories.writing(thread, memory)
        return (
            Generation(thread.id, "written", memory=memory, facts=tuple(facts))
            if there
            else Generation(thread.id, "gone")
        )

    def _asked(self, conversation: Conversation) -> Steps[dict[str, Any]]:
        """The memory of a conversation: piece by piece, each with the memory of those before it.

        Raises:
            Unusable: An answer is no memory, or none of them says anything.
            Exception: Whatever the model raises.
        """
        prompt = yield from self._prompt.reading()
        memory: dict[str, Any] = {}
        for piece in conversation.pieces:
            wanted, data = [prompt], [("conversation", piece)]
            if memory:
                wanted, data = (
                    [*wanted, CARRY_ON],
                    [("memory", json.dumps(memory, ensure_ascii=False)), *data],
                )
            answer = yield from self._model.asked(self.schema, SYSTEM_PROMPT, wanted, data)
            read = answer.model_dump(mode="json")
            memory = read if _says_something(read) else memory
        if not memory:
            raise Unusable("says nothing")
        return memory


def _says_something(value: Any) -> bool:
    if isinstance(value, str):
        return bool(value.strip())
    if isinstance(value, list | dict):
        return any(map(_says_something, value.values() if isinstance(value, dict) else value))
    return value is not None


def _reason(error: Exception) -> str:
    """Why there is no memory; errors that are not ours are only named."""
    if isinstance(error, Unusable):
        return f"the model's answer {error}"
    name = type(error).__name__
    return (
        f"the model timed out ({name})"
        if isinstance(error, TimeoutError) or "Timeout" in name
        else f"the model failed ({name})"
    )
