"""The chat's `/compact` shortens what a model is sent of a conversation. No message is lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast

from langchain_core.messages import AnyMessage, BaseMessage
from pydantic import JsonValue
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from langmem_ext.cli.chat.open_chat import OpenChat
from langmem_ext.cli.control_characters import printable
from langmem_ext.cli.errors import in_a_line
from langmem_ext.context.governor import ContextGovernor
from langmem_ext.context.report import Plan, left_out
from langmem_ext.context.summary.summary import saves_enough
from langmem_ext.errors import ConversationError, LangmemExtError
from langmem_ext.log.scope import DatabaseView
from langmem_ext.messages.token_costs.tokens import TokenCounter
from langmem_ext.threads.session.channels import CHANNELS, SessionChannels
from langmem_ext.waiting.policy.running_summary import Part, extracted, plan_part
from langmem_ext.waiting.policy.session import read_summary
from langmem_ext.waiting.state import Summary

NEWEST_TURN: Final = 2
"""What `plan_part` takes for: all but the newest turn."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """What was left out of a conversation's context.

    Attributes:
        rows: What was done, each with how much of it.
        data: The same as JSON.
    """

    rows: Sequence[tuple[str, str]]
    data: dict[str, JsonValue]

    @classmethod
    def of_plan(cls, plan: Plan) -> Compacted:
        """What a governor did."""
        by = next((event["by"] for event in plan.added if event["kind"] == "cut"), None)
        data: dict[str, JsonValue] = {
            "messages": plan.messages,
            "shown": plan.sent,
            "before": plan.before,
            "after": plan.after,
            "by": by,
        }
        return cls(plan.rows, data)

    def table(self) -> RenderableType:
        """As a person reads it."""
        table = Table(box=None, show_header=False, pad_edge=False)
        table.add_column(style="dim")
        table.add_column()
        for name, value in self.rows:
            table.add_row(Text(printable(name)), Text(printable(value)))
        return table


def compacted(chat: OpenChat) -> Compacted | None:
    """Compact the open thread under its lease; None if that would not make it much shorter.

    Raises:
        ConversationError: Its turn has not ended, its graph keeps no context, or the model failed.
            Nothing was changed.
        ContextOverflow: What must be shown costs more than a request may.
        ThreadBusy: Another caller drives it.
    """
    compact = _sum_up if chat.thread.waits else _govern
    try:
        with chat.saver.lease(chat.thread.id):
            return compact(chat)
    except LangmemExtError:
        raise
    except Exception as error:  # whatever a model's provider raises
        raise ConversationError(
            f"nothing was compacted: the model failed with {in_a_line(error)}"
        ) from error


def _govern(chat: OpenChat) -> Compacted | None:
    """Have a governor decide what is left out of the next requests."""
    plan = chat.governor.compact(chat.graph, chat.thread.config)
    return Compacted.of_plan(plan) if plan.added else None


def _sum_up(chat: OpenChat) -> Compacted | None:
    """Extend the summary of a waiting graph to all but the newest turn.

    It is written as a session writes, so a question that waits still does.
    """
    thread = chat.thread
    if thread.in_progress() and thread.report()["question"] is None:
        raise ConversationError(
            "the last turn is unfinished: press Enter to finish it, then /compact"
        )
    messages = cast("list[AnyMessage]", thread.messages())
    part = plan_part(messages, read_summary(thread.values()), NEWEST_TURN)
    if part is None:
        return None
    governor = chat.governor
    summary = _summary(part, governor)
    sizes = _sizes(messages, part, summary, governor.counter)
    if not saves_enough(*sizes, governor.policy.least_saved):
        return None
    view = DatabaseView.of(chat.saver, None)
    channels = SessionChannels(view, view.key(thread.id), CHANNELS)
    chat.saver.log.run(
        channels.set("summary", {"text": summary["text"], "through": summary["through"]}),
        write=True,
    )
    by, end = "extract" if governor.model is None else "model", _end(messages, part)
    before, after = sizes
    rows = [
        ("messages of the conversation", f"{len(messages):,}"),
        left_out(end, by),
        ("tokens", f"{before:,} → {after:,}"),
    ]
    return Compacted(
        rows,
        {
            "messages": len(messages),
            "shown": len(messages) - end,
            "before": before,
            "after": after,
            "by": by,
        },
    )


def _summary(part: Part, governor: ContextGovernor) -> Summary:
    if governor.model is None:
        return extracted(part)
    return Summary(
        text=governor.sum_up(part.messages, part.previous, forced=True), through=part.through
    )


def _sizes(
    messages: Sequence[BaseMessage], part: Part, summary: Summary, counter: TokenCounter
) -> tuple[int, int]:
    """What the conversation cost with the summary before, and what it costs with this one."""
    kept = sum(map(counter.count, messages[_end(messages, part) :]))
    before = counter.count_text(part.previous) + sum(map(counter.count, part.messages)) + kept
    return before, counter.count_text(summary["text"]) + kept


def _end(messages: Sequence[BaseMessage], part: Part) -> int:
    return next(at for at, message in enumerate(messages, 1) if message.id == part.through)
