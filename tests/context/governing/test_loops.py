"""Promises of loops: a call counts with arguments and result, in one turn; changes do not."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langmem_ext.context.cut.loops import ADVICE, Loop, Nudge, Stop, find_loops, plan_nudge
from langmem_ext.errors import InvalidInput


def call(command: Any, result: Any, name: str = "bash", number: int = 0) -> list[BaseMessage]:
    """A call and its result."""
    asked = {
        "name": name,
        "args": command if isinstance(command, dict) else {"command": command},
        "id": f"c{number}",
    }
    return [AIMessage("", tool_calls=[asked]), ToolMessage(result, tool_call_id=f"c{number}")]


def turn(*pairs: tuple[Any, Any]) -> list[BaseMessage]:
    return [
        HumanMessage("go"),
        *(message for number, pair in enumerate(pairs) for message in call(*pair, number=number)),
    ]


SAME = ("ls", "nothing here")


def test_the_third_identical_call_is_answered_with_a_nudge_and_the_sixth_with_a_stop() -> None:
    plans = [plan_nudge(turn(*[SAME] * times)) for times in range(1, 8)]
    assert [type(plan) for plan in plans] == [
        type(None),
        type(None),
        Nudge,
        Nudge,
        Nudge,
        Stop,
        Stop,
    ]
    nudge, stop = plans[2], plans[5]
    assert nudge is not None
    assert stop is not None
    assert nudge.loop == Loop("bash", '{"command": "ls"}', (2, 4, 6))
    assert nudge.after == 6
    assert (
        nudge.text
        == "`bash` was called 3 times with the same arguments and gave the same result each time."
        f" {ADVICE}"
    )
    assert (
        stop.text
        == "Stopped: `bash` was called 6 times with the same arguments and gave the same result"
        " each time."
    )


def test_calls_between_them_do_not_hide_a_loop() -> None:
    assert isinstance(plan_nudge(turn(SAME, ("pwd", "/"), SAME, ("whoami", "me"), SAME)), Nudge)


def test_what_differs_is_no_loop() -> None:
    assert plan_nudge(turn(*[("status", f"{done} %") for done in range(9)])) is None, "polling"
    assert plan_nudge(turn(*[(f"ls {number}", "nothing here") for number in range(9)])) is None
    tools = [
        message for name in ("bash", "sh", "zsh") for message in call("ls", "nothing here", name)
    ]
    assert plan_nudge([HumanMessage("go"), *tools]) is None


def test_the_order_of_arguments_makes_no_difference_and_their_types_do() -> None:
    assert isinstance(
        plan_nudge(
            turn(({"a": 1, "b": [2]}, "x"), ({"b": [2], "a": 1}, "x"), ({"a": 1, "b": [2]}, "x"))
        ),
        Nudge,
    )
    assert plan_nudge(turn(({"a": 1}, "x"), ({"a": "1"}, "x"), ({"a": True}, "x"))) is None


def test_images_are_compared_whole() -> None:
    def picture(data: str) -> list[dict[str, str]]:
        return [{"type": "image", "base64": data, "mime_type": "image/png"}]

    assert plan_nudge(turn(*[("look", picture(f"AAA{number}")) for number in range(4)])) is None
    assert isinstance(plan_nudge(turn(*[("look", picture("AAAA"))] * 3)), Nudge)


def test_a_user_who_speaks_begins_anew() -> None:
    assert plan_nudge([*turn(SAME, SAME), *turn(SAME)]) is None
    assert plan_nudge([*turn(*[SAME] * 7), HumanMessage("stop that")]) is None
    assert isinstance(plan_nudge([SystemMessage("be brief"), *turn(*[SAME] * 3)[1:]]), Nudge), (
        "a conversation without a user"
    )


def test_parallel_calls_count_and_the_place_is_behind_their_round() -> None:
    calls = [{"name": "bash", "args": {"command": "ls"}, "id": f"p{number}"} for number in range(3)]
    calls.append({"name": "bash", "args": {"command": "pwd"}, "id": "p3"})
    results = [
        ToolMessage("nothing here" if number < 3 else "/", tool_call_id=f"p{number}")
        for number in range(4)
    ]
    plan = plan_nudge([HumanMessage("go"), AIMessage("", tool_calls=calls), *results])
    assert isinstance(plan, Nudge)
    assert (plan.loop.places, plan.after) == ((2, 3, 4), 5)


def test_arguments_that_cannot_be_read_count_as_they_stand() -> None:
    broken = {"name": "bash", "args": '{"command": ', "id": "c0", "error": None}
    again: list[BaseMessage] = [
        AIMessage("", invalid_tool_calls=[broken]),
        ToolMessage("no JSON", tool_call_id="c0", status="error"),
    ]
    assert isinstance(plan_nudge([HumanMessage("go"), *again * 3]), Nudge)


def test_results_without_a_call_and_calls_without_a_result_are_passed_over() -> None:
    orphans: list[BaseMessage] = [ToolMessage("x", tool_call_id="gone")] * 5
    assert plan_nudge([HumanMessage("go"), *orphans]) is None
    assert (
        plan_nudge(
            [
                HumanMessage("go"),
                *[AIMessage("", tool_calls=[{"name": "a", "args": {}, "id": "c"}])] * 5,
            ]
        )
        is None
    )


def test_what_was_repeated_last_counts_and_a_stop_before_a_nudge() -> None:
    other = ("pwd", "/")
    first = plan_nudge(turn(*[SAME] * 4, *[other] * 3))
    assert isinstance(first, Nudge)
    assert first.loop.arguments == '{"command": "pwd"}'
    stopped = plan_nudge(turn(*[SAME] * 6, *[other] * 3))
    assert isinstance(stopped, Stop)
    assert [loop.times for loop in find_loops(turn(*[SAME] * 4, *[other] * 3))] == [4, 3]


def test_a_plan_stays_as_the_conversation_goes_on() -> None:
    messages = turn(*[SAME] * 3)
    assert plan_nudge([*messages, *call("pwd", "/", number=9)]) == plan_nudge(messages)


def test_either_can_be_off_and_both() -> None:
    messages = turn(*[SAME] * 7)
    for off in (0, None):
        assert isinstance(plan_nudge(messages, stop_at=off), Nudge)
        assert isinstance(plan_nudge(messages, nudge_at=off), Stop)
        assert plan_nudge(messages[:9], nudge_at=off) is None
        assert plan_nudge(messages, nudge_at=off, stop_at=off) is None


@pytest.mark.parametrize("number", [1, -1, True, 2.5])
def test_what_is_no_count_of_repetitions_is_refused(number: Any) -> None:
    with pytest.raises(InvalidInput, match="nudge_at must be"):
        plan_nudge([], nudge_at=number)
    with pytest.raises(InvalidInput, match="stop_at must be"):
        plan_nudge([], stop_at=number)
    with pytest.raises(InvalidInput, match="must not be below"):
        plan_nudge([], nudge_at=4, stop_at=3)


ACTIONS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["x", "y", ""])), max_size=24)


@given(
    turns=st.lists(ACTIONS, min_size=1, max_size=3), nudge=st.integers(2, 4), more=st.integers(0, 4)
)
def test_it_finds_exactly_what_counting_finds(
    turns: list[list[tuple[str, str]]], nudge: int, more: int
) -> None:
    messages = [message for pairs in turns for message in turn(*pairs)]
    counts = Counter((json.dumps({"command": action}), result) for action, result in turns[-1])
    found = Counter(
        {
            (loop.arguments, str(messages[loop.places[0]].content)): loop.times
            for loop in find_loops(messages)
        }
    )
    assert found == Counter({pair: times for pair, times in counts.items() if times >= 2})
    most = max(counts.values(), default=0)
    plan = plan_nudge(messages, nudge, nudge + more)
    assert type(plan) is (Stop if most >= nudge + more else Nudge if most >= nudge else type(None))
