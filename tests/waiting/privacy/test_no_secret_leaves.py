"""Promise: sensitive values are in the log, and leave it by no side door at any moment."""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from calling import calling
from catalogs import catalog_named
from hypothesis import event, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from postgres.server import SHARED
from savers import Backend, Mode
from secrets_desk import CHATS, TYPES, Desk, foreign_desk, leaks, open_desk, printed

from langmem_ext import (
    ConversationMemory,
    IntentCatalog,
    Message,
    ThreadChatMessageHistory,
    Turn,
    aconverse,
    build_waiting_graph,
    converse,
)
from langmem_ext.messages.annotations import HIDDEN, shown_text
from langmem_ext.messages.search.spans import squeezed
from langmem_ext.server import create_app

LETTERS = "bcdfghjkmpqvwxz"
odd_word = st.text(LETTERS, min_size=6, max_size=9)
digits = {count: st.text("123456789", min_size=count, max_size=count) for count in (4, 5, 6, 16)}
SECRETS: dict[str, st.SearchStrategy[str]] = {
    "identifier": digits[16],
    "email": st.builds("{}@{}.org".format, odd_word, odd_word),
    "phone": st.builds("+44 7911 {}".format, digits[6]),
    "person": st.builds(lambda a, b: f"{a.title()} {b.title()}", odd_word, odd_word),
    "name": st.builds(str.title, odd_word),
    "address": st.builds(
        lambda number, street, town: f"{number} {street.title()} Street, {town.title()}",
        digits[4],
        odd_word,
        odd_word,
    ),
    "place": st.builds(str.title, odd_word),
    "text": st.builds("{} {}".format, odd_word, odd_word),
    "integer": digits[6],
    "number": st.builds("{}.{}".format, digits[4], digits[4]),
    "money": st.builds("${}.{}".format, digits[5], st.integers(11, 99)),
    "date": st.builds(
        "{} {} {}".format,
        st.integers(11, 28),
        st.sampled_from(["March", "July", "October"]),
        st.integers(2041, 2089),
    ),
    "time": st.builds("{}:{}".format, st.integers(13, 22), st.integers(11, 59)),
}
FRAMES = st.sampled_from(
    [
        "{}",
        "it's {}",
        "{} please",
        "my {kind} is {}",
        "the {kind} is {}, thanks a lot",
        "Hi, so you want it: {} I think",
    ]
)
EARLY = st.sampled_from(
    [
        "keep my {kind}, it is {}",
        "please keep my {kind}: {}",
        "keep my {kind} {} for ticket T-123",
        "my {kind} is {}, keep my {kind}",
    ]
)
WRONG = st.sampled_from(["banana", "what do you mean?", "0", "I don't know"])


def spaced(value: str, how: str) -> str:
    """The same value, written otherwise."""
    if not value.isdigit() or len(value) < 8:
        return value
    between = {"plain": "", "blanks": " ", "dashes": "-"}[how]
    return between.join(value[at : at + 4] for at in range(0, len(value), 4))


@st.composite
def conversations(draw: st.DrawFn) -> tuple[list[str], list[str], str]:
    """What a user says, the secrets in it, and how the tool ends."""
    kind = draw(st.sampled_from(TYPES))
    values = SECRETS[kind]
    secrets = [draw(values)]
    how = draw(st.sampled_from(["plain", "blanks", "dashes"]))
    said: list[str] = []
    if draw(st.booleans()):
        said.append(draw(EARLY).format(spaced(secrets[0], how), kind=kind))
    else:
        said += [f"keep my {kind}", *draw(st.lists(WRONG, max_size=2))]
        if draw(st.booleans()):
            secrets.append(draw(values))
            first, second = (spaced(secret, how) for secret in secrets)
            said.append(draw(FRAMES).format(f"{first}, no, {second}", kind=kind))
        said.append(draw(FRAMES).format(spaced(secrets[0], how), kind=kind))
    if draw(st.booleans()):
        secrets.append(draw(values))
        said.append(f"sorry, I meant {spaced(secrets[-1], how)}")
    said += [
        "T-123",
        *draw(
            st.lists(
                st.sampled_from(["what a day", f"keep my {kind}", "cancel that", "T-124"]),
                max_size=3,
            )
        ),
    ]
    return said, secrets, draw(st.sampled_from(["", "", "told", "broken"]))


def check(desk: Desk, secrets: list[str], doors: Any) -> None:
    for door, text in doors:
        for secret in secrets:
            assert not leaks(secret, text), f"{secret} leaves by {door}: {text[:3000]}"


def everywhere(desk: Desk, *words: str) -> list[tuple[str, str]]:
    """All that can be read of the thread beside the log; what words are searched for."""
    return [*desk.doors(*words), *desk.commands("t"), *desk.chats("t")]


def play(said: list[str], secrets: list[str], ending: str, durable: Backend) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        SHARED.own_schemas(),
        Desk(durable.new_url(Path(folder))) as desk,
    ):
        desk.failures += [ending] if ending else []
        given = 0
        for number, text in enumerate(said):
            turn = converse(desk.graph, text, thread_id="t", message_id=f"m{number}")
            given += turn.params_keys != ()
            check(
                desk,
                secrets,
                desk.doors(*(secret for secret in secrets if len(squeezed(secret)) >= 7)),
            )
        check(desk, secrets, [*desk.commands("t"), *desk.chats("t")])
        event("a value was taken" if given else "no value was taken")
        assert leaks(secrets[0], desk.held()), "the log itself does not hold what was said"


@settings(
    max_examples=settings().max_examples if settings().derandomize else 2 * settings().max_examples
)
@given(conversations())
def test_no_secret_is_anywhere_but_in_the_log(
    durable: Backend, conversation: tuple[list[str], list[str], str]
) -> None:
    play(*conversation, durable)


@pytest.mark.slow
@pytest.mark.parametrize("kind", TYPES)
def test_a_secret_of_each_type_is_taken_and_hidden(kind: str, url: str) -> None:
    secret = {
        "identifier": "4929123456781234",
        "email": "zqxj@wvkq.org",
        "phone": "+44 7911 654321",
        "person": "Zqxjm Wvkqh",
        "name": "Zqxjmwv",
        "address": "4829 Zqxjm Street, Wvkqh",
        "place": "Zqxjmwv",
        "text": "zqxjm wvkqh",
        "integer": "739154",
        "number": "4829.7391",
        "money": "$48291.73",
        "date": "19 July 2061",
        "time": "17:43",
    }[kind]
    with Desk(url) as desk:
        converse(desk.graph, f"keep my {kind}", thread_id="t")
        taken = converse(desk.graph, secret, thread_id="t")
        check(desk, [secret], desk.doors())
        assert taken.params_keys == (f"secret_{kind}",), taken
        done = converse(desk.graph, "T-123", thread_id="t")
        assert "Kept" in done.reply
        check(desk, [secret], everywhere(desk))
        assert leaks(secret, desk.held())


@pytest.mark.slow
def test_a_value_that_only_a_tool_knows_is_hidden_however_deep_it_stands(url: str) -> None:
    secret = "4929123456781234"

    @tool("keep_identifier")
    def find(**_: Any) -> dict[str, Any]:
        """Find a customer."""
        return {
            "name": "Ada",
            "account": {"secret_identifier": secret},
            "cards": [{"secret_identifier": f"{secret[:4]} {secret[4:]}"}],
        }

    find.args_schema = {
        "type": "object",
        "properties": {"ticket": {"type": "string"}},
        "required": ["ticket"],
    }
    intent = {
        "id": "find",
        "description": "Find me",
        "patterns": ["find me"],
        "required": ["ticket"],
        "tool": "keep_identifier",
    }
    params = {
        "ticket": {"type": "identifier", "pattern": r"T-\d{3}", "prompt": "Which ticket?"},
        "secret_identifier": {"type": "identifier", "pattern": r"\d{16}", "sensitive": True},
    }
    catalog = IntentCatalog.from_dict(
        {
            "intents": [{**intent, "reply": "It is {result.account.secret_identifier}."}],
            "params": params,
        }
    )
    with Desk(url) as desk:
        builder = build_waiting_graph(catalog, [find], telemetry=[desk.kept], summarize_above=2)
        desk.graph = builder.compile(checkpointer=desk.saver)
        done = converse(desk.graph, "find me for T-123", thread_id="t")
        assert secret in done.reply, "the user is told"
        for text in ("what a day", "and what now?", f"so {secret} it is"):
            check(desk, [secret], everywhere(desk, secret))
            converse(desk.graph, text, thread_id="t")
        check(desk, [secret], everywhere(desk, secret))
        assert leaks(secret, desk.held())


def write_by_handle(desk: Desk, text: str) -> None:
    ConversationMemory(desk.saver).for_session("t").append(Message("user", text))


def write_by_history(desk: Desk, text: str) -> None:
    ThreadChatMessageHistory("t", desk.saver).add_messages([AIMessage("well?"), HumanMessage(text)])


def write_by_tool(desk: Desk, text: str) -> None:
    desk.threads.continue_("t", tool="another").say(text)


@pytest.mark.slow
@pytest.mark.parametrize("write", [write_by_handle, write_by_history, write_by_tool])
def test_an_answer_that_is_stored_past_the_graph_is_hidden(write: Any, url: str) -> None:
    secret, another = "4929123456781234", "4111222233334444"
    with Desk(url) as desk:
        converse(desk.graph, "keep my identifier", thread_id="t")
        write(desk, f"it is {secret}")
        check(desk, [secret], [*desk.doors(secret), *desk.commands("t")])
        assert leaks(secret, desk.held())
        turn = converse(desk.graph, "4929 1111 2222 3333", thread_id="t")
        assert turn.waiting_for == "ticket", "the question was still to be answered"
        write(desk, f"no, sorry, {another}")
        check(
            desk,
            [secret, another],
            [*desk.doors(secret), *desk.doors(another), *desk.commands("t")],
        )
        assert leaks(another, desk.held()), "the request takes it, whatever was asked last"
        assert converse(desk.graph, "T-123", thread_id="t").waiting_for is None
        write(desk, "good morning everybody")
        assert list(desk.threads.search("everybody")), (
            "where nothing waits, nothing is hidden for it"
        )
        check(
            desk,
            [secret, another],
            [*desk.doors(secret), *desk.doors(another), *desk.commands("t")],
        )


# -- a thread that another graph than its own opens -----------------------------------------------

CARD, MAIL = "4929123456781234", "zqxj@wvkq.org"
OWN = CHATS["its own graph"]
OTHERS = {name: CHATS[name] for name in ("the order desk", "another desk")}


def params_in(desk: Desk, graph: list[str]) -> dict[str, Any]:
    """What `/params` shows of the thread in a chat with a graph; `/state` shows the same."""
    words = ["chat", "--json", "--thread", "t", "--db", desk.url, *graph]
    lines = printed(*words, lines=["/params", "/state"]).splitlines()
    params, state = (json.loads(line) for line in lines if line.startswith("{"))
    assert state["params"] == params
    return {**params}


def say(mode: Mode, graph: Any, text: str) -> Turn:
    if mode == "sync":
        return converse(graph, text, thread_id="t")
    return asyncio.run(aconverse(graph, text, thread_id="t"))


@pytest.mark.slow
def test_values_are_hidden_at_every_turn_whichever_graph_opens_the_thread(url: str) -> None:
    with Desk(url) as desk:
        for text in ("keep my email", f"keep my identifier {CARD}", "T-123", "T-123", MAIL, CARD):
            converse(desk.graph, text, thread_id="t")
            check(desk, [CARD, MAIL], everywhere(desk, CARD, MAIL))
        assert leaks(CARD, desk.held())
        assert leaks(MAIL, desk.held())


@pytest.mark.slow
@pytest.mark.parametrize("graph", OTHERS.values(), ids=OTHERS)
def test_the_thread_says_which_values_are_harmless(graph: list[str], url: str) -> None:
    shown = {"secret_identifier": HIDDEN, "ticket": "T-123"}
    with Desk(url) as desk:
        converse(desk.graph, f"keep my identifier {CARD} for T-123", thread_id="t")
        assert params_in(desk, OWN) == shown
        assert params_in(desk, graph) == shown


@pytest.mark.slow
@pytest.mark.parametrize("graph", OTHERS.values(), ids=OTHERS)
def test_of_undeclared_values_another_graph_shows_the_names(graph: list[str], url: str) -> None:
    with Desk(url) as desk:
        converse(desk.graph, f"keep my identifier {CARD} for T-123", thread_id="t")
        desk.declare_nothing("t")
        assert params_in(desk, graph) == {"secret_identifier": HIDDEN, "ticket": HIDDEN}
        assert params_in(desk, OWN) == {"secret_identifier": HIDDEN, "ticket": "T-123"}
        ConversationMemory(desk.saver).for_session("t").merge({"mood": "zqxjm"})
        assert params_in(desk, OWN)["mood"] == HIDDEN, "no catalog knows it"
        check(desk, [CARD], everywhere(desk, CARD))


@pytest.mark.slow
@pytest.mark.parametrize("declared", [True, False], ids=["declared", "not declared"])
def test_what_is_sensitive_stays_so_in_another_graph(declared: bool, mode: Mode, url: str) -> None:
    with Desk(url) as desk:
        another = open_desk(desk.saver)
        say(mode, desk.graph, f"keep my identifier {CARD} for T-123")
        if not declared:
            desk.declare_nothing("t")
        told = say(mode, another, "keep my identifier again, the same one")
        assert CARD in told.reply, "the user is told"
        for text in (f"so {CARD} it is", "hm", "keep my identifier", f"it is {CARD}", "what a day"):
            say(mode, another, text)
            check(desk, [CARD], everywhere(desk, CARD))
        assert params_in(desk, OWN)["secret_identifier"] == HIDDEN
        assert leaks(CARD, desk.held())


@pytest.mark.slow
@pytest.mark.parametrize("graph", [open_desk, foreign_desk])
def test_an_answer_that_another_graph_hears_is_hidden(graph: Any, mode: Mode, url: str) -> None:
    with Desk(url) as desk:
        say(mode, desk.graph, "keep my identifier")
        say(mode, graph(desk.saver), f"it is {CARD}")
        check(desk, [CARD], everywhere(desk, CARD))
        assert leaks(CARD, desk.held())
        say(mode, graph(desk.saver), "good morning everybody")
        assert list(desk.threads.search("everybody")), "nothing asks, and nothing is hidden for it"


@pytest.mark.slow
def test_a_value_is_hidden_that_no_message_holds(url: str) -> None:
    with Desk(url) as desk:
        session = ConversationMemory(desk.saver).for_session("t")
        session.merge({"secret_identifier": CARD, "ticket": "T-123"})
        check(desk, [CARD, "T-123"], desk.chats("t"))
        converse(desk.graph, "good morning", thread_id="t")
        session.merge({"mood": "zqxjm"})
        check(desk, [CARD, "zqxjm"], desk.chats("t"))
        converse(desk.graph, "keep my identifier again, the same one", thread_id="t")
        shown = {"secret_identifier": HIDDEN, "ticket": "T-123", "mood": HIDDEN}
        assert params_in(desk, OWN) == shown
        check(desk, [CARD], everywhere(desk, CARD))
        assert leaks(CARD, desk.held())


@pytest.mark.slow
def test_a_request_that_another_interrupted_keeps_its_values_hidden(url: str) -> None:
    with Desk(url) as desk:
        for text in (f"keep my identifier {CARD}", f"keep my email {MAIL}"):
            assert converse(desk.graph, text, thread_id="t").waiting_for == "ticket"
        for text in ("T-123", "T-124"):
            check(desk, [CARD, MAIL], everywhere(desk, CARD, MAIL))
            converse(desk.graph, text, thread_id="t")
        check(desk, [CARD, MAIL], everywhere(desk, CARD, MAIL))


async def test_over_http_no_client_takes_a_known_value_from_what_is_hidden(url: str) -> None:
    with Desk(url) as desk:
        app = create_app(desk.saver, graph=desk.graph, sweep_every=None)
        for text in (f"keep my identifier {CARD}", "T-123"):
            await aconverse(desk.graph, text, thread_id="t")
        async with calling(app) as caller:
            values: Any = (await caller.sdk.threads.get_state("t"))["values"]
            known, declared = values["known_secrets"], values["sensitive_params"]
            for update in (
                {"known_secrets": {}},
                {"known_secrets": None},
                {"known_secrets": {**known, "values": []}},
                {"sensitive_params": dict.fromkeys(declared, False)},
            ):
                run = {"assistant_id": "agent"}
                for path, body in (
                    ("state", {"values": update, "as_node": "classify"}),
                    ("runs/wait", {**run, "command": {"update": update}}),
                    ("runs/wait", {**run, "command": {"goto": {"node": "classify", "input": {}}}}),
                ):
                    answer = await caller.http.post(f"/threads/t/{path}", json=body)
                    assert answer.status_code == 422, answer.text
            back = {name: values[name] for name in ("known_secrets", "sensitive_params", "params")}
            await caller.sdk.threads.update_state("t", back, as_node="classify")
        await aconverse(desk.graph, f"keep my email {MAIL} for ticket {CARD}", thread_id="t")
        await asyncio.to_thread(check, desk, [CARD, MAIL], everywhere(desk, CARD, MAIL))


# -- said again where it was not asked for --------------------------------------------------------

CARD = "4111111111111111"


@tool
def settle(card: str, remark: str) -> str:
    """Settle a bill."""
    return f"settled; {remark}"


SETTLING = catalog_named("settling")


@pytest.mark.parametrize("spelled", [CARD, "4111 1111 1111 1111", "4111-1111-1111-1111"])
@pytest.mark.parametrize("by_form", [False, True])
def test_a_known_sensitive_value_is_stored_in_no_free_text(spelled: str, by_form: bool) -> None:
    graph = build_waiting_graph(SETTLING, [settle]).compile(InMemorySaver())
    for text in ("settle", CARD):
        converse(graph, text, thread_id="t")
    remark = f"take {spelled} and ring the bell"
    given: Any = {"resume": {"remark": remark}} if by_form else {"text": remark}
    converse(graph, thread_id="t", **given)
    assert (
        converse(graph, "yes", thread_id="t").reply == f"settled; take {HIDDEN} and ring the bell"
    )
    state = graph.get_state({"configurable": {"thread_id": "t"}}).values
    messages = state.pop("messages")
    assert state["params"].pop("card") == CARD
    noted = [vars(message)["additional_kwargs"] for message in messages]
    calls = [call["args"]["remark"] for one in messages for call in getattr(one, "tool_calls", ())]
    assert calls == [f"take {HIDDEN} and ring the bell"]
    shown = "".join(map(shown_text, map(vars, messages)))
    # Eight digits: a time of day has six in a row at most.
    assert not re.search("1111[ -]?1111", f"{state} {noted} {shown}")


def test_a_doubtful_text_of_a_first_message_hides_a_sensitive_value_of_it() -> None:
    graph = build_waiting_graph(SETTLING, [settle]).compile(InMemorySaver())
    written = "the driver wrote 4111 1111 1111 1111 on my door"
    asked = converse(graph, f"please settle it. my card is {CARD}. {written}", thread_id="t")
    hidden = f"the driver wrote {HIDDEN} on my door"
    assert hidden in asked.reply
    state = graph.get_state({"configurable": {"thread_id": "t"}}).values
    assert state["params"] == {"card": CARD, "remark": hidden}
