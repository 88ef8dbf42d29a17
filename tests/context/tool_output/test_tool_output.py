"""Promises of shortened outputs: what stays, what a preview shows, which are chosen."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langmem_ext import ApproximateCounter, ContextPolicy, Governed, govern

COUNTER = ApproximateCounter()
PNG = {"type": "image", "base64": "iVBORw0KGgo" * 4_000, "mime_type": "image/png"}
LOG = "\n".join(f"line {number} of the log" for number in range(1_000))
TRACEBACK = (
    "Traceback (most recent call last):\n"
    + '  File "a.py", line 1, in f\n' * 400
    + "ValueError: no such order"
)
ROWS = json.dumps(
    [{"id": number, "name": f"order {number}", "notes": "so " * 50} for number in range(500)]
)


def talk(*contents: Any, status: Any = "success", name: str = "search") -> list[BaseMessage]:
    """A question, and a round of one tool call for each output; the last stays as it is."""
    said: list[BaseMessage] = [HumanMessage("go", id="h")]
    for number, content in enumerate([*contents, "ok"]):
        call = {"name": name, "args": {"n": number}, "id": f"c{number}"}
        made = ToolMessage("", tool_call_id=f"c{number}", name=name, id=f"t{number}", status=status)
        said += [AIMessage("", tool_calls=[call]), made.model_copy(update={"content": content})]
    return said


def run(messages: list[BaseMessage], **policy: Any) -> Governed:
    """What is sent where two thirds of all of it fit."""
    sizes: Any = {"strategy": "window", "keep_recent_messages": 0, "nudge_at": 0, "stop_at": 0}
    budget = sum(map(COUNTER.count, messages)) * 2 // 3
    chosen = ContextPolicy(**{**sizes, **policy})
    return govern(messages, budget=budget, counter=COUNTER, policy=chosen, provider="anthropic")


def trimmed(content: Any, status: Any = "success") -> str:
    """An old output as it is sent, cut to a length."""
    messages = talk(content, status=status)
    before = copy.deepcopy(messages)
    governed = run(messages, tool_output_trim_chars=100)
    assert messages == before
    found = governed.messages[2]
    assert isinstance(found, ToolMessage)
    assert (found.name, found.tool_call_id, found.id) == ("search", "c0", "t0")
    assert found.status == status
    return str(found.content)


def previewed(content: Any, status: Any = "success") -> str:
    """An old output as it is sent, offloaded."""
    sizes: Any = {"offload": True, "protected_tokens": 0, "least_offload_tokens": 1_000}
    governed = run(talk(content, status=status), tool_output_trim_chars=0, **sizes)
    return str(governed.messages[2].content)


# -- cut to a length -------------------------------------------------------------------------------


def test_the_beginning_stays_and_the_marker_says_how_long_the_whole_was() -> None:
    text = "word " * 1_000
    beginning, marker = trimmed(text).split("\n")
    assert text.startswith(beginning)
    assert 100 <= len(beginning) < 3_500
    assert marker == "[…truncated, 5000 chars total]"
    value = trimmed({"display": "é" * 3_000, "count": 7})
    assert value.startswith('{"display": "ééé')
    assert value.endswith("\n[…truncated, 3027 chars total]")
    blocks = trimmed([{"type": "text", "text": "A chart:"}, PNG, "and more " * 900])
    assert blocks.startswith("A chart:\n[image, image/png, 33.0 kB]\nand more and more")


def test_an_error_keeps_its_end() -> None:
    cut = trimmed(TRACEBACK, "error")
    assert cut.startswith("Traceback (most recent call last):\n")
    assert cut.endswith("ValueError: no such order")
    assert f"\n[…truncated, {len(TRACEBACK)} chars total]\n" in cut
    assert trimmed(TRACEBACK).endswith("chars total]")


JPEG = {"url": "data:image/jpeg;base64," + "A" * 4_000}
GIF = {"type": "image", "source_type": "base64", "data": "AAAA", "mime_type": "image/gif"}
WEBP = {"type": "base64", "media_type": "image/webp", "data": "AAA="}
PDF = {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"}
PLAN = {"base64": "AAAA", "mime_type": "application/pdf", "filename": "A plan.pdf"}
WAV = {"data": "A" * 4_000_000, "format": "wav"}
PLAIN = {"type": "text", "media_type": "text/plain", "data": "plain"}
NOTES: list[tuple[dict[str, Any], str]] = [
    (PNG, "[image, image/png, 33.0 kB]"),
    (GIF, "[image, image/gif, 3 bytes]"),
    ({"type": "image_url", "image_url": JPEG}, "[image, image/jpeg, 3.0 kB]"),
    ({"type": "image_url", "image_url": "https://x/y.png"}, "[image, https://x/y.png]"),
    (
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
        "[image, image/png, 3 bytes]",
    ),
    ({"type": "input_audio", "input_audio": WAV}, "[audio, wav, 3.0 MB]"),
    ({"type": "image", "source": WEBP}, "[image, image/webp, 2 bytes]"),
    (
        {"type": "document", "source": {"type": "url", "url": "https://x/y.pdf"}},
        "[document, https://x/y.pdf]",
    ),
    ({"type": "document", "source": PLAIN}, "plain"),
    ({"type": "file", "file": PDF}, "[file, a.pdf, 3 bytes]"),
    ({"type": "file", **PLAN}, "[file, A plan.pdf, application/pdf, 3 bytes]"),
    ({"type": "file", "file_id": "file_1"}, "[file, file_1]"),
    ({"type": "media", "mime_type": "video/mp4", "data": b"1234"}, "[video, video/mp4, 4 bytes]"),
    ({"type": "text-plain", "text": "plain", "mime_type": "text/plain"}, "plain"),
    ({"image": {"format": "png", "source": {"bytes": b"1234"}}}, "[image, png, 4 bytes]"),
    ({"type": "json", "rows": [1]}, '{"type": "json", "rows": [1]}'),
    ({"type": "strange", "blob": "A" * 600}, '{"type": "strange", "blob": "[600 bytes of data]"}'),
]


def test_every_kind_of_block_has_its_note() -> None:
    for block, note in NOTES:
        shown = previewed([block, {"type": "text", "text": LOG}]).splitlines()
        assert shown[1:3] == [note, "line 0 of the log"], note


# -- a preview -------------------------------------------------------------------------------------


def test_a_preview_shows_whole_lines_of_both_ends_and_the_reference() -> None:
    heading, *lines = previewed(LOG).splitlines()
    assert heading == (
        f"[Shown in part: {len(LOG):,} characters in 1,000 lines. Read the rest with"
        ' read_tool_output(ref="t0", page=1).]'
    )
    between = next(at for at, line in enumerate(lines) if "characters left out" in line)
    beginning, end = "\n".join(lines[:between]), "\n".join(lines[between + 1 :])
    assert LOG.startswith(beginning + "\n")
    assert LOG.endswith("\n" + end)
    left = len(LOG) - len(beginning) - len(end) - 2
    assert abs(int(re.sub(r"\D", "", lines[between])) - left) <= 2


def test_a_preview_of_json_is_json() -> None:
    heading, shown = previewed(ROWS).split("\n")
    rows = json.loads(shown)
    assert heading.startswith("[Shown in part: ")
    assert rows[0]["id"] == 0
    assert rows[-1] == f"… {500 - len(rows) + 1} more"
    assert 5 < len(rows) < 50


def test_a_preview_of_an_error_shows_its_last_lines() -> None:
    shown = previewed(TRACEBACK, "error").splitlines()
    assert shown[1] == "Traceback (most recent call last):"
    assert shown[-1] == "ValueError: no such order"
    broken = '{"error": "' + "so " * 2_000 + 'out of stock"}'
    assert previewed(broken, "error").endswith('out of stock"}')


def test_one_long_line_is_cut_between_words_and_an_image_is_a_note() -> None:
    _, first, _, last = previewed("word, " * 5_000).split("\n")
    assert first.strip().endswith("word,")
    assert last.strip().startswith("word,")
    assert 1_000 < len(first + last) < 4_000
    shown = previewed([{"type": "text", "text": "The page:"}, PNG])
    assert shown.endswith("\nThe page:\n[image, image/png, 33.0 kB]")


# -- which outputs ---------------------------------------------------------------------------------


def offloaded(count: int, **policy: Any) -> set[str]:
    """Which of so many old outputs of 20,000 tokens each are sent as previews."""
    messages = talk(*["x y " * 10_000] * count)
    events = run(messages, offload=True, tool_output_trim_chars=0, **policy).events
    return {event["at"] for event in events if event["kind"] == "offload"}


def test_the_newest_outputs_are_protected_and_all_older_ones_chosen_at_once() -> None:
    many = offloaded(8)
    assert many == {f"t{number}" for number in range(len(many))}
    assert 0 < len(many) < 8
    more = offloaded(8, protected_tokens=100_000)
    assert more < many
    for least in (0, 10**6):
        assert offloaded(8, least_offload_tokens=least) == set(), "not before enough can be saved"
    every = offloaded(2, protected_tokens=0, least_offload_tokens=1_000)
    assert every == {"t0", "t1"}, "but not the latest round"
