"""The text of a message: the words a person would read, joined from its blocks.

A stored message's text is in a column of its own; what the content is beyond it is in the rest,
where a block's text is its length.
"""

from __future__ import annotations

from typing import Any, Final

WHOLE: Final = 0
"""Key, in the rest, of a content that the text cannot give back."""

SPLIT: Final = -1
"""Key, in the rest, of a content's blocks with lengths for texts."""


LONGEST_NAME: Final = 500
"""The maximum length of a name: an index of PostgreSQL holds 2,700 bytes."""


def column_text(text: str) -> str:
    """A text as every database's column takes it.

    Zero characters are removed, and half of a surrogate pair becomes a question mark.
    """
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def column_name(value: object) -> str | None:
    """A name for an indexed column; None if it is no text, or too long."""
    return column_text(value) if isinstance(value, str) and len(value) <= LONGEST_NAME else None


def text_of(content: Any) -> str:
    """The text of a message's content: the string itself, or the joined text blocks of a list.

    Blocks of other kinds (images, reasoning, tool use) have no text here.
    """
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "".join(_text_of_block(block) for block in content)


def _text_of_block(block: Any) -> str:
    if isinstance(block, str):
        return block
    if (
        isinstance(block, dict)
        and block.get("type") == "text"
        and isinstance(block.get("text"), str)
    ):
        text: str = block["text"]
        return text
    return ""


def split_content(content: Any, text: str) -> dict[int | str, Any]:
    """The part of a message's content that its text does not hold; nothing, blocks, or all of it.

    In blocks, texts are replaced by their lengths.
    """
    if isinstance(content, str):
        # A zero character cannot be in every database's text.
        return {WHOLE: content} if "\0" in content else {}
    if not text or "\0" in text or not all(map(_can_split, content)):
        return {WHOLE: content}
    return {
        SPLIT: [len(block) if isinstance(block, str) else _without_text(block) for block in content]
    }


def _can_split(block: Any) -> bool:
    return isinstance(block, str) or (
        isinstance(block, dict)
        and (block.get("type") != "text" or isinstance(block.get("text"), str))
    )


def _without_text(block: dict[str, Any]) -> dict[str, Any]:
    return {**block, "text": len(block["text"])} if block.get("type") == "text" else block


def join_content(text: str, rest: dict[int | str, Any]) -> Any:
    """The content that `split_content` was given.

    Raises:
        ValueError: Text and rest do not belong together.
    """
    if WHOLE in rest:
        return rest[WHOLE]
    if SPLIT not in rest:
        return text
    words = _Slices(text)
    return [_with_text(block, words) for block in rest[SPLIT]]


def _with_text(block: Any, words: _Slices) -> Any:
    if isinstance(block, int):
        return words.take(block)
    if block.get("type") == "text":
        return {**block, "text": words.take(block["text"])}
    return block


class _Slices:
    """A text given out in pieces, from its beginning."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def take(self, length: int) -> str:
        piece = self._text[self._at : self._at + length]
        if len(piece) < length:
            raise ValueError("the text is shorter than its blocks")
        self._at += length
        return piece
