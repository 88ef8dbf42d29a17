"""`ContextMiddleware`: context governance for `create_agent`.

Needs the extra `agents`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, Self, TypeAlias, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage
from langgraph.types import Command

from langmem_ext._internal.stepping import perform
from langmem_ext.context.budget.budget import WINDOW, Budget, request_tokens
from langmem_ext.context.budget.counters import Kind, counter_for, name_of_model
from langmem_ext.context.budget.refusal import Shrinking
from langmem_ext.context.configuration import model_named, summary_prompt
from langmem_ext.context.cut.planning import Governed
from langmem_ext.context.cut.request_cache import RequestMemory, UnsentDecisions
from langmem_ext.context.decisions import ContextEvent
from langmem_ext.context.govern import fixed_costs
from langmem_ext.context.governor import EVENTS
from langmem_ext.context.policy import ContextPolicy
from langmem_ext.context.repair.provider import provider_of
from langmem_ext.context.summary.model_call import aask, ask
from langmem_ext.context.summary.with_model import LARGE, Asking, Sending, aanswered, asking
from langmem_ext.context.tool_output.reader import output_reader
from langmem_ext.errors import ContextOverflow, MissingExtra
from langmem_ext.messages.token_costs.calibration import calibrated
from langmem_ext.messages.token_costs.memo import Memo
from langmem_ext.messages.token_costs.tokens import TokenCounter

if TYPE_CHECKING:
    from langmem_ext.settings.model import Settings

try:
    from langchain.agents.middleware.types import (
        AgentMiddleware,
        AgentState,
        ExtendedModelResponse,
        ModelRequest,
        ModelResponse,
        PrivateStateAttr,
    )
    from langchain.agents.structured_output import AutoStrategy, ProviderStrategy, ToolStrategy
except ImportError:
    raise MissingExtra("ContextMiddleware", "agents") from None

logger = logging.getLogger(__name__)


class AgentContextState(AgentState[Any]):
    """What an agent's state has besides, with this middleware."""

    context_events: NotRequired[Annotated[list[ContextEvent], PrivateStateAttr]]
    """What was decided so far: private, small, inherited by forks."""


Budgeting: TypeAlias = Callable[[BaseChatModel], int | Budget]
"""What a request to an agent's model may cost."""

Response: TypeAlias = ModelResponse[Any] | AIMessage | ExtendedModelResponse[Any]


class ContextMiddleware(AgentMiddleware[AgentContextState, Any, Any]):
    """Selects what an agent's model is sent: valid, within the budget, with a stable prefix.

    Stored messages do not change.

    It counts the system prompt, the schemas of the tools and of the response format, and the
    messages. A request that the provider refuses as too long is shortened and sent again. A model
    that repeats a tool call with the same result is warned, and its turn ends if that does not
    help.

    Put it last in an agent's `middleware`, so that what others add to a request is counted, and
    their retries are selected again.

    Args:
        budget: The limit of a whole request, in tokens, or a function of the agent's model that
            returns it. Default: from the model's profile, else a window of 128,000.
        model: The chat model that writes summaries, or its name. Default: the agent's own.
        policy: How messages are selected.
        counter: A token counter, or its kind: `auto`, the one for the agent's model, `approximate`
            or `tiktoken`.
        prompt: The summary prompt, instead of the built-in one.

    Raises:
        MissingExtra: The extra `agents` is not installed.
        InvalidInput: The model is unknown, or the budget is invalid.

    Example:
        `create_agent(model, tools, middleware=[ContextMiddleware(budget=32_000)],
        checkpointer=saver)`
    """

    state_schema = AgentContextState

    def __init__(
        self,
        *,
        budget: int | Budget | Budgeting | None = None,
        model: BaseChatModel | str | None = None,
        policy: ContextPolicy | None = None,
        counter: TokenCounter | Kind = "auto",
        prompt: str | None = None,
    ) -> None:
        super().__init__()
        if budget is not None and not callable(budget):
            request_tokens(budget)
        self.budget = budget
        self.model = model_named(model)
        self.policy = ContextPolicy.of(policy)
        self.prompt = prompt
        self.tools = [output_reader()] if self.policy.offload else []
        self._kind: Kind = counter if isinstance(counter, str) else "auto"
        self._counter = None if isinstance(counter, str) else Memo(counter)
        self._counters: dict[str, Memo] = {}
        self._ratios: dict[str, float] = {}
        self._taken: dict[str, int] = {}
        self._memory = RequestMemory()
        self._unsent = UnsentDecisions()

    @classmethod
    def from_settings(cls, settings: Settings, *, model: BaseChatModel | str | None = None) -> Self:
        """A middleware configured by settings.

        Args:
            settings: The settings.
            model: The chat model that writes summaries, or its name. Default:
                `summarization_model`, else the agent's own.

        Raises:
            SettingsError: The file with the summary prompt is unusable.
            MissingExtra: A model is named and its package is not installed.
            InvalidInput: There is no such model.
        """
        return cls(
            budget=partial(Budget.from_settings, settings),
            model=settings.summarization_model if model is None else model,
            policy=ContextPolicy.from_settings(settings),
            counter=settings.token_counter,
            prompt=summary_prompt(settings),
        )

    # -- the two worlds ----------------------------------------------------------------------------

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> Response:
        """Send the selected messages; fewer each time the provider refuses them as too long."""
        call = _Call(self, request)
        while True:
            try:
                governed = perform(call.steps(), partial(ask, call.summarises))
            except ContextOverflow as overflow:
                raise overflow from call.size.refused
            if governed.plan.stop is not None:
                return call.ended(governed)
            try:
                response = handler(call.chosen(governed))
            except Exception as error:
                call.refused(governed, error)
            else:
                return call.delivered(governed, response)

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> Response:
        """Async twin of `wrap_model_call`."""
        call = await asyncio.to_thread(_Call, self, request)  # an encoding may have to be read
        while True:
            try:
                governed = await aanswered(
                    call.steps(),
                    partial(aask, call.summarises),
                    large=len(request.messages) > LARGE,
                )
            except ContextOverflow as overflow:
                raise overflow from call.size.refused
            if governed.plan.stop is not None:
                return call.ended(governed)
            try:
                response = await handler(call.chosen(governed))
            except Exception as error:
                call.refused(governed, error)
            else:
                return call.delivered(governed, response)

    # -- what is known of a model ------------------------------------------------------------------

    def _counter_of(self, model: BaseChatModel) -> Memo:
        """The counter for a model, cached by the model's name because it remembers costs."""
        if self._counter is not None:
            return self._counter
        name = name_of_model(model)
        if name not in self._counters:
            self._counters[name] = Memo(counter_for(model, self._kind))
        return self._counters[name]

    def _limit_of(self, model: BaseChatModel) -> int:
        """The maximum of a request to a model; no more than it accepted after refusing one."""
        name = name_of_model(model)
        budget = self.budget(model) if callable(self.budget) else self.budget
        if budget is None:
            budget = Budget.of_model(model, WINDOW)
        limit = int(request_tokens(budget) / self._ratios.get(name, 1.0))
        return min(limit, self._taken.get(name, limit))

    def _learn(
        self, model: BaseChatModel, counted: int, response: ModelResponse[Any], taken: int | None
    ) -> None:
        """Put the next counts right by what the provider has counted.

        Args:
            model: The model that was sent a request.
            counted: What that costs, as the counter counts.
            response: What the model answered.
            taken: What the request might have cost, if a larger one was refused.
        """
        name = name_of_model(model)
        if taken is not None:
            self._taken[name] = taken
        for message in response.result:
            if isinstance(message, AIMessage):
                usage = cast("Mapping[str, Any] | None", message.usage_metadata)
                self._ratios[name] = calibrated(self._ratios.get(name, 1.0), counted, usage)


class _Call:
    """One call of an agent's model: what it is sent, and what comes of that.

    Attributes:
        summarises: The model that is asked for a summary.
        size: What the request may cost.
    """

    def __init__(self, middleware: ContextMiddleware, request: ModelRequest[Any]) -> None:
        self._middleware = middleware
        self._request = request
        self._earlier = cast("Sequence[ContextEvent]", request.state.get(EVENTS) or ())
        self._events = middleware._unsent.take(request.messages, self._earlier)
        self._counter = middleware._counter_of(request.model)
        self._tools = [*request.tools, *_schemas(request.response_format)]
        self.summarises = middleware.model or request.model
        self.size = Shrinking(middleware._limit_of(request.model))

    def steps(self) -> Asking[Governed]:
        """The steps that choose the messages."""
        middleware, request = self._middleware, self._request
        sending = Sending(
            budget=self.size.limit,
            counter=self._counter,
            policy=middleware.policy,
            system=request.system_message,
            tools=self._tools,
            provider=provider_of(request.model, request.tools, **request.model_settings),
            prompt=middleware.prompt,
            has_model=True,
            memory=middleware._memory,
        )
        return asking(request.messages, self._events, sending)

    def chosen(self, governed: Governed) -> ModelRequest[Any]:
        """The request with the chosen messages."""
        return self._request.override(messages=cast("list[AnyMessage]", governed.messages))

    def refused(self, governed: Governed, error: Exception) -> None:
        """Make the next request smaller; this one's decisions are kept, and so is its summary.

        Raises:
            Exception: The error itself, if it does not say that the request is too long, or says so
                once too often.
        """
        self._events = governed.events
        try:
            self.size.after(error, self._cost(governed))
        except Exception:
            if self._decided(governed):
                self._middleware._unsent.keep(
                    self._request.messages, self._earlier, governed.events
                )
            raise
        # Its text may hold what was said.
        logger.warning(
            "the provider refused a request as too long (%s): retrying with a shorter one",
            type(error).__name__,
        )

    def delivered(self, governed: Governed, response: ModelResponse[Any]) -> Response:
        """The response, and for the state what was decided."""
        taken = self.size.limit if self.size.refused is not None else None
        self._middleware._learn(self._request.model, self._cost(governed), response, taken)
        if not self._decided(governed):
            return response
        return ExtendedModelResponse(response, Command(update={EVENTS: list(governed.events)}))

    def ended(self, governed: Governed) -> Response:
        """The answer that ends a turn in place of the model's."""
        return self.delivered(governed, ModelResponse(result=[AIMessage(governed.plan.stop or "")]))

    def _decided(self, governed: Governed) -> bool:
        return list(governed.events) != list(self._earlier)

    def _cost(self, governed: Governed) -> int:
        return governed.plan.after + sum(
            fixed_costs(self._request.system_message, self._tools, self._counter).values()
        )


def _schemas(response_format: Any) -> list[dict[str, Any]]:
    """What a response format adds to a request, as tools."""
    if response_format is None:
        return []
    if isinstance(response_format, ProviderStrategy):
        specs = [response_format.schema_spec]
    elif isinstance(response_format, ToolStrategy):
        specs = response_format.schema_specs
    else:
        specs = ToolStrategy(
            response_format.schema if isinstance(response_format, AutoStrategy) else response_format
        ).schema_specs
    functions = (
        {"name": spec.name, "description": spec.description, "parameters": spec.json_schema}
        for spec in specs
    )
    return [{"type": "function", "function": function} for function in functions]
