"""PostgreSQL connections: how they are opened, which database and schema a URL names, and their errors as ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from langmem_ext.errors import InvalidInput, LangmemExtError, StorageError, StorageUnavailable
from langmem_ext.storage.dialect import DEFAULT_SCHEMA, postgres

CONNECT_TIMEOUT_S: Final = 10
KEEPALIVE: Final = {"keepalives_idle": 30, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 30_000}
"""How soon a server that has gone silently is noticed."""

SYNC_POOL, ASYNC_POOL = 4, 10
"""Connections that sync callers, and those of one event loop, use at most."""

PARTITIONS: Final = 1024
"""So many a table has at most."""

_OWN: Final = ("schema", "pool_size", "prepare", "direct", "mode", "partitions")
_MODES: Final = ("ro", "rw", "rwc")


@dataclass(frozen=True, slots=True)
class Server:
    """A database on a server, as a URL names it: `postgresql://user@host:5432/name?schema=chat&pool_size=20`.

    Attributes:
        conninfo: What libpq is given.
        direct: The same past a pooler, for what needs a session: migrations and leases.
        schema: The schema that holds the tables.
        pool_size: Connections of one event loop, and of all sync callers, at most; None: the default.
        prepare: Whether statements are prepared; not behind a pooler in transaction mode.
        mode: `ro`: the tables are there and only read; `rw`: they are there; `rwc`: they are made if they are not.
        partitions: Among how many partitions of each table threads are shared out, where the tables are made; 0: there are none.
    """

    conninfo: str
    direct: str
    schema: str = DEFAULT_SCHEMA
    pool_size: int | None = None
    prepare: bool = True
    mode: str = "rwc"
    partitions: int = 0

    @classmethod
    def of(cls, url: str) -> Self:
        """The server that a URL names.

        Raises:
            InvalidInput: It is no URL of one.
        """
        address = urlsplit(url)
        # As libpq reads it: a plus sign is one, and no space.
        options = dict(parse_qsl(address.query.replace("+", "%2B"), keep_blank_values=True))
        own = {name: options.pop(name) for name in _OWN if name in options}
        conninfo = urlunsplit(("postgresql", address.netloc, address.path, urlencode(options, quote_via=quote), ""))
        try:
            conninfo_to_dict(conninfo)
        except psycopg.ProgrammingError as error:
            raise InvalidInput(
                f"the URL of the PostgreSQL database cannot be used ({told_of(error)}): write postgresql://user@host/name"
            ) from error
        schema = own.get("schema", DEFAULT_SCHEMA)
        postgres(schema)  # refuses a name that is none
        size = own.get("pool_size")
        if size is not None and (not size.isdecimal() or not 1 <= int(size) <= 1000):
            raise InvalidInput(f"pool_size is a number from 1 to 1000, not {size!r}")
        if own.get("prepare", "on") not in {"on", "off"}:
            raise InvalidInput(f"prepare is 'on' or 'off', not {own['prepare']!r}")
        if own.get("mode", "rwc") not in _MODES:
            raise InvalidInput(f"mode is one of {', '.join(map(repr, _MODES))}, not {own['mode']!r}")
        parts = own.get("partitions", "0")
        if not parts.isdecimal() or int(parts) > PARTITIONS:
            raise InvalidInput(f"partitions is a number from 0 to {PARTITIONS}, not {parts!r}")
        return cls(
            conninfo,
            own.get("direct", conninfo),
            schema,
            pool_size=None if size is None else int(size),
            prepare=own.get("prepare", "on") == "on",
            mode=own.get("mode", "rwc"),
            partitions=int(parts),
        )

    @property
    def place(self) -> str:
        """The database, for people: without what is secret."""
        known = conninfo_to_dict(self.conninfo)
        return f"PostgreSQL database {known.get('dbname') or known.get('user') or ''!s} at {known.get('host') or 'localhost'}"

    def options(self) -> dict[str, Any]:
        """What a connection is opened with."""
        return {
            "autocommit": True,
            "prepare_threshold": None,
            "connect_timeout": CONNECT_TIMEOUT_S,
            "application_name": "langmem-ext",
            **KEEPALIVE,
        }


def told_of(error: BaseException) -> str:
    """An error's first line: the others may show values."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


_ADVICE: Final[Mapping[type[psycopg.Error], str]] = {
    errors.InsufficientPrivilege: "have `langmem-ext roles grant` give its role what it needs, see docs/postgres.md; who makes, changes or"
    " vacuums tables must own them",
    errors.ReadOnlySqlTransaction: "it is a standby or read-only: write to the primary",
    errors.DiskFull: "free some space on the server",
    errors.TooManyConnections: "lessen pool_size, or use a pooler",
    errors.QueryCanceled: "the statement took longer than the server's statement_timeout: try again",
    errors.LockNotAvailable: "another transaction has held a row for longer than the server's lock_timeout: try again",
    errors.InvalidPassword: "check user and password",
    errors.InvalidCatalogName: "make the database first, or name another",
}


_ROW_REFUSED: Final = "ExecWithCheckOptions"
"""Where PostgreSQL says that a policy does not let a row be written: its words are in the server's language."""


def storage_error(error: BaseException, server: Server) -> LangmemExtError:
    """PostgreSQL's error as one of ours, with what to do next."""
    text = told_of(error)
    if isinstance(error, errors.InsufficientPrivilege) and error.diag.source_function == _ROW_REFUSED:
        return StorageUnavailable(f"the {server.place} refused ({text}): its role may write its own owner's threads, and no others")
    for kind, advice in _ADVICE.items():
        if isinstance(error, kind):
            return StorageUnavailable(f"the {server.place} refused ({text}): {advice}")
    if isinstance(error, errors.UndefinedTable | errors.InvalidSchemaName | errors.UndefinedColumn | errors.UndefinedFunction):
        return StorageUnavailable(f"the {server.place} lacks the store's tables ({text}): open it once with a role that may make them")
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return StorageUnavailable(f"the {server.place} cannot be reached ({text}): see that the server runs, and try again")
    return StorageError(f"the {server.place} refused an operation ({text}); nothing was changed")


def unreachable(server: Server, error: BaseException) -> StorageUnavailable:
    """There was no connection to be had."""
    return StorageUnavailable(f"the {server.place} cannot be reached ({told_of(error)}): see that the server runs, and try again")


def is_broken(error: BaseException | None) -> bool:
    """Whether an error means that its connection has ended, and another may do."""
    if isinstance(error, errors.AdminShutdown | errors.CrashShutdown | errors.CannotConnectNow | errors.IdleInTransactionSessionTimeout):
        return True
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and getattr(error, "sqlstate", None) is None
