"""A thread as a page looks at it: as it stands, or at one of its checkpoints."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, TypeAlias

from fastapi import Depends, Query, Request
from fastapi.responses import Response
from langchain_core.messages import BaseMessage

from langmem_ext.errors import ThreadNotFound
from langmem_ext.inspector.site import AtSite, Site
from langmem_ext.inspector.sources.source import OPEN, ListedThread, Source, Step, StepFacts
from langmem_ext.inspector.views.masks import (
    DECLARED,
    HOLDERS,
    INPUTS,
    READS,
    WAITING,
    Masks,
    later_of,
)
from langmem_ext.inspector.views.question import Question, questions_in
from langmem_ext.inspector.views.timeline import Timeline, label_of, timeline_of, window_of
from langmem_ext.waiting.sensitive import KNOWN

ThreadId = Annotated[str, Query(alias="id")]
At = Annotated[str, Query()]
Namespace = Annotated[str, Query(alias="ns")]


@dataclass(frozen=True, slots=True)
class Look:
    """A thread as it is looked at.

    Attributes:
        site: What all pages share.
        request: The request.
        source: The database.
        thread: The thread.
        at: The checkpoint that is looked at.
        head: The newest one.
        namespace: That of a subgraph, or empty.
        steps: All checkpoints.
        facts: What those say that the timeline shows.
        timeline: The timeline.
        masks: What is hidden.
        questions: What waits at it.
    """

    site: Site
    request: Request
    source: Source
    thread: ListedThread
    at: str
    head: str
    namespace: str
    steps: Sequence[Step]
    facts: Mapping[str, StepFacts]
    timeline: Timeline
    masks: Masks
    questions: Sequence[Question]

    @property
    def step(self) -> Step:
        """The step that is looked at."""
        return next(step for step in self.steps if step.id == self.at)

    @property
    def channel(self) -> str:
        """The channel of its conversation; empty where there is none."""
        return self.source.conversation(self.thread.id, self.at, 0, 1, self.namespace).channel

    @property
    def messages(self) -> Sequence[BaseMessage]:
        """Its conversation, whole."""
        if not (channel := self.channel):
            return []
        messages: Sequence[BaseMessage] = self.source.value(
            self.thread.id, self.at, channel, self.namespace
        )
        return messages

    def page(self, template: str, tab: str, **shown: Any) -> Response:
        """A page of the thread.

        Args:
            template: What it is made of.
            tab: Which of the thread's pages it belongs to.
            shown: What it shows besides its frame.
        """
        open_now = self.at in self.facts and any(
            channel.startswith(OPEN) for channel in self.facts[self.at].held
        )
        return self.site.page(
            self.request,
            f"thread/{template}",
            tab=tab,
            thread=self.thread,
            at=self.at,
            head=self.head,
            ns=self.namespace,
            is_head=self.at == self.head,
            step=self.step,
            step_label=label_of(self.step, self.facts),
            step_at=self.facts[self.at].at if self.at in self.facts else None,
            timeline=self.timeline,
            questions=self.questions,
            unfinished=open_now,
            namespaces=self.source.namespaces(self.thread.id),
            unit=self.source.size_unit,
            **shown,
        )


def look(
    site: AtSite, request: Request, thread_id: ThreadId, at: At = "", ns: Namespace = ""
) -> Look:
    """Look at a thread: as it stands, or at one of its checkpoints.

    Raises:
        ThreadNotFound: There is no such thread, or no such checkpoint.
    """
    source = site.source_for(request)
    thread, steps, at = steps_of(source, thread_id, at, ns)
    head = steps[0].id
    shown = steps[window_of(steps, at)]
    wanted = dict.fromkeys(name for step in shown for name in (step.id, step.parent) if name)
    facts = source.facts(thread_id, [*wanted], ns)
    masks = masks_of(source, thread_id, {at}, head, ns, site.revealed(request))
    return Look(
        site=site,
        request=request,
        source=source,
        thread=thread,
        at=at,
        head=head,
        namespace=ns,
        steps=steps,
        facts=facts,
        timeline=timeline_of(steps, facts, at),
        masks=masks,
        questions=questions_in(source.pending(thread_id, at, ns), masks, waiting=at == head),
    )


AtLook: TypeAlias = Annotated[Look, Depends(look)]
"""The thread that a request asks for."""


def steps_of(
    source: Source, thread_id: str, at: str, namespace: str
) -> tuple[ListedThread, Sequence[Step], str]:
    """A thread, its steps, and the one that is looked at: the newest, if none is named.

    Raises:
        ThreadNotFound: There is no such thread, or no such step.
    """
    thread = source.thread(thread_id)
    steps = source.outline(thread_id, namespace)
    if not steps:
        raise ThreadNotFound(
            f"thread {thread_id!r} has no checkpoint{f' in {namespace!r}' if namespace else ''}:"
            " nothing was run on it"
        )
    at = at or steps[0].id
    if all(step.id != at for step in steps):
        raise ThreadNotFound(
            f"checkpoint {at!r} of thread {thread_id!r} not found: its timeline shows those that"
            " there are"
        )
    return thread, steps, at


def masks_of(
    source: Source,
    thread_id: str,
    checkpoints: Collection[str],
    head: str,
    namespace: str,
    revealed: bool,
) -> Masks:
    """What is hidden of a thread, by what it declares at any of some checkpoints.

    Args:
        source: The database.
        thread_id: The thread.
        checkpoints: Those that are shown.
        head: The newest one.
        namespace: That of a subgraph, or empty.
        revealed: Whether nothing is hidden.
    """
    masks, later = Masks(revealed=revealed), dict[str | None, BaseMessage]()
    facts = source.facts(thread_id, [*checkpoints, head], namespace)
    held = {name: facts[name].held if name in facts else READS for name in (*checkpoints, head)}

    def read(channel: str, name: str) -> object:
        return source.part(thread_id, head, channel, (name,), namespace)

    for at in held:
        only = (DECLARED, KNOWN, WAITING, *HOLDERS)
        masks |= Masks.of(source.values(thread_id, at, namespace, only=only))
        part = source.conversation(thread_id, at, -1, 1, namespace)
        later |= later_of(part.messages, held[at], partial(read, part.channel), held[head])
    begins = {*held[head]} <= {*INPUTS}
    return replace(masks, later=later, waits=masks.waits or begins)


def for_channel(masks: Masks, channel: str) -> Masks:
    """Masks for a channel; the one that declares sensitive parameters hides nothing.

    Its keys are the parameters' names.
    """
    return Masks(revealed=True) if channel == DECLARED else masks
