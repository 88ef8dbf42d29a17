"""Promises of files: each content is sent once, changes are sent, nothing shown lacks it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage, HumanMessage

from langmem_ext import FileReference, InvalidInput, TurnFile, read_file
from langmem_ext.messages.annotations import files_of, title_of
from langmem_ext.threads.continuation.files import (
    complete,
    contents_in,
    message_content,
    newest_first,
    plan_files,
)

PATHS = st.sampled_from(["a.py", "b.py", "lib/c.py"])
CONTENTS = st.sampled_from(["one", "two", "```\nthree\n```", "````", "", "File a.py (0):\n"])
FILES = st.lists(st.one_of(st.builds(TurnFile, PATHS, CONTENTS), PATHS), max_size=4)


def say(messages: list[BaseMessage], text: str, files: Any) -> None:
    content, notes = message_content(text, files, contents_in(messages))
    messages.append(
        HumanMessage(content, additional_kwargs={"langmem_ext": {"files": notes}} if notes else {})
    )


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


@given(st.lists(FILES, max_size=6), st.integers(0, 6))
def test_each_content_is_stored_once_and_shown_once_wherever_the_view_begins(
    turns: list[Any], left_out: int
) -> None:
    messages: list[BaseMessage] = []
    for number, files in enumerate(turns):
        say(messages, f"turn {number}", files)
    contents = {file.content for files in turns for file in files if isinstance(file, TurnFile)}
    assert all(holding(messages, content) == 1 for content in contents)
    before = [message.model_copy(deep=True) for message in messages]
    shown = complete(messages[left_out:], messages[:left_out])
    assert messages == before, "the view changes, the log does not"
    referred = {
        file.content for files in turns[left_out:] for file in files if isinstance(file, TurnFile)
    }
    for content in contents:
        assert holding(shown, content) == (content in referred)
    assert [files_of(vars(message)) for message in shown] == [
        files_of(vars(message)) for message in messages[left_out:]
    ]


@given(FILES, FILES)
def test_a_plan_says_what_is_sent(earlier: Any, files: Any) -> None:
    messages: list[BaseMessage] = []
    say(messages, "first", earlier)
    plan = plan_files(files, contents_in(messages))
    sent = [file.content for file in plan.send]
    assert len(sent) == len(set(sent))
    assert not set(sent) & {file.content for file in earlier if isinstance(file, TurnFile)}
    assert {*sent} | {file.content for file in earlier if isinstance(file, TurnFile)} >= {
        file.content for file in files if isinstance(file, TurnFile)
    }
    assert len(plan.send) + len(plan.known) + len(plan.named) == len(dict.fromkeys(files))
    say(messages, "second", files)
    noted = files_of(vars(messages[-1]))
    assert [file.path for file in noted if file.sha256 and not file.again] == [
        file.path for file in plan.send
    ]
    assert [file.path for file in noted if file.again] == [file.path for file in plan.known]


def test_the_same_content_under_another_path_is_told_of_and_not_sent() -> None:
    messages: list[BaseMessage] = []
    say(messages, "look", [TurnFile("a.py", "one")])
    say(messages, "and", [TurnFile("b.py", "one"), TurnFile("a.py", "two")])
    digest = TurnFile("a.py", "one").sha256[:12]
    [text, same, changed] = [
        block["text"] for block in messages[1].content if isinstance(block, dict)
    ]
    assert text == "and"
    assert same == f"\n\nFile b.py: the same content as a.py ({digest}), which was given above."
    assert changed.endswith(":\n```\ntwo\n```")


def test_a_message_without_contents_is_plain_text() -> None:
    assert message_content("look", ["a.py"], {}) == ("look", [{"path": "a.py"}])
    assert message_content("look", [], {}) == ("look", [])


def test_a_title_shows_nothing_of_a_file() -> None:
    messages: list[BaseMessage] = []
    say(messages, "look", [TurnFile("a.py", "secret")])
    assert title_of(vars(messages[0])) == "look"


def test_the_newest_come_first_and_each_path_once() -> None:
    old, new = FileReference("a.py", "1"), FileReference("a.py", "2")
    turns = [(old, FileReference("b.py")), (), (FileReference("c.py"), new)]
    assert newest_first(turns, None) == [FileReference("c.py"), new, FileReference("b.py")]
    assert newest_first(turns, 2) == [FileReference("c.py"), new]
    assert newest_first(turns, 0) == []
    assert newest_first([(old, new)], None) == [new]
    for wrong in (-1, True, "2"):
        with pytest.raises(InvalidInput, match="max_files"):
            newest_first(turns, wrong)  # type: ignore[arg-type]


def test_a_path_is_read_only_where_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("one", encoding="utf-8")
    path = str(tmp_path / "a.py")
    assert "one" not in str(message_content("look", [path], {}))
    assert read_file(path, name="a.py") == TurnFile("a.py", "one")
    assert read_file(tmp_path / "a.py").path == path
    (tmp_path / "b.bin").write_bytes(b"\xff\xfe")
    for wrong in ("b.bin", "missing", "."):
        with pytest.raises(InvalidInput, match="cannot be read as text"):
            read_file(tmp_path / wrong)


@pytest.mark.parametrize(
    "files",
    [[""], ["a\nb"], ["a\0"], [5], "a.py", {"a.py": "one"}, TurnFile("a.py", "one"), ["x" * 5000]],
    ids=repr,
)
def test_what_is_no_file_is_refused(files: Any) -> None:
    with pytest.raises(InvalidInput):
        plan_files(files)


def test_a_file_is_a_path_and_a_text() -> None:
    with pytest.raises(InvalidInput, match="not text"):
        TurnFile("a.py", b"one")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="path"):
        TurnFile("", "one")
    assert "one" not in repr(TurnFile("a.py", "one"))


@pytest.mark.parametrize("block", [7, 0, True, "1", None])
def test_notes_that_make_no_sense_are_passed_over(block: Any) -> None:
    notes = [{"path": "a.py", "sha256": "00", "block": block, "again": True}]
    forged = HumanMessage("look", additional_kwargs={"langmem_ext": {"files": notes}})
    messages: list[BaseMessage] = []
    say(messages, "first", [TurnFile("a.py", "one")])
    assert contents_in([forged]) == {}
    assert complete([forged], messages) == [forged]
