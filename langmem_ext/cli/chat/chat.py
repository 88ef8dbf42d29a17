"""The chat itself: one thread, one screen, line by line."""

from __future__ import annotations

from functools import partial
from uuid import uuid4

from langmem_ext.checkpointer.saver import DeltaSaver
from langmem_ext.cli.chat.commands import COMMANDS, run_command
from langmem_ext.cli.chat.graph_choice import choose_graph
from langmem_ext.cli.chat.open_chat import OpenChat
from langmem_ext.cli.chat.pipe import Pipe
from langmem_ext.cli.chat.screen import Screen
from langmem_ext.cli.chat.terminal import Terminal
from langmem_ext.cli.chat.thread import ChatThread
from langmem_ext.cli.commands.threads.listing import there
from langmem_ext.cli.errors import in_a_line
from langmem_ext.context.governor import ContextGovernor
from langmem_ext.errors import InvalidInput, LangmemExtError, StaleAnswer
from langmem_ext.example import keep_shop_beside
from langmem_ext.log.message_log import MessageLog, thread_key
from langmem_ext.settings.model import Settings
from langmem_ext.settings.origin import masked
from langmem_ext.waiting.turn import Turn


def chat_with(
    thread_id: str | None,
    *,
    resume: str | None,
    latest: bool,
    new: bool,
    settings: Settings,
    graph: str | None,
    as_json: bool,
    interactive: bool,
) -> int:
    """Open the database and the graph, and chat until the input ends; the exit code.

    Args:
        thread_id: The thread to begin or to continue.
        resume: Instead of it, one that is there: the beginning of its id, or words of its title.
        latest: Instead of it, the one that was used last.
        new: Instead of it, one that is not there yet.
        settings: The settings.
        graph: The name of a graph of the user's.
        as_json: Print JSON.
        interactive: Whether a person sits there.

    Raises:
        LangmemExtError: The thread has no name or is not there, or the graph or the database cannot
            be opened. No database was made.
    """
    if (thread_id is not None) + (resume is not None) + latest + new > 1:
        raise InvalidInput(
            "--thread, --resume, --continue and --new exclude each other: pass only one of them"
        )
    named = str(uuid4()) if new else "default" if thread_id is None else thread_id
    # The order desk needs a governor for summaries by a model alone; making one takes half a
    # second.
    governs = graph is not None or settings.model or settings.summarization_model
    governor = partial(ContextGovernor.from_settings, settings) if governs else None
    key, compiled_with = thread_key(named), choose_graph(graph, settings.model or None, governor)
    kept = settings.enabled or settings.origins["storage_path"].layer == "argument"
    db = settings.storage_path if kept else ":memory:"
    if resume is not None or latest:
        there(db, read_only=False)
    if graph is None:
        keep_shop_beside(db)
    log = MessageLog.open(
        db, synchronous=settings.synchronous, compress=settings.compress, own=True
    )
    with DeltaSaver(log, owner=settings.owner or None) as saver:
        chat = OpenChat(compiled_with(saver), saver, settings, kept=kept)
        if resume is not None or latest:
            key = (chat.latest() if resume is None else chat.find(resume)).id
        warning = chat.open(key)
        threads = partial(chat.threads.list, status=None)
        screen: Screen = (
            Terminal(COMMANDS, chat.thread.prompts(), threads)
            if interactive
            else Pipe(as_json=as_json)
        )
        place = f"in {masked(db)}" if kept else "is not stored"
        screen.note(f"thread {chat.thread.id} {place} ({chat.summary()}); /help lists the commands")
        if warning is not None:
            screen.note(warning)
        with chat.sweeping():
            return talk(chat, screen)


def talk(chat: OpenChat, screen: Screen) -> int:
    """Chat until the input ends; return 1 if something failed without a person to retry, else 0."""
    if not _finish(chat, screen) and not screen.interactive and chat.thread.waits:
        return 1  # another graph's turn that fails again is left behind by the next message
    while True:
        try:
            exit_code = _step(chat, screen)
        except KeyboardInterrupt:  # between the turns; a person is at the prompt again at once
            if not screen.interactive:
                raise
            continue
        if exit_code is not None:
            return exit_code


def _finish(chat: OpenChat, screen: Screen) -> bool:
    """Finish what an earlier run left, and show the question that waits; False if that failed.

    What a person said yes to earlier does not begin by itself.
    """
    if screen.interactive and chat.thread.is_confirmed():
        screen.note("stopped before what you said yes to: press Enter to go on, or say no")
        return True
    return not chat.thread.in_progress() or _deliver(chat, screen, "", left=True)


def _step(chat: OpenChat, screen: Screen) -> int | None:
    """Read a line and do what it says; the exit code at the end."""
    line = screen.read(chat.thread.unsent())
    word = (line or "").strip()
    if line is None or word == "/quit":
        return 0
    # A waiting graph knows /reset itself, so that it is in the log and goes through the thread's
    # lease like any other message.
    if (
        word.startswith("/")
        and not word.startswith("//")
        and not (word == "/reset" and chat.thread.waits)
    ):
        if not run_command(chat, screen, word) or _finish(chat, screen):
            return None
        return None if screen.interactive else 1
    text = line.replace("/", "", 1) if word.startswith("//") else line
    return None if _deliver(chat, screen, text) or screen.interactive else 1


def _deliver(chat: OpenChat, screen: Screen, text: str, *, left: bool = False) -> bool:
    """Deliver a message and show the reply; False if that failed.

    The message is stored in any case.

    Args:
        chat: Where the thread is open.
        screen: Where the reply is shown.
        text: The message.
        left: Whether it only finishes what an earlier run left.
    """
    thread, show = chat.thread, screen.question if left else screen.reply
    try:
        if text.strip() not in ("", "/reset"):
            chat.require_room()
        with screen.working() as callbacks:
            speaks = text.strip() or thread.in_progress()
            turn = thread.say(text, callbacks, left=left) if speaks else Turn(reply="")
    except KeyboardInterrupt:
        if not screen.interactive:
            raise
        screen.note(_stopped(thread))
        return False
    except LangmemExtError as error:
        screen.note(str(error))
        if isinstance(error, StaleAnswer):
            _finish(chat, screen)
        return False
    # whatever a node of somebody's graph raises: no traceback, and the chat can continue
    except Exception as error:
        screen.note(f"the graph failed with {in_a_line(error)}{_kept(thread, screen)}")
        if thread.asks_again():
            screen.question(thread.say(""))
        return False
    show(turn)
    return True


def _kept(thread: ChatThread, screen: Screen) -> str:
    """What became of a message whose turn failed."""
    if thread.asks_again():
        return ". The answer was undone, and the question waits again"
    if not thread.unsent():
        return ". Your message is stored; press Enter to try again"
    there = " and is on the next line" if screen.interactive else ""
    return (
        f" while it finished an earlier turn. Your message is not stored yet{there}; /new starts"
        " another conversation"
    )


def _stopped(thread: ChatThread) -> str:
    """What became of a message whose turn was stopped."""
    if thread.unsent():
        return "stopped: your message is not stored yet and is on the next line"
    return (
        "stopped: your message is stored; press Enter to continue with it"
        if thread.waits
        else "stopped: press Enter to continue"
    )
