"""A message is counted once, and again when changed; providers' reports correct counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from langmem_ext.messages.token_costs.calibration import calibrated, input_tokens, scaled
from langmem_ext.messages.token_costs.memo import Memo
from langmem_ext.messages.token_costs.tokens import ApproximateCounter, TokenCounter, Tool

CALL = {"name": "look", "args": {"at": "HAT136"}, "id": "call_1", "type": "tool_call"}


class Recording(ApproximateCounter):
    """Counts, and knows what it was asked."""

    def __init__(self) -> None:
        self.messages: list[BaseMessage] = []
        self.tools = 0

    def count(self, message: BaseMessage) -> int:
        self.messages.append(message)
        return super().count(message)

    def count_tools(self, tools: Sequence[Tool]) -> int:
        self.tools += len(tools)
        return super().count_tools(tools)


# -- counted once ----------------------------------------------------------------------------------


def conversation() -> list[BaseMessage]:
    """The same messages as fresh objects, as a checkpointer gives them at every turn."""
    return [
        HumanMessage("Where is HAT136?", id="m1"),
        AIMessage("", tool_calls=[CALL], id="m2"),
        ToolMessage([{"type": "text", "text": "It is late."}], tool_call_id="call_1", id="m3"),
        AIMessage("It is late.", id="m4", response_metadata={"model": "x"}),
        HumanMessage("Thanks."),
    ]


def test_each_message_is_counted_once_however_often_it_is_loaded() -> None:
    counter = Recording()
    memo = Memo(counter)
    totals = {memo.total(conversation()) for _ in range(5)}
    assert totals == {sum(map(ApproximateCounter().count, conversation()))}
    assert len(counter.messages) == 5


@pytest.mark.parametrize(
    "changed",
    [
        HumanMessage("Where is HAT137, then?", id="m"),
        HumanMessage([{"type": "text", "text": "Where is it?"}], id="m"),
        HumanMessage("Where is HAT136?", id="m", name="ann"),
        AIMessage("Where is HAT136?", id="m", tool_calls=[CALL]),
        AIMessage("Where is HAT136?", id="m", additional_kwargs={"reasoning_content": "Hm."}),
        AIMessage(
            "Where is HAT136?", id="m", invalid_tool_calls=[{**CALL, "args": "{", "error": None}]
        ),
    ],
)
def test_a_message_that_has_changed_under_its_id_is_counted_anew(changed: BaseMessage) -> None:
    memo, counter = Memo(ApproximateCounter()), ApproximateCounter()
    first = HumanMessage("Where is HAT136?", id="m")
    for message in (first, changed, first):
        assert memo.count(message) == counter.count(message)


def test_a_message_that_was_changed_in_place_is_counted_anew() -> None:
    memo, counter = Memo(ApproximateCounter()), ApproximateCounter()
    message = AIMessage([{"type": "text", "text": "short"}], tool_calls=[CALL], id="m")
    memo.count(message)
    message.content.append({"type": "text", "text": "and much more to say " * 20})  # type: ignore[union-attr]
    assert memo.count(message) == counter.count(message)
    message.tool_calls[0]["args"]["why"] = "because it was late again " * 20
    assert memo.count(message) == counter.count(message)


@pytest.mark.parametrize("value", [2**80, {(1, 2): 3}, float("nan"), {1, 2}, b"bytes", "\ud800"])
def test_what_no_json_holds_is_remembered_and_its_change_seen(value: Any) -> None:
    memo, counter = Memo(ApproximateCounter()), ApproximateCounter()
    for args in ({"value": value}, {"value": value, "more": "and more " * 30}):
        message = AIMessage("", id="m", tool_calls=[{**CALL, "args": args}])
        assert memo.count(message) == memo.count(message) == counter.count(message)


@given(
    st.lists(
        st.builds(
            HumanMessage,
            st.sampled_from(["", "a", "b b", "long " * 30]),
            id=st.none() | st.sampled_from(["1", "2"]),
        )
    )
)
def test_a_remembered_count_is_the_count(messages: list[HumanMessage]) -> None:
    memo, counter = Memo(ApproximateCounter(), limit=3), ApproximateCounter()
    assert [memo.count(message) for message in messages] == [
        counter.count(message) for message in messages
    ]


def test_what_is_remembered_has_an_end() -> None:
    memo = Memo(ApproximateCounter(), limit=100)
    for number in range(1_000):
        memo.count(HumanMessage("hello", id=str(number)))
    assert len(memo._messages) <= 100


def test_many_threads_may_count() -> None:
    memo, counter = Memo(ApproximateCounter(), limit=50), ApproximateCounter()
    messages = [
        HumanMessage("word " * (number % 7), id=str(number % 90)) for number in range(2_000)
    ]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(memo.count, messages)) == [
            counter.count(message) for message in messages
        ]


def test_a_memo_is_a_counter() -> None:
    memo = Memo(ApproximateCounter())
    assert isinstance(memo, TokenCounter)
    assert memo.name == "approximate"
    assert memo.count_text("hello") == ApproximateCounter().count_text("hello")


def test_a_tools_schema_is_made_once() -> None:
    @tool
    def look(at: str) -> str:
        """Look at a flight."""
        return at

    counter = Recording()
    memo = Memo(counter)
    own = {
        "type": "function",
        "function": {"name": "find", "description": "Find.", "parameters": {"type": "object"}},
    }
    whole = ApproximateCounter().count_tools([look, own])
    assert {memo.count_tools([look, {**own}]) for _ in range(5)} == {whole}
    assert counter.tools == 2
    look.description = (
        "Look at a flight, and say when it leaves, where from, and whether it is late. " * 5
    )
    own["function"] = {"name": "find", "description": "Find whatever there is to be found. " * 20}
    assert memo.count_tools([look, own]) == ApproximateCounter().count_tools([look, own]) > whole


# -- put right -------------------------------------------------------------------------------------


def answer(tokens: Any, **details: int) -> dict[str, Any]:
    return {
        "input_tokens": tokens,
        "output_tokens": 5,
        "total_tokens": 5,
        **({"input_token_details": details} if details else {}),
    }


def test_a_provider_that_counts_more_is_believed_at_once() -> None:
    assert calibrated(1.0, 1_000, answer(1_300)) == 1.3


def test_a_provider_that_counts_less_is_believed_slowly_and_never_below_the_count() -> None:
    ratio = calibrated(1.4, 1_000, answer(1_000))
    assert 1.2 < ratio < 1.4
    for _ in range(50):
        ratio = calibrated(ratio, 1_000, answer(600))
    assert ratio == pytest.approx(1.0)


def test_an_approximation_may_be_put_right_downwards() -> None:
    ratio = 1.0
    for _ in range(50):
        ratio = calibrated(ratio, 1_000, answer(600), least=0.5)
    assert ratio == pytest.approx(0.6)


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        answer(0),
        answer(-4),
        answer("many"),
        answer(None),
        answer(True),
        answer(10),
        answer(90_000),
        [],
        "usage",
    ],
)
def test_what_cannot_be_the_requests_usage_teaches_nothing(usage: Any) -> None:
    assert calibrated(1.2, 1_000, usage) == 1.2


def test_a_short_request_teaches_nothing() -> None:
    assert calibrated(1.0, 50, answer(120)) == 1.0


def test_tokens_that_came_from_a_cache_are_part_of_the_request() -> None:
    assert input_tokens(answer(1_000, cache_read=900)) == 1_000
    assert input_tokens(answer(100, cache_read=900, cache_creation=50)) == 1_050


@given(
    st.lists(st.tuples(st.integers(-5, 10**6), st.integers(-5, 10**6)), max_size=20),
    st.floats(allow_nan=True, allow_infinity=True),
    st.floats(0, 1),
)
def test_a_ratio_stays_within_reason(
    answers: list[tuple[int, int]], ratio: float, least: float
) -> None:
    for counted, reported in answers:
        ratio = calibrated(ratio, counted, answer(reported), least=least)
        assert max(least, 0.5) <= ratio <= 3.0


@given(st.lists(st.integers(500, 100_000), min_size=30, max_size=30), st.floats(1.0, 2.9))
def test_the_counts_of_a_steady_tokenizer_come_right(sizes: list[int], truth: float) -> None:
    ratio = 1.0
    for size in sizes:
        ratio = calibrated(ratio, size, answer(math.ceil(size * truth)))
    assert scaled(1_000, ratio) == pytest.approx(1_000 * truth, rel=0.01)
    assert scaled(1_000, ratio) >= int(1_000 * truth)
