"""The text of a message: the words a person would read, joined from its blocks.

A stored message's text is in a column of its own; what the content is beyond it is in the rest,
where a block's text is its length.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from langmem_ext.messages.blocks import Place, places_of

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
    """The words of a message's content that a person would read: of all blocks, joined.

    Images, thoughts and calls have none. What is no part of a running text, like a document, is on
    lines of its own.
    """
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    words: list[str] = []
    for place, gap in _with_gaps(places_of(content)):
        words += [gap, place.holder[place.key]]
    return "".join(words)


def words_in(block: Any) -> str | None:
    """The words in one block; None if it is of no kind that has words."""
    return text_of([block]) if any(places_of([block])) else None


def words_of(fields: Mapping[str, Any]) -> str:
    """The words of a message with these fields: of its content, else of its refusal or audio."""
    text = text_of(fields.get("content"))
    kwargs = fields.get("additional_kwargs")
    if text or not isinstance(kwargs, dict) or not kwargs:
        return text
    audio = kwargs.get("audio")
    spoken = audio.get("transcript") if isinstance(audio, dict) else None
    return next((words for words in (kwargs.get("refusal"), spoken) if isinstance(words, str)), "")


def split_content(content: Any, text: str) -> dict[int | str, Any]:
    """The part of a message's content that its text does not hold; nothing, blocks, or all of it.

    In blocks, which are changed, words are replaced by their lengths.
    """
    if isinstance(content, str):
        # A zero character cannot be in every database's text.
        return {WHOLE: content} if content != text or "\0" in content else {}
    if not text or "\0" in text or any(places_of(content, int)):
        return {WHOLE: content}
    for holder, key, _ in (places := list(places_of(content))):
        holder[key] = len(holder[key])
    return {SPLIT: content} if places else {WHOLE: content}


def join_content(text: str, rest: dict[int | str, Any]) -> Any:
    """The content that `split_content` was given.

    Raises:
        ValueError: Text and rest do not belong together.
    """
    if WHOLE in rest:
        return rest[WHOLE]
    if SPLIT not in rest:
        return text
    at = 0
    for place, gap in _with_gaps(places_of(rest[SPLIT], int)):
        start = at + len(gap)
        at = start + place.holder[place.key]
        if at > len(text):
            raise ValueError("the text is shorter than its blocks")
        place.holder[place.key] = text[start:at]
    return rest[SPLIT]


def _with_gaps(places: Iterable[Place]) -> Iterator[tuple[Place, str]]:
    """Places, each with what parts its words from those before it."""
    before: Place | None = None
    for place in places:
        parted = before is not None and not (before.flows and place.flows)
        yield place, "\n" if parted else ""
        before = place
