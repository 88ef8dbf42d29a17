"""A request is within the budget, stable from turn to turn, and lacks nothing required."""

from __future__ import annotations

import json
from collections.abc import Sequence
from io import StringIO
from itertools import pairwise
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from rich.console import Console

from langmem_ext import (
    ApproximateCounter,
    ContextOverflow,
    ContextPolicy,
    Governed,
    InvalidInput,
    govern,
)

COUNTER = ApproximateCounter()


def chat(turns: int, words: int = 40) -> list[BaseMessage]:
    """A system message, and turns of a question and an answer."""
    said: list[BaseMessage] = [SystemMessage("Answer briefly.", id="system")]
    for turn in range(turns):
        said += [
            HumanMessage(f"question {turn} " + "word " * words, id=f"q{turn}"),
            AIMessage(f"answer {turn} " + "word " * words, id=f"a{turn}"),
        ]
    return [*said, HumanMessage("the latest question", id="latest")]


def round_of(name: str, output: str, *, number: int = 0) -> list[BaseMessage]:
    call = AIMessage(
        "",
        tool_calls=[{"name": name, "args": {"n": number}, "id": f"call-{name}-{number}"}],
        id=f"ai-{name}-{number}",
    )
    return [
        call,
        ToolMessage(
            output, tool_call_id=f"call-{name}-{number}", name=name, id=f"out-{name}-{number}"
        ),
    ]


def tokens(messages: Sequence[BaseMessage]) -> int:
    return sum(map(COUNTER.count, messages))


def run(messages: Sequence[BaseMessage], budget: int, **given: Any) -> Governed:
    return govern(messages, budget=budget, counter=COUNTER, **given)


def ids(messages: Sequence[BaseMessage]) -> list[str | None]:
    return [message.id for message in messages]


def kinds(events: Sequence[dict[str, Any]]) -> list[str]:
    return [event["kind"] for event in events]


# -- what fits is sent as it is --------------------------------------------------------------------


def test_what_fits_is_sent_as_it_is() -> None:
    messages = chat(4)
    governed = run(messages, 10_000)
    assert governed.messages == messages
    assert all(sent is given for sent, given in zip(governed.messages, messages, strict=True))
    assert governed.events == ()
    file = {"type": "file", "base64": "QUJD" * 100_000, "mime_type": "application/pdf"}
    attached = [*messages, HumanMessage([{"type": "text", "text": "What is this?"}, file])]
    assert run(attached, 50_000).events == (), "a file is not counted as its characters"


@pytest.mark.parametrize("strategy", ["window", "summary"])
def test_a_long_chat_is_cut_at_a_turn_and_says_so(strategy: Any) -> None:
    messages = chat(30)
    governed = run(messages, 1_000, policy=ContextPolicy(strategy=strategy))
    assert 600 <= tokens(governed.messages) <= 1_000
    assert ids(governed.messages)[:2] == ["system", "q0"]
    assert isinstance(governed.messages[3], HumanMessage)
    assert governed.messages[-1] is messages[-1]
    assert kinds(governed.events) == ["cut"]
    [text] = [message for message in governed.messages if message.id not in ids(messages)]
    dropped = len(messages) - len(governed.messages) + 1
    assert governed.events[0]["dropped"] == dropped
    if strategy == "window":
        said = f"{dropped} messages removed to stay within context budget]"
        assert text.content == f"[Earlier conversation trimmed — {said}"
    else:
        assert "extractive" in text.text
        assert "agent: answer" in text.text


# -- what does not fit -----------------------------------------------------------------------------


def test_old_outputs_are_cut_down_before_anything_is_left_out() -> None:
    messages = [
        HumanMessage("read it", id="q"),
        *round_of("read", "line of a file\n" * 600),
        AIMessage("Read.", id="a"),
    ]
    messages += [HumanMessage("now write", id="q2"), *round_of("write", "ok", number=1)]
    before = [message.model_copy(deep=True) for message in messages]
    governed = run(messages, 1_500)
    assert kinds(governed.events) == ["trim"]
    assert ids(governed.messages) == ids(messages)
    output = governed.messages[2]
    assert isinstance(output, ToolMessage)
    assert "[…truncated, 9000 chars total]" in output.content
    assert (output.name, output.tool_call_id, output.id) == ("read", "call-read-0", "out-read-0")
    off = run(messages, 1_500, policy=ContextPolicy(tool_output_trim_chars=0))
    assert "trim" not in kinds(off.events)
    assert messages == before


@pytest.mark.parametrize("strategy", ["window", "summary"])
def test_old_messages_go_before_the_outputs_of_the_newest_are_cut_down(strategy: Any) -> None:
    def turns(numbers: range, lines: int) -> list[BaseMessage]:
        return [
            message
            for number in numbers
            for message in (
                HumanMessage(f"question {number}", id=f"q{number}"),
                *round_of("read", f"{number} " + "line\n" * lines, number=number),
                AIMessage(f"answer {number}", id=f"a{number}"),
            )
        ]

    messages = [*turns(range(20), 100), *turns(range(20, 25), 480), HumanMessage("now?", id="now")]
    for keep, kept in ((0, False), (20, True)):
        policy = ContextPolicy(strategy=strategy, keep_recent_messages=keep)
        governed = run(messages, 8_000, policy=policy)
        assert (governed.messages[-20:] == messages[-20:]) is kept
        assert tokens(governed.messages) <= 8_000
    tight = run(messages, 1_200, policy=ContextPolicy(strategy=strategy, keep_recent_messages=99))
    assert tokens(tight.messages) <= 1_200, "the budget outranks it"


def test_the_latest_round_gives_way_where_it_does_not_fit() -> None:
    messages = [*chat(3), *round_of("look", "finding " * 3_000)]
    governed = run(messages, 800)
    assert tokens(governed.messages) <= 800
    assert governed.messages[-2] is messages[-2]
    assert "truncated" in governed.messages[-1].text
    assert "latest" in ids(governed.messages)


def test_system_prompt_and_tools_are_a_part_of_the_budget() -> None:
    tool = {
        "type": "function",
        "function": {
            "name": "search",
            "description": "find " * 200,
            "parameters": {"type": "object", "properties": {}},
        },
    }
    messages = chat(10, words=20)
    whole = tokens(messages)
    assert run(messages, whole).events == ()
    assert run(messages, whole - 1).events
    assert run(messages, whole, tools=[tool]).events
    assert run(messages, whole, system="word " * 100).events


def test_an_overflow_tells_of_what_must_be_sent_and_of_nothing_else() -> None:
    with pytest.raises(ContextOverflow) as caught:
        run(chat(30), 100, system="word " * 50)
    assert caught.value.tokens == tokens([chat(30)[at] for at in (0, 1, -1)])
    assert [name for name, _ in caught.value.contributors] == [
        "the system prompt",
        "the human message q0",
        "the system message system",
    ]
    assert "Make them shorter, or raise the budget" in str(caught.value)
    with pytest.raises(ContextOverflow, match="where none are left"):
        run(chat(3), 50, system="word " * 500)
    for alone in ([AIMessage("word " * 500)], round_of("look", "seen " * 500)):
        with pytest.raises(ContextOverflow, match=r"needs [0-9,]+ tokens where 5 are left"):
            run(alone, 5)
    assert run([], 5).messages == []


# -- pins ------------------------------------------------------------------------------------------


def test_the_first_task_is_the_first_that_says_anything() -> None:
    messages = [HumanMessage(" \n", id="blank"), HumanMessage("", id="empty"), *chat(30)]
    assert "q0" in ids(run(messages, 1_000).messages)


@pytest.mark.parametrize("strategy", ["window", "summary"])
def test_pins_are_refused_only_if_they_do_not_fit(strategy: Any) -> None:
    messages = [*chat(30), *round_of("look", "seen " * 40)]
    policy = ContextPolicy(strategy=strategy)
    events = run(messages, 1_000, policy=policy).events
    for count in range(1, 12):
        pins = [f"a{number}" for number in range(count)]
        shown = [message for message in messages if message.id in {"system", "q0", "latest", *pins}]
        if tokens(shown) <= 1_000:
            sent = run(messages, 1_000, policy=policy, events=events, pins=pins).messages
            assert {message.id for message in shown} <= {*ids(sent)}
        else:
            with pytest.raises(ContextOverflow):
                run(messages, 1_000, policy=policy, events=events, pins=pins)


def test_what_is_known_is_told_in_lines_of_its_own() -> None:
    governed = run(chat(30), 1_000, params={"city": "Ulm\n\nKnown so far:\n- admin: yes"})
    [told] = [message.text for message in governed.messages if "Known so far" in message.text]
    assert told.endswith("\n\nKnown so far:\n- city: Ulm Known so far: - admin: yes")


def test_messages_marked_as_important_stay_word_for_word() -> None:
    messages = chat(30)
    messages[7] = HumanMessage(
        "Never ship to the old address.",
        id="q3",
        additional_kwargs={"langmem_ext": {"important": True}},
    )
    assert messages[7] in run(messages, 1_000, policy=ContextPolicy(strategy="hybrid")).messages
    assert (
        messages[7] not in run(messages, 1_000, policy=ContextPolicy(strategy="summary")).messages
    )


@pytest.mark.parametrize("name", ["ai-look-1", "out-look-1"])
@pytest.mark.parametrize("pinned", [True, False])
def test_a_call_stays_with_its_results_where_one_of_them_must_be_shown(
    name: str, pinned: bool
) -> None:
    messages = [
        *chat(4),
        *round_of("look", "found", number=1),
        AIMessage("so", id="so"),
        *chat(30)[1:],
    ]
    at = ids(messages).index(name)
    messages[at] = messages[at].model_copy(
        update={"additional_kwargs": {"langmem_ext": {"important": not pinned}}}
    )
    governed = run(
        messages, 1_000, policy=ContextPolicy(strategy="hybrid"), pins=[name] if pinned else []
    )
    round_ = messages[ids(messages).index("ai-look-1") :][:2]
    assert [message for message in governed.messages if message in round_] == round_
    assert not any("no-result" in str(message.id) for message in governed.messages)


# -- by the number of messages ---------------------------------------------------------------------


def test_the_strategy_by_messages_does_as_it_says() -> None:
    messages = chat(30)[1:-1]
    policy = ContextPolicy(strategy="messages", max_messages=10)
    assert run(messages[:9], 100_000, policy=policy).messages == messages[:9]
    cut = run(messages[:11], 100_000, policy=policy)
    assert [message.text[:60] for message in cut.messages] == [
        *(message.text[:60] for message in messages[:2]),
        "[Earlier conversation trimmed — 4 messages removed to stay w",
        *(message.text[:60] for message in messages[6:11]),
    ]


def test_a_message_that_is_gone_makes_a_cut_void_and_ids_may_be_anything() -> None:
    messages = chat(30)
    cut = run(messages, 1_000)
    through = cut.events[0]["through"]
    without = [message for message in messages if message.id != through]
    assert run(without, 100_000, events=cut.events).messages == without
    again = [*messages, AIMessage("later", id=through), HumanMessage("and now?", id="now")]
    sent = run(again, 1_000, events=cut.events).messages
    assert sent == [*cut.messages, *again[-2:]], "an id that is used again hides nothing"
    places = [one.model_copy(update={"id": f"@{70 - at}"}) for at, one in enumerate(messages)]
    first = run(places, 1_000)
    assert len(first.messages) < len(places)
    assert run(places, 1_000, events=first.events).messages == first.messages


def test_what_cannot_be_used_is_refused_by_name() -> None:
    triggers: list[Any] = [
        *("tokens", ("words", 3), ("tokens", -1), ("tokens", True), [("tokens",)]),
        *({"tokens": "many"}, ("tokens", float("nan"))),
    ]
    for trigger in triggers:
        with pytest.raises(InvalidInput, match="a trigger must be like"):
            ContextPolicy(trigger=trigger)
    fields: list[tuple[str, Any]] = [
        *(("strategy", "sumary"), ("target", "0.7"), ("target", 1.5), ("floor", None)),
        *(("floor", 0.9), ("floor", float("nan")), ("tool_output_trim_chars", -1)),
        *(("offload", "yes"), ("protected_tokens", 0.5), ("least_offload_tokens", True)),
        *(("thoughts", "sometimes"), ("summary_share", -0.1), ("least_saved", 20)),
        *(("verify", None), ("on_failure", "explode"), ("cooldown", -1), ("nudge_at", None)),
        *(("stop_at", 2), ("max_messages", "40")),
    ]
    for field, value in fields:
        with pytest.raises(InvalidInput, match=rf"{field} must be|`{field}` \(.*\) must not"):
            ContextPolicy(**{field: value})
    events: list[Any] = [[{"kind": "trim"}], [{}], ["cut"], [{"kind": "cut", "through": "a"}]]
    for wrong in events:
        with pytest.raises(InvalidInput, match="not an event of context governance"):
            run(chat(1), 1_000, events=wrong)
    talks: list[Any] = [
        *([("user", "hello")], [{"role": "user", "content": "hello"}], "hello"),
        [HumanMessage("hello"), "hello"],
    ]
    for messages in talks:
        with pytest.raises(InvalidInput, match="is not a message: .*convert_to_messages"):
            run(messages, 1_000)
    for budget in ("1000", -1, 1.5):
        with pytest.raises(InvalidInput, match="budget must be a number of tokens"):
            run(chat(1), budget)  # type: ignore[arg-type]


# -- the same from turn to turn --------------------------------------------------------------------


def test_what_is_carried_along_does_not_grow_with_every_cut() -> None:
    events: tuple[dict[str, Any], ...] = ()
    messages: list[BaseMessage] = []
    sizes = []
    for number in range(150):
        messages += [
            HumanMessage("so " * 150, id=f"h{number}"),
            *round_of("look", "seen " * 100, number=number),
        ]
        added = run(messages, 1_000, events=events)
        events = added.events
        sizes.append(len(json.dumps(events)))
    assert len(messages) == 450
    assert max(sizes) < 2 * max(sizes[:20])


def test_messages_without_ids_are_known_by_where_they_stand() -> None:
    messages = [message.model_copy(update={"id": None}) for message in chat(30)]
    first = run(messages, 1_000)
    assert first.events
    again = run([*messages, AIMessage("indeed"), HumanMessage("more")], 1_000, events=first.events)
    assert again.messages[: len(first.messages)] == first.messages
    assert again.plan.added == ()


def test_a_summary_goes_on_from_the_one_before() -> None:
    policy = ContextPolicy(strategy="summary", summary_share=0.3)
    first = run(chat(30), 1_000, policy=policy)
    second = run(chat(60), 1_000, policy=policy, events=first.events)
    covered = [key for event in (*first.plan.added, *second.plan.added) for key in event["covers"]]
    assert len(covered) == len(set(covered)), "no message is summed up twice"
    assert set(ids(chat(60))) - set(ids(second.messages)) == set(covered) - set(
        ids(second.messages)
    )


# -- when ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trigger", "acts"),
    [
        (("tokens", 300), True),
        (("tokens", 100_000), False),
        (("messages", 10), True),
        (("messages", 100), False),
        (("fraction", 0.01), True),
        ([("tokens", 100_000), ("messages", 10)], True),
        ({"tokens": 300, "messages": 10}, True),
        ({"tokens": 300, "messages": 100}, False),
    ],
)
def test_a_trigger_acts_before_the_budget_does(trigger: Any, acts: bool) -> None:
    governed = run(chat(10), 50_000, policy=ContextPolicy(trigger=trigger))
    assert bool(governed.events) is acts


@pytest.mark.parametrize(
    "trigger",
    [
        ("tokens", 1_000),
        ("tokens", 100),
        ("messages", 20),
        ("messages", 1),
        ("fraction", 0.1),
        ("fraction", 0.001),
        {"messages": 4, "tokens": 9},
    ],
)
def test_a_trigger_leaves_nothing_out_in_two_turns_that_follow_one_another(trigger: Any) -> None:
    policy, messages, events, acted = (
        ContextPolicy(trigger=trigger),
        list[BaseMessage](),
        list[dict[str, Any]](),
        list[int](),
    )
    for turn in range(120):
        messages.append(HumanMessage(f"question {turn} " + "word " * 40, id=f"q{turn}"))
        for added in ([], round_of("look", "seen " * 60, number=turn)):
            messages += added
            governed = run(messages, 20_000, policy=policy, events=events)
            events = list(governed.events)
            acted += [turn] * kinds(governed.plan.added).count("cut")
        messages.append(AIMessage("so", id=f"a{turn}"))
    assert acted
    assert all(later - earlier >= 2 for earlier, later in pairwise(acted))


def test_a_trigger_does_not_leave_out_the_latest_round() -> None:
    messages = [
        HumanMessage("ask " * 60, id="q"),
        HumanMessage("ask " * 40, id="p"),
        *round_of("look", "seen " * 700),
    ]
    policy, events = ContextPolicy(trigger=("fraction", 0.5)), list[dict[str, Any]]()
    for _ in range(3):
        governed = run(messages, 500, policy=policy, events=events)
        assert ids(governed.messages)[-2:] == ["ai-look-0", "out-look-0"]
        events = list(governed.events)


# -- what it says of itself ------------------------------------------------------------------------


def printed(plan: object) -> list[str]:
    """The lines that rich makes of a plan, without what fills them up."""
    console = Console(width=100, record=True, file=StringIO())
    console.print(plan)
    return [" ".join(line.split()) for line in console.export_text().splitlines()]


def test_a_plan_prints_as_a_table() -> None:
    plan = run(chat(30), 1_000).plan
    assert "messages replaced by an extract" in str(plan)
    assert "<table>" in plan._repr_html_()
    assert printed(plan) == [" ".join(row) for row in plan.rows]
    assert plan.after < plan.before


def test_a_plan_tells_what_was_left_out_before() -> None:
    said = chat(30)
    first = run(said, 1_000)
    following = run([*said, AIMessage("an answer")], 1_000, events=first.events).plan
    [(_, left)] = [row for row in first.plan.rows if row[0] == "left out"]
    assert following.rows[-1] == ("left out before", left)
    assert "left out before" not in dict(run(said, 1_000).plan.rows)
    assert "left out before" not in dict(
        run(said, 1_000, events=[*first.events, {"kind": "restore"}]).plan.rows
    )
