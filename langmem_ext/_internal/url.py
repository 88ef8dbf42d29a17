"""Names of databases: paths and server URLs, whose parts are read as libpq reads them.

Parts that may hold a password are never quoted.
"""

from __future__ import annotations

import os
import re
from typing import Final, TypeAlias
from urllib.parse import parse_qsl

from langmem_ext.errors import InvalidInput

Address: TypeAlias = str | os.PathLike[str]
"""A path, as text or as a `pathlib.Path`, or a URL."""

_WRITE: Final = (
    "write postgresql://user@host/name, with %40, %2F and %25 for @, / and % in a password"
)

_CREDENTIALS: Final = re.compile(r"[^@/]*@")

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+:/")
"""At least two letters: one letter is a drive."""

_CONNINFO: Final = re.compile(
    r"\s*(host|hostaddr|port|dbname|user|password|passfile|service|servicefile|options|application_name|client_encoding|connect_timeout"
    r"|target_session_attrs|load_balance_hosts|require_auth|channel_binding|gssencmode|krbsrvname|requirepeer|ssl\w+|keepalives\w*"
    r"|tcp_user_timeout)\s*="
)


def text_of(address: Address) -> str:
    """An address as text; anything else is returned as it is, and refused later."""
    return os.fspath(address) if isinstance(address, os.PathLike) else address


def parts_of(url: str) -> tuple[str, dict[str, str]]:
    """A server's URL up to its question mark, without the scheme, and its parameters by name.

    A password may contain question marks, brackets and the like, which `urllib` would take for
    delimiters.

    Raises:
        InvalidInput: There is an @ or a slash too many.
    """
    rest = url.partition("://")[2]
    match = _CREDENTIALS.match(rest)
    credentials = match[0] if match else ""
    address, _, query = rest[len(credentials) :].partition("?")
    if "@" in address or "\0" in url:
        raise InvalidInput(f"the URL of the PostgreSQL database is invalid: {_WRITE}")
    # As libpq reads it: a plus sign is a plus sign, not a space.
    return credentials + address, dict(parse_qsl(query.replace("+", "%2B"), keep_blank_values=True))


def require_path(name: str) -> None:
    """Require that a path is not a server's address, which would create a file of that name.

    Raises:
        InvalidInput: It looks like an address.
    """
    if _CONNINFO.match(name):
        raise InvalidInput(
            "a server database needs a URL, and a file path must not start with"
            f" {name.split('=')[0].strip()}=…: {_WRITE}"
        )
    if _SCHEME.match(name):
        raise InvalidInput(
            f"{name.split(':')[0]}:… is neither a path nor a supported URL: for a server database,"
            f" {_WRITE}"
        )
