"""The model usage of a conversation: tokens by its messages, and cost by the caller's prices.

Nothing is estimated: a message without usage metadata counts nothing, and a model without a price
is listed, never guessed.
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
"""By model name: the cost of a million prompt tokens, and of a million completion tokens."""

UNNAMED: Final = "(unnamed)"
"""The model of a message that names none."""

MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Spent:
    """What one message used.

    Attributes:
        message_id: The message's id.
        model: The model, by the message's metadata.
        prompt_tokens, completion_tokens: Tokens, by the message's `usage_metadata`.
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
        messages: How many messages have usage metadata.
        cost: By the caller's prices, of the models that have one; None if no prices were given.
        unpriced: The models without a price, sorted.
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
    """The usage of one turn, with its number and its tool."""

    number: int
    tool: str | None
    usage: Usage


@dataclass(frozen=True, slots=True)
class ThreadUsage:
    """What a thread used.

    Attributes:
        total: The usage of every message that the thread's log holds, in any branch or subgraph,
            each counted once.
        turns: The usage of each turn of the conversation as it is now.
        models: The usage of each model, by name.
        elsewhere: The part of the total that is in none of these turns: other branches, subgraphs,
            removed messages.
    """

    total: Usage
    turns: Sequence[TurnUsage] = ()
    models: Mapping[str, Usage] = field(default_factory=dict)
    elsewhere: Usage = field(default_factory=Usage)


def spent_by(message: object) -> Spent | None:
    """What a message used, by its metadata; None if it has none."""
    return spent_in(vars(message)) if isinstance(message, AIMessage) else None


def spent_in(fields: Mapping[str, Any]) -> Spent | None:
    """What a model's message used, by its fields; None if they do not say."""
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
    messages = list(spent)
    unpriced = (
        ()
        if prices is None
        else tuple(sorted({message.model for message in messages if message.model not in prices}))
    )
    return Usage(
        prompt_tokens=sum(message.prompt_tokens for message in messages),
        completion_tokens=sum(message.completion_tokens for message in messages),
        messages=len(messages),
        cost=None
        if prices is None
        else sum((_cost(message, prices) for message in messages), Decimal()),
        unpriced=unpriced,
    )


def _cost(message: Spent, prices: Mapping[str, tuple[Decimal, Decimal]]) -> Decimal:
    prompt, completion = prices.get(message.model, (Decimal(), Decimal()))
    return (message.prompt_tokens * prompt + message.completion_tokens * completion) / MILLION


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
        table: The prices of its models.
    """
    by_id: dict[object, Spent] = {
        (at if spent.message_id is None else spent.message_id): spent
        for at, spent in enumerate(everything)
    }
    rows, left = [], dict(by_id)
    for turn in turns:
        of_turn = [spent for message in turn.messages if (spent := spent_by(message)) is not None]
        for spent in of_turn:
            _take(left, spent)
        rows.append(TurnUsage(turn.number, turn.tool, sum_up(of_turn, table)))
    counted = list(by_id.values())
    models = {
        name: sum_up((spent for spent in counted if spent.model == name), table)
        for name in sorted({spent.model for spent in counted})
    }
    return ThreadUsage(sum_up(counted, table), tuple(rows), models, sum_up(left.values(), table))


def _take(left: dict[object, Spent], spent: Spent) -> None:
    """Remove a turn's message: by its id, or an equal one without an id."""
    key = (
        spent.message_id
        if spent.message_id is not None
        else next((at for at, other in left.items() if other == spent), None)
    )
    left.pop(key, None)


def checked_prices(prices: Prices) -> dict[str, tuple[Decimal, Decimal]]:
    """Prices as exact numbers; a float counts as it prints.

    Raises:
        InvalidInput: A price is invalid.
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
    """A caller's usage of a model, in LangChain's form.

    Raises:
        InvalidInput: It is invalid.
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
