"""A sensitive value stays in the log: no view, list, text given later or model shows it."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from calling import calling
from catalogs import catalog_named
from fastapi import FastAPI
from fastapi.testclient import TestClient
from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool
from langgraph.graph import MessagesState
from langgraph.types import Command
from savers import Mode
from scripted_model import ScriptedModel
from small_graphs import chain, config

import langmem_ext as lm
from langmem_ext.inspector import inspector_router
from langmem_ext.server import create_app

CODE, MAIL, WORD = "S774400", "zqxj@wvkq.org", "xylophon grue"


class Place:
    """A database with the graph above, and all ways to look into it."""

    def __init__(self, url: str, **options: Any) -> None:
        self.saver, self.got, self.events = lm.DeltaSaver.open(url), list[str](), list[lm.Event]()
        self.threads = lm.Threads(self.saver)
        self.threads.enable_search()

        def use(**values: str) -> dict[str, Any]:
            self.got += [values["what"]] if "what" in values else []
            holders = ("id", "name", "status") if "passcode" in values else ()
            return {"ok": 1, **dict.fromkeys(holders, values.get("passcode"))}

        def tool_for(name: str, *params: str) -> StructuredTool:
            properties = dict.fromkeys(params, {"type": "string"})
            schema = {"type": "object", "properties": properties, "required": [*params]}
            given = {"name": name, "description": name, "args_schema": schema}
            return StructuredTool.from_function(use, **given)

        catalog = catalog_named("sensitive_values")
        tools = [tool_for(*one.tool, *one.required) for one in catalog.intents]
        options = {"telemetry": [SimpleNamespace(emit=self.events.append)], **options}
        builder = lm.build_waiting_graph(catalog, tools, summarize_above=4, **options)
        self.graph: Any = builder.compile(checkpointer=self.saver)

    def say(self, *texts: str | HumanMessage, thread: str = "t", mode: Mode = "sync") -> lm.Turn:
        turn = lm.Turn("")
        for text in texts:
            if mode == "sync":
                turn = lm.converse(self.graph, text, thread_id=thread)
            else:
                turn = asyncio.run(lm.aconverse(self.graph, text, thread_id=thread))
        return turn

    def complain(self, text: str, **given: Any) -> str:
        """Say it where anything may be said; what the tool got."""
        self.got.clear()
        self.say("I want to complain", text, **given)
        [got] = self.got
        return got

    def state(self, thread: str = "t") -> dict[str, Any]:
        values: dict[str, Any] = self.graph.get_state(config(thread)).values
        return values

    def views(self, *secrets: str, thread: str = "t") -> Iterator[tuple[str, str]]:
        """What can be read, and where."""
        yield "list", repr([*self.threads.each()])
        for secret in secrets:
            yield "search", "".join(hit.snippet for hit in self.threads.search(secret))
        yield "markdown", "".join(self.threads.export_lines(thread, format="markdown"))
        yield "events", "".join(map(repr, self.events))
        state = self.state(thread)
        kept, params = [state.get("summary"), state.get("understood")], state.get("params") or {}
        yield "what was kept, or the tool got", repr([*kept, params.get("what"), self.got])
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
            with lm.DeltaSaver() as other:  # a file encodes values: only a reader sees them
                lm.Threads(other).import_from(io.StringIO(text), keep_ids=True)
                yield f"bundle, {what}, imported", repr(list(other.list(None)))
        yield "inspector, list", client.get("/").text
        for page in ("context", "memory"):
            yield f"inspector, {page}", client.get(f"/thread/{page}", params={"id": thread}).text

    def served(self, thread: str) -> Iterator[tuple[str, str]]:
        """What the server shows people."""
        with TestClient(create_app(self.saver), base_url="http://localhost") as client:
            brain = f"internal/conversations/{thread}/messages_for_brain"
            for path in (f"threads/{thread}/context", brain, "waiting"):
                yield path, client.get(f"/langmem/{path}").text

    def close(self) -> None:
        self.saver.close()

    def check(self, *secrets: str, thread: str = "t") -> None:
        for view, text in (*self.views(*secrets, thread=thread), *self.served(thread)):
            for secret in secrets:
                assert secret.lower() not in text.lower(), f"{view} shows {secret}"


@pytest.fixture
def place(url: str) -> Iterator[Place]:
    with closing(Place(url)) as place:
        yield place


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Place]:
    """The same in a file."""
    with closing(Place(str(tmp_path / "m.db"))) as place:
        yield place


def test_a_known_value_is_in_no_text_that_is_given_later_and_in_no_log_line(
    mode: Mode, place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for thread, given in {
        "said-early": [f"log me in with {CODE}"],
        "asked-for": ["log me in", CODE],
        "in-a-sentence": ["log me in", f"it is {CODE}, thanks"],
        "spelled": ["log me in", "s 774 400"],
    }.items():
        place.say(*given, thread=thread, mode=mode)
        got = place.complain(f"it refused {CODE} twice", thread=thread, mode=mode)
        assert got == "it refused ••• twice", thread
        place.check(CODE, thread=thread)
    for record in caplog.records:
        if record.name.startswith("langmem_ext"):
            assert CODE not in record.getMessage()


def test_it_is_known_however_it_is_written(here: Place) -> None:
    for thread, written in enumerate(["S-774 400", "s774400", "code:S774400", "(S774400)"]):
        here.say("log me in", CODE, thread=str(thread))
        assert "774" not in here.complain(f"it refused {written} twice", thread=str(thread))


def test_a_value_without_a_form_is_known_too_also_in_a_cleared_session(place: Place) -> None:
    place.say("recover my account", MAIL, WORD)
    assert place.complain(f"{WORD.upper()} is silly") == "••• is silly"
    place.check(WORD, MAIL)
    lm.ConversationMemory(place.saver).for_session("t").clear()
    assert place.complain(f"nobody knows {WORD}") == "nobody knows •••"


def test_a_value_beside_the_text_of_a_message_is_hidden(here: Place) -> None:
    said = f"log me in with {CODE}"
    words: list[Any] = [{"type": kind, "text": said} for kind in ("text-plain", "input_text")]
    words += [{"type": "document", "source": {"type": "text", "data": said}}]
    for block in words:
        here.say(HumanMessage([block]), "order I-17", "yes", thread=block["type"])
        here.check(CODE, thread=block["type"])
    here.say(said, "order I-17", "yes", HumanMessage("see here", name=CODE))
    here.say(HumanMessage("and here", additional_kwargs={"note": [CODE]}))
    named = {"filename": "file", "file_id": "file", "title": "document", "url": "image"}
    words += [{"type": kind, key: f"https://a.org/{CODE}.png"} for key, kind in named.items()]
    words += [{"type": "text", "text": "hm", "annotations": [{"type": "citation", "title": CODE}]}]
    for block in words:
        here.say(HumanMessage(["see here", block]))
    here.check(CODE)


def test_it_stays_known_whatever_became_of_its_request(place: Place) -> None:
    for thread, says in {
        "cancelled": ["order I-17", "cancel"],
        "begun-anew": ["start over"],
        "followed-by-others": ["order I-17", "yes", "order I-18", "yes"],
        "corrected": ["sorry, I meant S99"],
    }.items():
        place.say("log me in", CODE, *says, thread=thread)
        got = place.complain(f"it refused {WORD} and {CODE}", thread=thread)
        assert got == f"it refused {WORD} and •••", thread
        place.check(CODE, thread=thread)


def test_it_stays_known_in_a_fork_a_copy_and_an_import(place: Place, tmp_path: Path) -> None:
    place.say("recover my account", MAIL, WORD)
    place.threads.fork("t", to="forked")
    assert place.complain(f"nobody knows {WORD}", thread="forked") == "nobody knows •••"
    file = tmp_path / "t.jsonl"
    place.threads.export_to(str(file), "t")
    for name in ("copied", "imported"):
        with closing(Place(str(tmp_path / f"{name}.db"))) as other:
            if name == "copied":
                lm.copy_saver(place.saver, other.saver)
            else:
                other.threads.import_from(str(file), keep_ids=True)
            assert other.complain(f"nobody knows {WORD}") == "nobody knows •••", name


def test_what_has_the_form_of_a_sensitive_value_is_hidden_whatever_was_asked(
    mode: Mode, place: Place
) -> None:
    for at, value in enumerate([CODE, "s774400", "S7719 and S7728", MAIL]):
        got = place.complain(f"they lost {value} twice", mode=mode, thread=str(at))
        for secret in value.split(" and "):
            assert secret not in got
            place.check(secret, thread=str(at))


def test_a_part_of_another_value_and_ordinary_words_are_no_sensitive_values(here: Place) -> None:
    here.say("log me in", CODE, "order I-17", "yes")
    assert here.complain("Simply slow since Sunday") == "Simply slow since Sunday"
    assert here.threads.search("slow")


def test_digests_are_salted_by_thread_and_shown_nowhere(here: Place) -> None:
    kept = []
    for thread in ("t", "u"):
        here.say("log me in", CODE, thread=thread)
        kept.append(here.state(thread)["known_secrets"])
        digests = [value[-1] for value in kept[-1]["values"]]
        assert digests
        assert CODE not in json.dumps(kept[-1])
        for view, text in here.views(thread=thread):
            assert not any(digest in text for digest in digests), view
    assert kept[0]["values"] != kept[1]["values"]


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
    place.graph.invoke({{"messages": [HumanMessage({text!r})]}}, config())
"""


@pytest.mark.parametrize("drives", ["converse", "the graph"])
@pytest.mark.parametrize("before", [(), ("order I-17", "yes")], ids=["first", "later"])
def test_a_message_whose_turn_was_killed_is_hidden(
    drives: str, before: tuple[str, ...], url: str
) -> None:
    text = f"they lost {CODE}" if before else f"log me in with {CODE}"
    path = [str(Path(__file__).parent), *sys.path]
    script = KILLED.format(path=path, url=url, before=before, drives=drives, text=text)
    done = subprocess.run([sys.executable, "-c", script], check=False)
    assert done.returncode == 9
    with closing(Place(url)) as place:
        for view, shown in place.views(CODE):
            if drives == "converse" or not view.startswith("markdown"):
                assert CODE not in shown, view


def first_of(place: Place, text: str, thread: str = "t") -> list[Any]:
    """The message as the earliest checkpoints hold it that do."""
    found = []
    for step in reversed([*place.saver.list(config(thread))]):
        values = step.checkpoint["channel_values"]
        messages = [*values.get("messages", ()), *values.get("__start__", {}).get("messages", ())]
        for _, channel, value in step.pending_writes or ():
            if channel == "messages":
                messages += value if isinstance(value, list) else [value]
        found += [message for message in messages if message.text == text]
    return found


def test_converse_marks_a_message_before_it_is_stored(mode: Mode, here: Place) -> None:
    for at, (*before, text) in enumerate(
        [
            [f"log me in with {CODE}"],
            ["log me in", CODE],
            ["log me in", "what do you mean"],
            ["I want to complain", f"they lost {CODE}"],
            ["recover it", MAIL, WORD, "I want to complain", f"nobody knows {WORD}"],
            ["recover it", MAIL, WORD, f"nobody knows {WORD}"],
        ]
    ):
        here.say(*before, text, mode=mode, thread=str(at))
        stored = first_of(here, text, str(at))
        assert stored, text
        for message in stored:
            assert message.additional_kwargs["langmem_ext"]["sensitive"], text


def test_at_earlier_steps_a_message_is_hidden_as_it_was_marked_later(here: Place) -> None:
    for at, text in enumerate((CODE, "banana")):
        for given in (
            {"messages": [HumanMessage("log me in")]},
            Command(resume=text),
            {"messages": [("user", f"log me in with {CODE}")]},
        ):
            here.graph.invoke(given, config(f"t{at}"))
        here.say("order I-17", "yes", thread=f"t{at}")
        here.check(CODE, text, thread=f"t{at}")


def test_on_a_branch_that_was_left_too(here: Place) -> None:
    here.say("order I-17", "yes")
    before = here.graph.get_state(config()).config
    here.graph.invoke({"messages": [HumanMessage(f"log me in with {CODE}")]}, config())
    here.graph.update_state(before, {}, as_node="summarize")
    here.say("order I-18", "yes")
    here.check(CODE)


# -- what models and people are shown -------------------------------------------------------------


class Listening(ScriptedModel):
    """A model that notes what it is sent, and says nothing that can be read."""

    def with_structured_output(self, schema: Any, **options: Any) -> Any:
        return self


def test_no_model_is_sent_a_value_that_is_known(tmp_path: Path) -> None:
    model = Listening(answer=lambda _: "well", asked=[])
    with closing(Place(str(tmp_path / "m.db"), model=model)) as place:
        place.say("recover my account", MAIL, WORD, f"so nobody has {WORD} or {CODE}, hm", "hm")
        place.say("I want to complain", f"why would anybody know {WORD}, or {CODE}?", "and now?")
    assert model.asked
    for secret in (WORD, MAIL, CODE):
        assert not any(secret in repr(request) for request in model.asked), secret


def test_a_request_is_shown_without_sensitive_values(here: Place) -> None:
    here.say("log me in")
    # Two messages of the user's in a row are sent as one.
    second = {"messages": [HumanMessage("and be quick about it")]}
    here.graph.update_state(config(), second, as_node="summarize")
    here.say(f"log me in with {CODE}")
    here.check(CODE)


def test_the_list_of_waiting_threads_hides_what_was_just_said(here: Place) -> None:
    here.say("log me in", "recover my account", MAIL)
    turn = here.say(WORD)
    assert MAIL in turn.reply, "the user is told"
    assert turn.waiting_for == "passcode"
    here.check(MAIL, WORD)


async def test_no_log_line_of_a_server_quotes_an_error(
    here: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """A client of a model quotes what it was sent."""

    def audit(state: MessagesState) -> None:
        raise ConnectionError(f"cannot send {[message.text for message in state['messages']]}")

    desk = here.graph.copy({"checkpointer": None})
    graph = chain(desk, audit)
    async with calling(create_app(here.saver, graph=graph, sweep_every=None)) as caller:
        await caller.sdk.threads.create(thread_id="t")
        asked = {"messages": [("user", f"log me in with {CODE}")]}
        run = {"assistant_id": "agent", "input": asked}
        answer = await caller.http.post("/threads/t/runs/wait", json=run)
        assert CODE not in answer.text
    assert "ConnectionError" in caplog.text
    assert "audit" in caplog.text, "where it was raised"
    assert CODE not in caplog.text
