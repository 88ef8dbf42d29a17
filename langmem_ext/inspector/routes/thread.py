"""What is shown of one thread."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final, get_args

from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse
from langchain_core.messages import BaseMessage

from langmem_ext._internal.collector import without_collector
from langmem_ext.errors import ContextOverflow, InvalidInput, ThreadNotFound
from langmem_ext.inspector import bundle as bundles
from langmem_ext.inspector.routes.look import (
    At,
    AtLook,
    Look,
    Namespace,
    ThreadId,
    for_channel,
    look,
    masks_of,
    steps_of,
)
from langmem_ext.inspector.site import NAME, AtSite
from langmem_ext.inspector.sources.source import Path
from langmem_ext.inspector.views.blame import blame
from langmem_ext.inspector.views.context import EVENTS, MOST, request_of, whole_request
from langmem_ext.inspector.views.conversation import conversation_of
from langmem_ext.inspector.views.masks import Masks
from langmem_ext.inspector.views.usage import cost_of
from langmem_ext.inspector.views.values import CHANGES, Change, changes_between, tree_of

MESSAGES: Final = 50
"""Messages of a conversation that a page shows."""

INNER: Final = ("branch:", "join:", "__")
"""How LangGraph's own channels begin."""


def add_thread(router: APIRouter) -> None:
    """Add the routes."""
    router.add_api_route("/thread", conversation, name=NAME + "thread")
    pages: dict[str, Callable[..., Response]] = {
        "state": state,
        "changes": changes,
        "blame": blamed,
        "context": context,
    }
    pages |= {"usage": usage, "memory": memory, "bundle": bundle}
    for name, page in pages.items():
        router.add_api_route(f"/thread/{name}", page, name=NAME + name)


def conversation(look: AtLook, before: int | None = None) -> Response:
    """What was said."""
    return conversation_page(look, before)


def conversation_page(
    look: Look, before: int | None = None, *, code: int = 200, notice: str = ""
) -> Response:
    """The page of a conversation.

    Args:
        look: The thread.
        before: The place of the message before which it ends; None: with the last.
        code: The status.
        notice: What is said above the question that waits.
    """
    end = max(before, 0) if before is not None else None
    first = -MESSAGES if end is None else max(end - MESSAGES, 0)
    limit = MESSAGES if end is None else min(end, MESSAGES)
    part = look.source.conversation(look.thread.id, look.at, first, limit, look.namespace)
    messages = conversation_of(part, look.masks)
    shown: dict[str, Any] = {"messages": messages, "part": part, "notice": notice}
    return look.page("conversation.html", "thread", code=code, **shown)


def state(look: AtLook) -> Response:
    """What the channels hold."""
    trees = {
        name: tree_of(
            value,
            for_channel(look.masks, name),
            name,
            hidden=look.masks.hides_channel(name),
        )
        for name, value in look.source.values(look.thread.id, look.at, look.namespace).items()
    }
    own = {name: tree for name, tree in trees.items() if not name.startswith(INNER)}
    internal = {name: tree for name, tree in trees.items() if name.startswith(INNER)}
    return look.page("state.html", "state", own=own, internal=internal)


def changes(look: AtLook, against: str = "") -> Response:
    """What differs from the step before, or from another one."""
    other = against or look.step.parent
    if other and all(step.id != other for step in look.steps):
        raise ThreadNotFound(
            f"checkpoint {other!r} not found: the timeline shows those that there are"
        )
    shown = {look.at, *([other] if other else ())}
    masks = masks_of(
        look.source, look.thread.id, shown, look.head, look.namespace, look.masks.revealed
    )
    differences = _changes(look, masks, other)
    more = len(differences) > CHANGES
    return look.page(
        "changes.html", "changes", changes=differences[:CHANGES], more=more, other=other
    )


def _changes(look: Look, masks: Masks, other: str | None) -> list[Change]:
    """The differences between the current checkpoint and another.

    A channel with one version in both has none.
    """
    thread, source, space = look.thread.id, look.source, look.namespace
    names = [look.at, *([other] if other else [])]
    facts = source.facts(thread, names, space)
    held = dict.fromkeys(channel for name in names if name in facts for channel in facts[name].held)
    differences: list[Change] = []
    for channel in held:
        versions = {facts[name].versions.get(channel) for name in names if name in facts}
        if (
            channel.startswith(INNER)
            or masks.hides_channel(channel)
            or (len(names) == 2 and len(versions) == 1)
        ):
            continue
        first, before, after = (
            source.differing(thread, look.at, other, channel, space)
            if other
            else (0, None, source.value(thread, look.at, channel, space))
        )
        if before is None:  # what was not there before is compared with an empty one
            before = [] if isinstance(after, list) else {} if isinstance(after, dict) else None
        differences += changes_between(channel, before, after, for_channel(masks, channel), first)
    return differences


def blamed(
    site: AtSite,
    request: Request,
    thread_id: ThreadId,
    channel: str,
    at: At = "",
    path: str = "[]",
    ns: Namespace = "",
    part: bool = False,
) -> Response:
    """Who set a value: a page, or the part of one that is shown beside another page."""
    source = site.source_for(request)
    thread, steps, at = steps_of(source, thread_id, at, ns)
    origin = blame(source, thread_id, steps, at, channel, _path_of(path), ns)
    head, parent = steps[0].id, origin.step.parent
    shown = {at, *([parent] if parent else ())}
    masks = masks_of(source, thread_id, shown, head, ns, site.revealed(request))
    whole = source.part(thread_id, at, channel, origin.path[:1], ns) if origin.path[1:] else None
    hidden = (
        masks.hides_channel(channel)
        or any(map(masks.hides_name, origin.path))
        or (isinstance(whole, BaseMessage) and masks.hides_data(whole))
    )
    masks = for_channel(masks, channel)
    before, value = (
        tree_of(raw, masks, hidden=hidden and raw is not None)
        for raw in (origin.before, origin.value)
    )
    variables: dict[str, Any] = {"blame": origin, "before": before, "value": value, "masks": masks}
    if part:
        return site.page(request, "parts/blame.html", thread=thread, head=head, ns=ns, **variables)
    return look(site, request, thread_id, at, ns).page("blame.html", "state", **variables)


def context(look: AtLook, budget: str = "") -> Response:
    """What a model is sent, beside what is stored."""
    is_number = re.fullmatch(r"[0-9]{1,9}", budget) is not None
    tokens = int(budget) if is_number and 0 < int(budget) <= 100_000_000 else None
    place = look.thread.id, look.at
    values = look.source.values(*place, look.namespace, only=(EVENTS,))
    failed, sent = "", None
    if tokens is None and EVENTS not in values:
        part = look.source.conversation(*place, -MOST, MOST, look.namespace)
        sent = whole_request(part, look.source.costs(*place, look.namespace), look.masks)
    else:
        try:
            sent = without_collector(request_of, look.messages, values, look.masks, tokens)
        except (ContextOverflow, InvalidInput) as error:
            failed = str(error)
    return look.page("context.html", "context", sent=sent, failed=failed, budget=budget)


def usage(look: AtLook) -> Response:
    """What it costs."""
    costs = look.source.costs(look.thread.id, look.at, look.namespace)
    cost = without_collector(cost_of, costs, look.site.prices)
    return look.page("usage.html", "usage", cost=cost)


def memory(look: AtLook) -> Response:
    """What is remembered of it."""
    remembered = look.source.remembered(look.thread)
    tree = None if remembered.memory is None else tree_of(dict(remembered.memory.data), look.masks)
    shown = {"remembered": remembered, "tree": tree, "channel": look.channel, "masks": look.masks}
    return look.page("memory.html", "memory", **shown)


def bundle(site: AtSite, request: Request, thread_id: ThreadId, what: str = "words") -> Response:
    """A redacted export of it."""
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
