"""Contenders that choose what a model is sent: ours, LangChain's middleware, trimming, nothing.

Each is given a conversation's requests one after the other, and keeps between them what it would
keep in an agent: ours its events, the summariser its state, from which it has removed what it
summarised. All count by the rule that they are judged by, but those that say "approximate": so what
is compared is what they decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Protocol

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    SystemMessage,
    convert_to_messages,
    trim_messages,
)
from langchain_core.outputs import ChatGeneration, ChatResult

from benchmarks.recorded_runs import ruled_tokens
from langmem_ext.context.govern import govern
from langmem_ext.errors import ContextOverflow

SUMMARY = (
    "The user wants the task done as first said. "
    + "A step was taken, its outcome was read, and the next one was decided. " * 12
)
"""What the scripted model says of any conversation: about 200 tokens, as a real one's summary of a
few thousand has."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a contender would send.

    Attributes:
        messages: The request; None if it refused to send one.
        nudged: Whether it tells the model that it goes round in circles.
        stopped: Whether it ends the turn for that.
        compacted: Whether it decided anew what is left out.
    """

    messages: list[BaseMessage] | None
    nudged: bool = False
    stopped: bool = False
    compacted: bool = False


class Context(Protocol):
    """One conversation's requests."""

    def __call__(self, messages: list[BaseMessage], *, keep: bool = True) -> Request:
        """What the model is sent for `messages`; with `keep`, the next request follows it."""
        ...


Open = Callable[[int], Context]
"""Makes a contender for one conversation and a budget in tokens."""


def ruled_counter(messages: Iterable[Any]) -> int:
    """The rule as a counter, for whom messages are given in any form."""
    return ruled_tokens(convert_to_messages(list(messages)))


class Untouched:
    """Sends what is stored."""

    def __call__(self, messages: list[BaseMessage], *, keep: bool = True) -> Request:
        """All of it."""
        return Request(messages)


class Governed:
    """Ours: `govern` with its defaults, its events carried on."""

    def __init__(self, budget: int, counter: Any) -> None:
        self._budget, self._counter = budget, counter
        self._events: Sequence[dict[str, Any]] = ()

    def __call__(self, messages: list[BaseMessage], *, keep: bool = True) -> Request:
        """What `govern` says, with the events that it gave for the request before."""
        try:
            governed = govern(
                messages, budget=self._budget, counter=self._counter, events=self._events
            )
        except ContextOverflow:
            return Request(None)
        if keep:
            self._events = governed.events
        nudged = any(event["kind"] == "nudge" for event in governed.plan.added)
        return Request(
            governed.messages,
            nudged,
            governed.plan.stop is not None,
            compacted=any(event["kind"] != "nudge" for event in governed.plan.added),
        )


class Trimmed:
    """`trim_messages` as its documentation sets it for a chat model that calls tools."""

    def __init__(self, budget: int, counter: Any) -> None:
        self._settings: dict[str, Any] = {
            "max_tokens": budget,
            "strategy": "last",
            "token_counter": counter,
            "start_on": "human",
            "end_on": ("human", "tool"),
            "include_system": True,
            "allow_partial": False,
        }

    def __call__(self, messages: list[BaseMessage], *, keep: bool = True) -> Request:
        """The newest messages."""
        return Request(trim_messages(messages, **self._settings))


class ScriptedSummarizer(BaseChatModel):
    """A test double for a chat model: says the same summary whatever it is asked."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(SUMMARY))])


class Summarized:
    """LangChain's `SummarizationMiddleware`, then `ContextEditingMiddleware`, as in an agent.

    It summarises from 85 % of the budget on and keeps the newest half of it; results are cleared
    where that is still too much.
    """

    def __init__(self, budget: int) -> None:
        from langchain.agents.middleware import (  # noqa: PLC0415 (an extra)
            ClearToolUsesEdit,
            ContextEditingMiddleware,
            SummarizationMiddleware,
        )

        self._budget = budget
        self._summarise: Any = SummarizationMiddleware
        self._edit: Any = ContextEditingMiddleware
        self._clear: Any = ClearToolUsesEdit
        self._model = ScriptedSummarizer()
        self._state: list[AnyMessage] = []
        self._seen = 0

    def __call__(self, messages: list[BaseMessage], *, keep: bool = True) -> Request:
        """The summary and what was kept, with what has come since."""
        system = messages[0] if isinstance(messages[0], SystemMessage) else None
        left = self._budget - (ruled_tokens([system]) if system else 0)
        state: Any = [
            *self._state,
            *(message for message in messages[self._seen :] if message is not system),
        ]
        trigger, kept = ("tokens", max(1, left * 85 // 100)), ("tokens", max(1, left // 2))
        summarising = self._summarise(
            self._model, trigger=trigger, keep=kept, token_counter=ruled_counter
        )
        update = summarising.before_model({"messages": state}, None)
        if update:
            state = update["messages"][1:]  # behind the one that removes all
        sent = self._sent(
            self._edit(edits=[self._clear(trigger=left)], token_counter=ruled_counter), state
        )
        if keep:
            self._state, self._seen = state, len(messages)
        return Request([*([system] if system else []), *sent], compacted=update is not None)

    def _sent(self, editing: Any, state: list[AnyMessage]) -> list[BaseMessage]:
        from langchain.agents.middleware.types import (  # noqa: PLC0415 (an extra)
            ModelRequest,
            ModelResponse,
        )

        asked: list[Any] = []

        def model(request: Any) -> Any:
            asked.append(request)
            return ModelResponse(result=[AIMessage("")])

        editing.wrap_model_call(ModelRequest(model=self._model, messages=list(state)), model)
        return list(asked[0].messages)


def contexts(counters: Mapping[str, Any]) -> dict[str, Open]:
    """The contenders by name; LangChain's middleware is among them where its extra is installed.

    Args:
        counters: Ours: `ruled`, exact by the rule, and `approximate`.
    """
    found: dict[str, Open] = {
        "ours": lambda budget: Governed(budget, counters["ruled"]),
        "ours, approximate": lambda budget: Governed(budget, counters["approximate"]),
        "untouched": lambda budget: Untouched(),
        "trim_messages": lambda budget: Trimmed(budget, ruled_counter),
        "trim_messages, approximate": lambda budget: Trimmed(budget, "approximate"),
    }
    if find_spec("langchain"):
        found["summarization + editing"] = Summarized
    return found
