"""`Site` holds what all pages share: database, templates, access and responses."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from importlib import resources
from typing import Annotated, Any, Final, TypeAlias
from urllib.parse import urlencode

from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, Response
from fastapi.routing import APIRoute
from jinja2 import Environment, PackageLoader, StrictUndefined

from langmem_ext.errors import (
    DamagedRow,
    InvalidInput,
    LangmemExtError,
    ThreadBusy,
    ThreadNotFound,
    logged,
)
from langmem_ext.inspector.answering import Answering
from langmem_ext.inspector.security import HEADERS, Guard, Refused
from langmem_ext.inspector.sources.source import Source
from langmem_ext.messages.escapes import MISLEADING, as_escape, legible

_TAG_OR_MISLEADING: Final = re.compile(f"<[^>]*>|[{MISLEADING}]")
"""In a text and in an attribute, `<` and `>` are escaped."""

NAME: Final = "langmem_inspector_"
"""How the names of its routes begin."""

STATIC: Final[Mapping[str, str]] = {
    "inspector.css": "text/css",
    "inspector.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}

THEMES: Final = ("light", "dark")
"""What a reader may have chosen; otherwise their system decides."""

_log = logging.getLogger(__name__)

Owner = Callable[[Request], str | None]


@dataclass(frozen=True, slots=True)
class Site:
    """What all pages share.

    Attributes:
        source: The database.
        guard: Decides which requests are answered.
        answering: Runs the graph; None where none is named.
        owner: Says whose threads a request may see; None: everybody's.
        may_reveal: Whether who looks may have sensitive values shown.
        prices: What models cost, by name: a million prompt tokens and a million completion tokens.
        note: A line above all pages.
    """

    source: Source
    guard: Guard
    answering: Answering | None = None
    owner: Owner | None = None
    may_reveal: bool = False
    prices: Mapping[str, tuple[Decimal, Decimal]] | None = None
    note: str = ""
    templates: Environment = field(default_factory=lambda: _environment())

    def source_for(self, request: Request) -> Source:
        """The database as a request may see it."""
        return self.source if self.owner is None else self.source.for_owner(self.owner(request))

    def revealed(self, request: Request) -> bool:
        """Whether sensitive values are shown: they may be, and this request asks for it."""
        return self.may_reveal and request.query_params.get("reveal") == "1"

    def links(self, request: Request) -> Callable[..., str]:
        """Gives the address of a page, by its name and what it is asked for."""
        revealed = self.revealed(request)
        place_of = cache(lambda name: request.url_for(NAME + name).path)

        def link(name: str, **query: object) -> str:
            kept = {
                key: str(value) for key, value in query.items() if value not in (None, "", False)
            }
            if revealed and "reveal" not in query and name not in ("threads", "search"):
                kept["reveal"] = "1"
            place: str = place_of(name)
            return f"{place}?{urlencode(kept)}" if kept else place

        return link

    def asset(self, request: Request, name: str) -> str:
        """The address of a file that comes with the pages; another one for each of its versions."""
        return f"{request.url_for(NAME + 'static', name=name).path}?v={asset_of(name)[1]}"

    def page(
        self, request: Request, template: str, code: int = 200, **context: Any
    ) -> HTMLResponse:
        """A page."""
        source = self.source
        shared = {
            "url": self.links(request),
            "asset": lambda name: self.asset(request, name),
            "place": source.place,
            "kind": source.kind,
            "writable": source.writable,
            "searchable": source.searchable,
            "can_answer": self.answering is not None and source.writable,
            "may_reveal": self.may_reveal,
            "revealed": self.revealed(request),
            "token": self.guard.token,
            "note": self.note,
            "now": datetime.now(UTC),
            "theme": theme if (theme := request.cookies.get("theme")) in THEMES else "",
        }
        return self._response(template, code, shared | context)

    def _response(self, template: str, code: int, context: Mapping[str, Any]) -> HTMLResponse:
        """Misleading characters are shown as escapes; in attributes, forms give them back."""
        text = self.templates.get_template(template).render(context)
        if text != legible(text):
            text = _TAG_OR_MISLEADING.sub(
                lambda found: found[0] if found[0][0] == "<" else as_escape(found), text
            )
        return HTMLResponse(text, code)

    def error_page(self, request: Request, status: int, title: str, why: str) -> Response:
        """A page that says what is wrong."""
        if request.query_params.get("part"):
            return self._response("parts/refused.html", status, {"title": title, "why": why})
        return self.page(request, "error.html", status, title=title, why=why, status=status)

    def route_class(self) -> type[APIRoute]:
        """Routes that answer only whom the guard lets in, and whose errors are pages."""
        site = self

        class PageRoute(APIRoute):
            def get_route_handler(self) -> Callable[[Request], Any]:
                handler = super().get_route_handler()

                async def answer(request: Request) -> Response:
                    request.state.inspector = site
                    response = await site.respond(handler, request)
                    for name, value in HEADERS.items():
                        response.headers[name] = value
                    response.headers.setdefault("Cache-Control", "no-store")
                    return response

                return answer

        return PageRoute

    async def respond(self, handler: Callable[[Request], Any], request: Request) -> Response:
        """What a handler answers, or a page that says why it does not."""
        try:
            self.guard.check(request)
            response: Response = await handler(request)
            return response
        except Refused as error:
            failure = error.status, "Refused", error.why
        except RequestValidationError:
            why = "the address lacks what the page needs: go back, and follow a link"
            failure = 400, "Incomplete address", why
        except LangmemExtError as error:
            failure = _status_of(error), _title_of(error), str(error)
        except Exception as error:
            _log.error("a page of the inspector failed", exc_info=logged(error))
            why = f"the page could not be made ({type(error).__name__}); the log says more"
            failure = 500, "Something failed", why
        return await run_in_threadpool(self.error_page, request, *failure)  # templates are files


async def _site_of(request: Request) -> Site:
    site: Site = request.state.inspector
    return site


AtSite: TypeAlias = Annotated[Site, Depends(_site_of)]
"""What all pages share, for a route."""


def _status_of(error: LangmemExtError) -> int:
    if isinstance(error, ThreadNotFound):
        return 404
    return 400 if isinstance(error, InvalidInput) else 409 if isinstance(error, ThreadBusy) else 500


def _title_of(error: LangmemExtError) -> str:
    if isinstance(error, ThreadNotFound):
        return "Not found"
    return (
        "Damaged"
        if isinstance(error, DamagedRow)
        else "Busy"
        if isinstance(error, ThreadBusy)
        else "Not possible"
    )


@cache
def asset_of(name: str) -> tuple[bytes, str]:
    """A file that comes with the pages, and what tells its versions apart."""
    body = (resources.files("langmem_ext.inspector") / "static" / name).read_bytes()
    return body, hashlib.sha256(body).hexdigest()[:12]


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("langmem_ext.inspector"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "ago": ago,
        "moment": moment,
        "number": number,
        "size": size,
        "short_id": short_id,
    }
    return environment


_SPANS: Final = ((31_536_000, "y"), (86_400, "d"), (3_600, "h"), (60, "min"))


def ago(then: datetime | None, now: datetime) -> str:
    """How long ago a moment was, in one unit.

    >>> ago(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC))
    '2 d ago'
    """
    if then is None:
        return ""
    seconds = (now - then).total_seconds()
    return next(
        (f"{seconds // span:.0f} {unit} ago" for span, unit in _SPANS if seconds >= span),
        "just now",
    )


def moment(then: datetime | None) -> str:
    """A moment as a machine reads it; the page shows it in the reader's own time zone."""
    return "" if then is None else then.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def number(count: float | None) -> str:
    """A number with commas; a dash for one that is not known."""
    return "–" if count is None else f"{count:,.0f}"


def size(count: int | None) -> str:
    """Bytes in a few characters.

    >>> size(1_234_567)
    '1.2 MB'
    """
    if count is None:
        return "–"
    value = float(count)
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


def short_id(name: str) -> str:
    """The beginning of an id that a machine has made; another one as it is.

    >>> short_id("0b3c1d6e-52d3-4b6f-a0a3-61a4a5d3c0de"), short_id("order-17")
    ('0b3c1d6e', 'order-17')
    """
    is_made = len(name) == 36 and name.count("-") == 4
    return name[:8] if is_made else name if len(name) <= 40 else f"{name[:39]}…"
