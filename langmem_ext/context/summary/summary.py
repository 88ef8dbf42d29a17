"""The summary that a model writes of left-out messages: read in chunks, extended, checked.

Pure.

`summarise` calls no model. It yields requests and is sent the answers, so one implementation
serves sync and async callers and any way of calling a model:

```python
steps = summarise(messages, previous=None, counter=counter)
request = next(steps)
try:
    while True:
        request = steps.send(model.invoke(list(request.messages)).text)
except StopIteration as done:
    summary = done.value
```

Every message is read: a conversation too long for one request is summed up part by part, and the
parts' summaries are merged. Then the model is asked, again part by part, what the summary lacks,
and what it names is added. Numbers, ids, paths and quoted names from the user's messages are
checked without a model.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from langmem_ext._internal.interruption import pass_on
from langmem_ext.context.summary.checks import Unusable, read_missing, read_summary
from langmem_ext.context.summary.chunks import cut_at_line, cut_chunks, pack, split_text
from langmem_ext.context.summary.extract import TextCounter
from langmem_ext.context.summary.key_facts import LONGEST_READ, missing_details, with_details
from langmem_ext.context.summary.prompts import SUMMARY_PROMPT, Prompts, ask, at_most
from langmem_ext.errors import InvalidInput, SummaryFailed
from langmem_ext.messages.annotations import shown_text, without_files

CHUNK_TOKENS: Final = 16_000
TARGET_TOKENS: Final = 1_000
LEAST_TARGET: Final = 32
"""The fewest tokens in which a summary can say anything."""

DETAILS: Final = 4
"""Details that the model left out may take one part in this many of the target: a conversation
about numbers is full of them."""

EARLIER: Final = "What was said before, in short:\n"

Purpose: TypeAlias = Literal["map", "reduce", "verify", "complete", "shorten"]
Steps: TypeAlias = Generator["ModelRequest", str, str]


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request to a model, without tools.

    Attributes:
        purpose: `map` reads messages, `reduce` merges summaries, `verify` looks for what one lacks,
            `complete` adds it, `shorten` shortens.
        messages: A system message and a user's message.
        part: Which of the requests for this purpose it is, from 1.
        parts: How many there are before the next purpose.
    """

    purpose: Purpose
    messages: tuple[SystemMessage, HumanMessage]
    part: int = 1
    parts: int = 1


def summarise(
    dropped: Sequence[BaseMessage],
    *,
    previous: str | None = None,
    counter: TextCounter,
    chunk_tokens: int = CHUNK_TOKENS,
    target_tokens: int = TARGET_TOKENS,
    prompt: str | Prompts = SUMMARY_PROMPT,
    verify: bool = True,
) -> Generator[ModelRequest, str, str]:
    """Summarise messages: yields requests, is sent the model's texts, returns the summary.

    The summary is within `target_tokens`.

    Send each answer's text. What a call raised may be thrown in: an error while the summary is made
    comes out again, an error while it is checked or improved leaves it as it is.

    Args:
        dropped: The messages, oldest first; they are not changed.
        previous: The summary of all that was said before them: it is carried on, and nothing that
            it covers is read again.
        counter: Measures texts.
        chunk_tokens: What one request may hold of conversation and summaries; what it is asked with
            comes on top.
        target_tokens: What the summary may cost.
        prompt: What a summary is to hold, or all of the prompts.
        verify: Whether the model is asked what the summary lacks.

    Raises:
        InvalidInput: A limit is invalid, or there is nothing to sum up.
        SummaryFailed: An answer is empty, refuses or repeats what was given. Raised while the
            requests are answered.
    """
    if target_tokens < LEAST_TARGET or chunk_tokens < 2 * target_tokens:
        raise InvalidInput(
            f"target_tokens is {target_tokens} and chunk_tokens {chunk_tokens}: target_tokens must"
            f" be at least {LEAST_TARGET}, chunk_tokens at least twice target_tokens"
        )
    prompts = Prompts(summary=prompt) if isinstance(prompt, str) else prompt
    writer = _Writer(counter, chunk_tokens, target_tokens, prompts)
    parts = cut_chunks(dropped, chunk_tokens - target_tokens, counter)
    if not parts and not previous:
        raise InvalidInput(
            "nothing to summarise: the messages have no text, and there is no earlier summary"
        )
    return writer.write(parts, previous or "", _user_texts(dropped), verify=verify)


def saves_enough(before: int, after: int, least: float = 0.2) -> bool:
    """Whether `after` tokens are fewer than `before` by at least the share `least`."""
    return before > 0 and after <= before * (1 - least)


def _user_texts(messages: Sequence[BaseMessage]) -> list[str]:
    """What the user said, as it may be shown, without the contents of files."""
    return [
        shown_text(without_files(vars(message)))[:LONGEST_READ]
        for message in messages
        if isinstance(message, HumanMessage)
    ]


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes one summary."""

    counter: TextCounter
    chunk: int
    target: int
    prompts: Prompts

    def write(
        self, parts: Sequence[str], previous: str, spoken: Sequence[str], *, verify: bool
    ) -> Steps:
        if not parts:
            return previous
        summary = yield from self._made(parts, previous)
        summary = yield from self._within_target(summary)
        if not summary:  # a counter may find even a single character too long
            raise SummaryFailed("shorten", "has no room in the target")
        checked = summary
        if verify:
            sources = [*(f"{EARLIER}{piece}" for piece in self._pieces(previous)), *parts]
            missing = yield from self._missing(summary, sources)
            if missing:
                summary = yield from self._completed(summary, missing)
                summary = yield from self._within_target(summary)
        lost = missing_details([previous, *spoken, checked], summary)
        room = min(self.target, self._cost(summary) + self.target // DETAILS)
        return with_details(summary, lost, room, self.counter) if lost else summary

    # -- made: read, and merged

    def _made(self, parts: Sequence[str], previous: str) -> Steps:
        if len(parts) == 1 and self._cost(previous) + self._cost(parts[0]) <= self.chunk:
            data = (
                [("summary", previous), ("conversation", parts[0])]
                if previous
                else [("conversation", parts[0])]
            )
            wanted = [self.prompts.continued] if previous else []
            return (yield from self._asked("map", wanted, data))
        texts = self._pieces(previous)
        for number, part in enumerate(parts, start=1):
            answer = yield from self._asked("map", [], [("conversation", part)], number, len(parts))
            texts += self._pieces(self._cut(answer, self.chunk))  # never longer than what was read
        return (yield from self._merged(texts))

    def _merged(self, texts: list[str]) -> Steps:
        """One text of many: each round merges neighbours, and leaves about half as many at most."""
        while len(texts) > 1:
            groups = pack(texts, self.chunk, self.counter)
            if len(groups) == len(texts):  # by this counter, no two texts fit together
                groups = [texts[at : at + 2] for at in range(0, len(texts), 2)]
            texts = []
            for number, group in enumerate(groups, start=1):
                text = group[0]
                if len(group) > 1:
                    data = [("summary", summary) for summary in group]
                    text = yield from self._asked(
                        "reduce", [self.prompts.merged], data, number, len(groups)
                    )
                texts.append(self._cut(text, self._half))
        return texts[0] if texts else ""

    def _asked(
        self,
        purpose: Purpose,
        wanted: Sequence[str],
        data: Sequence[tuple[str, str]],
        part: int = 1,
        parts: int = 1,
    ) -> Steps:
        """A summary.

        Raises:
            SummaryFailed: The answer is invalid.
        """
        messages = ask(
            self.prompts.system, [self.prompts.summary, *wanted, at_most(self.target)], data
        )
        answer = yield ModelRequest(purpose, messages, part, parts)
        try:
            return read_summary(
                answer,
                self.prompts,
                "\n".join(text for name, text in data if name == "conversation"),
            )
        except Unusable as reason:
            raise SummaryFailed(purpose, str(reason)) from None

    # -- checked: what is missing, and the summary with it

    def _missing(self, summary: str, sources: Sequence[str]) -> Steps:
        """The lines that the model names as missing; may be empty."""
        groups = pack(sources, self.chunk - self.target, self.counter)
        lines: list[str] = []
        for number, group in enumerate(groups, start=1):
            data = [("conversation", "\n".join(group)), ("summary", summary)]
            request = ModelRequest(
                "verify",
                ask(self.prompts.verify_system, [self.prompts.verify], data),
                number,
                len(groups),
            )
            answer = yield from _if_answered(request)
            lines += read_missing(answer, summary, self.prompts)
        return self._cut("\n".join(dict.fromkeys(lines)), self.target)

    def _completed(self, summary: str, missing: str) -> Steps:
        data = [("summary", summary), ("missing", missing)]
        answer = yield from self._improved("complete", self.prompts.complete, data)
        if answer is not None and 2 * self._cost(answer) >= self._cost(summary):
            return answer
        # The model lost the summary over it: what is missing goes in as it was named, as far as it
        # has room.
        kept = self._cut(missing, self.target - self._cost(summary) - 1)
        return f"{summary}\n{kept}" if kept else summary

    # -- within the target

    def _within_target(self, summary: str) -> Steps:
        if self._cost(summary) <= self.target:
            return summary
        if self._cost(summary) <= self.chunk:
            shorter = yield from self._improved(
                "shorten", self.prompts.shorten, [("summary", summary)]
            )
            if shorter is not None and self._cost(shorter) < self._cost(summary):
                summary = shorter
        if self._cost(summary) <= self.target:
            return summary
        # An eighth stays free for the details that stood in the lines cut off.
        return self._cut(summary, self.target - self.target // 8)

    def _improved(
        self, purpose: Purpose, wanted: str, data: Sequence[tuple[str, str]]
    ) -> Generator[ModelRequest, str, str | None]:
        request = ModelRequest(
            purpose, ask(self.prompts.system, [wanted, at_most(self.target)], data)
        )
        answer = yield from _if_answered(request)
        try:
            return read_summary(answer, self.prompts, "")
        except Unusable:
            return None

    # -- measured

    def _cost(self, text: str) -> int:
        return self.counter.count_text(text) if text else 0

    @property
    def _half(self) -> int:
        """Two texts within it fit in a chunk."""
        return self.chunk // 2 - 1

    def _pieces(self, text: str) -> list[str]:
        return split_text(text, self._half, self.counter) if text else []

    def _cut(self, text: str, limit: int) -> str:
        return cut_at_line(text, limit, self.counter)


def _if_answered(request: ModelRequest) -> Steps:
    """The answer; empty when the call fails: what the request was to improve stays as it is."""
    try:
        return (yield request)
    except Exception as error:
        pass_on(error)
        return ""
