"""A sensitive value stays in the log: no view, list, text given later or model shows it."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.types import Command
from savers import Mode

from langmem_ext import (
    ConversationMemory,
    DeltaSaver,
    Event,
    IntentCatalog,
    Threads,
    Turn,
    aconverse,
    build_waiting_graph,
    converse,
    copy_saver,
)
from langmem_ext.inspector import inspector_router
from langmem_ext.server import create_app

CODE, MAIL, WORD = "S774400", "zqxj@wvkq.org", "xylophon grue"
CATALOG = {
    "intents": [
        {
            "id": "log_in",
            "description": "Log in",
            "patterns": [r"\blog me in\b"],
            "required": ["passcode"],
            "tool": "log_in",
            "reply": "Hello.",
        },
        {
            "id": "recover",
            "description": "Recover an account",
            "patterns": [r"\brecover\b"],
            "required": ["mail", "watchword"],
            "tool": "recover",
            "reply": "Sent to {mail}.",
        },
        {
            "id": "complain",
            "description": "Complain about something",
            "patterns": [r"\bcomplain\b"],
            "required": ["what"],
            "tool": "complain",
            "reply": "Noted: {what}",
        },
        {
            "id": "order",
            "description": "Order something",
            "patterns": [r"\border\b"],
            "required": ["item"],
            "tool": "order",
            "confirm": "Order {item}?",
            "reply": "Ordered.",
        },
    ],
    "params": {
        "passcode": {
            "type": "identifier",
            "prompt": "What is your passcode?",
            "pattern": r"S\d+",
            "sensitive": True,
        },
        "mail": {"type": "email", "prompt": "Which e-mail address?", "sensitive": True},
        "watchword": {"type": "text", "prompt": "What is the watchword?", "sensitive": True},
        "what": {"type": "text", "prompt": "What happened?"},
        "item": {
            "type": "identifier",
            "prompt": "Which item?",
            "pattern": r"I-\d+",
        },
    },
}


class Sink:
    """Keeps what telemetry is told."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)


class Place:
    """A database with the graph above, and all ways to look into it."""

    def __init__(self, url: str, **options: Any) -> None:
        self.saver, self.got, self.sink = DeltaSaver.open(url), list[str](), Sink()
        self.threads = Threads(self.saver)
        self.threads.enable_search()

        @tool
        def log_in(passcode: str) -> dict[str, Any]:
            """Log in."""
            return {"ok": 1, "id": passcode, "name": passcode, "status": passcode}

        @tool
        def recover(mail: str, watchword: str) -> dict[str, Any]:
            """Recover an account."""
            return {"ok": 1}

        @tool
        def complain(what: str) -> dict[str, Any]:
            """Complain."""
            self.got.append(what)
            return {"ok": 1}

        @tool
        def order(item: str) -> dict[str, Any]:
            """Order."""
            return {"ok": 1}

        self.graph: Any = build_waiting_graph(
            IntentCatalog.from_dict(CATALOG),
            [log_in, recover, complain, order],
            telemetry=[self.sink],
            summarize_above=4,
            **options,
        ).compile(checkpointer=self.saver)

    def say(self, *texts: str, thread: str = "t", mode: Mode = "sync") -> Turn:
        turn = Turn("")
        for text in texts:
            turn = (
                converse(self.graph, text, thread_id=thread)
                if mode == "sync"
                else asyncio.run(aconverse(self.graph, text, thread_id=thread))
            )
        return turn

    def state(self, thread: str = "t") -> dict[str, Any]:
        values: dict[str, Any] = self.graph.get_state(config(thread)).values
        return values

    def views(self, *secrets: str, thread: str = "t") -> Iterator[tuple[str, str]]:
        """What can be read, and where."""
        yield "list", repr([*self.threads.each()])
        for secret in secrets:
            yield "search", "".join(hit.snippet for hit in self.threads.search(secret))
        yield "markdown", "".join(self.threads.export_lines(thread, format="markdown"))
        yield "events", "".join(map(repr, self.sink.events))
        state = self.state(thread)
        yield "summary", repr(state.get("summary"))
        yield "understood", repr(state.get("understood"))
        yield "what was kept", repr((state.get("params") or {}).get("what"))
        yield "what the tool got", repr(self.got)
        app = FastAPI()
        app.include_router(inspector_router(self.saver))
        client = TestClient(app, base_url="http://localhost")
        for step in [*self.saver.list(config(thread))]:
            at = step.config["configurable"]["checkpoint_id"]
            messages = step.checkpoint["channel_values"].get("messages", ())
            parts = [
                f"/blame?channel=messages&path={json.dumps([message.id, 'content'])}"
                for message in messages[-2:]
            ]
            for page in ("", "/state", "/changes", *parts):
                sign = "&" if "?" in page else "?"
                found = client.get(f"/thread{page}{sign}id={thread}&at={at}")
                assert found.status_code == 200, found.text
                yield f"inspector{page}, step {step.metadata.get('step')}", found.text
        for what in ("words", "marked"):
            text = client.get("/thread/bundle", params={"id": thread, "what": what}).text
            yield f"bundle, {what}", text
            with DeltaSaver() as other:  # a file encodes values: only a reader sees them
                Threads(other).import_from(io.StringIO(text), keep_ids=True)
                yield f"bundle, {what}, imported", repr(list(other.list(None)))
        yield "inspector, list", client.get("/").text
        for page in ("context", "memory"):
            yield f"inspector, {page}", client.get(f"/thread/{page}", params={"id": thread}).text

    async def served(self, thread: str = "t") -> list[tuple[str, str]]:
        """What the server shows people."""
        with TestClient(create_app(self.saver), base_url="http://localhost") as client:
            return [
                (path, client.get(path).text)
                for path in (
                    f"/langmem/threads/{thread}/context",
                    f"/langmem/internal/conversations/{thread}/messages_for_brain",
                    "/langmem/waiting",
                )
            ]

    def check(self, *secrets: str, thread: str = "t") -> None:
        views = [*self.views(*secrets, thread=thread), *asyncio.run(self.served(thread))]
        for view, text in views:
            for secret in secrets:
                assert secret.lower() not in text.lower(), f"{view} shows {secret}"


def config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


@pytest.fixture
def place(url: str) -> Iterator[Place]:
    made = Place(url)
    yield made
    made.saver.close()


GIVEN = {
    "said early": [f"log me in with {CODE}"],
    "asked for": ["log me in", CODE],
    "asked for, in a sentence": ["log me in", f"it is {CODE}, thanks"],
    "spelled": ["log me in", "s 774 400"],
}


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
def test_a_known_value_is_in_no_text_that_is_given_later(
    given: list[str], mode: Mode, place: Place
) -> None:
    place.say(*given, "I want to complain", f"it refused {CODE} twice", mode=mode)
    assert place.got == ["it refused ••• twice"]
    place.check(CODE)


@pytest.mark.parametrize("written", ["S-774 400", "s774400", "code:S774400", "(S774400)"])
def test_it_is_known_however_it_is_written(written: str, tmp_path: Path) -> None:
    place = Place(str(tmp_path / "m.db"))
    place.say("log me in", CODE, "I want to complain", f"it refused {written} twice")
    assert "774" not in "".join(place.got)
    place.saver.close()


def test_a_value_without_a_form_is_known_too(place: Place) -> None:
    place.say("recover my account", MAIL, WORD, "I want to complain", f"{WORD.upper()} is silly")
    assert place.got == ["••• is silly"]
    place.check(WORD, MAIL)


ENDS = {
    "cancelled": ["log me in", CODE, "order I-17", "cancel"],
    "begun anew": ["log me in", CODE, "start over"],
    "followed by others": ["log me in", CODE, "order I-17", "yes", "order I-18", "yes"],
    "corrected": ["log me in", CODE, "sorry, I meant S99"],
}


@pytest.mark.parametrize("says", ENDS.values(), ids=ENDS)
def test_it_stays_known_whatever_became_of_its_request(says: list[str], place: Place) -> None:
    place.say(*says, "I want to complain", f"it refused {WORD} and {CODE}")
    assert place.got == [f"it refused {WORD} and •••"]
    place.check(CODE)


def test_it_stays_known_when_a_program_clears_the_session(place: Place) -> None:
    place.say("recover my account", MAIL, WORD)
    ConversationMemory(place.saver).for_session("t").clear()
    place.say("I want to complain", f"nobody knows {WORD}")
    assert place.got == ["nobody knows •••"]


def test_it_stays_known_in_a_fork_a_copy_and_an_import(place: Place, tmp_path: Path) -> None:
    place.say("recover my account", MAIL, WORD)
    forked = place.threads.fork("t", to="forked").id
    place.say("I want to complain", f"nobody knows {WORD}", thread=forked)
    assert place.got == ["nobody knows •••"]
    file = tmp_path / "t.jsonl"
    place.threads.export_to(str(file), "t")
    copied, imported = Place(str(tmp_path / "c.db")), Place(str(tmp_path / "i.db"))
    copy_saver(place.saver, copied.saver)
    imported.threads.import_from(str(file), keep_ids=True)
    for other in (copied, imported):
        other.say("I want to complain", f"nobody knows {WORD}")
        assert other.got == ["nobody knows •••"]
        other.saver.close()


@pytest.mark.parametrize("value", [CODE, "s774400", "S7719 and S7728", MAIL])
def test_what_has_the_form_of_a_sensitive_value_is_hidden_whatever_was_asked(
    value: str, mode: Mode, place: Place
) -> None:
    place.say("I want to complain", f"they lost {value} twice", mode=mode)
    assert len(place.got) == 1
    for secret in value.split(" and "):
        assert secret not in place.got[0]
        place.check(secret)


def test_a_part_of_another_value_and_ordinary_words_are_no_sensitive_values(
    tmp_path: Path,
) -> None:
    place = Place(str(tmp_path / "m.db"))
    place.say("log me in", CODE, "order I-17", "yes", "I want to complain")
    place.say("Simply slow since Sunday")
    assert place.got == ["Simply slow since Sunday"]
    assert place.threads.search("slow")
    place.saver.close()


def test_digests_are_salted_by_thread_and_shown_nowhere(tmp_path: Path) -> None:
    place = Place(str(tmp_path / "m.db"))
    kept = []
    for thread in ("t", "u"):
        place.say("log me in", CODE, thread=thread)
        kept.append(place.state(thread)["known_secrets"])
        digests = [value[-1] for value in kept[-1]["values"]]
        assert digests
        assert CODE not in json.dumps(kept[-1])
        for view, text in place.views(thread=thread):
            assert not any(digest in text for digest in digests), view
    assert kept[0]["values"] != kept[1]["values"]
    place.saver.close()


# -- before anything has read it ------------------------------------------------------------------

KILLED = """
import os, sys
sys.path[:0] = {path!r}
from test_sensitive_values import *
place = Place({url!r})
put = place.saver.put
def dies(*args, **options):
    put(*args, **options)
    os._exit(9)
place.say(*{before!r})
place.saver.put = dies
if {drives!r} == "converse":
    place.say({text!r})
else:
    place.graph.invoke({{"messages": [HumanMessage({text!r})]}}, config("t"))
"""


@pytest.mark.parametrize("drives", ["converse", "the graph"])
@pytest.mark.parametrize(
    ("before", "text"),
    [((), f"log me in with {CODE}"), (("order I-17", "yes"), f"they lost {CODE}")],
    ids=["first", "later"],
)
def test_a_message_whose_turn_was_killed_is_hidden(
    drives: str, before: tuple[str, ...], text: str, url: str
) -> None:
    path = [str(Path(__file__).parent), *sys.path]
    script = KILLED.format(path=path, url=url, before=before, drives=drives, text=text)
    done = subprocess.run([sys.executable, "-c", script], check=False)
    assert done.returncode == 9
    place = Place(url)
    try:
        views = [*place.views(CODE)]
        for view, shown in views:
            if drives == "converse" or not view.startswith(("markdown",)):
                assert CODE not in shown, view
    finally:
        place.saver.close()


def first_of(place: Place, text: str, thread: str = "t") -> list[Any]:
    """The message as the earliest checkpoints hold it that do."""
    found = []
    for step in reversed([*place.saver.list(config(thread))]):
        values = step.checkpoint["channel_values"]
        messages = [*values.get("messages", ()), *values.get("__start__", {}).get("messages", ())]
        messages += [
            message
            for _, channel, value in step.pending_writes or ()
            if channel == "messages"
            for message in (value if isinstance(value, list) else [value])
        ]
        found += [message for message in messages if message.text == text]
    return found


@pytest.mark.parametrize(
    ("before", "text"),
    [
        ((), f"log me in with {CODE}"),
        (("log me in",), CODE),
        (("log me in",), "what do you mean"),
        (("I want to complain",), f"they lost {CODE}"),
        (("recover it", MAIL, WORD, "I want to complain"), f"nobody knows {WORD}"),
        (("recover it", MAIL, WORD), f"nobody knows {WORD}"),
    ],
)
def test_converse_marks_a_message_before_it_is_stored(
    before: tuple[str, ...], text: str, mode: Mode, tmp_path: Path
) -> None:
    place = Place(str(tmp_path / "m.db"))
    place.say(*before, text, mode=mode)
    stored = first_of(place, text)
    assert stored
    for message in stored:
        assert message.additional_kwargs["langmem_ext"]["sensitive"]
    place.saver.close()


@pytest.mark.parametrize("text", [CODE, "banana"])
def test_at_earlier_steps_a_message_is_hidden_as_it_was_marked_later(
    text: str, tmp_path: Path
) -> None:
    place = Place(str(tmp_path / "m.db"))
    place.graph.invoke({"messages": [HumanMessage("log me in")]}, config("t"))
    place.graph.invoke(Command(resume=text), config("t"))
    place.graph.invoke({"messages": [("user", f"log me in with {CODE}")]}, config("t"))
    place.say("order I-17", "yes")
    place.check(CODE, text)
    place.saver.close()


def test_on_a_branch_that_was_left_too(tmp_path: Path) -> None:
    place = Place(str(tmp_path / "m.db"))
    place.say("order I-17", "yes")
    before = place.graph.get_state(config("t")).config
    place.graph.invoke({"messages": [HumanMessage(f"log me in with {CODE}")]}, config("t"))
    place.graph.update_state(before, {}, as_node="summarize")
    place.say("order I-18", "yes")
    place.check(CODE)
    place.saver.close()


# -- what models and people are shown -------------------------------------------------------------


class Listening(GenericFakeChatModel):
    """A model that notes what it is sent, and says nothing that can be read."""

    def with_structured_output(self, schema: Any, **options: Any) -> Any:
        return self


def test_no_model_is_sent_a_value_that_is_known(tmp_path: Path) -> None:
    sent: list[str] = []

    class Model(Listening):
        def _generate(self, messages: Any, *args: Any, **options: Any) -> Any:
            sent.append(repr(messages))
            return super()._generate(messages, *args, **options)

    model = Model(messages=iter(lambda: AIMessage("well"), None))
    place = Place(str(tmp_path / "m.db"), model=model)
    place.say("recover my account", MAIL, WORD, f"so nobody has {WORD} or {CODE}, hm")
    place.say("hm", "I want to complain", f"why would anybody know {WORD}, or {CODE}?", "and now?")
    assert sent
    for secret in (WORD, MAIL, CODE):
        assert not any(secret in request for request in sent), secret
    place.saver.close()


def test_a_request_is_shown_without_sensitive_values(tmp_path: Path) -> None:
    place = Place(str(tmp_path / "m.db"))
    place.say("log me in")
    # Two messages of the user's in a row are sent as one.
    place.graph.update_state(
        config("t"),
        {"messages": [HumanMessage("and be quick about it")]},
        as_node="summarize",
    )
    place.say(f"log me in with {CODE}")
    place.check(CODE)
    place.saver.close()


def test_the_list_of_waiting_threads_hides_what_was_just_said(tmp_path: Path) -> None:
    place = Place(str(tmp_path / "m.db"))
    place.say("log me in", "recover my account", MAIL)
    turn = place.say(WORD)
    assert MAIL in turn.reply, "the user is told"
    assert turn.waiting_for == "passcode"
    place.check(MAIL, WORD)
    place.saver.close()


def test_no_log_line_holds_a_value(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    place = Place(str(tmp_path / "m.db"))
    place.say("log me in", CODE, "I want to complain", f"it refused {CODE} twice")
    place.saver.close()
    for record in caplog.records:
        if record.name.startswith("langmem_ext"):
            assert CODE not in record.getMessage()
