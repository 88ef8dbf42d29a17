"""Who may call, and whose threads they see.

An access is a function of a request: it returns the owner whose threads the caller may see, or None
for all of them, and raises `HTTPException` if the caller is refused. An application writes its own,
or uses one of these.
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
"""Returns the owner that a request acts for."""

SHORTEST_TOKEN: Final = 16
"""The minimum number of characters of a token: a shorter one can be guessed."""


def on_this_machine(*, owner: str | None = None, origins: Collection[str] = ()) -> Access:
    """Allow requests from this machine, without a token.

    A web page elsewhere may send requests here through its reader's browser. So two headers are
    checked: `Host` must name this machine (else the page's own name could lead here), and `Origin`
    must be this machine or one of `origins`.

    Args:
        owner: The owner whose threads callers see; None for everybody's.
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
    """Allow callers with a bearer token.

    Args:
        owners: By token, the owner whose threads its bearer sees; None for everybody's.

    Raises:
        InvalidInput: A token can be guessed, or an owner is invalid.
    """
    known = [(_digest(_checked(token)), owner_key(owner)) for token, owner in owners.items()]
    if not known:
        raise InvalidInput("nobody could come in: name a token")

    async def access(request: Request) -> str | None:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        # LangGraph's SDK has no bearer tokens of its own: its clients send `x-api-key`.
        sent = _digest(
            token.strip() if scheme.lower() == "bearer" else request.headers.get("x-api-key", "")
        )
        # All are compared, so that the time does not show which of them matched.
        matching = [owner for digest, owner in known if hmac.compare_digest(digest, sent)]
        if not matching:
            raise HTTPException(
                401,
                "a bearer token is needed: send 'Authorization: Bearer …'",
                {"WWW-Authenticate": "Bearer"},
            )
        return matching[0]

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
    """A token's hash, which is compared: all hashes have the same length."""
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
