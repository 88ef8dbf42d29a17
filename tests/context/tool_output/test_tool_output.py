"""Promises of shortened outputs: what stays, what a preview shows, which are chosen."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langmem_ext.context.tool_output.output_text import output_text
from langmem_ext.context.tool_output.tool_output import (
    PREVIEW_CHARS,
    plan_offload,
    previewed,
    trimmed,
)

PNG = {"type": "image", "base64": "iVBORw0KGgo" * 4_000, "mime_type": "image/png"}


def output(content: Any, **fields: Any) -> ToolMessage:
    return ToolMessage("", tool_call_id="c1", name="search", id="t1", **fields).model_copy(
        update={"content": content}
    )


def text_of(message: ToolMessage) -> str:
    assert isinstance(message.content, str)
    return message.content


TRACEBACK = (
    "Traceback (most recent call last):\n"
    + '  File "a.py", line 1, in f\n' * 400
    + "ValueError: no such order"
)
ROWS = json.dumps(
    [{"id": number, "name": f"order {number}", "notes": "so " * 50} for number in range(500)]
)

TEXTS = st.one_of(
    st.text(max_size=400),
    st.text(alphabet="ab \n,", max_size=400),
    st.lists(
        st.sampled_from(
            [
                "[…truncated, 9 chars total]",
                "[…truncated, 99999 chars total]",
                "line",
                "\n",
                "[Page 1",
                "x" * 90,
            ]
        ),
        max_size=12,
    ).map("".join),
    st.recursive(
        st.one_of(st.integers(), st.text(max_size=30), st.none()),
        lambda inner: (
            st.lists(inner, max_size=9) | st.dictionaries(st.text(max_size=5), inner, max_size=9)
        ),
    ).map(json.dumps),
)
BLOCKS = st.lists(
    st.one_of(
        TEXTS,
        TEXTS.map(lambda text: {"type": "text", "text": text}),
        st.just({**PNG, "base64": "QUJD" * 100}),
        st.just({"type": "image_url", "image_url": {"url": "https://x/y.png"}}),
    ),
    max_size=5,
)
OUTPUTS = st.builds(
    output,
    st.one_of(TEXTS, BLOCKS, st.dictionaries(st.text(max_size=5), TEXTS, max_size=5)),
    status=st.sampled_from(["success", "error"]),
)


# -- cut to a length -------------------------------------------------------------------------------


def test_the_beginning_stays_and_the_marker_says_how_long_the_whole_was() -> None:
    whole = output("x" * 2_000 + "y" * 3_000, artifact={"rows": 3}, status="success")
    cut = trimmed(whole, 2_000)
    assert text_of(cut) == "x" * 2_000 + "\n[…truncated, 5000 chars total]"
    assert (cut.name, cut.tool_call_id, cut.id, cut.status) == ("search", "c1", "t1", "success")
    assert len(whole.content) == 5_000


def test_short_outputs_and_no_limit_leave_the_message_itself() -> None:
    for content in (
        "x" * 2_000,
        ["x" * 1_000, {"type": "text", "text": "y" * 900}],
        {"display": "short"},
    ):
        message = output(content)
        assert trimmed(message, 2_000) is message
    long = output("x" * 9_000)
    assert trimmed(long, 0) is long
    assert trimmed(long, None) is long


def test_a_dict_is_measured_and_cut_as_json() -> None:
    cut = trimmed(output({"display": "é" * 3_000, "count": 7}), 2_000)
    assert text_of(cut).startswith('{"display": "ééé')
    assert text_of(cut).endswith("\n[…truncated, 3027 chars total]")


def test_blocks_become_one_text_in_which_an_image_is_a_note() -> None:
    cut = trimmed(output([{"type": "text", "text": "A chart:"}, PNG, "and more " * 300]), 100)
    assert text_of(cut).startswith("A chart:\n[image, image/png, 33.0 kB]\nand more and more")
    assert text_of(cut).endswith(f"[…truncated, {8 + 1 + 44_000 + 1 + 2_700} chars total]")
    assert (
        text_of(trimmed(output([PNG]), 100))
        == "[image, image/png, 33.0 kB]\n[…truncated, 44000 chars total]"
    )


def test_an_error_keeps_its_end() -> None:
    cut = text_of(trimmed(output(TRACEBACK, status="error"), 200))
    assert cut.startswith("Traceback (most recent call last):\n")
    assert cut.endswith("ValueError: no such order")
    assert f"\n[…truncated, {len(TRACEBACK)} chars total]\n" in cut
    assert text_of(trimmed(output(TRACEBACK), 200)).endswith("chars total]")


@given(message=OUTPUTS, chars=st.integers(1, 300), fewer=st.integers(1, 300))
@example(
    output("line\n" + 4 * "[…truncated, 99999 chars total]", status="error"), 47, 12
)  # a tool prints what was cut elsewhere
def test_cutting_is_idempotent_and_goes_on_from_what_was_cut(
    message: ToolMessage, chars: int, fewer: int
) -> None:
    before = copy.deepcopy(message)
    cut = trimmed(message, chars)
    assert message == before
    assert trimmed(cut, chars) is cut
    if cut is not message:
        assert re.search(r"\[…truncated, \d+ chars total\]", text_of(cut))
        assert len(text_of(cut)) <= chars + len("\n[…truncated, 99999 chars total]\n")
        assert (cut.id, cut.name, cut.tool_call_id, cut.status) == (
            message.id,
            message.name,
            message.tool_call_id,
            message.status,
        )
    again, at_once = trimmed(cut, min(chars, fewer)), trimmed(message, min(chars, fewer))
    if again is not cut and at_once is not message:
        assert again.content == at_once.content


# -- a preview -------------------------------------------------------------------------------------


def test_a_preview_shows_whole_lines_of_both_ends_and_the_reference() -> None:
    whole = "\n".join(f"line {number} of the log" for number in range(1_000))
    shown = text_of(previewed(output(whole), "t1", lines=3))
    assert shown.splitlines() == [
        (
            f"[Shown in part: {len(whole):,} characters in 1,000 lines. Read the rest with"
            ' read_tool_output(ref="t1", page=1).]'
        ),
        "line 0 of the log",
        "line 1 of the log",
        "line 2 of the log",
        f"[… {len(whole) - 53 - 59:,} characters left out …]",
        "line 997 of the log",
        "line 998 of the log",
        "line 999 of the log",
    ]


def test_a_preview_of_json_is_json() -> None:
    heading, shown = text_of(previewed(output(ROWS), "t1")).split("\n")
    rows = json.loads(shown)
    assert heading.startswith("[Shown in part: ")
    assert rows[0]["id"] == 0
    assert rows[-1] == f"… {500 - len(rows) + 1} more"
    assert len(rows) > 5
    assert len(shown) <= PREVIEW_CHARS


def test_a_preview_of_an_error_shows_its_last_lines() -> None:
    shown = text_of(previewed(output(TRACEBACK, status="error"), "t1")).splitlines()
    assert shown[1] == "Traceback (most recent call last):"
    assert shown[-1] == "ValueError: no such order"
    assert len(shown) == 1 + 5 + 1 + 15
    broken = '{"error": "' + "so " * 2_000 + 'out of stock"}'
    assert text_of(previewed(output(broken, status="error"), "t1")).endswith('out of stock"}')


def test_one_long_line_is_cut_between_words() -> None:
    _, first, _, last = text_of(previewed(output("word, " * 5_000), "t1")).split("\n")
    assert first.endswith("word,") or first.endswith(" ")
    assert last.strip().startswith("word,")
    assert 1_500 < len(first + last) <= PREVIEW_CHARS


def test_an_image_is_a_note_in_a_preview() -> None:
    shown = text_of(previewed(output([{"type": "text", "text": "The page:"}, PNG]), "t1"))
    assert shown.endswith("\nThe page:\n[image, image/png, 33.0 kB]")


def test_a_page_that_was_read_is_named_and_not_shown() -> None:
    page = output(
        '[Page 2 of 9 of "t1", characters 8,001 to 16,000 of 70,000]\n' + "x" * 8_000
    ).model_copy(update={"name": "read_tool_output"})
    assert (
        text_of(previewed(page, "t2"))
        == '[Page 2 of 9 of "t1", characters 8,001 to 16,000 of 70,000] (read before, left out now)'
    )


@given(
    message=OUTPUTS, lines=st.integers(0, 8), chars=st.integers(0, 200), ref=st.text(max_size=10)
)
def test_a_preview_is_shorter_and_a_preview_of_it_is_itself(
    message: ToolMessage, lines: int, chars: int, ref: str
) -> None:
    before = copy.deepcopy(message)
    shown = previewed(message, ref, lines=lines, chars=chars)
    assert message == before
    assert previewed(shown, ref, lines=lines, chars=chars) is shown
    if shown is not message:
        assert len(text_of(shown)) < output_text(message.content).length
        assert (shown.id, shown.name, shown.tool_call_id, shown.status) == (
            message.id,
            message.name,
            message.tool_call_id,
            message.status,
        )
        assert json.dumps(ref, ensure_ascii=False) in text_of(shown)


@given(
    text=st.text(alphabet="ab \n", min_size=60, max_size=400),
    lines=st.integers(1, 8),
    status=st.sampled_from(["success", "error"]),
)
def test_what_a_preview_shows_stands_at_both_ends_of_the_text(
    text: str, lines: int, status: str
) -> None:
    shown = previewed(output(text * 10, status=status), "t1", lines=lines, chars=50)
    if isinstance(shown.content, str) and shown.content.startswith("[Shown"):
        body = shown.content.partition("\n")[2]
        beginning, rest = body.split("\n[… ")
        end = rest.partition(" …]\n")[2]
        assert (text * 10).startswith(beginning)
        assert (text * 10).endswith(end)
        assert len(beginning) + len(end) <= 50
        assert rest.startswith(f"{len(text) * 10 - len(beginning) - len(end):,} ")


# -- which outputs ---------------------------------------------------------------------------------


def rounds(*sizes: int) -> list[BaseMessage]:
    """A question, and a round of one tool call for each size of output, in characters."""
    messages: list[BaseMessage] = [HumanMessage("go", id="h")]
    for number, size in enumerate(sizes):
        call = {"name": "run", "args": {}, "id": f"c{number}"}
        messages += [
            AIMessage("", tool_calls=[call]),
            ToolMessage("x" * size, tool_call_id=f"c{number}", name="run"),
        ]
    return messages


def costs(messages: list[BaseMessage]) -> list[int]:
    return [len(message.content) // 4 for message in messages]


def chosen(messages: list[BaseMessage], **sizes: Any) -> tuple[int, ...]:
    return plan_offload(messages, costs(messages), **sizes)


def test_the_newest_outputs_are_protected_and_all_older_ones_chosen_at_once() -> None:
    messages = rounds(*[80_000] * 8)
    assert chosen(messages) == (2, 4, 6, 8, 10, 12)
    assert chosen(messages, protected_tokens=100_000) == (2, 4, 6)


def test_nothing_is_chosen_before_enough_can_be_saved() -> None:
    assert chosen(rounds(*[80_000] * 3)) == ()
    assert chosen(rounds(*[80_000] * 4)) == (2, 4)
    assert chosen(rounds(*[80_000] * 8), least_tokens=0) == ()
    assert chosen(rounds(*[80_000] * 8), least_tokens=None) == ()


def test_the_latest_round_is_left_alone_whatever_it_costs() -> None:
    messages = rounds(800_000, 800_000)
    assert chosen(messages, protected_tokens=0, least_tokens=1) == (2,)
    assert chosen(messages, protected_tokens=0, least_tokens=1, before=len(messages)) == (2, 4)
    assert chosen(messages, protected_tokens=0, least_tokens=1, exempt=["run"]) == ()


def test_a_preview_is_not_chosen_again() -> None:
    messages = rounds(*[80_000] * 8)
    for at in chosen(messages):
        tool = messages[at]
        assert isinstance(tool, ToolMessage)
        messages[at] = previewed(tool, f"@{at}")
    assert chosen(messages, protected_tokens=0, least_tokens=20_000) == ()


@given(
    sizes=st.lists(st.integers(0, 30_000), max_size=12),
    protected=st.integers(0, 20_000),
    least=st.integers(1, 20_000),
)
def test_what_is_chosen_saves_enough_and_is_old(
    sizes: list[int], protected: int, least: int
) -> None:
    messages = rounds(*sizes)
    places = chosen(messages, protected_tokens=protected, least_tokens=least)
    assert list(places) == sorted(places)
    assert all(isinstance(messages[at], ToolMessage) and at < len(messages) - 2 for at in places)
    if places:
        assert sum(costs(messages)[places[-1] :]) > protected
        saved = 0
        for at in places:
            tool = messages[at]
            assert isinstance(tool, ToolMessage)
            saved += len(tool.content) // 4 - len(previewed(tool, f"@{at}").content) // 4
        assert saved >= least * 0.9 - 50 * len(places)


@pytest.mark.parametrize(
    ("block", "note"),
    [
        (PNG, "[image, image/png, 33.0 kB]"),
        (
            {"type": "image", "source_type": "base64", "data": "AAAA", "mime_type": "image/gif"},
            "[image, image/gif, 3 bytes]",
        ),
        (
            {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64," + "A" * 4_000}},
            "[image, image/jpeg, 3.0 kB]",
        ),
        ({"type": "image_url", "image_url": "https://x/y.png"}, "[image, https://x/y.png]"),
        (
            {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
            "[image, image/png, 3 bytes]",
        ),
        (
            {"type": "input_audio", "input_audio": {"data": "A" * 4_000_000, "format": "wav"}},
            "[audio, wav, 3.0 MB]",
        ),
        (
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/webp", "data": "AAA="},
            },
            "[image, image/webp, 2 bytes]",
        ),
        (
            {"type": "document", "source": {"type": "url", "url": "https://x/y.pdf"}},
            "[document, https://x/y.pdf]",
        ),
        (
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "plain"},
            },
            "plain",
        ),
        (
            {
                "type": "file",
                "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"},
            },
            "[file, a.pdf, 3 bytes]",
        ),
        (
            {
                "type": "file",
                "base64": "AAAA",
                "mime_type": "application/pdf",
                "filename": "A plan.pdf",
            },
            "[file, A plan.pdf, application/pdf, 3 bytes]",
        ),
        ({"type": "file", "file_id": "file-1"}, "[file, file-1]"),
        (
            {"type": "media", "mime_type": "video/mp4", "data": b"1234"},
            "[video, video/mp4, 4 bytes]",
        ),
        ({"type": "text-plain", "text": "plain", "mime_type": "text/plain"}, "plain"),
        ({"image": {"format": "png", "source": {"bytes": b"1234"}}}, "[image, png, 4 bytes]"),
        ({"type": "json", "rows": [1]}, '{"type": "json", "rows": [1]}'),
        (
            {"type": "strange", "blob": "A" * 600},
            '{"type": "strange", "blob": "[600 bytes of data]"}',
        ),
    ],
)
def test_every_kind_of_block_has_its_note(block: dict[str, Any], note: str) -> None:
    filler = "so " * 200
    cut = trimmed(output([block, {"type": "text", "text": filler}]), len(note) + 5)
    assert text_of(cut).startswith(f"{note}\nso s\n[…truncated, ")
