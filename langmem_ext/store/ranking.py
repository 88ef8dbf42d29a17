"""How well an item answers a query: by its words, by its vectors, and by both.

A score lies between 0, nothing in common, and 1. By words it is the share of what the query says
that the item has, where a rare word says more than a common one: BM25 (Robertson and Zaragoza
2009), divided by what an item of average length gets that has each word once. By vectors it is
their cosine; below 0 it counts as what it is. Both together are `cosine + (1 - cosine) * words /
2`: words that are the same raise a score, by half of what is missing at most, and nothing lowers
it. (A convex fusion of scores finds more than one of ranks: Bruch et al. 2023.)
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from heapq import nlargest
from typing import Final

from langmem_ext.messages.search.words import compose, runs_of_letters, words_of_run

MOST_WORDS: Final = 32
"""Words of a query that count; of a longer one, the first."""

_SATURATION: Final = 1.2
_LENGTH: Final = 0.75

_WEIGHT: Final = 0.5
"""What a full match of words is worth, of what a vector's score lacks."""


def words_of_query(query: str) -> list[str]:
    """The words of a query as an index has them, each between spaces; none twice."""
    words: list[str] = []
    for run in runs_of_letters(compose(query[:10_000])):
        found = words_of_run(run)
        # The last character of such a run is a word only where a text ends with it.
        words += found[:-1] if run.dense and len(found) > 1 else found
    return [f" {word} " for word in dict.fromkeys(words)][:MOST_WORDS]


def score_words(
    query: Sequence[str], items: Sequence[tuple[int, str]], total: int
) -> dict[int, float]:
    """Scores by words.

    Args:
        query: The words of the query.
        items: Number and words of each item that has one of them.
        total: How many items there are to be found.

    Returns:
        By the item's number.
    """
    numbers = [number for number, _ in items]
    texts = [text for _, text in items]
    if not numbers:
        return {}
    lengths = [len(text) for text in texts]
    base = _SATURATION * (1 - _LENGTH)
    slope = _SATURATION * _LENGTH * len(lengths) / sum(lengths)
    damped = [base + slope * length for length in lengths]
    # A word after the other: that takes half of the time of an item after the other.
    counted = [[text.count(word) for text in texts] for word in query]
    found = [len(counts) - counts.count(0) for counts in counted]
    weights = [math.log(1 + (max(total - n, 0) + 0.5) / (n + 0.5)) for n in found]
    scores = [0.0] * len(numbers)
    for weight, counts in zip(weights, counted, strict=True):
        worth = weight * (1 + _SATURATION) / sum(weights)
        scores = [
            score + worth * count / (count + damp)
            for score, count, damp in zip(scores, counts, damped, strict=True)
        ]
    return {number: min(score, 1.0) for number, score in zip(numbers, scores, strict=True)}


def fuse(
    numbers: Iterable[int],
    words: Mapping[int, float],
    vectors: Mapping[int, float] | None,
    indexed: Container[int],
) -> dict[int, float | None]:
    """Scores of items by both.

    Args:
        numbers: The items.
        words: Scores by words.
        vectors: Scores by vectors; None where there is no model.
        indexed: Where there is no model, the items that could have been found.

    Returns:
        By number, in the order in which they are given: None for an item that no query finds.
    """
    if vectors is None:
        return {one: words.get(one, 0.0 if one in indexed else None) for one in numbers}
    scores: dict[int, float | None] = {one: vectors.get(one) for one in numbers}
    for number, said in words.items():
        if number in scores:
            near = scores[number] or 0.0
            scores[number] = near + (1 - near) * _WEIGHT * said
    return scores


def best(scores: Mapping[int, float | None], count: int) -> list[tuple[int, float | None]]:
    """The best so many: those without a score last, equal ones as they were."""
    return nlargest(count, scores.items(), key=lambda one: -math.inf if one[1] is None else one[1])
