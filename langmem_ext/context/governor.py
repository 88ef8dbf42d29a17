"""`ContextGovernor`: the chain with a model behind it, as an object, as a node of a graph, and on demand.

It is the only place that calls a model for the sake of a context. What it decides comes back as events, for the thread's state.
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

from langmem_ext.context.budget import Budget, request_tokens
from langmem_ext.context.configuration import model_named, summary_prompt
from langmem_ext.context.counters import counter_for
from langmem_ext.context.cut.planning import Governed
from langmem_ext.context.cut.request_cache import RequestMemory
from langmem_ext.context.decisions import RESTORE, ContextEvent
from langmem_ext.context.govern import govern
from langmem_ext.context.plan import Plan
from langmem_ext.context.policy import ContextPolicy
from langmem_ext.context.repair.provider import provider_of
from langmem_ext.context.summary.model_call import aask, ask
from langmem_ext.context.summary.summary import ModelRequest
from langmem_ext.context.summary.with_model import LARGE, Sending, aanswered, asking, summing_up
from langmem_ext.errors import ConversationError, InvalidInput
from langmem_ext.messages.memo import Memo
from langmem_ext.messages.tokens import TokenCounter
from langmem_ext.stepping import perform

if TYPE_CHECKING:
    from langmem_ext.settings.model import Settings

EVENTS: Final = "context_events"
REQUEST: Final = "llm_input_messages"
STOP: Final = "context_stop"
SUMMARY_TOKENS: Final = 1_000


class ContextState(TypedDict):
    """The channels of a graph with a governor, to be inherited by its state."""

    messages: Annotated[list[AnyMessage], add_messages]
    context_events: NotRequired[list[ContextEvent]]
    """What was decided so far: small, stored with the thread, inherited by its forks."""
    llm_input_messages: NotRequired[Annotated[list[AnyMessage], UntrackedValue]]
    """What the model is to be sent; made anew for every call, stored for none."""
    context_stop: NotRequired[Annotated[str | None, UntrackedValue]]
    """Why the turn is to be ended instead: the model repeats itself though it was told. None where it is not; an edge may go by it."""


class ContextGovernor(Runnable[Mapping[str, Any], dict[str, Any]]):
    """Chooses what a model is sent of a conversation, and has a model write the summaries if there is one.

    As a node of a graph whose state has the channels of `ContextState` it puts the chosen messages into `llm_input_messages`, for the node
    that calls the model, what it has decided into `context_events`, and why the turn is to be ended, if it is, into `context_stop`. One
    object serves many threads, sync and async.

    Args:
        budget: What a whole request may cost, in tokens, or how a model's window is shared out; by default what the model's profile says.
        model: The chat model that summarises, or its name; with none, extracts stand for summaries.
        policy: How messages are chosen.
        counter: Counts tokens; by default the one that fits the model.
        system: The system prompt that a request has besides.
        tools: The tools that are bound to the model.
        provider: Whose rules a request follows; by default rules that OpenAI and Anthropic both accept.
        prompt: What the summarising model is asked for, in place of the built-in prompt.
        params: Names of the state's `params` that are told again where messages are left out; name none that is sensitive.

    Raises:
        MissingExtra: A model was given by name and the extra `agents` is not installed.
        InvalidInput: There is no such model, or nothing says what a request may cost.

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
        """A governor as settings describe it.

        Args:
            settings: The settings.
            model: The application's chat model, or its name; by default what the setting `model` names. It says what a request may cost, if
                settings do not, and summarises, if there is no `summarization_model`.
            system: The system prompt that a request has besides.
            tools: The tools that are bound to the model.
            provider: Whose rules a request follows; by default those of the application's model.
            params: Names of the state's `params` that are told again where messages are left out.

        Raises:
            SettingsError: The file with the prompt for summaries cannot be used.
            MissingExtra: A model is named and the extra `agents` is not installed, or the counter is not there that the settings ask for.
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

    # -- one request ---------------------------------------------------------------------------------------------------------------------

    def govern(
        self,
        messages: Sequence[BaseMessage],
        events: Sequence[ContextEvent] = (),
        *,
        pins: Collection[str] = (),
        params: Mapping[str, Any] | None = None,
        forced: bool = False,
    ) -> Governed:
        """What the model is sent of these messages.

        Args:
            messages: All of the conversation, oldest first; nothing of it is changed.
            events: What was decided for earlier requests of this conversation.
            pins: Ids of messages that are shown whatever else is not.
            params: What is known of the user's request, by name; told again where messages are left out.
            forced: Whether to leave out what can be, though nothing asks for it.

        Raises:
            ContextOverflow: What must be shown costs more than the budget.
            SummaryFailed: The model wrote no summary, and the policy says to raise; or what the model itself raised.
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
        return await aanswered(asking(messages, events, sending), self._aask, large=len(messages) > LARGE)

    def preview(self, messages: Sequence[BaseMessage], events: Sequence[ContextEvent] = ()) -> Plan:
        """What would be done to a request of these messages, without a model; it prints as a table."""
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

    def sum_up(self, messages: Sequence[BaseMessage], previous: str = "", *, max_tokens: int = SUMMARY_TOKENS, forced: bool = False) -> str:
        """A summary of all of these messages and of the summary before them: the model's, or an extract where there is none or it fails.

        Args:
            messages: What to sum up, oldest first.
            previous: The summary of what was said before them, to be carried on.
            max_tokens: What the summary may cost.
            forced: Whether somebody has asked for it: no extract stands for a model's summary that failed then.

        Raises:
            SummaryFailed: It is forced, and the model wrote no summary; or what the model itself raised.
        """
        return perform(summing_up(messages, previous, max_tokens, self._sending((), None, forced)), self._ask)

    async def asum_up(
        self, messages: Sequence[BaseMessage], previous: str = "", *, max_tokens: int = SUMMARY_TOKENS, forced: bool = False
    ) -> str:
        """Async twin of `sum_up`."""
        steps = summing_up(messages, previous, max_tokens, self._sending((), None, forced))
        return await aanswered(steps, self._aask, large=len(messages) > LARGE)

    def _sending(self, pins: Collection[str], params: Mapping[str, Any] | None, forced: bool) -> Sending:
        return Sending(
            budget=self.budget,
            counter=self.counter,
            # What a user has asked for fails where it cannot be done; it is not replaced by something else.
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

    # -- a node of a graph ---------------------------------------------------------------------------------------------------------------

    def invoke(self, input: Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any) -> dict[str, Any]:
        """The update of a graph's state before its model is called."""
        return _update(input, self.govern(input["messages"], input.get(EVENTS) or (), **self._known(input)))

    async def ainvoke(self, input: Mapping[str, Any], config: RunnableConfig | None = None, **kwargs: Any) -> dict[str, Any]:
        """Async twin of `invoke`."""
        return _update(input, await self.agovern(input["messages"], input.get(EVENTS) or (), **self._known(input)))

    def _known(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """What a state says that must not be lost: the question that waits, and the parameters that may be told."""
        asked = next((m for m in reversed(state["messages"]) if isinstance(m, AIMessage)), None) if state.get("waiting_for_param") else None
        params = state.get("params")
        told = {name: value for name, value in params.items() if name in self.params} if isinstance(params, Mapping) else {}
        return {"pins": (asked.id,) if asked is not None and asked.id else (), "params": told}

    # -- on demand -----------------------------------------------------------------------------------------------------------------------

    def compact(self, graph: Pregel[Any, Any, Any, Any], config: RunnableConfig, *, as_node: str | None = None) -> Plan:
        """Leave out of a thread's requests what can be, now; what was decided is written to its state, its messages stay.

        Args:
            graph: The graph.
            config: Which thread.
            as_node: The node in whose name it is written; only needed where several end a turn at once, and LangGraph asks for one.

        Raises:
            InvalidInput: The config names no thread.
            ConversationError: The thread waits for an answer, or its graph has no channel for what is decided.
            ContextOverflow: What must be shown costs more than the budget.
        """
        state = graph.get_state(_of_thread(config))
        messages, events = _at_rest(graph, state)
        governed = self.govern(messages, events, **self._known(state.values), forced=True)
        if governed.plan.added:
            graph.update_state(config, {EVENTS: list(governed.events)}, as_node)
        return governed.plan

    async def acompact(self, graph: Pregel[Any, Any, Any, Any], config: RunnableConfig, *, as_node: str | None = None) -> Plan:
        """Async twin of `compact`."""
        state = await graph.aget_state(_of_thread(config))
        messages, events = _at_rest(graph, state)
        governed = await self.agovern(messages, events, **self._known(state.values), forced=True)
        if governed.plan.added:
            await graph.aupdate_state(config, {EVENTS: list(governed.events)}, as_node)
        return governed.plan

    def restore(self, graph: Pregel[Any, Any, Any, Any], config: RunnableConfig, *, as_node: str | None = None) -> None:
        """Undo what was decided about a thread: its next request is chosen anew from all of its messages.

        Args:
            graph: The graph.
            config: Which thread.
            as_node: As of `compact`.

        Raises:
            InvalidInput: The config names no thread.
            ConversationError: The thread waits for an answer, or its graph has no channel for what is decided.
        """
        _, events = _at_rest(graph, graph.get_state(_of_thread(config)))
        if any(event != RESTORE for event in events):
            graph.update_state(config, {EVENTS: [RESTORE]}, as_node)

    async def arestore(self, graph: Pregel[Any, Any, Any, Any], config: RunnableConfig, *, as_node: str | None = None) -> None:
        """Async twin of `restore`."""
        _, events = _at_rest(graph, await graph.aget_state(_of_thread(config)))
        if any(event != RESTORE for event in events):
            await graph.aupdate_state(config, {EVENTS: [RESTORE]}, as_node)


def _stated_by(model: BaseChatModel | None) -> Budget:
    try:
        return Budget.of_model(model)
    except InvalidInput as error:
        raise InvalidInput("nothing says what a request may cost: pass `budget`, or a model whose profile says what it takes") from error


def _update(state: Mapping[str, Any], governed: Governed) -> dict[str, Any]:
    update: dict[str, Any] = {REQUEST: governed.messages, STOP: governed.plan.stop}
    return update | {EVENTS: list(governed.events)} if governed.plan.added else update


def _of_thread(config: RunnableConfig) -> RunnableConfig:
    """The config, if it names a thread: LangGraph itself would say no more than which key is missing."""
    if "thread_id" not in (config.get("configurable") or {}):
        raise InvalidInput('the config names no thread: pass {"configurable": {"thread_id": …}}')
    return config


def _at_rest(graph: Pregel[Any, Any, Any, Any], state: StateSnapshot) -> tuple[list[AnyMessage], list[ContextEvent]]:
    """A thread's messages and what was decided about them."""
    if EVENTS not in graph.channels:
        raise ConversationError(f"the graph has no channel {EVENTS!r}: let its state inherit from ContextState, or use ContextMiddleware")
    if state.tasks:
        raise ConversationError("the thread has not ended its turn: answer what it asks, or let it go on, then try again")
    return state.values.get("messages") or [], state.values.get(EVENTS) or []
