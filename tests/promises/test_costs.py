"""Promise: a message costs time in proportion to its length, whatever it says and answers.

So does a page of the inspector that shows it, whatever somebody wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from time import process_time
from typing import Any

import pytest
from catalogs import catalog_named
from fastapi import FastAPI
from fastapi.testclient import TestClient
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from small_graphs import config

from langmem_ext import DeltaSaver, ThreadChatMessageHistory, build_waiting_graph, converse
from langmem_ext.inspector import inspector_router

BEFORE = {
    "at rest": ["hello"],
    "a name for a thing": ["pay", "50"],
    "a story": ["pay", "50", "Ann"],
    "words to write": ["pay", "50", "Ann", "the boiler leaks"],
    "a confirmation": ["pay", "50", "Ann", "the boiler leaks", "get well soon"],
}
HIDDEN = ["visit", "https://example.org", "123456"]
UNITS = [
    "Mr. ", "U.S. ", "a. ", "a\n", "no, ", "because ", "what is it? ", "not 7, 8. ",
    "12 High Street, ",
]  # fmt: skip
THREADS = count()


@tool
def pay(amount: float, recipient: str, reason: str, wording: str) -> str:
    """Pay."""
    return "paid"


@pytest.fixture(scope="module")
def graph() -> Any:
    return build_waiting_graph(catalog_named("message_costs"), [pay]).compile(
        checkpointer=InMemorySaver()
    )


def told(graph: Any, texts: list[str]) -> str:
    """A new thread in which this was said."""
    thread = str(next(THREADS))
    for text in texts:
        converse(graph, text, thread_id=thread)
    return thread


def cost(graph: Any, before: list[str], text: str) -> float:
    """The least CPU time of three turns with this message."""

    def once() -> float:
        thread = told(graph, before)
        began = process_time()
        converse(graph, text, thread_id=thread)
        return process_time() - began

    return min(once() for _ in range(3))


def assert_in_proportion(graph: Any, before: list[str], unit: str, around: str = "{}") -> None:
    """Four times the length does not cost many times the time."""
    short, long = (
        cost(graph, before, around.format((unit * length)[:length])) for length in (4_000, 16_000)
    )
    assert long < 8 * short, f"{unit!r}: {long:.3f} s after {short:.3f} s"


@pytest.mark.parametrize("meets", BEFORE)
def test_four_times_the_length_never_costs_many_times_the_time(graph: Any, meets: str) -> None:
    for unit in UNITS:
        assert_in_proportion(graph, BEFORE[meets], unit)


def test_a_value_that_is_to_be_hidden_may_be_said_any_number_of_times(graph: Any) -> None:
    assert converse(graph, HIDDEN[-1], thread_id=told(graph, HIDDEN[:-1])).waiting_for is None
    for unit in ("www.", "123456.", "1234567.", "a.123456"):
        assert_in_proportion(graph, HIDDEN, unit, "hello {}?")


def test_a_free_text_is_taken_whole_however_long_it_is(graph: Any) -> None:
    for length in (900, 5_000, 50_000):
        story = ("The boiler leaks again, and the kitchen is under water. " * 1_000)[:length]
        state = graph.get_state(config(told(graph, ["pay", "50", "Ann", story.strip()]))).values
        assert state["params"]["reason"].rstrip(".") == story.strip().rstrip("."), length


# -- pages -----------------------------------------------------------------------------------------

LENGTH = 60_000
MESSAGES = 4

TABLE = "|" + "a|" * 3000 + "\n|" + "-|" * 3000 + "\n" + "|a\n" * 16_000
SPARSE = "\n<#\n>-" * 150 + " words and more words" * 3000

HOSTILE = {
    "images": "![" * 30_000,
    "brackets": "[" * LENGTH,
    "emphasis": "*a_" * 20_000,
    "lists": " - a\n" * 12_000,
    "addresses": "<http://a>" * 6000,
    "quotations": "> " * 30_000,
    "underlines": "===\n" * 15_000,
    "a table": TABLE,
    "small tables": ("|a|b|c|d|e|f|g|h|\n" + "|-" * 8 + "|\n" + "a\n" * 40 + "\n") * 200,
    "few marks before many words": SPARSE,
    "brackets and words": "[a " * 500 + "words " * 10_000,
}


def cost_of(messages: Sequence[BaseMessage]) -> tuple[float, str]:
    """CPU seconds that the page of a conversation takes, and the page."""
    saver, app = DeltaSaver(), FastAPI()
    ThreadChatMessageHistory("t", saver).add_messages(messages)
    app.include_router(inspector_router(saver))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        client.get("/")  # what is loaded once is no cost of the page
        before = process_time()
        answer = client.get("/thread", params={"id": "t"})
        after = process_time()
    assert answer.status_code == 200
    return after - before, answer.text


def test_a_page_of_hostile_markdown_costs_about_what_plain_words_cost() -> None:
    plain = min(cost_of([HumanMessage("some words " * 5_450)] * MESSAGES)[0] for _ in range(3))
    for kind, text in HOSTILE.items():
        hostile, page = cost_of([HumanMessage(text[:LENGTH])] * MESSAGES)
        assert hostile < 40 * plain + 0.2, f"{kind}: {hostile:.2f} s of CPU, words {plain:.2f} s"
        assert len(page) < 10 * MESSAGES * LENGTH, kind


def test_nested_data_is_not_a_page_of_indents() -> None:
    nest = "[" + ",".join(["[" * 450 + "]" * 450] * 60) + "]"
    flat = "[" + ",".join(["1"] * 27_000) + "]"
    costs = []
    for text in (flat, nest):
        call = {"name": "look", "args": {"what": [text]}, "id": "c"}
        called = AIMessage("", tool_calls=[call])
        turn = [HumanMessage("Look."), called, ToolMessage(text, tool_call_id="c")]
        cost, page = cost_of(turn * 5)
        costs.append(cost)
        assert len(page) < 15 * 100_000
    assert costs[1] < 20 * costs[0] + 0.2, costs


def test_an_ordinary_answer_is_shown_as_markdown_even_if_it_is_long() -> None:
    section = (
        "## A heading\n\nSome **bold** words, `code` and [a link](https://example.org/page), and"
        " then a few more words that only say something.\n\n- one thing\n- another thing\n\n"
        "| name | value |\n|---|---|\n| speed | 3 |\n| height | 4 |\n\n"
    )
    for text in (section, section * 25):
        _, page = cost_of([AIMessage(text)])
        for tag in ("<h2>A heading", "<strong>bold", "<li>one", "<td>speed", 'href="https://exam'):
            assert tag in page
