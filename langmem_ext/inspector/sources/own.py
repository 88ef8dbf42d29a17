"""A database of this package, as the inspector sees it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

from langgraph.checkpoint.base import BaseCheckpointSaver

from langmem_ext._internal.collector import without_collector
from langmem_ext.errors import ThreadNotFound
from langmem_ext.inspector.sources.costs import MessageCost, role_named, role_of
from langmem_ext.inspector.sources.source import (
    PAGE,
    Conversation,
    ListedThread,
    Listing,
    MessageList,
    Path,
    Remembered,
    Source,
    Standing,
    Step,
    StepFacts,
    ThreadPage,
    Write,
    part_of,
    standing_of,
    step_number,
)
from langmem_ext.memory.facts.facts import Facts
from langmem_ext.memory.memories import ConversationMemories
from langmem_ext.messages.manifest import LONGEST_LIST
from langmem_ext.messages.snapshot import FIELD_CODES
from langmem_ext.messages.written import as_message
from langmem_ext.storage.operation import Operation
from langmem_ext.storage.rows.clock import unix_ms
from langmem_ext.storage.threads import list as listing_ops
from langmem_ext.storage.threads import outline as outline_ops
from langmem_ext.threads.continuation.usage import spent_in
from langmem_ext.threads.threads import Threads
from langmem_ext.threads.validation import plan_filter
from langmem_ext.types import PackedValue, SearchHit, ThreadInfo, ThreadKey

FACTS = 500
"""Facts of an owner among which those of a thread are looked for: the newest."""

LOOKED_AT = 10_000
"""Threads that a page looks at for questions of other graphs than the waiting graph."""

MOMENT = re.compile(r"@(\d{1,15})")
"""A cursor that is a moment: where a page has stopped to look for threads that wait."""

RANKS: dict[str, Any] = {"tokens": "tokens", "size": "stored_messages"}
"""What threads are sorted by besides their last use."""

_NAMES = {code: name for name, code in FIELD_CODES.items()}

TextFilter: TypeAlias = Literal["title", "begins"]
"""What of a thread a text is looked for in."""

LAST_SHOWN = 3
"""Messages of a list that a state shows."""


class OwnSource(Source):
    """The threads of a `DeltaSaver`.

    Args:
        saver: The saver; it stays open.
        writable: Whether threads may be changed.
    """

    size_unit = "messages"
    searchable = True

    def __init__(self, saver: Any, *, writable: bool = True) -> None:
        self._saver = saver
        self._threads = Threads(saver)
        self.writable = writable
        self.place = saver.log.driver.place.strip("'")
        self.kind = "PostgreSQL" if "postgres" in type(saver.log.driver).__module__ else "SQLite"

    @property
    def saver(self) -> BaseCheckpointSaver[Any]:
        """The checkpointer that reads it."""
        saver: BaseCheckpointSaver[Any] = self._saver
        return saver

    def for_owner(self, owner: str | None) -> Source:
        """The same database with the threads of one owner alone; None: as it is."""
        return (
            self
            if owner is None
            else OwnSource(self._saver.for_owner(owner), writable=self.writable)
        )

    # -- threads -----------------------------------------------------------------------------------

    def threads(self, listing: Listing) -> ThreadPage:
        """A page of threads: those with the text in their title, or else at the front of their id.

        Of those that wait, it may be a short page, or an empty one, that others follow.
        """
        pages = self._waiting if listing.waiting == "*" else self._page
        page = pages(listing, "title")
        if page.threads or page.following or not listing.text or listing.after is not None:
            return page
        return replace(pages(listing, "begins"), following=None)

    def _page(self, listing: Listing, by: TextFilter) -> ThreadPage:
        wanted = _wanted(listing, by)
        after = self._after(listing.after)
        if listing.order == "used":
            threads = self._threads.list(limit=PAGE + 1, after=after, **wanted)
        else:
            threads = self._threads.largest(
                RANKS[listing.order], limit=PAGE + 1, after=after, **wanted
            )
        page, more = threads[:PAGE], len(threads) > PAGE
        total = None if listing.after else self._threads.count(**wanted)
        return ThreadPage(self._listed(page), page[-1].id if more else None, total)

    def _waiting(self, listing: Listing, by: TextFilter) -> ThreadPage:
        """A page of the threads that wait, for a parameter or for an answer to any other question.

        A thread's row does not know the latter, so the newest checkpoints are looked at: those of
        the threads that were used last, a bounded number for a page; the next page goes on with
        those that were used before.
        """
        asked = plan_filter(_wanted(replace(listing, waiting=""), by), self._saver.owner)
        after = self._after(listing.after)
        wanted = replace(asked, pending=True)
        end = None
        if listing.order == "used":
            before = None if after is None else unix_ms(after.updated_at) + 1
            if after is None and listing.after and (moment := MOMENT.fullmatch(listing.after)):
                before = int(moment[1])
                wanted = replace(wanted, until=before)
            looked_at = replace(asked, until=before)
            last = listing_ops.pick_threads(looked_at, "updated_at desc", offset=LOOKED_AT, limit=1)
            end = next((unix_ms(thread.updated_at) for thread in self._run(last)), None)
            wanted = wanted if end is None else replace(wanted, since=end)
            threads = self._run(listing_ops.list_threads(wanted, after, PAGE + 1))
        else:
            rank = RANKS[listing.order]
            threads = self._run(listing_ops.rank_threads(wanted, rank, after, PAGE + 1))
        page, more = threads[:PAGE], len(threads) > PAGE
        waiting = [thread for thread in self._listed(page) if thread.waiting_for]
        following = page[-1].id if more else None if end is None else f"@{end}"
        is_whole = listing.after is None and following is None
        return ThreadPage(waiting, following, len(waiting) if is_whole else None)

    def _listed(self, threads: Sequence[ThreadInfo]) -> list[ListedThread]:
        """The threads, each with how it stands, by its newest checkpoint."""
        keys = [self._key(thread.id) for thread in threads]
        heads = self._run(outline_ops.read_heads(keys, **self._tools))
        standing: dict[str, Standing] = {
            name: standing_of(head.held, head.written) for name, head in heads.items()
        }
        return [_listed(thread, standing.get(thread.id, "idle")) for thread in threads]

    def _after(self, cursor: str | None) -> ThreadInfo | None:
        """The thread that a page ended with; where it was deleted since, the list begins anew."""
        with suppress(ThreadNotFound):
            return None if cursor is None else self._threads.get(cursor)
        return None

    def thread(self, thread_id: str) -> ListedThread:
        """One thread."""
        return self._listed([self._threads.get(thread_id)])[0]

    def search(self, text: str, thread_id: str | None = None) -> Sequence[SearchHit]:
        """Messages that have all words of a text, the best first."""
        return self._threads.search(text, thread=thread_id, limit=PAGE)

    def fork(self, thread_id: str, checkpoint: str | None) -> str:
        """Copy a thread up to a checkpoint, or whole; the copy's id."""
        return (
            self._threads.fork(thread_id, checkpoint_id=checkpoint).id
            if self.writable
            else super().fork(thread_id, checkpoint)
        )

    def remembered(self, thread: ListedThread) -> Remembered:
        """What is remembered of a thread: its memory, and facts that stand on its messages."""
        memories = ConversationMemories(self._saver)
        facts = Facts(memories.store, owner=thread.owner).recall(limit=FACTS, superseded=True)
        own = [
            fact for fact in facts if any(source.thread_id == thread.id for source in fact.sources)
        ]
        return Remembered(memories.get(thread.id), memories.failure(thread.id), own)

    # -- checkpoints -------------------------------------------------------------------------------

    def namespaces(self, thread_id: str) -> Sequence[str]:
        """The namespaces of a thread's subgraphs."""
        names: Sequence[str] = self._run(
            outline_ops.list_namespaces(self._key(thread_id), **self._tools)
        )
        return names

    def outline(self, thread_id: str, namespace: str = "") -> Sequence[Step]:
        """Every checkpoint of a thread's namespace, the newest first."""
        return without_collector(self._outline, thread_id, namespace)

    def _outline(self, thread_id: str, namespace: str) -> Sequence[Step]:
        read = self._run(outline_ops.read_outline(self._key(thread_id), namespace, **self._tools))
        sources = {label: _source_of(label) for label in {row[3] for row in read}}
        return [
            Step(name, parent, step_number(step), sources[label])
            for name, parent, step, label in read
        ]

    def facts(
        self, thread_id: str, ids: Sequence[str], namespace: str = ""
    ) -> Mapping[str, StepFacts]:
        """What checkpoints say of their steps."""
        read = self._run(
            outline_ops.read_steps(self._key(thread_id), namespace, ids, **self._tools)
        )
        return {
            name: StepFacts(
                _moment(step.ts),
                step.versions,
                step.seen,
                tuple(step.refs),
                tuple(Write(write.task, write.path, write.channel) for write in step.written),
            )
            for name, step in read.items()
        }

    def conversation(
        self, thread_id: str, checkpoint: str, first: int, limit: int, namespace: str = ""
    ) -> Conversation:
        """A part of the messages of a checkpoint; no others are read."""
        return self._list(thread_id, checkpoint, first, limit, namespace)

    def costs(self, thread_id: str, checkpoint: str, namespace: str = "") -> Sequence[MessageCost]:
        """What each message of a checkpoint costs; those that say no more than a text are not read.

        Raises:
            DamagedRow: One is damaged.
        """
        return without_collector(self._costs, thread_id, checkpoint, namespace)

    def _costs(self, thread_id: str, checkpoint: str, namespace: str) -> Sequence[MessageCost]:
        read = self._run(
            outline_ops.read_costs(self._key(thread_id), namespace, checkpoint, **self._tools)
        )
        return list(map(_cost, read))

    def _list(
        self,
        thread_id: str,
        checkpoint: str,
        first: int,
        limit: int,
        namespace: str,
        channel: str | None = None,
    ) -> Conversation:
        """A part of a list of messages: the conversation, or the list of a channel."""
        read = self._run(
            outline_ops.read_list(
                self._key(thread_id), namespace, checkpoint, first, limit, channel, **self._tools
            )
        )
        if read is None:
            return Conversation()
        messages = self._saver.codec.load_value(
            PackedValue(messages=[*map(as_message, read.messages)])
        )
        return Conversation(
            read.channel,
            read.first,
            read.total,
            messages,
            [datetime.fromtimestamp(stored_at, UTC) for stored_at in read.seconds],
        )

    def values(
        self,
        thread_id: str,
        checkpoint: str,
        namespace: str = "",
        only: Collection[str] | None = None,
    ) -> Mapping[str, Any]:
        """The values of a checkpoint's channels; a `MessageList` replaces each list of messages."""
        read = self._step(thread_id, checkpoint, namespace)
        held: dict[str, Any] = {}
        last = Conversation()
        for channel, ref in () if read is None else read.refs.items():
            if only is not None and channel not in only:
                continue
            if outline_ops.is_list(ref) and not last.channel:
                last = self.conversation(thread_id, checkpoint, -LAST_SHOWN, LAST_SHOWN, namespace)
            if last.channel == channel:
                held[channel] = MessageList(last.total, last.messages)
                continue
            value = self.value(thread_id, checkpoint, channel, namespace)
            held[channel] = (
                MessageList(len(value), value[-LAST_SHOWN:]) if outline_ops.is_list(ref) else value
            )
        return held

    def pending(
        self, thread_id: str, checkpoint: str, namespace: str = ""
    ) -> Sequence[tuple[str, str, Any]]:
        """The pending writes of a checkpoint: task, channel and value."""
        read = self._run(
            outline_ops.read_pending(self._key(thread_id), namespace, checkpoint, **self._tools)
        )
        return [
            (write.task, write.channel, self._saver.codec.load_value(write.value)) for write in read
        ]

    def value(self, thread_id: str, checkpoint: str, channel: str, namespace: str = "") -> Any:
        """What one channel holds, whole."""
        packed = self._run(
            outline_ops.read_channel(
                self._key(thread_id), namespace, checkpoint, channel, **self._tools
            )
        )
        return None if packed is None else self._saver.codec.load_value(packed)

    def part(
        self, thread_id: str, checkpoint: str, channel: str, path: Path, namespace: str = ""
    ) -> Any:
        """The value at a path of a channel; of a list of messages, only those needed are built."""
        read = self._step(thread_id, checkpoint, namespace)
        ref = None if read is None else read.refs.get(channel)
        if ref is None or not outline_ops.is_list(ref):
            return super().part(thread_id, checkpoint, channel, path, namespace)
        if not path:
            last = self._list(thread_id, checkpoint, -LAST_SHOWN, LAST_SHOWN, namespace, channel)
            return MessageList(last.total, last.messages)
        place = self._place_of(thread_id, checkpoint, channel, path[0], namespace)
        if place is None:
            return None
        single = self._list(thread_id, checkpoint, place, 1, namespace, channel)
        return part_of(single.messages, (0, *path[1:]))

    def differing(
        self, thread_id: str, checkpoint: str, other: str, channel: str, namespace: str = ""
    ) -> tuple[int, Any, Any]:
        """A channel's values in two checkpoints; messages that both begin with are not read."""
        steps = [self._step(thread_id, name, namespace) for name in (other, checkpoint)]
        refs = [None if step is None else step.refs.get(channel) for step in steps]
        lists = [ref for ref in refs if ref is not None and outline_ops.is_list(ref)]
        if len(lists) < 2:
            return super().differing(thread_id, checkpoint, other, channel, namespace)
        first = outline_ops.common_length(*lists)
        old, new = (
            self._list(thread_id, name, first, LONGEST_LIST, namespace, channel).messages
            for name in (other, checkpoint)
        )
        return first, old, new

    def comparer(
        self, thread_id: str, checkpoint: str, channel: str, path: Path, namespace: str = ""
    ) -> Callable[[str], bool]:
        """A function that says whether another checkpoint has the same value at the path.

        Versions and message numbers are compared where they tell.
        """
        here = self._step(thread_id, checkpoint, namespace)
        ref = here.refs.get(channel) if here is not None else None
        if here is None or ref is None:
            return lambda name: (
                (step := self._step(thread_id, name, namespace)) is not None
                and channel not in step.refs
            )
        if not path:
            version = here.versions.get(channel)
            return lambda name: (
                (step := self._step(thread_id, name, namespace)) is not None
                and step.versions.get(channel) == version
            )
        place = None
        if outline_ops.is_list(ref):
            place = self._place_of(thread_id, checkpoint, channel, path[0], namespace)
        if place is not None:
            number = outline_ops.number_of(ref, place)
            return lambda name: (
                (step := self._step(thread_id, name, namespace)) is not None
                and outline_ops.names_message(step.refs.get(channel), number)
            )
        part = self.part(thread_id, checkpoint, channel, path, namespace)
        known = {here.versions.get(channel): True}

        def same(name: str) -> bool:
            step = self._step(thread_id, name, namespace)
            version = None if step is None else step.versions.get(channel)
            if version not in known:
                known[version] = self.part(thread_id, name, channel, path, namespace) == part
            return known[version]

        return same

    def _step(self, thread_id: str, checkpoint: str, namespace: str) -> outline_ops.StepRead | None:
        op = outline_ops.read_steps(self._key(thread_id), namespace, [checkpoint], **self._tools)
        return self._run(op).get(checkpoint)  # type: ignore[no-any-return]

    def _place_of(
        self, thread_id: str, checkpoint: str, channel: str, key: str | int, namespace: str
    ) -> int | None:
        """The place of the last message with an id, or a place that is within the list."""
        if isinstance(key, int):
            total = self._list(thread_id, checkpoint, 0, 0, namespace, channel).total
            return key if 0 <= key < total else None
        place: int | None = self._run(
            outline_ops.find_place(
                self._key(thread_id), namespace, checkpoint, channel, key, **self._tools
            )
        )
        return place

    def close(self) -> None:
        """Close the database; idempotent."""
        self._saver.close()

    # -- parts -------------------------------------------------------------------------------------

    def _run(self, op: Operation[Any]) -> Any:
        return self._saver.log.run(op, write=False)

    @property
    def _tools(self) -> dict[str, Any]:
        return {"caches": self._saver.log.caches, "codec": self._saver.codec}

    def _key(self, thread_id: str) -> ThreadKey:
        return ThreadKey(thread_id, self._saver.owner)


def _wanted(listing: Listing, by: TextFilter) -> Any:
    """A listing in the words of `Threads.list`."""
    asked: dict[str, Any] = {
        "owner": listing.owner,
        "tag": listing.tag,
        "tool": listing.tool,
        by: listing.text,
        "waiting_for": listing.waiting,
        "since": listing.since,
    }
    return {"status": listing.status} | {name: value for name, value in asked.items() if value}


def _listed(thread: ThreadInfo, standing: Standing) -> ListedThread:
    return ListedThread(
        id=thread.id,
        title=thread.title,
        owner=thread.owner,
        archived=thread.status == "archived",
        created_at=thread.created_at,
        used_at=thread.updated_at,
        messages=thread.messages,
        tokens=thread.tokens,
        size=thread.stored_messages,
        waiting_for=thread.waiting_for or ("an answer" if standing == "waiting" else None),
        standing=standing,
        tool=thread.tool,
        tags=thread.tags,
        forked_from=thread.forked_from,
    )


def _cost(read: outline_ops.CostRead) -> MessageCost:
    cost = MessageCost(role_of(read.role), read.tokens, read.size)
    if read.fields is not None:
        fields = {_NAMES.get(key, key): value for key, value in read.fields.items()}
        cost.role = role_named(fields["type"]) if read.role is None else cost.role
        cost.spent = spent_in(fields) if cost.role == "agent" else None
    return cost


def _source_of(label: bytes) -> str:
    try:
        source = json.loads(label).get("source")
    except (ValueError, AttributeError):
        return ""
    return source if isinstance(source, str) else ""


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
