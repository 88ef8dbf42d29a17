"""Promises of a budget: how a window is split, its parts' sum, the turns of the history."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage

from langmem_ext import Budget, ConversationTurn, InvalidInput

LIMITS = st.one_of(st.none(), st.integers(0, 200_000))


def test_a_quarter_for_the_answer_a_third_of_the_rest_for_the_history_the_remainder_for_files() -> (
    None
):
    for window, response, history, files in (
        (4_096, 1_024, 1_024, 2_048),
        (64_000, 16_000, 16_000, 32_000),
        (128_000, 16_000, 37_333, 74_667),
        (1_000_000, 16_000, 50_000, 934_000),
    ):
        assert Budget.of_window(window) == Budget(window, response, history, files)
        assert Budget.of_window(window).request == window - response
    off = Budget.of_window(600_000, response=None, history=0, files=None, margin=0)
    assert off == Budget(600_000, 0, 200_000, 400_000)
    assert Budget.of_window(200_000, files=100_000) == Budget(200_000, 16_000, 50_000, 100_000)
    assert Budget.of_window(8_192, margin=512) == Budget(8_192, 2_048, 2_048, 3_584, 512)
    assert Budget.of_window(1_600, margin=512).margin == 200, "at most an eighth"


@given(
    window=st.integers(1, 2_000_000), response=LIMITS, history=LIMITS, files=LIMITS, margin=LIMITS
)
def test_the_parts_are_never_more_than_the_window(
    window: int, response: int | None, history: int | None, files: int | None, margin: int | None
) -> None:
    budget = Budget.of_window(
        window, response=response, history=history, files=files, margin=margin
    )
    assert budget.response + budget.margin + budget.request == window
    assert 0 <= budget.history + budget.files <= budget.request
    assert budget.response <= min(window / 4, response or 0)
    assert budget.request >= window / 2
    if not files:
        assert budget.history + budget.files == budget.request


def test_a_model_that_states_its_window_is_believed() -> None:
    profile: Any = {"max_input_tokens": 200_000, "max_output_tokens": 4_096}
    model = GenericFakeChatModel(messages=iter([]), profile=profile)
    assert Budget.of_model(model, 8_000) == Budget(200_000, 4_096, 50_000, 145_904)
    assert Budget.of_model(model.bind(stop=["."]), 8_000).window == 200_000
    assert Budget.of_model(model, margin=512).margin == 512
    assert Budget.of_model(model, response=None).response == 0
    for nothing in (None, {}, {"max_input_tokens": 0}, {"max_input_tokens": None}):
        silent = model.model_copy(update={"profile": nothing})
        assert Budget.of_model(silent, 32_000) == Budget.of_window(32_000)
        with pytest.raises(InvalidInput, match="has no profile with its context window"):
            Budget.of_model(silent)


def test_a_budget_that_cannot_be_kept_is_refused() -> None:
    for number in (-1, True, 1.5, "4096"):
        with pytest.raises(InvalidInput, match="window must be a number of tokens"):
            Budget.of_window(number)  # type: ignore[arg-type]
        for name in ("response", "history", "files", "margin"):
            with pytest.raises(InvalidInput, match=f"{name} must be a number of tokens"):
                Budget.of_window(8_192, **{name: number})
    with pytest.raises(InvalidInput, match="must be at least 1 token"):
        Budget.of_window(0)
    with pytest.raises(
        InvalidInput, match="the parts need 9,000 tokens, more than the window of 8,000"
    ):
        Budget(8_000, 2_000, 3_000, 4_000)


# -- the history -----------------------------------------------------------------------------------


def turns_of(costs: list[int]) -> tuple[ConversationTurn, ...]:
    """A turn of two messages for each number of words."""
    return tuple(
        ConversationTurn(number, (HumanMessage("so " * count), AIMessage("done")))
        for number, count in enumerate(costs, start=1)
    )


def words(message: object) -> int:
    return len(getattr(message, "text", "").split())


@given(costs=st.lists(st.integers(0, 40), max_size=12), room=st.integers(0, 300))
def test_the_history_fits_and_one_more_turn_would_not(costs: list[int], room: int) -> None:
    turns = turns_of(costs)
    kept = Budget(300, 0, room, 0).allocate_history(turns, words)
    cost = [words_of + 1 for words_of in costs]
    assert kept == turns[len(turns) - len(kept) :]
    assert sum(cost[len(cost) - len(kept) :]) <= room
    assert len(kept) == len(turns) or sum(cost[len(cost) - len(kept) - 1 :]) > room
