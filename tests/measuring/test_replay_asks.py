"""The replay of asks, run as its users run it, on a few invented rows: what is counted, and that
nothing is lost.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE_S
from repository import ROOT

from benchmarks import asks, replay_asks

pytestmark = pytest.mark.process


def row(
    slot: str, description: str, prompt: str, said: str, gold: str = "", **more: Any
) -> dict[str, Any]:
    """A row as files of asks have them."""
    return {
        "service": more.pop("service", "Invented_1"),
        "slot": slot,
        "slot_description": description,
        "possible_values": more.pop("values", []),
        "requested_slots_in_prompt": more.pop("requested", [slot]),
        "suggested_values": [],
        "system_prompt": prompt,
        "user_utterance": said,
        "gold_value": gold,
        "gold_canonical": more.pop("canonical", gold),
        "gold_all_values": [gold] if gold else [],
        "kind": "inform" if gold else "nothing",
        **more,
    }


ROOM = ("hotel_room", "size of the room", "Which room would you like, {single} or double?")
BOTH = ["city", "day"]

ROWS = [
    row(
        "email",
        "e-mail address",
        "What is your e-mail address?",
        "it's jo@example.org",
        "jo@example.org",
    ),
    row("guests", "number of guests", "How many guests will there be?", "seven of us", "7"),
    row("guests", "number of guests", "How many guests will there be?", "There will be 3.", "3"),
    row("day", "date of the visit", "Which day?", "on March 4th please", "March 4th"),
    row(
        "day",
        "date of the visit",
        "When would you like to come?",
        "the 9th",
        "the 9th",
        canonical="2019-03-09",
    ),
    row(
        "start_time",
        "time of the visit",
        "At what time?",
        "half past 6 in the evening",
        "half past 6 in the evening",
    ),
    row("city", "city of the visit", "In which city?", "In Uppsala.", "Uppsala"),
    row(*ROOM, "double please", "double", values=["single", "double"]),
    row(*ROOM, "A single one.", "single", values=["single", "double"]),
    row(
        "with_breakfast",
        "whether breakfast is included",
        "With breakfast?",
        "yes please",
        "True",
        values=["True", "False"],
    ),
    row(
        "order_code",
        "code of the order",
        "What is the code of your order?",
        "the code is KX-4471",
        "KX-4471",
    ),
    row(
        "phone_number",
        "phone number",
        "What is your phone number?",
        "call me on 415-555-0132",
        "415-555-0132",
    ),
    row(
        "email",
        "e-mail address",
        "What is your e-mail address?",
        "tell Mo, mo@example.org, that I come",
        "jo@example.org",
    ),
    row(
        "city",
        "city of the visit",
        "In which city, on which day?",
        "in Turku, on May 2nd",
        "Turku",
        requested=BOTH,
    ),
    row(
        "day",
        "date of the visit",
        "In which city, on which day?",
        "in Turku, on May 2nd",
        "May 2nd",
        requested=BOTH,
    ),
    row(
        "day",
        "date of the visit",
        "In which city, on which day?",
        "Turku",
        "May 2nd",
        requested=BOTH,
    ),
    row("guests", "number of guests", "How many guests will there be?", "I do not know yet"),
    row("email", "e-mail address", "What is your e-mail address?", "why do you need it?"),
    row(
        "order_code",
        "code of the order",
        "What is the code of your order?",
        "never mind, cancel that please",
    ),
    row("day", "date of the visit", "Which day?", "\U0001f937 \u202e no idea"),
]


@pytest.fixture(scope="module")
def rows_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("asks") / "rows.jsonl"
    path.write_text("".join(json.dumps(entry) + "\n" for entry in ROWS))
    return path


@pytest.fixture(scope="module")
def report(rows_file: Path) -> dict[str, Any]:
    """What the script prints, run by itself."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.replay_asks",
        str(rows_file),
        "--json",
        "--processes-every",
        "7",
    ]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_every_conversation_goes_on_in_another_process(report: dict[str, Any]) -> None:
    assert (report["rows"], report["resumed"], report["lost"]) == (len(ROWS), len(ROWS), 0)
    assert report["errors"] == {}


def test_what_is_missing_is_counted_as_lost(rows_file: Path, tmp_path: Path) -> None:
    never_asked, never_answered, forgotten, whole = list(asks.rows(rows_file))[:4]
    database = replay_asks.Database(tmp_path / "replay.db", "normal")
    first = {
        row.number: replay_asks.ask(database, row) for row in (never_answered, forgotten, whole)
    }
    second = {
        row.number: replay_asks.answer(database, row) for row in (never_asked, forgotten, whole)
    }
    with database.open() as saver:
        saver.delete_thread(replay_asks.thread_of(forgotten))
    chosen = [never_asked, never_answered, forgotten, whole]
    none = replay_asks.Visit(error="the process died")
    visits = [[done.get(row.number, none) for row in chosen] for done in (first, second)]
    replayed = replay_asks.judged(database, chosen, *visits)
    assert [item.lost for item in replayed] == [True, True, True, False]
    assert [item.verdict for item in replayed][2:] == ["abstained", "right"]
    report = replay_asks.figures(replayed, database.bytes)
    assert (report["resumed"], report["lost"], report["errors"]) == (1, 3, {"the process died": 2})


def test_values_in_the_threads_are_judged_apart_by_what_was_asked(report: dict[str, Any]) -> None:
    assert report["single"]["rows"] == 13
    assert report["single"]["right"] == 12
    assert report["single"]["wrong"] == 1
    assert report["single"]["types"]["email"] == {"rows": 2, "right": 1, "wrong": 1}
    assert report["single"]["types"]["date"] == {"rows": 2, "right": 2}
    assert report["multi"] == {
        "rows": 3,
        "right": 2,
        "abstained": 1,
        "types": {
            "date": {"rows": 2, "right": 1, "abstained": 1},
            "place": {"rows": 1, "right": 1},
        },
    }
    assert report["without_gold"]["rows"] == report["without_gold"]["abstained"] == 4


def test_times_and_sizes_are_reported(report: dict[str, Any]) -> None:
    for turn in ("ask", "answer"):
        assert 0 < report["ms"][turn]["p50"] <= report["ms"][turn]["p95"]
    assert report["cpu_ms_per_row"] > 0
    assert report["database_bytes"] > report["raw_bytes"] > 0


def test_a_table_for_people_shows_the_same_figures(report: dict[str, Any]) -> None:
    text = replay_asks.table(report)
    assert text.startswith("20 rows: 20 resumed, 0 lost\n")
    assert re.search(r"^single request +13 +92.3% +7.7%", text, re.MULTILINE)
    assert re.search(r"^  boolean +1 +100.0%", text, re.MULTILINE)
    assert re.search(r"^without a value +4 .* 100.0%$", text, re.MULTILINE)
