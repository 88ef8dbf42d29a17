"""A conversation goes on where a person would: what was said before, a message, and what follows.

A file of `conversations/` holds desks, each a catalog (or where in the repository there is one),
and cases. Keys of a case:

- text: the message.
- desk: whom it is said to: a name from the top of the file.
- before: the messages that were said before.
- reply, says, waits: the whole reply, a part of it (or several), and the parameter that is waited
  for then; null: none.
- known: all values that are known then; `changed`: those that were not so before the message;
  `has`: some of them.
- likely: values that are to be confirmed, each with what may be meant.
- intent: the request that is served then; null: none. `later`: those that wait for it, each with
  its values.
- ran: the calls that were made since the conversation began, each a tool's name with its arguments.

The tool of a request takes what the request asks for, and returns "ok", where the file does not say
what it does.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import count
from typing import Any

import pytest
import yaml
from case_files import HERE, CaseFile
from repository import ROOT
from talk_desks import Calls, tools_of

from langmem_ext import DeltaSaver, IntentCatalog, Turn, build_waiting_graph, converse

NOW = datetime(2026, 3, 4, 10, 15)
"""A Wednesday: when all of it was said."""


THREADS = count()


class Desk:
    """A catalog's graph, and the calls of its tools."""

    def __init__(self, declared: dict[str, Any] | str, saver: DeltaSaver) -> None:
        if isinstance(declared, str):
            declared = dict(yaml.safe_load((ROOT / declared).read_text("utf-8")))
        catalog = declared.get("catalog", declared)
        made = {
            intent["tool"]: {
                "args": [*intent.get("required", ()), *intent.get("optional", ())],
                "result": "ok",
            }
            for intent in catalog["intents"]
            if "tool" in intent
        }
        self.calls: Calls = []
        tools = tools_of({"catalog": catalog, "tools": declared.get("tools", made)}, self.calls)
        builder = build_waiting_graph(IntentCatalog.from_dict(catalog), tools)
        self.graph = builder.compile(checkpointer=saver)
        self.saver = saver
        self.begun: dict[tuple[str, ...], tuple[str, Calls]] = {}

    def found(self, case: dict[str, Any]) -> dict[str, Any]:
        """What is found for each key that the case expects."""
        thread = self.begin(tuple(case.get("before", ())))
        before = self.state(thread).get("params") or {}
        turn = self.say(thread, case["text"])
        state = self.state(thread)
        plan, known = state.get("plan") or {}, state.get("params") or {}
        parts = case["says"] if isinstance(case.get("says"), list) else [case.get("says", "")]
        said = all(part in turn.reply for part in parts)
        changed = {name: value for name, value in known.items() if before.get(name) != value}
        found = {
            "reply": turn.reply,
            "says": case.get("says") if said else turn.reply,
            "waits": turn.waiting_for,
            "known": known,
            "changed": changed | {name: None for name in before if name not in known},
            "has": {name: known.get(name) for name in case.get("has", ())},
            "likely": plan.get("choices", {}),
            "intent": plan.get("intent_id"),
            "later": [
                {waiting["plan"]["intent_id"]: waiting["params"]}
                for waiting in state.get("suspended") or ()
            ],
            "ran": list(self.calls),
        }
        return {key: found[key] for key in case if key not in ("text", "desk", "before")}

    def begin(self, texts: tuple[str, ...]) -> str:
        """A thread of its own on which these messages were said."""
        thread = str(next(THREADS))
        if not texts:
            self.calls.clear()
            return thread
        if texts not in self.begun:
            begun = self.begin(texts[:-1])
            self.say(begun, texts[-1])
            self.begun[texts] = begun, [*self.calls]
        begun, self.calls[:] = self.begun[texts]
        self.saver.copy_thread(begun, thread)
        return thread

    def say(self, thread: str, text: str) -> Turn:
        return converse(self.graph, text, thread_id=thread, now=NOW)

    def state(self, thread: str) -> dict[str, Any]:
        return dict(self.graph.get_state({"configurable": {"thread_id": thread}}).values)


@pytest.fixture
def saver() -> Iterator[DeltaSaver]:
    with DeltaSaver.open(":memory:") as opened:
        yield opened


@pytest.mark.parametrize("name", sorted(path.stem for path in HERE.glob("conversations/*.yaml")))
def test_a_conversation_goes_on_where_a_person_would(name: str, saver: DeltaSaver) -> None:
    file = CaseFile(f"conversations/{name}")
    desks = {key: Desk(catalog, saver) for key, catalog in file.data["desks"].items()}
    assert (wrong := file.wrong(lambda case: desks[case["desk"]].found(case))) == "", f"\n{wrong}"
