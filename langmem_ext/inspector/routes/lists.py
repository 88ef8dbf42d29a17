"""The list of threads, the search, and the files that come with the pages."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from langmem_ext.errors import ThreadNotFound
from langmem_ext.inspector.site import NAME, STATIC, AtSite, asset_of
from langmem_ext.inspector.sources.source import ORDERS, Listing, Order

AGES: Final[Mapping[str, timedelta]] = {
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(days=7),
}

USUAL: Final = {("status", "active"), ("order", "used")}
"""What a list shows that nothing was asked of."""


def add_lists(router: APIRouter) -> None:
    """Add the routes."""
    router.add_api_route("/", threads, name=NAME + "threads")
    router.add_api_route("/search", search, name=NAME + "search")
    router.add_api_route("/static/{name}", static, name=NAME + "static")


def threads(
    site: AtSite,
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
    """A page of threads."""
    asked = {"q": q, "waiting": waiting, "owner": owner, "tag": tag, "tool": tool}
    asked |= {"age": age, "status": status, "order": order}
    sorted_by: Order = next((name for name in ORDERS if name == order), "used")
    listing = Listing(
        text=q.strip(),
        waiting=waiting.strip(),
        owner=owner.strip(),
        tag=tag.strip(),
        tool=tool.strip(),
        status=None if status == "all" else "archived" if status == "archived" else "active",
        since=datetime.now(UTC) - AGES[age] if age in AGES else None,
        order=sorted_by,
        after=after,
    )
    source = site.source_for(request)
    return site.page(
        request,
        "threads.html",
        page=source.threads(listing),
        asked={key: value for key, value in asked.items() if value and (key, value) not in USUAL},
        listing=listing,
        age=age,
        status=status,
        unit=source.size_unit,
    )


def search(site: AtSite, request: Request, q: str = "", thread: str | None = None) -> Response:
    """Messages that have all words of a text."""
    hits = site.source_for(request).search(q, thread) if q.strip() else []
    return site.page(request, "search.html", q=q, hits=hits, thread=thread)


def static(name: str) -> Response:
    """A file that comes with the pages; there are no others."""
    if name not in STATIC:
        raise ThreadNotFound("there is no such file")
    body, _ = asset_of(name)
    return Response(
        body,
        media_type=STATIC[name],
        headers={"Cache-Control": "private, max-age=31536000, immutable"},
    )
