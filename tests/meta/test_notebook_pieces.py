"""What notebooks show: the magics, and objects of the package as HTML in which nothing runs."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import interrupt

from langmem_ext import (
    ConversationMemories,
    DeltaSaver,
    DeltaStore,
    Facts,
    FactSource,
    ThreadChatMessageHistory,
    Threads,
    ThreadStates,
    converse,
    govern,
    mark_sensitive,
)
from langmem_ext.notebook import ProgressBar, fork_tree

pytestmark = pytest.mark.interop

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'>&"
WORD = "alert"


class Tags(HTMLParser):
    """The elements of a piece of HTML, and its words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        assert not [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data: str) -> None:
        self.words += data


def shown(thing: Any) -> str:
    """The words of what a notebook shows, in which nothing stands but text and tables."""
    tags = Tags(thing._repr_html_())
    assert tags.names <= {"table", "tr", "th", "td", "div", "strong", "br", "mark"}
    return tags.words


class Hostile(MessagesState):
    answer: str


def asking(saver: DeltaSaver) -> Any:
    def ask(state: Hostile) -> dict[str, Any]:
        return {"answer": interrupt(HOSTILE)}

    return (
        StateGraph(Hostile)
        .add_node("ask", ask)
        .add_edge(START, "ask")
        .add_edge("ask", END)
        .compile(checkpointer=saver)
    )


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "memory.db")


@pytest.fixture
def saver(path: str) -> Iterator[DeltaSaver]:
    with DeltaSaver.open(path) as saver:
        call: Any = {"name": HOSTILE, "args": {HOSTILE: HOSTILE}, "id": "c1"}
        ThreadChatMessageHistory("t1", saver).add_messages(
            [
                HumanMessage(HOSTILE, id="m1"),
                AIMessage(HOSTILE, id="m2", tool_calls=[call]),
                ToolMessage(HOSTILE, tool_call_id="c1", name="tool", id="m3"),
            ]
        )
        Threads(saver).tag("t1", "vip")
        yield saver


def test_nothing_that_was_said_becomes_part_of_what_is_shown(saver: DeltaSaver) -> None:
    threads, graph = Threads(saver), asking(saver)
    turn = converse(graph, HOSTILE, thread_id="asked")
    memory = ConversationMemories(saver).put("t1", {"main_topics": [HOSTILE]})
    source = FactSource("t1", "m1")
    fact = Facts(DeltaStore(saver)).remember(HOSTILE, subject=HOSTILE, sources=[source])
    things = [
        threads.get("t1"),
        *threads.turns("t1"),
        *threads.search(WORD),
        turn,
        ThreadStates(saver).get("asked"),
        govern(ThreadChatMessageHistory("t1", saver).messages, budget=10_000).plan,
        memory,
        fact,
    ]
    assert [type(thing).__name__ for thing in things if WORD not in shown(thing)] == ["Plan"]


def test_a_sensitive_value_is_not_shown(saver: DeltaSaver) -> None:
    marked = mark_sensitive(HumanMessage("My card is 4111 1111", id="m9"), {"card": "4111 1111"})
    ThreadChatMessageHistory("card", saver).add_messages([marked, AIMessage("Thanks")])
    [turn] = Threads(saver).turns("card")
    assert "Thanks" in shown(turn)
    assert "4111" not in shown(turn)


def test_a_tree_of_forks_names_nodes_as_text(saver: DeltaSaver) -> None:
    def node(state: Hostile) -> dict[str, Any]:
        return {"answer": interrupt("?")}

    builder = StateGraph(Hostile).add_node("<b>x</b>", node).add_edge(START, "<b>x</b>")
    graph = builder.compile(checkpointer=saver, interrupt_before=["<b>x</b>"])
    config: Any = {"configurable": {"thread_id": "tree"}}
    graph.invoke({"messages": []}, config)
    svg = fork_tree(list(graph.get_state_history(config)))._repr_svg_()
    assert "&lt;b&gt;x" in svg
    assert Tags(svg).names == {"svg", "rect", "text", "path"}


# -- in IPython ------------------------------------------------------------------------------------


@pytest.fixture
def shell() -> Iterator[InteractiveShell]:
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "langmem_ext")
    yield shell
    InteractiveShell.clear_instance()


def test_the_magics_show_threads_and_one_of_them(
    shell: InteractiveShell, saver: DeltaSaver, path: str
) -> None:
    listed = shown(shell.run_line_magic("threads", path))
    assert "t1" in listed
    assert "last used" in listed
    one = shown(shell.run_line_magic("thread", "t1"))  # of the database that was named last
    assert one.count(WORD) >= 3
    assert "t1" in shown(shell.run_line_magic("thread", f"t1 '{path}'"))


def test_the_magics_say_what_is_missing(shell: InteractiveShell, path: str) -> None:
    with pytest.raises(Exception, match="%threads DATABASE"):
        shell.run_line_magic("threads", "")
    with pytest.raises(Exception, match="memory.db"):
        shell.run_line_magic("threads", path)
    assert not Path(path).exists()


def test_progress_is_a_bar_that_is_brought_up_to_date(
    shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []

    class Handle:
        def update(self, piece: Any) -> None:
            drawn.append(piece._repr_html_())

    def display(piece: Any, display_id: bool) -> Handle:
        drawn.append(piece._repr_html_())
        return Handle()

    monkeypatch.setattr("IPython.display.display", display)
    bar = ProgressBar("<b>Copying</b>")
    for _ in range(3):
        bar(object())
    assert len(drawn) == 3
    assert drawn[-1].endswith("3")
    assert "<b>" not in drawn[-1]
    assert "<progress" in drawn[-1]
