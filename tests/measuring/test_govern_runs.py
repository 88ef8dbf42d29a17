"""The measurement of recorded conversations, on a few invented ones: what it counts, and that it
sees what is wrong where something is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from benchmarks import govern_runs
from benchmarks.contexts import Request
from benchmarks.govern_runs import Findings, follow
from benchmarks.recorded_runs import Prefix, Run, read_runs, ruled_tokens
from langmem_ext.context.budget.counters import TiktokenCounter
from langmem_ext.errors import MissingExtra

try:
    TiktokenCounter()
except MissingExtra:
    pytest.skip("the extra tokens-offline is not installed", allow_module_level=True)

PROMPT = "You help with orders. " * 5
ORDER = {"status": "sent", "items": list(range(60))}


def traj() -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": PROMPT}]
    for turn in range(6):
        asked = {
            "id": f"c{turn}",
            "type": "function",
            "function": {"name": "find", "arguments": json.dumps({"order": turn})},
        }
        messages += [
            {"role": "user", "content": f"Where is order {turn}? " * 5},
            {"role": "assistant", "content": None, "tool_calls": [asked]},
            {
                "role": "tool",
                "tool_call_id": f"c{turn}",
                "name": "find",
                "content": json.dumps({"order": turn, **ORDER}),
            },
            {"role": "assistant", "content": f"Order {turn} was sent. " * 5},
        ]
    return messages


EPISODES = [
    {"query": "How many?", "actions": ["SELECT 1"] * 7, "observations": ["error"] * 7},
    {
        "query": "How many?",
        "actions": ["SELECT 1"] * 7,
        "observations": [f"row {number}" for number in range(7)],
    },
    {
        "query": "Which?",
        "actions": ["a", "b", "a", "b", "a"],
        "observations": ["1", "2", "1", "2", "1"],
    },
]


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    runs, episodes = tmp_path / "shop_runs.json", tmp_path / "shell_episodes.jsonl"
    runs.write_text(json.dumps([{"traj": traj()}]), encoding="utf-8")
    episodes.write_text("".join(json.dumps(row) + "\n" for row in EPISODES), encoding="utf-8")
    return [runs, episodes]


def test_files_of_both_formats_become_the_same_kind_of_messages(paths: list[Path]) -> None:
    [shop] = read_runs(paths[0])
    assert [message.type for message in shop.messages[:5]] == [
        "system",
        "human",
        "ai",
        "tool",
        "ai",
    ]
    assert [prefix.calls_model for prefix in shop.prefixes()][:6] == [
        False,
        True,
        False,
        True,
        False,
        True,
    ]
    episodes = read_runs(paths[1])
    assert [Prefix(list(run.messages)).loop() for run in episodes] == [7, 1, 3]
    assert read_runs(paths[1], 1)[0].messages[1].text == ""
    assert len({message.id for run in [shop, *episodes] for message in run.messages}) == sum(
        len(run.messages) for run in [shop, *episodes]
    )


@pytest.mark.slow
def test_ours_has_no_fault_and_its_peers_are_beside_it(
    paths: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert govern_runs.main([*map(str, paths), "--json", "--budgets", "600"]) == 0
    [shape] = json.loads(capsys.readouterr().out)["shapes"]
    ours = shape["figures"]["ours"]
    assert ours["requests"] == 12 + 3 + sum(len(row["actions"]) for row in EPISODES)
    assert (ours["nudged"], ours["stopped"]) == (2, 1)
    assert ours["cut"] > ours["compacted"] > 0
    assert ours["used_min"] > 0
    assert {"untouched", "trim_messages", "trim_messages, approximate"} < {*shape["figures"]}
    assert shape["figures"]["untouched"]["over"] > 0


def test_it_is_printed_with_what_is_aimed_at(
    paths: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    govern_runs.main([*map(str, paths), "--only", "ours", "--budgets", "600", "100000"])
    said = capsys.readouterr().out
    assert "600 tokens: invalid_openai: 0, aim ≤ 0: reached" in said
    assert "100,000 tokens: same_prefix: 1, aim ≥ 0.90: reached" in said


def test_a_contender_that_is_not_there_is_named(paths: list[Path]) -> None:
    with pytest.raises(SystemExit, match="no such contender: nobody"):
        govern_runs.main([str(paths[0]), "--only", "nobody"])


TALK: list[BaseMessage] = [
    SystemMessage("Be brief.", id="s"),
    HumanMessage("Find my order.", id="h"),
    AIMessage("", tool_calls=[{"name": "find", "args": {}, "id": "c"}], id="a"),
    ToolMessage("It was sent. " * 5, tool_call_id="c", id="t"),
    HumanMessage("Thanks.", id="h2"),
]
SHORT = ToolMessage("It", tool_call_id="c")


def looked_at(*sent: BaseMessage | None, budget: int = 1_000) -> set[str]:
    found = Findings()
    govern_runs.judge(
        Prefix(TALK), [message for message in sent if message is not None], budget, found, "here"
    )
    return {*found.examples} - {"used_below"}


@pytest.mark.parametrize(
    ("sent", "wrong"),
    [
        (TALK, set()),
        ([*TALK[:2], *TALK[3:]], {"invalid_openai", "invalid_anthropic", "no_round"}),
        ([TALK[1], TALK[0], *TALK[2:]], {"invalid_anthropic"}),
        (TALK[1:], {"no_system"}),
        ([TALK[0], *TALK[2:]], {"no_task", "invalid_anthropic"}),
        (TALK[:-1], {"no_user", "no_round"}),
        ([*TALK[:3], SHORT, *TALK[4:]], {"no_round"}),
    ],
)
def test_what_is_wrong_with_a_request_is_seen(sent: list[BaseMessage], wrong: set[str]) -> None:
    assert looked_at(*sent) == wrong


def test_how_much_of_the_budget_is_used_counts_where_something_is_left_out() -> None:
    found = Findings()
    for sent in (TALK, TALK[:2]):
        govern_runs.judge(Prefix(TALK), sent, ruled_tokens(TALK), found, "here")
    assert found.used == [ruled_tokens(TALK[:2]) / ruled_tokens(TALK)]
    assert (found.counts["cut"], found.counts["used_below"]) == (1, 1)


def test_a_request_over_budget_is_seen() -> None:
    tokens = ruled_tokens(TALK)
    assert looked_at(*TALK, budget=tokens) == set()
    assert looked_at(*TALK, budget=tokens - 1) == {"over"}


def followed(
    answer: Callable[[list[BaseMessage]], Request],
    messages: Sequence[BaseMessage] = TALK,
    budget: int = 1_000,
    *,
    others: bool = False,
) -> Findings:
    found = Findings()
    follow(
        Run("shop", "shop 0", tuple(messages)),
        lambda _: lambda given, keep=True: answer(given),
        budget,
        found,
        others=others,
    )
    return found


def test_a_prefix_that_changes_is_seen() -> None:
    assert followed(Request).figures()["same_prefix"] == 1
    assert (
        followed(
            lambda given: Request(given if len(given) < len(TALK) else [*given[:2], given[-1]])
        ).figures()["same_prefix"]
        == 0.5
    )


def test_a_request_that_changes_when_it_is_governed_again_is_seen() -> None:
    assert "changed_again" not in followed(Request, others=True).examples
    assert (
        followed(lambda given: Request([*given[:2], *given[3:]]), others=True).counts[
            "changed_again"
        ]
        == 2
    )


def test_a_message_that_is_changed_is_seen() -> None:
    messages = [message.model_copy() for message in TALK]

    def meddle(given: list[BaseMessage]) -> Request:
        given[1].content = "Something else."
        return Request(given)

    assert followed(meddle, messages).counts["changed_input"] == 1
    assert followed(Request).counts["changed_input"] == 0


def test_a_refusal_counts_as_wrong_where_the_pins_fit() -> None:
    assert followed(lambda given: Request(None)).counts["refused_wrongly"] == 3
    assert followed(lambda given: Request(None), budget=5).counts == {
        "requests": 3,
        "refused": 3,
        "nudged": 0,
        "stopped": 0,
    }


@pytest.mark.parametrize(
    ("nudged", "stopped", "wrong"),
    [(7, 13, 0), (7, 0, 1), (0, 13, 1), (5, 13, 1), (9, 13, 1), (7, 11, 1)],
)
def test_a_nudge_or_a_stop_at_another_request_is_seen(
    nudged: int, stopped: int, wrong: int, paths: list[Path]
) -> None:
    """The seven equal rounds of the first episode: the third ends at message 7, the sixth at 13."""

    def answer(given: list[BaseMessage]) -> Request:
        return Request(given, nudged=len(given) == nudged, stopped=len(given) >= stopped > 0)

    assert followed(answer, read_runs(paths[1])[0].messages).counts["loop_wrong"] == wrong
