"""The routes of the inspector. Each asks the database for what its page shows, and shows it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Final, get_args

from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse, Response, StreamingResponse
from langgraph.pregel import Pregel

from langmem_ext.errors import InvalidInput, ThreadNotFound
from langmem_ext.inspector import bundle as bundles
from langmem_ext.inspector.answering import Answering
from langmem_ext.inspector.blame import blame
from langmem_ext.inspector.security import LOOPBACK, Guard, Refused
from langmem_ext.inspector.site import NAME, STATIC, Owner, Site, asset_of
from langmem_ext.inspector.sources.opening import source_of
from langmem_ext.inspector.sources.source import (
    OPEN,
    ORDERS,
    ListedThread,
    Listing,
    Order,
    Path,
    Source,
    Step,
    StepFacts,
)
from langmem_ext.inspector.views.context import EVENTS, request_of
from langmem_ext.inspector.views.conversation import conversation_of
from langmem_ext.inspector.views.masks import DECLARED, HOLDERS, WAITING, Masks
from langmem_ext.inspector.views.question import Question, questions_in
from langmem_ext.inspector.views.timeline import Timeline, label_of, timeline_of, window_of
from langmem_ext.inspector.views.usage import cost_of
from langmem_ext.inspector.views.values import CHANGES, Change, changes_between, tree_of
from langmem_ext.log.message_log import Database

MESSAGES: Final = 50
"""Messages of a conversation that a page shows."""

AGES: Final[Mapping[str, timedelta]] = {
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(days=7),
}

ThreadId = Annotated[str, Query(alias="id")]
At = Annotated[str, Query()]
Namespace = Annotated[str, Query(alias="ns")]


def inspector_router(
    database: Database | Source,
    *,
    graph: Pregel[Any, Any, Any, Any] | None = None,
    owner: Owner | None = None,
    hosts: Collection[str] | None = LOOPBACK,
    reveal: bool = False,
    prices: Mapping[str, tuple[Decimal, Decimal]] | None = None,
    note: str = "",
) -> APIRouter:
    """The inspector as a router, for `app.include_router(..., prefix="/langmem/ui")`.

    It shows every conversation of the database, so whoever mounts it elsewhere than on loopback
    decides who may see it: by dependencies of `include_router`, and by `owner`.

    Args:
        database: An open `DeltaSaver` or `MessageLog`, or a path or URL: of this package's, or of a
            `SqliteSaver` or a `PostgresSaver`, which is only read.
        graph: The graph that its threads are run with, compiled with a checkpointer of this
            database: questions can be answered then.
        owner: Says whose threads a request may see; None for everybody's.
        hosts: The names under which it may be asked for; None: the application checks the `Host`
            header.
        reveal: Whether who looks may have sensitive values shown.
        prices: What models cost, by name: a million prompt tokens and a million completion tokens.
        note: A line above all pages.

    Raises:
        StorageError: The database cannot be opened.
        InvalidInput: An argument is invalid.
    """
    answering = None if graph is None else Answering(graph)
    site = Site(source_of(database), Guard(hosts), answering, owner, reveal, prices, note)
    router = APIRouter(route_class=site.route_class(), include_in_schema=False)
    _add_lists(router, site)
    _add_thread(router, site)
    _add_looks(router, site)
    _add_actions(router, site)
    return router


# -- lists -----------------------------------------------------------------------------------------


def _add_lists(router: APIRouter, site: Site) -> None:
    """The list of threads, the search, and the files that come with the pages."""

    @router.get("/", name=NAME + "threads")
    def threads(
        request: Request,
        q: str = "",
        waiting: str = "",
        owner: str = "",
        tag: str = "",
        tool: str = "",
        age: str = "",
        status: str = "active",
        order: str = "used",
        after: str | None = None,
    ) -> Response:
        since = datetime.now(UTC) - AGES[age] if age in AGES else None
        sorted_by: Order = next((one for one in ORDERS if one == order), "used")
        shown = None if status == "all" else "archived" if status == "archived" else "active"
        listing = Listing(
            q.strip(),
            waiting.strip(),
            owner.strip(),
            tag.strip(),
            tool.strip(),
            shown,
            since,
            sorted_by,
            after,
        )
        source = site.source_for(request)
        asked = {
            "q": q,
            "waiting": waiting,
            "owner": owner,
            "tag": tag,
            "tool": tool,
            "age": age,
            "status": status,
            "order": order,
        }
        asked = {
            name: value for name, value in asked.items() if value and (name, value) not in _USUAL
        }
        page = source.threads(listing)
        return site.page(
            request,
            "threads.html",
            page=page,
            asked=asked,
            listing=listing,
            age=age,
            status=status,
            unit=source.size_unit,
        )

    @router.get("/search", name=NAME + "search")
    def search(request: Request, q: str = "", thread: str | None = None) -> Response:
        hits = site.source_for(request).search(q, thread) if q.strip() else []
        return site.page(request, "search.html", q=q, hits=hits, thread=thread)

    @router.get("/static/{name}", name=NAME + "static")
    def static(name: str) -> Response:
        if name not in STATIC:
            raise ThreadNotFound("there is no such file")
        body, _ = asset_of(name)
        return Response(
            body,
            media_type=STATIC[name],
            headers={"Cache-Control": "private, max-age=31536000, immutable"},
        )


_USUAL: Final = {("status", "active"), ("order", "used")}


# -- one thread ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Look:
    """A thread as it is looked at.

    Attributes:
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

    source: Source
    thread: ListedThread
    at: str
    head: str
    namespace: str
    steps: list[Step]
    facts: Mapping[str, StepFacts]
    timeline: Timeline
    masks: Masks
    questions: list[Question]

    @classmethod
    def of(cls, site: Site, request: Request, thread_id: str, at: str, namespace: str) -> _Look:
        """Look at a thread: as it stands, or at one of its checkpoints.

        Raises:
            ThreadNotFound: There is no such thread, or no such checkpoint.
        """
        source = site.source_for(request)
        thread = source.thread(thread_id)
        steps = list(source.outline(thread_id, namespace))
        if not steps:
            raise ThreadNotFound(
                f"thread {thread_id!r} has no"
                f" checkpoint{f' in {namespace!r}' if namespace else ''}: nothing was run on it"
            )
        head = steps[0].id
        at = at or head
        if all(step.id != at for step in steps):
            raise ThreadNotFound(
                f"checkpoint {at!r} of thread {thread_id!r} not found: its timeline shows those"
                " that there are"
            )
        shown = steps[window_of(steps, at)]
        wanted = dict.fromkeys(name for step in shown for name in (step.id, step.parent) if name)
        facts = source.facts(thread_id, [*wanted], namespace)
        masks = _masks(source, thread_id, {at, head}, namespace, site.revealed(request))
        return cls(
            source=source,
            thread=thread,
            at=at,
            head=head,
            namespace=namespace,
            steps=steps,
            facts=facts,
            timeline=timeline_of(steps, facts, at),
            masks=masks,
            questions=questions_in(
                source.pending(thread_id, at, namespace), masks, waiting=at == head
            ),
        )

    @property
    def step(self) -> Step:
        """The step that is looked at."""
        return next(step for step in self.steps if step.id == self.at)

    def context(self) -> dict[str, Any]:
        """What the frame of a thread's page shows."""
        return {
            "thread": self.thread,
            "at": self.at,
            "head": self.head,
            "ns": self.namespace,
            "is_head": self.at == self.head,
            "step": self.step,
            "step_label": label_of(self.step, self.facts),
            "step_at": self.facts[self.at].at if self.at in self.facts else None,
            "timeline": self.timeline,
            "questions": self.questions,
            "unfinished": (
                self.at in self.facts
                and any(one.startswith(OPEN) for one in self.facts[self.at].held)
            ),
            "namespaces": self.source.namespaces(self.thread.id),
            "unit": self.source.size_unit,
        }


def _steps_of(
    source: Source, thread_id: str, at: str, namespace: str
) -> tuple[ListedThread, list[Step], str]:
    """A thread, its steps, and the one that is looked at: the newest, if none is named.

    Raises:
        ThreadNotFound: There is no such thread, or no such step.
    """
    thread = source.thread(thread_id)
    steps = list(source.outline(thread_id, namespace))
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


def _masks(
    source: Source, thread_id: str, checkpoints: set[str], namespace: str, revealed: bool
) -> Masks:
    """What is hidden of a thread, by what it declares at any of some checkpoints."""
    names: set[str] = set()
    found: dict[tuple[str, str], None] = {}
    for checkpoint in checkpoints:
        masks = Masks.of(
            source.values(thread_id, checkpoint, namespace, only=(DECLARED, WAITING, *HOLDERS))
        )
        names |= masks.names
        found |= dict.fromkeys(masks.secrets)
    return Masks(frozenset(names), tuple(found), revealed)


def _add_thread(router: APIRouter, site: Site) -> None:
    """The conversation, the state and what a step changed."""

    @router.get("/thread", name=NAME + "thread")
    def conversation(
        request: Request,
        thread_id: ThreadId,
        at: At = "",
        ns: Namespace = "",
        before: int | None = None,
    ) -> Response:
        look = _Look.of(site, request, thread_id, at, ns)
        end = max(before, 0) if before is not None else None
        first = -MESSAGES if end is None else max(end - MESSAGES, 0)
        limit = MESSAGES if end is None else min(end, MESSAGES)
        part = look.source.conversation(thread_id, look.at, first, limit, ns)
        said = conversation_of(part, look.masks)
        return site.page(
            request, "conversation.html", tab="thread", said=said, part=part, **look.context()
        )

    @router.get("/thread/state", name=NAME + "state")
    def state(request: Request, thread_id: ThreadId, at: At = "", ns: Namespace = "") -> Response:
        look = _Look.of(site, request, thread_id, at, ns)
        values = look.source.values(thread_id, look.at, ns)
        inner = {name for name in values if name.startswith(("branch:", "join:", "__"))}
        trees = {
            name: tree_of(value, _for_channel(look.masks, name), name)
            for name, value in values.items()
        }
        own = {name: tree for name, tree in trees.items() if name not in inner}
        internal = {name: tree for name, tree in trees.items() if name in inner}
        return site.page(
            request, "state.html", tab="state", own=own, internal=internal, **look.context()
        )

    @router.get("/thread/changes", name=NAME + "changes")
    def changes(
        request: Request, thread_id: ThreadId, at: At = "", ns: Namespace = "", against: str = ""
    ) -> Response:
        look = _Look.of(site, request, thread_id, at, ns)
        other = against or look.step.parent
        shown = {look.at, look.head, *([other] if other else ())}
        masks = _masks(look.source, thread_id, shown, ns, site.revealed(request))
        found = _changes(replace(look, masks=masks), other)
        return site.page(
            request,
            "changes.html",
            tab="changes",
            changes=found[:CHANGES],
            more=len(found) > CHANGES,
            other=other,
            **look.context(),
        )


def _for_channel(masks: Masks, channel: str) -> Masks:
    """Masks for a channel; the one that declares sensitive parameters hides nothing.

    Its keys are the parameters' names.
    """
    return Masks(revealed=True) if channel == DECLARED else masks


def _changes(look: _Look, other: str | None) -> list[Change]:
    """The differences between the current checkpoint and another.

    A channel with one version in both has none.
    """
    names = [look.at, *([other] if other else [])]
    facts = look.source.facts(look.thread.id, names, look.namespace)
    if other and other not in {step.id for step in look.steps}:
        raise ThreadNotFound(
            f"checkpoint {other!r} not found: the timeline shows those that there are"
        )
    held = dict.fromkeys(channel for name in names if name in facts for channel in facts[name].held)
    found: list[Change] = []
    for channel in held:
        if channel.startswith(("branch:", "join:", "__")):
            continue
        versions = {facts[name].versions.get(channel) for name in names if name in facts}
        if len(names) == 2 and len(versions) == 1:
            continue
        before = (
            look.source.value(look.thread.id, other, channel, look.namespace) if other else None
        )
        after = look.source.value(look.thread.id, look.at, channel, look.namespace)
        found += changes_between(
            channel,
            _empty_like(after) if before is None else before,
            after,
            _for_channel(look.masks, channel),
        )
    return found


def _empty_like(value: Any) -> Any:
    """What a list or dict is compared with that was not there before."""
    return [] if isinstance(value, list) else {} if isinstance(value, dict) else None


# -- what else is asked of a thread ----------------------------------------------------------------


def _add_looks(router: APIRouter, site: Site) -> None:
    """Blame, context, usage and the bundle."""

    @router.get("/thread/blame", name=NAME + "blame")
    def blamed(
        request: Request,
        thread_id: ThreadId,
        channel: str,
        at: At = "",
        path: str = "[]",
        ns: Namespace = "",
        part: bool = False,
    ) -> Response:
        source = site.source_for(request)
        thread, steps, at = _steps_of(source, thread_id, at, ns)
        found = blame(source, thread_id, steps, at, channel, _path_of(path), ns)
        shown = {at, steps[0].id, *([found.step.parent] if found.step.parent else ())}
        masks = _for_channel(_masks(source, thread_id, shown, ns, site.revealed(request)), channel)
        hidden = any(map(masks.hides_name, found.path))
        before, value = (
            tree_of(one, masks, hidden=hidden and one is not None)
            for one in (found.before, found.value)
        )
        frame = (
            {"thread": thread, "head": steps[0].id, "ns": ns}
            if part
            else _Look.of(site, request, thread_id, at, ns).context()
        )
        template = "parts/blame.html" if part else "blame.html"
        return site.page(
            request,
            template,
            tab="state",
            blame=found,
            before=before,
            value=value,
            masks=masks,
            **frame,
        )

    @router.get("/thread/context", name=NAME + "context")
    def context(
        request: Request, thread_id: ThreadId, at: At = "", ns: Namespace = "", budget: str = ""
    ) -> Response:
        look = _Look.of(site, request, thread_id, at, ns)
        tokens = (
            int(budget)
            if budget.isascii() and budget.isdigit() and 0 < int(budget) <= 100_000_000
            else None
        )
        channel = look.source.conversation(thread_id, look.at, 0, 1, ns).channel
        messages = look.source.value(thread_id, look.at, channel, ns) if channel else []
        values = look.source.values(thread_id, look.at, ns, only=(EVENTS,))
        failed, sent = "", None
        try:
            sent = request_of(messages, values, look.masks, tokens)
        except InvalidInput as error:
            failed = str(error)
        except Exception as error:
            if tokens is None:
                raise
            failed = str(error)
        return site.page(
            request,
            "context.html",
            tab="context",
            sent=sent,
            failed=failed,
            budget=budget,
            **look.context(),
        )

    @router.get("/thread/usage", name=NAME + "usage")
    def usage(request: Request, thread_id: ThreadId, at: At = "", ns: Namespace = "") -> Response:
        look = _Look.of(site, request, thread_id, at, ns)
        channel = look.source.conversation(thread_id, look.at, 0, 1, ns).channel
        messages = look.source.value(thread_id, look.at, channel, ns) if channel else []
        return site.page(
            request,
            "usage.html",
            tab="usage",
            cost=cost_of(messages, site.prices),
            **look.context(),
        )

    @router.get("/thread/memory", name=NAME + "memory")
    def memory(request: Request, thread_id: ThreadId, at: At = "", ns: Namespace = "") -> Response:
        look = _Look.of(site, request, thread_id, at, ns)
        found = look.source.remembered(look.thread)
        tree = None if found.memory is None else tree_of(dict(found.memory.data), look.masks)
        channel = look.source.conversation(thread_id, look.at, 0, 1, ns).channel
        shown: dict[str, Any] = {
            "remembered": found,
            "tree": tree,
            "channel": channel,
            "masks": look.masks,
        }
        return site.page(request, "memory.html", tab="memory", **shown, **look.context())

    @router.get("/thread/bundle", name=NAME + "bundle")
    def bundle(request: Request, thread_id: ThreadId, what: str = "words") -> Response:
        if what not in get_args(bundles.What):
            raise InvalidInput(
                "a bundle is without words, or without what is marked: what=words or what=marked"
            )
        source = site.source_for(request)
        source.thread(thread_id)
        lines = bundles.bundle(source, thread_id, "marked" if what == "marked" else "words")
        name = bundles.file_name(thread_id)
        return StreamingResponse(
            lines,
            media_type="application/jsonl",
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )


def _path_of(text: str) -> Path:
    try:
        path = json.loads(text)
    except ValueError as error:
        raise InvalidInput("path is a JSON list of keys and places") from error
    if not isinstance(path, list) or not all(
        isinstance(key, str | int) and not isinstance(key, bool) for key in path
    ):
        raise InvalidInput("path is a JSON list of keys and places")
    return tuple(path)


# -- actions ---------------------------------------------------------------------------------------


def _add_actions(router: APIRouter, site: Site) -> None:
    """What changes a thread, or makes one."""

    @router.post("/thread/fork", name=NAME + "fork")
    async def fork(request: Request) -> Response:
        form = await site.guard.form(request)
        source = site.source_for(request)
        copy = await run_in_threadpool(source.fork, form.get("id", ""), form.get("at") or None)
        return _see(site.path(request, "thread", id=copy))

    @router.post("/thread/reply", name=NAME + "reply")
    async def reply(request: Request) -> Response:
        form = await site.guard.form(request)
        await _graph(site).reply(await _seen(site, request, form), form.get("text", ""))
        return _see(site.path(request, "thread", id=form["id"]) + "#latest")

    @router.post("/thread/replay", name=NAME + "replay")
    async def replay(request: Request) -> Response:
        form = await site.guard.form(request)
        await _graph(site).replay(
            await _seen(site, request, form),
            form.get("at", ""),
            (form.get("text") or "").strip() or None,
        )
        return _see(site.path(request, "thread", id=form["id"]) + "#latest")


def _graph(site: Site) -> Answering:
    if site.answering is None or not site.source.writable:
        raise Refused(
            409,
            "no graph is named that could answer: start with `langmem-ext inspect --graph"
            " FILE.py:NAME`",
        )
    return site.answering


async def _seen(site: Site, request: Request, form: Mapping[str, str]) -> str:
    """The thread that a form names, if who sends it may see it."""
    thread = await run_in_threadpool(site.source_for(request).thread, form.get("id", ""))
    return thread.id


def _see(path: str) -> Response:
    return RedirectResponse(path, status_code=303)
