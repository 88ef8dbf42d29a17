"""Promise: interrupts of other graphs are answered in words, and no answer is lost or misplaced."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asking import CONFIG, Asking, asking
from desk import KILLED, kill_at
from hypothesis import strategies as st
from langchain_core.messages import AIMessage
from langgraph.types import Command, interrupt
from pydantic import BaseModel, Field, ValidationError
from savers import BACKENDS, brief_saver

from langmem_ext import DeltaSaver, Threads, ThreadStates, converse, examine

FILE = next(backend for backend in BACKENDS if backend.name == "file")


class Person(BaseModel):
    name: str
    age: int = Field(ge=0)


FORM = {
    "key": "seat",
    "message": "Which seat?",
    "mode": "form",
    "requested_schema": Person.model_json_schema(),
}
LINK = {"key": "pay", "message": "Please pay.", "mode": "url", "url": "https://pay.example"}


def mcp(*requests: dict[str, Any]) -> Callable[[Asking], dict[str, Any]]:
    """As langchain's adapter asks and reads: it fails for what is no answer to each."""

    def node(state: Asking) -> dict[str, Any]:
        answers = interrupt(
            {"type": "mcp_elicitation", "tool_name": "book", "requests": list(requests)}
        )["responses"]
        for request in requests:
            answer = answers[request["key"]]
            assert answer["action"] in ("accept", "decline", "cancel")
            if answer["action"] == "accept" and request["mode"] == "form":
                Person.model_validate(answer["content"])
        return {}

    return node


def inbox(state: Asking) -> dict[str, Any]:
    config = {
        "allow_accept": True,
        "allow_edit": True,
        "allow_respond": False,
        "allow_ignore": True,
    }
    [answer] = interrupt(
        [
            {
                "action_request": {"action": "pay", "args": {"amount": 5}},
                "config": config,
                "description": "Pay 5?",
            }
        ]
    )
    args = {
        "accept": lambda: answer["args"],
        "edit": lambda: answer["args"]["args"].keys(),
        "ignore": lambda: None,
    }
    args[answer["type"]]()
    return {"answer": answer}


def declared(state: Asking) -> dict[str, Any]:
    person = interrupt(
        {
            "message": "Who?",
            "reason": "input_required",
            "responseSchema": Person.model_json_schema(),
        }
    )
    return {"answer": Person.model_validate(person).age}


def typed(state: Asking) -> dict[str, Any]:
    return {"answer": interrupt("Who?", response_schema=Person).age}


def chosen(state: Asking) -> dict[str, Any]:
    return {
        "answer": {"card": 1, "voucher": 2}[
            interrupt({"question": "How?", "options": ["card", "voucher"]})
        ]
    }


GRAPHS: dict[str, tuple[tuple[Callable[[Asking], dict[str, Any]], ...], list[str]]] = {
    "a form": ((mcp(FORM),), ["name: Ada, age: 40"]),
    "a form and a link": ((mcp(FORM, LINK),), ["cancel"]),
    "the inbox": ((inbox,), ["edit amount to 20"]),
    "a schema": ((declared,), ["name is Ada and age is 40"]),
    "a type": ((typed,), ['{"name": "Ada", "age": 40}']),
    "options": ((chosen,), ["the second one"]),
    "two at once": ((declared, mcp(LINK)), ["name: Ada, age: 40", "done"]),
}
"""Nodes that ask, and what answers them one after the other."""

FORMS = st.sampled_from(
    [
        "name: Ada",
        "age: -1, name: Ada",
        "yes",
        "done",
        "the third one",
        "last",
        "edit amount to much",
        "ignore",
        '{"responses": {}}',
        '{"responses": {"seat": {"action": "accept"}}}',
        '{"name": 7, "age": 1}',
        '[{"type": "accept"}]',
        '[{"type": "edit", "args": {"args": 3}}]',
        '{"seat": {"action": "accept", "content": {}}}',
    ]
)


@pytest.mark.parametrize("kind", GRAPHS)
def test_people_answer_in_words(kind: str, tmp_path: Path) -> None:
    nodes, answers = GRAPHS[kind]
    with brief_saver(FILE, tmp_path) as saver:
        graph = asking(saver, *nodes)
        turn = converse(graph, "go", thread_id="t")
        assert len(turn.interrupts) == len(answers)
        for left, text in reversed([*enumerate(reversed(answers))]):
            assert "{" not in turn.reply
            assert ("more to answer after this" in turn.reply) == (left > 0)
            turn = converse(graph, text, thread_id="t")
            assert len(turn.interrupts) == left


@pytest.mark.parametrize("kind", ["a form", "a schema", "two at once"])
def test_answers_are_resumed_together_by_id(kind: str, tmp_path: Path) -> None:
    nodes, _ = GRAPHS[kind]
    with brief_saver(FILE, tmp_path) as saver:
        graph = asking(saver, *nodes)
        ids = [one.id for one in converse(graph, "go", thread_id="t").interrupts]
        sent = [{"name": "Ada", "age": 40}, {"action": "accept"}]
        assert not converse(
            graph, thread_id="t", resume=dict(zip(ids, sent, strict=False))
        ).interrupts
        converse(graph, "go", thread_id="t")
        each = {
            one.id: json.dumps(answer)
            for one, answer in zip(graph.get_state(CONFIG).interrupts, sent, strict=False)
        }
        text = json.dumps(each) if len(each) > 1 else next(iter(each.values()))
        assert not converse(graph, text, thread_id="t").interrupts


# -- several at once, and the death of the process -------------------------------------------------


def of_each(saver: Any, ran: Callable[[str], object] = str) -> Any:
    """Two nodes that ask at once, and a record of how often each went on from its answer."""

    def asks(name: str) -> Callable[[Asking], dict[str, Any]]:
        def node(state: Asking) -> dict[str, Any]:
            answer = interrupt(f"{name}?")
            ran(name)
            return {"messages": [AIMessage(f"{name}: {answer}", id=name)]}

        return node

    return asking(saver, asks("Name"), asks("Town"))


def texts_of(graph: Any, thread_id: str = "t") -> list[str]:
    """What the thread's messages say."""
    state = graph.get_state({"configurable": {"thread_id": thread_id}})
    return [one.text for one in state.values["messages"]]


SAID_TO = {"Name?": "Ada", "Town?": "Rome"}


def say_all(graph: Any) -> None:
    """Bring the conversation to its end, from wherever it is."""
    turn = converse(graph, thread_id="t")
    if not graph.get_state(CONFIG).values.get("messages"):
        turn = converse(graph, "go", thread_id="t")
    while turn.interrupts:
        turn = converse(graph, SAID_TO[turn.interrupts[0].value], thread_id="t")


@pytest.mark.process
@pytest.mark.parametrize("when", ["before", "after"])
def test_what_was_answered_outlives_the_process_wherever_it_dies(tmp_path: Path, when: str) -> None:
    for call in range(1, 40):
        url = str(tmp_path / f"{call}.db")
        if (pid := os.fork()) == 0:
            saver = DeltaSaver.open(url)
            kill_at(saver, call, when)
            say_all(of_each(saver))
            os._exit(0)
        died = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == KILLED
        with DeltaSaver.open(url) as saver:
            graph = of_each(saver)
            say_all(graph)
            assert texts_of(graph) == ["go", "Name: Ada", "Town: Rome"]
            assert examine(saver).ok
        if not died:
            break
    assert call > 5


def test_questions_that_wait_together_are_resumed_together_in_another_process_too(url: str) -> None:
    ran: list[str] = []
    with DeltaSaver.open(url) as saver:
        graph = of_each(saver, ran.append)
        assert converse(graph, "go", thread_id="t").reply.startswith("Name?")
        turn = converse(graph, "Ada", thread_id="t")
        assert turn.reply == "Town?"
        assert [one.value for one in turn.interrupts] == ["Town?"]
    with DeltaSaver.open(url) as saver:
        state = ThreadStates(saver).get("t").state
        assert state is not None
        assert [one.value for one in state.interrupts] == ["Town?"]
        assert Threads(saver).fork("t", to="copy").id == "copy"
        graph = of_each(saver, ran.append)
        assert converse(graph, thread_id="t").reply == "Town?"
        assert ran == []
        converse(graph, "Rome", thread_id="t")
        assert texts_of(graph) == ["go", "Name: Ada", "Town: Rome"]
        assert sorted(ran) == ["Name", "Town"]
        ran.clear()
        converse(graph, "Oslo", thread_id="copy")
        assert texts_of(graph, "copy") == ["go", "Name: Ada", "Town: Oslo"]
        assert examine(saver).ok


def test_an_answer_that_is_held_can_be_taken_back(url: str) -> None:
    with DeltaSaver.open(url) as saver:
        graph = of_each(saver)
        converse(graph, "go", thread_id="t")
        converse(graph, "Ada", thread_id="t")
        assert Threads(saver).rewind("t")
        assert converse(graph, thread_id="t").reply.startswith("Name?")
        converse(graph, "Eve", thread_id="t")
        converse(graph, "Rome", thread_id="t")
        assert texts_of(graph) == ["go", "Name: Eve", "Town: Rome"]


def test_a_question_that_a_program_answers_meanwhile_is_not_answered_again(url: str) -> None:
    """What is held is to one question, and is of no use when another has answered that."""
    with DeltaSaver.open(url) as saver:
        graph = of_each(saver)
        converse(graph, "go", thread_id="t")
        name, town = graph.get_state(CONFIG).interrupts
        converse(graph, "Ada", thread_id="t")
        graph.invoke(Command(resume={name.id: "Eve"}), CONFIG)
        assert converse(graph, thread_id="t").interrupts == (town,)
        converse(graph, "Rome", thread_id="t")
        assert texts_of(graph) == ["go", "Name: Eve", "Town: Rome"]


def test_what_is_held_is_used_when_a_program_answers_the_last_question(url: str) -> None:
    with DeltaSaver.open(url) as saver:
        graph = of_each(saver)
        converse(graph, "go", thread_id="t")
        _, town = graph.get_state(CONFIG).interrupts
        converse(graph, "Ada", thread_id="t")
        graph.invoke(Command(resume={town.id: "Rome"}), CONFIG)
        assert not converse(graph, thread_id="t").interrupts
        assert texts_of(graph) == ["go", "Name: Ada", "Town: Rome"]


# -- answers that LangGraph has refused ------------------------------------------------------------


def then_another(state: Asking) -> dict[str, Any]:
    name = interrupt("Who?", response_schema=Person).name
    return {"answer": [name, interrupt("Delete everything?")]}


@pytest.mark.parametrize("by_id", [False, True])
@pytest.mark.parametrize("rewound", [False, True])
def test_an_answer_that_langgraph_refused_answers_no_later_question(
    url: str, by_id: bool, rewound: bool
) -> None:
    """LangGraph keeps one that was given without an id, and gives it to what the step asks next."""
    with DeltaSaver.open(url) as saver:
        graph = asking(saver, then_another)
        [who] = converse(graph, "go", thread_id="t").interrupts
        with pytest.raises(ValidationError):
            graph.invoke(Command(resume={"foo": 1}), CONFIG)
        ada: Any = {"name": "Ada", "age": 40}
        if rewound:
            Threads(saver).rewind("t")
            graph.invoke(Command(resume={who.id: ada} if by_id else ada), CONFIG)
        else:
            converse(graph, thread_id="t", resume={who.id: ada} if by_id else ada)
        assert [one.value for one in graph.get_state(CONFIG).interrupts] == ["Delete everything?"]
        converse(graph, "no", thread_id="t")
        assert graph.get_state(CONFIG).values["answer"] == ["Ada", "no"]
        assert examine(saver).ok
