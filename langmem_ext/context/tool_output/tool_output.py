"""Long tool outputs, shown in part: cut to a length, or to a preview with a reference.

Pure. By the reference the rest can be read.

Nothing is copied anywhere: the whole output stays where it is stored, in the thread's own messages,
and is deleted with them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from typing import Final

from langchain_core.messages import BaseMessage, ToolMessage

from langmem_ext.context.tool_output.json_head import json_head
from langmem_ext.context.tool_output.output_text import OutputText, output_text
from langmem_ext.messages.annotations import marked_for, unplaced
from langmem_ext.messages.pairing import latest_round

READ_TOOL: Final = "read_tool_output"
"""Name of the tool that reads what is not shown."""

PREVIEW_LINES: Final = 10
"""Lines of a preview at each end."""

PREVIEW_CHARS: Final = 2_000
"""Characters of a preview, without what it says about itself."""

PROTECTED: Final = 50_000
"""Tokens of the newest outputs that are shown whole, in a wide window."""

LEAST: Final = 30_000
"""Tokens that an offloading saves at least, in a wide window."""

PAGE: Final = "[Page "
"""How a page of an output begins."""

_BREAK: Final = "\n"
_IN_PART: Final = "[Shown in part: "
_CUT: Final = re.compile(r"\n?\[…truncated, (\d{1,15}) chars total\]\n?")
_LEFT_OUT: Final = "[…]"


# -- cut to a length -------------------------------------------------------------------------------


def trimmed(message: ToolMessage, chars: int | None) -> ToolMessage:
    """The message with the first `chars` characters of its output and a marker of its length.

    An error keeps its end rather than its beginning: that is where a traceback says what went
    wrong. Name, call, id and status stay. A message that is short enough, or would be no shorter,
    is returned itself; what was cut before can be cut again, and still says how long the whole was.

    Args:
        message: A tool's output: text, blocks, or a value that is written as JSON. An image in it
            becomes a note of its kind and size.
        chars: How many characters of it are shown. 0 or None: all.
    """
    if not chars or (isinstance(message.content, str) and len(message.content) <= chars):
        return message
    output = output_text(message.content)
    if output.length <= chars:
        return message
    head, tail, total = _ends(output, chars, at_end=message.status == "error")
    text = "\n".join(filter(None, (head, f"[…truncated, {total} chars total]", tail)))
    return _shortened(message, text) if len(text) < output.length else message


def _ends(output: OutputText, chars: int, *, at_end: bool) -> tuple[str, str, int]:
    """The beginning and end that are shown, and the original length, even if cut before."""
    text, total = output.text, output.length
    head, tail = text, ""
    for cut in _CUT.finditer(text) if "[…truncated, " in text else ():
        # A tool may print such a marker too: ours replaces more than is left, and at the end unless
        # it is an error.
        if int(cut[1]) > len(text) and (at_end or cut.end() == len(text)):
            head, tail, total = text[: cut.start()], text[cut.end() :], int(cut[1])
    if at_end:
        # So that ours is the only one in what is shown, and is found when that is cut again.
        head, tail = _CUT.sub(_LEFT_OUT, head), _CUT.sub(_LEFT_OUT, tail)
    if len(head) + len(tail) <= chars:
        return head, tail, total
    first = chars // 4 if at_end else chars
    return head[:first], (tail or head)[first - chars :] if at_end else "", total


# -- a preview -------------------------------------------------------------------------------------


def previewed(
    message: ToolMessage, ref: str, *, lines: int = PREVIEW_LINES, chars: int = PREVIEW_CHARS
) -> ToolMessage:
    """The message with the ends of its output, and the reference by which the whole can be read.

    Lines are shown whole where they fit; what is JSON is shown as its beginning, which is JSON; of
    an error more is shown of the end. What `read_tool_output` gave is only named, so that it is
    read again from the whole. Name, call, id and status stay. A message that would be no shorter,
    and one that is a preview, is returned itself.

    Args:
        message: A tool's output.
        ref: What the message is called in its thread.
        lines: How many lines are shown at each end, at most.
        chars: How many characters are shown, at most.
    """
    content = message.content
    if isinstance(content, str) and (len(content) <= chars or content.startswith(_IN_PART)):
        return message
    output = output_text(content)
    if message.name == READ_TOOL and output.text.startswith(PAGE):
        text = f"{output.text.partition(_BREAK)[0]} (read before, left out now)"
    else:
        text = (
            _heading(output.text, ref)
            + _BREAK
            + _preview(output.text, lines, chars, at_end=message.status == "error")
        )
    return _shortened(message, text) if len(text) < output.length else message


def _heading(text: str, ref: str) -> str:
    size = f"{len(text):,} characters in {text.count(_BREAK) + 1:,} lines"
    return (
        f"{_IN_PART}{size}. Read the rest with"
        f" {READ_TOOL}(ref={json.dumps(ref, ensure_ascii=False)}, page=1).]"
    )


def _preview(text: str, lines: int, chars: int, *, at_end: bool) -> str:
    if len(text) <= chars:
        return text
    if not at_end and (head := json_head(text, chars)):
        return head
    first = (lines // 2, chars // 4) if at_end else (lines, chars // 2)
    last = (2 * lines - first[0], chars - first[1])
    beginning = _beginning(text[: first[1] + 1], *first)
    end = _beginning(text[: -last[1] - 2 : -1], *last)[::-1]
    left_out = len(text) - len(beginning) - len(end)
    return f"{beginning}{_BREAK}[… {left_out:,} characters left out …]{_BREAK}{end}"


def _beginning(text: str, lines: int, room: int) -> str:
    """Whole lines of a text's beginning, in `room` characters.

    A part of the next line is added if more than half of the room were empty otherwise.

    Of the text no more than one character beyond them is needed. It may be read backwards.
    """
    end = count = 0
    while count < lines and end <= room:
        stop = text.find(_BREAK, end)
        stop = len(text) if stop < 0 else stop
        if stop > room:
            break
        end, count = stop + 1, count + 1
    if count < lines and end <= room // 2:
        return text[
            : next(
                (at + 1 for mark in " ,;|" if (at := text.rfind(mark, room * 4 // 5, room)) >= 0),
                room,
            )
        ]
    return text[: max(end - 1, 0)]


# -- which outputs ---------------------------------------------------------------------------------


def plan_offload(
    messages: Sequence[BaseMessage],
    counts: Sequence[int],
    *,
    protected_tokens: int = PROTECTED,
    least_tokens: int | None = LEAST,
    exempt: Collection[str] = (),
    before: int | None = None,
) -> tuple[int, ...]:
    """The positions of outputs to preview; none if that would save less than `least_tokens`.

    The newest outputs are shown whole up to `protected_tokens`; all older ones that a preview makes
    much shorter are chosen at once, so that what the model sees changes seldom. For narrow windows
    pass sizes that are `scaled`.

    Args:
        messages: What the model would be shown, oldest first.
        counts: What each of them costs, in tokens.
        protected_tokens: How much of the newest output is left alone.
        least_tokens: How much is to be saved at least. 0 or None: nothing is offloaded.
        exempt: Names of tools whose outputs are always shown whole.
        before: Where the messages begin that are left alone whatever they cost; by default the
            latest round of tool calls.
    """
    if not least_tokens or sum(counts) < protected_tokens + least_tokens:
        return ()
    end = latest_round(messages) if before is None else before
    shown, saved, chosen = 0, 0, []
    for at in range(len(messages) - 1, -1, -1):
        message = messages[at]
        if not isinstance(message, ToolMessage):
            continue
        shown += counts[at]
        if (
            at < end
            and shown > protected_tokens
            and message.name not in exempt
            and (length := _length(message)) > 2 * PREVIEW_CHARS
        ):
            saved += counts[at] - counts[at] * PREVIEW_CHARS // length
            chosen.append(at)
    return tuple(reversed(chosen)) if saved >= least_tokens else ()


def _length(message: ToolMessage) -> int:
    return (
        len(message.content)
        if isinstance(message.content, str)
        else output_text(message.content).length
    )


def _shortened(message: ToolMessage, text: str) -> ToolMessage:
    kwargs = unplaced(message.additional_kwargs, marked_for(vars(message)))
    return message.model_copy(update={"content": text, "additional_kwargs": kwargs})
