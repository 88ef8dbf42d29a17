"""Store items are listed, exported, imported and embedded again at the command line."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from commands import run
from finding_rules import word_index
from repository import ROOT

from langmem_ext import DeltaStore

MODEL = f"{ROOT / 'tests' / 'store' / 'suite' / 'finding_rules.py'}:embed_words"


def call(*words: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    return run("store", *words, code=code)


@pytest.fixture
def db(tmp_path: Path) -> Path:
    with DeltaStore.open(tmp_path / "memory.db") as store:
        for at in range(150):
            store.put(("notes", f"n{at:03}"), "k", {"text": "red" if at % 2 else "blue"})
        store.for_owner("anna").put(("users", "anna"), "likes \x1b[31m", {"text": "sun"})
    return tmp_path / "memory.db"


def test_namespaces_and_items_are_listed_a_line_each(db: Path) -> None:
    listed = call("list", "--db", db)
    assert (len(listed.stdout.splitlines()), listed.stderr) == (151, "")
    assert call("list", "users", "--db", db).stdout == 'users/anna\tlikes �[31m\t{"text": "sun"}\n'
    [line] = call("list", "users", "--json", "--db", db).stdout.splitlines()
    assert json.loads(line)["key"] == "likes \x1b[31m"
    assert call("list", "--db", db, "--owner", "anna").stdout == "users/anna\n"


def test_items_are_exported_and_imported(db: Path, tmp_path: Path) -> None:
    exported = call("export", "--db", db, "--to", tmp_path / "items.jsonl.gz")
    assert (exported.stdout, exported.stderr) == ("", "151 items exported\n")
    with DeltaStore.open(tmp_path / "other.db"):
        pass
    imported = call("import", tmp_path / "items.jsonl.gz", "--db", tmp_path / "other.db")
    assert imported.stdout == "151 items imported\n"
    assert call("export", "--db", tmp_path / "other.db").stdout == call("export", "--db", db).stdout
    (tmp_path / "items.jsonl").write_text("{}\n")
    refused = call("import", tmp_path / "items.jsonl", "--db", db, code=2)
    assert (refused.stdout, "line 1" in refused.stderr) == ("", True)


def test_items_are_embedded_by_a_model_and_again_by_another(db: Path) -> None:
    options = ("--db", db, "--embed", MODEL, "--field", "text")
    assert call("reindex", *options, "--dims", "6").stdout == f"151 items embedded by {MODEL}\n"
    assert call("reindex", *options, "--dims", "6").stdout == f"0 items embedded by {MODEL}\n"
    with DeltaStore.open(db, index=word_index()) as store:
        found = store.search((), query="red", limit=75)
        assert {item.value["text"] for item in found} == {"red"}
    refused = call("reindex", *options, "--dims", "7", code=2)
    assert (refused.stdout, "dims says 7" in refused.stderr) == ("", True)
    assert (
        call("reindex", "--db", db, "--embed", "nobody:model", "--dims", "7", code=2).stdout == ""
    )
