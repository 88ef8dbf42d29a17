"""Users who do anything, in any order, on a database that is closed and opened between their
messages.

Whatever they do, the graph never goes round without asking, loses no value, calls no tool with an
argument it would refuse or twice for one request, and never waits for a value that it has. A tool
that asks for confirmation runs only directly after a yes to a confirmation that showed just its
arguments.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import cycle
from pathlib import Path
from typing import Any

import desk
import museum
import yaml
from hypothesis import event, example, given, settings
from hypothesis import strategies as st
from langgraph.types import Command
from postgres.server import SHARED
from pydantic import ValidationError
from savers import Backend
from wrong_clock import clock_off_by

from langmem_ext import DeltaSaver, converse

CONFIG: Any = {"configurable": {"thread_id": "t"}}
CASES = Path(__file__).parents[2] / "promises" / "yes.yaml"
DATA = yaml.safe_load(Path(__file__).with_name("random_users.yaml").read_text("utf-8"))
ANY = {kind: st.sampled_from(values) for kind, values in DATA.items()}

NO_YES = [
    text
    for said in yaml.load(CASES.read_text("utf-8"), yaml.BaseLoader)["does not"].values()
    for text in said
]
"""What people say at a confirmation that is no yes, in four languages."""
YES = ["yes", "go for it", True]
"""What of all that is said here is a yes."""
SAID = st.one_of(*map(ANY.get, ("answers", "requests", "turns", "asides", "junk")))
SAY = st.tuples(st.just("say"), SAID)
BACK = st.tuples(st.just("come back"), SAID)
"""The same, said long after the question has expired."""
RESUME = st.tuples(st.sampled_from(["resume", "resume by id"]), ANY["values"])
CONFIRM = st.tuples(
    st.just("say"),
    ANY["confirming"] | ANY["asides"] | st.sampled_from(NO_YES),
)
EDIT = st.tuples(st.just("edit"), ANY["edits"])
STEPS = st.lists(SAY | SAY | SAY | BACK | RESUME | EDIT, min_size=1, max_size=12)


@dataclass
class User:
    """A thread of a database that is opened anew for every step, and what must hold after each."""

    folder: Path
    durable: Backend
    edited: bool = False
    """Whether the thread stands as an edit left it, which no turn has read yet."""
    before: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.shop = desk.Shop(self.folder / "shop.db")
        self.database = self.durable.new_url(self.folder)

    def step(self, kind: str, value: Any) -> None:
        saver = desk.open_saver(self.database)
        try:
            graph = desk.make_graph(saver, self.shop)
            stood = graph.get_state(CONFIG)
            self.before = stood.values
            calls = len(self.shop.calls())
            if kind == "say":
                converse(graph, value, thread_id="t")
            elif kind == "come back":
                converse(graph, value, thread_id="t", now=datetime.now() + timedelta(days=30))
            elif kind == "edit":
                self._edit(graph, value)
            else:
                self._resume(graph, value, by_id=kind == "resume by id")
            self._check_confirmed(self.shop.calls()[calls:], stood.interrupts, kind, value)
            stands = graph.get_state(CONFIG)
            self._check(stands, edited=self.edited or kind == "edit")
            self.edited = kind == "edit" or (self.edited and stands.config == stood.config)
        finally:
            desk.close_saver(saver)

    def _edit(self, graph: Any, values: dict[str, Any]) -> None:
        if self.before:
            graph.update_state(CONFIG, values)

    def _resume(self, graph: Any, value: object, *, by_id: bool) -> None:
        waiting = graph.get_state(CONFIG).interrupts
        if not waiting or (value is None and not by_id):
            return  # LangGraph refuses these itself
        with suppress(ValidationError):  # no shape of an answer
            graph.invoke(
                Command(resume={waiting[0].id: value} if by_id else value),
                CONFIG,
                durability="sync",
            )

    def _check(self, after: Any, *, edited: bool) -> None:
        assert len(after.interrupts) <= 1, "two questions wait at once"
        params = after.values.get("params")
        known = (
            params if isinstance(params, dict) else {}
        )  # an edit may have left what is no table of values
        for waiting in after.interrupts:
            asked = waiting.value["param"]
            event(f"waits for {asked}")
            assert asked == after.values["waiting_for_param"]
            assert known.get(asked) is None, "waits for a value that it has"
        if after.values and not edited and isinstance(params, dict):
            self._check_nothing_lost(after.values)
        self._check_calls(after.values)

    def _check_nothing_lost(self, now: dict[str, Any]) -> None:
        """A request that still runs or is suspended knows what it knew.

        But for what the user has named to change: that is asked for anew.
        """
        plan = self.before.get("plan")
        if not plan:
            return
        requests = {entry["plan"]["id"]: entry["params"] for entry in now.get("suspended") or []}
        if now.get("plan"):
            requests[now["plan"]["id"]] = now["params"]
        if plan["id"] in requests:
            known = {name for name, value in self.before["params"].items() if value in DATA["good"]}
            known -= {
                read["param"]
                for read in now["understood"]
                if read["command"] == "correct" and read["value"] is None
            }
            assert known <= requests[plan["id"]].keys(), "lost a value"

    def _check_confirmed(
        self, calls: list[Any], shown: Sequence[Any], kind: str, value: Any
    ) -> None:
        """A cancellation follows a yes to a prompt that names its order and no other."""
        cancelled = [arguments["number"] for name, arguments in calls if name == "cancel_order"]
        if not cancelled:
            return
        event("a confirmed tool ran")
        [asked] = [waiting.value for waiting in shown]
        assert asked["param"] == "confirmation", "ran unasked"
        assert kind != "edit", "ran by an edit"
        assert value in YES, "ran without a yes"
        assert re.findall(r"O-\d+", asked["prompt"]) == cancelled, (
            "ran with values that were not shown"
        )

    def _check_calls(self, values: dict[str, Any]) -> None:
        calls = self.shop.calls()
        tools = {tool.name: tool for tool in desk.make_tools(self.shop)} if calls else {}
        for name, arguments in calls:
            tools[name].args_schema.model_validate({**arguments, "idempotency_key": "k"})
        assert len(calls) == len(self.shop.effects()), "called twice for one request"
        asked = Counter(
            call["id"]
            for message in values.get("messages", [])
            if message.type == "ai"
            for call in message.tool_calls
        )
        answered = Counter(
            message.tool_call_id for message in values.get("messages", []) if message.type == "tool"
        )
        assert asked == answered
        assert set(asked.values()) <= {1}
        assert sum(asked.values()) == len(calls)


def play(steps: list[tuple[str, Any]], durable: Backend, clocks: Sequence[float] = (0.0,)) -> None:
    with tempfile.TemporaryDirectory() as folder, SHARED.own_schemas():
        user = User(Path(folder), durable)
        for (kind, value), apart in zip(steps, cycle(clocks), strict=False):
            with clock_off_by(apart):
                user.step(kind, value)
        user.step("say", "start over")
        user.step("say", "where is my order O-3?")
        assert user.shop.calls()[-1] == (
            "check_order",
            {"number": "O-3"},
        ), "the thread is stuck: " + json.dumps(steps)


@settings(max_examples=3 * settings().max_examples)
@given(STEPS)
def test_whatever_users_do_the_graph_keeps_its_promises(
    durable: Backend, steps: list[tuple[str, Any]]
) -> None:
    play(steps, durable)


@example([("resume by id", False), ("say", "{order_id} {result}"), ("say", "it's O-22")])
@settings(max_examples=3 * settings().max_examples)
@given(st.lists(CONFIRM | CONFIRM | CONFIRM | SAY | BACK | RESUME | EDIT, min_size=4, max_size=12))
def test_what_is_confirmed_is_what_was_shown(
    durable: Backend, steps: list[tuple[str, Any]]
) -> None:
    play([("say", "cancel order O-4 please"), *steps], durable)


SENTENCES = sorted({said["you"] for talk in museum.CONVERSATIONS for said in talk["says"]})
JOINED = st.builds(
    lambda sentences, joint: joint.join(sentences),
    st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=4),
    st.sampled_from([" ", "\n", ". ", " and ", ", no, "]),
)


@settings(max_examples=5 * settings().max_examples)
@given(st.lists(JOINED, min_size=2, max_size=8))
def test_whatever_people_say_at_once_they_are_answered(messages: list[str]) -> None:
    """Sentences of the museum's visitors, several in one message."""
    with DeltaSaver.open(":memory:") as saver:
        graph = museum.build().compile(checkpointer=saver)
        for message in messages:
            assert converse(graph, message, thread_id="t", now=museum.NOW).reply
