"""`Facts`: what an owner said that lasts, across threads; no model is needed.

A fact is added and never changed. It records when it was said and the messages that are its
sources. A later fact on the same subject supersedes the earlier ones, which remain readable. Which
fact is valid follows from their times alone, so two writers need not know of each other, and when a
fact is deleted, the one before it is valid again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from langgraph.store.base import BaseStore, Item, Op, PutOp, SearchItem, SearchOp

from langmem_ext._internal import html
from langmem_ext.errors import InvalidInput
from langmem_ext.log.message_log import owner_key, require_storable, thread_key
from langmem_ext.memory.calls import Call, Steps, arun, run
from langmem_ext.memory.items import (
    PAGE,
    ROOT,
    Namespace,
    OwnedStores,
    items_below,
    label_of,
    with_sources,
)
from langmem_ext.storage.rows.clock import moment_of, now_ms
from langmem_ext.store.operations import SourceThread
from langmem_ext.threads.rows import ThreadId

LONGEST: Final = 2_000
"""The maximum length of a fact, and of its subject, in characters."""

_ONE_SUBJECT: Final = 10_000
"""How many facts on one subject are compared to find the valid one."""

_SEARCHED: Final = ["text", "subject"]


@dataclass(frozen=True, slots=True, order=True)
class FactSource:
    """A message that is the source of a fact.

    Attributes:
        thread_id: Its thread.
        message_id: Its id.
    """

    thread_id: str
    message_id: str


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that an owner said.

    Attributes:
        id: Its id.
        text: What was said.
        subject: What it is about; a later fact on the same subject supersedes it. None: it
            belongs to no subject.
        said_at: When it was said; with a time zone.
        sources: The messages it comes from.
        superseded_by: The id of the fact that is valid instead; None if this one is valid.
        score: How well it matches the query, if the store can tell.
    """

    id: str
    text: str
    subject: str | None
    said_at: datetime
    sources: tuple[FactSource, ...] = ()
    superseded_by: str | None = None
    score: float | None = None

    def _repr_html_(self) -> str:
        rows = [
            ("about", self.subject),
            ("said", self.said_at),
            (
                "from",
                tuple(f"{source.thread_id} / {source.message_id}" for source in self.sources),
            ),
            ("holds", self.superseded_by is None),
        ]
        return html.titled(self.text, html.table(row for row in rows if row[1] not in (None, ())))

    @classmethod
    def new(
        cls, text: str, subject: str | None, said_at: datetime, sources: Iterable[FactSource]
    ) -> Fact:
        """A fact whose id follows from its content and sources.

        The same fact, remembered again, has the same id.

        Raises:
            InvalidInput: A part of it is invalid.
        """
        text, subject = (
            checked_text(text, "a fact"),
            None if subject is None else checked_text(subject, "a subject"),
        )
        if not isinstance(said_at, datetime) or said_at.tzinfo is None:
            raise InvalidInput(f"said_at is a datetime with its time zone, not {said_at!r}")
        stands_on = tuple(
            sorted(
                {FactSource(thread_key(source.thread_id), source.message_id) for source in sources}
            )
        )
        key = [
            text,
            subject_key(subject),
            said_at.timestamp(),
            [[source.thread_id, source.message_id] for source in stands_on],
        ]
        name = hashlib.blake2b(json.dumps(key).encode(), digest_size=12).hexdigest()
        return cls(name, text, subject, said_at, stands_on)

    def value(self) -> dict[str, Any]:
        """As the store has it."""
        sources = [
            {"thread_id": source.thread_id, "message_id": source.message_id}
            for source in self.sources
        ]
        said_at = self.said_at.isoformat()
        return {
            "text": self.text,
            "subject": self.subject,
            "key": subject_key(self.subject),
            "said_at": said_at,
            "sources": sources,
        }


class Facts:
    """What an owner said that lasts.

    Args:
        store: Where the facts are: any LangGraph store. How well it searches decides what `recall`
            finds.
        owner: The owner of the facts; None: no owner.
        namespace: The namespace of the store that they are below.

    Raises:
        InvalidInput: The owner is no name.

    Example:
        `Facts(store, owner="ann").remember("Lives in Oslo", subject="home city")`
    """

    def __init__(
        self, store: BaseStore, *, owner: str | None = None, namespace: Namespace = ROOT
    ) -> None:
        self.owner = owner_key(owner)
        self.store = OwnedStores(store).of(self.owner)
        self.place: Namespace = (*namespace, "facts", label_of(self.owner))

    def remember(
        self,
        text: str,
        *,
        subject: str | None = None,
        said_at: datetime | None = None,
        sources: Iterable[FactSource] = (),
    ) -> Fact:
        """Add a fact; repeating it with the same time and sources adds nothing.

        Args:
            text: What was said.
            subject: What it is about, in a few words: letters' case and spaces make no difference.
            said_at: When it was said, with its time zone; now by default.
            sources: The messages it comes from. It is deleted with the last of their threads.

        Raises:
            InvalidInput: An argument is invalid.
        """
        fact = Fact.new(text, subject, said_at or moment_of(now_ms()), sources)
        return run(self._remember(fact))

    async def aremember(
        self,
        text: str,
        *,
        subject: str | None = None,
        said_at: datetime | None = None,
        sources: Iterable[FactSource] = (),
    ) -> Fact:
        """Async twin of `remember`."""
        fact = Fact.new(text, subject, said_at or moment_of(now_ms()), sources)
        return await arun(self._remember(fact))

    def recall(
        self,
        query: str | None = None,
        *,
        subject: str | None = None,
        limit: int = 10,
        superseded: bool = False,
    ) -> list[Fact]:
        """Facts, best match first; without a query, latest first.

        Args:
            query: What to look for, in words.
            subject: Only those on this subject.
            limit: The maximum number.
            superseded: Include superseded facts; each names the fact that supersedes it.

        Raises:
            InvalidInput: An argument is invalid.
        """
        return run(self._recall(query, subject, _checked_limit(limit), superseded))

    async def arecall(
        self,
        query: str | None = None,
        *,
        subject: str | None = None,
        limit: int = 10,
        superseded: bool = False,
    ) -> list[Fact]:
        """Async twin of `recall`."""
        return await arun(self._recall(query, subject, _checked_limit(limit), superseded))

    def forget(self, *fact_ids: str) -> int:
        """Delete facts; returns how many there were."""
        return run(self._forget(fact_ids))

    async def aforget(self, *fact_ids: str) -> int:
        """Async twin of `forget`."""
        return await arun(self._forget(fact_ids))

    def forget_thread(self, thread_id: ThreadId) -> int:
        """Delete the facts whose only source is this thread; others keep their other sources.

        Returns:
            How many were deleted.
        """
        return run(remove_sources(self.store, self.place, {thread_key(thread_id)}))

    async def aforget_thread(self, thread_id: ThreadId) -> int:
        """Async twin of `forget_thread`."""
        return await arun(remove_sources(self.store, self.place, {thread_key(thread_id)}))

    # -- steps -------------------------------------------------------------------------------------

    def adding(self, fact: Fact, begun: int | None = None) -> PutOp:
        """The operation that adds a fact, for a batch.

        Args:
            fact: The fact.
            begun: When its source threads began, in Unix milliseconds, if known.
        """
        put = PutOp(self.place, fact.id, fact.value(), index=_SEARCHED)
        return with_sources(self.store, put, _source_threads(fact.value()["sources"], begun))

    def _remember(self, fact: Fact) -> Steps[Fact]:
        yield Call(self.store, "batch", [self.adding(fact)])
        return (yield from self._dated([fact]))[0]

    def _recall(
        self, query: str | None, subject: str | None, limit: int, superseded: bool
    ) -> Steps[list[Fact]]:
        wanted = (
            {}
            if subject is None
            else {"filter": {"key": subject_key(checked_text(subject, "a subject"))}}
        )
        if query is None:
            items = yield from items_below(self.store, self.place, **wanted)
            facts = sorted(facts_in(items), key=_when, reverse=True)
            dated = yield from self._dated(facts)
            return [fact for fact in dated if superseded or fact.superseded_by is None][:limit]
        recalled: list[Fact] = []
        offset = 0
        while len(recalled) < limit:
            page = yield Call(
                self.store, "search", self.place, query=query, limit=PAGE, offset=offset, **wanted
            )
            dated = yield from self._dated(facts_in(page))
            recalled += [fact for fact in dated if superseded or fact.superseded_by is None]
            offset += PAGE
            if len(page) < PAGE:
                break
        return recalled[:limit]

    def _dated(self, facts: list[Fact]) -> Steps[list[Fact]]:
        """The facts, each with the one that supersedes it."""
        keys = [
            key
            for key in dict.fromkeys(subject_key(fact.subject) for fact in facts)
            if key is not None
        ]
        reads: list[Op] = [
            SearchOp(self.place, {"key": key}, _ONE_SUBJECT, refresh_ttl=False) for key in keys
        ]
        answers: list[list[SearchItem]] = (yield Call(self.store, "batch", reads)) if reads else []
        latest = {
            key: max(held, key=_when).id
            for key, items in zip(keys, answers, strict=True)
            if (held := facts_in(items))
        }
        holding = [latest.get(subject_key(fact.subject) or "", fact.id) for fact in facts]
        return [
            replace(fact, superseded_by=None if last == fact.id else last)
            for fact, last in zip(facts, holding, strict=True)
        ]

    def _forget(self, fact_ids: Collection[str]) -> Steps[int]:
        items = []
        for fact_id in dict.fromkeys(fact_ids):
            items.append((yield Call(self.store, "get", self.place, fact_id)))
        there: list[Op] = [PutOp(self.place, item.key, None) for item in items if item is not None]
        if there:
            yield Call(self.store, "batch", there)
        return len(there)


def remove_sources(store: BaseStore, place: Namespace, gone: Collection[str]) -> Steps[int]:
    """Take threads away from under the facts of a namespace, and delete those that lose all.

    Returns:
        How many were deleted.
    """
    items = yield from items_below(store, place)
    writes: list[Op] = []
    deleted = 0
    for item in items:
        sources = item.value.get("sources") or []
        left = [source for source in sources if source["thread_id"] not in gone]
        if len(left) == len(sources):
            continue
        deleted += not left
        value = {**item.value, "sources": left} if left else None
        put = PutOp(item.namespace, item.key, value, index=_SEARCHED)
        writes.append(with_sources(store, put, _source_threads(left)))
    if writes:
        yield Call(store, "batch", writes)
    return deleted


def _source_threads(
    sources: Iterable[Mapping[str, str]], begun: int | None = None
) -> list[SourceThread]:
    return [SourceThread(source["thread_id"], begun) for source in sources]


def facts_in(items: Iterable[Item]) -> list[Fact]:
    """The facts that items hold; other items are skipped."""
    facts = []
    for item in items:
        value: Mapping[str, Any] = item.value
        try:
            sources = tuple(
                FactSource(source["thread_id"], source["message_id"]) for source in value["sources"]
            )
            said_at = datetime.fromisoformat(value["said_at"])
            facts.append(
                Fact(
                    item.key,
                    value["text"],
                    value["subject"],
                    said_at,
                    sources,
                    score=getattr(item, "score", None),
                )
            )
        except (KeyError, TypeError, ValueError):
            continue
    return facts


def subject_key(subject: str | None) -> str | None:
    """A subject as subjects are compared.

    >>> subject_key("  Home   City ")
    'home city'
    """
    return None if subject is None else " ".join(subject.split()).casefold()


def checked_text(text: str, what: str) -> str:
    """A text in one line.

    Raises:
        InvalidInput: It is not text, empty, too long, or cannot be stored.
    """
    line = " ".join(text.split()) if isinstance(text, str) else ""
    if not line or len(line) > LONGEST:
        raise InvalidInput(f"{what} is a text of 1 to {LONGEST:,} characters")
    require_storable(line, what)
    return line


def _when(fact: Fact) -> tuple[datetime, str]:
    return fact.said_at, fact.id


def _checked_limit(limit: int) -> int:
    if type(limit) is not int or limit < 1:
        raise InvalidInput(f"limit is how many facts, at least 1, not {limit!r}")
    return limit
