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
from langmem_ext.cli.chat.screen import Screen
from langmem_ext.cli.chat.session import Desk
from langmem_ext.cli.commands.line import Line, line_of
from langmem_ext.cli.commands.listing import as_data, columns_of, counted, table_of
from langmem_ext.cli.commands.search import hit_columns, hit_data, shown
from langmem_ext.cli.commands.transfer import format_for
from langmem_ext.cli.control_characters import printable
from langmem_ext.cli.errors import give_space_back
from langmem_ext.errors import InvalidInput, LangmemExtError, ThreadNotFound
from langmem_ext.log import thread_key
from langmem_ext.messages.turns import cut_turns
from langmem_ext.settings.origin import masked
from langmem_ext.threads.continuation.files import newest_first
from langmem_ext.types import ThreadInfo

COMMANDS: Final[Mapping[str, str]] = {
    "/help": "what can be typed here; of a command, what it is for",
    "/sessions": "the conversations: title, messages, age",
    "/new": "begin a new conversation",
    "/load": "go on with another one: the beginning of its id, or words of its title",
    "/save": "already saved; with a path, export a copy there",
    "/history": "the conversation so far",
    "/files": "the files that the conversation has named, the last ones first",
    "/search": "find messages in all conversations",
    "/title": "call the conversation something",
    "/fork": "go on in a copy of the conversation",
    "/export": "show the conversation as Markdown, or write it to a path: .md, or JSON lines",
    "/params": "the parameters that are known",
    "/state": "what the thread remembers",
    "/reset": "forget parameters and the waiting question; messages stay",
    "/clear": "begin with a fresh context; what was said stays stored",
    "/forget": "delete the conversation, or the one that is named, for good",
    "/delete": "the same as /forget",
    "/compact": "shorten what a model is shown of the conversation; what was said stays stored",
    "/shrink": "free the disk space of deleted conversations",
    "/quit": "end; the conversation stays",
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


def run_command(desk: Desk, screen: Screen, word: str) -> bool:
    """Do what a line says that begins with a slash; whether the thread that is open is another one now, or looks different.

    What goes wrong is a note to a person.

    Raises:
        LangmemExtError: It went wrong in a pipe, where what follows may be meant for another conversation than the one that is open.
    """
    name, _, rest = word.partition(" ")
    try:
        return _command(name)(desk, screen, rest.strip())
    except LangmemExtError as error:
        if not screen.interactive:
            raise
        screen.note(str(error))
        return False


def _command(name: str) -> Callable[[Desk, Screen, str], bool]:
    if name not in _COMMANDS:
        raise InvalidInput(f"there is no {name}: /help shows what there is; a message that begins with a slash is typed with two")
    return _COMMANDS[name]


# -- looking -----------------------------------------------------------------------------------------------------------------------------


def _help(desk: Desk, screen: Screen, rest: str) -> bool:
    name = f"/{rest.removeprefix('/')}"
    if rest:
        _command(name)
    told = {f"{name} {TAKES.get(name, '')}".rstrip(): COMMANDS[name] for name in ([name] if rest else COMMANDS)}
    if screen.interactive:
        page = Table.grid(padding=(0, 2))
        for words, purpose in told.items():
            page.add_row(Text(words, no_wrap=True), Text(purpose))
        screen.rows([page], (), ())
    else:
        for words, purpose in told.items():
            screen.note(f"{words:15} {purpose}")
    if rest:
        return False
    screen.note("A message that begins with a slash is typed with two. Ctrl-C stops a turn, Ctrl-D ends the chat.")
    return False


def _sessions(desk: Desk, screen: Screen, rest: str) -> bool:
    found = list(islice(desk.threads.each(), desk.settings.list_limit or None))
    length = desk.settings.title_length
    table = [table_of(found, datetime.now(UTC), length)] if found else []
    screen.rows(table, (columns_of(thread, length) for thread in found), map(as_data, found))
    if not found:
        screen.note("no conversations yet; send a message to start one")
    return False


def _history(desk: Desk, screen: Screen, rest: str) -> bool:
    system, turns = cut_turns(desk.thread.messages())
    most = desk.settings.max_turns or len(turns)
    messages = [*system, *(message for turn in turns[-most:] for message in turn.messages)]
    lines: list[Line] = [line for message in messages if (line := line_of(message)).text]
    if len(turns) > most:
        screen.note(f"{len(turns) - most:,} earlier turns are not shown: /export shows all (the setting max_turns)")
    screen.history(lines)
    if not lines:
        screen.note("nothing has been said since /clear" if _stored(desk) else "nothing has been said yet")
    return False


def _files(desk: Desk, screen: Screen, rest: str) -> bool:
    _, turns = cut_turns(desk.thread.messages())
    found = newest_first((turn.files for turn in turns), None)
    files = found[: desk.settings.max_recent_files or None]
    contents = [file.sha256[:12] if file.sha256 else "only named" for file in files]
    told = (Text.assemble(printable(file.path), (f"  {content}", "dim")) for file, content in zip(files, contents, strict=True))
    lines = ("\t".join((file.path.replace("\t", " "), content)) for file, content in zip(files, contents, strict=True))
    screen.rows(told, lines, ({"path": file.path, "sha256": file.sha256} for file in files))
    if len(found) > len(files):
        screen.note(f"{len(found) - len(files):,} named before are not shown (the setting max_recent_files)")
    if not found:
        screen.note("no files have been named")
    return False


def _stored(desk: Desk) -> int:
    """How many messages the thread holds, those that were set aside, too."""
    try:
        return desk.stored.get(desk.thread.id).stored_messages
    except ThreadNotFound:
        return 0


def _search(desk: Desk, screen: Screen, rest: str) -> bool:
    if not rest:
        raise InvalidInput("say what to look for: /search the broken lamp")
    with screen.working():
        hits = desk.threads.search(rest)
    screen.rows(shown(hits, datetime.now(UTC)), map(hit_columns, hits), map(hit_data, hits))
    if not hits:
        screen.note("nothing found")
    return False


def _params(desk: Desk, screen: Screen, rest: str) -> bool:
    params: Any = desk.thread.report().get("params") or {}
    said = [f"{name}\t{value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}" for name, value in params.items()]
    screen.rows((Text(printable(line.replace("\t", " = ", 1))) for line in said), said, [params])
    if not params:
        screen.note("no parameters are known")
    return False


def _state(desk: Desk, screen: Screen, rest: str) -> bool:
    screen.state(desk.thread.report())
    return False


# -- keeping -----------------------------------------------------------------------------------------------------------------------------


def _save(desk: Desk, screen: Screen, rest: str) -> bool:
    if rest:
        return _export(desk, screen, rest)
    if desk.kept:
        screen.note("nothing is left to save: every turn is stored as it is said; /save PATH writes a copy")
    else:
        screen.note("this chat is not kept (the setting enabled): /save PATH writes a copy")
    return False


def _begun(desk: Desk) -> ThreadInfo:
    """The thread that is open, as it is stored."""
    try:
        return desk.stored.get(desk.thread.id)
    except ThreadNotFound as error:
        raise InvalidInput("nothing has been said yet: a conversation is made by its first message") from error


def _export(desk: Desk, screen: Screen, rest: str) -> bool:
    key = _begun(desk).id
    if not rest:
        page = "".join(desk.threads.export_lines(key, format="markdown")).rstrip("\n")
        screen.rows([Text(printable(page))], page.splitlines(), [{"markdown": page}])
        return False
    target = rest if "://" in rest else str(Path(rest).expanduser())
    form = format_for(rest)
    done = desk.threads.export_to(target, key, format=form)
    screen.note(f"written to {masked(rest)} as {'Markdown' if form == 'markdown' else 'JSON lines'}: {counted(done.messages, 'message')}")
    return False


def _title(desk: Desk, screen: Screen, rest: str) -> bool:
    info = _begun(desk)
    info = desk.threads.rename(info.id, rest) if rest else info
    screen.note(f"this conversation is called {info.title!r}" if info.title else "it has no title yet: /title TEXT gives it one")
    return False


def _compact(desk: Desk, screen: Screen, rest: str) -> bool:
    try:
        with screen.working():
            done = compacted(desk)
    except KeyboardInterrupt:
        if not screen.interactive:
            raise
        screen.note("stopped: nothing was compacted")
        return False
    if done is None:
        screen.note("there is nothing to compact: nothing worth compacting yet")
        return False
    screen.rows([done.table()], map("\t".join, done.rows), [done.data])
    return desk.thread.in_progress()


def _shrink(desk: Desk, screen: Screen, rest: str) -> bool:
    screen.note(f"the file is {desk.saver.compact():,} bytes smaller")
    return False


# -- moving ------------------------------------------------------------------------------------------------------------------------------


def _new(desk: Desk, screen: Screen, rest: str) -> bool:
    key = thread_key(rest or str(uuid4()))
    with suppress(ThreadNotFound):
        desk.stored.get(key)
        raise InvalidInput(f"there is a thread {key!r} already: /load {key} goes on with it")
    return _move(desk, screen, key)


def _load(desk: Desk, screen: Screen, rest: str) -> bool:
    if not rest:
        raise InvalidInput("say which conversation: /sessions shows those that there are, /load ID opens one")
    return _move(desk, screen, desk.find(rest).id)


def _fork(desk: Desk, screen: Screen, rest: str) -> bool:
    return _move(desk, screen, desk.threads.fork(_begun(desk).id, to=rest or None).id)


def _move(desk: Desk, screen: Screen, key: str) -> bool:
    told = desk.open(key)
    screen.note(told or f"thread {desk.thread.id} ({desk.told()})")
    screen.recall(desk.thread.prompts())
    return True


# -- forgetting --------------------------------------------------------------------------------------------------------------------------


def _reset(desk: Desk, screen: Screen, rest: str) -> bool:
    # A waiting graph hears this word itself, and never gets here with it.
    screen.note("this graph keeps no parameters and no requests: there is nothing to reset")
    return False


def _clear(desk: Desk, screen: Screen, rest: str) -> bool:
    if not desk.thread.waits and desk.thread.in_progress():
        # Only the waiting graph is known to ask again without what was said before.
        raise InvalidInput("a question waits, and the graph may need what was said before: answer it first, then /clear")
    try:
        with desk.saver.lease(desk.thread.id):
            count = desk.threads.clear(desk.thread.id)
    except ThreadNotFound:
        count = 0
    screen.note(f"{count:,} messages set aside, which stay stored" if count else "there is nothing to clear")
    return bool(count)


def _forget(desk: Desk, screen: Screen, rest: str) -> bool:
    words = rest.split()
    named = " ".join(word for word in words if word != "--yes")
    found = desk.find_exactly(named) if named else _begun(desk)
    if "--yes" not in words:
        if not screen.interactive:
            raise InvalidInput(f"deleting is for good and nobody can be asked here: type /forget {f'{named} ' if named else ''}--yes")
        if not screen.confirm(f"Delete {found.title or found.id!r}, {counted(found.stored_messages, 'message')}, for good?"):
            screen.note("nothing was deleted")
            return False
    with desk.saver.lease(found.id):
        pruned = desk.threads.delete(found.id)
    give_space_back(desk.saver.log, screen.note)
    screen.note(f"deleted {found.id}: {counted(pruned.items, 'message')}, {pruned.bytes:,} bytes")
    if found.id != desk.thread.id:
        return False
    desk.open(found.id)
    return True


_COMMANDS: Final[Mapping[str, Callable[[Desk, Screen, str], bool]]] = {
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
