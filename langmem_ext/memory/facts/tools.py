"""The tools by which an agent remembers and finds facts: `remember_fact`, `search_memory`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.prebuilt import ToolRuntime
from langgraph.store.base import BaseStore

from langmem_ext.errors import InvalidInput
from langmem_ext.log.message_log import owner_key
from langmem_ext.memory.calls import Call, Steps, arun, run
from langmem_ext.memory.facts.facts import Fact, Facts, FactSource
from langmem_ext.memory.items import ROOT, Namespace, OwnedStores
from langmem_ext.messages.annotations import hidden_spans
from langmem_ext.messages.search.spans import find_spans
from langmem_ext.messages.text import text_of

Owner: TypeAlias = str | None | Callable[[RunnableConfig], str | None]
"""Whose facts: a name, or what tells it from a run's config."""

FOUND: Final = 5
"""Facts that a search shows, unless it asks for more."""

MOST: Final = 50
"""Facts that a search shows at most."""

_REMEMBER: Final = (
    "Remembers something that the user has said of themselves and that will hold in other"
    " conversations: who they are, what they like, what they have decided. `fact` is one short"
    " sentence that can be understood alone; `subject` is what it is about, in one to three words."
    " A later fact on the same subject takes the place of the earlier one. Never remember"
    " passwords, card numbers or other secrets."
)
_SEARCH: Final = (
    "Looks for what is remembered of the user from other conversations. `query` says in words what"
    " to look for; leave it empty for what was remembered last."
)


def memory_tools(
    store: BaseStore, *, owner: Owner = None, namespace: Namespace = ROOT
) -> list[BaseTool]:
    """The tools `remember_fact(fact, subject)` and `search_memory(query, limit)`, sync and async.

    A fact's source is the user's newest message; it is deleted with its thread. What a message of
    the conversation hides (`mark_sensitive`) is not remembered, and the model is told so.

    Where a server has authenticated the run's user, the facts are that user's, and no `owner`
    leads to another's.

    Args:
        store: Where the facts are.
        owner: Whose they are: a name, or a function of the run's config for an agent that serves
            many; None for the user whom the server has authenticated (`langgraph_auth_user_id` in
            `configurable`), or else for nobody.
        namespace: The namespace of the store that they are below.

    Raises:
        InvalidInput: The owner is no name.

    Example:
        `create_agent(model, memory_tools(store), checkpointer=saver, store=store)`
    """
    stores = OwnedStores(store)
    if not callable(owner):
        # A wrong name is reported before an agent is built.
        Facts(store, owner=owner, namespace=namespace)

    def facts_of(runtime: ToolRuntime[Any, Any]) -> Facts:
        whose = owner_key(owner(runtime.config) if callable(owner) else owner)
        user = _user_of(runtime)
        bound = stores.of(whose if user is None else user)
        if user is not None and (whose is None or getattr(bound, "owner", None) != user):
            whose = user  # their rows have their facts alone, under whatever name
        return Facts(bound, owner=whose, namespace=namespace)

    def remember_fact(fact: str, subject: str, runtime: ToolRuntime[Any, Any]) -> str:
        return run(_remembering(facts_of(runtime), fact, subject, runtime))

    async def aremember_fact(fact: str, subject: str, runtime: ToolRuntime[Any, Any]) -> str:
        return await arun(_remembering(facts_of(runtime), fact, subject, runtime))

    def search_memory(runtime: ToolRuntime[Any, Any], query: str = "", limit: int = FOUND) -> str:
        return run(_searching(facts_of(runtime), query, limit))

    async def asearch_memory(
        runtime: ToolRuntime[Any, Any], query: str = "", limit: int = FOUND
    ) -> str:
        return await arun(_searching(facts_of(runtime), query, limit))

    make = StructuredTool.from_function
    return [
        make(
            remember_fact,
            aremember_fact,
            name="remember_fact",
            description=_REMEMBER,
            handle_tool_error=True,
        ),
        make(
            search_memory,
            asearch_memory,
            name="search_memory",
            description=_SEARCH,
            handle_tool_error=True,
        ),
    ]


def _user_of(runtime: ToolRuntime[Any, Any]) -> str | None:
    """The user of a run: whose store it has, or whom a server has authenticated."""
    user = getattr(runtime.store, "owner", None)
    return owner_key(
        user or runtime.config.get("configurable", {}).get("langgraph_auth_user_id") or None
    )


def _remembering(
    facts: Facts, text: str, subject: str, runtime: ToolRuntime[Any, Any]
) -> Steps[str]:
    messages = _messages(runtime.state)
    if _tells_of_hidden(f"{text} {subject}", messages):
        raise ToolException(
            "This holds something that must not be remembered: leave it out, and do not try again"
            " with other words."
        )
    thread_id = runtime.config.get("configurable", {}).get("thread_id")
    asked = next(
        (message for message in reversed(messages) if isinstance(message, HumanMessage)), None
    )
    sources = (
        [FactSource(str(thread_id), asked.id)]
        if thread_id is not None and asked is not None and asked.id
        else []
    )
    try:
        fact: Fact = yield Call(facts, "remember", text, subject=subject, sources=sources)
    except InvalidInput as error:
        raise ToolException(str(error)) from None
    return f"Remembered: {fact.text}"


def _searching(facts: Facts, query: str, limit: int) -> Steps[str]:
    recalled: list[Fact] = yield Call(
        facts, "recall", query.strip() or None, limit=min(max(limit, 1), MOST)
    )
    lines = [
        f"- {fact.said_at.date()}: {fact.text}" + (f" ({fact.subject})" if fact.subject else "")
        for fact in recalled
    ]
    return "\n".join(lines) or "Nothing is remembered of that."


def _messages(state: Any) -> Sequence[BaseMessage]:
    messages = (
        state.get("messages") if isinstance(state, Mapping) else getattr(state, "messages", None)
    )
    return [message for message in messages or () if isinstance(message, BaseMessage)]


def _tells_of_hidden(text: str, messages: Sequence[BaseMessage]) -> bool:
    return any(find_spans(text, value) for message in messages for value in _hidden(message))


def _hidden(message: BaseMessage) -> Iterator[str]:
    """What of a message is hidden; of one that is hidden whole, each likely word as well."""
    text = text_of(message.content)
    for start, end in hidden_spans(vars(message)):
        yield text[start:end]
        if end - start == len(text):
            yield from (
                word for word in re.findall(r"\w+", text) if len(word) > 3 or re.search(r"\d", word)
            )
