"""What can be typed in a chat besides messages."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from rich.table import Table
from rich.text import Text

from langmem_ext.cli.chat.compaction import compacted
from langmem_ext.cli.chat.open_chat import OpenChat
from langmem_ext.cli.chat.screen import Screen
from langmem_ext.cli.commands.threads.line import Line, line_of
from langmem_ext.cli.commands.threads.listing import as_data, columns_of, counted, table_of
from langmem_ext.cli.commands.threads.search import hit_columns, hit_data, shown
from langmem_ext.cli.commands.threads.transfer import format_for
from langmem_ext.cli.control_characters import printable
from langmem_ext.cli.errors import give_space_back
from langmem_ext.errors import InvalidInput, LangmemExtError, ThreadNotFound
from langmem_ext.log.message_log import thread_key
from langmem_ext.messages.turns import cut_turns
from langmem_ext.settings.origin import masked
from langmem_ext.threads.continuation.files import newest_first
from langmem_ext.types import ThreadInfo

COMMANDS: Final[Mapping[str, str]] = {
    "/help": "list the commands, or describe one",
    "/sessions": "list conversations: title, messages, age",
    "/new": "start a new conversation",
    "/load": "continue another conversation: a prefix of its id, or words of its title",
    "/save": "already saved; with a path, export a copy there",
    "/history": "show the conversation so far",
    "/files": "list the files mentioned in the conversation, latest first",
    "/search": "find messages in all conversations",
    "/title": "show or set the title",
    "/fork": "continue in a copy of the conversation",
    "/export": "print the conversation as Markdown, or write it to a path (.md, else JSON lines)",
    "/params": "show the known parameters",
    "/state": "show the state of the thread",
    "/reset": "drop parameters and the pending question; messages stay",
    "/clear": "start with an empty context; messages stay stored",
    "/forget": "delete this or the given conversation, permanently",
    "/delete": "the same as /forget",
    "/compact": "shorten what the model is sent; messages stay stored",
    "/shrink": "free the disk space of deleted conversations",
    "/quit": "end the chat; the conversation stays stored",
}
"""What can be typed besides messages, and what it is for."""

TAKES: Final[Mapping[str, str]] = {
    "/help": "[COMMAND]",
    "/new": "[ID]",
    "/load": "ID",
    "/save": "[PATH]",
    "/search": "TEXT",
    "/title": "[TEXT]",
    "/fork": "[ID]",
    "/export": "[PATH]",
    "/forget": "[ID]",
    "/delete": "[ID]",
}
"""What follows a command; in brackets what may be left out."""


def run_command(chat: OpenChat, screen: Screen, word: str) -> bool:
    """Run a slash command; return whether the open thread is another one now, or looks different.

    Errors are shown to a person as notes.

    What goes wrong is a note to a person.

    Raises:
        LangmemExtError: It went wrong in a pipe, where what follows may be meant for another
            conversation than the one that is open.
    """
    name, _, rest = word.partition(" ")
    try:
        return _command(name)(chat, screen, rest.strip())
    except LangmemExtError as error:
        if not screen.interactive:
            raise
        screen.note(str(error))
        return False


def _command(name: str) -> Callable[[OpenChat, Screen, str], bool]:
    if name not in _COMMANDS:
        raise InvalidInput(
            f"unknown command {name}: see /help; to send a message that starts with a slash,"
            " type two"
        )
    return _COMMANDS[name]


# -- looking ---------------------------------------------------------------------------------------


def _help(chat: OpenChat, screen: Screen, rest: str) -> bool:
    name = f"/{rest.removeprefix('/')}"
    if rest:
        _command(name)
    purposes = {
        f"{name} {TAKES.get(name, '')}".rstrip(): COMMANDS[name]
        for name in ([name] if rest else COMMANDS)
    }
    if screen.interactive:
        page = Table.grid(padding=(0, 2))
        for words, purpose in purposes.items():
            page.add_row(Text(words, no_wrap=True), Text(purpose))
        screen.rows([page], (), ())
    else:
        for words, purpose in purposes.items():
            screen.note(f"{words:15} {purpose}")
    if rest:
        return False
    screen.note(
        "To send a message that starts with a slash, type two. Ctrl-C stops a turn, Ctrl-D ends the"
        " chat."
    )
    return False


def _sessions(chat: OpenChat, screen: Screen, rest: str) -> bool:
    threads = list(islice(chat.threads.each(), chat.settings.list_limit or None))
    length = chat.settings.title_length
    table = [table_of(threads, datetime.now(UTC), length)] if threads else []
    screen.rows(table, (columns_of(thread, length) for thread in threads), map(as_data, threads))
    if not threads:
        screen.note("no conversations yet; send a message to start one")
    return False


def _history(chat: OpenChat, screen: Screen, rest: str) -> bool:
    system, turns = cut_turns(chat.thread.messages())
    most = chat.settings.max_turns or len(turns)
    messages = [*system, *(message for turn in turns[-most:] for message in turn.messages)]
    lines: list[Line] = [line for message in messages if (line := line_of(message)).text]
    if len(turns) > most:
        screen.note(
            f"{len(turns) - most:,} earlier turns are not shown: /export shows all (the setting"
            " max_turns)"
        )
    screen.history(lines)
    if not lines:
        screen.note("no messages since /clear" if _stored(chat) else "no messages yet")
    return False


def _files(chat: OpenChat, screen: Screen, rest: str) -> bool:
    _, turns = cut_turns(chat.thread.messages())
    noted = newest_first((turn.files for turn in turns), None)
    files = noted[: chat.settings.max_recent_files or None]
    contents = [file.sha256[:12] if file.sha256 else "no content" for file in files]
    rows = (
        Text.assemble(printable(file.path), (f"  {content}", "dim"))
        for file, content in zip(files, contents, strict=True)
    )
    lines = (
        "\t".join((file.path.replace("\t", " "), content))
        for file, content in zip(files, contents, strict=True)
    )
    screen.rows(rows, lines, ({"path": file.path, "sha256": file.sha256} for file in files))
    if len(noted) > len(files):
        screen.note(
            f"{len(noted) - len(files):,} older files are not shown (the setting max_recent_files)"
        )
    if not noted:
        screen.note("no files mentioned")
    return False


def _stored(chat: OpenChat) -> int:
    """How many messages the thread holds, those that were set aside, too."""
    try:
        return chat.stored.get(chat.thread.id).stored_messages
    except ThreadNotFound:
        return 0


def _search(chat: OpenChat, screen: Screen, rest: str) -> bool:
    if not rest:
        raise InvalidInput("nothing to search for: /search the broken lamp")
    with screen.working():
        hits = chat.threads.search(rest)
    screen.rows(shown(hits, datetime.now(UTC)), map(hit_columns, hits), map(hit_data, hits))
    if not hits:
        screen.note("nothing found")
    return False


def _params(chat: OpenChat, screen: Screen, rest: str) -> bool:
    params: Any = chat.thread.report().get("params") or {}
    lines = [
        f"{name}\t{value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in params.items()
    ]
    screen.rows((Text(printable(line.replace("\t", " = ", 1))) for line in lines), lines, [params])
    if not params:
        screen.note("no parameters are known")
    return False


def _state(chat: OpenChat, screen: Screen, rest: str) -> bool:
    screen.state(chat.thread.report())
    return False


# -- keeping ---------------------------------------------------------------------------------------


def _save(chat: OpenChat, screen: Screen, rest: str) -> bool:
    if rest:
        return _export(chat, screen, rest)
    if chat.kept:
        screen.note("already saved: every turn is stored as it happens; /save PATH writes a copy")
    else:
        screen.note("this chat is not stored (the setting enabled): /save PATH writes a copy")
    return False


def _begun(chat: OpenChat) -> ThreadInfo:
    """The thread that is open, as it is stored."""
    try:
        return chat.stored.get(chat.thread.id)
    except ThreadNotFound as error:
        raise InvalidInput("no messages yet: the first message creates the conversation") from error


def _export(chat: OpenChat, screen: Screen, rest: str) -> bool:
    key = _begun(chat).id
    if not rest:
        page = "".join(chat.threads.export_lines(key, format="markdown")).rstrip("\n")
        screen.rows([Text(printable(page))], page.splitlines(), [{"markdown": page}])
        return False
    target = rest if "://" in rest else str(Path(rest).expanduser())
    form = format_for(rest)
    done = chat.threads.export_to(target, key, format=form)
    screen.note(
        f"written to {masked(rest)} as {'Markdown' if form == 'markdown' else 'JSON lines'}:"
        f" {counted(done.messages, 'message')}"
    )
    return False


def _title(chat: OpenChat, screen: Screen, rest: str) -> bool:
    info = _begun(chat)
    info = chat.threads.rename(info.id, rest) if rest else info
    screen.note(f"title: {info.title!r}" if info.title else "no title yet: /title TEXT sets one")
    return False


def _compact(chat: OpenChat, screen: Screen, rest: str) -> bool:
    try:
        with screen.working():
            done = compacted(chat)
    except KeyboardInterrupt:
        if not screen.interactive:
            raise
        screen.note("stopped: nothing was compacted")
        return False
    if done is None:
        screen.note("nothing worth compacting yet")
        return False
    screen.rows([done.table()], map("\t".join, done.rows), [done.data])
    return chat.thread.in_progress()


def _shrink(chat: OpenChat, screen: Screen, rest: str) -> bool:
    screen.note(f"the file is {chat.saver.compact():,} bytes smaller")
    return False


# -- moving ----------------------------------------------------------------------------------------


def _new(chat: OpenChat, screen: Screen, rest: str) -> bool:
    key = thread_key(rest or str(uuid4()))
    with suppress(ThreadNotFound):
        chat.stored.get(key)
        raise InvalidInput(f"thread {key!r} exists already: /load {key} continues it")
    return _move(chat, screen, key)


def _load(chat: OpenChat, screen: Screen, rest: str) -> bool:
    if not rest:
        raise InvalidInput("which conversation? /sessions lists them, /load ID opens one")
    return _move(chat, screen, chat.find(rest).id)


def _fork(chat: OpenChat, screen: Screen, rest: str) -> bool:
    return _move(chat, screen, chat.threads.fork(_begun(chat).id, to=rest or None).id)


def _move(chat: OpenChat, screen: Screen, key: str) -> bool:
    warning = chat.open(key)
    screen.note(warning or f"thread {chat.thread.id} ({chat.summary()})")
    screen.recall(chat.thread.prompts())
    return True


# -- forgetting ------------------------------------------------------------------------------------


def _reset(chat: OpenChat, screen: Screen, rest: str) -> bool:
    # A waiting graph hears this word itself, and never gets here with it.
    screen.note("nothing to reset: this graph has no parameters and no requests")
    return False


def _clear(chat: OpenChat, screen: Screen, rest: str) -> bool:
    if not chat.thread.waits and chat.thread.in_progress():
        # Only the waiting graph is known to ask again without what was said before.
        raise InvalidInput(
            "a question is waiting, and the graph may need the earlier messages: answer it first,"
            " then /clear"
        )
    try:
        with chat.saver.lease(chat.thread.id):
            count = chat.threads.clear(chat.thread.id)
    except ThreadNotFound:
        count = 0
    screen.note(
        f"{count:,} messages removed from the context; they stay stored"
        if count
        else "nothing to clear"
    )
    return bool(count)


def _forget(chat: OpenChat, screen: Screen, rest: str) -> bool:
    words = rest.split()
    named = " ".join(word for word in words if word != "--yes")
    thread = chat.find_exactly(named) if named else _begun(chat)
    if "--yes" not in words:
        if not screen.interactive:
            raise InvalidInput(
                "deleting is permanent and needs a confirmation: type /forget"
                f" {f'{named} ' if named else ''}--yes"
            )
        if not screen.confirm(
            f"Delete {thread.title or thread.id!r}, {counted(thread.stored_messages, 'message')},"
            " permanently?"
        ):
            screen.note("nothing was deleted")
            return False
    with chat.saver.lease(thread.id):
        pruned = chat.threads.delete(thread.id)
    give_space_back(chat.saver.log, screen.note)
    screen.note(f"deleted {thread.id}: {counted(pruned.items, 'message')}, {pruned.bytes:,} bytes")
    if thread.id != chat.thread.id:
        return False
    chat.open(thread.id)
    return True


_COMMANDS: Final[Mapping[str, Callable[[OpenChat, Screen, str], bool]]] = {
    "/help": _help,
    "/sessions": _sessions,
    "/new": _new,
    "/load": _load,
    "/save": _save,
    "/history": _history,
    "/files": _files,
    "/search": _search,
    "/title": _title,
    "/fork": _fork,
    "/export": _export,
    "/params": _params,
    "/state": _state,
    "/reset": _reset,
    "/clear": _clear,
    "/forget": _forget,
    "/delete": _forget,
    "/compact": _compact,
    "/shrink": _shrink,
}
