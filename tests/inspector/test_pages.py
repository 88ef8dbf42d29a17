"""What the inspector's pages show of a database of this package."""

from __future__ import annotations

import base64
import json
import operator
import re
from collections.abc import Iterator
from decimal import Decimal
from html import unescape
from typing import Annotated, Any
from urllib.parse import unquote, urlencode

import pytest
from fastapi.testclient import TestClient
from inspected import Asking, browsing, config, read, steps_of, tags, travel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langgraph.graph import START, StateGraph
from langgraph.types import Command
from secrets_desk import own_desk
from typing_extensions import TypedDict

from langmem_ext import (
    ConversationMemories,
    DeltaSaver,
    Facts,
    FactSource,
    ThreadChatMessageHistory,
    Threads,
    converse,
    mark_sensitive,
)

HIDDEN = "•••"
SECRET = "4929123456781234"


@pytest.fixture
def saver(url: str) -> Iterator[DeltaSaver]:
    with DeltaSaver.open(url, synchronous="normal") as saver:
        yield saver


@pytest.fixture
def client(saver: DeltaSaver) -> Iterator[TestClient]:
    with browsing(saver) as client:
        yield client


def page(client: TestClient, where: str = "", **query: Any) -> str:
    answer = client.get(f"/ui/{where}?{urlencode(query)}")
    assert answer.status_code == 200, read(answer.text)
    return answer.text


def titles(text: str) -> list[str]:
    return re.findall(r'<span class="title">([^<]*)</span>', text)


def talk(saver: DeltaSaver, thread: str, *texts: str) -> None:
    ThreadChatMessageHistory(thread, saver).add_messages([HumanMessage(text) for text in texts])


def pages_of(client: TestClient, text: str) -> Iterator[str]:
    """A list's page, and those that follow."""
    yield text
    while following := [link["href"] for link in tags(text, "a") if link.get("rel") == "next"]:
        text = client.get(str(following[0])).text
        yield text


def rows(text: str) -> list[Any]:
    """Where the threads of a list are."""
    return [link["href"] for link in tags(text, "a") if "data-row" in link]


def travelled(saver: DeltaSaver, thread: str = "trip") -> Any:
    graph = travel(saver)
    graph.invoke({"messages": [HumanMessage("Where to?", id="first")]}, config(thread))
    return graph


# -- the list --------------------------------------------------------------------------------------


def test_threads_are_listed_filtered_and_sorted(saver: DeltaSaver, client: TestClient) -> None:
    talk(saver, "a", "short")
    talk(saver, "b", "long " * 200)
    talk(saver, "c", "one", "two", "three")
    threads = Threads(saver)
    threads.tag("a", "vip")
    threads.archive("b")
    assert set(titles(page(client))) == {"short", "one"}
    assert "2" in read(page(client))
    assert len(titles(page(client, status="all"))) == 3
    assert titles(page(client, status="all", order="tokens"))[0].startswith("long")
    assert titles(page(client, order="size"))[0] == "one"
    assert titles(page(client, tag="vip")) == ["short"]
    assert titles(page(client, q="shor")) == ["short"]
    assert titles(page(client, q="c")) == ["one"], "the beginning of an id"
    assert titles(page(client, age="hour", waiting="*")) == []


def test_a_list_says_how_each_thread_stands(saver: DeltaSaver, client: TestClient) -> None:
    travelled(saver)
    talk(saver, "old", "Bye")
    Threads(saver).archive("old")
    rows = {
        link["href"]: read(row)
        for row in page(client, "", status="all").split("<li>")[1:]
        for link in tags(row, "a")[:1]
    }
    assert "waits for" in rows["/ui/thread?id=trip"]
    assert "archived" in rows["/ui/thread?id=old"]
    assert "idle" not in read(page(client))
    talk(saver, "new", "Hello")
    assert read(page(client)).count("idle") == 1

    def fail(state: Asking) -> dict[str, Any]:
        raise RuntimeError("no")

    builder = StateGraph(Asking).add_node("fail", fail).add_edge(START, "fail")
    with pytest.raises(RuntimeError):
        builder.compile(checkpointer=saver).invoke({"city": "Rome"}, config("broken"))
    assert read(page(client)).count("failed") == 1


def test_questions_are_found_among_those_that_wait_and_pages_lose_no_thread(
    saver: DeltaSaver, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("langmem_ext.inspector.sources.own.LOOKED_AT", 10)  # for one page
    travelled(saver, "first trip")
    for at in range(30):
        talk(saver, f"t{at}", f"thread {at}")
    travelled(saver, "second trip")
    for at in range(30, 70):
        talk(saver, f"t{at}", f"thread {at}")
    converse(own_desk(saver), "keep my identifier", thread_id="desk")
    waiting = [f"/ui/thread?id={name}" for name in ("desk", "second+trip", "first+trip")]
    for order in ("used", "tokens"):
        text = page(client, waiting="*", order=order)
        found = [row for one in pages_of(client, text) for row in rows(one)]
        assert found == waiting if order == "used" else sorted(found) == sorted(waiting)
        texts = [*pages_of(client, page(client, order=order))]
        found = [title for text in texts for title in titles(text) if "thread " in title]
        assert sorted(found) == sorted(f"thread {at}" for at in range(70))


def test_an_owner_sees_no_other_threads(saver: DeltaSaver) -> None:
    talk(saver.for_owner("ada"), "hers", "of ada")
    talk(saver.for_owner("ben"), "his", "of ben")
    with browsing(saver, owner=lambda request: "ada") as client:
        assert titles(page(client)) == ["of ada"]
        for name in (
            "thread",
            "thread/state",
            "thread/changes",
            "thread/context",
            "thread/usage",
            "thread/bundle",
        ):
            assert client.get(f"/ui/{name}?id=his").status_code == 404


# -- a thread --------------------------------------------------------------------------------------


def test_a_conversation_shows_markdown_and_folds_tool_calls(
    saver: DeltaSaver, client: TestClient
) -> None:
    graph = travelled(saver)
    graph.invoke(Command(resume="Rome"), config("trip"))
    text = page(client, "thread", id="trip")
    assert "<strong>Rome</strong>" in text
    assert text.count('<details class="call') == 1
    assert '"cities": 2' in read(text)
    assert read(text).index("Where to?") < read(text).index("look_up") < read(text).index("Off to")


def test_a_long_conversation_is_shown_from_its_end(saver: DeltaSaver, client: TestClient) -> None:
    talk(saver, "long", *(f"message {at}." for at in range(130)))
    text = page(client, "thread", id="long")
    assert "message 129." in text
    assert "message 79." not in text
    earlier = next(link["href"] for link in tags(text, "a") if "before" in str(link.get("href")))
    text = client.get(str(earlier)).text
    assert "message 79." in text
    assert "message 30." in text
    assert "message 80." not in text


def test_the_question_that_waits_is_shown(saver: DeltaSaver, client: TestClient) -> None:
    travelled(saver)
    text = page(client, "thread", id="trip")
    assert "Rome or Oslo?" in read(text)
    assert "--graph" in read(text), "how to answer it is said"
    assert "Rome or Oslo?" not in read(page(client, "thread", id="trip", at=steps_of(text)[-1]))
    text = page(client, "thread/changes", id="trip")
    assert "step 0" in text
    assert "-1</b>" not in text, "the input of a thread has no number"


def test_state_changes_and_conversation_are_shown_at_every_step(
    saver: DeltaSaver, client: TestClient
) -> None:
    graph = travelled(saver)
    graph.invoke(Command(resume="Oslo"), config("trip"))
    steps = steps_of(page(client, "thread", id="trip"))
    assert len(steps) == len([*graph.get_state_history(config("trip"))])
    for state in graph.get_state_history(config("trip")):
        at = state.config["configurable"]["checkpoint_id"]
        shown = page(client, "thread/state", id="trip", at=at)
        assert ("Oslo" in read(shown)) == ("city" in state.values)
        said = page(client, "thread", id="trip", at=at)
        assert said.count('<li class="said') == len(
            [one for one in state.values.get("messages", []) if one.type != "tool"]
        )
    last = page(client, "thread/changes", id="trip")
    assert "Off to **Oslo**" in read(last)
    assert "<code>first</code>" not in last
    whole = page(client, "thread/changes", id="trip", against=steps[-1])
    assert "<code>first</code>" in whole


def test_messages_without_ids_are_compared_by_their_places(
    saver: DeltaSaver, client: TestClient
) -> None:
    class Noting(TypedDict):
        notes: Annotated[list[Any], operator.add]

    builder = StateGraph(Noting)
    builder.add_node("note", lambda state: {"notes": [AIMessage(f"at {len(state['notes'])}")]})
    builder.add_edge(START, "note")
    graph = builder.compile(checkpointer=saver)
    for text in ("one", "two"):
        graph.invoke({"notes": [HumanMessage(text)]}, config("notes"))
    shown = page(client, "thread/changes", id="notes")
    assert re.findall(r"<header><code>([^<]*)</code><span>([^<]*)", shown) == [("3", "added")]
    assert "at 3" in read(shown)
    earlier = steps_of(page(client, "thread", id="notes"))[-1]
    whole = page(client, "thread/changes", id="notes", against=earlier)
    assert re.findall(r"<header><code>([^<]*)", whole) == ["0", "1", "2", "3"]


def test_forks_are_a_tree(saver: DeltaSaver, client: TestClient) -> None:
    graph = travelled(saver)
    asked = graph.get_state(config("trip")).config
    graph.invoke(Command(resume="Rome"), config("trip"))
    graph.update_state(asked, None, as_node="__copy__")
    graph.invoke(None, config("trip"))
    graph.invoke(Command(resume="Oslo"), config("trip"))
    text = page(client, "thread", id="trip")
    assert "2 branches" in read(text)
    assert "Oslo" in read(text)
    on_the_other = next(
        state
        for state in graph.get_state_history(config("trip"))
        if state.values.get("city") == "Rome" and not state.next
    )
    other = page(
        client, "thread", id="trip", at=on_the_other.config["configurable"]["checkpoint_id"]
    )
    assert "Off to Rome" in read(other)
    assert (
        len({row.split()[0] for row in re.findall(r'<path class="[^"]*" d="(M[^V]*)V', text)}) > 1
    ), "branches stand side by side"


# -- blame -----------------------------------------------------------------------------------------


def blamed(client: TestClient, channel: str, *path: str | int, **query: str) -> str:
    return read(
        page(
            client,
            "thread/blame",
            id="trip",
            channel=channel,
            path=json.dumps(path),
            part="1",
            **query,
        )
    )


def test_blame_names_step_node_and_write(saver: DeltaSaver, client: TestClient) -> None:
    graph = travelled(saver)
    graph.invoke(Command(resume="Rome"), config("trip"))
    for _ in range(3):
        graph.invoke({"messages": [HumanMessage("And then?")]}, config("trip"))
        graph.invoke(Command(resume="Oslo"), config("trip"))
    assert "look wrote it" in blamed(client, "messages", "look-1")
    assert "go wrote it" in blamed(client, "messages", "go-3")
    assert "It came with an input" in blamed(client, "messages", "first")
    assert "ask wrote it" in blamed(client, "city")
    graph.update_state(config("trip"), {"city": "Bergen"}, as_node="ask")
    edited = blamed(client, "city")
    assert "edited from outside" in edited
    assert "Bergen" in edited
    assert "Oslo" in edited


def test_blame_of_a_key_finds_where_it_changed(saver: DeltaSaver, client: TestClient) -> None:
    graph = travelled(saver)
    graph.invoke(Command(resume={"name": "Rome", "days": 3}), config("trip"))
    graph.update_state(config("trip"), {"city": {"name": "Rome", "days": 5}}, as_node="ask")
    assert "ask wrote it" in blamed(client, "city", "name")
    assert "edited from outside" in blamed(client, "city", "days")


# -- what is hidden --------------------------------------------------------------------------------


def test_sensitive_values_are_hidden_unless_their_owner_asks(saver: DeltaSaver) -> None:
    marked = mark_sensitive(HumanMessage("My card is 4111 1111", id="m1"), {"card": "4111 1111"})
    said = [marked, AIMessage("Got it", id="m2")]
    graph = travel(saver)
    graph.update_state(config("card"), {"messages": said, "city": "Rome"}, as_node="look")
    pages = ("thread", "thread/state", "thread/changes", "thread/context", "thread/usage")
    for options, query, shown in (
        ({}, {"reveal": 1}, False),
        ({"reveal": True}, {}, False),
        ({"reveal": True}, {"reveal": 1}, True),
    ):
        with browsing(saver, **options) as client:
            texts = [page(client, name, id="card", **query) for name in pages]
            texts.append(
                page(client, "thread/blame", id="card", channel="messages", path='["m1"]', **query)
            )
            assert any("4111" in text for text in texts) == shown
            assert any(HIDDEN in text for text in texts) != shown


def test_a_sensitive_value_is_hidden_wherever_it_stands(saver: DeltaSaver) -> None:
    graph = own_desk(saver)
    for text in ("keep my identifier", SECRET):
        converse(graph, text, thread_id="desk")
    graph.update_state(config("desk"), {"last_result": {"cards": {SECRET: {"limit": 500}}}})
    with browsing(saver) as client:
        for name in ("thread/state", "thread/changes"):
            text = page(client, name, id="desk")
            assert "500" in read(text)
            assert HIDDEN in read(text)
        for at in steps_of(page(client, "thread", id="desk")):
            texts = [
                page(client, name, id="desk", at=at)
                for name in ("thread", "thread/state", "thread/changes", "thread/context")
            ]
            texts += [
                page(client, "thread/blame", id="desk", at=at, channel=channel)
                for channel in ("params", "messages", "plan", "__start__", "last_result")
            ]
            assert not any(SECRET in unquote(text) for text in texts)
        path = json.dumps(["cards"])
        text = page(client, "thread/blame", id="desk", channel="last_result", path=path)
        assert SECRET not in unquote(text)
        for what in ("words", "marked"):
            assert SECRET not in client.get(f"/ui/thread/bundle?id=desk&what={what}").text


# -- what is too long to be shown ------------------------------------------------------------------


def test_what_is_too_long_or_no_text_is_told_by_how_much_there_is(
    saver: DeltaSaver, client: TestClient
) -> None:
    talk(saver, "long", *(f"Number {at}" for at in range(8)))
    text = read(page(client, "thread/state", id="long"))
    for words in ("8 messages", "5 earlier", "Number 5"):
        assert words in text
    assert "Number 4" not in text.split("Timeline")[1]
    data = base64.b64encode(bytes(range(256)) * 4).decode()
    blocks: list[Any] = [
        {"type": "image", "base64": data, "mime_type": "image/png"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
    ]
    many = dict.fromkeys(map(str, range(25)), 1)
    said = [HumanMessage(blocks, id="seen"), AIMessage("x", id="m", response_metadata=many)]
    ThreadChatMessageHistory("picture", saver).add_messages(said)
    for name in ("thread/state", "thread/changes"):
        text = page(client, name, id="picture")
        assert "image/png, 1,02" in read(text)
        assert data not in text
    assert "5 more" in read(text)


# -- what else there is ----------------------------------------------------------------------------


def test_what_is_remembered_stands_with_the_messages_it_stands_on(
    saver: DeltaSaver, client: TestClient
) -> None:
    travelled(saver)
    assert "Nothing is remembered" in read(page(client, "thread/memory", id="trip"))
    memories = ConversationMemories(saver)
    memories.put("trip", {"main_topics": ["a <b>journey</b>"]}, messages=["first"])
    facts = Facts(memories.store)
    facts.remember("Lives in Oslo", subject="home", sources=[FactSource("trip", "first")])
    facts.remember("Has a dog", sources=[FactSource("another", "m")])
    text = page(client, "thread/memory", id="trip")
    assert "a <b>journey</b>" in read(text)
    assert "Lives in Oslo" in read(text)
    assert "dog" not in read(text)
    link = next(str(one["href"]) for one in tags(text, "a") if one.get("class") == "blame")
    assert "It came with an input" in read(client.get(link).text)


# -- the rest --------------------------------------------------------------------------------------


def test_what_a_model_was_sent_stands_beside_what_is_stored(
    saver: DeltaSaver, client: TestClient
) -> None:
    talk(saver, "long", *(f"question {at} with some words to it" for at in range(40)))
    whole = read(page(client, "thread/context", id="long"))
    assert "No governor" in whole
    cut = page(client, "thread/context", id="long", budget="120")
    assert "left out" in read(cut)
    assert cut.count('class="entry left-out"') > 10
    assert "120" in read(cut)
    impossible = page(client, "thread/context", id="long", budget="1")
    assert "budget" in read(impossible).lower()


def test_all_that_is_sent_costs_what_the_head_of_the_page_says(
    saver: DeltaSaver, client: TestClient
) -> None:
    talk(saver, "long", *(f"question {at} with some words to it" for at in range(300)))
    text = read(page(client, "thread/context", id="long"))
    at_the_top, stored, sent = re.findall(r"~([\d,]+) tokens", text)
    assert at_the_top == stored == sent
    assert "question 299" in text
    assert "250 messages before these" in text
    page(client, "thread/context", id="long", budget=5000 * "9")
    counted = read(page(client, "thread/context", id="long", budget="1000000"))
    assert "Counted as a governor counts" in counted


def test_usage_is_charted_and_costs_what_prices_say(saver: DeltaSaver) -> None:
    used = {"input_tokens": 1_000_000, "output_tokens": 500_000, "total_tokens": 1_500_000}
    told: Any = {"usage_metadata": used, "response_metadata": {"model_name": "m"}}
    said = [HumanMessage("Hi"), AIMessage("Here", **told), AIMessageChunk("and there", **told)]
    ThreadChatMessageHistory("paid", saver).add_messages(said)
    with browsing(saver, prices={"m": (Decimal(2), Decimal(8))}) as client:
        text = page(client, "thread/usage", id="paid")
    assert "12.0000" in read(text)
    assert text.count("<rect") >= 4


def test_what_was_said_is_found(saver: DeltaSaver, client: TestClient) -> None:
    talk(saver, "a", "the lamp is broken")
    talk(saver, "b", "the lamp works")
    text = page(client, "search", q="broken lamp")
    assert "<mark>broken</mark>" in text
    assert "works" not in read(text)
    assert client.get("/ui/search").status_code == 200


def test_errors_are_pages_that_say_what_to_do(saver: DeltaSaver, client: TestClient) -> None:
    talk(saver, "a", "x")
    for path, status in (
        ("thread?id=nothing", 404),
        ("thread?id=a&at=nothing", 404),
        ("thread", 400),
        ("thread/blame?id=a&channel=x&path=%7B", 400),
        ("thread/bundle?id=a&what=all", 400),
        ("thread/changes?id=a&against=nothing", 404),
        ("static/../router.py", 404),
        ("static/router.py", 404),
    ):
        answer = client.get(f"/ui/{path}")
        assert answer.status_code == status, path
        assert "Traceback" not in answer.text


def test_any_id_has_its_pages(saver: DeltaSaver, client: TestClient) -> None:
    for name in ("a/b?c=d&e#f", "ünï çode", "'\"<>", "..", "%2F"):
        talk(saver, name, "hello")
        links = [
            str(link["href"])
            for link in tags(page(client), "a")
            if "/thread?" in str(link.get("href"))
        ]
        assert any(f'data-copy="{name}"' in unescape(client.get(link).text) for link in links), name
