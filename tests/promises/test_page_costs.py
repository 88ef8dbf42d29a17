"""A page of the inspector takes about as long as its text is long, whatever somebody wrote."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langmem_ext import DeltaSaver, ThreadChatMessageHistory
from langmem_ext.inspector import inspector_router

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


@contextmanager
def page_of(folder: Path, messages: Sequence[BaseMessage]) -> Iterator[TestClient]:
    with DeltaSaver.open(folder / "memory.db") as saver:
        ThreadChatMessageHistory("t", saver).add_messages(messages)
        app = FastAPI()
        app.include_router(inspector_router(saver))
        with TestClient(app, base_url="http://127.0.0.1") as client:
            yield client


def cost_of(folder: Path, messages: Sequence[BaseMessage]) -> tuple[float, str]:
    """CPU seconds that the page of a conversation takes, and the page."""
    with page_of(folder, messages) as client:
        client.get("/")  # what is loaded once is no cost of the page
        before = time.process_time()
        answer = client.get("/thread", params={"id": "t"})
        after = time.process_time()
    assert answer.status_code == 200
    return after - before, answer.text


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_page_of_hostile_markdown_costs_about_what_plain_words_cost(
    kind: str, tmp_path: Path
) -> None:
    text = HOSTILE[kind][:LENGTH]
    (tmp_path / "plain").mkdir()
    plain, _ = cost_of(tmp_path / "plain", [HumanMessage("some words " * 5_450)] * MESSAGES)
    hostile, page = cost_of(tmp_path, [HumanMessage(text)] * MESSAGES)
    assert hostile < 40 * plain + 0.2, f"{hostile:.2f} s of CPU, plain words {plain:.2f} s"
    assert len(page) < 10 * MESSAGES * LENGTH


def test_nested_data_is_not_a_page_of_indents(tmp_path: Path) -> None:
    nest = "[" + ",".join(["[" * 450 + "]" * 450] * 60) + "]"
    flat = "[" + ",".join(["1"] * 27_000) + "]"
    costs, pages = [], []
    for text in (flat, nest):
        folder = tmp_path / str(len(costs))
        folder.mkdir()
        call = {"name": "look", "args": {"what": [text]}, "id": "c"}
        cost, page = cost_of(
            folder,
            [
                HumanMessage("Look."),
                AIMessage("", tool_calls=[call]),
                ToolMessage(text, tool_call_id="c"),
            ]
            * 5,
        )
        costs.append(cost)
        pages.append(page)
    assert costs[1] < 20 * costs[0] + 0.2, costs
    assert max(map(len, pages)) < 15 * 100_000


def test_an_ordinary_answer_is_shown_as_markdown_even_if_it_is_long(tmp_path: Path) -> None:
    section = (
        "## A heading\n\nSome **bold** words, `code` and [a link](https://example.org/page), and"
        " then a few more words that only say something.\n\n- one thing\n- another thing\n\n"
        "| name | value |\n|---|---|\n| speed | 3 |\n| height | 4 |\n\n"
    )
    (tmp_path / "short").mkdir()
    for folder, text in ((tmp_path / "short", section), (tmp_path, section * 25)):
        _, page = cost_of(folder, [AIMessage(text)])
        for tag in ("<h2>A heading", "<strong>bold", "<li>one", "<td>speed", 'href="https://exam'):
            assert tag in page
