"""`ContextMiddleware`: context governance for agents made by `create_agent`. Needs the extra `agents`."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Annotated, Any, Final, NotRequired, TypeAlias, cast

from langchain.agents.middleware.types import (
    AgentMiddleware,
    AgentState,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
    PrivateStateAttr,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage
from langgraph.types import Command

from langmem_ext.chat_model import make_model
from langmem_ext.context.asking import LARGE, Asking, Sending, aanswered, answered, asking
from langmem_ext.context.budget import Budget
from langmem_ext.context.calling import aask, ask
from langmem_ext.context.counters import counter_for, name_of_model
from langmem_ext.context.decisions import ContextEvent
from langmem_ext.context.govern import fixed_costs
from langmem_ext.context.governor import EVENTS
from langmem_ext.context.planning import Governed
from langmem_ext.context.policy import ContextPolicy
from langmem_ext.context.read_tool_output import output_reader
from langmem_ext.context.refusal import is_overflow
from langmem_ext.context.remembered import RequestMemory
from langmem_ext.messages.calibration import calibrated
from langmem_ext.messages.memo import Memo
from langmem_ext.messages.tokens import TokenCounter

logger = logging.getLogger(__name__)

WINDOW: Final = 128_000
"""Tokens of the window of a model whose profile says nothing."""

STEPS: Final = (1.0, 0.75, 0.5, 0.25)
"""Of the budget, what a request may cost at first, and each time its provider has refused it as too long."""


class AgentContextState(AgentState[Any]):
    """What an agent's state has besides, with this middleware."""

    context_events: NotRequired[Annotated[list[ContextEvent], PrivateStateAttr]]
    """What was decided so far: private, small, inherited by forks."""


Response: TypeAlias = ModelResponse[Any] | AIMessage | ExtendedModelResponse[Any]


class ContextMiddleware(AgentMiddleware[AgentContextState, Any, Any]):
    """Chooses what an agent's model is sent: valid, within the budget, with a stable prefix; the stored messages stay as they are.

    It counts the system prompt, the tools' schemas and the messages. A request that the provider refuses as too long is made smaller and
    sent again. A model that repeats a tool call with the same result is told so, and its turn is ended if that does not help.

    Args:
        budget: What a whole request may cost, in tokens; by default what the profile of the agent's model says, or a window of 128,000.
        model: The chat model that summarises, or its name; by default the agent's own.
        policy: How messages are chosen.
        counter: Counts tokens; by default the one that fits the agent's model.
        prompt: What the summarising model is asked for, in place of the built-in prompt.

    Raises:
        InvalidInput: There is no such model.

    Example:
        `create_agent(model, tools, middleware=[ContextMiddleware(budget=32_000)], checkpointer=saver)`
    """

    state_schema = AgentContextState

    def __init__(
        self,
        *,
        budget: int | Budget | None = None,
        model: BaseChatModel | str | None = None,
        policy: ContextPolicy | None = None,
        counter: TokenCounter | None = None,
        prompt: str | None = None,
    ) -> None:
        super().__init__()
        self.budget = budget
        self.model = make_model(model) if isinstance(model, str) else model
        self.policy = policy or ContextPolicy()
        self.prompt = prompt
        self.tools = [output_reader()] if self.policy.offload else []
        self._counter = Memo(counter) if counter is not None else None
        self._counters: dict[str, Memo] = {}
        self._ratios: dict[str, float] = {}
        self._memory = RequestMemory()

    # -- the two worlds ------------------------------------------------------------------------------------------------------------------

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]) -> Response:
        """Send the model what was chosen, smaller each time that its provider says it is too long."""
        model = self.model or request.model
        for share in STEPS:
            governed = answered(self._steps(request, share), partial(ask, model))
            if governed.plan.stop is not None:
                return _ended(governed)
            try:
                response = handler(request.override(messages=cast("list[AnyMessage]", governed.messages)))
            except Exception as error:
                if share == STEPS[-1] or not is_overflow(error):
                    raise
                _warn(error)
            else:
                return self._noted(request, governed, response)
        raise AssertionError("the last step returns or raises")

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> Response:
        """Async twin of `wrap_model_call`."""
        model = self.model or request.model
        for share in STEPS:
            governed = await aanswered(self._steps(request, share), partial(aask, model), large=len(request.messages) > LARGE)
            if governed.plan.stop is not None:
                return _ended(governed)
            try:
                response = await handler(request.override(messages=cast("list[AnyMessage]", governed.messages)))
            except Exception as error:
                if share == STEPS[-1] or not is_overflow(error):
                    raise
                _warn(error)
            else:
                return self._noted(request, governed, response)
        raise AssertionError("the last step returns or raises")

    # -- one request ---------------------------------------------------------------------------------------------------------------------

    def _steps(self, request: ModelRequest[Any], share: float) -> Asking[Governed]:
        events = cast("list[ContextEvent] | None", request.state.get(EVENTS))
        return asking(request.messages, events or (), self._sending(request, share))

    def _sending(self, request: ModelRequest[Any], share: float) -> Sending:
        budget = self.budget if self.budget is not None else Budget.of_model(request.model, WINDOW)
        whole = budget.request if isinstance(budget, Budget) else budget
        name = name_of_model(request.model)
        return Sending(
            budget=int(whole * share / self._ratios.get(name, 1.0)),
            counter=self._counter_of(request.model, name),
            policy=self.policy,
            system=request.system_message,
            tools=request.tools,
            provider=_provider(request.model),
            prompt=self.prompt,
            has_model=True,
            memory=self._memory,
        )

    def _counter_of(self, model: BaseChatModel, name: str) -> Memo:
        """The counter that fits a model, the same for all of its name, because it remembers what messages cost."""
        if self._counter is not None:
            return self._counter
        if name not in self._counters:
            self._counters[name] = Memo(counter_for(model))
        return self._counters[name]

    def _noted(self, request: ModelRequest[Any], governed: Governed, response: ModelResponse[Any]) -> Response:
        """The response, and for the state what was decided; what the provider has counted puts the next counts right."""
        name = name_of_model(request.model)
        counter = self._counter_of(request.model, name)
        counted = governed.plan.after + sum(fixed_costs(request.system_message, request.tools, counter).values())
        for message in response.result:
            if isinstance(message, AIMessage):
                usage = cast("Mapping[str, Any] | None", message.usage_metadata)
                self._ratios[name] = calibrated(self._ratios.get(name, 1.0), counted, usage)
        return _with_events(response, governed)


def _provider(model: BaseChatModel) -> str | None:
    """Whose model it is, as LangChain tells LangSmith; None where it does not say."""
    try:
        return model._get_ls_params().get("ls_provider")
    except (AttributeError, TypeError):
        return None


def _ended(governed: Governed) -> Response:
    """The answer that ends a turn in place of the model's."""
    return _with_events(ModelResponse(result=[AIMessage(governed.plan.stop or "")]), governed)


def _with_events(response: ModelResponse[Any], governed: Governed) -> Response:
    if not governed.plan.added:
        return response
    return ExtendedModelResponse(response, Command(update={EVENTS: list(governed.events)}))


def _warn(error: Exception) -> None:
    # Its text may hold what was said.
    logger.warning("the provider refused a request as too long (%s): a shorter one is sent", type(error).__name__)
