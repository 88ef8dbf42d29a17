"""Promises of files: each content is sent once, changes are sent, nothing shown lacks it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage, HumanMessage

from langmem_ext import (
    DeltaSaver,
    FileReference,
    InvalidInput,
    ThreadChatMessageHistory,
    Threads,
    TurnFile,
    read_file,
)

PATHS = st.sampled_from(["a.py", "b.py", "lib/c.py"])
CONTENTS = st.sampled_from(["one", "two", "```\nthree\n```", "````", "", "File a.py (0):\n"])
FILES = st.lists(st.one_of(st.builds(TurnFile, PATHS, CONTENTS), PATHS), max_size=4)


def holding(messages: list[BaseMessage], content: str) -> int:
    """How many blocks give a content whole."""
    found = 0
    for message in messages:
        for block in message.content if isinstance(message.content, list) else []:
            assert isinstance(block, dict)
            head, _, body = block["text"].lstrip("\n").partition("\n")
            fence = body.partition("\n")[0]
            found += (
                head.startswith("File ")
                and body == f"{fence}\n{content}\n{fence}"
                and set(fence) == {"`"}
            )
    return found


@given(st.lists(FILES, min_size=1, max_size=6), st.integers(1, 6))
def test_each_content_is_stored_once_and_shown_once_wherever_the_view_begins(
    turns: list[Any], count: int
) -> None:
    with DeltaSaver() as saver:
        thread = Threads(saver, max_turns=0).begin("chat")
        sent: set[str] = set()
        for number, files in enumerate(turns):
            plan = thread.plan_files(files)
            contents = {file.content for file in files if isinstance(file, TurnFile)}
            assert {file.content for file in plan.send} == contents - sent
            assert len(plan.send) == len(contents - sent)
            assert len(plan.send) + len(plan.known) + len(plan.named) == len(dict.fromkeys(files))
            thread.say(f"turn {number}", files=files)
            sent |= contents
        stored = Threads(saver).messages(thread.id)
        assert all(holding(stored, content) == 1 for content in sent)
        shown = thread.history(count)
        assert len(shown) == len(turns[-count:])
        referred = {
            file.content for files in turns[-count:] for file in files if isinstance(file, TurnFile)
        }
        for content in sent:
            assert holding(shown, content) == (content in referred)
        assert Threads(saver).messages(thread.id) == stored, "the view changes, the log does not"


def test_the_same_content_under_another_path_is_told_of_and_not_sent() -> None:
    with DeltaSaver() as saver:
        thread = Threads(saver).begin("chat")
        thread.say("look", files=[TurnFile("a.py", "one")])
        thread.say("and", files=[TurnFile("b.py", "one"), TurnFile("a.py", "two")])
        assert thread.say("only a name", files=["a.py"]).content == "only a name"
        second = Threads(saver).messages(thread.id)[1]
        title = Threads(saver).get(thread.id).title
    digest = TurnFile("a.py", "one").sha256[:12]
    text, same, changed = (block["text"] for block in second.content if isinstance(block, dict))
    assert text == "and"
    assert same == f"\n\nFile b.py: the same content as a.py ({digest}), which was given above."
    assert changed.endswith(":\n```\ntwo\n```")
    assert title == "look", "a title shows nothing of a file"


def test_the_newest_come_first_and_each_path_once() -> None:
    with DeltaSaver() as saver:
        thread = Threads(saver).begin("chat")
        thread.say("one", files=[TurnFile("a.py", "old"), "b.py"])
        thread.say("two")
        thread.say("three", files=["c.py", TurnFile("a.py", "new")])
        newest = [FileReference("c.py"), FileReference("a.py", TurnFile("a.py", "new").sha256)]
        assert thread.files() == [*newest, FileReference("b.py")]
        assert thread.files(max_files=2) == newest
        assert thread.files(max_files=0) == []
        for wrong in (-1, True, "2"):
            with pytest.raises(InvalidInput, match="max_files"):
                thread.files(max_files=wrong)  # type: ignore[arg-type]


def test_a_path_is_read_only_where_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one", encoding="utf-8")
    path = str(tmp_path / "a.py")
    with DeltaSaver() as saver:
        assert "one" not in str(Threads(saver).begin().say("look", files=[path]).content)
    assert read_file(path, name="a.py") == TurnFile("a.py", "one")
    assert read_file(tmp_path / "a.py").path == path
    (tmp_path / "b.bin").write_bytes(b"\xff\xfe")
    for wrong in ("b.bin", "missing", "."):
        with pytest.raises(InvalidInput, match="cannot be read as text"):
            read_file(tmp_path / wrong)


def test_a_file_is_a_path_and_a_text() -> None:
    with pytest.raises(InvalidInput, match="not text"):
        TurnFile("a.py", b"one")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="path"):
        TurnFile("", "one")
    assert "one" not in repr(TurnFile("a.py", "one"))


def test_notes_that_make_no_sense_are_passed_over() -> None:
    for block in (7, 0, True, "1", None):
        notes = [{"path": "a.py", "sha256": "00", "block": block, "again": True}]
        forged = HumanMessage("look", additional_kwargs={"langmem_ext": {"files": notes}})
        with DeltaSaver() as saver:
            thread = Threads(saver).begin()
            thread.say("first", files=[TurnFile("a.py", "one")])
            ThreadChatMessageHistory(thread.id, saver).add_messages([forged])
            [shown] = thread.history(1)
            assert (shown.text, shown.additional_kwargs) == ("look", forged.additional_kwargs)
