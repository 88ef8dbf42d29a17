"""The strategy by number of messages: head, dropped middle, tail, markers, calls kept whole."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from langmem_ext.context.cut.head_tail import first_run_end, plan_zones, tail_size, trim_end
from langmem_ext.context.cut.stand_in import marker, messages_for
from langmem_ext.context.decisions import Cut
from langmem_ext.messages.pairing import safe_boundaries


def call(*ids: str, text: str = "") -> AIMessage:
    return AIMessage(text, tool_calls=[{"name": "look", "args": {}, "id": name} for name in ids])


def result(name: str) -> ToolMessage:
    return ToolMessage("found", tool_call_id=name)


def talk(count: int) -> list[AnyMessage]:
    return [
        message
        for number in range(count)
        for message in (HumanMessage(f"q{number}"), AIMessage(f"a{number}"))
    ]


# -- head ------------------------------------------------------------------------------------------


def test_the_first_run_ends_with_its_answer() -> None:
    assert first_run_end(talk(3)) == 2


def test_a_first_run_with_tool_calls_ends_with_the_answer_after_them() -> None:
    assert (
        first_run_end(
            [
                HumanMessage("q"),
                call("a"),
                result("a"),
                call("b"),
                result("b"),
                AIMessage("There."),
                *talk(2),
            ]
        )
        == 6
    )


def test_without_an_answer_in_words_there_is_no_first_run() -> None:
    assert first_run_end([]) == 0
    assert (
        first_run_end(
            [
                HumanMessage("q"),
                call("a"),
                result("a"),
                AIMessage([{"type": "thinking", "thinking": "hm"}]),
            ]
        )
        == 0
    )


def test_a_first_answer_that_calls_a_tool_keeps_the_tools_result() -> None:
    messages: list[AnyMessage] = [
        HumanMessage("q"),
        call("a", "b", text="I look."),
        result("a"),
        result("b"),
        *talk(30),
    ]
    assert first_run_end(messages) == 2
    zones = plan_zones(messages)
    assert zones is not None
    assert zones.head_end == 4


def test_instructions_stay_where_there_is_no_first_run() -> None:
    rounds = [
        message for number in range(30) for message in (call(f"c{number}"), result(f"c{number}"))
    ]
    zones = plan_zones([SystemMessage("Be kind."), HumanMessage("q"), *rounds])
    assert zones is not None
    assert zones.head_end == 1


# -- threshold and tail ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("most", "size"), [(40, 20), (41, 20), (10, 5), (9, 4), (8, 4), (1, 4), (100, 50)]
)
def test_the_tail_is_half_of_what_is_allowed_and_at_least_four(most: int, size: int) -> None:
    assert tail_size(most) == size


def test_up_to_the_threshold_nothing_is_dropped_and_0_turns_it_off() -> None:
    assert plan_zones(talk(20)) is None
    assert plan_zones(talk(500), 0) is None
    zones = plan_zones([*talk(20), HumanMessage("q")])
    assert zones is not None
    assert (zones.head_end, zones.tail_start, zones.dropped) == (2, 21, 19)


def test_a_middle_without_messages_is_not_dropped() -> None:
    first = [
        HumanMessage("q"),
        *(
            message
            for number in range(18)
            for message in (call(f"c{number}"), result(f"c{number}"))
        ),
    ]
    assert plan_zones([*first, AIMessage("There."), *talk(2)]) is None


def test_the_tail_begins_before_a_call_rather_than_between_it_and_its_results() -> None:
    messages: list[AnyMessage] = [
        *talk(15),
        call("a", "b", "c"),
        result("a"),
        result("b"),
        result("c"),
        *talk(9),
    ]
    assert isinstance(messages[len(messages) - tail_size(40)], ToolMessage)
    zones = plan_zones(messages)
    assert zones is not None
    assert zones.tail_start == 30


def test_a_round_that_is_all_of_the_middle_is_dropped_whole() -> None:
    ids = [f"c{number}" for number in range(40)]
    messages: list[AnyMessage] = [*talk(1), call(*ids), *map(result, ids), *talk(3)]
    zones = plan_zones(messages)
    assert zones is not None
    assert messages[zones.tail_start :] == talk(3)


def test_a_round_that_goes_on_to_the_end_is_not_dropped() -> None:
    ids = [f"c{number}" for number in range(40)]
    assert plan_zones([*talk(1), call(*ids), *map(result, ids)]) is None


IDS = st.sampled_from(["a", "b", "c"])
SPOKEN: st.SearchStrategy[AnyMessage] = st.one_of(
    st.just(HumanMessage("hi")),
    st.just(AIMessage("yes")),
    st.just(SystemMessage("be kind")),
    st.lists(IDS, min_size=1, max_size=3).map(lambda ids: call(*ids)),
    IDS.map(result),
)


@given(st.lists(SPOKEN, max_size=40), st.integers(1, 20))
def test_of_any_conversation_a_middle_is_dropped_at_safe_boundaries_and_the_rest_is_kept(
    messages: list[AnyMessage], most: int
) -> None:
    before = copy.deepcopy(messages)
    zones = plan_zones(messages, most)
    assert messages == before
    if zones is None:
        return
    bounds = safe_boundaries(messages)
    assert len(messages) > most
    assert {zones.head_end, zones.tail_start} <= set(bounds)
    assert zones.dropped >= 1
    assert first_run_end(messages) <= zones.head_end < zones.tail_start < len(messages)
    wanted = len(messages) - tail_size(most)
    assert zones.tail_start <= wanted or not any(
        zones.head_end < bound <= wanted for bound in bounds
    )


# -- trimmed outputs -------------------------------------------------------------------------------


def test_all_outputs_but_those_of_the_last_two_messages_are_trimmed() -> None:
    messages: list[AnyMessage] = [
        HumanMessage("q"),
        call("a"),
        result("a"),
        AIMessage("There."),
        HumanMessage("and?"),
    ]
    assert trim_end(messages) == 3
    assert trim_end(messages[:3]) == 1
    assert trim_end(messages[:1]) == trim_end([]) == 0


def test_results_of_one_message_are_one_exchange() -> None:
    messages: list[AnyMessage] = [
        HumanMessage("q"),
        call("a", "b", "c"),
        result("a"),
        result("b"),
        result("c"),
    ]
    assert trim_end(messages) == 1
    assert trim_end([*messages, AIMessage("There.")]) == 1
    assert trim_end([*messages, AIMessage("There."), HumanMessage("and?")]) == 5


# -- markers ---------------------------------------------------------------------------------------


def test_the_markers_are_messages_of_the_user_in_these_words() -> None:
    cut = Cut("a", (), marker(19).text, "marker", 19)
    assert said(cut) == [
        (
            "human",
            "[Earlier conversation trimmed — 19 messages removed to stay within context budget]",
        )
    ]
    assert said(replace(cut, text="They {met}.", by="model")) == [
        ("human", "[Summary of 19 earlier messages]\nThey {met}.")
    ]
    assert said(replace(cut, text="")) == []


def test_a_compacted_conversation_is_two_messages() -> None:
    assert said(Cut("a", (), "They met.", "compact", 19)) == [
        ("human", "[Compacted conversation summary]\nThey met."),
        ("ai", "Understood. I have the conversation context."),
    ]


def said(cut: Cut) -> list[tuple[str, str]]:
    return [(message.type, message.text) for message in messages_for(cut)]
