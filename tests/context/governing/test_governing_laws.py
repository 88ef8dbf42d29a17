"""Laws of every governed request, over invented conversations, whole and damaged."""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from prefixes import Prefix, ruled_tokens
from provider_rules import anthropic_problems, openai_problems
from talks import looping, talks

from langmem_ext.context.budget.counters import TiktokenCounter
from langmem_ext.context.cut.planning import Governed
from langmem_ext.context.cut.stand_in import MARKER_TOKENS
from langmem_ext.context.decisions import RESTORE
from langmem_ext.context.govern import govern
from langmem_ext.context.policy import ContextPolicy
from langmem_ext.errors import ContextOverflow, MissingExtra
from langmem_ext.messages.pairing import safe_boundaries
from langmem_ext.messages.token_costs.memo import Memo

try:
    COUNTER = Memo(TiktokenCounter())
except MissingExtra:
    pytest.skip("the extra tokens-offline is not installed", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")
MANY = 5 * settings().max_examples

budgets = st.sampled_from([300, 600, 1_000, 2_000, 4_000])


def governed(messages: Sequence[BaseMessage], budget: int, **given: Any) -> Governed:
    """What goes to the model; a budget that the pins alone exceed is no example."""
    try:
        return govern(messages, budget=budget, counter=COUNTER, **given)
    except ContextOverflow:
        assume(False)
        raise


def refusal(messages: Sequence[BaseMessage], budget: int) -> ContextOverflow | None:
    try:
        govern(messages, budget=budget, counter=COUNTER)
    except ContextOverflow as overflow:
        return overflow
    return None


def words(message: BaseMessage) -> str:
    """What a message says, whatever the request did to its ids."""
    return repr(
        (
            message.type,
            message.content,
            [(call["name"], call["args"]) for call in getattr(message, "tool_calls", [])],
        )
    )


def bytes_of(messages: Sequence[BaseMessage]) -> list[str]:
    return [repr(message) for message in messages]


# -- a request -------------------------------------------------------------------------------------


@settings(max_examples=MANY)
@given(talks(damaged=True, thinking=True), budgets)
def test_every_provider_takes_it(messages: list[BaseMessage], budget: int) -> None:
    sent = governed(messages, budget).messages
    assert openai_problems(sent) == []
    assert anthropic_problems(sent) == []


@settings(max_examples=MANY)
@given(talks(damaged=True, thinking=True), budgets)
def test_it_is_within_the_budget(messages: list[BaseMessage], budget: int) -> None:
    assert ruled_tokens(governed(messages, budget).messages) <= budget


@settings(max_examples=MANY)
@given(talks(), budgets)
def test_it_is_refused_only_if_what_must_be_shown_does_not_fit(
    messages: list[BaseMessage], budget: int
) -> None:
    overflow = refusal(messages, budget)
    if overflow is not None:
        assert Prefix(messages).needed(COUNTER.count) > budget - 8 * len(messages)
        assert 1 <= len(overflow.contributors) <= 3
        assert all(name and size >= 0 for name, size in overflow.contributors)


@settings(max_examples=MANY)
@given(talks(damaged=True), budgets)
def test_what_is_pinned_is_shown_word_for_word(messages: list[BaseMessage], budget: int) -> None:
    shown = {words(message) for message in governed(messages, budget).messages}
    said = [message for message in messages if isinstance(message, HumanMessage)]
    systems = [message for message in messages[:1] if isinstance(message, SystemMessage)]
    assert {words(pin) for pin in [*systems, *said[:1], *said[-1:]] if pin.text.strip()} <= shown


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
@given(talks(damaged=True, thinking=True), budgets)
def test_nothing_of_what_is_given_is_changed(messages: list[BaseMessage], budget: int) -> None:
    before, objects = deepcopy(messages), list(messages)
    governed(messages, budget)
    assert messages == before
    assert all(one is other for one, other in zip(messages, objects, strict=True))


@settings(max_examples=MANY)
@given(talks(), budgets)
def test_the_order_stays(messages: list[BaseMessage], budget: int) -> None:
    places = {id(message): at for at, message in enumerate(messages)}
    shown = [
        places[id(message)]
        for message in governed(messages, budget).messages
        if id(message) in places
    ]
    assert shown == sorted(set(shown))


@settings(max_examples=MANY)
@given(talks(), st.just(1_000_000))
def test_nothing_is_done_where_nothing_needs_to_be(
    messages: list[BaseMessage], budget: int
) -> None:
    assume(not anthropic_problems(messages) and Prefix(messages).loop() < 3)
    result = govern(messages, budget=budget, counter=COUNTER)
    assert [id(message) for message in result.messages] == [id(message) for message in messages]
    assert not result.plan.added
    assert not result.events


# -- again, and again ------------------------------------------------------------------------------


@settings(max_examples=MANY)
@given(talks(damaged=True, thinking=True), budgets)
def test_governing_what_was_governed_changes_nothing(
    messages: list[BaseMessage], budget: int
) -> None:
    result = governed(messages, budget)
    assume(result.plan.stop is None)  # of a turn that is ended nothing is sent
    once = result.messages
    assert bytes_of(govern(once, budget=budget, counter=COUNTER).messages) == bytes_of(once)


@settings(max_examples=MANY)
@given(talks(damaged=True, thinking=True), budgets)
def test_its_events_are_json_and_give_the_same_request_again(
    messages: list[BaseMessage], budget: int
) -> None:
    first = governed(messages, budget)
    again = govern(
        messages, budget=budget, counter=COUNTER, events=json.loads(json.dumps(list(first.events)))
    )
    assert bytes_of(again.messages) == bytes_of(first.messages)
    assert not again.plan.added
    assert list(again.events) == list(first.events)


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


@settings(max_examples=MANY)
@given(talks(damaged=True, thinking=True), budgets)
def test_restore_undoes_all(messages: list[BaseMessage], budget: int) -> None:
    first = governed(messages, budget)
    restored = govern(messages, budget=1_000_000, counter=COUNTER, events=[*first.events, RESTORE])
    assert bytes_of(restored.messages) == bytes_of(
        govern(messages, budget=1_000_000, counter=COUNTER).messages
    )


# -- loops -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [700, 100_000])
@pytest.mark.parametrize("times", range(1, 9))
def test_a_loop_is_told_from_three_on_and_ended_from_six_on(times: int, budget: int) -> None:
    result = governed(looping(times), budget)
    assert any(event["kind"] == "nudge" for event in result.events) == (3 <= times < 6)
    assert (result.plan.stop is not None) == (times >= 6)
    assert not any(
        event["kind"] == "nudge" for event in governed(looping(times, changing=True), budget).events
    )


@pytest.mark.parametrize("times", range(3, 9))
def test_a_request_that_tells_of_a_loop_is_governed_again_to_itself(times: int) -> None:
    events: Sequence[Any] = ()
    for rounds in range(1, times + 1):
        result = governed(looping(rounds), 100_000, events=events)
        events = result.events
    again = govern(result.messages, budget=100_000, counter=COUNTER)
    assert bytes_of(again.messages) == bytes_of(result.messages)
