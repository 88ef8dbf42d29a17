"""Laws of every governed request, over invented conversations, whole and damaged."""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from prefixes import Prefix, ruled_tokens
from provider_rules import anthropic_problems, openai_problems
from talks import looping, talks

from langmem_ext import (
    ContextOverflow,
    ContextPolicy,
    Governed,
    MissingExtra,
    TiktokenCounter,
    govern,
    safe_boundaries,
)

try:
    COUNTER = TiktokenCounter()
except MissingExtra:
    pytest.skip("the extra tokens-offline is not installed", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")
MANY = 5 * settings().max_examples
PLENTY = 1_000_000
MARKER_TOKENS = 40
"""The most that the line costs which stands for what was left out."""

budgets = st.sampled_from([300, 600, 1_000, 2_000, 4_000])


def governed(messages: Sequence[BaseMessage], budget: int, **given: Any) -> Governed:
    """What goes to the model; a budget that the pins alone exceed is no example."""
    try:
        return govern(messages, budget=budget, counter=COUNTER, **given)
    except ContextOverflow:
        assume(False)
        raise


def words(message: BaseMessage) -> str:
    """What a message says, whatever the request did to its ids."""
    calls = [(call["name"], call["args"]) for call in getattr(message, "tool_calls", [])]
    return repr((message.type, message.content, calls))


def bytes_of(messages: Sequence[BaseMessage]) -> list[str]:
    return [repr(message) for message in messages]


# -- a request -------------------------------------------------------------------------------------


@settings(max_examples=MANY)
@given(talks(damaged=True, thinking=True), budgets)
def test_a_request_is_valid_within_its_budget_and_changes_nothing_of_what_is_given(
    messages: list[BaseMessage], budget: int
) -> None:
    before, objects = deepcopy(messages), list(messages)
    sent = governed(messages, budget).messages
    assert openai_problems(sent) == []
    assert anthropic_problems(sent) == []
    assert ruled_tokens(sent) <= budget
    shown = {words(message) for message in sent}
    said = [message for message in messages if isinstance(message, HumanMessage)]
    systems = [message for message in messages[:1] if isinstance(message, SystemMessage)]
    pins = {words(pin) for pin in [*systems, *said[:1], *said[-1:]] if pin.text.strip()}
    assert pins <= shown, "what is pinned is shown word for word"
    assert messages == before
    assert all(one is other for one, other in zip(messages, objects, strict=True))


@settings(max_examples=MANY)
@given(talks(), budgets)
def test_it_is_refused_only_if_what_must_be_shown_does_not_fit(
    messages: list[BaseMessage], budget: int
) -> None:
    overflow = sent = None
    try:
        sent = govern(messages, budget=budget, counter=COUNTER).messages
    except ContextOverflow as error:
        overflow = error
    if overflow is not None:
        assert Prefix(messages).needed(COUNTER.count) > budget - 8 * len(messages)
        assert 1 <= len(overflow.contributors) <= 3
        assert all(name and size >= 0 for name, size in overflow.contributors)
    else:
        places = {id(message): at for at, message in enumerate(messages)}
        shown = [places[id(message)] for message in sent or () if id(message) in places]
        assert shown == sorted(set(shown)), "the order stays"


@settings(max_examples=MANY)
@given(talks(thinking=True), budgets)
def test_the_latest_round_is_shown_word_for_word_if_it_fits(
    messages: list[BaseMessage], budget: int
) -> None:
    prefix = Prefix(messages)
    assume(prefix.wanted(COUNTER.count) <= budget)
    shown = [words(message) for message in governed(messages, budget).messages]
    latest = [words(message) for message in messages[prefix.latest_round :]]
    assert not latest or shown[-len(latest) :] == latest


@settings(max_examples=MANY)
@given(talks(), budgets, st.integers(1, 12))
def test_the_newest_messages_are_shown_word_for_word_if_they_fit_in_the_target(
    messages: list[BaseMessage], budget: int, count: int
) -> None:
    assume(count <= len(messages))
    policy = ContextPolicy(strategy="window", keep_recent_messages=count)
    begin = max(at for at in safe_boundaries(messages) if at <= len(messages) - count)
    wanted = {
        id(message): message for message in [*Prefix(messages).pins.values(), *messages[begin:]]
    }
    assume(sum(map(COUNTER.count, wanted.values())) + MARKER_TOKENS <= int(budget * policy.target))
    shown = governed(messages, budget, policy=policy).messages
    assert list(map(words, shown[-count:])) == list(map(words, messages[-count:]))


@settings(max_examples=MANY)
@given(talks())
def test_nothing_is_done_where_nothing_needs_to_be(messages: list[BaseMessage]) -> None:
    assume(not anthropic_problems(messages) and Prefix(messages).loop() < 3)
    result = govern(messages, budget=PLENTY, counter=COUNTER)
    assert [id(message) for message in result.messages] == [id(message) for message in messages]
    assert not result.plan.added
    assert not result.events


# -- again, and again ------------------------------------------------------------------------------


@settings(max_examples=MANY)
@given(talks(damaged=True, thinking=True), budgets)
def test_it_is_the_same_again_and_what_was_decided_can_be_undone(
    messages: list[BaseMessage], budget: int
) -> None:
    first = governed(messages, budget)
    events = json.loads(json.dumps(list(first.events)))
    again = govern(messages, budget=budget, counter=COUNTER, events=events)
    assert bytes_of(again.messages) == bytes_of(first.messages)
    assert not again.plan.added
    assert list(again.events) == list(first.events)
    if first.plan.stop is None:  # of a turn that is ended nothing is sent
        once = first.messages
        assert bytes_of(govern(once, budget=budget, counter=COUNTER).messages) == bytes_of(once)
    undone: list[Any] = [*first.events, {"kind": "restore"}]
    restored = govern(messages, budget=PLENTY, counter=COUNTER, events=undone)
    fresh = govern(messages, budget=PLENTY, counter=COUNTER)
    assert bytes_of(restored.messages) == bytes_of(fresh.messages)


@settings(max_examples=MANY)
@given(talks(), budgets)
def test_the_prefix_stays_until_something_is_decided(
    messages: list[BaseMessage], budget: int
) -> None:
    events: Sequence[Any] = ()
    before: list[str] = []
    for prefix in (Prefix(messages[: length + 1]) for length in range(len(messages))):
        if not prefix.calls_model:
            continue
        result = governed(prefix.messages, budget, events=events)
        events, sent = result.events, bytes_of(result.messages)
        if all(event["kind"] == "nudge" for event in result.plan.added):
            assert sent[: len(before)] == before
        before = sent


# -- loops -----------------------------------------------------------------------------------------


def nudged(result: Governed) -> bool:
    return any(event["kind"] == "nudge" for event in result.events)


@pytest.mark.parametrize("budget", [700, 100_000])
def test_a_loop_is_told_from_three_on_and_ended_from_six_on(budget: int) -> None:
    for times in range(1, 9):
        result = governed(looping(times), budget)
        assert nudged(result) == (3 <= times < 6), times
        assert (result.plan.stop is not None) == (times >= 6), times
        assert not nudged(governed(looping(times, changing=True), budget)), times


def test_a_request_that_tells_of_a_loop_is_governed_again_to_itself() -> None:
    events: Sequence[Any] = ()
    for rounds in range(1, 9):
        result = governed(looping(rounds), 100_000, events=events)
        events = result.events
        again = govern(result.messages, budget=100_000, counter=COUNTER)
        assert bytes_of(again.messages) == bytes_of(result.messages), rounds


def turn(*pairs: tuple[Any, Any], name: str = "bash") -> list[BaseMessage]:
    """What a user asks, and calls with their results."""
    said: list[BaseMessage] = [HumanMessage("go")]
    for number, (command, result) in enumerate(pairs):
        args = command if isinstance(command, dict) else {"command": command}
        said.append(AIMessage("", tool_calls=[{"name": name, "args": args, "id": f"c{number}"}]))
        said.append(ToolMessage(result, tool_call_id=f"c{number}"))
    return said


def picture(data: str) -> list[dict[str, str]]:
    return [{"type": "image", "base64": data, "mime_type": "image/png"}]


SAME = ("ls", "nothing here")
PARALLEL = [{"name": "bash", "args": {"command": "ls"}, "id": f"p{at}"} for at in range(3)]
RESULTS = [ToolMessage("nothing here", tool_call_id=f"p{at}") for at in range(3)]
BROKEN: Any = {"name": "bash", "args": '{"command": ', "id": "c0", "error": None}
UNREADABLE: list[BaseMessage] = [
    AIMessage("", invalid_tool_calls=[BROKEN]),
    ToolMessage("no JSON", tool_call_id="c0", status="error"),
]
LOOPS: dict[str, tuple[list[BaseMessage], bool]] = {
    "calls between them": (turn(SAME, ("pwd", "/"), SAME, ("whoami", "me"), SAME), True),
    "polling": (turn(*[("status", f"{done} %") for done in range(9)]), False),
    "other arguments": (turn(*[(f"ls {at}", "nothing here") for at in range(9)]), False),
    "arguments in another order": (
        turn(({"a": 1, "b": [2]}, "x"), ({"b": [2], "a": 1}, "x"), ({"a": 1, "b": [2]}, "x")),
        True,
    ),
    "arguments of other types": (
        turn(({"a": 1}, "x"), ({"a": "1"}, "x"), ({"a": True}, "x")),
        False,
    ),
    "other images": (turn(*[("look", picture(f"AAA{at}")) for at in range(4)]), False),
    "the same image": (turn(*[("look", picture("AAAA"))] * 3), True),
    "a user who speaks between": ([*turn(SAME, SAME), *turn(SAME)], False),
    "parallel calls": ([HumanMessage("go"), AIMessage("", tool_calls=PARALLEL), *RESULTS], True),
    "arguments that cannot be read": ([HumanMessage("go"), *UNREADABLE * 3], True),
    "results of no call": ([HumanMessage("go"), *[ToolMessage("x", tool_call_id="z")] * 5], False),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_call_counts_with_its_arguments_and_its_result_in_one_turn(name: str) -> None:
    messages, loop = LOOPS[name]
    assert nudged(governed(messages, PLENTY)) is loop


def test_a_model_is_told_of_what_it_repeats_and_either_can_be_off() -> None:
    told = governed(turn(*[SAME] * 3), PLENTY).messages[-1]
    assert told.text.startswith(
        "`bash` was called 3 times with the same arguments and gave the same result each time."
    )
    stopped = governed(turn(*[SAME] * 6), PLENTY).plan.stop
    assert stopped is not None
    assert stopped.startswith("Stopped: `bash` was called 6 times with the same arguments")
    for policy, nudge, stop in (
        (ContextPolicy(nudge_at=0), False, True),
        (ContextPolicy(stop_at=0), True, False),
        (ContextPolicy(nudge_at=0, stop_at=0), False, False),
    ):
        result = governed(turn(*[SAME] * 7), PLENTY, policy=policy)
        assert (nudged(result), result.plan.stop is not None) == (nudge, stop)
