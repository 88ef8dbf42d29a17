"""The ratio of a provider's token counts to ours, which corrects the next counts.

Every answer says how many tokens its request had (`usage_metadata`). Their ratio to the count of
the same request is that of the model's tokenizer to ours, and of whatever the provider adds. It is
a plain number, so it may be kept wherever state is kept.

It rises at once and falls slowly: who counts too little overflows, who counts too much only wastes
room.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, isfinite
from typing import Any, Final

LEAST_COUNTED: Final = 200
"""Tokens of the shortest request that is learned from: in a shorter one, what the provider adds
outweighs what was said."""

PLAUSIBLE: Final = (1 / 3, 4.0)
"""A ratio outside says that request and usage do not belong together: nothing is learned from
it."""

BOUNDS: Final = (0.5, 3.0)
FALLS_BY: Final = 0.25
"""How much of the way down to a smaller ratio one answer leads."""


def calibrated(
    ratio: float, counted: int, usage: Mapping[str, Any] | None, *, least: float = 1.0
) -> float:
    """The ratio after an answer.

    Args:
        ratio: The ratio before; 1.0 if nothing is known.
        counted: Tokens that were counted here for the answer's request, with its tools; not yet
            multiplied by a ratio.
        usage: The answer's `usage_metadata`; None changes nothing.
        least: The smallest ratio. 1.0 never lets a budget be more than what was counted; 0.5 suits
            an approximation that is too dear.
    """
    low, high = max(least, BOUNDS[0]), BOUNDS[1]
    known = min(max(ratio, low), high) if isfinite(ratio) else low
    reported = input_tokens(usage)
    if reported is None or counted < LEAST_COUNTED:
        return known
    seen = reported / counted
    if not PLAUSIBLE[0] <= seen <= PLAUSIBLE[1]:
        return known
    seen = min(max(seen, low), high)
    return seen if seen > known else known + FALLS_BY * (seen - known)


def input_tokens(usage: Mapping[str, Any] | None) -> int | None:
    """Tokens of the request that an answer reports, cached ones included; None if missing."""
    if not isinstance(usage, Mapping):
        return None
    tokens, details = usage.get("input_tokens"), usage.get("input_token_details")
    if type(tokens) is not int or tokens <= 0:
        return None
    cached = (
        sum(_count(details, name) for name in ("cache_read", "cache_creation"))
        if isinstance(details, Mapping)
        else 0
    )
    # LangChain has cached tokens among the input tokens; some integrations pass on a count that is
    # without them.
    return tokens if cached <= tokens else tokens + cached


def scaled(tokens: int, ratio: float) -> int:
    """A count, corrected by a ratio; never rounded down."""
    return ceil(tokens * ratio)


def _count(details: Mapping[str, Any], name: str) -> int:
    value = details.get(name)
    return value if type(value) is int and value > 0 else 0
