"""A model decides only what rules leave open, within the catalog; on failure the rules decide."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.constants import TAG_NOSTREAM
from repository import ROOT
from scripted_model import ScriptedModel

from graphs.shop import TOOLS
from langmem_ext import (
    Classification,
    Classifier,
    ClassifyRequest,
    IntentCatalog,
    InvalidInput,
    MissingExtra,
    ModelClassifier,
    RuleClassifier,
)

NOW = datetime.datetime(2024, 5, 1, 12, 0)
CATALOG = IntentCatalog.from_yaml(ROOT / "graphs" / "intents.yaml").with_tools(TOOLS)
OPEN = "my thing O-777 came in pieces, do something"


class ToolCaller(ScriptedModel):
    """A double that answers by a call of the tool that it is given."""

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self.bind(tools=[tools[0].__name__])


class TalkingOnly(ScriptedModel):
    """A double that cannot call tools."""

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        raise NotImplementedError


def model(answer: Any) -> ScriptedModel:
    """One that always answers so: with arguments of the tool, with text, or by failing."""

    def answered(messages: Sequence[BaseMessage]) -> str | AIMessage:
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, str):
            return answer
        return AIMessage("", tool_calls=[{"name": made.tools[-1][0], "args": answer, "id": "1"}])

    made = ToolCaller(answer=answered, asked=[], tools=[])
    return made


def ask(answer: Any, text: str = OPEN, **known: Any) -> tuple[Classification, ScriptedModel]:
    made = model(answer)
    return ModelClassifier(made).classify(ClassifyRequest(text, CATALOG, now=NOW, **known)), made


def chosen(intent: str | None, **values: str) -> dict[str, Any]:
    return {
        "intent": intent,
        "values": [{"name": name, "value": value} for name, value in values.items()],
    }


async def test_the_model_decides_what_the_rules_leave_open_and_nothing_else() -> None:
    answer = chosen("refund", order_id="O-777", reason="damaged")
    found, made = ask(answer)
    assert (found.intent_id, found.source) == ("refund", "model")
    assert found.params == {"order_id": "O-777", "reason": "damaged"}
    assert len(made.asked) == 1
    for text in ("cancel order O-777", "  "):
        found, made = ask(answer, text)
        assert (found.source, made.asked) == ("rules", [])
    classifier = ModelClassifier(model(answer))
    assert isinstance(classifier, Classifier)
    for text in (OPEN, "cancel order O-777"):
        request = ClassifyRequest(text, CATALOG, now=NOW)
        assert await classifier.aclassify(request) == classifier.classify(request)


def test_the_model_sees_the_catalog_the_question_and_the_conversation() -> None:
    history = [
        HumanMessage("hi there"),
        AIMessage("Good morning"),
        ToolMessage("secret", tool_call_id="1"),
    ]
    _, made = ask(
        chosen(None), history=history, waiting_for="address", prompt="Where to?", unread=True
    )
    [system, human] = made.asked[0]
    for part in (
        "check_order: Check the status of an order",
        "parameter reason (enum, one of: damaged, wrong_item",
        "Where to?",
    ):
        assert part in system.text
    assert human.text == f"User: hi there\nAgent: Good morning\nUser: {OPEN}"


def test_only_values_that_hold_are_taken() -> None:
    answer = chosen(
        "refund", order_id="O-99999", amount="12", reason="because", colour="red", topic="pieces"
    )
    found, _ = ask(answer)
    assert (found.intent_id, found.params) == ("refund", {})
    found, _ = ask(chosen("refund", order_id="777", reason="damaged"), "order 1777 came in pieces")
    assert found.params == {"reason": "damaged"}


async def test_the_rules_stand_when_the_model_fails_or_answers_nonsense(
    caplog: pytest.LogCaptureFixture,
) -> None:
    request = ClassifyRequest(OPEN, CATALOG, now=NOW)
    by_rules = RuleClassifier().classify(request)
    for answer in (
        *(RuntimeError("boom O-777"), TimeoutError(), "just text", {}, {"intent": 7}),
        {"intent": "refund", "values": "O-777"},
        chosen("no_such_intent"),
        chosen(None, order_id="O-777"),
        chosen(""),
    ):
        classifier = ModelClassifier(model(answer))
        assert classifier.classify(request) == by_rules, answer
        assert await classifier.aclassify(request) == by_rules, answer
    talking = TalkingOnly(answer=lambda _: "")
    assert ModelClassifier(talking).classify(request) == by_rules
    assert "the classifier's model failed with RuntimeError; the rules decide" in caplog.text
    assert "O-777" not in caplog.text
    assert "pieces" not in caplog.text


def test_the_models_tokens_are_kept_out_of_the_users_stream() -> None:
    tags: list[str] = []

    class TagsSeen(BaseCallbackHandler):
        def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
            tags.extend(kwargs["tags"])

    made = model(chosen("refund"))
    made.callbacks = [TagsSeen()]
    ModelClassifier(made).classify(ClassifyRequest(OPEN, CATALOG, now=NOW))
    assert TAG_NOSTREAM in tags


def test_other_rules_can_come_first() -> None:
    class AlwaysCheck(RuleClassifier):
        def classify(self, request: ClassifyRequest) -> Classification:
            return Classification("check_order", confidence=1.0)

    made = model(chosen("refund"))
    found = ModelClassifier(made, AlwaysCheck()).classify(ClassifyRequest(OPEN, CATALOG, now=NOW))
    assert (found.intent_id, made.asked) == ("check_order", [])


def test_a_model_given_by_name_needs_its_provider_and_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(
        InvalidInput, match=r"\Athe model 'nobody:nothing' cannot be used: [^\n]+\Z"
    ):
        ModelClassifier("nobody:nothing")
    with pytest.raises(InvalidInput, match="is ambiguous"):
        ModelClassifier("")
    monkeypatch.setitem(sys.modules, "langchain.chat_models", None)
    with pytest.raises(MissingExtra, match=r"langmem-ext\[agents\]"):
        ModelClassifier("openai:gpt-5-mini")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["refund", "order_id", "O-777"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["intent", "values", "name", "value"]), inner)
    ),
    max_leaves=8,
)


@settings(max_examples=5 * settings().max_examples)
@given(
    answer=st.dictionaries(st.sampled_from(["intent", "values"]), JSON), text=st.text(max_size=40)
)
def test_no_answer_and_no_message_break_the_classifier(answer: Any, text: str) -> None:
    found, _ = ask(answer, text)
    assert found.intent_id is None or CATALOG.intent(found.intent_id)


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
    made = model(chosen("ask", email="ann@example.com"))
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
    found = ModelClassifier(made).classify(request)
    assert (found.intent_id, found.params) == ("ask", {})
    sent = "\n".join(message.text for message in made.asked[0])
    assert not any(word in sent for word in ("swordfish", "example.com", "email", "pin"))
    assert "hmm xyz" in sent
    while_asked = ClassifyRequest("swordfish", catalog, waiting_for="pin", prompt="Word?", now=NOW)
    ModelClassifier(made).classify(while_asked)
    assert len(made.asked) == 1, "no model is called while a local parameter is asked for"


def test_a_reason_never_holds_the_users_words() -> None:
    for text in ("cancel order O-777", "xyzzy O-777", "talk to a human about my refund"):
        reason = RuleClassifier().classify(ClassifyRequest(text, CATALOG, now=NOW)).reason
        assert reason
        assert not {"O-777", "xyzzy"} & set(reason.split())
