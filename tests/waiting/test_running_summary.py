"""The running summary: sentences as they were said, each read once, the log untouched."""

from __future__ import annotations

import copy

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from langmem_ext.context.summary.extract import LABEL
from langmem_ext.waiting.policy.running_summary import LONGEST_TEXT, extracted, is_due, plan_part
from langmem_ext.waiting.state import Summary

ABOVE = 6


def plan_summary(messages: list[AnyMessage], summary: Summary | None, above: int) -> Summary | None:
    """The summary carried on; the one there was, if nothing can go into it."""
    part = plan_part(messages, summary, above)
    return summary if part is None else extracted(part)


def exchange(number: int) -> list[AnyMessage]:
    """A request, its tool call and its answer."""
    call = {"name": "find", "args": {}, "id": f"c{number}"}
    note = {"langmem_ext": {"summary": f"find: {number}"}}
    return [
        HumanMessage(f"Find number {number}. It is urgent!", id=f"h{number}"),
        AIMessage("", tool_calls=[call], id=f"a{number}"),
        ToolMessage(
            "a long result", tool_call_id=f"c{number}", id=f"t{number}", additional_kwargs=note
        ),
        AIMessage(f"Number {number} is found.", id=f"r{number}"),
    ]


def talk(count: int) -> list[AnyMessage]:
    return [message for number in range(count) for message in exchange(number)]


def test_a_short_conversation_has_none() -> None:
    assert not is_due(talk(1), None, ABOVE)
    assert plan_summary(talk(1)[:3], None, ABOVE) is None


def test_it_holds_who_said_what_in_their_own_words() -> None:
    summary = plan_summary(talk(2), None, ABOVE)
    assert summary == {
        "text": f"{LABEL}\nuser: Find number 0.\ntool: find: 0\nagent: Number 0 is found.",
        "through": "r0",
    }


def test_it_is_carried_on_from_its_cursor_as_if_made_at_once() -> None:
    summary: Summary | None = None
    for count in range(1, 9):
        if is_due(talk(count), summary, ABOVE):
            summary = plan_summary(talk(count), summary, ABOVE)
    assert summary == plan_summary(talk(8), None, ABOVE)


def test_it_is_made_again_when_its_cursor_is_gone() -> None:
    made = plan_summary(talk(4), None, ABOVE)
    assert plan_summary(talk(4), Summary(text="old", through="removed"), ABOVE) == made


def test_it_is_not_due_again_before_more_was_said() -> None:
    summary = plan_summary(talk(4), None, ABOVE)
    assert not is_due(talk(4), summary, ABOVE)
    assert is_due(talk(6), summary, ABOVE)


def test_it_leaves_out_what_a_sensitive_message_says() -> None:
    secret = HumanMessage(
        "My pin is 1234", id="s", additional_kwargs={"langmem_ext": {"sensitive": ["pin"]}}
    )
    summary = plan_summary([secret, *talk(3)], None, ABOVE)
    assert summary is not None
    assert summary["text"].splitlines()[1] == "user: (gave pin, left out here)"
    assert "1234" not in summary["text"]


def test_its_length_is_bounded_and_the_latest_stay() -> None:
    long = [HumanMessage("word " * 200, id=f"h{number}") for number in range(200)]
    summary = plan_summary([SystemMessage("rules", id="s"), *long, *talk(3)], None, 4)
    assert summary is not None
    assert len(summary["text"]) <= LONGEST_TEXT
    assert all(len(line) < 200 for line in summary["text"].splitlines())
    assert summary["text"].startswith(LABEL)
    assert summary["text"].splitlines()[-1] == "agent: Number 1 is found."


MESSAGES = st.lists(st.sampled_from(["human", "ai", "call", "system"]), max_size=40)


@given(MESSAGES, st.integers(2, 12))
def test_of_any_conversation_it_is_carried_on_only_forward_and_never_parts_a_call_from_its_result(
    kinds: list[str], above: int
) -> None:
    log: list[AnyMessage] = []
    summary: Summary | None = None
    place = 0
    for number, kind in enumerate(kinds):
        if kind == "call":
            log += exchange(number)[1:3]
        else:
            log.append(
                {"human": HumanMessage, "ai": AIMessage, "system": SystemMessage}[kind](
                    f"{kind}. {number}", id=f"x{number}"
                )
            )
        before = copy.deepcopy(log)
        if is_due(log, summary, above):
            summary = plan_summary(log, summary, above)
            assert summary is not None
            now = [message.id for message in log].index(summary["through"]) + 1
            assert now > place
            assert isinstance(log[now], HumanMessage)
            place = now
        assert log == before
