"""`AskUserMiddleware`: an agent asks its user for missing arguments. Needs the extra `agents`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from uuid import UUID

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.tools import BaseTool, tool
from langgraph.runtime import Runtime

from langmem_ext.errors import InvalidInput, MissingExtra
from langmem_ext.messages.call_ids import with_arguments
from langmem_ext.waiting.catalog.param import NONE, Extensions, Param
from langmem_ext.waiting.interrupts.ask import ask
from langmem_ext.waiting.interrupts.question import for_all_clients
from langmem_ext.waiting.policy.tool_gaps import Asking, Tools, answered, form_for, question_for

try:
    from langchain.agents.middleware import hook_config
    from langchain.agents.middleware.types import AgentMiddleware, AgentState
except ImportError:
    raise MissingExtra("AskUserMiddleware", "agents") from None


class AskUserMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Asks the user for arguments of tool calls that are missing or that the tools would refuse.

    The agent stops with an interrupt, one question for all calls of a message, and goes on with the
    calls completed: `converse(agent, text, thread_id=…)` delivers the answer, and so does every
    client. What is asked for follows from the tools' schemas. A value
    that the user will not give ends the calls of the message, and the model is told why.

    Put it behind `HumanInTheLoopMiddleware` in an agent's `middleware`: hooks after the model run
    from the last to the first, and what a person approves should be complete.

    Args:
        tools: The agent's tools.
        params: How to ask for an argument, by its name or by `tool.argument`, in place of what the
            tool's schema says: a `Param`, or the keys of one.
        extensions: Functions of the application that the params name.
        timeout: Seconds after which a question has expired, for params without their own. An answer
            that comes later is not used: the question is asked once more.

    Raises:
        InvalidInput: A tool's arguments cannot be described, or a param is not one.
        MissingExtra: The extra `agents` is not installed.

    Example:
        `create_agent(model, tools, middleware=[AskUserMiddleware(tools)], checkpointer=saver)`
    """

    def __init__(
        self,
        tools: Sequence[BaseTool],
        *,
        params: Mapping[str, Param | Mapping[str, Any]] | None = None,
        extensions: Extensions = NONE,
        timeout: float | None = None,
    ) -> None:
        super().__init__()
        made = {
            name: _param(name, declaration).with_extensions(extensions)
            for name, declaration in (params or {}).items()
        }
        self._asks = Tools(map(_tool, tools), made)
        self._timeout = timeout

    @hook_config(can_jump_to=["model"])
    def after_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Ask until the calls of the last message are complete, or the user ends them.

        LangGraph runs this anew for every answer, with all answers before it: it changes nothing
        but the state that it returns.
        """
        message = next(
            (entry for entry in reversed(state["messages"]) if isinstance(entry, AIMessage)), None
        )
        asking = self._asks.asking(message.tool_calls if message is not None else ())
        if message is None or not asking.gaps:
            return None
        asked_at, late, again = _asked_at(runtime), False, False
        while asking.gaps and not asking.refused:
            expires = None if late else self._expiry(asking, asked_at)
            expires_at = None if expires is None else expires.isoformat(timespec="seconds")
            payload = for_all_clients(question_for(asking, late=late), form_for(asking), expires_at)
            resumed, again = ask(payload, again=again), True
            now = resumed.at or datetime.now()
            late = expires is not None and now.astimezone(UTC) >= expires
            if resumed.answer is not None and not late:
                asking = answered(asking, resumed.answer, now.replace(tzinfo=None))
        return _update(message, asking)

    @hook_config(can_jump_to=["model"])
    async def aafter_model(
        self, state: AgentState[Any], runtime: Runtime[Any]
    ) -> dict[str, Any] | None:
        """Async twin of `after_model`."""
        return self.after_model(state, runtime)

    def _expiry(self, asking: Asking, asked_at: datetime | None) -> datetime | None:
        """When the question that is asked now expires, in UTC."""
        timeouts = [
            self._timeout if gap.param.timeout is None else gap.param.timeout
            for gap in asking.current()
        ]
        least = min((timeout for timeout in timeouts if timeout is not None), default=None)
        return None if least is None or asked_at is None else asked_at + timedelta(seconds=least)


def _update(message: AIMessage, asking: Asking) -> dict[str, Any]:
    """The message with complete calls; each dropped call has a result that tells the model why."""
    calls = [*asking.calls]
    content = with_arguments(message.content, calls)
    complete: AnyMessage = message.model_copy(update={"tool_calls": calls, "content": content})
    if not asking.refused:
        return {"messages": [complete]}
    reasons = "; ".join(f"{name}: {why}" for name, why in asking.refused.items())
    text = (
        f"Not called. The user was asked for what the calls lack. {reasons} Ask in words, or call"
        " again only what is still wanted."
    )
    results = [
        ToolMessage(text, tool_call_id=call["id"], name=call["name"], status="error")
        for call in asking.calls
    ]
    return {"messages": [complete, *results], "jump_to": "model"}


def _asked_at(runtime: Runtime[Any]) -> datetime | None:
    """When the model made the calls, by its checkpoint's id; the same if the hook is run again."""
    info = runtime.execution_info
    try:
        checkpoint = None if info is None else UUID(info.checkpoint_id)
    except ValueError:
        return None
    if checkpoint is None or checkpoint.version != 6:
        return None
    # Version 6 begins with units of 100 ns since 15 October 1582; four bits say that it is one.
    units = (checkpoint.int >> 80) << 12 | (checkpoint.int >> 64) & 0xFFF
    return datetime(1582, 10, 15, tzinfo=UTC) + timedelta(microseconds=units // 10)


def _param(name: str, declaration: Param | Mapping[str, Any]) -> Param:
    if isinstance(declaration, Param):
        return declaration
    try:
        return Param(**{"name": name.rpartition(".")[2], **declaration})
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"params[{name!r}]: {error}") from None


def _tool(declared: Any) -> BaseTool:
    """A tool; a function becomes one, as `create_agent` has it."""
    return declared if isinstance(declared, BaseTool) else cast("BaseTool", tool(declared))
