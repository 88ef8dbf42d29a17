"""A model decides only what rules leave open, within the catalog; on failure the rules decide."""

from __future__ import annotations

import datetime
import logging
import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.callbacks import BaseCallbackHandler, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langgraph.constants import TAG_NOSTREAM
from pydantic import Field
from repository import ROOT

from graphs.shop import TOOLS
from langmem_ext._internal.models import NOSTREAM_TAG, make_model
from langmem_ext.errors import InvalidInput, MissingExtra
from langmem_ext.waiting.catalog.catalog import IntentCatalog
from langmem_ext.waiting.understand.intents.classifier import (
    Classification,
    Classifier,
    ClassifyRequest,
    RuleClassifier,
)
from langmem_ext.waiting.understand.intents.model import ModelClassifier

NOW = datetime.datetime(2024, 5, 1, 12, 0)
CATALOG = IntentCatalog.from_yaml(ROOT / "graphs" / "intents.yaml").with_tools(TOOLS)
OPEN = "my thing O-777 came in pieces, do something"


class ScriptedModel(BaseChatModel):
    """A double of a chat model that calls the bound tool as scripted, or raises the exception."""

    answer: Any = None
    seen: list[list[BaseMessage]] = Field(default_factory=list)
    bound: list[str] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        self.bound.append(tools[0].__name__)
        return self.bind()

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self.seen.append(messages)
        if isinstance(self.answer, Exception):
            raise self.answer
        if isinstance(self.answer, str):
            message = AIMessage(self.answer)
        else:
            message = AIMessage(
                "", tool_calls=[{"name": self.bound[-1], "args": self.answer, "id": "call-1"}]
            )
        return ChatResult(generations=[ChatGeneration(message=message)])


class TagsSeen(BaseCallbackHandler):
    def __init__(self) -> None:
        self.tags: list[str] = []

    def on_chat_model_start(self, *args: Any, tags: list[str] | None = None, **kwargs: Any) -> None:
        self.tags += tags or []


def ask(answer: Any, text: str = OPEN, **known: Any) -> tuple[Classification, ScriptedModel]:
    model = ScriptedModel(answer=answer)
    return ModelClassifier(model).classify(ClassifyRequest(text, CATALOG, now=NOW, **known)), model


def chosen(intent: str | None, **values: str) -> dict[str, Any]:
    return {
        "intent": intent,
        "values": [{"name": name, "value": value} for name, value in values.items()],
    }


def test_the_model_is_not_asked_when_the_rules_are_certain() -> None:
    found, model = ask(chosen("refund"), "cancel order O-777")
    assert (found.intent_id, found.source) == ("cancel_order", "rules")
    assert model.seen == []


def test_the_model_is_not_asked_about_nothing() -> None:
    found, model = ask(chosen("refund"), "  ")
    assert found.intent_id is None
    assert model.seen == []


def test_the_model_decides_what_the_rules_leave_open() -> None:
    found, model = ask(chosen("refund", order_id="O-777", reason="damaged"))
    assert (found.intent_id, found.source, found.params) == (
        "refund",
        "model",
        {"order_id": "O-777", "reason": "damaged"},
    )
    assert len(model.seen) == 1


async def test_sync_and_async_ask_alike() -> None:
    classifier = ModelClassifier(ScriptedModel(answer=chosen("refund", order_id="O-777")))
    request = ClassifyRequest(OPEN, CATALOG, now=NOW)
    assert await classifier.aclassify(request) == classifier.classify(request)
    assert isinstance(classifier, Classifier)
    certain = ClassifyRequest("cancel order O-777", CATALOG, now=NOW)
    assert (await classifier.aclassify(certain)).source == "rules"


def test_the_model_sees_the_catalog_the_question_and_the_conversation() -> None:
    history = [
        HumanMessage("hi there"),
        AIMessage("Good morning"),
        ToolMessage("secret", tool_call_id="1"),
    ]
    _, model = ask(
        chosen(None), history=history, waiting_for="address", prompt="Where to?", unread=True
    )
    [system, human] = model.seen[0]
    for part in (
        "check_order: Check the status of an order",
        "parameter reason (enum, one of: damaged, wrong_item",
        "Where to?",
    ):
        assert part in system.text
    assert human.text == f"User: hi there\nAgent: Good morning\nUser: {OPEN}"


def test_the_model_is_not_shown_what_was_read_as_a_value() -> None:
    _, model = ask(chosen(None), "it is O-777 and came in pieces", values=[(6, 11)])
    assert model.seen[0][1].text == "it is and came in pieces"


def test_only_values_that_hold_are_taken() -> None:
    answer = chosen(
        "refund", order_id="O-99999", amount="12", reason="because", colour="red", topic="pieces"
    )
    found, _ = ask(answer)
    assert (found.intent_id, found.params) == ("refund", {})
    found, _ = ask(chosen("refund", order_id="777", reason="damaged"), "order 1777 came in pieces")
    assert found.params == {"reason": "damaged"}


@pytest.mark.parametrize(
    "answer",
    [
        RuntimeError("boom O-777"),
        TimeoutError(),
        "just text",
        {},
        {"intent": 7},
        {"intent": "refund", "values": "O-777"},
        chosen("no_such_intent"),
        chosen(None, order_id="O-777"),
        chosen(""),
    ],
)
async def test_the_rules_stand_when_the_model_fails_or_answers_nonsense(
    answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    request = ClassifyRequest(OPEN, CATALOG, now=NOW)
    classifier = ModelClassifier(ScriptedModel(answer=answer))
    with caplog.at_level(logging.WARNING):
        assert classifier.classify(request) == RuleClassifier().classify(request)
        assert await classifier.aclassify(request) == RuleClassifier().classify(request)
    assert "O-777" not in caplog.text
    assert "pieces" not in caplog.text


def test_a_failing_model_is_told_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    ask(RuntimeError("boom"))
    assert "the classifier's model failed with RuntimeError; the rules decide" in caplog.text


def test_a_model_without_structured_output_leaves_it_to_the_rules(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class TalkingOnlyModel(ScriptedModel):
        """A test double for a model that cannot call tools."""

        def bind_tools(
            self, tools: Sequence[Any], **kwargs: Any
        ) -> Runnable[LanguageModelInput, AIMessage]:
            raise NotImplementedError

    found = ModelClassifier(TalkingOnlyModel()).classify(ClassifyRequest(OPEN, CATALOG, now=NOW))
    assert (found.intent_id, found.source) == (None, "rules")
    assert "NotImplementedError" in caplog.text


def test_the_models_tokens_are_kept_out_of_the_users_stream() -> None:
    handler = TagsSeen()
    model = ScriptedModel(answer=chosen("refund"), callbacks=[handler])
    ModelClassifier(model).classify(ClassifyRequest(OPEN, CATALOG, now=NOW))
    assert NOSTREAM_TAG == TAG_NOSTREAM
    assert TAG_NOSTREAM in handler.tags


def test_other_rules_can_come_first() -> None:
    class AlwaysCheck(RuleClassifier):
        def classify(self, request: ClassifyRequest) -> Classification:
            return Classification("check_order", confidence=1.0)

    model = ScriptedModel(answer=chosen("refund"))
    found = ModelClassifier(model, AlwaysCheck()).classify(ClassifyRequest(OPEN, CATALOG, now=NOW))
    assert found.intent_id == "check_order"
    assert model.seen == []


def test_a_model_given_by_name_needs_its_provider() -> None:
    with pytest.raises(
        InvalidInput, match=r"\Athe model 'nobody:nothing' cannot be used: [^\n]+\Z"
    ):
        make_model("nobody:nothing")
    with pytest.raises(InvalidInput, match="is ambiguous"):
        ModelClassifier("")


def test_a_model_given_by_name_needs_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain.chat_models", None)
    with pytest.raises(MissingExtra, match=r"langmem-ext\[agents\]"):
        ModelClassifier("openai:gpt-5-mini")


JSON: Callable[[], st.SearchStrategy[Any]] = lambda: st.recursive(  # noqa: E731  # a strategy that is built where it is used
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=6)
    | st.sampled_from(["refund", "order_id", "O-777", "name", "value"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["intent", "values", "name", "value"]), inner)
    ),
    max_leaves=8,
)


@settings(max_examples=100)
@given(
    answer=st.dictionaries(st.sampled_from(["intent", "values"]), JSON()), text=st.text(max_size=40)
)
def test_no_answer_and_no_message_break_the_classifier(answer: Any, text: str) -> None:
    found, _ = ask(answer, text)
    assert found.intent_id is None or CATALOG.intent(found.intent_id)


# -- parameters that are read by rules alone


def test_of_a_local_parameter_the_model_sees_nothing() -> None:
    params = {
        "email": {"type": "email", "local_only": True, "prompt": "What is your e-mail address?"},
        "pin": {"type": "text", "local_only": True, "prompt": "Your secret word?"},
        "topic": {"type": "text"},
    }
    intents = {
        "ask": {"description": "Ask something", "required": ["topic"], "optional": ["email", "pin"]}
    }
    catalog = IntentCatalog.from_dict({"intents": intents, "params": params})
    model = ScriptedModel(
        answer={"intent": "ask", "values": [{"name": "email", "value": "ann@example.com"}]}
    )
    history = [
        AIMessage("Your secret word?"),
        HumanMessage("swordfish"),
        AIMessage("Thank you; I write to ann@example.com."),
        HumanMessage("bob@example.com is better"),
    ]
    text = "hmm xyz, ann@example.com and carl@example.com"
    request = ClassifyRequest(
        text, catalog, history=history, params={"email": "ann@example.com"}, now=NOW
    )
    found = ModelClassifier(model).classify(request)
    assert (found.intent_id, found.params) == ("ask", {})
    sent = "\n".join(message.text for message in model.seen[0])
    assert not any(word in sent for word in ("swordfish", "example.com", "email", "pin"))
    assert "hmm xyz" in sent


def test_while_a_local_parameter_is_asked_for_no_model_is_called() -> None:
    params = {"pin": {"type": "text", "local_only": True}}
    catalog = IntentCatalog.from_dict({"intents": {"ask": {"required": ["pin"]}}, "params": params})
    model = ScriptedModel(answer={"intent": "ask"})
    request = ClassifyRequest(
        "swordfish", catalog, waiting_for="pin", prompt="Your secret word?", now=NOW
    )
    assert ModelClassifier(model).classify(request).intent_id is None
    assert model.seen == []
