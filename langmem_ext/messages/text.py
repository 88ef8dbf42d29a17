"""What of a message is text: the words that a person would read, joined from whatever blocks they stand in."""

from __future__ import annotations

from typing import Any


def text_of(content: Any) -> str:
    """The text of a message's content: the string itself, or the text blocks of a list joined by nothing.

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
    if isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str):
        text: str = block["text"]
        return text
    return ""
