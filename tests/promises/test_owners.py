"""Promise: a caller who speaks for an owner finds that owner's threads and no other's; one who
speaks for nobody finds all. A thread that is given to another owner is that owner's alone.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from calling import another, calling
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.types import Command
from payments import Payments
from savers import Calls
from scripted_model import scripted
from small_graphs import asking_for, chain, config, echo, saying

from langmem_ext import (
    DeltaSaver,
    Facts,
    FactSource,
    InvalidInput,
    ThreadChatMessageHistory,
    ThreadNotFound,
    Threads,
    examine,
    memory_tools,
)
from langmem_ext.server import by_token, create_app

NAMES = {f"{name}-0123456789abcdef": name for name in ("ann", "bob")}
ANN, BOB = ({"authorization": f"Bearer {token}"} for token in NAMES)


def chat(saver: DeltaSaver, *, child: bool = False) -> Any:
    answer = saying(("ai", "yes"))
    return chain(chain(answer, saver=True), saver=saver) if child else chain(answer, saver=saver)


def say(saver: DeltaSaver, **configurable: Any) -> None:
    chat(saver).invoke({"messages": [HumanMessage("hi")]}, config(**configurable))


def test_the_owner_is_recorded_at_the_first_put_and_keeps_others_out(saver: DeltaSaver) -> None:
    say(saver, owner="u1")
    assert saver.get_tuple(config(owner="u1")) is not None
    assert saver.get_tuple(config(owner="u2")) is None
    assert list(saver.list(config(owner="u2"))) == []
    deltas = saver.get_delta_channel_history(config=config(owner="u2"), channels=["messages"])
    assert deltas["messages"]["writes"] == []
    with pytest.raises(ThreadNotFound):
        say(saver, owner="u2")
    assert saver.get_tuple(config()) is not None


def test_a_bound_saver_needs_no_owner_in_the_config(saver: DeltaSaver) -> None:
    mine, theirs = saver.for_owner("u1"), saver.for_owner("u2")
    say(mine)
    assert theirs.get_tuple(config()) is None
    assert list(theirs.list(None)) == []
    assert len(list(mine.list(None))) == 3
    with pytest.raises(ThreadNotFound):
        say(theirs)
    theirs.delete_thread("t")
    assert mine.get_tuple(config()) is not None
    mine.delete_thread("t")
    assert saver.get_tuple(config()) is None


def test_a_config_cannot_widen_what_a_bound_saver_may_see(saver: DeltaSaver) -> None:
    say(saver.for_owner("u1"))
    bound = saver.for_owner("u2")
    assert bound.get_tuple(config(owner="u1")) is None
    with pytest.raises(ThreadNotFound):
        say(bound, owner="u1")
    assert saver.for_owner("u1").get_tuple(config(owner="u1")) is not None


def test_a_thread_without_an_owner_is_nobodys(saver: DeltaSaver) -> None:
    say(saver)
    assert saver.for_owner("u1").get_tuple(config()) is None
    with pytest.raises(ThreadNotFound):
        say(saver.for_owner("u1"))


def test_a_bound_saver_reads_a_subgraphs_state_of_its_own_threads_only(
    saver: DeltaSaver,
) -> None:
    graph = chat(saver.for_owner("u1"), child=True)
    graph.invoke({"messages": [HumanMessage("hi")]}, config())
    assert len(graph.get_state(config(), subgraphs=True).values["messages"]) == 2
    other = chat(saver.for_owner("u2"), child=True)
    assert other.get_state(config(), subgraphs=True).values == {}


def test_a_history_is_bound_like_its_saver(saver: DeltaSaver) -> None:
    ThreadChatMessageHistory("t", saver.for_owner("u1")).add_messages([HumanMessage("mine")])
    assert ThreadChatMessageHistory("t", saver, owner="u2").messages == []
    with pytest.raises(ThreadNotFound):
        ThreadChatMessageHistory("t", saver, owner="u2").add_messages([HumanMessage("theirs")])
    assert len(ThreadChatMessageHistory("t", saver, owner="u1").messages) == 1


async def test_async_calls_are_bound_alike(saver: DeltaSaver) -> None:
    said = {"messages": [HumanMessage("hi")]}
    await chat(saver.for_owner("u1")).ainvoke(said, config())
    assert await saver.for_owner("u2").aget_tuple(config()) is None
    assert [found async for found in saver.for_owner("u2").alist(None)] == []
    with pytest.raises(ThreadNotFound):
        await chat(saver.for_owner("u2")).ainvoke(said, config())


def test_what_names_no_owner_is_refused(saver: DeltaSaver) -> None:
    for owner in ("", True):
        with pytest.raises(InvalidInput, match="owner"):
            saver.for_owner(owner)  # type: ignore[arg-type]


async def test_over_http_an_owner_writes_no_item_of_the_server(tmp_path: Path) -> None:
    """Else she would give it tasks in another's name, prompts of all, or the key of MCP."""
    desk, now = Payments(tmp_path), "2026-01-01T00:00:00+00:00"
    async with await DeltaSaver.aopen(tmp_path / "m.db") as saver:
        app = create_app(saver, graph=desk.graph(saver), access=by_token(NAMES), sweep_every=None)
        async with calling(app, headers=BOB) as bob, another(app, headers=ANN) as ann:
            say = {"text": "pay 50"}
            await bob.http.post("/threads", json={"thread_id": "bobs"})
            assert (await bob.http.post("/langmem/threads/bobs/reply", json=say)).is_success
            payload = {"conversation_id": "bobs", "message_id": "m", "content": "yes"}
            task = {
                **{"id": "t", "kind": "DELIVER_MESSAGE", "payload": payload, "owner": "bob"},
                **{"line": "bobs", "thread": None, "status": "queued", "attempts": 0},
                **{"result": None, "error": None, "created_at": now, "updated_at": now},
            }
            items = [
                (["langmem", "tasks"], "t", task),
                (["langmem", "lines", "00ff"], "0" * 20, {"task": "t"}),
                (["memory", "prompts", "fact_extraction"], "active", {"version": "x"}),
                (["memory", "threads"], "bobs", {"memory": {}}),
                (["langmem_ext", "mcp"], "key", {"key": "k" * 64}),
            ]
            for namespace, key, value in items:
                item = {"namespace": namespace, "key": key}
                answer = await ann.http.put("/store/items", json={**item, "value": value})
                assert answer.status_code == 403, namespace
                answer = await ann.http.request("DELETE", "/store/items", json=item)
                assert answer.status_code == 403, namespace
            own = {"namespace": ["notes"], "key": "k", "value": {"a": 1}}
            assert (await ann.http.put("/store/items", json=own)).status_code == 204
    assert desk.ran == []


@pytest.mark.parametrize("owner", [None, lambda config: config["configurable"]["user_id"]])
async def test_over_http_nobody_passes_for_another(saver: DeltaSaver, owner: Any) -> None:
    """Facts are those of the user whom the server knows, whoever else a client names."""

    def remember(messages: Any) -> AIMessage:
        fact = {"fact": messages[-1].text, "subject": "drink"}
        return AIMessage("", tool_calls=[{"name": "remember_fact", "args": fact, "id": "c"}])

    tools = memory_tools(saver.store, owner=owner)
    for tool in tools:
        tool.return_direct = True
    agent = create_agent(scripted(remember), tools, store=saver.store)
    app = create_app(saver, graph=agent, access=by_token(NAMES), sweep_every=None)
    bobs = {name: "bob" for name in ("user_id", "langgraph_auth_user_id", "owner")}
    async with calling(app, headers=BOB) as bob, another(app, headers=ANN) as ann:
        for caller, fact in ((bob, "tea"), (ann, "rum")):
            await caller.sdk.threads.create(thread_id=fact)
            said: Any = {"messages": [("user", fact)]}
            await caller.sdk.runs.wait(fact, "agent", input=said, config={"configurable": bobs})
            reply = {"text": f"more {fact}", "config": bobs}
            assert (await caller.http.post(f"/langmem/threads/{fact}/reply", json=reply)).is_success
    for name, fact in (("ann", "rum"), ("bob", "tea")):
        known = Facts(saver.store, owner=name).recall(superseded=True)
        assert [one.text for one in known] == [f"more {fact}", fact]


# -- a thread is given to another owner whole ------------------------------------------------------


async def test_the_new_owner_has_all_of_it_and_the_old_one_nothing(
    saver: DeltaSaver, calls: Calls
) -> None:
    ask, said = asking_for("Where to?", "Off to {}"), HumanMessage("a long weekend in Lisbon")
    chain(ask, saver=saver.for_owner("ann")).invoke({"messages": [said]}, config())
    ann, bob = Threads(saver, owner="ann"), Threads(saver, owner="bob")
    ann.tag("t", "travel")
    assert saver.for_owner("bob").get_tuple(config()) is None

    given = await calls.call(ann, "give", "t", "bob")

    assert (given.owner, given.tags) == ("bob", ("travel",))
    assert [thread.id for thread in bob.list()] == ["t"]
    exported = io.StringIO()
    bob.export_to(exported)
    assert "Lisbon" in exported.getvalue()
    assert ann.list() == []
    assert saver.for_owner("ann").get_tuple(config()) is None
    with pytest.raises(ThreadNotFound):
        ann.get("t")
    with pytest.raises(ThreadNotFound):
        ThreadChatMessageHistory("t", saver, owner="ann").add_messages([HumanMessage("mine")])
    answered = chain(ask, saver=saver.for_owner("bob")).invoke(Command(resume="Lisbon"), config())
    assert answered["messages"][-1].content == "Off to Lisbon"
    assert {hit.thread_id for hit in bob.search("Lisbon")} == {"t"}
    assert ann.search("Lisbon") == []
    assert {finding.severity for finding in examine(saver.log).findings} <= {"note"}


def test_another_process_that_knows_the_thread_learns_of_it(url: str) -> None:
    with DeltaSaver.open(url) as one, DeltaSaver.open(url) as other:
        mine = ThreadChatMessageHistory("t", other, owner="ann")
        mine.add_messages([HumanMessage("one")])
        Threads(one).give("t", "bob")
        with pytest.raises(ThreadNotFound):
            mine.add_messages([HumanMessage("two")])
        assert len(ThreadChatMessageHistory("t", one, owner="bob").messages) == 1


async def test_a_run_is_found_only_with_its_thread(saver: DeltaSaver) -> None:
    """What a server remembers of a run holds the conversation."""
    app = create_app(saver, graph=chain(echo), access=by_token(NAMES), sweep_every=None)
    async with calling(app, headers=ANN) as caller:
        for way in ("deleted", "given"):
            await caller.sdk.threads.create(thread_id=way)
            asked = {"messages": [("user", "private")]}
            run = await caller.sdk.runs.create(way, "agent", input=asked)
            await caller.sdk.runs.join(way, run["run_id"])
            if way == "deleted":
                await caller.sdk.threads.delete(way)
            else:
                Threads(saver, owner="ann").give(way, "bob")
            for path in ("", "/join"):
                answer = await caller.http.get(f"/threads/{way}/runs/{run['run_id']}{path}")
                assert answer.status_code == 404, (way, path)
                assert "private" not in answer.text


def test_a_view_that_is_bound_to_an_owner_is_bound_to_no_other(saver: DeltaSaver) -> None:
    for view in (saver, saver.store):
        bobs = view.for_owner("bob")
        assert bobs.for_owner("bob").owner == "bob"
        with pytest.raises(InvalidInput):
            bobs.for_owner("ann")


async def test_owners_use_one_key_of_the_store(saver: DeltaSaver, calls: Calls) -> None:
    stores = {owner: saver.for_owner(owner).store for owner in ("ann", "bob")}
    for owner, store in stores.items():
        await calls.call(store, "put", ("users", "bob"), "profile", {"of": owner})
    for owner, store in stores.items():
        found = await calls.call(store, "get", ("users", "bob"), "profile")
        assert found.value == {"of": owner}


async def test_nobody_gives_what_is_not_their_own_and_giving_twice_changes_nothing(
    saver: DeltaSaver, calls: Calls
) -> None:
    ThreadChatMessageHistory("t", saver).add_messages([HumanMessage("hello")])  # it is nobody's
    given = await calls.call(Threads(saver), "give", "t", "ann")
    assert await calls.call(Threads(saver), "give", "t", "ann") == given
    with pytest.raises(ThreadNotFound):
        await calls.call(Threads(saver, owner="bob"), "give", "t", "bob")
    with pytest.raises(ThreadNotFound):
        await calls.call(Threads(saver), "give", "nothing", "bob")
    for owner in ("", None, ["bob"], "a\0b"):
        with pytest.raises(InvalidInput):
            await calls.call(Threads(saver), "give", "t", owner)
    assert Threads(saver).get("t") == given


def test_what_the_former_owner_remembers_of_it_alone_goes(saver: DeltaSaver) -> None:
    for thread in ("t", "another"):
        ThreadChatMessageHistory(thread, saver, owner="ann").add_messages([HumanMessage("tea")])
    facts = Facts(saver.for_owner("ann").store, owner="ann")
    facts.remember("Likes tea", sources=[FactSource("t", "m1")])
    facts.remember("Likes rain", sources=[FactSource("t", "m1"), FactSource("another", "m2")])
    facts.remember("Lives in Rome")
    Threads(saver).give("t", "bob")
    assert sorted(fact.text for fact in facts.recall()) == ["Likes rain", "Lives in Rome"]
