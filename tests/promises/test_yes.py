"""Promise: a tool with `confirm` runs only after a yes to exactly what was shown.

A yes is a message that is understood whole as one. `yes.yaml` holds what people say at a
confirmation, in four languages: plain yeses, and messages that are none.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml
from asking import agent
from calling import calling
from catalogs import catalog_named
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import ValidationError

from langmem_ext import (
    Classification,
    ClassifyRequest,
    DeltaSaver,
    IntentCatalog,
    InvalidInput,
    Turn,
    aconverse,
    build_waiting_graph,
    converse,
)
from langmem_ext.server import create_app

SAID: dict[str, dict[str, list[str]]] = yaml.load(
    Path(__file__).with_name("yes.yaml").read_text("utf-8"),
    Loader=yaml.BaseLoader,  # all is text: "no" and "1", too
)
CATALOG = catalog_named("plain_yes")
SHOWN = {"pay": {"amount": 50, "recipient": "Ann"}, "cancel_order": {"order_id": "O-123"}}


RAN: list[tuple[str, dict[str, Any]]] = []
THREADS = count()


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


@tool
def pay(amount: float, recipient: str) -> str:
    """Pay."""
    RAN.append(("pay", {"amount": amount, "recipient": recipient}))
    return "paid"


@tool
def cancel_order(order_id: str) -> str:
    """Cancel."""
    RAN.append(("cancel_order", {"order_id": order_id}))
    return "cancelled"


def graph_with(**options: Any) -> Any:
    built = build_waiting_graph(CATALOG, [pay, cancel_order], **options)
    return built.compile(checkpointer=InMemorySaver())


RULES = graph_with()


class Desk:
    """A thread whose user is asked whether a tool shall run, and what runs."""

    def __init__(self, name: str, graph: Any = RULES) -> None:
        RAN.clear()
        self.ran, self.graph, self.thread = RAN, graph, str(next(THREADS))
        self.last: Turn = Turn(reply="")
        for text in ("pay 50", "Ann") if name == "pay" else ("cancel my order O-123",):
            self.say(text)
        assert self.last.waiting_for == "confirmation"
        assert self.ran == []

    def say(self, text: str) -> Turn:
        self.last = converse(self.graph, text, thread_id=self.thread)
        return self.last

    @property
    def asked(self) -> str:
        return self.last.interrupts[0].value["prompt"] if self.last.interrupts else ""


def texts(kind: str) -> Iterator[tuple[str, str]]:
    """Every text of a kind, each with one of the two tools."""
    every = [text for said in SAID[kind].values() for text in said]
    return zip(("pay", "cancel_order") * len(every), every, strict=False)


def told(name: str, text: str, graph: Any = RULES) -> Desk:
    """A desk where this was said at the confirmation of a tool, and nothing has run."""
    desk = Desk(name, graph)
    desk.say(text)
    assert desk.ran == [], f"{text!r} ran a tool"
    return desk


def test_what_is_no_plain_yes_runs_nothing() -> None:
    for name, text in texts("does not"):
        told(name, text)
    for _, text in texts("nearly agrees"):  # another word, a name, a question in Greek
        for name in SHOWN:
            told(name, text)


def test_a_plain_yes_runs_just_what_was_shown() -> None:
    asked_again = []
    for name, text in texts("agrees"):
        desk = Desk(name)
        desk.say(text)
        if desk.ran:
            assert desk.ran == [(name, SHOWN[name])]
        else:
            asked_again.append(text)
    assert len(asked_again) <= len([*texts("agrees")]) // 10, asked_again


async def test_async_a_yes_is_read_the_same_way() -> None:
    for name, text in [*texts("does not")][::20]:
        desk = Desk(name)
        await aconverse(desk.graph, text, thread_id=desk.thread)
        assert desk.ran == [], f"{text!r} ran a tool"
        desk = Desk(name)
        await aconverse(desk.graph, "yes please", thread_id=desk.thread)
        assert desk.ran == [(name, SHOWN[name])]


def test_a_yes_may_repeat_a_value_exactly_as_it_was_shown() -> None:
    for text in SAID["agrees with a value"]["cancel_order"]:
        desk = Desk("cancel_order")
        desk.say(text)
        assert desk.ran == [("cancel_order", SHOWN["cancel_order"])], text


def test_one_of_several_numbers_with_a_yes_may_be_meant_for_another() -> None:
    for text in ("50, please, yes", "yes, 50", "yes, account 70"):
        for said in ("pay 50", "account 70", text):
            asked = converse(RULES, said, thread_id=text)
        assert (RAN, asked.waiting_for) == ([], "confirmation"), text


def test_a_yes_with_another_value_never_runs_what_was_not_shown() -> None:
    for name, said in SAID["changes a value"].items():
        for text in said:
            desk = told(name, text)
            while not desk.ran:
                shown = desk.asked
                desk.say("yes")
            [(_, values)] = desk.ran
            for value in values.values():
                written = f"{value:g}" if isinstance(value, float) else value
                assert written in shown, f"{text!r} ran what was not shown"


def test_a_yes_word_that_is_another_allowed_value_runs_nothing() -> None:
    @tool
    def ride(fare: str) -> str:
        """Ride."""
        RAN.append(("ride", {"fare": fare}))
        return "on your way"

    fares = {"type": "enum", "enum": ["basic", "super"], "prompt": "Which fare?"}
    needs = {"patterns": ["ride"], "required": ["fare"], "tool": "ride", "confirm": "By {fare}?"}
    catalog = IntentCatalog.from_dict({"intents": {"ride": needs}, "params": {"fare": fares}})
    graph = build_waiting_graph(catalog, [ride]).compile(checkpointer=InMemorySaver())
    for text in ("ride", "basic", "super"):
        asked = converse(graph, text, thread_id="t")
    assert (RAN, asked.reply) == ([], "By super?")
    converse(graph, "super", thread_id="t")
    assert RAN == [("ride", {"fare": "super"})]


def test_a_no_with_more_words_is_a_no() -> None:
    """The next yes does not run what was refused: it is shown once more first."""
    for _, text in texts("refuses"):
        desk = told("cancel_order", text)
        assert desk.last.reply == CATALOG.replies.change, text
        assert desk.say("yes").waiting_for == "confirmation", text
        assert desk.ran == [], text
        assert desk.asked.startswith("Shall I cancel order O-123?"), text


def test_a_no_that_is_final_ends_the_request_and_so_does_a_second_one() -> None:
    final, twice = (
        told("cancel_order", "no, thanks, you are a star"),
        told("cancel_order", "not that one"),
    )
    twice.say("no, wait")
    for desk in (final, twice):
        assert desk.last.reply == CATALOG.replies.cancelled
        assert (desk.say("yes").waiting_for, desk.ran) == (None, [])


def test_words_that_both_end_and_repeat_the_request_are_asked_about() -> None:
    for _, text in texts("ends or repeats"):
        assert told("cancel_order", text).last.waiting_for == "confirmation", text


def test_another_request_with_a_yes_is_served_and_the_same_is_asked_again() -> None:
    desk = Desk("cancel_order")
    assert "From nine to five." in desk.say("yes. and are you open on sunday?").reply
    assert (desk.last.waiting_for, desk.ran) == ("confirmation", [])
    desk.say("yes")
    assert desk.ran == [("cancel_order", SHOWN["cancel_order"])]


# -- other ways to a yes ---------------------------------------------------------------------------


class Agreeable:
    """Stands in for a model that takes every message for the request that runs."""

    def classify(self, request: ClassifyRequest) -> Classification:
        known = dict(request.params)
        if request.running:
            return Classification(request.running, known, 1.0, "model", act="value")
        return Classification("cancel_order", {"order_id": "O-123"}, 1.0, "model")

    async def aclassify(self, request: ClassifyRequest) -> Classification:
        return self.classify(request)


def test_no_model_turns_anything_else_into_a_yes() -> None:
    graph = graph_with(classifier=Agreeable())
    for _, text in [*texts("does not")][::10]:
        told("cancel_order", text, graph)


def test_words_that_a_client_resumes_with_are_read_as_words_that_are_said() -> None:
    for name, text in [*texts("does not")][::10]:
        desk = Desk(name)
        config: Any = {"configurable": {"thread_id": desk.thread}}
        for value in (text, {"text": text}, {"confirmation": text}, [text], ["yes", text]):
            if desk.graph.get_state(config).interrupts:
                desk.graph.invoke(Command(resume=value), config)
        assert desk.ran == [], f"{text!r} ran a tool"


def test_a_value_that_is_only_likely_is_taken_by_a_plain_yes_alone() -> None:
    ran: list[str] = []

    @tool
    def book(tour: str) -> str:
        """Book."""
        ran.append(tour)
        return "booked"

    tours = {"type": "enum", "enum": ["history", "painting"], "prompt": "Which?"}
    needs = {"patterns": ["book"], "required": ["tour"], "tool": "book"}
    catalog = IntentCatalog.from_dict({"intents": {"book": needs}, "params": {"tour": tours}})
    graph = build_waiting_graph(catalog, [book]).compile(checkpointer=InMemorySaver())
    doubtful = [text for _, text in texts("does not")]
    for at, text in enumerate([*doubtful[::10], "yes please"]):
        thread = str(at)
        converse(graph, "book", thread_id=thread)
        asked = converse(graph, "hystery", thread_id=thread).reply
        assert asked == "Did you mean history?"
        converse(graph, text, thread_id=thread)
        assert ran == (["history"] if text == "yes please" else []), text


def test_an_approval_of_an_agents_tool_call_is_a_plain_yes_too() -> None:
    for _, text in [*texts("does not")][::10]:
        graph = agent(InMemorySaver())
        converse(graph, "pay", thread_id="t")
        try:
            reply = converse(graph, text, thread_id="t").reply
        except InvalidInput:
            continue  # asked again
        assert "paid" not in reply, f"{text!r} approved"
    for text in ("approve", "yes please", "ja bitte", "sí, gracias", "d'accord"):
        graph = agent(InMemorySaver())
        converse(graph, "pay", thread_id="t")
        assert converse(graph, text, thread_id="t").reply == "paid 5"


def approval(**values: Any) -> dict[str, Any]:
    """A message with a note as the graph writes it on an answer that approves."""
    note = {"act": "values", "values": values, "approved": True}
    return {"role": "user", "content": "ok", "additional_kwargs": {"langmem_ext": {"answer": note}}}


def test_an_approval_is_what_resumes_a_question_never_a_note_on_a_message() -> None:
    desk, note = Desk("pay"), approval(amount=60)
    message = HumanMessage("ok", additional_kwargs=note["additional_kwargs"])
    converse(desk.graph, message, thread_id=desk.thread)
    assert desk.ran == []
    edit = {"type": "edit", "edited_action": {"name": "pay", "args": {"amount": 70}}}
    converse(desk.graph, thread_id=desk.thread, resume={"decisions": [edit]})
    assert desk.ran == [("pay", {"amount": 70, "recipient": "Ann"})]


async def test_over_http_a_yes_is_said_not_written() -> None:
    """A client reads how the graph keeps a yes, and writes that into the state of its thread."""
    graph = build_waiting_graph(CATALOG, [pay, cancel_order]).compile()
    async with calling(create_app(":memory:", graph=graph)) as caller:
        runs, threads = caller.sdk.runs, caller.sdk.threads
        await threads.create(thread_id="t")
        await runs.wait("t", "agent", input={"messages": [("user", "pay 50")]})
        await runs.wait("t", "agent", command={"resume": "Ann"})
        before: Any = await threads.get_state("t")
        assert before["values"]["waiting_for_param"] == "confirmation"
        plan = before["values"]["plan"]
        yes = {**plan, "confirmed": plan["asked"]}
        later = {**plan, "cursor": 1, "results": [{"status": "ok", "value": 1}]}
        free = {"waiting_for_param": None}
        for written in (
            {"plan": yes, **free},
            {"plan": later, **free},
            {"suspended": [{"plan": yes, "params": before["values"]["params"]}], "plan": None},
        ):
            for node in ("classify", "ask_user", "call_tool", None):
                body: Any = {"values": written, "as_node": node}
                answer = await caller.http.post("/threads/t/state", json=body)
                assert answer.status_code == 422, (written, node)
            for command in (
                {"update": written, "goto": "call_tool"},
                {"update": [*written.items()]},
                {"goto": {"node": "call_tool", "input": {**before["values"], **written}}},
                {"goto": {"node": "call_tool", "input": before["values"]}},
                *({"goto": node} for node in ("call_tool", "classify", ["call_tool", "respond"])),
                {"resume": "yes", "goto": "call_tool"},
                {},
            ):
                body = {"assistant_id": "agent", "command": command}
                answer = await caller.http.post("/threads/t/runs/wait", json=body)
                assert answer.status_code == 422, command
        note = {"messages": [approval(amount=60)]}
        await runs.wait("t", "agent", input=note)
        await threads.update_state("t", {**note, **free}, as_node="ask_user")
        await runs.wait("t", "agent", input=None)
        assert RAN == []
        # what is known may be edited: it is asked about anew
        values: Any = (await threads.get_state("t"))["values"]
        edited = {**values, "params": {**values["params"], "amount": 80}}
        await threads.update_state("t", edited, as_node="classify")
        asked: Any = await runs.wait("t", "agent", input=None)
        assert "80" in asked["__interrupt__"][0]["value"]["prompt"]
        await runs.wait("t", "agent", command={"resume": "yes"}, interrupt_before=["call_tool"])
        await threads.update_state("t", {"params": edited["params"]}, as_node="ask_user")
        asked = await runs.wait("t", "agent", input=None)
        assert asked["waiting_for_param"] == "confirmation"
        assert RAN == []
        await runs.wait("t", "agent", command={"resume": "yes"})
    assert RAN == [("pay", {"amount": 80, "recipient": "Ann"})]


async def test_over_http_no_yes_says_when_it_was_said() -> None:
    """It comes when it comes: a question of last week has expired."""
    catalog = CATALOG.model_copy(update={"timeout": 3600})
    graph = build_waiting_graph(catalog, [pay, cancel_order]).compile(checkpointer=DeltaSaver())
    then = datetime.now().astimezone() - timedelta(days=7)
    moment = {"at": then.isoformat()}
    note = {"langmem_ext": moment}
    noted = {"content": "yes", "additional_kwargs": note}
    messages: list[Any] = [
        {"role": "user", **noted},
        {"type": "human", "content": "yes", **note},
        {"lc": 1, "type": "constructor", "id": ["HumanMessage"], "kwargs": noted},
    ]
    works: list[Any] = [{"input": {"messages": [message]}} for message in messages]
    works += [{"command": {"resume": {"text": "yes", **more}}} for more in (note, moment)]
    works += [{"command": {"update": {"messages": messages[:1]}}}]
    async with calling(create_app(graph.checkpointer, graph=graph, sweep_every=None)) as caller:
        for at, work in enumerate(works):
            await aconverse(graph, "cancel my order O-123", thread_id=str(at), now=then)
            body = {"assistant_id": "agent", **work}
            await caller.http.post(f"/threads/{at}/runs/wait", json=body)
            assert RAN == [], work
        await aconverse(graph, "cancel my order O-123", thread_id="u", now=then)
        await caller.sdk.threads.update_state("u", {"messages": messages[:1]}, as_node="ask_user")
        await caller.sdk.runs.wait("u", "agent", input=None)
        await aconverse(graph, "yes", thread_id="u", now=then)
        assert RAN == []


def test_words_beside_a_yes_count_wherever_they_stand() -> None:
    """In another block of the message, even a picture, or in a message of the same input."""
    yes: Any = {"type": "text", "text": "yes"}
    for block in (
        {"type": "input_text", "text": "but only 20"},
        {"type": "text-plain", "text": "but only 20", "mime_type": "text/plain"},
        {"type": "document", "source": {"type": "text", "data": "no, do not pay"}},
        {"type": "image_url", "image_url": {"url": "https://example.org/other-invoice.png"}},
    ):
        for content in ([yes, block], [block, yes]):
            desk = Desk("pay")
            converse(desk.graph, HumanMessage(content), thread_id=desk.thread)
            assert desk.ran == [], content
    for before in ("make it 777", "no", "wait, not yet"):
        desk = Desk("pay")
        config: Any = {"configurable": {"thread_id": desk.thread}}
        desk.graph.invoke({"messages": [("user", before), ("user", "yes")]}, config)
        assert desk.ran == [], before


def test_an_edit_of_another_tools_call_and_a_yes_that_says_more_are_refused() -> None:
    args = {"amount": 50, "recipient": "Ann"}
    named = {"type": "edit", "edited_action": {"name": "save_draft", "args": args}}
    inbox = {"type": "edit", "args": {"action": "save_draft", "args": args}}
    accept = {"type": "accept", "args": {"action": "pay", "args": args}}
    data, no = {"data": {"confirmation": "yes", "amount": 50}}, {"text": "no"}
    approved = {"type": "approve"}, {"action": "accept"}, {"status": "resolved", "payload": "yes"}
    yes = (data, accept, {**named, "edited_action": {"name": "pay", "args": args}}, *approved)
    more: list[Any] = [{**one, beside: "no"} for one in yes for beside in ("message", "comment")]
    more += [[one, no] for one in yes[:3]] + [{"decisions": [one], **no} for one in yes]
    more += [{"text": "yes", "approved": False}, {"answer": "yes", **no}, 2**70]
    more += [{"parts": [data, no]}, [accept, {"type": "response", "args": "no"}]]
    more += [HumanMessage([{"type": "text", "text": "yes"}, {"type": "input_text", **no}])]
    more += [{"responses": {"confirmation": approved[1], "amount": {"action": "decline"}}}]
    for value in ({"decisions": [named]}, [inbox], *more):
        desk = Desk("pay")
        config: Any = {"configurable": {"thread_id": desk.thread}}
        before = desk.graph.get_state(config)
        with pytest.raises(InvalidInput):
            converse(desk.graph, thread_id=desk.thread, resume=value)
        assert desk.graph.get_state(config) == before
        with pytest.raises(ValidationError):
            desk.graph.invoke(Command(resume=value), config)
        assert desk.ran == [], value


@tool("pay")
def pay_later(amount: float, recipient: str) -> str:
    """Be interrupted at first, as by Ctrl-C."""
    RAN.append(("pay", {"amount": amount, "recipient": recipient}))
    if len(RAN) == 1:
        raise KeyboardInterrupt
    return "paid"


def test_what_is_said_after_a_yes_that_led_to_nothing_takes_it_back() -> None:
    """The turn of the yes was cut off: only an empty message, or the yes sent again, ends it."""
    graph = build_waiting_graph(CATALOG, [pay_later, cancel_order]).compile(InMemorySaver())
    for text in ("no, do not pay", "no", "wait", "yes", "are you open on sunday?"):
        for through in ("converse", "invoke"):
            desk = Desk("pay", graph)
            with pytest.raises(KeyboardInterrupt):
                desk.say("yes")
            if through == "converse":
                desk.say(text)
            else:
                config: Any = {"configurable": {"thread_id": desk.thread}}
                graph.invoke({"messages": [("user", text)]}, config)
                desk.say("")
            assert len(desk.ran) == 1, (text, through)
            if not text.startswith("no"):
                assert desk.last.waiting_for == "confirmation"
                desk.say("yes")
                assert len(desk.ran) == 2
    for again in ({"text": ""}, {"text": "yes", "message_id": "m"}):
        desk = Desk("pay", graph)
        with pytest.raises(KeyboardInterrupt):
            converse(graph, "yes", thread_id=desk.thread, message_id="m")
        converse(graph, **again, thread_id=desk.thread)
        assert len(desk.ran) == 2


async def test_a_yes_to_what_no_interrupt_has_asked_runs_nothing() -> None:
    """The state waits for a yes that nobody was asked for: behind a fork, an edit, or a death."""
    died = set[str]()

    def before(state: Any) -> dict[str, Any]:
        said = state["messages"][-2]
        if "dies" in said.content and said.id not in died:
            died.add(said.id)
            raise KeyboardInterrupt
        return {}

    built = build_waiting_graph(CATALOG, [pay, cancel_order], before={"ask_user": before})
    graph = built.compile(checkpointer=DeltaSaver())
    async with calling(create_app(graph.checkpointer, graph=graph, sweep_every=None)) as caller:
        for how in ("fork", "edit", "died"):
            for through in ("converse", "input", "queue"):
                thread = how + through
                config: Any = {"configurable": {"thread_id": thread}}
                await caller.sdk.threads.create(thread_id=thread)
                for text in ("pay 50", "Ann"):
                    await aconverse(graph, text, thread_id=thread)
                shown = (await graph.aget_state(config)).config
                if how == "died":
                    with pytest.raises(KeyboardInterrupt):
                        converse(graph, "make it 80, dies", thread_id=thread)
                elif how == "fork":
                    await aconverse(graph, "make it 80", thread_id=thread)
                    await graph.aupdate_state(shown, {}, as_node="classify")
                else:
                    said = {"messages": [("ai", "Did you get my e-mail?")]}
                    await graph.aupdate_state(config, said)
                if through == "converse":
                    await aconverse(graph, "yes", thread_id=thread)
                elif through == "input":
                    yes: Any = {"messages": [("user", "yes")]}
                    await caller.sdk.runs.wait(thread, "agent", input=yes)
                else:
                    path = f"/langmem/conversations/{thread}/messages"
                    await caller.http.post(path, json={"content": "yes", "message_id": thread})
                    await caller.http.get(f"/langmem/messages/{thread}/response?wait=20")
                assert RAN == [], thread
