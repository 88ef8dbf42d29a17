"""The measurement of labelled secrets, run on a few invented rows: what it counts, and that it sees
a leak where there is one.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import sensitive_spans

ROWS = [
    {
        "utterance": "yeah sure 5432 1469 9854 8246",
        "slot-labels": "O O card_number card_number card_number card_number",
    },
    {"utterance": "qzvxk", "slot-labels": "name"},
    {
        "utterance": "mail wvkq@example.org and 12 Zqxj Road",
        "slot-labels": "O email_address O address address address",
    },
    {"utterance": "more words than labels 9911", "slot-labels": "O ssn"},
    {"utterance": "nothing here", "slot-labels": "O O"},
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    return file


def test_rows_are_read_with_what_their_labels_name(path: Path) -> None:
    given = sensitive_spans.rows(path, None)
    assert [row.spans for row in given] == [
        (("card_number", "5432 1469 9854 8246"),),
        (("name", "qzvxk"),),
        (("email_address", "wvkq@example.org"), ("address", "12 Zqxj Road")),
        (("ssn", "more words than labels 9911"),),
    ]


def test_nothing_leaks_that_was_asked_for_came_with_a_request_or_was_marked(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sensitive_spans.main([str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    for way in ("asked", "at once", "marked"):
        assert (found[way]["rows"], found[way]["leak"], found[way]["not marked"]) == (4, 0, 0), way
    assert found["unasked"]["leak"] > 0, "the measurement sees no leak"
