"""Promises of a budget: how a window is split, its parts' sum, the turns of the history."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage

from langmem_ext.context.budget.budget import WIDE, Budget, scaled
from langmem_ext.errors import InvalidInput
from langmem_ext.messages.turns import ConversationTurn, cut_turns

LIMITS = st.one_of(st.none(), st.integers(0, 200_000))


@pytest.mark.parametrize(
    ("window", "response", "history", "files"),
    [
        (4_096, 1_024, 1_024, 2_048),
        (8_192, 2_048, 2_048, 4_096),
        (64_000, 16_000, 16_000, 32_000),
        (128_000, 16_000, 37_333, 74_667),
        (200_000, 16_000, 50_000, 134_000),
        (1_000_000, 16_000, 50_000, 934_000),
    ],
)
def test_a_quarter_for_the_answer_a_third_of_the_rest_for_the_history_the_remainder_for_files(
    window: int, response: int, history: int, files: int
) -> None:
    assert Budget.of_window(window) == Budget(window, response, history, files)
    assert Budget.of_window(window).request == window - response


def test_a_limit_that_is_off_limits_nothing() -> None:
    for off in (0, None):
        assert Budget.of_window(
            600_000, response=off, history=off, files=off, margin=off
        ) == Budget(600_000, 0, 200_000, 400_000)
    assert Budget.of_window(200_000, files=100_000) == Budget(200_000, 16_000, 50_000, 100_000)


def test_the_margin_comes_off_what_remains_and_is_at_most_an_eighth() -> None:
    assert Budget.of_window(8_192, margin=512) == Budget(8_192, 2_048, 2_048, 3_584, 512)
    assert Budget.of_window(1_600, margin=512) == Budget(1_600, 400, 400, 600, 200)


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
    model = GenericFakeChatModel(
        messages=iter([]), profile={"max_input_tokens": 200_000, "max_output_tokens": 4_096}
    )
    assert Budget.of_model(model, 8_000) == Budget(200_000, 4_096, 50_000, 145_904)
    assert Budget.of_model(model.bind(stop=["."]), 8_000).window == 200_000
    assert Budget.of_model(model, margin=512).margin == 512
    assert Budget.of_model(model, response=None).response == 0


@pytest.mark.parametrize(
    "profile",
    [None, {}, {"max_input_tokens": 0}, {"max_input_tokens": None, "max_output_tokens": 0}],
)
def test_a_model_that_states_none_has_the_default(profile: dict[str, int | None] | None) -> None:
    model = GenericFakeChatModel(messages=iter([])).model_copy(update={"profile": profile})
    assert Budget.of_model(model, 32_000) == Budget.of_window(32_000)
    with pytest.raises(
        InvalidInput,
        match="GenericFakeChatModel has no profile with its context window: pass `default`",
    ):
        Budget.of_model(model)


@pytest.mark.parametrize("number", [-1, True, 1.5, "4096"])
def test_what_is_no_count_of_tokens_is_refused(number: int) -> None:
    with pytest.raises(InvalidInput, match="window must be a number of tokens"):
        Budget.of_window(number)
    for name in ("response", "history", "files", "margin"):
        with pytest.raises(InvalidInput, match=f"{name} must be a number of tokens"):
            Budget.of_window(8_192, **{name: number})


def test_a_budget_that_cannot_be_kept_is_refused() -> None:
    with pytest.raises(InvalidInput, match="must be at least 1 token"):
        Budget.of_window(0)
    with pytest.raises(
        InvalidInput, match="the parts need 9,000 tokens, more than the window of 8,000"
    ):
        Budget(8_000, 2_000, 3_000, 4_000)


# -- the history -----------------------------------------------------------------------------------


def turns_of(costs: list[int]) -> tuple[ConversationTurn, ...]:
    """A turn of two messages for each number of words."""
    return cut_turns(
        [message for words in costs for message in (HumanMessage("so " * words), AIMessage("done"))]
    )[1]


def words(message: object) -> int:
    return len(getattr(message, "text", "").split())


def test_the_history_is_the_newest_whole_turns_without_a_gap() -> None:
    turns = turns_of([1, 50, 10, 20])
    assert Budget(400, 0, 32, 0).allocate_history(turns, words) == turns[2:]
    assert Budget(400, 0, 31, 0).allocate_history(turns, words) == turns[3:]
    assert Budget(400, 0, 20, 0).allocate_history(turns, words) == ()
    assert Budget(40_000, 0, 10_000, 0).allocate_history(turns) == turns


@given(costs=st.lists(st.integers(0, 40), max_size=12), room=st.integers(0, 300))
def test_the_history_fits_and_one_more_turn_would_not(costs: list[int], room: int) -> None:
    turns = turns_of(costs)
    kept = Budget(300, 0, room, 0).allocate_history(turns, words)
    cost = [words_of + 1 for words_of in costs]
    assert kept == turns[len(turns) - len(kept) :]
    assert sum(cost[len(cost) - len(kept) :]) <= room
    assert len(kept) == len(turns) or sum(cost[len(cost) - len(kept) - 1 :]) > room


@given(tokens=st.integers(0, 10**6), request=st.integers(0, 10**6))
def test_a_size_shrinks_with_the_request_and_never_grows(tokens: int, request: int) -> None:
    assert scaled(tokens, request) <= tokens
    assert scaled(tokens, request) <= scaled(tokens, request + 1)
    assert scaled(tokens, WIDE) == tokens
    assert scaled(tokens, WIDE // 2) == tokens // 2
