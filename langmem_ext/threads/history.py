"""`ThreadChatMessageHistory`: a thread's messages for LangChain chains.

A bridge for code that has a chat history today: langchain-core has deprecated
`BaseChatMessageHistory` and `RunnableWithMessageHistory` in favour of LangGraph's checkpointers. It
is a view of the same log, so a thread can be continued by a graph at any time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Self
from uuid import UUID, uuid4

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import (
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    message_chunk_to_message,
)

from langmem_ext.checkpointer.delta_channels import LangGraphFacts
from langmem_ext.checkpointer.validation import several
from langmem_ext.checkpointer.values import MESSAGES_CHANNEL
from langmem_ext.errors import InvalidInput
from langmem_ext.log.closing import Closing
from langmem_ext.log.message_cache import AT_ONCE
from langmem_ext.log.message_log import Database, is_address, thread_key
from langmem_ext.log.scope import DatabaseView
from langmem_ext.log.shown import ReprFacts
from langmem_ext.messages.annotations import NAMESPACE, is_marked, notes_of
from langmem_ext.messages.token_costs.tokens import ApproximateCounter, TokenCounter
from langmem_ext.messages.turns import first_whole_turn
from langmem_ext.storage.operation import Op, Operation, operation
from langmem_ext.storage.prune.prune import forget_before
from langmem_ext.storage.threads import history as history_ops
from langmem_ext.storage.threads.channels import change_channels
from langmem_ext.storage.threads.edit import Edit
from langmem_ext.types import PackedValue, Snapshot, ThreadKey


class ThreadChatMessageHistory(Closing, BaseChatMessageHistory):
    """The messages of one thread, shared with its graph.

    A graph's messages appear here, and messages added here are in its next run.

    Args:
        thread_id: The thread; its first message creates it.
        log: The database: a `MessageLog`, a `DeltaSaver` (whose serializer and owner are then used
            too), a path (a `str` or a `pathlib.Path`) or a URL.
        channel: The graph's channel that holds the messages.
        owner: Bind the history to an owner: another owner's thread is not found.

    Raises:
        InvalidThreadId: The thread id is empty, or neither a string, an int nor a UUID.
    """

    def __init__(
        self,
        thread_id: str | int | UUID,
        log: Database,
        *,
        channel: str = MESSAGES_CHANNEL,
        owner: str | None = None,
    ) -> None:
        thread_key(thread_id)  # what is invalid is said before there is a file
        self._view = DatabaseView.of(log, owner)
        self._opened = is_address(log)
        self._key = self._view.key(thread_id)
        self.log = self._view.log
        self._channel = channel

    @classmethod
    async def aopen(
        cls,
        thread_id: str | int | UUID,
        log: Database,
        *,
        channel: str = MESSAGES_CHANNEL,
        owner: str | None = None,
    ) -> Self:
        """Async twin of `ThreadChatMessageHistory(…)`, which does not block the event loop.

        Example:
            `history = await ThreadChatMessageHistory.aopen("t1", "memory.db")`
        """
        return await asyncio.to_thread(partial(cls, thread_id, log, channel=channel, owner=owner))

    def _repr_facts(self) -> ReprFacts:
        return ReprFacts(self.log.driver, thread=self._key)

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]  # a plain attribute there, read-only here
        """The messages, oldest first; copies, which may be changed freely."""
        return self._load(self.log.run(self._read(), write=False))

    async def aget_messages(self) -> list[BaseMessage]:
        """Async twin of `messages`."""
        return await self.log.driver.acall(lambda: self.messages)

    def window(self, max_tokens: int, *, counter: TokenCounter | None = None) -> list[BaseMessage]:
        """The newest whole turns within a number of tokens, oldest first; copies.

        Only the end of the thread is read, however long it is. A turn starts with a user's message,
        and no tool call is separated from its result. If the whole thread fits, all of it is
        returned. Empty if the newest turn alone is too long.

        Args:
            max_tokens: The maximum number of tokens of all messages.
            counter: The token counter. Default: `ApproximateCounter`.

        Raises:
            InvalidInput: `max_tokens` is not a whole number of at least 1, or the channel does not
                hold messages.
        """
        if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 1:
            raise InvalidInput(f"max_tokens must be at least 1, not {max_tokens!r}")
        count = (counter or ApproximateCounter()).count

        def weigh(packed: Snapshot) -> tuple[BaseMessage, int]:
            [message] = self._load([packed])
            return message, max(1, count(message))

        newest, everything = self.log.run(
            history_ops.read_back(self._key, self._channel, max_tokens, weigh, **self._view.tools),
            write=False,
        )
        if everything:
            return newest[::-1]
        tail = newest[-2::-1]  # the last one that was weighed is too much
        return tail[first_whole_turn(tail) :]

    async def awindow(
        self, max_tokens: int, *, counter: TokenCounter | None = None
    ) -> list[BaseMessage]:
        """Async twin of `window`."""
        return await self.log.driver.acall(lambda: self.window(max_tokens, counter=counter))

    def add_messages(self, messages: Iterable[BaseMessage]) -> None:
        """Append messages, all of them or none; they are stored when this returns.

        A message with an existing id replaces that one, as with LangGraph's `add_messages`.

        Raises:
            ThreadNotFound: The thread belongs to another owner.
            InvalidInput: One of them is not a message, or contains a value that cannot be stored:
                an integer of more than 64 bits, an arbitrary object.
        """
        if added := several(messages, "messages"):
            self.log.run(self._add(added), write=True)

    async def aadd_messages(self, messages: Iterable[BaseMessage]) -> None:
        """Async twin of `add_messages`."""
        added = several(messages, "messages")
        if len(added) > AT_ONCE:
            await self.log.driver.acall(lambda: self.add_messages(added))
        elif added:
            await self.log.arun(self._add(added), write=True)

    def clear(self) -> list[str]:  # type: ignore[override]  # it says where they are left
        """Forget the messages: their texts, the title that one of them gave, what search finds.

        The thread's earlier checkpoints are deleted with them. What else the graph keeps (its
        parameters, a question that waits) stays, and so does a title that somebody gave. The
        thread's memories and facts go with the thread: delete it to forget them, too.

        Returns:
            The ids of the threads that still have messages; empty if nothing is left. This
            thread, if a branch, another channel or a subgraph with a state of its own refers to
            them. Its copies (`Threads.fork`), each until its own history is cleared.
        """
        return self.log.run(self._clear(), write=True)

    async def aclear(self) -> list[str]:  # type: ignore[override]
        """Async twin of `clear`."""
        return await self.log.arun(self._clear(), write=True)

    def _read(self) -> Operation[list[Snapshot]]:
        return history_ops.read_history(self._key, self._channel, **self._view.tools)

    def _add(self, messages: Sequence[BaseMessage]) -> Operation[None]:
        return adding(self._view, self._key, messages, self._channel)

    def _clear(self) -> Operation[list[str]]:
        none = self._view.codec.pack_value(None)
        emptying = change_channels(
            self._key,
            ["summary"],
            lambda values: {
                name: none for name, value in values.items() if value.body != none.body
            },
            self._view.new_edit(),
            emptied=self._channel,
            **self._view.tools,
        )
        return forgetting(self._view, self._key, emptying)

    def _load(self, packed: list[Snapshot]) -> list[BaseMessage]:
        loaded: list[BaseMessage] = self._view.load(PackedValue(messages=packed), self._key.id)
        return loaded


def forgetting(
    view: DatabaseView, key: ThreadKey, emptying: Operation[None]
) -> Operation[list[str]]:
    """The operation that empties a thread's view, and forgets what led to it.

    It returns the ids of the threads that still have messages of it.
    """
    return forget_before(key, emptying, facts=LangGraphFacts(view.codec), caches=view.log.caches)


def adding(
    view: DatabaseView,
    key: ThreadKey,
    messages: Sequence[BaseMessage],
    channel: str = MESSAGES_CHANNEL,
    *,
    edit: Edit | None = None,
) -> Operation[None]:
    """The operation that appends messages to a thread, as the given edit or a new one.

    A user's message, while the thread waits and its request takes a sensitive parameter, is marked
    as holding its value: only the graph could tell that it does not.

    Raises:
        InvalidInput: One of them is not a message, removes others, or has something that cannot be
            stored.
    """
    strange = [
        message
        for message in messages
        if not isinstance(message, BaseMessage) or isinstance(message, RemoveMessage)
    ]
    if strange:
        raise InvalidInput(
            f"a history takes messages, not {type(strange[0]).__name__}: to remove messages, update"
            " the state of the graph"
        )
    whole = map(
        message_chunk_to_message, messages
    )  # a streamed answer comes as a chunk; LangGraph's reducer does the same
    fresh, named = [], []
    for position, message in enumerate(whole):
        if message.id is None:
            fresh.append(position)
        named.append(
            message if message.id is not None else message.model_copy(update={"id": str(uuid4())})
        )
    open_to = [
        at
        for at, message in enumerate(named)
        if isinstance(message, HumanMessage) and not is_marked(vars(message))
    ]
    try:
        packed = view.codec.pack_messages(named)
    except TypeError as error:  # ormsgpack's, in words that quote nothing
        raise InvalidInput(
            f"a message contains a value that cannot be stored ({error}): pass it as text, or"
            " omit it"
        ) from error
    return _add_packed(view, key, packed, channel, fresh, open_to, edit or view.new_edit())


@operation
def _add_packed(
    view: DatabaseView,
    key: ThreadKey,
    messages: Sequence[Snapshot],
    channel: str,
    fresh: Sequence[int],
    open_to: Sequence[int],
    edit: Edit,
) -> Op[None]:
    """Append messages; those from `open_to` on, which may be sensitive answers, are marked."""
    packed = list(messages)
    risks = (yield from history_ops.find_risks(key, channel, **view.tools)) if open_to else []
    if risks:
        for at in open_to:
            message = view.codec.load_message(packed[at])
            kwargs = {
                **message.additional_kwargs,
                NAMESPACE: {**notes_of(vars(message)), "sensitive": risks},
            }
            [packed[at]] = view.codec.pack_messages(
                [message.model_copy(update={"additional_kwargs": kwargs})]
            )
    yield from history_ops.add_to_history(key, channel, packed, edit, fresh=fresh, **view.tools)
