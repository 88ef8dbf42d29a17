"""The intents of a waiting graph as MCP tools that ask by elicitation. It needs the extra `mcp`.

A call is a thread. It asks for missing arguments: since protocol 2026-07-28 the call's result is
the question, and the client calls again with the answer; before, the server asks within the call. A
question is stored before it is asked, so an answer may come after a restart. What a client sends
back with it (`requestState`) is sealed: it answers this question of this call, and no other.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, cast
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.pregel import Pregel
from langgraph.store.base import PutOp
from mcp.server import Server, ServerRequestContext
from mcp.server.context import CallNext, HandlerResult
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)
from mcp.types.version import is_version_at_least

from langmem_ext import __version__
from langmem_ext.checkpointer.saver import DeltaSaver
from langmem_ext.errors import ConversationError, InvalidInput, LangmemExtError
from langmem_ext.storage.rows.clock import now_ms
from langmem_ext.store.index import Index
from langmem_ext.store.operations import Caller, Put, put_new
from langmem_ext.store.planning import plan_batch
from langmem_ext.store.values import load_value
from langmem_ext.types import CONFIRMATION
from langmem_ext.waiting.catalog.intent import Intent
from langmem_ext.waiting.catalog.playbook import Playbook
from langmem_ext.waiting.converse import aconverse
from langmem_ext.waiting.graph.nodes import playbook_of
from langmem_ext.waiting.interrupts.ask import request_message
from langmem_ext.waiting.interrupts.question import form_field
from langmem_ext.waiting.interrupts.resume import Expected
from langmem_ext.waiting.policy.asking import described
from langmem_ext.waiting.policy.value_text import in_text
from langmem_ext.waiting.turn import Turn, read_turn

CONVERSATION: Final = "conversation"
"""The argument of every tool that names the conversation that a call continues."""

_THREAD: Final = "mcp-"
"""The prefix of the ids of threads that clients may continue."""

_RESULTS_ASK: Final = "2026-07-28"
"""The first protocol version in which results can ask."""

_KEPT: Final = ("langmem_ext", "mcp")
"""The namespace of the sealing keys in the long-term store: one for each owner, seen by nobody
else."""

_SEALED_FOR: Final = 10 * 365 * 86_400.0
"""Seconds that a seal is valid: long, because the catalog says how long a question waits."""

Graph: TypeAlias = Pregel[Any, Any, Any, Any]
Context: TypeAlias = ServerRequestContext[Any, Any]


def create_mcp_server(
    graph: Graph,
    *,
    graph_for: Callable[[Any], Graph] | None = None,
    key: str | bytes | None = None,
) -> Server[Any]:
    """An MCP server whose tools are the intents of a waiting graph.

    A tool takes the intent's parameters except sensitive ones, all optional: what is missing is
    asked for, and so is the confirmation. No form and no argument takes a sensitive value; the
    call's result says where to continue.

    Args:
        graph: A graph of `build_waiting_graph`, compiled with a checkpointer.
        graph_for: Returns the same graph with only the caller's threads, for the HTTP request of a
            call; None if all callers share their threads.
        key: Seals what clients send back; at least 32 bytes, the same for all servers of these
            threads. Default: a key that is made once and kept in the database's long-term store;
            with another checkpointer, a key of this process.

    Raises:
        InvalidInput: It is another graph, a parameter is called `conversation`, the key is too
            short, or it is missing and the checkpointer encrypts.
    """
    playbook = playbook_of(graph)
    if playbook is None:
        raise InvalidInput(
            "an MCP server needs a graph of build_waiting_graph: its intents are the tools"
        )
    if CONVERSATION in playbook.catalog.params:
        raise InvalidInput(
            f"no parameter may be called {CONVERSATION!r}: MCP clients name a conversation by it;"
            " rename it"
        )
    graph_for = graph_for or (lambda request: graph)
    tools = _Tools(graph_for, playbook)
    server = Server(
        "langmem-ext", version=__version__, on_list_tools=tools.listed, on_call_tool=tools.called
    )
    server.middleware.append(_Seal(graph.checkpointer, graph_for, key))
    return server


class _Seal:
    """Seals the state that clients send back, for one caller, tool and set of arguments.

    Args:
        saver: Where the key is kept, if none is passed.
        graph_for: Returns the graph of a request, with its caller's threads.
        key: The key.
    """

    def __init__(
        self, saver: object, graph_for: Callable[[Any], Graph], key: str | bytes | None
    ) -> None:
        self._saver = saver
        self._graph_for = graph_for
        self._boundary = None if key is None else self._with(key)
        if key is None and isinstance(getattr(saver, "serde", None), EncryptedSerializer):
            raise InvalidInput(
                "this checkpointer encrypts, and the key that seals answers would be stored in"
                " plain text beside it: pass one, create_mcp_server(graph, key=…)"
            )

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        if self._boundary is None:
            self._boundary = self._with(await _kept_key(self._saver))
        return await self._boundary(ctx, call_next)

    def _with(self, key: str | bytes) -> RequestStateBoundary:
        try:
            security = RequestStateSecurity(
                keys=[key], ttl=_SEALED_FOR, bind_principal=self._owner, audience="langmem-ext"
            )
        except ValueError as error:
            raise InvalidInput(f"the key cannot seal ({error})") from None
        return RequestStateBoundary(security, default_audience=None)

    def _owner(self, context: Context) -> str | None:
        owner: str | None = getattr(self._graph_for(context.request).checkpointer, "owner", None)
        return owner


async def _kept_key(saver: object) -> str:
    """A database's key, made if it has none; with another checkpointer, a new key.

    Servers that start at the same time share one key: the first that is stored.
    """
    made = secrets.token_hex(32)
    if not isinstance(saver, DeltaSaver):
        return made
    name = f"key of {saver.owner}" if saver.owner else "key"
    [put] = plan_batch([PutOp(_KEPT, name, {"key": made}, index=False)], Index(None)).steps
    op = put_new(cast("Put", put), Caller(saver.owner, now_ms()))
    return str(load_value(await saver.log.arun(op, write=True))["key"])


class _Tools:
    """The tools, and their calls."""

    def __init__(self, graph_for: Callable[[Any], Graph], playbook: Playbook) -> None:
        self._graph_for = graph_for
        self._playbook = playbook
        self._tools = {intent.id: self._tool(intent) for intent in playbook.catalog.intents}

    def _tool(self, intent: Intent) -> Tool:
        names = [
            name
            for name in self._playbook.uses(self._playbook.begin(intent, ""))
            if name not in self._playbook.sensitive
        ]
        fields = {name: form_field(self._playbook.param(name)) for name in names}
        conversation = {
            "type": "string",
            "maxLength": 200,
            "description": "go on with this conversation; leave out to begin one",
        }
        schema = {
            "type": "object",
            "properties": {**fields, CONVERSATION: conversation},
            "additionalProperties": False,
        }
        return Tool(
            name=intent.id,
            description=f"{intent.description or described(intent)}. Asks for what is left out.",
            input_schema=schema,
        )

    async def listed(
        self, context: Context, params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        """The tools."""
        return ListToolsResult(tools=[*self._tools.values()])

    async def called(
        self, context: Context, params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        """Begin a request, or continue it, until it is done or asks."""
        if params.name not in self._tools:
            raise MCPError(INVALID_PARAMS, f"no tool is called {params.name!r}")
        arguments = dict(params.arguments or {})
        unknown = arguments.keys() - self._tools[params.name].input_schema["properties"].keys()
        if unknown:
            raise MCPError(INVALID_PARAMS, f"{params.name} takes no argument {min(unknown)!r}")
        named = arguments.pop(CONVERSATION, None)
        graph, state = self._graph_for(context.request), params.request_state
        asked = None if state is None else json.loads(state)  # it was sealed here
        conversation = _conversation(named) if asked is None else asked[CONVERSATION]
        call = _Call(graph, params.name, conversation)
        try:
            if asked is not None:
                turn = await call.answer(asked["interrupt"], {"responses": _responses(params)})
            else:
                turn = await call.begin(arguments, self._playbook)
            return await self._result(context, call, turn)
        except LangmemExtError as error:
            raise MCPError(INVALID_PARAMS, str(error)) from error

    async def _result(
        self, context: Context, call: _Call, turn: Turn
    ) -> CallToolResult | InputRequiredResult:
        """The result of the call, or its question in a form that the client supports."""
        capabilities = context.session.client_capabilities
        if capabilities is None or capabilities.elicitation is None:
            return call.result(turn)
        if is_version_at_least(context.protocol_version, _RESULTS_ASK):
            return call.asks_by_result(turn)
        return await call.asks_within(context, turn)


class _Call:
    """One call of a tool.

    Args:
        graph: The waiting graph.
        tool: The tool.
        conversation: The conversation that it continues or begins.
    """

    def __init__(self, graph: Graph, tool: str, conversation: str) -> None:
        self._graph = graph
        self._tool = tool
        self._conversation = conversation
        self._thread = f"{_THREAD}{conversation}"

    async def begin(self, arguments: Mapping[str, Any], playbook: Playbook) -> Turn:
        """Begin the request; if the conversation waits, show its question or answer it.

        What waits is read, and no turn is finished for it: this request may take back its yes.
        """
        turn = await self._waiting()
        if turn.interrupts:
            if not arguments:
                return turn
            return await self.answer(turn.interrupts[0].id, self._values(turn, arguments))
        listed = ", ".join(f"{name} {in_text(value)}" for name, value in arguments.items())
        summary = described(playbook.intents[self._tool])
        message = request_message(
            self._tool, arguments, f"{summary} ({listed})" if listed else summary
        )
        return await aconverse(self._graph, message, thread_id=self._thread)

    def _values(self, turn: Turn, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The answer that gives the waiting request these values; an argument is nothing else.

        Raises:
            InvalidInput: The request does not take one of them.
        """
        taken = Expected.by(turn.interrupts[0].value).names
        if unknown := arguments.keys() - taken:
            raise InvalidInput(
                f"the conversation waits for {turn.waiting_for}, and its request takes no"
                f" {min(unknown)!r}: give {', '.join(sorted(taken)) or 'no arguments'}, or leave"
                f" out {CONVERSATION!r} to begin another. Nothing was changed"
            )
        content = {"action": "accept", "content": dict(arguments)}
        return {"responses": {turn.waiting_for: content}}

    async def answer(self, interrupt: str, value: Mapping[str, Any]) -> Turn:
        """Answer a question; if it is no longer asked, an earlier copy of this call answered it.

        Declining a confirmation, or a value that is needed, cancels the request.
        """
        try:
            turn = await aconverse(
                self._graph, thread_id=self._thread, resume={interrupt: _dropped_if_denied(value)}
            )
            if (
                turn.interrupts
                and _has_action(value, "decline")
                and turn.waiting_for in value["responses"]
            ):
                cancel = {turn.interrupt_id: {"action": "cancel"}}
                turn = await aconverse(self._graph, thread_id=self._thread, resume=cancel)
        except ConversationError:
            if not _has_action(value, "accept"):  # nor goes on with another caller's yes
                return await self._waiting()
            return await aconverse(self._graph, thread_id=self._thread)
        return turn

    async def _waiting(self) -> Turn:
        """The conversation as it stands; nothing is run."""
        at: RunnableConfig = {"configurable": {"thread_id": self._thread}}
        return read_turn(await self._graph.aget_state(at), {})

    def asks_by_result(self, turn: Turn) -> CallToolResult | InputRequiredResult:
        """The result, which asks the question that waits."""
        form = _form_of(turn)
        if form is None:
            return self.result(turn)
        state = json.dumps({"conversation": self._conversation, "interrupt": turn.interrupts[0].id})
        request = ElicitRequest(
            params=ElicitRequestFormParams(
                message=turn.reply, requested_schema=form["requested_schema"]
            )
        )
        return InputRequiredResult(input_requests={form["key"]: request}, request_state=state)

    async def asks_within(self, context: Context, turn: Turn) -> CallToolResult:
        """The result, once the client has answered all questions."""
        while (form := _form_of(turn)) is not None:
            answered = await context.session.elicit_form(
                turn.reply, form["requested_schema"], context.request_id
            )
            response = answered.model_dump(
                mode="json", exclude_none=True, include={"action", "content"}
            )
            turn = await self.answer(turn.interrupts[0].id, {"responses": {form["key"]: response}})
        return self.result(turn)

    def result(self, turn: Turn) -> CallToolResult:
        """The result of the call, or how to answer its question."""
        text = turn.reply
        if turn.interrupts and _form_of(turn) is None:
            text += (
                f"\n{turn.waiting_for} is asked for by no form: go on in a chat with the thread"
                f" {self._thread}."
            )
        elif turn.waiting_for == CONFIRMATION:
            text += (
                f"\nOnly a person can say so: call {self._tool} again with {CONVERSATION}"
                f" {self._conversation} from a client that shows forms, or go on in a chat with"
                f" the thread {self._thread}."
            )
        elif turn.interrupts:
            text += (
                f"\nCall {self._tool} again with the answer as {turn.waiting_for}, and"
                f" {CONVERSATION} {self._conversation}."
            )
        structured = {CONVERSATION: self._conversation, "waiting_for": turn.waiting_for}
        return CallToolResult(content=[TextContent(text=text)], structured_content=structured)


def _form_of(turn: Turn) -> Mapping[str, Any] | None:
    """The form of the question that waits; None if none does, or it is for a sensitive value."""
    payload = turn.interrupts[0].value if turn.interrupts else {}
    requests = payload.get("requests") if isinstance(payload, Mapping) else None
    return requests[0] if requests else None


def _responses(params: CallToolRequestParams) -> dict[str, Any]:
    responses = params.input_responses or {}
    return {
        key: response.model_dump(mode="json", by_alias=True, exclude_none=True)
        for key, response in responses.items()
    }


def _has_action(value: Mapping[str, Any], action: str) -> bool:
    """Whether each response of an answer has the action."""
    responses = value.get("responses") or {}
    return bool(responses) and all(
        response.get("action") == action for response in responses.values()
    )


def _dropped_if_denied(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """The answer; declining a confirmation cancels the request."""
    if _has_action(value, "decline") and CONFIRMATION in value["responses"]:
        return {"action": "cancel"}
    return value


def _conversation(named: object) -> str:
    """The conversation that a client names, or a new one, whose name nobody can guess."""
    if named is None:
        return str(uuid4())
    if not isinstance(named, str) or not 0 < len(named) <= 200:
        raise MCPError(INVALID_PARAMS, f"{CONVERSATION} is a text of 1 to 200 characters")
    return named
