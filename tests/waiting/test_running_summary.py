"""The running summary: sentences as they were said, each read once, the log untouched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import desk
import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from langmem_ext import IntentCatalog, build_waiting_graph, converse

CONFIG: Any = {"configurable": {"thread_id": "t"}}
LABEL = "Extract of the earlier conversation (extractive: sentences as they were said):"


@pytest.fixture
def app(tmp_path: Path) -> Any:
    """The order desk, which summarizes what is more than six messages."""
    tools = desk.make_tools(desk.Shop(tmp_path / "shop.db"))
    builder = build_waiting_graph(IntentCatalog.from_dict(desk.CATALOG), tools, summarize_above=6)
    return builder.compile(checkpointer=InMemorySaver())


def say(app: Any, text: str) -> dict[str, Any]:
    """The state after a message."""
    converse(app, text, thread_id="t")
    return dict(app.get_state(CONFIG).values)


def lines(state: dict[str, Any]) -> list[str]:
    """What a summary says, under its label."""
    label, *said = state["summary"]["text"].splitlines()
    assert label == LABEL
    return said


def test_it_is_carried_on_in_whole_turns_and_the_log_is_kept(app: Any) -> None:
    assert say(app, "where is my order O-0?").get("summary") is None
    place = 0
    for number in range(1, 9):
        state = say(app, f"where is my order O-{number}?")
        messages = state["messages"]
        assert len(messages) == 4 * (number + 1)
        if state.get("summary"):
            ids = [message.id for message in messages]
            now = ids.index(state["summary"]["through"]) + 1
            assert place <= now
            assert 0 < len(messages) - now <= 10
            assert isinstance(messages[now], HumanMessage), "no call is parted from its result"
            place = now
    said = lines(state)
    assert len(said) == place // 4 * 3
    for number in range(place // 4):
        assert said[3 * number : 3 * number + 3] == [
            f"user: where is my order O-{number}?",
            "tool: check_order: status on its way, carrier Swift Post",
            f"agent: Order O-{number} is on its way.",
        ]


def test_it_leaves_out_what_a_sensitive_message_says(app: Any) -> None:
    say(app, "save my card 4111111111111111")
    for number in range(1, 5):
        state = say(app, f"where is my order O-{number}?")
    assert lines(state)[0].startswith("user: ")
    assert "4111" not in state["summary"]["text"]


def test_its_length_is_bounded_and_the_latest_stay(app: Any) -> None:
    long = [HumanMessage("word " * 200, id=f"h{number}") for number in range(200)]
    say(app, "where is my order O-0?")
    app.update_state(CONFIG, {"messages": long})
    for number in range(1, 5):
        state = say(app, f"where is my order O-{number}?")
    assert len(state["summary"]["text"]) <= 4000
    assert all(len(line) < 200 for line in lines(state))
    assert lines(state)[-1].startswith("agent: Order O-")


def test_it_is_made_again_when_its_cursor_is_gone(app: Any) -> None:
    for number in range(6):
        state = say(app, f"where is my order O-{number}?")
    app.update_state(CONFIG, {"summary": {"text": "old", "through": "removed"}})
    assert lines(say(app, "where is my order O-6?"))[: len(lines(state))] == lines(state)
