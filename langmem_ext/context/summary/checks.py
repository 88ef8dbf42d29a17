"""Checks a model's answer: the summary in it, what it calls missing, or nothing usable.

Pure.
"""

from __future__ import annotations

import re
from typing import Final

from langmem_ext.context.summary.prompts import Prompts
from langmem_ext.messages.search.spans import squeezed
from langmem_ext.messages.search.words import list_words

FEWEST_WORDS: Final = 3
"""An answer with fewer ("Understood.") sums nothing up."""

SURE_ECHO: Final = 200
"""Characters from which an answer that is word for word in the conversation is taken for a copy of
it."""

_BEGINNING: Final = 400
"""Characters at the beginning of an answer in which a refusal, or a repeated prompt, must occur."""

_THOUGHT: Final = re.compile(r"(?is)\A\s*<(think|thinking|reasoning)>.*?(?:</\1>|\Z)")
_THOUGHT_END: Final = re.compile(r"(?is)\A(?:(?!<think>).)*?</think>")
"""Thoughts whose beginning a chat template has put into the prompt."""

_FENCED: Final = re.compile(r"(?s)\A```[\w-]*\n(.*?)\n?```\Z")
_TAGGED: Final = re.compile(r"(?s)\A<([A-Za-z][\w-]*)>(.*)</\1>\Z")
_PREAMBLE: Final = re.compile(
    r"(?i)\A(?:sure|certainly|of course|okay|ok|here(?:['’]s| is| are)|below is|the following"
    r" is)\b[^\n]{0,120}:[ \t]*\n"
)
_CANNOT: Final = (
    r"(?:i|we)(?: can['’]?t| can ?not| could not| couldn['’]t| won['’]?t| will not| must"
    r" decline|(?: am|['’]m) (?:not able|unable))"
)
_REFUSAL: Final = re.compile(
    r"(?i)\A\W*(?:"
    + "|".join(
        [
            (
                r"(?:(?:i['’]?m|i am|we['’]?re|we are) (?:\w+"
                rf" )?(?:sorry|afraid)|sorry|apologies|unfortunately)\b[^.\n]{{0,40}}?\b{_CANNOT}"
            ),
            r"i(?:['’]m| am) sorry(?: but|,|\.)",
            (
                rf"{_CANNOT} (?:to"
                r" )?(?:help|assist|comply|fulfil|summari[sz]e|provide|process|continue|do"
                r" (?:that|this)|share|answer)"
            ),
            r"as an ai\b",
            (
                r"i (?:don['’]t|do not) (?:have|see) (?:access|enough|any"
                r" (?:conversation|messages?|content|text|data))\b"
            ),
            (
                r"(?:es )?tut mir leid|je suis désolée?|lo siento|desculpe|mi"
                r" dispiace|抱歉|对不起|很抱歉|申し訳|죄송"
            ),
        ]
    )
    + ")"
)
_NONE: Final = re.compile(
    r"(?i)\A\W*(?:none|nothing)(?:\s+(?:is|are|was))?(?:\s+missing)?\W*(?:\Z|[.!,;:\n–—-])"
)


class Unusable(Exception):
    """What is wrong with an answer; said in words that quote nothing of it."""


def read_summary(answer: object, prompts: Prompts, data: str) -> str:
    """The summary in a model's answer, without thoughts, fences and introductions.

    Args:
        answer: What the model said.
        prompts: What it was asked with.
        data: What it was given to read.

    Raises:
        Unusable: It is empty, refuses, repeats what was asked or given, or is too short to say
            anything.
    """
    if not isinstance(answer, str):
        raise Unusable("is not text")
    text = bare(answer)
    if not text:
        raise Unusable("is empty")
    if refuses(text):
        raise Unusable("refuses")
    if _repeats(text, prompts, data):
        raise Unusable("repeats what the model was given")
    if len(list_words(text).split()) < FEWEST_WORDS:
        raise Unusable("says nothing")
    return text


def read_missing(answer: object, summary: str, prompts: Prompts) -> list[str]:
    """The lines that name what a summary lacks; empty if there are none or no usable answer."""
    text = bare(answer) if isinstance(answer, str) else ""
    if not text or _NONE.match(text) or refuses(text) or _repeats(text, prompts, ""):
        return []
    letters = squeezed(summary)
    lines = dict.fromkeys(line.strip() for line in text.splitlines())
    return [
        line
        for line in lines
        if (word := squeezed(line)) and word != "none" and word not in letters
    ]


def refuses(text: str) -> bool:
    """Whether an answer says that the model will not do what it was asked for."""
    return _REFUSAL.match(text) is not None


def bare(answer: str) -> str:
    """The answer without a model's thoughts, and without what it wraps its answer in."""
    text = _THOUGHT_END.sub("", _THOUGHT.sub("", answer)).strip()
    text = _PREAMBLE.sub("", text).strip()
    for wrapped in (_FENCED, _TAGGED):
        if match := wrapped.match(text):
            text = match.group(match.re.groups).strip()
    return text


def _repeats(text: str, prompts: Prompts, data: str) -> bool:
    flat = _flat(text)
    asked = map(
        _first_line, (prompts.system, prompts.summary, prompts.verify_system, prompts.verify)
    )
    if any(len(line) >= 20 and line in flat[:_BEGINNING] for line in asked):
        return True
    return len(flat) >= SURE_ECHO and flat in _flat(data)


def _first_line(prompt: str) -> str:
    return _flat(prompt.strip().partition("\n")[0])


def _flat(text: str) -> str:
    return " ".join(text.split()).casefold()
