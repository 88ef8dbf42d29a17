"""What a server serves: an open database, perhaps a graph, and what one caller may see of both."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
)
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypedDict, cast
from uuid import UUID, uuid5

from fastapi import HTTPException
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langgraph.pregel import Pregel
from langgraph.store.base import BaseStore
from langgraph.types import StateSnapshot
from pydantic import BaseModel
from typing_extensions import Unpack

from langmem_ext import (
    ConversationMemories,
    ConversationMemoryData,
    MemoryGenerator,
    PromptVersions,
)
from langmem_ext._internal.models import make_model
from langmem_ext.checkpointer.saver import DeltaSaver
from langmem_ext.errors import InvalidInput, LangmemExtError
from langmem_ext.log.message_log import Database, MessageLog, is_address
from langmem_ext.log.sweeper import EVERY, AsyncSweeper, checked_interval
from langmem_ext.server.access import Access
from langmem_ext.server.limits import Limits
from langmem_ext.server.problems import NotServed
from langmem_ext.server.queue import Queue, StoreQueue
from langmem_ext.server.runs import USER, Graph, Runs
from langmem_ext.server.tasks import perform_task
from langmem_ext.store.store import DeltaStore
from langmem_ext.threads.states.held import Standing
from langmem_ext.threads.states.states import ThreadStates
from langmem_ext.threads.threads import Threads

if TYPE_CHECKING:
    from langmem_ext.waiting.turn import Turn

_log = logging.getLogger(__name__)

MakeGraph: TypeAlias = Callable[[DeltaSaver], Graph]

GRAPHS: Final = UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8")
"""The namespace of the UUIDs that LangGraph's agent server gives to graphs' assistants."""


@dataclass(frozen=True, slots=True)
class Assistant:
    """A graph under the name by which clients ask for it.

    Attributes:
        name: The name.
        graph: The graph, compiled with any saver.
    """

    name: str
    graph: Graph

    @property
    def id(self) -> str:
        """The id of the assistant, as the agent server gives it to a graph of this name."""
        return str(uuid5(GRAPHS, self.name))

    def is_called(self, name: object) -> bool:
        """Whether a client means this one."""
        return name in (self.name, self.id)


@dataclass(frozen=True, slots=True)
class User:
    """The user of a run, as graphs know one from LangGraph's server: `runtime.server_info.user`.

    Attributes:
        identity: The owner for whom the caller speaks.
    """

    identity: str
    is_authenticated: bool = True
    permissions: tuple[str, ...] = ()

    @property
    def display_name(self) -> str:
        """What the user is called."""
        return self.identity

    def __getitem__(self, name: str) -> Any:
        """One of these by its name."""
        return getattr(self, name)


class Desk:
    """What one caller works with: the threads of one owner, or of all.

    Args:
        service: The service.
        saver: Its saver, bound to the owner.
    """

    def __init__(self, service: Service, saver: DeltaSaver) -> None:
        self._service = service
        self.saver = saver
        self.limits = service.limits
        self.runs = service.runs

    @property
    def owner(self) -> str | None:
        """The owner of the threads; None for all."""
        return self.saver.owner

    @property
    def assistant(self) -> Assistant | None:
        """The graph that may be run."""
        return self._service.assistant

    @cached_property
    def threads(self) -> Threads:
        """The threads, to list, name, copy and delete."""
        return Threads(self.saver, tool_ttl=None)

    @cached_property
    def states(self) -> ThreadStates:
        """The threads with their states."""
        return ThreadStates(self.saver, None if self.assistant is None else self.graph)

    @cached_property
    def graph(self) -> Graph:
        """The graph, which stores its threads for this caller.

        Raises:
            NotServed: The server has no graph, or its store does not know its items' owners.
        """
        if self.assistant is None:
            raise NotServed("this server has no graph: start it with --graph FILE.py:NAME")
        graph, owner = self.assistant.graph, self.owner
        store = self.store if graph.store is None else self._bound(graph.store)
        bound = graph.copy({"checkpointer": self.saver, "store": store})
        if owner is None:
            return bound
        # As LangGraph's server names the user whom it has authenticated.
        user = {"langgraph_auth_user": User(owner), "langgraph_auth_user_id": owner, USER: owner}
        return bound.with_config(configurable=user)

    @cached_property
    def store(self) -> BaseStore:
        """The long-term store, as the caller may see it.

        Raises:
            NotServed: The store does not know its items' owners.
        """
        return self._bound(self._service.store)

    def _bound(self, store: BaseStore) -> BaseStore:
        """A store, as the caller may see it."""
        if self.owner is None or self.owner == getattr(store, "owner", None):
            return store
        if not isinstance(store, DeltaStore):
            raise NotServed(
                f"a {type(store).__name__} does not tell whose its items are: serve a DeltaStore,"
                " and compile the graph with one or without a store"
            )
        return store.for_owner(self.owner)

    @property
    def keeping(self) -> BaseStore:
        """The store in which the server keeps its own items, which have no owner."""
        return self._service.store

    @property
    def queue(self) -> Queue:
        """Takes tasks to do later."""
        return self._service.queue

    @cached_property
    def memories(self) -> ConversationMemories:
        """The memories of the caller's conversations."""
        return ConversationMemories(self.saver, self.keeping)

    def of(self, user: str) -> Desk:
        """A desk with the conversations of a user.

        Raises:
            HTTPException: The caller may not see them.
        """
        if self.owner not in (None, user):
            raise HTTPException(404, f"there is no user {user!r} here")
        return self if self.owner == user else Desk(self._service, self.saver.for_owner(user))

    @property
    def schema(self) -> type[BaseModel]:
        """The schema of memories."""
        return self._service.memory.schema

    @cached_property
    def generator(self) -> MemoryGenerator:
        """Writes memories of the caller's conversations.

        Raises:
            NotServed: The server has no model for it.
        """
        memory = self._service.memory
        if memory.model is None:
            raise NotServed(
                "this server has no model that could write memories: name one by --memory-model, or"
                " put memories by POST /langmem/memories"
            )
        return MemoryGenerator(
            self.saver,
            memory.model,
            store=self.keeping,
            schema=memory.schema,
            prompt=PromptVersions(self.keeping),
        )

    async def converse(
        self,
        text: str,
        thread_id: str,
        message_id: str | None,
        config: RunnableConfig,
        *,
        interrupt_id: str | None = None,
        seen: Collection[str] | None = None,
    ) -> Turn:
        """Deliver a message to a thread, whatever state it is in; the turn that follows.

        Args:
            text: The message's text.
            thread_id: The thread.
            message_id: The message's id; sent again with the same id, it is not delivered twice.
            config: The part of a run's config that the graph sees.
            interrupt_id: The question that it answers, if that is known.
            seen: Of a queued message: the interrupts that waited when it was accepted. It waits in
                its queue, not here: its thread may be deleted meanwhile.

        Raises:
            NotServed: The server has no graph.
            LangmemExtError: As raised by `converse`.
        """
        graph = self.graph
        aconverse = await asyncio.to_thread(_import_converse)
        wait = self.limits.wait if seen is None else 0
        return await aconverse(
            graph,
            text,
            thread_id=thread_id,
            message_id=message_id,
            interrupt_id=interrupt_id,
            seen=seen,
            config=config,
            wait=wait,
        )

    async def state(
        self, thread_id: str, *, checkpoint_id: str | None, namespace: str, subgraphs: bool
    ) -> StateSnapshot | None:
        """The state of a thread, by the graph or else its checkpoint; None if there is none.

        It is that of the checkpoint, too, where the graph cannot apply what was written last.

        Args:
            thread_id: The thread.
            checkpoint_id: The checkpoint; None for the newest.
            namespace: A subgraph's namespace.
            subgraphs: Whether to include the states of subgraphs; needs a graph.
        """
        state = None
        if self.assistant is not None:
            with _failing(thread_id):
                state = await self.graph.aget_state(
                    place(thread_id, checkpoint_id, namespace), subgraphs=subgraphs
                )
        if state is None:
            return await self.states.astate(
                thread_id, checkpoint_id=checkpoint_id, namespace=namespace
            )
        if checkpoint_id is None and not namespace and state.interrupts:
            checkpoint = await self.saver.aget_tuple(state.config)
            return Standing.of(state, checkpoint).snapshot
        return state if state.created_at is not None else None

    async def history(
        self,
        thread_id: str,
        *,
        namespace: str,
        before: str | None,
        metadata: Mapping[str, Any] | None,
        limit: int,
    ) -> list[StateSnapshot]:
        """The states of a thread, newest first, by the graph or else its checkpoints."""
        if self.assistant is not None:
            of = None if before is None else place(thread_id, before, namespace)
            filter = None if metadata is None else dict(metadata)
            with _failing(thread_id):
                return await _listed(
                    self.graph.aget_state_history(
                        place(thread_id, None, namespace), filter=filter, before=of, limit=limit
                    )
                )
        return await _listed(
            self.states.ahistory(
                thread_id, namespace=namespace, before=before, metadata=metadata, limit=limit
            )
        )

    @property
    def graph_metadata(self) -> Mapping[str, Any]:
        """Metadata of every thread: the graph that continues it."""
        return (
            {}
            if self.assistant is None
            else {"graph_id": self.assistant.name, "assistant_id": self.assistant.id}
        )


@contextmanager
def _failing(thread_id: str) -> Iterator[None]:
    """Let a thread be read without its graph where the graph raises."""
    try:
        yield
    except LangmemExtError:
        raise
    except Exception as error:  # whatever a reducer of somebody's graph raises
        _log.warning(
            "thread %r is shown as it was stored: the graph raises %s",
            thread_id,
            type(error).__name__,
        )


async def _listed(states: AsyncIterator[StateSnapshot]) -> list[StateSnapshot]:
    # Closed at once if it fails: it may hold the database.
    async with aclosing(cast("AsyncGenerator[StateSnapshot, None]", states)) as each:
        return [state async for state in each]


def _import_converse() -> Callable[..., Awaitable[Turn]]:
    """Import `aconverse`, which takes longer than all the rest, and not every server needs it.

    It is called in a thread, so that no other request waits.
    """
    from langmem_ext.waiting.converse import aconverse  # noqa: PLC0415

    return aconverse


def place(thread_id: str, checkpoint_id: str | None = None, namespace: str = "") -> RunnableConfig:
    """The config of a thread, or of a checkpoint in it."""
    at = {} if checkpoint_id is None else {"checkpoint_id": checkpoint_id}
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": namespace, **at}}


@dataclass(frozen=True, slots=True)
class Memory:
    """How memories of conversations are written.

    Attributes:
        model: The chat model, or its name; None if none are written here (they can still be put).
        schema: The schema of memories.
    """

    model: BaseChatModel | str | None = None
    schema: type[BaseModel] = ConversationMemoryData


class ServerOptions(TypedDict, total=False):
    """What a server can have besides its database; each may be left out.

    Attributes:
        graph: The graph that may be run: compiled, or a function of a saver that returns one. Its
            threads are stored in the database, whatever saver it was compiled with.
        graph_id: The graph's name for clients. Default: `agent`.
        access: Who may call, and whose threads they see (`langmem_ext.server.access`). Default:
            callers from this machine.
        limits: How much a caller may send, and how often.
        platform: Whether to serve the routes of LangGraph's SDK. Default: yes.
        store: The long-term store, where memories are kept, too. Default: the database's.
        queue: Takes tasks to do later: memories, and messages that are polled for. Default: a queue
            in this process, which keeps its tasks in the store.
        memory: The model that writes memories of conversations, and their schema.
        sweep_every: How often expired threads (by the saver's retention) and expired items of the
            store are deleted in the background; None for never. Default: every 15 minutes.
        mcp: Whether to serve the intents of the graph, a waiting graph, as MCP tools, too, at
            `/langmem/mcp`. It needs the extra `mcp`.
        mcp_key: Seals what MCP clients send back (`create_mcp_server`). Default: a key that is kept
            in the database; a saver that encrypts needs one.
    """

    graph: Graph | MakeGraph | None
    graph_id: str
    access: Access | None
    limits: Limits | None
    platform: bool
    store: BaseStore | None
    queue: Queue | None
    memory: Memory | None
    sweep_every: timedelta | None
    mcp: bool
    mcp_key: str | bytes | None


class Service:
    """An application's database and graph, as a router serves them.

    Args:
        database: An open saver or log, which stays open, or a path or URL, which is opened for the
            first request.
        options: Its other options; `access`, `platform`, `mcp` and `mcp_key` are the router's.
    """

    def __init__(self, database: Database, **options: Unpack[ServerOptions]) -> None:
        graph = options.get("graph")
        if graph is not None and not isinstance(graph, Pregel) and not callable(graph):
            raise InvalidInput(
                "a server runs a compiled graph, or a function of a saver that gives one, not"
                f" {type(graph).__name__}"
            )
        self._database = database
        self._graph = graph
        self._name = options.get("graph_id", "agent")
        self._store = options.get("store")
        self._passed_queue = options.get("queue")
        self.limits = options.get("limits") or Limits()
        self.memory = options.get("memory") or Memory()
        self.runs = Runs()
        every = options.get("sweep_every", EVERY)
        self._sweep_every = None if every is None else checked_interval(every)
        self._sweeper: AsyncSweeper | None = None
        self.assistant: Assistant | None = None
        self._opening = asyncio.Lock()
        self._saver: DeltaSaver | None = None
        self._queue: StoreQueue | None = None

    @property
    def store(self) -> BaseStore:
        """The long-term store."""
        assert self._store is not None  # `open` was called
        return self._store

    @property
    def queue(self) -> Queue:
        """Takes tasks to do later."""
        queue = self._passed_queue or self._queue
        assert queue is not None  # `open` was called
        return queue

    async def open(self) -> DeltaSaver:
        """The saver, opened if it is not yet.

        Raises:
            StorageError: The database cannot be opened.
        """
        async with self._opening:
            if self._saver is None:
                saver = await self._open()
                if self._graph is not None:
                    self.assistant = Assistant(
                        self._name, await asyncio.to_thread(self._compiled, self._graph, saver)
                    )
                if self.memory.model is not None:
                    self.memory = replace(
                        self.memory, model=await asyncio.to_thread(make_model, self.memory.model)
                    )
                self._store = self._store or DeltaStore(saver)
                if self._passed_queue is None:
                    self._queue = StoreQueue(self._store, saver.log, partial(perform_task, self))
                    self._queue.start()
                if self._sweep_every is not None:
                    self._sweeper = saver.asweeper(every=self._sweep_every)
                    self._sweeper.start()
                self._saver = saver
        return self._saver

    async def aclose(self) -> None:
        """Stop all work, and close the database if it was opened here."""
        if self._sweeper is not None:
            await self._sweeper.stop()
        if self._queue is not None:
            await self._queue.aclose()
        await self.runs.aclose()
        saver, self._saver = self._saver, None
        if saver is not None and is_address(self._database):
            await saver.aclose()

    async def desk(self, owner: str | None) -> Desk:
        """A caller's desk.

        Args:
            owner: The owner of the threads; None for all that the database's saver may see.
        """
        saver = await self.open()
        return Desk(self, saver if owner is None else saver.for_owner(owner))

    async def _open(self) -> DeltaSaver:
        if isinstance(self._database, DeltaSaver):
            return self._database
        if is_address(self._database):
            return await DeltaSaver.aopen(self._database)
        return DeltaSaver(MessageLog.of(self._database))

    @staticmethod
    def _compiled(graph: Graph | MakeGraph, saver: DeltaSaver) -> Graph:
        return graph if isinstance(graph, Pregel) else graph(saver)
