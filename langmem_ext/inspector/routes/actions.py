"""What changes a thread, or makes one."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse, Response

from langmem_ext.errors import StaleAnswer
from langmem_ext.inspector.answering import Answering
from langmem_ext.inspector.routes.look import look
from langmem_ext.inspector.routes.thread import conversation_page
from langmem_ext.inspector.security import Refused
from langmem_ext.inspector.site import NAME, AtSite, Site


def add_actions(router: APIRouter) -> None:
    """Add the routes."""
    for name, action in {"fork": fork, "reply": reply, "replay": replay}.items():
        router.add_api_route(f"/thread/{name}", action, methods=["POST"], name=NAME + name)


async def fork(site: AtSite, request: Request) -> Response:
    """Copy a thread up to a step."""
    form = await site.guard.form(request)
    source = site.source_for(request)
    copy = await run_in_threadpool(source.fork, form.get("id", ""), form.get("at") or None)
    return _redirect(site.links(request)("thread", id=copy))


async def reply(site: AtSite, request: Request) -> Response:
    """Deliver an answer or a message."""
    form = await site.guard.form(request)
    thread_id = await _visible_thread_id(site, request, form)
    try:
        await _answering(site).reply(thread_id, form.get("text", ""), form.get("interrupt_id"))
    except StaleAnswer:
        return await run_in_threadpool(_as_it_is, site, request, thread_id)
    return _redirect(site.links(request)("thread", id=form["id"]) + "#latest")


async def replay(site: AtSite, request: Request) -> Response:
    """Run a thread again from one of its steps."""
    form = await site.guard.form(request)
    thread_id = await _visible_thread_id(site, request, form)
    text = (form.get("text") or "").strip() or None
    try:
        await _answering(site).replay(thread_id, form.get("at", ""), text, form.get("interrupt_id"))
    except StaleAnswer:
        return await run_in_threadpool(_as_it_is, site, request, thread_id)
    return _redirect(site.links(request)("thread", id=form["id"]) + "#latest")


def _answering(site: Site) -> Answering:
    if site.answering is None or not site.source.writable:
        raise Refused(
            409,
            "no graph is named that could answer: start with `langmem-ext inspect --graph"
            " FILE.py:NAME`",
        )
    return site.answering


async def _visible_thread_id(site: Site, request: Request, form: Mapping[str, str]) -> str:
    """The thread that a form names, if who sends it may see it."""
    thread = await run_in_threadpool(site.source_for(request).thread, form.get("id", ""))
    return thread.id


def _as_it_is(site: Site, request: Request, thread_id: str) -> Response:
    """The thread with what waits now, for a message that was to answer something else."""
    notice = "Your message was not sent. What waits has changed since you opened the page."
    return conversation_page(look(site, request, thread_id), code=409, notice=notice)


def _redirect(path: str) -> Response:
    return RedirectResponse(path, status_code=303)
