"""`Plan`: what was done to a request and what it saved, printed as a table.

It prints in a terminal and in a notebook.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from langchain_core.messages import BaseMessage

from langmem_ext._internal import html
from langmem_ext.context.cut.view import Request
from langmem_ext.context.decisions import ContextEvent
from langmem_ext.messages.token_costs.tokens import TokenCounter

_REPLACEMENTS = {
    "marker": "a line",
    "extract": "an extract",
    "model": "a model's summary",
    "compact": "a summary",
}
_NAMES = {
    "trim": "tool outputs trimmed",
    "offload": "tool outputs offloaded",
    "thoughts": "reasoning left out",
    "nudge": "loop warning sent",
    "failed": "failed summaries",
}


@dataclass(frozen=True, slots=True)
class Plan:
    """What was done to a request.

    Attributes:
        limit: What the messages of the request may cost, in tokens.
        before: What they would have cost with nothing more left out.
        after: What they cost.
        messages: How many the conversation has.
        sent: How many the request has.
        added: What was decided for this request; nothing if it is the one before and what is new.
        stop: Why the turn is to be ended instead of sending the request; None if it is not.
        standing: What was left out for an earlier request, and still is: how many messages, and who
            wrote what replaces them.
    """

    limit: int
    before: int
    after: int
    messages: int
    sent: int
    added: tuple[ContextEvent, ...] = ()
    stop: str | None = None
    standing: tuple[int, str] | None = None

    @property
    def rows(self) -> tuple[tuple[str, str], ...]:
        """What was done, each with how much of it."""
        rows = [
            ("messages of the conversation", f"{self.messages:,}"),
            ("messages sent", f"{self.sent:,}"),
        ]
        rows += [
            (
                f"tokens, of at most {self.limit:,}",
                (
                    f"{self.before:,} → {self.after:,}"
                    if self.before != self.after
                    else f"{self.after:,}"
                ),
            )
        ]
        cuts = [
            left_out(event["dropped"], event["by"] if event["text"] else "")
            for event in self.added
            if event["kind"] == "cut"
        ]
        rows += cuts
        if self.standing is not None and not cuts:
            rows.append(left_out(*self.standing, what="left out before"))
        for kind, name in _NAMES.items():
            if count := sum(event["kind"] == kind for event in self.added):
                rows.append((name, f"{count:,}"))
        if self.stop is not None:
            rows.append(("turn ended", self.stop))
        return tuple(rows)

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.rows)
        return "\n".join(f"{name:<{width}}  {value}" for name, value in self.rows)

    def __rich__(self) -> object:
        from rich.table import Table  # noqa: PLC0415  # only who prints with rich has it
        from rich.text import Text  # noqa: PLC0415

        table = Table(show_header=False, box=None, pad_edge=False)
        table.add_column(style="dim")
        table.add_column()
        for row in self.rows:
            table.add_row(*map(Text, row))
        return table

    def _repr_html_(self) -> str:
        return html.table(self.rows)


def left_out(count: int, by: str, what: str = "left out") -> tuple[str, str]:
    """A row about messages that are left out, and what replaces them, if anything does."""
    counted = f"{count:,} {'message' if count == 1 else 'messages'}"
    return what, f"{counted} replaced by {_REPLACEMENTS[by]}" if by else counted


def contributors(
    request: Request, counter: TokenCounter, fixed: Mapping[str, int]
) -> Sequence[tuple[str, int]]:
    """The three largest parts of a request, each with what it costs."""
    parts = [
        *((name, size) for name, size in fixed.items() if size),
        *((_named(message), counter.count(message)) for message in request.messages),
    ]
    return sorted(parts, key=lambda part: -part[1])[:3]


def _named(message: BaseMessage) -> str:
    of = f" of {message.name}" if message.name else ""
    return f"the {message.type} message{of} {message.id or '(without id)'}"
