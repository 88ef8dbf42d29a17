"""Who may come in, and whose threads they see.

An access is a function of a request: it gives the owner whose threads alone are there for the
caller, or None for all of them, and raises `HTTPException` for who may not come in. An application
writes its own, or uses one of these.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Callable, Collection, Mapping
from ipaddress import ip_address
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from fastapi import HTTPException, Request

from langmem_ext.errors import InvalidInput
from langmem_ext.log.message_log import owner_key

Access: TypeAlias = Callable[[Request], Awaitable[str | None]]
"""Gives the owner that a request speaks for."""

SHORTEST_TOKEN: Final = 16
"""Characters of a token: fewer can be guessed."""


def on_this_machine(*, owner: str | None = None, origins: Collection[str] = ()) -> Access:
    """Let in what comes from this machine, without a token.

    A web page elsewhere may send requests here through its reader's browser. So the names that the
    browser came by are looked at: `Host` must be this machine's (else a name of the page's own
    could lead here), and `Origin` this machine's or one of those named.

    Args:
        owner: Whose threads are seen; None: everybody's.
        origins: Pages that may call, like `https://chat.example.com`.
    """
    bound, allowed = owner_key(owner), frozenset(origins)

    async def access(request: Request) -> str | None:
        if request.client is not None and not is_loopback(request.client.host):
            raise HTTPException(
                403,
                "without a token, only this machine may call: start the server with a token, or"
                " give it an access",
            )
        if not is_loopback(_host_of(f"//{request.headers.get('host', '')}")):
            raise HTTPException(
                403, "the header Host names another machine: call by localhost or 127.0.0.1"
            )
        origin = request.headers.get("origin")
        if origin is not None and origin not in allowed and not is_loopback(_host_of(origin)):
            raise HTTPException(
                403, "this page may not call: name its origin when the server is started"
            )
        return bound

    return access


def by_token(owners: Mapping[str, str | None]) -> Access:
    """Let in who has a bearer token.

    Args:
        owners: By token, the owner whose threads its bearer sees; None: everybody's.

    Raises:
        InvalidInput: A token can be guessed, or an owner is no name.
    """
    known = [(_digest(_checked(token)), owner_key(owner)) for token, owner in owners.items()]
    if not known:
        raise InvalidInput("nobody could come in: name a token")

    async def access(request: Request) -> str | None:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        # LangGraph's SDK has no bearer tokens of its own: its clients send `x-api-key`.
        given = _digest(
            token.strip() if scheme.lower() == "bearer" else request.headers.get("x-api-key", "")
        )
        # All are compared, so that the time tells nothing of which it was.
        found = [owner for digest, owner in known if hmac.compare_digest(digest, given)]
        if not found:
            raise HTTPException(
                401,
                "a bearer token is needed: send 'Authorization: Bearer …'",
                {"WWW-Authenticate": "Bearer"},
            )
        return found[0]

    return access


def is_loopback(host: str | None) -> bool:
    """Whether a host is this machine alone."""
    try:
        return host is not None and (host.lower() == "localhost" or ip_address(host).is_loopback)
    except ValueError:
        return False


def _host_of(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _digest(token: str) -> bytes:
    """What is compared: of one length, whatever the token's is."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def _checked(token: str) -> str:
    if (
        not isinstance(token, str)
        or len(token) < SHORTEST_TOKEN
        or not token.isascii()
        or not token.isprintable()
        or " " in token
    ):
        raise InvalidInput(
            f"a token has at least {SHORTEST_TOKEN} printable ASCII characters and no space: make"
            " one with `openssl rand -hex 24`"
        )
    return token
