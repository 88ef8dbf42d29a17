"""PostgreSQL connections: the URL, the options, and the server's errors as ours."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self
from urllib.parse import quote, urlencode

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import PoolClosed, PoolTimeout

from langmem_ext._internal.url import parts_of
from langmem_ext.errors import (
    InvalidInput,
    LangmemExtError,
    NotADatabase,
    StorageError,
    StorageUnavailable,
)
from langmem_ext.storage.schema.dialect import DEFAULT_SCHEMA, postgres

CONNECT_TIMEOUT_S: Final = 10
"""How long a server may take to accept a connection."""

DEADLINE_S: Final = 30.0
"""How long an operation waits for a connection, or for its turn."""

ANSWER_DEADLINE_S: Final = 300.0
"""How long an operation waits for an answer."""

KEEPALIVE: Final = {
    "keepalives_idle": 30,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""How soon the loss of a server that went away silently is noticed."""

SYNC_POOL, ASYNC_POOL = 4, 10
"""The maximum number of connections of all sync callers, and of one event loop."""

PARTITIONS: Final = 1024
"""The maximum number of a table's partitions."""

_LONGEST_S: Final = 86_400
_QUOTED: Final = re.compile(r'"([^"]*)"')
_OWN: Final = (
    "schema",
    "pool_size",
    "prepare",
    "direct",
    "mode",
    "partitions",
    "deadline",
    "answer_deadline",
)


@dataclass(frozen=True, slots=True)
class Server:
    """A database on a server, as a URL names it.

    For example `postgresql://user@host:5432/name?schema=chat&pool_size=20`.

    Attributes:
        conninfo: The connection string for libpq.
        direct: The same past a pooler, for what needs a session: migrations and leases.
        schema: The schema that holds the tables.
        pool_size: The maximum number of connections of one event loop, and of all sync callers;
            None for the default.
        prepare: Whether statements are prepared; not behind a pooler in transaction mode.
        mode: `ro`: the tables exist, and are only read; `rw`: they exist; `rwc`: they are made if
            they do not exist.
        partitions: How many partitions each table gets when it is made; 0 for none.
        deadline: How many seconds an operation waits for a connection, or for its turn.
        answer_deadline: How many seconds an operation waits for an answer.
        may_be_pooled: Whether a pooler without sessions may be in the way of what needs one: the
            URL names no way past it.
    """

    conninfo: str
    direct: str
    schema: str = DEFAULT_SCHEMA
    pool_size: int | None = None
    prepare: bool = True
    mode: str = "rwc"
    partitions: int = 0
    deadline: float = DEADLINE_S
    answer_deadline: float = ANSWER_DEADLINE_S
    may_be_pooled: bool = True

    @classmethod
    def of(cls, url: str) -> Self:
        """The server that a URL names.

        Raises:
            InvalidInput: The URL is invalid.
        """
        address, options = parts_of(url)
        own: dict[str, str] = {name: options.pop(name) for name in _OWN if name in options}
        conninfo = f"postgresql://{address}" + (
            f"?{urlencode(options, quote_via=quote)}" if options else ""
        )
        direct = own.get("direct", conninfo)
        try:
            conninfo_to_dict(conninfo)
            conninfo_to_dict(direct)
        except psycopg.ProgrammingError as error:
            # A quoted part may be of a password, unless it is an option's name.
            reason = _QUOTED.sub(
                lambda quoted: quoted[0] if quoted[1] in options else '"…"', first_line(error)
            )
            raise InvalidInput(
                f"the URL of the PostgreSQL database is invalid ({reason}): write"
                " postgresql://user@host/name"
            ) from None
        schema = own.get("schema", DEFAULT_SCHEMA)
        postgres(schema)  # refuses an invalid name
        return cls(
            conninfo,
            direct or conninfo,
            schema,
            pool_size=_count(own, "pool_size", 1, 1000),
            prepare=_choice(own, "prepare", "on", "off") == "on",
            mode=_choice(own, "mode", "rwc", "rw", "ro"),
            partitions=_count(own, "partitions", 0, PARTITIONS) or 0,
            deadline=_seconds(own, "deadline", DEADLINE_S),
            answer_deadline=_seconds(own, "answer_deadline", ANSWER_DEADLINE_S),
            may_be_pooled=not own.get("direct"),
        )

    @property
    def place(self) -> str:
        """The database, for people: without what is secret."""
        known = conninfo_to_dict(self.conninfo)
        return (
            f"PostgreSQL database {known.get('dbname') or known.get('user') or ''!s} at"
            f" {known.get('host') or 'localhost'}"
        )

    @property
    def address(self) -> tuple[str, ...]:
        """The server past a pooler, the database and the schema, as they are named."""
        known = conninfo_to_dict(self.direct)
        named = (known.get(part) for part in ("host", "hostaddr", "port", "dbname", "user"))
        return (*(str(part or "") for part in named), self.schema)

    def options(self) -> dict[str, Any]:
        """A new connection's options: defaults for what the URL does not say; texts are UTF-8."""
        usual = {
            "connect_timeout": min(CONNECT_TIMEOUT_S, math.ceil(self.deadline)),
            "application_name": "langmem-ext",
            **KEEPALIVE,
        }
        named = conninfo_to_dict(self.conninfo)
        own = {"autocommit": True, "prepare_threshold": None, "client_encoding": "UTF8"}
        return own | {name: value for name, value in usual.items() if name not in named}


def _choice(options: Mapping[str, str], name: str, *choices: str) -> str:
    """The option's value, one of some words; by default the first."""
    value = options.get(name, choices[0])
    if value not in choices:
        raise InvalidInput(f"{name} must be one of {', '.join(map(repr, choices))}, not {value!r}")
    return value


def _count(options: Mapping[str, str], name: str, least: int, most: int) -> int | None:
    value = options.get(name)
    if value is not None and not (value.isdecimal() and least <= int(value) <= most):
        raise InvalidInput(f"{name} must be a number from {least} to {most}, not {value!r}")
    return None if value is None else int(value)


def _seconds(options: Mapping[str, str], name: str, usual: float) -> float:
    value = options.get(name)
    try:
        seconds = usual if value is None else float(value)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= _LONGEST_S:
        raise InvalidInput(
            f"{name} must be a number of seconds above 0 and at most {_LONGEST_S}, not {value!r}"
        )
    return seconds


class NoAnswer(psycopg.OperationalError):
    """A server did not answer in time, nor did it stop when asked; the connection is dropped."""


def first_line(error: BaseException) -> str:
    """An error's first line: further lines may show values."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


_TOO_MANY: Final = "lessen pool_size, use a pooler, or raise the server's max_connections"
_LOGIN: Final = "check user and password"
_NO_DATABASE: Final = "create the database first, or use another"

_ADVICE: Final[Mapping[type[psycopg.Error], str]] = {
    errors.InsufficientPrivilege: (
        "have `langmem-ext roles grant` give its role what it needs, see"
        " docs/operate/postgres.md; only their owner creates, changes or vacuums tables"
    ),
    errors.ReadOnlySqlTransaction: "it is a standby or read-only: write to the primary",
    errors.DiskFull: "free some space on the server",
    errors.TooManyConnections: _TOO_MANY,
    errors.QueryCanceled: (
        "it took longer than answer_deadline in the URL, or the server's statement_timeout, allows;"
        " nothing was changed"
    ),
    errors.LockNotAvailable: (
        "another transaction has held a row for longer than the server's lock_timeout: try again"
    ),
    errors.InvalidAuthorizationSpecification: _LOGIN,
    errors.InvalidCatalogName: _NO_DATABASE,
}

_REASONS: Final = (
    (
        r"too many (clients|connections)|connection slots are reserved|no more connections allowed",
        _TOO_MANY,
    ),
    (
        r"starting up|shutting down|recovery mode|not (currently|yet) accepting",
        "it is starting up or shutting down: try again later",
    ),
    (r'database "" does not exist|no such database', _NO_DATABASE),
    (
        r"pg_hba\.conf",
        (
            "have the server's pg_hba.conf let this host and user in, with or without TLS (sslmode"
            " in its URL)"
        ),
    ),
    (
        r'password|authentication failed|role "" (does not exist|is not permitted)|no such user',
        _LOGIN,
    ),
    (
        r"certificate|does not support SSL|SSL was required",
        "check sslmode in its URL, and the certificates",
    ),
    (r"resolve host|translate host", "check the host in its URL"),
)
"""What servers, PgBouncer and libpq say if there is no connection, and what to do then: libpq has
no codes for it."""

_NAME: Final = re.compile(r'"[^"]*"')

MISSED: Final = (errors.DuplicatePreparedStatement, errors.InvalidSqlStatementName)
"""A prepared statement is not where it should be: a pooler has lent another connection."""

_BINDS: Final = "exec_bind_message"
"""The function in which PostgreSQL reports that a prepared statement's name belongs to another
statement, with other parameters. The message is in the server's language."""

_ROW_REFUSED: Final = "ExecWithCheckOptions"
"""The function in which PostgreSQL reports that a policy forbids writing a row. The message is in
the server's language."""


def _advice(error: BaseException, server: Server) -> str | None:
    """What to do about a server's refusal; None if nothing helps."""
    if (
        isinstance(error, errors.InsufficientPrivilege)
        and error.diag.source_function == _ROW_REFUSED
    ):
        return "its role may write only the threads of its own owner"
    missed = isinstance(error, MISSED) or (
        isinstance(error, errors.ProtocolViolation) and error.diag.source_function == _BINDS
    )
    if missed and server.prepare:
        return (
            "a pooler in transaction mode stands before it, so add prepare=off to its URL, and"
            " direct= with the URL past the pooler; nothing was changed"
        )
    return next((advice for kind, advice in _ADVICE.items() if isinstance(error, kind)), None)


def storage_error(error: BaseException, server: Server) -> LangmemExtError:
    """PostgreSQL's error as one of ours, with what to do next."""
    text = first_line(error)
    if isinstance(error, NoAnswer):
        return StorageUnavailable(
            f"the {server.place} has not answered within {server.answer_deadline:g} s: see that the"
            " server is well; what was to be written may have been stored or not"
        )
    if advice := _advice(error, server):
        return StorageUnavailable(f"the {server.place} refused ({text}): {advice}")
    if isinstance(error, errors.ProgramLimitExceeded):
        return InvalidInput(
            f"the {server.place} takes no value that is so long ({text}): shorten the owner, run"
            " id, task id or tag"
        )
    if isinstance(error, psycopg.DataError) and error.sqlstate is None:  # it was never sent
        return InvalidInput(f"the {server.place} cannot hold a value ({text}); nothing was changed")
    if isinstance(
        error,
        errors.UndefinedTable
        | errors.InvalidSchemaName
        | errors.UndefinedColumn
        | errors.UndefinedFunction,
    ):
        return StorageUnavailable(
            f"the {server.place} lacks the store's tables ({text}): open it once with a role that"
            " may make them"
        )
    if isinstance(error, errors.DuplicateTable | errors.DuplicateFunction):
        return NotADatabase(
            f"another program's tables in the {server.place} have the same names ({text}): use"
            " another schema"
        )
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return _unreachable(server, text)
    return StorageError(f"the {server.place} refused an operation ({text}); nothing was changed")


def no_connection(
    error: BaseException, server: Server, *, lent: int, size: int, reason: str | None
) -> StorageUnavailable:
    """Why a pool had no connection.

    Args:
        error: What the pool has raised.
        server: The server.
        lent: How many connections are in use.
        size: How many there may be.
        reason: Why the last attempt to connect failed, or that it lasts; None if it succeeded.
    """
    if isinstance(error, PoolClosed):
        return is_closed(server)
    # Who waits for one that changes hands sees fewer in use than there are.
    if lent >= size or (isinstance(error, PoolTimeout) and reason is None):
        return waited(server, size)
    if not isinstance(error, PoolTimeout):
        return _unreachable(server, first_line(error))
    return _unreachable(server, f"no connection within {server.deadline:g} s; at last: {reason}")


def waited(server: Server, size: int) -> StorageUnavailable:
    """The error that an operation did not get its turn."""
    return StorageUnavailable(
        f"all {size} connections to the {server.place} were in use for {server.deadline:g} s: try"
        " again, or raise pool_size or deadline in its URL; nothing was changed"
    )


def is_closed(server: Server) -> StorageUnavailable:
    """The error that the program has closed the store."""
    return StorageUnavailable(f"the {server.place} is closed: open it again")


def _unreachable(server: Server, text: str) -> StorageUnavailable:
    plain = _NAME.sub('""', text)  # a database may be called anything
    usual = (
        "check that the server is running and its URL is right (host, port, user, password,"
        " database), and try again"
    )
    advice = next(
        (advice for pattern, advice in _REASONS if re.search(pattern, plain, re.IGNORECASE)), usual
    )
    return StorageUnavailable(f"the {server.place} cannot be reached ({text}): {advice}")


def is_broken(error: BaseException | None) -> bool:
    """Whether an error means that its connection has ended, and another may do."""
    if isinstance(error, NoAnswer):
        return False  # another connection would get no answer either
    if isinstance(
        error,
        errors.AdminShutdown
        | errors.CrashShutdown
        | errors.CannotConnectNow
        | errors.IdleInTransactionSessionTimeout,
    ):
        return True
    return (
        isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        and getattr(error, "sqlstate", None) is None
    )
