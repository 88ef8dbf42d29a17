"""A chat at a terminal: a line editor with history and completion, a spinner, colours."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from langchain_core.callbacks import BaseCallbackHandler
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.input.typeahead import clear_typeahead
from pydantic import JsonValue
from rich.console import Console, RenderableType
from rich.status import Status
from rich.table import Table
from rich.text import Text

from langmem_ext.cli.commands.threads.line import COLOURS, Line
from langmem_ext.cli.control_characters import printable
from langmem_ext.errors import LangmemExtError
from langmem_ext.messages.escapes import legible
from langmem_ext.types import CONFIRMATION, ThreadInfo
from langmem_ext.waiting.turn import Turn

if sys.platform == "win32":
    import msvcrt
else:
    import termios

NAMING_THREADS: Final = frozenset({"/load", "/forget", "/delete"})
NAMING_PATHS: Final = frozenset({"/save", "/export"})
NAMING_COMMANDS: Final = frozenset({"/help"})
"""Commands of a chat that are given a thread, those that are given a path, and those that are given
a command."""


class Terminal:
    """A person at a terminal.

    Args:
        commands: What can be completed, and what it is for.
        prompts: What the user said earlier, for recall; the thread is the only record of it.
        threads: Gives the threads that a command may name.
    """

    interactive = True

    def __init__(
        self,
        commands: Mapping[str, str],
        prompts: Sequence[str],
        threads: Callable[[], Sequence[ThreadInfo]],
    ) -> None:
        self._console = Console(highlight=False)
        self._waiting = ""
        self._history = InMemoryHistory()
        self.recall(prompts)
        self._session: PromptSession[str] = PromptSession(
            history=self._history,
            completer=CommandCompleter(commands, threads),
            bottom_toolbar=lambda: self._waiting or None,
        )

    def read(self, prefill: str) -> str | None:
        """The next line; None at Ctrl-D. Ctrl-C empties the line."""
        while True:
            try:
                return self._session.prompt(
                    [("bold ansicyan", "you "), ("", "› ")], default=prefill
                )
            except KeyboardInterrupt:
                prefill = ""
                self.note("Ctrl-D or /quit ends the chat")
            except EOFError:
                return None

    def confirm(self, question: str) -> bool:
        """Ask; anything but yes is no."""
        try:
            return self._console.input(Text(f"{printable(question)} [y/N] ")).strip().lower() in (
                "y",
                "yes",
            )
        except (KeyboardInterrupt, EOFError):
            self._console.print()  # what follows is not said on the line of the question
            return False

    def recall(self, prompts: Sequence[str]) -> None:
        """Offer prompts at the key Up, but for those that cannot be shown as they are."""
        for prompt in prompts:
            if prompt == legible(prompt):
                self._history.append_string(prompt)

    @contextmanager
    def working(self) -> Iterator[Sequence[BaseCallbackHandler]]:
        """A spinner that names the tool or model at work."""
        self._waiting = ""
        with self._console.status("…") as status:
            yield [_Progress(status)]

    def reply(self, turn: Turn) -> None:
        """Print a reply."""
        self._waiting = (
            f" waits for {printable(turn.waiting_for)}, asked {turn.attempt}×"
            if turn.waiting_for
            else ""
        )
        if turn.interrupts and turn.waiting_for in (None, CONFIRMATION):
            _drop_typed_ahead(self._session.app.input)
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
        """Print show the state of the thread, as a table."""
        table = Table(box=None, show_header=False, pad_edge=False)
        table.add_column(style="dim")
        table.add_column()
        for name, value in report.items():
            if value not in (None, 0, [], {}):
                table.add_row(name.replace("_", " "), Text(printable(_words(value))))
        self._console.print(table)

    def rows(
        self, shown: Iterable[RenderableType], lines: Iterable[str], data: Iterable[object]
    ) -> None:
        """Print what is for a person."""
        for renderable in shown:
            self._console.print(renderable)

    def note(self, text: str) -> None:
        """Print something that is not part of the conversation."""
        self._console.print(Text(printable(text), style="dim"))

    def _say(self, role: str, text: str) -> None:
        self._console.print(
            Text.assemble(
                (f"{printable(role)} ", COLOURS.get(role, "bold")), ("› ", "dim"), printable(text)
            )
        )


def _drop_typed_ahead(source: Input) -> None:
    """Drop what was typed before a question was shown: a yes among it was for something else."""
    clear_typeahead(source)
    if sys.platform == "win32":
        while msvcrt.kbhit():
            msvcrt.getwch()
    else:
        termios.tcflush(source.fileno(), termios.TCIFLUSH)


class CommandCompleter(Completer):
    """Completes commands, the threads that they name, and paths.

    Args:
        commands: What can be completed, and what it is for.
        threads: Gives the threads.
    """

    def __init__(
        self, commands: Mapping[str, str], threads: Callable[[], Sequence[ThreadInfo]]
    ) -> None:
        self._commands = commands
        self._threads = threads
        self._paths = PathCompleter(expanduser=True)

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        """What a line may continue."""
        name, space, rest = document.text_before_cursor.partition(" ")
        if not name.startswith("/"):
            return
        if not space:
            for command, purpose in self._commands.items():
                if command.startswith(name):
                    typed = (
                        f"{command} "
                        if command in NAMING_THREADS | NAMING_PATHS | NAMING_COMMANDS
                        else command
                    )
                    yield Completion(typed, -len(name), display=command, display_meta=purpose)
        elif name in NAMING_THREADS:
            yield from self._named(rest.lstrip())
        elif name in NAMING_COMMANDS:
            begun = rest.lstrip().removeprefix("/")
            for command, purpose in self._commands.items():
                if command.startswith(f"/{begun}"):
                    yield Completion(command.removeprefix("/"), -len(begun), display_meta=purpose)
        elif name in NAMING_PATHS:
            yield from self._paths.get_completions(Document(rest.lstrip()), complete_event)

    def _named(self, begun: str) -> Iterator[Completion]:
        try:
            threads = self._threads()
        except LangmemExtError:  # a database that is busy has nothing to offer
            return
        for thread in threads:
            title = printable(thread.title or "")
            # An id that cannot be printed is not written into the line either.
            if thread.id == printable(thread.id) and (
                thread.id.startswith(begun) or begun.lower() in title.lower()
            ):
                yield Completion(thread.id, -len(begun), display_meta=title)


class _Progress(BaseCallbackHandler):
    """Writes on the spinner what works."""

    def __init__(self, status: Status) -> None:
        self._status = status

    def on_tool_start(
        self, serialized: dict[str, Any] | None, input_str: str, **kwargs: Any
    ) -> None:
        """A tool begins."""
        name = (serialized or {}).get("name") or "a tool"
        self._status.update(Text(f"{printable(str(name))} …"))

    def on_chat_model_start(
        self, serialized: dict[str, Any] | None, messages: Any, **kwargs: Any
    ) -> None:
        """A model begins."""
        self._status.update(Text("thinking …"))


def _words(value: JsonValue) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} = {inner}" for name, inner in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
