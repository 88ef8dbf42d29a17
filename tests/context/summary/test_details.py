"""What must not get lost in a summary and is found without a model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langmem_ext.context.summary.key_facts import LABEL, find_details, missing_details, with_details


class Letters:
    """A counter: one for each character."""

    def count_text(self, text: str) -> int:
        return len(text)


@pytest.mark.parametrize(
    ("text", "details"),
    [
        ("Ship 12 boxes on 2024-05-12 at 10:30.", ["12", "2024-05-12", "10:30"]),
        ("It costs $4, 5% less than $1,200.50!", ["$4", "5%", "$1,200.50"]),
        ("Order O-12345 of user ab12_x, issue #7.", ["O-12345", "ab12_x", "#7"]),
        (
            "See /etc/app/conf.d, ~/notes.md and ./run.sh; also src/app/main.py.",
            ["/etc/app/conf.d", "~/notes.md", "./run.sh", "src/app/main.py"],
        ),
        (r"Open C:\Users\Ada\plan.docx now", [r"C:\Users\Ada\plan.docx"]),
        (
            "Write to ada@example.org or see https://example.org/a?b=1.",
            ["ada@example.org", "https://example.org/a?b=1"],
        ),
        (
            'Call it "North Gate" or “South Gate”, run `make all`.',
            ['"North Gate"', "“South Gate”", "`make all`"],
        ),
        ("the dogs' bowl and the cats' food, 3 of them, the 2nd, and/or more", []),
        ("O-17 and O-17 again", ["O-17"]),
        ("", []),
    ],
)
def test_numbers_ids_paths_addresses_and_quoted_names_are_details(
    text: str, details: list[str]
) -> None:
    assert find_details(text) == details


def test_only_what_the_summary_has_in_no_form_is_missing() -> None:
    said = ["Pay $1,200 for o-17 by 2024-05-12, not 20.", 'It is for "North Gate".']
    assert missing_details(
        said, "1200 dollars for O-17 (North gate), due 2024-05-12; room 2024"
    ) == ["20"]
    assert missing_details(said, "Nothing.") == [
        "$1,200",
        "o-17",
        "2024-05-12",
        "20",
        '"North Gate"',
    ]


def test_they_are_a_last_line_that_is_carried_on() -> None:
    first = with_details("A summary.", ["O-1", "O-2"], 100, Letters())
    assert first == f"A summary.\n{LABEL}O-1, O-2"
    assert with_details(first, ["O-3"], 100, Letters()) == f"A summary.\n{LABEL}O-1, O-2, O-3"


def test_the_limit_holds_by_a_counter_to_which_the_whole_is_more_than_its_parts() -> None:
    class Squares:
        """A counter that grows with the square of a text's length."""

        def count_text(self, text: str) -> int:
            return len(text) ** 2

    whole = with_details("A summary.", [f"O-{number}" for number in range(10, 30)], 2500, Squares())
    assert whole.endswith("O-29")
    assert Squares().count_text(whole) <= 2500


WORDS = st.text("abO1-", min_size=1, max_size=8)


@given(st.lists(WORDS, max_size=6).map(" ".join), st.lists(WORDS, max_size=8), st.integers(0, 120))
def test_the_latest_that_fit_are_added_and_the_limit_holds(
    summary: str, details: list[str], limit: int
) -> None:
    whole = with_details(summary, details, limit, Letters())
    assert whole == summary or len(whole) <= limit
    assert whole.startswith(summary)
    added = (
        whole.removeprefix(summary).removeprefix(f"\n{LABEL}").split(", ")
        if whole != summary
        else []
    )
    assert added == details[len(details) - len(added) :]


@given(st.lists(st.text("ab1O-/. \"'", max_size=40), max_size=4))
def test_what_has_been_added_is_not_missing_any_more(texts: list[str]) -> None:
    lost = missing_details(texts, "A summary.")
    assert missing_details(texts, with_details("A summary.", lost, 10_000, Letters())) == []
