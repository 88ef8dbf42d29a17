"""An owner's lasting facts are added, never changed, and found again.

They are gone with what they are based on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from clock import Clock
from doubles import answering, called, talk
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import HumanMessage
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langmem_ext import (
    DeltaSaver,
    DeltaStore,
    Facts,
    FactSource,
    InvalidInput,
    MemoryGenerator,
    MessageLog,
    ThreadChatMessageHistory,
    Threads,
    mark_sensitive,
)

LONG_AGO = datetime(2024, 5, 1, tzinfo=UTC)
LAST_YEAR = datetime(2025, 5, 1, tzinfo=UTC)
TODAY = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[MessageLog]:
    opened = MessageLog.open(tmp_path / "memory.db")
    yield opened
    opened.close()


@pytest.fixture(params=["in memory", "of the database"])
def store(request: pytest.FixtureRequest, log: MessageLog) -> BaseStore:
    return DeltaStore(log) if request.param == "of the database" else InMemoryStore()


def everything(store: BaseStore) -> list[Any]:
    return [item.dict() for item in store.search((), limit=10_000)]


def texts(facts: list[Any]) -> list[str]:
    return [fact.text for fact in facts]


# -- remembered, recalled, forgotten ---------------------------------------------------------------


async def test_a_later_fact_supersedes_an_earlier_one_and_both_can_be_seen(
    store: BaseStore, mode: str
) -> None:
    facts = Facts(store, owner="ann")
    city: Any = {"subject": "home city", "said_at": LAST_YEAR}
    oslo = await called(mode, facts, "remember", "Lives in Oslo", **city)
    city = {"subject": " Home  CITY", "said_at": LONG_AGO}
    rome = await called(mode, facts, "remember", "Lives in Rome", **city)
    assert (oslo.superseded_by, rome.superseded_by) == (None, oslo.id), (
        "the order of writing makes no difference"
    )
    assert texts(await called(mode, facts, "recall")) == ["Lives in Oslo"]
    seen = await called(mode, facts, "recall", subject="HOME CITY", superseded=True)
    assert [(fact.text, fact.said_at, fact.superseded_by) for fact in seen] == [
        ("Lives in Oslo", LAST_YEAR, None),
        ("Lives in Rome", LONG_AGO, oslo.id),
    ]
    assert await called(mode, facts, "forget", oslo.id, oslo.id, "none") == 1
    assert texts(await called(mode, facts, "recall")) == ["Lives in Rome"], "it holds again"
    for text in ("Likes tea", "  Likes\ntea "):
        source = FactSource("t1", "m1")
        given: Any = {"subject": "drink", "said_at": TODAY, "sources": [source, source]}
        await called(mode, facts, "remember", text, **given)
    [tea] = await called(mode, facts, "recall", subject="drink", superseded=True)
    assert (tea.text, tea.sources) == ("Likes tea", (source,)), "it is there once"
    other = Facts(store, owner="bob")
    for text, when in (("Oslo", LONG_AGO), ("Rome", LAST_YEAR), ("Oslo", TODAY)):
        other.remember(text, subject="city", said_at=when)
        other.remember(f"Was in {text}", said_at=when)
    assert texts(other.recall(subject="city")) == ["Oslo"], "what is said again holds again"
    assert texts(other.recall(subject="city", superseded=True)) == ["Oslo", "Rome", "Oslo"]
    alone = [text for text in texts(other.recall()) if text.startswith("Was in")]
    assert set(alone) == {"Was in Oslo", "Was in Rome"}, "without a subject each stands by itself"


def test_an_owner_sees_only_what_is_the_owners(store: BaseStore) -> None:
    names = [None, "ann", "ann.b", "ann%2Eb", "%", "Ann"]
    for name in names:
        Facts(store, owner=name).remember(f"I am {name}")
    assert [texts(Facts(store, owner=name).recall()) for name in names] == [
        [f"I am {name}"] for name in names
    ]


async def test_facts_are_looked_for_by_the_stores_own_search(mode: str) -> None:
    store = InMemoryStore(
        index={"dims": 64, "embed": DeterministicFakeEmbedding(size=64), "fields": ["$"]}
    )
    facts = Facts(store, owner="ann")
    for number in range(150):
        await called(
            mode,
            facts,
            "remember",
            f"Fact {number}",
            subject=f"subject {number % 75}",
            said_at=TODAY + timedelta(number),
        )
    [first, *rest] = await called(mode, facts, "recall", "Fact 140", limit=70)
    assert first.text == "Fact 140"
    assert first.score == pytest.approx(1)
    assert len(rest) == 69
    assert all(int(fact.text.split()[1]) >= 75 for fact in (first, *rest)), "those that hold"
    assert len(await called(mode, facts, "recall", "Fact 140", limit=1000, superseded=True)) == 150


def test_what_cannot_be_remembered_is_refused_and_changes_nothing(
    store: BaseStore, log: MessageLog
) -> None:
    wrong: list[tuple[Any, dict[str, Any]]] = [
        *((text, {}) for text in ("", "x" * 2001, "nul \0", "half \ud800", 5)),
        ("Likes tea", {"subject": " "}),
        ("Likes tea", {"said_at": datetime(2026, 1, 1)}),
        ("Likes tea", {"sources": [FactSource("", "m1")]}),
    ]
    for text, given in wrong:
        with pytest.raises(InvalidInput):
            Facts(store).remember(text, **given)
    assert everything(store) == []
    for limit in (0, -1, True, 1.5):
        with pytest.raises(InvalidInput, match="limit"):
            Facts(store).recall(limit=limit)  # type: ignore[arg-type]
    saver: Any = DeltaSaver(log)
    with pytest.raises(InvalidInput, match=r"DeltaStore\(saver\)"):
        Facts(saver)


# -- what they stand on ----------------------------------------------------------------------------


async def test_a_fact_goes_with_the_last_thread_that_it_stands_on(
    store: BaseStore, mode: str
) -> None:
    facts = Facts(store, owner="ann")
    await called(mode, facts, "remember", "Likes tea", sources=[FactSource("t1", "m1")])
    await called(
        mode,
        facts,
        "remember",
        "Has a dog",
        sources=[FactSource("t1", "m2"), FactSource("t2", "m1")],
    )
    await called(mode, facts, "remember", "Told by the application")
    assert await called(mode, facts, "forget_thread", "t1") == 1
    left = {fact.text: fact.sources for fact in await called(mode, facts, "recall")}
    assert left == {"Has a dog": (FactSource("t2", "m1"),), "Told by the application": ()}
    assert await called(mode, facts, "forget_thread", "t2") == 1


# -- found by a model ------------------------------------------------------------------------------


def reading(*facts: tuple[str, str, list[int]]) -> Any:
    """A double that finds these facts, whatever it reads, and writes a memory when it is asked for
    one.
    """
    found = {
        "facts": [
            {"subject": subject, "text": text, "messages": numbers}
            for subject, text, numbers in facts
        ]
    }

    def answer(prompt: str) -> dict[str, Any]:
        return found if "List what the user says" in prompt else {"main_topics": ["x"]}

    return answering(answer)


async def test_a_model_finds_facts_and_cites_the_messages_that_say_so(
    log: MessageLog, store: BaseStore, mode: str
) -> None:
    talk(
        log,
        "t1",
        "I live in Oslo.",
        "I live in a computer.",
        "And my dog is called Rex.",
        owner="ann",
    )
    model = reading(("home city", "Lives in Oslo", [1]), ("dog", "Has a dog called Rex", [3, 3, 2]))
    generation = await called(
        mode, MemoryGenerator(log, model, store=store, facts=True), "generate", "t1"
    )
    assert generation.outcome == "written"
    found = await called(mode, Facts(store, owner="ann"), "recall")
    assert {fact.text: fact.sources for fact in found} == {
        "Lives in Oslo": (FactSource("t1", "t1-0"),),
        "Has a dog called Rex": (FactSource("t1", "t1-2"),),
    }
    assert sorted(texts(generation.facts)) == sorted(texts(found))


def test_what_names_no_message_of_the_users_is_no_fact(log: MessageLog, store: BaseStore) -> None:
    talk(log, "t1", "Hello.", "I am an agent.")
    found = [("a", "By the agent", [2]), ("b", "By nobody", []), ("c", "Beyond", [3, 0, -1])]
    model = reading(*found, ("", "x", [1]), ("d", " ", [1]))
    generation = MemoryGenerator(log, model, store=store, facts=True).generate("t1")
    assert (generation.outcome, generation.facts) == ("written", ())
    talk(log, "t2", *[f"My number is {number}." for number in range(20)])
    said = [("number", f"The number is {number - 1}", [number]) for number in range(1, 21, 2)]
    MemoryGenerator(log, reading(*said), store=store, facts=True).generate("t2")
    assert texts(Facts(store).recall()) == ["The number is 18"], "of one second, what came later"


def test_facts_are_found_in_what_is_new(log: MessageLog, store: BaseStore, clock: Clock) -> None:
    talk(log, "t1", "I live in Oslo.")
    MemoryGenerator(
        log, reading(("home city", "Lives in Oslo", [1])), store=store, facts=True
    ).generate("t1")
    model = reading(("home city", "Lives in Rome", [2]))
    generator = MemoryGenerator(log, model, store=store, facts=True)
    assert generator.generate("t1").facts == ()
    assert [prompt for prompt in model.asked if "List what" in prompt] == [], (
        "all of it was read before"
    )
    clock.wait(hours=1)
    talk(log, "t1", "I live in Oslo.", "Nice.", "I have moved to Rome.")
    assert texts(list(generator.generate("t1").facts)) == ["Lives in Rome"]
    [prompt] = [prompt for prompt in model.asked if "List what" in prompt]
    assert "[2] user: I have moved to Rome." in prompt
    assert '"text": "Lives in Oslo"' in prompt, "what is known"
    facts = Facts(store)
    assert texts(facts.recall()) == ["Lives in Rome"]
    assert texts(facts.recall(subject="home city", superseded=True)) == [
        "Lives in Rome",
        "Lives in Oslo",
    ]


def test_a_long_conversation_keeps_what_was_found_before_a_failure(
    log: MessageLog, store: BaseStore
) -> None:
    talk(log, "t1", *[f"Message {at} " + "words " * 100 for at in range(10)])
    answers = {"left": 3}  # a message each; the second is the agent's

    def answer(prompt: str) -> dict[str, Any]:
        if "List what" not in prompt:
            return {"main_topics": ["x"]}
        answers["left"] -= 1
        if answers["left"] < 0:
            raise TimeoutError
        number = int(prompt.split("Message ")[1].split()[0])
        cited = re.findall(r"\[(\d+)\] user: Message", prompt)
        return {
            "facts": [
                {"subject": f"s{number}", "text": f"Fact of message {number}", "messages": cited}
            ]
        }

    generator = MemoryGenerator(log, answering(answer), store=store, facts=True, chunk_tokens=500)
    assert generator.generate("t1").outcome == "failed"
    before = texts(Facts(store).recall(limit=100))
    assert len(before) == 2
    answers["left"] = 100
    model = answering(answer)
    again = MemoryGenerator(log, model, store=store, facts=True, chunk_tokens=500).generate("t1")
    assert again.outcome == "written"
    assert all("Message 0 " not in prompt for prompt in model.asked if "List what" in prompt)
    assert len(texts(Facts(store).recall(limit=100))) > len(before)


def test_no_sensitive_value_becomes_a_fact(log: MessageLog, store: BaseStore) -> None:
    said = mark_sensitive(
        HumanMessage("My card is 4111 1111 1111 1111."), {"card": "4111 1111 1111 1111"}
    )
    ThreadChatMessageHistory("t1", log).add_messages([said])
    model = reading(("card", "The card is •••", [1]))
    assert MemoryGenerator(log, model, store=store, facts=True).generate("t1").facts == ()
    assert "4111 1111" not in "".join(model.asked) + str(everything(store))


async def test_nothing_is_left_of_a_thread_that_is_deleted_meanwhile(
    log: MessageLog, store: BaseStore, mode: str
) -> None:
    talk(log, "t1", "I live in Oslo.", owner="ann")

    def answer(prompt: str) -> dict[str, Any]:
        if "List what" in prompt:
            return {"facts": [{"subject": "city", "text": "Lives in Oslo", "messages": [1]}]}
        Threads(log).delete("t1")
        return {"main_topics": ["x"]}

    generator = MemoryGenerator(log, answering(answer), store=store, facts=True)
    assert (await called(mode, generator, "generate", "t1")).outcome == "gone"
    assert everything(store) == []


async def test_facts_go_with_their_threads_or_are_swept_in_a_store_of_another_kind(
    log: MessageLog, store: BaseStore, mode: str
) -> None:
    for name in ("t1", "t2"):
        talk(log, name, "I live in Oslo.", owner="ann")
        model = reading(("home city", f"Lives in Oslo, says {name}", [1]))
        await called(mode, MemoryGenerator(log, model, store=store, facts=True), "generate", name)
    Facts(store, owner="ann").remember("Told by the application")
    Threads(log).delete("t2")
    memories = MemoryGenerator(log, model, store=store).memories
    if memories.is_own:
        assert "t2" not in str(everything(store))
    swept = await called(mode, memories, "sweep")
    assert swept == (0 if memories.is_own else 2), "a memory and a fact"
    assert sorted(texts(Facts(store, owner="ann").recall())) == [
        "Lives in Oslo, says t1",
        "Told by the application",
    ]
    assert "t2" not in str(everything(store))
