"""A catalog is checked and tried out at the command line.

Every mistake is shown, and what is understood and why.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from commands import data, run

TOOLS = '''
from langchain_core.tools import tool
from langmem_ext import Extensions, Extraction

@tool
def transfer(iban: str, amount: float) -> str:
    """Send money."""
    raise RuntimeError("a trial calls no tool")

def read_iban(param, reply):
    for word in reply.text.replace(",", " ").split():
        if word.startswith("DE"):
            start = reply.text.index(word)
            span = (start, start + len(word))
            yield Extraction("filled", word, span=span, confidence=0.9, reason="begins with DE")

def check(value):
    return None if len(value) == 6 else "it must have six signs"

TOOLS = [transfer]
OWN = Extensions({"iban": read_iban}, {"six": check})
WRONG = 3
'''

CATALOG = Path(__file__).with_name("transfers.yaml").read_text("utf-8")
GIVEN = ("--tools", "app.py:TOOLS", "--extensions", "app.py:OWN")


@pytest.fixture(autouse=True)
def catalog(folder: Path) -> Path:
    (folder / "app.py").write_text(TOOLS)
    (folder / "intents.yaml").write_text(CATALOG)
    return folder


def call(
    command: str, *words: str, said: str | None = None, code: int = 0
) -> subprocess.CompletedProcess[str]:
    return run("catalog", command, "intents.yaml", *words, given=said, code=code)


def test_a_sound_catalog_is_shown_with_what_was_inferred() -> None:
    done = call("check", *GIVEN)
    *params, summary = done.stdout.splitlines()
    assert summary == "intents.yaml: 2 intents, 3 parameters; no mistakes"
    assert "iban\tiban\tWhich account?" in params
    [report] = data("catalog", "check", "intents.yaml", *GIVEN)
    assert report["params"]["amount"] == {"type": "money", "prompt": "How much?"}
    assert report["not_understood"] == []


def test_every_mistake_is_printed_with_its_line(folder: Path) -> None:
    (folder / "intents.yaml").write_text(
        CATALOG.replace("tool: transfer", "tool: transferr").replace("six", "seven")
    )
    done = call("check", *GIVEN, code=2)
    assert done.stdout == ""
    assert "intents.yaml has 2 mistakes" in done.stderr
    assert (
        "line 7: intents.transfer.tool: unknown tool 'transferr'; did you mean 'transfer'?"
        in done.stderr
    )
    assert "line 14: params.iban.validator: unknown validator 'seven'" in done.stderr
    alone = call("check", code=2)
    assert "params.iban.type: unknown type 'iban'; pass an extractor" in alone.stderr


def test_an_example_that_two_intents_have_is_named(folder: Path) -> None:
    (folder / "intents.yaml").write_text(CATALOG.replace("what is my balance", "send money"))
    done = call("check", *GIVEN, code=1)
    assert "intents.balance.examples: 'send money' is read as no intent" in done.stdout


def test_what_an_option_names_must_be_there() -> None:
    for option, named, problem in (
        ("--tools", "app.py:NONE", "--tools 'app.py:NONE' cannot be loaded"),
        ("--tools", "app.py:WRONG", "--tools 'app.py:WRONG' is not a list of tools but int"),
        ("--tools", "nothing", "--tools 'nothing' is invalid"),
        ("--tools", "gone.py:X", "gone.py not found"),
        ("--extensions", "app.py:TOOLS", "'app.py:TOOLS' is not an Extensions but list"),
    ):
        for command in ("check", "try"):
            done = call(command, option, named, said="hello\n", code=2)
            assert (done.stdout, problem in done.stderr) == ("", True)


def test_a_trial_shows_what_is_understood_and_why() -> None:
    said = "please send money\nDE12345\nDE1234, and it's $20\nyes\n"
    lines = call("try", *GIVEN, said=said).stdout.splitlines()
    assert lines[0].startswith("start transfer (")
    assert any(line.startswith("  intents: transfer ") for line in lines)
    assert "agent: Which account? [waits for iban]" in lines
    assert any(line.startswith("refuse iban (") for line in lines)
    assert 'fill iban = "DE1234" (0.9, rules, begins with DE)' in lines
    assert "  amount = 20 (0.97, sum with its currency)" in lines
    assert "agent: Send 20 to DE1234? [waits for confirmation]" in lines
    assert lines[-1] == "agent: Would call transfer(iban='DE1234', amount=20)"


def test_a_function_that_fails_is_named_and_the_trial_goes_on(folder: Path) -> None:
    (folder / "app.py").write_text(
        TOOLS.replace("    for word in", "    assert 'boom' not in reply.text\n    for word in")
    )
    done = call("try", *GIVEN, said="send money\nboom\nDE1234\n", code=1)
    assert "a function of the catalog failed with AssertionError" in done.stderr
    assert done.stdout.splitlines()[-1] == "agent: How much? [waits for amount]"


def test_a_trial_in_json_needs_no_tools_and_hides_what_is_sensitive(folder: Path) -> None:
    (folder / "intents.yaml").write_text(
        CATALOG.replace("type: iban, validator: six", "type: text")
    )
    said = "what is my balance\n\n1234\n/reset\nsend money\n/quit\nnever read\n"
    done = call("try", "--json", said=said)
    turns = [json.loads(line) for line in done.stdout.splitlines()]
    assert [turn["waiting_for"] for turn in turns] == ["pin", None, None, "iban"]
    assert turns[0]["understood"][0]["intent"] == "balance"
    assert turns[0]["intents"]["balance"] > 0.9
    assert turns[1]["values"]["pin"]["value"] == "•••"
    assert "1234" not in done.stdout
    assert turns[1]["reply"] == "You have enough."


def test_the_values_of_a_first_message_are_those_of_the_request_that_it_begins(
    folder: Path,
) -> None:
    (folder / "intents.yaml").write_text(
        """
intents:
  visit: {description: Come to see the barn, examples: [show us round], required: [visit_day]}
  wed: {description: Hire the barn, examples: [we want to hire the barn], required: [wedding_day]}
params:
  visit_day: {type: date, description: day of the visit, prompt: 'When?', future: true}
  wedding_day: {type: date, description: day of the wedding, prompt: 'When?', future: true}
"""
    )
    said = "we want to hire the barn on 5 june 2031\n"
    lines = call("try", said=said).stdout.splitlines()
    assert any(line.startswith('  wedding_day = "2031-06-05" (') for line in lines)
    assert not any("visit_day" in line for line in lines)
