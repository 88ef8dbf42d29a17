"""A chat that is open: its graph, its database and its thread."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, Final
from uuid import uuid4

from langgraph.pregel import Pregel

from langmem_ext.checkpointer.saver import DeltaSaver
from langmem_ext.cli.chat.thread import ChatThread
from langmem_ext.cli.commands.threads.listing import NOW, age, counted, find, several, title_of
from langmem_ext.context.governor import ContextGovernor
from langmem_ext.errors import DamagedRow, ThreadExpired, ThreadNotFound
from langmem_ext.log.sweeper import LONGEST_PAUSE
from langmem_ext.settings.model import Settings
from langmem_ext.threads.threads import Threads
from langmem_ext.types import ThreadInfo

_TITLE_TOLD: Final = 40


class OpenChat:
    """Opens threads of one graph in one database.

    Args:
        graph: A graph compiled with the saver.
        saver: The database.
        settings: How long threads live, and how many turns they may have.
        kept: Whether the database outlives the chat.

    Attributes:
        graph: The graph.
        threads: The threads that can be continued.
        stored: All that are stored, those that have expired, too.
        thread: The thread that is open.
    """

    def __init__(
        self,
        graph: Pregel[Any, Any, Any, Any],
        saver: DeltaSaver,
        settings: Settings,
        *,
        kept: bool = True,
    ) -> None:
        self.graph = graph
        self.saver = saver
        self.settings = settings
        self.kept = kept
        self.threads = Threads(
            saver,
            ttl=timedelta(days=settings.auto_prune_days),
            tool_ttl=timedelta(hours=settings.ttl_hours),
            max_turns=settings.max_turns,
            on_limit=settings.on_limit,
            on_damage=settings.on_damage,
        )
        self.stored = Threads(saver, tool_ttl=None)
        self.thread = ChatThread(graph, "default", settings.tz)

    def open(self, key: str) -> str | None:
        """Open a thread, which its first message creates; return a note if something is unusual.

        Raises:
            DamagedRow: It is damaged, and that is an error (the setting `on_damage`).
        """
        thread = ChatThread(self.graph, key, self.settings.tz)
        try:
            thread.in_progress()
        except DamagedRow as error:
            if self.settings.on_damage == "raise":
                raise
            self.thread = ChatThread(self.graph, str(uuid4()), self.settings.tz)
            return f"thread {key} is damaged, so a new one is started ({error})"
        self.thread = thread
        return None

    def summary(self) -> str:
        """What the open thread holds, so that nobody continues another one by mistake."""
        try:
            info = self.stored.get(self.thread.id)
        except ThreadNotFound:
            return "new"
        when, title = age(info.updated_at, datetime.now(UTC)), title_of(info, _TITLE_TOLD)
        return (
            f"{counted(info.messages, 'message')},"
            f" {'just now' if when == NOW else f'{when} ago'}{f': {title}' if title else ''}"
        )

    @cached_property
    def governor(self) -> ContextGovernor:
        """What compacts a conversation on demand, with the conversation's model if it has one."""
        settings = self.settings
        return ContextGovernor.from_settings(
            settings.model_copy(update={"summarization_model": ""}) if settings.model else settings
        )

    def latest(self) -> ThreadInfo:
        """The thread that was used last.

        Raises:
            ThreadNotFound: No conversation is left that has not expired.
        """
        for thread in self.threads.each():
            try:
                return self.threads.get(thread.id)
            except ThreadExpired:
                continue
        raise ThreadNotFound("no conversation to continue: omit --continue to start one")

    def find(self, name: str) -> ThreadInfo:
        """The thread to continue: by id, a prefix of it, title, or a text that only its title has.

        Args:
            name: What it is named by.

        Raises:
            ThreadNotFound: It does not exist (`ThreadExpired`: it has expired).
            InvalidInput: There are several.
        """
        try:
            thread = self.find_exactly(name)
        except ThreadNotFound:
            titled = self.threads.list(status=None, title=name, limit=3)
            if len(titled) > 1:
                raise several("have in their titles", name, titled) from None
            if not titled:
                raise
            thread = titled[0]
        return self.threads.get(thread.id)

    def find_exactly(self, name: str) -> ThreadInfo:
        """Find as `find` does, but not by a part of a title; expired threads are included.

        What is deleted must be what was meant.

        Raises:
            ThreadNotFound: It does not exist.
            InvalidInput: There are several.
        """
        return find(self.stored, name)

    def require_room(self) -> None:
        """Check that the thread may have one more turn.

        Where a question waits, its answer is always accepted.

        Raises:
            TurnLimitReached: It may not.
        """
        if self.settings.on_limit == "error" and not self.thread.in_progress():
            with suppress(ThreadNotFound):  # one that is new, or lives again
                self.threads.continue_(self.thread.id)

    def sweeping(self) -> AbstractContextManager[Any]:
        """Delete expired threads while the chat runs, where the settings say so."""
        minutes = self.settings.sweep_interval_minutes
        if not (self.kept and self.settings.auto_prune_days and minutes):
            return nullcontext()
        return self.threads.sweeper(every=min(timedelta(minutes=minutes), LONGEST_PAUSE))
