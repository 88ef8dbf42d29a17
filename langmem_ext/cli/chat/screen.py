"""What a chat asks of the place where it reads and writes: a terminal or a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from langchain_core.callbacks import BaseCallbackHandler
from pydantic import JsonValue
from rich.console import RenderableType

from langmem_ext.cli.commands.threads.line import Line
from langmem_ext.waiting.turn import Turn


class Screen(Protocol):
    """Where a chat reads and writes."""

    interactive: bool
    """Whether a person sits there: an error is shown and the chat continues."""

    def read(self, prefill: str) -> str | None:
        """The next line; None at the end."""
        ...

    def confirm(self, question: str) -> bool:
        """Whether a person says yes; False if nobody is at the terminal."""
        ...

    def recall(self, prompts: Sequence[str]) -> None:
        """Offer what the user said in a thread."""
        ...

    def working(self) -> AbstractContextManager[Sequence[BaseCallbackHandler]]:
        """Show progress while the block runs; gives the callbacks that report it."""
        ...

    def reply(self, turn: Turn) -> None:
        """Show a reply."""
        ...

    def question(self, turn: Turn) -> None:
        """Show what an earlier run left: the question that waits, or the end of a turn."""
        ...

    def history(self, lines: Sequence[Line]) -> None:
        """Show the conversation."""
        ...

    def state(self, report: dict[str, JsonValue]) -> None:
        """Show show the state of the thread."""
        ...

    def rows(
        self, shown: Iterable[RenderableType], lines: Iterable[str], data: Iterable[object]
    ) -> None:
        """Show what was asked for: to a person, as lines, or as JSON."""
        ...

    def note(self, text: str) -> None:
        """Say something that is not part of the conversation."""
        ...
