"""Promise: whatever is typed into a chat, at any interrupt, the thread can be answered after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import desk
import pytest
from asking import Asking, agent, asking
from hypothesis import given
from hypothesis import strategies as st
from langgraph.types import StateSnapshot, interrupt
from savers import BACKENDS, Backend, brief_saver
from test_approvals import SAID
from test_ask_user import PARALLEL, WHOLE
from test_ask_user import agent as asking_agent
from test_foreign_interrupts import FORMS, GRAPHS

from langmem_ext import DeltaSaver, Settings, examine
from langmem_ext.cli.chat.chat import talk
from langmem_ext.cli.chat.open_chat import OpenChat
from langmem_ext.threads.states.held import Standing


class Typist:
    """A person at a terminal: types these lines, and reads what is shown."""

    interactive = True

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.shown: list[str] = []

    def type(self, at: OpenChat, *lines: str) -> None:
        """Chat until these lines are typed."""
        self.lines = [*lines]
        assert talk(at, self) == 0

    def read(self, prefill: str) -> str | None:
        return self.lines.pop(0) if self.lines else None

    def confirm(self, question: str) -> bool:
        return False

    @contextmanager
    def working(self) -> Iterator[Sequence[Any]]:
        yield ()

    def reply(self, turn: Any) -> None:
        self.shown.append(turn.reply)

    def note(self, text: str) -> None:
        self.shown.append(text)

    def recall(self, prompts: Sequence[str]) -> None: ...
    def history(self, lines: Sequence[Any]) -> None: ...
    def state(self, report: Any) -> None: ...
    def rows(self, shown: Any, lines: Any, data: Any) -> None: ...

    question = reply


# -- who asks, and what ends each question --------------------------------------------------------

Make = Callable[[DeltaSaver, Path], Any]


def foreign(kind: str) -> Make:
    return lambda saver, folder: asking(saver, *GRAPHS[kind][0])


def deciding(*names: str, **given: Any) -> Make:
    return lambda saver, folder: agent(saver, *names, **given)


def unknown(state: Asking) -> dict[str, Any]:
    """An interrupt of a shape that nobody knows, with an answer that it does not take."""
    answer = interrupt({"order": {"id": 7}, "weight": [1, 2]})
    return {"answer": {"yes": 1}[answer]}


def twice(state: Asking) -> dict[str, Any]:
    """One node that asks two questions, and fails for most answers to either."""
    return {"answer": int(interrupt("How old are you?")) + int(interrupt("How old is she?"))}


def at_desk(saver: DeltaSaver, folder: Path) -> Any:
    return desk.make_graph(saver, desk.Shop(folder / "shop.db"))


def lacking(saver: DeltaSaver, folder: Path) -> Any:
    return asking_agent(saver, *PARALLEL)


KINDS: dict[str, tuple[Make, str]] = {
    **{kind: (foreign(kind), "go") for kind in GRAPHS},
    "a decision": (deciding("pay"), "go"),
    "two decisions": (deciding("pay", "refund"), "go"),
    "a decision each": (deciding("pay", "refund", interrupt_mode="per_call"), "go"),
    "an unknown shape": (lambda saver, folder: asking(saver, unknown), "go"),
    "two questions of a node": (lambda saver, folder: asking(saver, twice), "go"),
    "arguments": (lacking, "go"),
    "a value": (at_desk, "I want to check my order"),
    "a yes": (at_desk, "cancel my order O-1"),
    "a number": (at_desk, "I want a refund for O-1"),
    "a free text": (at_desk, "change the delivery address of O-1"),
    "a secret": (at_desk, "save my card"),
}
"""Who asks, by what; and what a person says first."""


def good(value: Any, graph: Any) -> str:
    """What answers a question."""
    if isinstance(value, str):
        return "40" if value.startswith("How old") else '{"name": "Ada", "age": 40}'
    if isinstance(value, list):
        return "ignore"
    if "waiting_for_param" in graph.channels:
        return "/reset"
    if "param" in value:
        return WHOLE
    if value.get("type") == "mcp_elicitation":
        return "cancel"
    if "responseSchema" in value:
        return "name: Ada, age: 40"
    return "card" if "options" in value else "yes"


ODD = st.sampled_from(
    [
        "{" * 3000,
        "[" * 3000 + "]" * 3000,
        "x" * 20_000,
        "NaN",
        "1e999",
        '{"decisions": [NaN]}',
        '{"__agui_cancelled__": true}',
        '{"__agui_resume_map__": {}}',
        '{"' + "0" * 32 + '": "yes"}',
        '{"resume": null}',
        "null",
        "{}",
        "edit : to to to is is",
        "no, ",
        "\u202eyes",
        "ye\u0301s\u200b",
        "\x1b[31myes",
        "/help",
        "/state",
        "/nonsense",
        "//quit",
        " \t ",
    ]
)
TYPED = (SAID | FORMS | ODD).map(
    lambda text: (
        text
        if text.startswith(("//", "/help", "/state", "/reset"))
        else f"/{text}"
        if text.lstrip().startswith("/")
        else text
    )
)
"""Lines of a person; what other commands do is not asked here."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "backend",
    [
        pytest.param(one, marks=[pytest.mark.postgres] if one.name == "postgres" else [])
        for one in BACKENDS
        if one.name != "memory"
    ],
    ids=lambda backend: backend.name,
)
@given(typed=st.lists(TYPED, max_size=4))
def test_whatever_is_typed_the_thread_can_be_answered_afterwards(
    backend: Backend, kind: str, tmp_path_factory: pytest.TempPathFactory, typed: list[str]
) -> None:
    folder, (make, first) = tmp_path_factory.mktemp("chat"), KINDS[kind]
    with brief_saver(backend, folder) as saver:
        graph = make(saver, folder)
        at, person = OpenChat(graph, saver, Settings()), Typist()
        at.open("t")

        def state() -> StateSnapshot:
            found = graph.get_state(at.thread.config)
            return Standing.of(found, saver.get_tuple(found.config)).snapshot

        person.type(at, first, *typed)
        for again in (False, True):
            if again:
                person.type(at, first)
                assert state().interrupts, person.shown
            for _ in range(12):
                if not state().tasks:
                    break
                asked = state().interrupts
                person.type(at, good(asked[0].value, graph) if asked else "")
            assert not state().tasks, person.shown
        assert examine(saver).ok
