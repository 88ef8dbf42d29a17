"""Other hosts' names, other sites' forms and scripts in shown content are kept out.

Stored messages are hostile text. Templates escape everything, and the policy below lets a page run
nothing and ask for nothing but what comes with this package.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import Collection
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from fastapi import Request

LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")

HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src"
        " 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not `no-referrer`: with that, a browser says of a page's own forms that they come from nowhere
    # (`Origin: null`).
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

FORM_SECONDS: Final = 60.0
"""How long a form may take to arrive."""

FORM_BYTES: Final = 256 * 1024
"""What a form may hold."""


class Refused(Exception):
    """A request is not answered.

    Attributes:
        status: The HTTP status.
        why: What is wrong with it.
    """

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why


class Guard:
    """Decides which requests are answered.

    Args:
        hosts: The names under which the inspector may be asked for: a page elsewhere that has its
            name lead to this machine (DNS rebinding) asks under its own. None: the application
            checks that.

    Attributes:
        token: What a form must bring back: other sites cannot read it.
    """

    def __init__(self, hosts: Collection[str] | None = LOOPBACK) -> None:
        self._hosts = None if hosts is None else frozenset(name.lower() for name in hosts)
        self.token = secrets.token_urlsafe(24)

    def check(self, request: Request) -> None:
        """See that a request may be answered.

        Raises:
            Refused: It may not.
        """
        if self._hosts is not None and _name_of(request.headers.get("host", "")) not in self._hosts:
            raise Refused(
                421,
                "the inspector answers under this machine's own name alone: open http://127.0.0.1"
                " with its port",
            )

    async def form(self, request: Request) -> dict[str, str]:
        """The fields of a form of the inspector's own.

        Raises:
            Refused: It is another site's, or too large, or takes too long.
        """
        origin = request.headers.get("origin")
        if (
            origin is not None
            and urlsplit(origin).netloc.lower() != request.headers.get("host", "").lower()
        ):
            raise Refused(403, "the form comes from another site")
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise Refused(403, "the form comes from another site")
        try:
            async with asyncio.timeout(FORM_SECONDS):
                body = await _read(request)
            fields = dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=20))
        except TimeoutError as error:
            raise Refused(408, "the form took too long to arrive: send it again") from error
        except ValueError as error:
            raise Refused(400, "the form cannot be read") from error
        if not hmac.compare_digest(fields.pop("token", "").encode(), self.token.encode()):
            raise Refused(403, "the form is an old one: load the page again, then send it")
        return fields


async def _read(request: Request) -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > FORM_BYTES:
            raise Refused(413, f"a form holds at most {FORM_BYTES:,} bytes")
    return body


def _name_of(host: str) -> str:
    """The name in a `Host` header, without the port."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""
