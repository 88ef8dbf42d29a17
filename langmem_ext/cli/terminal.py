"""A chat at a terminal: a line editor with recall and completion, a spinner while something works, colours."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.history import InMemoryHistory
from pydantic import JsonValue
from rich.console import Console
from rich.status import Status
from rich.table import Table
from rich.text import Text

from langmem_ext.cli.thread import Line
from langmem_ext.waiting.turn import Turn

COLOURS = {"you": "bold cyan", "agent": "bold green"}


class Terminal:
    """A person at a terminal.

    Args:
        commands: What can be completed, and what it is for.
        prompts: What the user said earlier, for recall; the thread is the only record of it.
    """

    interactive = True

    def __init__(self, commands: Mapping[str, str], prompts: Sequence[str]) -> None:
        self._console = Console(highlight=False)
        self._waiting = ""
        history = InMemoryHistory()
        for prompt in prompts:
            history.append_string(prompt)
        self._session: PromptSession[str] = PromptSession(
            history=history,
            completer=WordCompleter(list(commands), meta_dict=dict(commands), sentence=True),
            bottom_toolbar=lambda: self._waiting or None,
        )

    def read(self, prefill: str) -> str | None:
        """The next line; None at Ctrl-D. Ctrl-C empties the line."""
        while True:
            try:
                return self._session.prompt([("bold ansicyan", "you "), ("", "› ")], default=prefill)
            except KeyboardInterrupt:
                prefill = ""
                self.note("Ctrl-D or /quit ends the chat")
            except EOFError:
                return None

    @contextmanager
    def working(self) -> Iterator[Sequence[BaseCallbackHandler]]:
        """A spinner that names the tool or model at work."""
        self._waiting = ""
        with self._console.status("…") as status:
            yield [_Progress(status)]

    def reply(self, turn: Turn) -> None:
        """Print a reply."""
        self._waiting = f" waits for {turn.waiting_for}, asked {turn.attempt}×" if turn.waiting_for else ""
        if turn.reply:
            self._say("agent", turn.reply)

    def question(self, turn: Turn) -> None:
        """Print what an earlier run left."""
        self.reply(turn)

    def history(self, lines: Sequence[Line]) -> None:
        """Print the conversation."""
        for line in lines:
            self._say(line.role, line.text)

    def state(self, report: dict[str, JsonValue]) -> None:
        """Print what the thread remembers, as a table."""
        table = Table(box=None, show_header=False, pad_edge=False)
        table.add_column(style="dim")
        table.add_column()
        for name, value in report.items():
            if value not in (None, 0, [], {}):
                table.add_row(name.replace("_", " "), Text(printable(_words(value))))
        self._console.print(table)

    def note(self, text: str) -> None:
        """Print something that is not part of the conversation."""
        self._console.print(Text(printable(text), style="dim"))

    def _say(self, role: str, text: str) -> None:
        self._console.print(Text.assemble((f"{role} ", COLOURS.get(role, "bold")), ("› ", "dim"), printable(text)))


class _Progress(BaseCallbackHandler):
    """Writes on the spinner what works."""

    def __init__(self, status: Status) -> None:
        self._status = status

    def on_tool_start(self, serialized: dict[str, Any] | None, input_str: str, **kwargs: Any) -> None:
        """A tool begins."""
        name = (serialized or {}).get("name") or "a tool"
        self._status.update(Text(f"{printable(str(name))} …"))

    def on_chat_model_start(self, serialized: dict[str, Any] | None, messages: Any, **kwargs: Any) -> None:
        """A model begins."""
        self._status.update(Text("thinking …"))


def printable(text: str) -> str:
    """The text without the control characters by which stored words could steer the terminal."""
    return "".join(char if char in "\n\t" or unicodedata.category(char) != "Cc" else "�" for char in text)


def _words(value: JsonValue) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} = {inner}" for name, inner in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
