"""`ContextGovernor`: the chain with a model, as an object, as a graph's node, and on demand.

It is the only place that calls a model for the context. What it decides comes back as events, for
the thread's state.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final, NotRequired, Self

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.channels import UntrackedValue
from langgraph.graph.message import add_messages
from langgraph.pregel import Pregel
from langgraph.types import StateSnapshot
from typing_extensions import TypedDict

from langmem_ext._internal.stepping import perform
from langmem_ext.context.budget.budget import Budget, request_tokens
from langmem_ext.context.budget.counters import counter_for
from langmem_ext.context.configuration import model_named, summary_prompt
from langmem_ext.context.cut.planning import Governed
from langmem_ext.context.cut.request_cache import RequestMemory
from langmem_ext.context.decisions import RESTORE, ContextEvent
from langmem_ext.context.govern import govern
from langmem_ext.context.policy import ContextPolicy
from langmem_ext.context.repair.provider import provider_of
from langmem_ext.context.report import Plan
from langmem_ext.context.summary.model_call import aask, ask
from langmem_ext.context.summary.summary import ModelRequest
from langmem_ext.context.summary.with_model import LARGE, Sending, aanswered, asking, summing_up
from langmem_ext.errors import ConversationError, InvalidInput
from langmem_ext.messages.token_costs.memo import Memo
from langmem_ext.messages.token_costs.tokens import TokenCounter

if TYPE_CHECKING:
    from langmem_ext.settings.model import Settings

EVENTS: Final = "context_events"
REQUEST: Final = "llm_input_messages"
STOP: Final = "context_stop"
SUMMARY_TOKENS: Final = 1_000


class ContextState(TypedDict):
    """The channels of a graph with a governor: derive its state from it."""

    messages: Annotated[list[AnyMessage], add_messages]
    context_events: NotRequired[list[ContextEvent]]
    """What was decided so far: small, stored with the thread, inherited by its forks."""
    llm_input_messages: NotRequired[Annotated[list[AnyMessage], UntrackedValue]]
    """What the model is sent; made anew for every call and never stored."""
    context_stop: NotRequired[Annotated[str | None, UntrackedValue]]
    """Why the turn should end: the model repeats itself in spite of a warning. None if it should
    not; route an edge by it."""


class ContextGovernor(Runnable[Mapping[str, Any], dict[str, Any]]):
    """Selects the messages that a model is sent, and has a model write summaries, if there is one.

    As a node of a graph whose state has the channels of `ContextState` it writes the selected
    messages into `llm_input_messages`, for the node that calls the model, its decisions into
    `context_events`, and the reason to end the turn, if any, into `context_stop`. One object serves
    many threads, sync and async.

    Args:
        budget: The limit of a whole request, in tokens, or a `Budget`. Default: from the model's
            profile.
        model: The chat model that writes summaries, or its name; without one, summaries are
            extracts.
        policy: How messages are selected.
        counter: Counts tokens; by default the one that fits the model.
        system: The system prompt of the requests.
        tools: The tools that are bound to the model.
        provider: The provider whose rules a request must satisfy. Default: the rules of both OpenAI
            and Anthropic.
        prompt: The summary prompt, instead of the built-in one.
        params: Names of the state's `params` to repeat when messages are left out; never name a
            sensitive one.

    Raises:
        MissingExtra: A model is passed by name and the extra `agents` is not installed.
        InvalidInput: The model is unknown, or there is no budget.

    Example:
        `builder.add_node("govern", ContextGovernor(budget=8_000))`
    """

    def __init__(
        self,
        *,
        budget: int | Budget | None = None,
        model: BaseChatModel | str | None = None,
        policy: ContextPolicy | None = None,
        counter: TokenCounter | None = None,
        system: str | SystemMessage | None = None,
        tools: Sequence[Any] = (),
        provider: str | None = None,
        prompt: str | None = None,
        params: Collection[str] = (),
    ) -> None:
        self.model = model_named(model)
        self.policy = ContextPolicy.of(policy)
        self.budget = budget if budget is not None else _stated_by(self.model)
        request_tokens(self.budget)
        self.counter = Memo(counter or counter_for(self.model))
        self.system = system
        self.tools = tuple(tools)
        self.provider = provider
        self.prompt = prompt
        self.params = frozenset(params)
        self._memory = RequestMemory()

    @classmethod
    def from_settings(
        cls,
        settings: Settings,
        *,
        model: BaseChatModel | str | None = None,
        system: str | SystemMessage | None = None,
        tools: Sequence[Any] = (),
        provider: str | None = None,
        params: Collection[str] = (),
    ) -> Self:
        """A governor configured by settings.

        Args:
            settings: The settings.
            model: The application's chat model, or its name. Default: the setting `model`. Its
                profile gives the budget, if the settings do not, and it writes summaries, if there
                is no `summarization_model`.
            system: The system prompt of the requests.
            tools: The tools that are bound to the model.
            provider: Whose rules a request follows; by default those of the application's model.
            params: Names of the state's `params` to repeat when messages are left out.

        Raises:
            SettingsError: The file with the summary prompt is unusable.
            MissingExtra: A model is named and the extra `agents` is not installed, or the counter
                is not there that the settings ask for.
            InvalidInput: There is no such model.
        """
        prompt, policy = summary_prompt(settings), ContextPolicy.from_settings(settings)
        sends = model_named(settings.model if model is None else model)
        return cls(
            budget=Budget.from_settings(settings, sends),
            model=model_named(settings.summarization_model) or sends,
            policy=policy,
            counter=counter_for(sends, settings.token_counter),
            system=system,
            tools=tools,
            provider=provider or provider_of(sends),
            prompt=prompt,
            params=params,
        )

    # -- one request -------------------------------------------------------------------------------

    def govern(
        self,
        messages: Sequence[BaseMessage],
        events: Sequence[ContextEvent] = (),
        *,
        pins: Collection[str] = (),
        params: Mapping[str, Any] | None = None,
        forced: bool = False,
    ) -> Governed:
        """Select the messages to send.

        Args:
            messages: The whole conversation, oldest first; it is not changed.
            events: The decisions for earlier requests of this conversation.
            pins: Ids of messages that are always sent.
            params: Known values of the user's request, by name; repeated when messages are left
                out.
            forced: Whether to leave out what can be left out, even if nothing requires it.

        Raises:
            ContextOverflow: What must be sent exceeds the budget.
            SummaryFailed: The model wrote no usable summary, and the policy is to raise; or the
                model's own error.
        """
        sending = self._sending(pins, params, forced)
        return perform(asking(messages, events, sending), self._ask)

    async def agovern(
        self,
        messages: Sequence[BaseMessage],
        events: Sequence[ContextEvent] = (),
        *,
        pins: Collection[str] = (),
        params: Mapping[str, Any] | None = None,
        forced: bool = False,
    ) -> Governed:
        """Async twin of `govern`."""
        sending = self._sending(pins, params, forced)
        return await aanswered(
            asking(messages, events, sending), self._aask, large=len(messages) > LARGE
        )

    def preview(self, messages: Sequence[BaseMessage], events: Sequence[ContextEvent] = ()) -> Plan:
        """The plan for a request of these messages, which prints as a table; calls no model."""
        return govern(
            messages,
            budget=self.budget,
            counter=self.counter,
            events=events,
            policy=self.policy,
            system=self.system,
            tools=self.tools,
            provider=self.provider,
        ).plan

    def sum_up(
        self,
        messages: Sequence[BaseMessage],
        previous: str = "",
        *,
        max_tokens: int = SUMMARY_TOKENS,
        forced: bool = False,
    ) -> str:
        """Summarise these messages and the previous summary, with the model or as an extract.

        An extract is made if there is no model, or if it fails.

        Args:
            messages: The messages to summarise, oldest first.
            previous: The summary of earlier messages, to be extended.
            max_tokens: The maximum size of the summary.
            forced: Whether it was requested explicitly: an extract then never replaces a failed
                model summary.

        Raises:
            SummaryFailed: It is forced, and the model wrote no usable summary; or the model's own
                error.
        """
        return perform(
            summing_up(messages, previous, max_tokens, self._sending((), None, forced)), self._ask
        )

    async def asum_up(
        self,
        messages: Sequence[BaseMessage],
        previous: str = "",
        *,
        max_tokens: int = SUMMARY_TOKENS,
        forced: bool = False,
    ) -> str:
        """Async twin of `sum_up`."""
        steps = summing_up(messages, previous, max_tokens, self._sending((), None, forced))
        return await aanswered(steps, self._aask, large=len(messages) > LARGE)

    def _sending(
        self, pins: Collection[str], params: Mapping[str, Any] | None, forced: bool
    ) -> Sending:
        return Sending(
            budget=self.budget,
            counter=self.counter,
            # What a user has asked for fails where it cannot be done; it is not replaced by
            # something else.
            policy=replace(self.policy, on_failure="raise") if forced else self.policy,
            system=self.system,
            tools=self.tools,
            provider=self.provider,
            pins=pins,
            params=params or {},
            forced=forced,
            prompt=self.prompt,
            has_model=self.model is not None,
            memory=self._memory,
        )

    def _ask(self, request: ModelRequest) -> str:
        assert self.model is not None
        return ask(self.model, request)

    async def _aask(self, request: ModelRequest) -> str:
        assert self.model is not None
        return await aask(self.model, request)

    # -- a node of a graph -------------------------------------------------------------------------

    def invoke(
        self, input: Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        """The update of a graph's state before its model is called."""
        return _update(
            input, self.govern(input["messages"], input.get(EVENTS) or (), **self._known(input))
        )

    async def ainvoke(
        self, input: Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        """Async twin of `invoke`."""
        return _update(
            input,
            await self.agovern(input["messages"], input.get(EVENTS) or (), **self._known(input)),
        )

    def _known(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """The parts of a state to keep: the pending question, and the parameters to repeat."""
        asked = (
            next((m for m in reversed(state["messages"]) if isinstance(m, AIMessage)), None)
            if state.get("waiting_for_param")
            else None
        )
        params = state.get("params")
        repeated = (
            {name: value for name, value in params.items() if name in self.params}
            if isinstance(params, Mapping)
            else {}
        )
        return {"pins": (asked.id,) if asked is not None and asked.id else (), "params": repeated}

    # -- on demand ---------------------------------------------------------------------------------

    def compact(
        self,
        graph: Pregel[Any, Any, Any, Any],
        config: RunnableConfig,
        *,
        as_node: str | None = None,
    ) -> Plan:
        """Compact a thread's requests now: decisions go into its state, its messages stay.

        Args:
            graph: The graph.
            config: Which thread.
            as_node: The node to write as; only needed if several nodes end a turn at once and
                LangGraph asks for one.

        Raises:
            InvalidInput: The config has no thread_id.
            ConversationError: The thread is waiting for an answer, or its graph has no channel for
                the decisions.
            ContextOverflow: What must be sent exceeds the budget.
        """
        state = graph.get_state(_of_thread(config))
        messages, events = _at_rest(graph, state)
        governed = self.govern(messages, events, **self._known(state.values), forced=True)
        if governed.plan.added:
            graph.update_state(config, {EVENTS: list(governed.events)}, as_node)
        return governed.plan

    async def acompact(
        self,
        graph: Pregel[Any, Any, Any, Any],
        config: RunnableConfig,
        *,
        as_node: str | None = None,
    ) -> Plan:
        """Async twin of `compact`."""
        state = await graph.aget_state(_of_thread(config))
        messages, events = _at_rest(graph, state)
        governed = await self.agovern(messages, events, **self._known(state.values), forced=True)
        if governed.plan.added:
            await graph.aupdate_state(config, {EVENTS: list(governed.events)}, as_node)
        return governed.plan

    def restore(
        self,
        graph: Pregel[Any, Any, Any, Any],
        config: RunnableConfig,
        *,
        as_node: str | None = None,
    ) -> None:
        """Undo all decisions about a thread: its next request is selected from all of its messages.

        Args:
            graph: The graph.
            config: Which thread.
            as_node: As in `compact`.

        Raises:
            InvalidInput: The config has no thread_id.
            ConversationError: The thread is waiting for an answer, or its graph has no channel for
                the decisions.
        """
        _, events = _at_rest(graph, graph.get_state(_of_thread(config)))
        if any(event != RESTORE for event in events):
            graph.update_state(config, {EVENTS: [RESTORE]}, as_node)

    async def arestore(
        self,
        graph: Pregel[Any, Any, Any, Any],
        config: RunnableConfig,
        *,
        as_node: str | None = None,
    ) -> None:
        """Async twin of `restore`."""
        _, events = _at_rest(graph, await graph.aget_state(_of_thread(config)))
        if any(event != RESTORE for event in events):
            await graph.aupdate_state(config, {EVENTS: [RESTORE]}, as_node)


def _stated_by(model: BaseChatModel | None) -> Budget:
    try:
        return Budget.of_model(model)
    except InvalidInput as error:
        raise InvalidInput(
            "no token budget: pass `budget`, or a model whose profile has its context window"
        ) from error


def _update(state: Mapping[str, Any], governed: Governed) -> dict[str, Any]:
    update: dict[str, Any] = {REQUEST: governed.messages, STOP: governed.plan.stop}
    return update | {EVENTS: list(governed.events)} if governed.plan.added else update


def _of_thread(config: RunnableConfig) -> RunnableConfig:
    """The config, if it names a thread.

    LangGraph's own error would only name the missing key.
    """
    if "thread_id" not in (config.get("configurable") or {}):
        raise InvalidInput('the config has no thread_id: pass {"configurable": {"thread_id": …}}')
    return config


def _at_rest(
    graph: Pregel[Any, Any, Any, Any], state: StateSnapshot
) -> tuple[list[AnyMessage], list[ContextEvent]]:
    """A thread's messages and what was decided about them."""
    if EVENTS not in graph.channels:
        raise ConversationError(
            f"the graph has no channel {EVENTS!r}: derive its state from ContextState, or use"
            " ContextMiddleware"
        )
    if state.tasks:
        raise ConversationError(
            "the turn of the thread is unfinished: answer its question or finish it, then try again"
        )
    return state.values.get("messages") or [], state.values.get(EVENTS) or []
