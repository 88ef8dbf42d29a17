"""Who may use the tables in PostgreSQL: readers and writers, of all threads or of one owner's.

The table `grantee` says which role may do what. The server enforces it by privileges and, if a role
is bound to an owner, by row-level security, which knows a role by `current_user`: unlike a setting,
no client can change that by itself.

Invariants:
- The table and what the server enforces change together, in one transaction.
- Row-level security is on while a role is bound to an owner, and at no other time. The role that
  owns the tables sees all threads; any other role that the table does not name sees none while it
  is on.
- A role that sees a thread sees its rows in every table, and no others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import psycopg
from psycopg import sql

from langmem_ext.errors import InvalidInput
from langmem_ext.storage.postgres.server import Server, storage_error
from langmem_ext.storage.schema.dialect import postgres

Rights: TypeAlias = Literal["reader", "writer"]
RIGHTS: Final[tuple[Rights, ...]] = ("reader", "writer")

OWNER_POLICY, ALL_POLICY = "langmem_ext_owner", "langmem_ext_all"

_KEPT: Final = frozenset({"langmem_migration", "grantee"})
"""Tables that only the role that owns them writes, or its functions."""

_OPEN: Final = frozenset({"langmem_migration", "setting"})
"""Tables that everybody sees whole, and that roles bound to an owner do not write."""

_VIEW_SINCE: Final = 150_000
"""The server's version from which on a view shows its readers no more than the tables do."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What a role may do.

    Attributes:
        role: Its name.
        rights: `reader`: read; `writer`: everything except making and vacuuming tables.
        owner: The owner whose threads alone it sees; None if it sees all.
    """

    role: str
    rights: Rights
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class Relation:
    """A table or a view.

    Attributes:
        name: Its name.
        view: Whether it is a view.
        columns: Those to write, if the server numbers the rows: who could write the numbers, too,
            could take those that come next.
    """

    name: str
    view: bool = False
    columns: Sequence[str] | None = None


def granted(server: Server) -> list[Grant]:
    """What roles may do, by their names; a role bound to an owner sees only its own row."""
    with _connected(server) as connection:
        return _read(connection, server.schema)


def grant(server: Server, wanted: Grant, *, execute: bool = True) -> list[str]:
    """Let a role do exactly this; returns the statements.

    Running operations end first, and others wait meanwhile.

    Args:
        server: The database, with the role that owns the tables.
        wanted: What the role may do.
        execute: Whether to run the statements, not only return them.

    Raises:
        InvalidInput: There is no such role, or an owner's role would see more than its owner's
            threads, or another role would see none.
    """

    def change(before: Sequence[Grant]) -> Sequence[Grant]:
        return sorted(
            [*(grant for grant in before if grant.role != wanted.role), wanted],
            key=lambda grant: grant.role,
        )

    with _connected(server) as connection:
        if not _names(
            connection, "SELECT rolname FROM pg_roles WHERE rolname = %(role)s", role=wanted.role
        ):
            raise InvalidInput(f"role {wanted.role!r} not found: create it first, with CREATE ROLE")
        return _apply(connection, server.schema, wanted.role, change, execute=execute)


def revoke(server: Server, role: str, *, execute: bool = True) -> list[str]:
    """Revoke what a role was granted; returns the statements.

    Revoking the last role that is bound to an owner ends row-level security.

    Args:
        server: The database, with the role that owns the tables.
        role: Its name.
        execute: Whether to run the statements, not only return them.

    Raises:
        InvalidInput: It was granted nothing.
    """

    def change(before: Sequence[Grant]) -> Sequence[Grant]:
        left = [grant for grant in before if grant.role != role]
        if len(left) == len(before):
            raise InvalidInput(f"the role {role!r} has no access: see `langmem-ext roles list`")
        return left

    with _connected(server) as connection:
        return _apply(connection, server.schema, role, change, execute=execute)


def settle(connection: psycopg.Connection[Any], schema: str) -> None:
    """Apply what the table says to new tables."""
    grants = _read(connection, schema)
    relations = _relations(connection, schema)
    bound = any(grant.owner is not None for grant in grants)
    version = connection.info.server_version
    statements = [
        statement
        for grant in grants
        for statement in (
            *withdrawal(schema, relations, grant.role),
            *privileges(schema, relations, grant, version=version),
        )
    ]
    _execute(connection, statements + (policies(schema, relations, grants) if bound else []))


Change: TypeAlias = Callable[[Sequence[Grant]], Sequence[Grant]]
"""What is to be granted, from what was."""


def _apply(
    connection: psycopg.Connection[Any], schema: str, role: str, change: Change, *, execute: bool
) -> list[str]:
    """Change what a role may do; returns the statements."""
    with connection.transaction():
        if execute:
            # Two at a time would each leave what the other has granted out of the policies.
            connection.execute(
                f"LOCK TABLE {_in(schema, 'grantee')} IN SHARE ROW EXCLUSIVE MODE".encode()
            )
        if _names(connection, _OWNS, role=role, table=_in(schema, "thread")):
            raise InvalidInput(
                f"{role} owns the tables, and may do everything: name another role; nothing was"
                " changed"
            )
        before = _read(connection, schema)
        after = change(before)
        _refuse_leaks(connection, schema, after, role)
        relations, version = _relations(connection, schema), connection.info.server_version
        statements = [
            f"DELETE FROM {_in(schema, 'grantee')} WHERE role = {_literal(role)}",
            *withdrawal(schema, relations, role),
        ]
        for grant in after:
            if grant.role == role:
                values = ", ".join(
                    "NULL" if value is None else _literal(value)
                    for value in (grant.role, grant.rights, grant.owner)
                )
                statements.append(
                    f"INSERT INTO {_in(schema, 'grantee')} (role, rights, owner) VALUES ({values})"
                )
                statements += privileges(schema, relations, grant, version=version)
        if any(grant.owner is not None for grant in (*before, *after)):
            statements += policies(schema, relations, after)
        if execute:
            _execute(connection, statements)
    return statements


def _refuse_leaks(
    connection: psycopg.Connection[Any], schema: str, grants: Sequence[Grant], changed: str
) -> None:
    """Require that row-level security binds its roles, and hides rows from no unnamed role.

    Nor may a bound role have others run what it made.

    The role that is changed is not counted as unnamed.

    Raises:
        InvalidInput: It would not.
    """
    bound = [grant.role for grant in grants if grant.owner is not None]
    known = {"table": _in(schema, "thread"), "named": [changed, *(grant.role for grant in grants)]}
    for role in bound:
        if above := _names(
            connection,
            _ABOVE,
            role=role,
            all_seeing=[grant.role for grant in grants if grant.owner is None],
            **known,
        ):
            raise InvalidInput(
                f"the role {role!r} would see the threads of every owner, because it is, or is a"
                f" member of, {', '.join(above)}: take another role for an owner's threads"
            )
        # Of the others it may be true since their grant: they must not keep this from being done.
        if role == changed and (places := _names(connection, _MAKES, role=role)):
            raise InvalidInput(
                f"the role {role!r} could make functions that others run in place of the server's:"
                f" REVOKE CREATE ON {places[0]} FROM PUBLIC, or from who gives it that right"
            )
    if bound and (blind := _names(connection, _BLIND, **known)):
        raise InvalidInput(
            f"{', '.join(blind)} may use the tables without `langmem-ext roles grant`, and would"
            " see no thread from now on: grant it as well, or revoke what it has"
        )


_OWNS: Final = """
    SELECT rolname FROM pg_class JOIN pg_roles ON pg_roles.oid = relowner
    WHERE pg_class.oid = %(table)s::regclass AND rolname = %(role)s"""
"""A role, if it owns the tables."""

_ABOVE: Final = """
    SELECT above.rolname FROM pg_roles AS one, pg_roles AS above
    WHERE one.rolname = %(role)s AND CASE
        WHEN one.rolsuper THEN above.oid = one.oid
        ELSE pg_has_role(one.oid, above.oid, 'MEMBER')
    END
    AND (above.rolsuper OR above.rolbypassrls OR above.rolname = ANY(%(all_seeing)s)
        OR above.rolname IN ('pg_read_all_data', 'pg_write_all_data')
        OR above.oid = (SELECT relowner FROM pg_class WHERE oid = %(table)s::regclass))
    ORDER BY 1"""
"""Roles that a role is or may become, and that see all threads."""

_MAKES: Final = """
    SELECT 'SCHEMA ' || quote_ident(nspname) FROM pg_namespace
    WHERE has_schema_privilege(%(role)s, oid, 'CREATE') AND nspname <> %(role)s
    AND nspname IN (SELECT rolname FROM pg_roles UNION SELECT 'public')
    UNION ALL SELECT 'DATABASE ' || quote_ident(current_database())
    WHERE has_database_privilege(%(role)s, current_database(), 'CREATE') ORDER BY 1"""
"""What a role may create in, and others have in their search path, or would have: a function there
that fits better than the server's own is called in its place."""

_BLIND: Final = """
    SELECT DISTINCT coalesce(rolname, 'PUBLIC') FROM pg_class CROSS JOIN aclexplode(relacl) AS given
    LEFT JOIN pg_roles ON pg_roles.oid = given.grantee
    WHERE pg_class.oid = %(table)s::regclass AND given.grantee <> relowner
    AND NOT coalesce(rolsuper OR rolbypassrls, FALSE)
    AND NOT coalesce(rolname = ANY(%(named)s), FALSE) ORDER BY 1"""
"""Roles that may use a table and are not named."""


# -- statements ------------------------------------------------------------------------------------


def withdrawal(schema: str, relations: Iterable[Relation], role: str) -> list[str]:
    """The statements that revoke all that a role may do with tables and views."""
    names = (relation.name for relation in relations)
    objects = [_these(schema, names), f"SCHEMA {_name(schema)}"]
    return [f"REVOKE ALL ON {those} FROM {_name(role)}" for those in objects]


def privileges(
    schema: str, relations: Sequence[Relation], wanted: Grant, *, version: int
) -> list[str]:
    """The statements that let a role do what it may.

    Args:
        schema: The tables' schema.
        relations: The tables and views.
        wanted: What it may do.
        version: The server's. Before 15, a view would show an owner's role the threads of others.
    """
    kept = _KEPT if wanted.owner is None else _KEPT | _OPEN
    read = [
        relation.name
        for relation in relations
        if not relation.view or wanted.owner is None or version >= _VIEW_SINCE
    ]
    written = [one for one in relations if not one.view and one.name not in kept]
    whole = [relation.name for relation in written if relation.columns is None]
    grants = [f"USAGE ON SCHEMA {_name(schema)}", f"SELECT ON {_these(schema, read)}"]
    if wanted.rights == "writer":
        grants.append(f"INSERT, UPDATE, DELETE ON {_these(schema, whole)}")
        for relation in written:
            if relation.columns is not None:
                columns = _list(relation.columns)
                grants.append(
                    f"INSERT ({columns}), UPDATE ({columns}), DELETE ON"
                    f" {_in(schema, relation.name)}"
                )
    return [f"GRANT {right} TO {_name(wanted.role)}" for right in grants]


def policies(schema: str, relations: Iterable[Relation], grants: Sequence[Grant]) -> list[str]:
    """The statements that show each role its threads: no policy if no role is bound to an owner."""
    bound = [grant.role for grant in grants if grant.owner is not None]
    others = [grant.role for grant in grants if grant.owner is None]
    tables = [relation.name for relation in relations if not relation.view]
    statements = []
    for table in tables:
        if table in _OPEN:
            continue
        named = _in(schema, table)
        statements += [
            f"DROP POLICY IF EXISTS {policy} ON {named}" for policy in (OWNER_POLICY, ALL_POLICY)
        ]
        statements.append(
            f"ALTER TABLE {named} {'ENABLE' if bound else 'DISABLE'} ROW LEVEL SECURITY"
        )
        if bound:
            statements.append(
                f"CREATE POLICY {OWNER_POLICY} ON {named} TO {_list(bound)} USING"
                f" ({_sees(schema, table)})"
            )
        if bound and others:
            statements.append(
                f"CREATE POLICY {ALL_POLICY} ON {named} TO {_list(others)} USING (true)"
            )
    return statements


def _sees(schema: str, table: str) -> str:
    """Which rows of a table an owner's role sees."""
    if table == "grantee":
        return "role = current_user"
    if table in ("store_vector", "store_thread"):
        return (
            f"(SELECT true FROM {_in(schema, 'store_item')} AS seen WHERE seen.number ="
            f" {_name(table)}.item)"
        )
    if table in ("thread", "store_item", "tombstone"):
        own = _in(schema, "grantee")
        return f"owner = (SELECT own.owner FROM {own} AS own WHERE own.role = current_user)"
    # As one value, which is looked up by the thread's key: with EXISTS, the planner might list all
    # of the owner's threads first.
    return (
        f"(SELECT true FROM {_in(schema, 'thread')} AS seen WHERE seen.number ="
        f" {_name(table)}.thread)"
    )


# -- reading what exists ---------------------------------------------------------------------------


@contextmanager
def _connected(server: Server) -> Iterator[psycopg.Connection[Any]]:
    try:
        with psycopg.connect(server.direct, **server.options()) as connection:
            yield connection
    except psycopg.Error as error:
        raise storage_error(error, server) from error


def _read(connection: psycopg.Connection[Any], schema: str) -> list[Grant]:
    rows = connection.execute(
        postgres(schema).render("SELECT role, rights, owner FROM grantee ORDER BY role"), {}
    )
    return [Grant(str(role), rights, owner) for role, rights, owner in rows]


def _relations(connection: psycopg.Connection[Any], schema: str) -> list[Relation]:
    """The schema's tables and views.

    Partitions are left out: they are reached through their tables.
    """
    rows = connection.execute(
        "SELECT relname, relkind = 'v', (SELECT CASE WHEN bool_or(attidentity <> '') THEN"
        " array_agg(attname::text ORDER BY attnum) FILTER (WHERE attidentity = '') END FROM"
        " pg_attribute WHERE attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped) FROM"
        " pg_class WHERE relnamespace = to_regnamespace(%s) AND relkind IN ('r', 'p', 'v') AND NOT"
        " relispartition ORDER BY relname",
        [_name(schema)],
    )
    return [Relation(*row) for row in rows]


def _names(connection: psycopg.Connection[Any], statement: str, **params: Any) -> list[str]:
    return [str(name) for (name,) in connection.execute(statement.encode(), params)]


def _execute(connection: psycopg.Connection[Any], statements: Iterable[str]) -> None:
    for statement in statements:
        connection.execute(statement.encode())


def _name(name: str) -> str:
    return sql.Identifier(name).as_string(None)


def _in(schema: str, table: str) -> str:
    return sql.Identifier(schema, table).as_string(None)


def _these(schema: str, tables: Iterable[str]) -> str:
    return ", ".join(_in(schema, table) for table in tables)


def _literal(text: str) -> str:
    return sql.Literal(text).as_string(None)


def _list(names: Iterable[str]) -> str:
    return ", ".join(map(_name, names))
