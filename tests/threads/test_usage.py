"""Promises of usage: every message counts once, money is exact, and no price is guessed."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langmem_ext import InvalidInput
from langmem_ext.messages.turns import cut_turns
from langmem_ext.threads.continuation.usage import (
    UNNAMED,
    Spent,
    Usage,
    checked_prices,
    checked_usage,
    spent_by,
    thread_usage,
)

PRICES = checked_prices({"small": ("0.1", 0.3), "large": (Decimal(3), 15)})


def reply(name: str | None, prompt: int, completion: int, model: str | None = "small") -> AIMessage:
    used: Any = {
        "input_tokens": prompt,
        "output_tokens": completion,
        "total_tokens": prompt + completion,
    }
    return AIMessage(
        "yes",
        id=name,
        usage_metadata=used,
        response_metadata={"model_name": model} if model else {},
    )


def spent(*messages: AIMessage) -> list[Spent]:
    return [one for message in messages if (one := spent_by(message)) is not None]


def test_a_message_says_what_it_used_or_nothing() -> None:
    assert spent_by(reply("a", 3, 4)) == Spent("a", "small", 3, 4)
    assert spent_by(reply("a", 3, 4, None)) == Spent("a", UNNAMED, 3, 4)
    assert spent_by(AIMessage("yes")) is None
    assert spent_by(HumanMessage("hi")) is None
    assert spent_by("hi") is None
    assert spent_by(
        AIMessage(
            "yes", response_metadata={"model": "m"}, usage_metadata=reply("a", 1, 2).usage_metadata
        )
    ) == Spent(None, "m", 1, 2)


def test_money_is_exact() -> None:
    found = thread_usage(spent(*(reply(str(number), 1, 1) for number in range(10))), (), PRICES)
    assert found.total.cost == Decimal("0.000004")
    assert found.total.total_tokens == 20
    assert thread_usage(spent(reply("a", 1, 1)), (), None).total.cost is None


def test_a_model_without_a_price_is_named_and_costs_nothing() -> None:
    found = thread_usage(
        spent(reply("a", 1_000_000, 0), reply("b", 5, 5, "large-2026"), reply("c", 1, 1, None)),
        (),
        PRICES,
    )
    assert (found.total.cost, found.total.unpriced) == (Decimal("0.1"), (UNNAMED, "large-2026"))
    assert found.models["large-2026"] == Usage(5, 5, 1, Decimal(), ("large-2026",))
    assert found.models["small"].unpriced == ()


def test_a_message_counts_once_and_a_turn_has_its_own() -> None:
    first, second, nameless, branch = (
        reply("a", 1, 2),
        reply("b", 3, 4),
        reply(None, 5, 6),
        reply("z", 7, 8, "large"),
    )
    edited = reply("a", 10, 20)
    _, turns = cut_turns([HumanMessage("1"), edited, HumanMessage("2"), second, nameless])
    found = thread_usage(spent(first, second, branch, nameless, edited), turns, PRICES)
    assert (found.total.prompt_tokens, found.total.completion_tokens, found.total.messages) == (
        25,
        38,
        4,
    )
    assert [(row.number, row.usage.prompt_tokens) for row in found.turns] == [(1, 10), (2, 8)]
    assert (found.elsewhere.prompt_tokens, found.elsewhere.messages) == (7, 1)
    assert found.total.cost == Decimal("0.0001518")


@pytest.mark.parametrize(
    "prices",
    [
        {"m": 3},
        {"m": (1,)},
        {"m": (1, -1)},
        {"m": ("a", 1)},
        {"m": (float("nan"), 1)},
        {"m": (1, float("inf"))},
        [],
        {"m": None},
    ],
    ids=str,
)
def test_a_price_that_is_none_is_refused(prices: Any) -> None:
    with pytest.raises(InvalidInput):
        checked_prices(prices)


@pytest.mark.parametrize(
    "usage",
    [
        {},
        {"input_tokens": 1},
        {"input_tokens": -1, "output_tokens": 0},
        {"input_tokens": "1", "output_tokens": 1},
        5,
    ],
    ids=str,
)
def test_a_usage_that_is_none_is_refused(usage: Any) -> None:
    with pytest.raises(InvalidInput):
        checked_usage(usage)
    assert checked_usage({"input_tokens": 1, "output_tokens": 2})["total_tokens"] == 3
