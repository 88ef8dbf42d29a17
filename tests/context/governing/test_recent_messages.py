"""Promise: the newest messages are sent verbatim, as many as configured, if they fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langmem_ext.context.cut.planning import Governed
from langmem_ext.context.decisions import ContextEvent
from langmem_ext.context.govern import govern
from langmem_ext.context.policy import ContextPolicy
from langmem_ext.messages.token_costs.tokens import ApproximateCounter

COUNTER = ApproximateCounter()


def rounds(numbers: range, words: int) -> list[BaseMessage]:
    """Turns of four messages each: a question, a call, its output, an answer."""
    said: list[BaseMessage] = []
    for number in numbers:
        call = AIMessage(
            "",
            tool_calls=[{"name": "read", "args": {"n": number}, "id": f"c{number}"}],
            id=f"call{number}",
        )
        output = ToolMessage(
            f"{number} " + "line\n" * words, tool_call_id=f"c{number}", id=f"out{number}"
        )
        said += [
            HumanMessage(f"question {number}", id=f"q{number}"),
            call,
            output,
            AIMessage(f"answer {number}", id=f"a{number}"),
        ]
    return said


def run(messages: Sequence[BaseMessage], budget: int, keep: int, **policy: Any) -> Governed:
    chosen = ContextPolicy(**{"strategy": "window", **policy}, keep_recent_messages=keep)
    return govern(messages, budget=budget, counter=COUNTER, policy=chosen)


def newest_shown(governed: Governed, messages: Sequence[BaseMessage]) -> int:
    """How many of the newest messages are shown word for word, one after the other."""
    sent = governed.messages[::-1]
    return next(
        (
            at
            for at, (shown, said) in enumerate(zip(sent, reversed(messages), strict=False))
            if shown is not said
        ),
        len(sent),
    )


def trimmed(events: Sequence[ContextEvent]) -> set[str]:
    return {event["at"] for event in events if event["kind"] in ("trim", "offload")}


@pytest.mark.parametrize("strategy", ["window", "summary", "hybrid"])
def test_old_messages_go_before_the_outputs_of_the_newest_are_cut_down(strategy: Any) -> None:
    messages = [
        *rounds(range(20), 100),
        *rounds(range(20, 25), 480),
        HumanMessage("and now?", id="latest"),
    ]
    budget = 8_000
    before = run(messages, budget, 0, strategy=strategy)
    kept = run(messages, budget, 20, strategy=strategy)
    assert newest_shown(before, messages) < 20 <= newest_shown(kept, messages)
    assert sum(map(COUNTER.count, kept.messages)) <= budget


def test_outputs_before_the_newest_messages_are_enough_where_they_can_be() -> None:
    messages = [*rounds(range(10), 900), HumanMessage("and now?", id="latest")]
    governed = run(messages, 16_000, 20)
    assert (
        trimmed(governed.events)
        == {event["at"] for event in governed.events}
        <= {f"out{number}" for number in range(5)}
    )
    assert len(governed.messages) == len(messages)


def test_outputs_of_the_newest_messages_are_not_offloaded_either() -> None:
    messages = [*rounds(range(30), 900), HumanMessage("and now?", id="latest")]
    sizes = {"offload": True, "protected_tokens": 0, "least_offload_tokens": 1}
    assert "out26" in trimmed(run(messages, 20_000, 0, **sizes).events)
    governed = run(messages, 20_000, 20, **sizes)
    assert trimmed(governed.events)
    assert newest_shown(governed, messages) >= 20


@pytest.mark.parametrize("keep", range(1, 20))
def test_a_round_of_tool_calls_stays_whole(keep: int) -> None:
    messages = [*rounds(range(20), 100), HumanMessage("and now?", id="latest")]
    governed = run(messages, 50_000, keep, trigger=("messages", 40))
    shown = newest_shown(governed, messages)
    assert shown >= keep
    assert not isinstance(messages[-shown], ToolMessage)


@pytest.mark.parametrize("budget", [300, 600, 1_200])
def test_the_budget_outranks_it(budget: int) -> None:
    messages = [*rounds(range(20), 30), HumanMessage("and now?", id="latest")]
    governed = run(messages, budget, 1_000)
    assert sum(map(COUNTER.count, governed.messages)) <= budget
    without = run(messages, budget, 0)
    assert newest_shown(governed, messages) >= newest_shown(without, messages) > 0


@pytest.mark.parametrize(
    ("keep", "trigger", "least", "most"),
    [(10, 40, 10, 30), (20, 30, 20, 22), (20, 16, 7, 12), (0, 40, 1, 7)],
)
def test_where_the_number_of_messages_is_the_trigger_it_says_how_many_of_them_stay(
    keep: int, trigger: int, least: int, most: int
) -> None:
    messages = [*rounds(range(20), 30), HumanMessage("and now?", id="latest")]
    governed = run(messages, 50_000, keep, trigger=("messages", trigger))
    assert least <= newest_shown(governed, messages) <= len(governed.messages) <= most
