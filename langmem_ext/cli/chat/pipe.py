"""A chat without a terminal: each line of stdin is a message, each line of stdout its reply.

Notes go to stderr.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper

from langchain_core.callbacks import BaseCallbackHandler
from pydantic import JsonValue
from rich.console import RenderableType

from langmem_ext.cli.commands.threads.line import Line
from langmem_ext.cli.control_characters import json_line, printable
from langmem_ext.waiting.turn import Turn


class Pipe:
    """Lines in, lines out.

    Args:
        as_json: Print objects of JSON, a line each, instead of text.
    """

    interactive = False

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        if isinstance(sys.stdin, TextIOWrapper):
            # What cannot be read in the terminal's encoding must not end the chat.
            sys.stdin.reconfigure(errors="replace")

    def read(self, prefill: str) -> str | None:
        """The next line; None at the end."""
        line = sys.stdin.readline()
        return line.rstrip("\r\n") if line else None

    def confirm(self, question: str) -> bool:
        """Nobody is there to say yes."""
        return False

    def recall(self, prompts: Sequence[str]) -> None:
        """Nothing is offered."""

    @contextmanager
    def working(self) -> Iterator[Sequence[BaseCallbackHandler]]:
        """Nothing is shown."""
        yield ()

    def reply(self, turn: Turn) -> None:
        """Print a reply as one line."""
        if self._as_json:
            self._print_json(_shown(turn))
        else:
            print(" ".join(printable(turn.reply).split("\n")), flush=True)

    def question(self, turn: Turn) -> None:
        """Say what waits; it is the reply to no line of this input."""
        self.note(turn.reply)

    def history(self, lines: Sequence[Line]) -> None:
        """Print the conversation, a message a line."""
        for line in lines:
            if self._as_json:
                self._print_json(line.data())
            else:
                print(
                    f"{printable(line.role)}: {' '.join(printable(line.text).splitlines())}",
                    flush=True,
                )

    def state(self, report: dict[str, JsonValue]) -> None:
        """Print show the state of the thread."""
        if self._as_json:
            self._print_json(report)
        else:
            print(
                "; ".join(f"{name}={json_line(value)}" for name, value in report.items()),
                flush=True,
            )

    def rows(
        self, shown: Iterable[RenderableType], lines: Iterable[str], data: Iterable[object]
    ) -> None:
        """Print lines, or objects of JSON."""
        if self._as_json:
            for record in data:
                self._print_json(record)
        else:
            for line in lines:
                print(printable(line), flush=True)

    def note(self, text: str) -> None:
        """Print to stderr."""
        print(f"langmem-ext: {printable(text)}", file=sys.stderr, flush=True)

    def _print_json(self, data: object) -> None:
        print(json_line(data), flush=True)


def _shown(turn: Turn) -> dict[str, object]:
    return {
        "reply": turn.reply,
        "waiting_for": turn.waiting_for,
        "attempt": turn.attempt,
        "params_keys": list(turn.params_keys),
        "usage": dict(turn.usage),
    }
