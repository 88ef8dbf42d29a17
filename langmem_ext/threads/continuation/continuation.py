"""`Continuation`: a thread that one tool or agent begins and others continue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypedDict, TypeVar
from uuid import uuid4

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig

from langmem_ext.errors import DamagedRow, InvalidInput, ThreadExpired, ThreadNotFound
from langmem_ext.log.shown import ReprFacts, Showing
from langmem_ext.messages.annotations import NAMESPACE, FileReference, notes_of
from langmem_ext.messages.text import words_of
from langmem_ext.messages.turns import ConversationTurn
from langmem_ext.storage.checkpoints.thread_row import hold_thread
from langmem_ext.storage.operation import Op, Operation, operation
from langmem_ext.storage.threads.edit import Edit
from langmem_ext.threads.continuation.files import (
    FilePlan,
    Files,
    TurnFile,
    checked_files,
    message_content,
    newest_first,
    plan_files,
)
from langmem_ext.threads.continuation.turns import Transcript, TurnReader, checked_turns
from langmem_ext.threads.continuation.usage import checked_usage
from langmem_ext.threads.history import adding
from langmem_ext.types import ThreadKey

M = TypeVar("M", bound=BaseMessage)
T = TypeVar("T")

LONGEST_TOOL: Final = 100
"""The maximum number of characters of a tool's name."""


class ToolResult(TypedDict):
    """The result of a tool: its text, and the id with which any tool can continue."""

    text: str
    continuation_id: str


@dataclass(frozen=True, slots=True)
class ContextSummary:
    """A summary of a conversation so far.

    Attributes:
        thread_id: Its thread, which is its continuation id.
        started: When it started; None if it has no messages.
        turns: The number of turns.
        tools: Their tools, in order of first use.
    """

    thread_id: str
    started: datetime | None
    turns: int
    tools: tuple[str, ...]

    @property
    def text(self) -> str:
        """The summary in words, for a prompt."""
        lines = ["## Conversation so far", "", f"Thread: {self.thread_id}"]
        if self.started is not None:
            lines.append(f"Started: {self.started.isoformat(timespec='seconds')}")
        lines.append(f"Turns: {self.turns}")
        if self.tools:
            lines.append(f"Tools used: {', '.join(' '.join(tool.split()) for tool in self.tools)}")
        return "\n".join(lines)


class Continuation(Showing):
    """A thread that a tool continues: its messages, from whichever tool, and what this one adds.

    Created by `Threads.begin` and `Threads.continue_`. The thread is created by its first message.

    Args:
        reader: Reads its turns.
        thread_id: The thread.
        tool: The tool that continues it; recorded on every message added here.

    Attributes:
        id: The thread's id: the `continuation_id` for another tool.
        tool: As passed.
    """

    def __init__(self, reader: TurnReader, thread_id: str, tool: str | None) -> None:
        self.id = thread_id
        self.tool = checked_tool(tool)
        self._reader = reader
        self._driver = reader.view.log.driver
        self._key = reader.view.key(thread_id)

    def _repr_facts(self) -> ReprFacts:
        return ReprFacts(self._driver, thread=self._key, noted={"tool": self.tool})

    @property
    def config(self) -> RunnableConfig:
        """The config with which a graph continues the thread.

        Use it as `graph.invoke({"messages": [thread.message(…)]}, thread.config)`.
        """
        owner = self._reader.view.owner
        return {
            "configurable": {"thread_id": self.id} | ({} if owner is None else {"owner": owner})
        }

    # -- reading -----------------------------------------------------------------------------------

    def turns(self, last: int | None = None) -> list[ConversationTurn]:
        """The newest turns, oldest first: `last` of them, or as many as the thread shows.

        Raises:
            ThreadExpired: The thread has expired.
            DamagedRow: The thread is damaged, and `on_damage` is `raise`.
        """
        count = self._count(last)
        return self._read(count, numbered=True).last(count)

    async def aturns(self, last: int | None = None) -> list[ConversationTurn]:
        """Async twin of `turns`."""
        return await self._driver.acall(lambda: self.turns(last))

    def history(self, last: int | None = None) -> list[BaseMessage]:
        """Messages for a model: system messages and the newest turns, with their files' contents.

        Each content is included once.
        """
        count = self._count(last)
        return self._read(count, with_files=True).messages(count)

    async def ahistory(self, last: int | None = None) -> list[BaseMessage]:
        """Async twin of `history`."""
        return await self._driver.acall(lambda: self.history(last))

    def context_summary(self) -> ContextSummary:
        """A summary of the conversation so far; its `text` is for a prompt."""
        read = self._read()
        tools = dict.fromkeys(turn.tool for turn in read.turns if turn.tool is not None)
        return ContextSummary(
            self.id,
            read.info.created_at if read.info is not None else None,
            len(read.turns),
            tuple(tools),
        )

    async def acontext_summary(self) -> ContextSummary:
        """Async twin of `context_summary`."""
        return await self._driver.acall(self.context_summary)

    def files(self, max_files: int | None = None) -> list[FileReference]:
        """The files of the thread's turns, newest turn first: each path once, latest reference."""
        return newest_first((turn.files for turn in self._read().turns), max_files)

    async def afiles(self, max_files: int | None = None) -> list[FileReference]:
        """Async twin of `files`."""
        return await self._driver.acall(lambda: self.files(max_files))

    def plan_files(self, files: Files) -> FilePlan:
        """Which files `say` would send; a content already in the thread is not sent again."""
        chosen = checked_files(files)
        return plan_files(
            chosen,
            self._run(self._reader.find_contents(self.id, _digests(chosen)), write=False) or {},
        )

    async def aplan_files(self, files: Files) -> FilePlan:
        """Async twin of `plan_files`."""
        return await self._driver.acall(lambda: self.plan_files(files))

    # -- adding ------------------------------------------------------------------------------------

    def message(
        self, text: str, *, files: Files = (), message_id: str | None = None
    ) -> HumanMessage:
        """A user's message as `say` would store it, for a graph that stores it itself.

        Args:
            text: The text.
            files: Files that it refers to: each a `TurnFile`, whose content is sent if the thread
                does not have it, or only a path.
            message_id: The message's id. Default: a random one. An existing message with this id is
                replaced.

        Raises:
            ThreadExpired: The thread has expired.
            TurnLimitReached: It has reached its maximum number of turns.
            InvalidInput: An argument is invalid.
        """
        prompt = _Prompt(text, files, message_id)
        message = self._run(self._message(prompt), write=False)
        return self._message_of(prompt, {}) if message is None else message

    async def amessage(
        self, text: str, *, files: Files = (), message_id: str | None = None
    ) -> HumanMessage:
        """Async twin of `message`."""
        return await self._driver.acall(
            lambda: self.message(text, files=files, message_id=message_id)
        )

    def say(self, text: str, *, files: Files = (), message_id: str | None = None) -> HumanMessage:
        """Add a user's message, which starts a turn of this tool.

        Takes the arguments of `message`; the message is stored when this returns.

        The files and turns that the thread has are checked in the transaction that stores it: with
        any number of concurrent callers, the limit of turns holds, and each content is sent once.
        """
        prompt = _Prompt(text, files, message_id)
        message = self._run(self._say(prompt), write=True)
        if message is None:
            message = self._message_of(prompt, {})
            self.add(message)
        return message

    async def asay(
        self, text: str, *, files: Files = (), message_id: str | None = None
    ) -> HumanMessage:
        """Async twin of `say`."""
        return await self._driver.acall(lambda: self.say(text, files=files, message_id=message_id))

    def answer(
        self,
        reply: str | AIMessage,
        *,
        usage: Mapping[str, int] | None = None,
        model: str | None = None,
    ) -> AIMessage:
        """Add an answer. It ends a turn that started in time, however long the turn took.

        Args:
            reply: The answer, or a model's message, which may include its usage.
            usage: The model's usage: `input_tokens` and `output_tokens`.
            model: The model's name, to look up its price.

        Raises:
            InvalidInput: An argument is invalid.
        """
        message = AIMessage(reply) if isinstance(reply, str) else reply
        if not isinstance(message, AIMessage):
            raise InvalidInput(
                f"an answer must be text or an AIMessage, not {type(reply).__name__}"
            )
        update: dict[str, Any] = {"id": message.id or str(uuid4())}
        if usage is not None:
            update["usage_metadata"] = checked_usage(usage)
        if model is not None:
            update["response_metadata"] = {**message.response_metadata, "model_name": model}
        noted = self._noted(message.model_copy(update=update))
        self.add(noted)
        return noted

    async def aanswer(
        self,
        reply: str | AIMessage,
        *,
        usage: Mapping[str, int] | None = None,
        model: str | None = None,
    ) -> AIMessage:
        """Async twin of `answer`."""
        return await self._driver.acall(lambda: self.answer(reply, usage=usage, model=model))

    def add(self, *messages: BaseMessage) -> None:
        """Add messages of any kind, including tool calls and results: all of them or none.

        Those that name no tool are recorded for this one.

        Raises:
            ThreadNotFound: The thread belongs to another owner.
            TurnLimitReached: They would start a turn above the maximum.
            DamagedRow: The thread is damaged, and `on_damage` is `raise`.
        """
        if messages:
            self._run(self._add([self._noted(message) for message in messages]), write=True)

    async def aadd(self, *messages: BaseMessage) -> None:
        """Async twin of `add`."""
        await self._driver.acall(lambda: self.add(*messages))

    def result(self, text: str | BaseMessage) -> ToolResult:
        """A tool's result: the text, and the id with which any other tool can continue."""
        return {
            "text": words_of(vars(text)) if isinstance(text, BaseMessage) else text,
            "continuation_id": self.id,
        }

    # -- parts -------------------------------------------------------------------------------------

    def _message(self, prompt: _Prompt) -> Operation[HumanMessage]:
        return self._make(
            prompt,
            self._reader.find_contents(self.id, _digests(prompt.files), but=prompt.message_id),
        )

    @operation
    def _make(self, prompt: _Prompt, contents: Operation[Mapping[str, str]]) -> Op[HumanMessage]:
        message = self._message_of(prompt, (yield from contents))
        yield from self._reader.require_room(self.id, [message])
        return message

    def _message_of(self, prompt: _Prompt, sent: Mapping[str, str]) -> HumanMessage:
        content, notes = message_content(prompt.text, prompt.files, sent)
        kwargs = {NAMESPACE: {"files": notes}} if notes else {}
        return self._noted(HumanMessage(content, id=prompt.message_id, additional_kwargs=kwargs))

    def _say(self, prompt: _Prompt) -> Operation[HumanMessage]:
        return self._store_prompt(self._key, self._message(prompt), self._reader.view.new_edit())

    @operation
    def _store_prompt(
        self, key: ThreadKey, made: Operation[HumanMessage], edit: Edit
    ) -> Op[HumanMessage]:
        yield from hold_thread(key)
        message = yield from made
        yield from adding(self._reader.view, key, [message], edit=edit)
        return message

    def _add(self, messages: Sequence[BaseMessage]) -> Operation[None]:
        return self._store(self._key, messages, adding(self._reader.view, self._key, messages))

    @operation
    def _store(
        self, key: ThreadKey, messages: Sequence[BaseMessage], added: Operation[None]
    ) -> Op[None]:
        yield from hold_thread(key)
        yield from self._reader.require_room(key.id, messages)
        yield from added

    def _run(self, op: Operation[T], *, write: bool) -> T | None:
        """An operation's result; None if the thread is damaged, and that is no error."""
        try:
            return self._reader.view.log.run(op, write=write)
        except DamagedRow as error:
            self._reader.pass_over(self.id, error)
            return None

    def _read(
        self, count: int | None = None, *, numbered: bool = False, with_files: bool = False
    ) -> Transcript:
        try:
            return self._reader.read(self.id, count, numbered=numbered, with_files=with_files)
        except ThreadExpired:
            raise
        except ThreadNotFound:  # its first message will make it
            return Transcript()

    def _count(self, last: int | None) -> int | None:
        return self._reader.limits.max_turns if last is None else checked_turns(last, "last")

    def _noted(self, message: M) -> M:
        if (
            self.tool is None
            or not isinstance(message, BaseMessage)
            or notes_of(vars(message)).get("tool")
        ):
            return message
        notes = {**notes_of(vars(message)), "tool": self.tool}
        return message.model_copy(
            update={"additional_kwargs": {**message.additional_kwargs, NAMESPACE: notes}}
        )


def _digests(files: Iterable[TurnFile | str]) -> set[str]:
    return {file.sha256 for file in files if isinstance(file, TurnFile)}


class _Prompt:
    """A user's message as the caller passes it.

    Raises:
        InvalidInput: It is invalid.
    """

    def __init__(self, text: str, files: Files, message_id: str | None) -> None:
        self.files = checked_files(files)
        if not isinstance(text, str) or not (text.strip() or self.files):
            raise InvalidInput("the text must not be empty unless there are files")
        if message_id is not None and (not isinstance(message_id, str) or not message_id):
            raise InvalidInput(
                "a message id must be a non-empty string; omit it to get a random one"
            )
        self.text = text
        self.message_id = message_id or str(uuid4())


def checked_tool(tool: object) -> str | None:
    """A tool's name; None if there is none.

    Raises:
        InvalidInput: It is invalid.
    """
    if tool is None:
        return None
    if (
        not isinstance(tool, str)
        or not tool.strip()
        or len(tool) > LONGEST_TOOL
        or "\0" in tool
        or len(tool.splitlines()) > 1
    ):
        raise InvalidInput(f"a tool name must have 1 to {LONGEST_TOOL} characters, in one line")
    return tool.strip()
