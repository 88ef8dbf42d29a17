"""How well an item answers a query: by its words, by its vectors, and by both.

A score is between 0, nothing in common, and 1. By words, it is the share of the query that the item
has, with more weight for rare words: BM25 (Robertson and Zaragoza 2009), divided by the score of an
item of average length that has each word once. By vectors, it is their cosine, which may be below
0. Both together are `cosine + (1 - cosine) * words / 2`: common words raise a score, at most by
half of what it lacks, and nothing lowers it. (A convex fusion of scores finds more than one of
ranks: Bruch et al. 2023.)
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from heapq import nlargest
from typing import Final

from langmem_ext.messages.search.words import compose, runs_of_letters, words_of_run

MOST_WORDS: Final = 32
"""How many words of a query count: the first."""

_SATURATION: Final = 1.2
_LENGTH: Final = 0.75

_WEIGHT: Final = 0.5
"""The part of what a vector's score lacks that a full match of words adds."""


def words_of_query(query: str) -> list[str]:
    """The words of a query as an index has them, each once and between spaces."""
    words: list[str] = []
    for run in runs_of_letters(compose(query[:10_000])):
        words_in_run = words_of_run(run)
        # The last character of a dense run is a word only at the end of a text.
        words += words_in_run[:-1] if run.dense and len(words_in_run) > 1 else words_in_run
    return [f" {word} " for word in dict.fromkeys(words)][:MOST_WORDS]


def score_words(
    query: Sequence[str], items: Sequence[tuple[int, str]], total: int
) -> dict[int, float]:
    """Scores by words.

    Args:
        query: The words of the query.
        items: Number and words of each item that has one of them.
        total: How many items are searched.

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
    # Word by word: that takes half of the time of item by item.
    counted = [[text.count(word) for text in texts] for word in query]
    having = [len(counts) - counts.count(0) for counts in counted]
    weights = [math.log(1 + (max(total - n, 0) + 0.5) / (n + 0.5)) for n in having]
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
        vectors: Scores by vectors; None if there is no model.
        indexed: If there is no model, the items that a query can find.

    Returns:
        By number, in the given order: None for an item that no query finds.
    """
    if vectors is None:
        return {number: words.get(number, 0.0 if number in indexed else None) for number in numbers}
    scores: dict[int, float | None] = {number: vectors.get(number) for number in numbers}
    for number, score in words.items():
        if number in scores:
            near = scores[number] or 0.0
            scores[number] = near + (1 - near) * _WEIGHT * score
    return scores


def best(scores: Mapping[int, float | None], count: int) -> list[tuple[int, float | None]]:
    """The best `count` scores: items without a score last, equal ones in their order."""
    return nlargest(
        count, scores.items(), key=lambda pair: -math.inf if pair[1] is None else pair[1]
    )
