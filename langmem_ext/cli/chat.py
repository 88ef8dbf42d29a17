"""The chat itself: one thread, one screen, line by line."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Final, Protocol

from langchain_core.callbacks import BaseCallbackHandler
from pydantic import JsonValue

from langmem_ext.checkpoint import DeltaSaver
from langmem_ext.cli.graph_choice import choose_graph
from langmem_ext.cli.pipe import Pipe
from langmem_ext.cli.terminal import Terminal
from langmem_ext.cli.thread import ChatThread, Line
from langmem_ext.errors import LangmemExtError
from langmem_ext.log import thread_key
from langmem_ext.settings.model import Settings
from langmem_ext.settings.origin import masked
from langmem_ext.waiting.turn import Turn

COMMANDS: Final = {
    "/help": "what can be typed here",
    "/history": "the conversation so far",
    "/quit": "end; the conversation stays",
    "/reset": "forget parameters and the waiting question; messages stay",
    "/state": "what the thread remembers",
}
"""What can be typed besides messages, and what it is for."""


class Screen(Protocol):
    """Where a chat reads and writes."""

    interactive: bool
    """Whether a person sits there: an error is shown and the chat goes on."""

    def read(self, prefill: str) -> str | None:
        """The next line; None at the end."""
        ...

    def working(self) -> AbstractContextManager[Sequence[BaseCallbackHandler]]:
        """Show that something works while the block runs; gives the callbacks by which it sees what."""
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
        """Show what the thread remembers."""
        ...

    def note(self, text: str) -> None:
        """Say something that is not part of the conversation."""
        ...


def chat_with(thread_id: str, *, settings: Settings, graph: str | None, as_json: bool, interactive: bool) -> int:
    """Open the database and the graph, and chat until the input ends; the exit code.

    Raises:
        LangmemExtError: The thread has no name, or the graph or the database cannot be opened. No database was made.
    """
    key, compiled_with = thread_key(thread_id), choose_graph(graph, settings.model or None)
    kept = settings.enabled or settings.origins["storage_path"].layer == "argument"
    db = settings.storage_path if kept else ":memory:"
    with DeltaSaver.open(db, synchronous=settings.synchronous, compress=settings.compress, owner=settings.owner or None) as saver:
        thread = ChatThread(compiled_with(saver), key)
        screen: Screen = Terminal(COMMANDS, thread.prompts()) if interactive else Pipe(as_json=as_json)
        screen.note(f"thread {thread.id} {f'in {masked(db)}' if kept else 'is not kept'}; /help shows what you can type")
        return talk(thread, screen)


def talk(thread: ChatThread, screen: Screen) -> int:
    """Chat until the input ends; 1 if something failed and no person is there to try again, else 0."""
    if thread.in_progress() and not _deliver(thread, screen, "", left=True) and not screen.interactive:
        return 1
    while True:
        try:
            exit_code = _step(thread, screen)
        except KeyboardInterrupt:  # between the turns; a person is at the prompt again at once
            if not screen.interactive:
                raise
            continue
        if exit_code is not None:
            return exit_code


def _step(thread: ChatThread, screen: Screen) -> int | None:
    """Read a line and do what it says; the exit code at the end."""
    line = screen.read(thread.unsent())
    word = (line or "").strip()
    if line is None or word == "/quit":
        return 0
    # A waiting graph knows /reset itself, so that it stands in the log and goes through the thread's lease like anything else said.
    if word.startswith("/") and not word.startswith("//") and not (word == "/reset" and thread.waits):
        _command(thread, screen, word)
        return None
    text = line.replace("/", "", 1) if word.startswith("//") else line
    return None if _deliver(thread, screen, text) or screen.interactive else 1


def _command(thread: ChatThread, screen: Screen, word: str) -> None:
    if word == "/help":
        for name, purpose in COMMANDS.items():
            screen.note(f"{name:9} {purpose}")
        screen.note("A message that begins with a slash is typed with two. Ctrl-C stops a turn, Ctrl-D ends the chat.")
    elif word == "/history":
        screen.history(thread.lines())
    elif word == "/state":
        screen.state(thread.report())
    elif word == "/reset":
        screen.note("this graph keeps no parameters and no requests: there is nothing to reset")
    else:
        screen.note(f"there is no {word.split()[0]}: /help shows what there is; a message that begins with a slash is typed with two")


def _deliver(thread: ChatThread, screen: Screen, text: str, *, left: bool = False) -> bool:
    """Deliver a message and show the reply; False if that failed. What was said is kept in any case.

    Args:
        thread: Where to.
        screen: Where the reply is shown.
        text: The message.
        left: Whether it only finishes what an earlier run left.
    """
    show = screen.question if left else screen.reply
    try:
        with screen.working() as callbacks:
            turn = thread.say(text, callbacks) if text.strip() or thread.in_progress() else Turn(reply="")
    except KeyboardInterrupt:
        if not screen.interactive:
            raise
        screen.note(_stopped(thread))
        return False
    except LangmemExtError as error:
        screen.note(str(error))
        return False
    except Exception as error:  # whatever a node of somebody's graph raises: no traceback, and the chat can go on
        screen.note(f"the graph failed with {type(error).__name__}: {error}. Your message is kept; an empty line tries again")
        return False
    show(turn)
    return True


def _stopped(thread: ChatThread) -> str:
    """What became of a message whose turn was stopped."""
    if thread.unsent():
        return "stopped: your message was not stored yet and is on the next line"
    return "stopped: your message is stored; Enter goes on with it" if thread.waits else "stopped: Enter goes on where the thread stands"
