"""The cost of a conversation by turn: reported and estimated tokens, bytes, and money.

Money is shown where prices are known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from langmem_ext.inspector.sources.costs import MessageCost
from langmem_ext.inspector.views.charts import Chart, stacked
from langmem_ext.threads.continuation.usage import Spent, Usage, sum_up


@dataclass(frozen=True, slots=True)
class ThreadCost:
    """What a thread costs.

    Attributes:
        turns: How many turns it has.
        total: What its models say that they used.
        models: The same by model.
        charts: Tokens, context and bytes by turn.
    """

    turns: int
    total: Usage
    models: Mapping[str, Usage]
    charts: Sequence[Chart]


def cost_of(
    costs: Sequence[MessageCost], prices: Mapping[str, tuple[Decimal, Decimal]] | None
) -> ThreadCost:
    """What the messages of a conversation cost, turn by turn."""
    turns = _turns_of(costs)
    spent_by_turn = [[cost.spent for cost in turn if cost.spent is not None] for turn in turns]
    all_spent = [spent for turn in spent_by_turn for spent in turn]
    return ThreadCost(
        turns=len(turns),
        total=sum_up(all_spent, prices),
        models={
            name: sum_up((spent for spent in all_spent if spent.model == name), prices)
            for name in sorted({spent.model for spent in all_spent})
        },
        charts=[*([_reported(spent_by_turn)] if all_spent else []), *_stored(turns)],
    )


def _reported(spent_by_turn: Sequence[Sequence[Spent]]) -> Chart:
    """The tokens that models report, by turn."""
    used = [
        [sum(spent.prompt_tokens for spent in turn), sum(spent.completion_tokens for spent in turn)]
        for turn in spent_by_turn
    ]
    return stacked(
        "Tokens that models report", ("of prompts", "of completions"), used, unit="tokens"
    )


def _stored(turns: Sequence[Sequence[MessageCost]]) -> list[Chart]:
    """What is stored, by turn: estimated tokens, their sum so far, and bytes."""
    by_role = [_by_role(turn) for turn in turns]
    growth = _running(by_role)
    sizes = [[sum(cost.size for cost in turn)] for turn in turns]
    return [
        stacked(
            "Stored tokens, estimated",
            ("of the user", "of the agent", "of tools"),
            by_role,
            unit="tokens",
        ),
        stacked(
            "Conversation as it grew",
            ("in all",),
            [[tokens] for tokens in growth],
            unit="tokens",
            total=growth[-1] if growth else 0,
        ),
        stacked("Bytes stored", ("bytes",), sizes, unit=""),
    ]


def _turns_of(costs: Sequence[MessageCost]) -> list[list[MessageCost]]:
    """The messages of each turn: one begins with each message of a user."""
    turns: list[list[MessageCost]] = []
    for cost in costs:
        if cost.role == "user" or not turns:
            turns.append([])
        turns[-1].append(cost)
    return turns


def _by_role(turn: Sequence[MessageCost]) -> list[float]:
    tokens = dict.fromkeys(("user", "agent", "tool"), 0.0)
    for cost in turn:
        if cost.role in tokens:
            tokens[cost.role] += cost.tokens
    return [*tokens.values()]


def _running(rows: Sequence[Sequence[float]]) -> list[float]:
    total, totals = 0.0, []
    for row in rows:
        total += sum(row)
        totals.append(total)
    return totals
