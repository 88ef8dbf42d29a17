"""Memories at a terminal or in a pipe: written, shown, listed, forgotten."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import typer

from langmem_ext.cli.commands.threads.listing import counted, find, opened_log, settings_for
from langmem_ext.cli.control_characters import json_line, printable
from langmem_ext.cli.errors import give_space_back, note, require_yes
from langmem_ext.errors import InvalidInput, StorageError
from langmem_ext.log.message_log import MessageLog
from langmem_ext.memory.facts.facts import Fact, Facts
from langmem_ext.memory.generator import Generation, MemoryGenerator
from langmem_ext.memory.memories import ConversationMemories, StoredMemory
from langmem_ext.memory.prompts.versions import PromptVersions
from langmem_ext.settings.model import Settings
from langmem_ext.store.store import DeltaStore

_MANY: Final = 1_000_000
"""More facts than an owner has."""

_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


@dataclass(frozen=True, slots=True)
class Run:
    """What a run is to do, as it was typed.

    Attributes:
        model, thread, idle, facts, prompt, limit, every: The options of `langmem-ext memory run`.
    """

    model: str | None
    thread: str | None
    idle: str
    facts: bool
    prompt: str | None
    limit: int | None
    every: str | None


def run_with(db: str | None, owner: str | None, asked: Run, *, as_json: bool) -> bool:
    """Write memories, once or repeatedly, and report each; return whether all were written.

    Raises:
        InvalidInput: An option is invalid, or no model is named.
        LangmemExtError: The database cannot be opened.
    """
    idle = length_of(asked.idle, "--idle")
    every = None if asked.every is None else length_of(asked.every, "--every")
    if every == timedelta(0):
        raise InvalidInput("--every is how long to wait before the next time: 10m, say")
    settings = settings_for(db, owner)
    model = asked.model or settings.model
    if not model:
        raise InvalidInput(
            "a memory is written by a chat model: pass --model openai:gpt-5-mini, or set model"
        )
    with opened_log(settings, read_only=False) as log:
        store = DeltaStore(log, owner=settings.owner or None)
        prompts = PromptVersions(store)
        prompt = prompts if asked.prompt is None else Path(asked.prompt)
        generator = MemoryGenerator(
            log,
            model,
            store=store,
            owner=settings.owner or None,
            prompt=prompt,
            facts=asked.facts,
            facts_prompt=prompts,
        )
        while True:
            try:
                failed = _once(generator, asked, idle, as_json=as_json)
            except StorageError as error:
                if every is None:
                    raise
                note(f"{error}; the next time is in {asked.every}")
            if every is None:
                return not failed
            time.sleep(every.total_seconds())


def _once(generator: MemoryGenerator, asked: Run, idle: timedelta, *, as_json: bool) -> int:
    """One run; how many memories could not be written."""

    def report_one(generation: Generation) -> None:
        _report(generation, as_json=as_json)

    if asked.thread is not None:
        generation = generator.generate(find(generator.memories.threads, asked.thread).id)
        report_one(generation)
        return int(generation.outcome == "failed")
    report = generator.generate_needing(idle=idle, clamp=asked.limit, progress=report_one)
    deleted = f"; {report.swept:,} of deleted conversations deleted" if report.swept else ""
    note(f"{_memories(report.written)} written, {report.failed} failed{deleted}")
    return report.failed


def _report(generation: Generation, *, as_json: bool) -> None:
    if as_json:
        result = {
            "thread_id": generation.thread_id,
            "outcome": generation.outcome,
            "reason": generation.reason,
        }
        typer.echo(json_line({**result, "facts": len(generation.facts)}))
    else:
        columns = (
            generation.thread_id,
            generation.outcome,
            *([generation.reason] if generation.reason else []),
        )
        typer.echo("\t".join(printable(column) for column in columns))


def show_with(db: str | None, owner: str | None, name: str, *, as_json: bool) -> bool:
    """Show a conversation's memory; whether there is one.

    Raises:
        LangmemExtError: As `find` has it.
    """
    with _opened(settings_for(db, owner)) as (_, memories):
        thread = find(memories.threads, name)
        memory, failure = memories.get(thread.id), memories.failure(thread.id)
    if failure is not None:
        note(f"the last generation wrote no memory: {failure.reason}")
    if memory is None:
        note(
            "this conversation has no memory: `langmem-ext memory run` writes those that are needed"
        )
        return False
    if as_json:
        typer.echo(json_line(_data(memory)))
    else:
        for key, value in memory.data.items():
            typer.echo(f"{printable(key)}: {printable(_in_words(value))}")
        note(
            f"written {memory.written_at:%Y-%m-%d %H:%M} from"
            f" {counted(len(memory.messages), 'message')}"
        )
    return True


def list_with(
    db: str | None, owner: str | None, *, facts: bool, superseded: bool, as_json: bool
) -> None:
    """List memories, or an owner's facts.

    Raises:
        LangmemExtError: The database cannot be opened.
    """
    settings = settings_for(db, owner)
    with _opened(settings) as (log, memories):
        if facts:
            kept = Facts(DeltaStore(log), owner=settings.owner or None)
            lines = [
                _fact_line(fact, as_json=as_json)
                for fact in kept.recall(limit=_MANY, superseded=superseded)
            ]
        else:
            lines = [_memory_line(memory, as_json=as_json) for memory in memories.all()]
    for line in lines:
        typer.echo(line)
    if not lines:
        note(
            f"no {'facts' if facts else 'memories'}: `langmem-ext memory run` writes those that are"
            " needed"
        )


def forget_with(
    db: str | None,
    owner: str | None,
    names: Sequence[str],
    *,
    facts: bool,
    yes: bool,
    as_json: bool,
    interactive: bool,
) -> None:
    """Delete memories, or facts, if that is meant, and overwrite what they held.

    Raises:
        InvalidInput: Nobody is there to say that it is meant.
        LangmemExtError: As `find` has it.
    """
    settings = settings_for(db, owner)
    with _opened(settings) as (log, memories):
        threads = [] if facts else [find(memories.threads, name).id for name in names]
        if not yes:
            if not interactive:
                raise InvalidInput("deleting is permanent and needs a confirmation: pass --yes")
            require_yes(
                f"Delete {counted(len(names), 'fact') if facts else _memories(len(names))}"
                " permanently?"
            )
        if facts:
            deleted = Facts(DeltaStore(log), owner=settings.owner or None).forget(*names)
        else:
            deleted = sum(memories.forget(thread) for thread in threads)
        give_space_back(log, note)
    if as_json:
        typer.echo(json.dumps({"deleted": deleted}))
    else:
        note(f"deleted {counted(deleted, 'fact') if facts else _memories(deleted)}")


def length_of(text: str, option: str) -> timedelta:
    """A length of time as a person writes it.

    Raises:
        InvalidInput: It is invalid.

    >>> length_of("90m", "--idle")
    datetime.timedelta(seconds=5400)
    """
    match = re.fullmatch(r"\s*(\d{1,6})\s*([smhd])\s*", text)
    if match is None:
        raise InvalidInput(f"{option} {text!r} is no length of time: write 45s, 30m, 2h or 1d")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


@contextmanager
def _opened(settings: Settings) -> Iterator[tuple[MessageLog, ConversationMemories]]:
    with opened_log(settings, read_only=False) as log:
        yield log, ConversationMemories(log, owner=settings.owner or None)


def _memories(count: int) -> str:
    return f"{count:,} memor{'y' if count == 1 else 'ies'}"


def _data(memory: StoredMemory) -> dict[str, Any]:
    times = {
        "thread_updated_at": memory.thread_updated_at.isoformat(),
        "written_at": memory.written_at.isoformat(),
    }
    return {
        "thread_id": memory.thread_id,
        "memory": dict(memory.data),
        "messages": list(memory.messages),
        **times,
    }


def _memory_line(memory: StoredMemory, *, as_json: bool) -> str:
    if as_json:
        return json_line(_data(memory))
    first = next((words for value in memory.data.values() if (words := _in_words(value))), "")
    return "\t".join(
        printable(column)
        for column in (memory.thread_id, f"{memory.written_at:%Y-%m-%d %H:%M}", first)
    )


def _fact_line(fact: Fact, *, as_json: bool) -> str:
    if as_json:
        return json_line({**asdict(fact), "said_at": fact.said_at.isoformat()})
    columns = (
        fact.id,
        str(fact.said_at.date()),
        fact.subject or "",
        fact.text,
        *(["superseded"] if fact.superseded_by else []),
    )
    return "\t".join(printable(column) for column in columns)


def _in_words(value: Any) -> str:
    items = value if isinstance(value, list) else [value]
    texts = [
        item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in items
    ]
    return " ".join(", ".join(texts).split())
