"""A model's answer is unwrapped, and refused if it cannot replace a conversation."""

from __future__ import annotations

import pytest

from langmem_ext.context.summary.checks import Unusable, read_missing, read_summary
from langmem_ext.context.summary.prompts import (
    SUMMARY_PROMPT,
    SYSTEM_PROMPT,
    VERIFY_PROMPT,
    Prompts,
)

SUMMARY = "Ada asked for O-17.\nIt is on its way."


@pytest.mark.parametrize(
    "answer",
    [
        SUMMARY,
        f"  {SUMMARY}\n",
        f"<think>What do they\nwant?</think>\n{SUMMARY}",
        f"What do they want?</think>{SUMMARY}",
        f"```markdown\n{SUMMARY}\n```",
        f"<summary>\n{SUMMARY}\n</summary>",
        f"Sure! Here is the summary:\n\n{SUMMARY}",
        (
            "Here's a concise summary of the"
            f" conversation:\n<state_snapshot>{SUMMARY}</state_snapshot>"
        ),
    ],
)
def test_a_summary_is_taken_out_of_what_it_is_wrapped_in(answer: str) -> None:
    assert read_summary(answer, Prompts(), "user: hello") == SUMMARY


@pytest.mark.parametrize(
    "answer",
    [
        "The tags <think> and <reasoning> are to be removed by Monday.",
        "They use <summary> tags; </summary> is often lacking.",
    ],
)
def test_a_summary_that_tells_of_tags_is_left_whole(answer: str) -> None:
    assert read_summary(answer, Prompts(), "") == answer


@pytest.mark.parametrize(
    "answer",
    [
        "I'm sorry, but I can't help with that.",
        "I’m sorry, I cannot summarise this conversation.",
        "Sorry, I am unable to do that.",
        "I cannot assist with this request.",
        "I can't help with summarizing that.",
        "As an AI language model, I have no opinion.",
        "Unfortunately, I cannot provide a summary.",
        "I'm unable to process this.",
        "I don't see any conversation to summarise.",
        "Es tut mir leid, dabei kann ich nicht helfen.",
        "抱歉，我无法帮助。",
    ],
)
def test_a_refusal_is_no_summary(answer: str) -> None:
    with pytest.raises(Unusable, match="refuses"):
        read_summary(answer, Prompts(), "")


@pytest.mark.parametrize(
    "answer",
    [
        "The agent was sorry that it could not refund O-17.",
        "Unfortunately the parcel is lost; a refund was agreed.",
        "The user can't log in: error 403. I don't have the order id yet.",
        "用户要求退款，订单号17",
        "User is unable to pay; agent cannot help before Monday.",
    ],
)
def test_a_summary_that_tells_of_a_refusal_is_one(answer: str) -> None:
    assert read_summary(answer, Prompts(), "") == answer


@pytest.mark.parametrize(
    "answer", ["", " \n", "<think>hm</think>", "<think>never ends", "```\n```", None, ["text"]]
)
def test_an_empty_answer_is_no_summary(answer: object) -> None:
    with pytest.raises(Unusable, match="is empty|is not text"):
        read_summary(answer, Prompts(), "")


@pytest.mark.parametrize("answer", ["OK.", "Understood.", "…", "Done!"])
def test_a_word_of_assent_is_no_summary(answer: str) -> None:
    with pytest.raises(Unusable, match="says nothing"):
        read_summary(answer, Prompts(), "")


TALK = "\n".join(f"user: question {number}\nagent: answer {number}" for number in range(20))


@pytest.mark.parametrize(
    "answer",
    [
        SUMMARY_PROMPT,
        f"{SYSTEM_PROMPT} OK.",
        f"Summary:\n{SUMMARY_PROMPT}",
        VERIFY_PROMPT,
        TALK,
        TALK[:300].upper(),
    ],
)
def test_an_echo_is_no_summary(answer: str) -> None:
    with pytest.raises(Unusable, match="repeats"):
        read_summary(answer, Prompts(), TALK)


def test_an_echo_of_a_prompt_of_ones_own_is_found_too() -> None:
    prompts = Prompts(summary="Note what the customer of the shop wants.\nBe brief.")
    with pytest.raises(Unusable, match="repeats"):
        read_summary("Note what the customer of the shop wants. Be brief.", prompts, "")


@pytest.mark.parametrize(
    "answer",
    [
        "NONE",
        "None.",
        "**NONE**",
        "- none",
        "None, the summary is complete.",
        "Nothing is missing.",
        "nothing missing",
        "",
        "\n",
        None,
    ]
    + ["<think>Is there?</think>NONE", "I'm sorry, but I can't help.", VERIFY_PROMPT],
)
def test_nothing_missing_is_heard_however_it_is_said(answer: object) -> None:
    assert read_missing(answer, SUMMARY, Prompts()) == []


def test_what_is_missing_is_told_in_lines_each_once_without_what_is_there() -> None:
    answer = (
        "- it costs $40\n\n- Ada asked for O-17.\n- it costs $40\n- NONE\n- None of it was paid."
    )
    assert read_missing(answer, SUMMARY, Prompts()) == ["- it costs $40", "- None of it was paid."]
