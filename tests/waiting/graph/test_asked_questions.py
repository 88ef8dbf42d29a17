"""A user's question is answered by the application, else by the catalog.

It is text, and changes nothing else.
"""

from __future__ import annotations

import asyncio
from typing import Any

import museum
import pytest
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from scripted_model import ScriptedModel

from langmem_ext import (
    AskedQuestion,
    DeltaSaver,
    IntentCatalog,
    InvalidInput,
    Turn,
    aconverse,
    build_waiting_graph,
    converse,
)


def talk(answer: Any, *said: str) -> tuple[Turn, dict[str, Any]]:
    with DeltaSaver.open(":memory:") as saver:
        graph = museum.build(answer=answer).compile(checkpointer=saver)
        for text in said:
            turn = converse(graph, text, thread_id="t", now=museum.NOW)
        return turn, dict(graph.get_state({"configurable": {"thread_id": "t"}}).values)


def test_a_question_of_the_users_is_answered_by_a_model_and_then_asked_again() -> None:
    model = ScriptedModel(
        answer=lambda _: "Yes, on the ground floor. /cancel M-100", asked=[], tools=[]
    )
    turn, state = talk(
        lambda asked: model.invoke(asked.text).text, "cancel our visit", "is there a café nearby?"
    )
    assert turn.reply == "Yes, on the ground floor. /cancel M-100\nWhich booking?"
    assert (turn.waiting_for, turn.attempt) == ("booking", 1)
    assert (state["params"], museum.calls_in(state["messages"])) == ({}, [])


def test_it_is_told_what_the_question_is_about_and_what_the_catalog_says() -> None:
    asked: list[AskedQuestion] = []
    turn, _ = talk(asked.append, "cancel our visit", "what's a booking number?")
    [one] = asked
    assert (one.text, one.param and one.param.name, one.intent) == (
        "what's a booking number?",
        "booking",
        "cancel_visit",
    )
    assert one.known == "Number of the booking, it stands in your mail. For example: M-100."
    assert turn.reply == f"{one.known}\nWhich booking?"


def test_at_rest_questions_are_answered_too() -> None:
    assert talk(lambda _: "Upstairs.", "is there a café nearby?")[0].reply == "Upstairs."
    assert (
        talk(lambda _: None, "is there a café nearby?")[0].reply == "I can book and cancel visits."
    )


def test_no_sensitive_value_is_shown_to_it() -> None:
    asked: list[AskedQuestion] = []
    said = (
        "I want to become a member",
        "Bath",
        "family",
        "12345678",
        "is 12345678 the same as my card at the café?",
    )
    talk(asked.append, *said)
    assert "12345678" not in "".join(one.text for one in asked)
    assert asked


def test_one_that_fails_answers_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def fails(_: AskedQuestion) -> str:
        raise RuntimeError("hunter2")

    assert (
        talk(fails, "cancel our visit", "is there a café nearby?")[0].reply
        == "That I can't say.\nWhich booking?"
    )
    assert "hunter2" not in caplog.text


def test_an_async_one_is_for_async_graphs() -> None:
    async def answer(_: AskedQuestion) -> str:
        return "Upstairs."

    async def ask() -> str:
        graph = museum.build(answer=answer).compile(checkpointer=InMemorySaver())
        return (await aconverse(graph, "is there a café nearby?", thread_id="t")).reply

    assert asyncio.run(ask()) == "Upstairs."
    with pytest.raises(InvalidInput, match="aconverse"):
        talk(answer, "is there a café nearby?")


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(InvalidInput, match="answer must be a function"):
        build_waiting_graph(museum.CATALOG, museum.tools(), answer="yes")  # type: ignore[arg-type]


# -- a model that was given, and no function -------------------------------------------------------


class KnowingModel(ScriptedModel):
    """The double: it classifies nothing, and tells what it is given to tell to a question."""

    tells: str | None = None

    def with_structured_output(self, schema: Any, **_: Any) -> Any:
        def answered(messages: Any, _: Any = None) -> dict[str, Any]:
            self.asked.append(messages)
            if "answer" not in schema.model_fields:
                return {}
            if self.tells == "fails":
                raise RuntimeError("hunter2")
            return {"answer": self.tells}

        return RunnableLambda(answered)


def knowing(tells: str | None) -> KnowingModel:
    return KnowingModel(answer=lambda _: "", asked=[], tools=[], tells=tells)


def with_model(model: KnowingModel, *said: str, catalog: IntentCatalog = museum.CATALOG) -> Turn:
    with DeltaSaver.open(":memory:") as saver:
        graph = build_waiting_graph(catalog, museum.tools(), model=model).compile(
            checkpointer=saver
        )
        for text in said:
            turn = converse(graph, text, thread_id="t", now=museum.NOW)
        return turn


def test_a_model_answers_from_what_the_catalog_says_and_the_question_comes_again() -> None:
    model = knowing("Ten euros each. /cancel M-100")
    turn = with_model(model, "cancel our visit", "is there a café nearby?")
    assert (turn.reply, turn.attempt) == ("Ten euros each. /cancel M-100\nWhich booking?", 1)
    instructions, question = (str(message.text) for message in model.asked[-1])
    assert question == "is there a café nearby?"
    assert "number of the booking, it stands in your mail" in instructions.lower()


@pytest.mark.parametrize("tells", [None, "fails"])
def test_where_the_model_knows_nothing_or_fails_the_catalogs_words_are_said(
    tells: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    assert (
        with_model(knowing(tells), "cancel our visit", "is there a café nearby?").reply
        == "That I can't say.\nWhich booking?"
    )
    assert "hunter2" not in caplog.text


def test_with_an_async_graph_the_model_answers_too() -> None:
    async def ask() -> str:
        graph = build_waiting_graph(
            museum.CATALOG, museum.tools(), model=knowing("Upstairs.")
        ).compile(checkpointer=InMemorySaver())
        return (await aconverse(graph, "is there a café nearby?", thread_id="t")).reply

    assert asyncio.run(ask()) == "Upstairs."


def test_while_a_local_value_is_asked_for_no_model_is_shown_a_word() -> None:
    declared = {
        **museum.DATA["catalog"]["params"],
        "booking": {**museum.DATA["catalog"]["params"]["booking"], "local_only": True},
    }
    local = IntentCatalog.from_dict(
        {**museum.DATA["catalog"], "params": declared}, source="museum.yaml"
    )
    model = knowing("Upstairs.")
    with_model(model, "cancel our visit")
    before = len(model.asked)
    turn = with_model(
        model, "cancel our visit", "what is my number, the one with 77 in it?", catalog=local
    )
    assert (turn.waiting_for, len(model.asked)) == ("booking", before)
