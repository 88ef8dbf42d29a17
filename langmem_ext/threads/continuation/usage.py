"""The model usage of a conversation: tokens by its messages, and cost by the caller's prices.

Nothing is estimated: a message that says nothing counts nothing, and a model without a price is
named, never guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any, Final, TypeAlias

from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata

from langmem_ext.errors import InvalidInput
from langmem_ext.messages.turns import ConversationTurn

Price: TypeAlias = Decimal | int | float | str
Prices: TypeAlias = Mapping[str, tuple[Price, Price]]
"""By model name: what a million prompt tokens and a million completion tokens cost."""

UNNAMED: Final = "(unnamed)"
"""Stands for the model of a message that names none."""

MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Spent:
    """What one message used.

    Attributes:
        message_id: The message's id.
        model: The model, as the message's metadata name it.
        prompt_tokens, completion_tokens: As the message's `usage_metadata` say.
    """

    message_id: str | None
    model: str
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Usage:
    """What some messages used together.

    Attributes:
        prompt_tokens, completion_tokens: Tokens.
        messages: How many messages said what they used.
        cost: By the caller's prices; None if no prices were given. Of the models that have a price
            alone.
        unpriced: The models that have none, sorted.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    messages: int = 0
    cost: Decimal | None = None
    unpriced: tuple[str, ...] = ()

    @property
    def total_tokens(self) -> int:
        """All tokens."""
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True)
class TurnUsage:
    """What one turn used: its number, its tool, and the usage."""

    number: int
    tool: str | None
    usage: Usage


@dataclass(frozen=True, slots=True)
class ThreadUsage:
    """What a thread used.

    Attributes:
        total: Of every message that the thread's log holds, in whatever branch or subgraph, each
            counted once.
        turns: Of each turn of the conversation as it is now.
        models: Of each model, by name.
        elsewhere: What is in the total and in none of these turns: other branches, subgraphs,
            messages that were taken out.
    """

    total: Usage
    turns: Sequence[TurnUsage] = ()
    models: Mapping[str, Usage] = field(default_factory=dict)
    elsewhere: Usage = field(default_factory=Usage)


def spent_by(message: object) -> Spent | None:
    """What a message says that it used; None if it says nothing."""
    return spent_in(vars(message)) if isinstance(message, AIMessage) else None


def spent_in(fields: Mapping[str, Any]) -> Spent | None:
    """What the fields of a model's message say that it used; None if they say nothing."""
    used, metadata = fields.get("usage_metadata"), fields.get("response_metadata")
    if not isinstance(used, Mapping):
        return None
    named = metadata if isinstance(metadata, Mapping) else {}
    names = (named.get(key) for key in ("model_name", "model", "model_id"))
    model = next((name for name in names if isinstance(name, str) and name), UNNAMED)
    prompt, completion = (_tokens(used.get(key)) for key in ("input_tokens", "output_tokens"))
    return Spent(fields.get("id"), model, prompt, completion)


def _tokens(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def sum_up(spent: Iterable[Spent], prices: Mapping[str, tuple[Decimal, Decimal]] | None) -> Usage:
    """What several messages used together."""
    found = list(spent)
    unpriced = (
        ()
        if prices is None
        else tuple(sorted({one.model for one in found if one.model not in prices}))
    )
    return Usage(
        prompt_tokens=sum(one.prompt_tokens for one in found),
        completion_tokens=sum(one.completion_tokens for one in found),
        messages=len(found),
        cost=None if prices is None else sum((_cost(one, prices) for one in found), Decimal()),
        unpriced=unpriced,
    )


def _cost(one: Spent, prices: Mapping[str, tuple[Decimal, Decimal]]) -> Decimal:
    prompt, completion = prices.get(one.model, (Decimal(), Decimal()))
    return (one.prompt_tokens * prompt + one.completion_tokens * completion) / MILLION


def thread_usage(
    everything: Iterable[Spent],
    turns: Sequence[ConversationTurn],
    table: Mapping[str, tuple[Decimal, Decimal]] | None,
) -> ThreadUsage:
    """What a thread used.

    Args:
        everything: What each message of its log used, the newest last; of several with one id, the
            last counts.
        turns: Its turns as they are now.
        table: What its models cost.
    """
    by_id: dict[object, Spent] = {
        (at if one.message_id is None else one.message_id): one for at, one in enumerate(everything)
    }
    rows, left = [], dict(by_id)
    for turn in turns:
        mine = []
        for message in turn.messages:
            spent = spent_by(message)
            if spent is not None:
                mine.append(spent)
                _take(left, spent)
        rows.append(TurnUsage(turn.number, turn.tool, sum_up(mine, table)))
    found = list(by_id.values())
    models = {
        name: sum_up((one for one in found if one.model == name), table)
        for name in sorted({one.model for one in found})
    }
    return ThreadUsage(sum_up(found, table), tuple(rows), models, sum_up(left.values(), table))


def _take(left: dict[object, Spent], spent: Spent) -> None:
    """Take out what a turn has: by its id, or a nameless one that is like it."""
    key = (
        spent.message_id
        if spent.message_id is not None
        else next((at for at, one in left.items() if one == spent), None)
    )
    left.pop(key, None)


def checked_prices(prices: Prices) -> dict[str, tuple[Decimal, Decimal]]:
    """Prices as exact numbers; those of a float are what it prints as.

    Raises:
        InvalidInput: One is not a price.
    """
    if not isinstance(prices, Mapping):
        raise InvalidInput(
            "prices must be {model: (price of a million prompt tokens, of a million completion"
            " tokens)}"
        )
    return {
        model: (_price(model, pair, 0), _price(model, pair, 1)) for model, pair in prices.items()
    }


def _price(model: str, pair: Any, at: int) -> Decimal:
    try:
        prompt, completion = pair
        price = Decimal(str((prompt, completion)[at]))
    except (TypeError, ValueError, InvalidOperation):
        price = Decimal("nan")
    if not price.is_finite() or price < 0:
        raise InvalidInput(
            f"the price of {model!r} must be a pair of numbers: the cost of a million prompt tokens"
            " and of a million completion tokens"
        )
    return price


def checked_usage(usage: Mapping[str, int]) -> UsageMetadata:
    """What a caller says that a model used, as LangChain has it.

    Raises:
        InvalidInput: It is no such thing.
    """
    counts = [
        usage.get(key) if isinstance(usage, Mapping) else None
        for key in ("input_tokens", "output_tokens")
    ]
    prompt, completion = counts
    if (
        not isinstance(prompt, int)
        or not isinstance(completion, int)
        or min(prompt, completion) < 0
    ):
        raise InvalidInput("usage is {'input_tokens': …, 'output_tokens': …}, whole numbers")
    total = usage.get("total_tokens", prompt + completion)
    return {**usage, "input_tokens": prompt, "output_tokens": completion, "total_tokens": total}  # type: ignore[typeddict-item]
