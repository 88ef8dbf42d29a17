"""A little order desk on SQLite: what the example's tools act on.

The database is made at the first call, with a few orders in it, and is a file like any other:
several processes may use it at once. A tool that changes something takes an idempotency key and
records its result under it in the same transaction, so that the same key acts once however often it
is called, and gives the same result.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from langchain_core.tools import BaseTool, InjectedToolArg, ToolException, tool
from pydantic import Field

from langmem_ext.log.message_log import is_server, sqlite_path

DATABASE_VARIABLE = "LANGMEM_EXT_SHOP_DB"
"""Environment variable that names the shop's database file."""

BUSY_SECONDS = 60.0
"""How long a call waits for another process that is writing."""

Row: TypeAlias = dict[str, str]
OrderId = Annotated[
    str, Field(pattern=r"^O-\d{3,6}$", description="Order ID", examples=["O-12345"])
]
Key = Annotated[str, InjectedToolArg]
Reason: TypeAlias = Literal["damaged", "wrong_item", "late", "not_wanted"]

SCHEMA = """
CREATE TABLE customer (customer_id TEXT PRIMARY KEY, name TEXT NOT NULL, email TEXT NOT NULL);
CREATE TABLE orders (
    order_id TEXT PRIMARY KEY, customer_id TEXT NOT NULL REFERENCES customer,
    status TEXT NOT NULL, address TEXT NOT NULL,
    refunded_cents INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE item (
    order_id TEXT NOT NULL REFERENCES orders, name TEXT NOT NULL,
    quantity INTEGER NOT NULL, cents INTEGER NOT NULL
);
CREATE TABLE ticket (ticket_id INTEGER PRIMARY KEY, topic TEXT NOT NULL);
CREATE TABLE effect (
    idempotency_key TEXT NOT NULL, tool TEXT NOT NULL, result TEXT NOT NULL,
    PRIMARY KEY (idempotency_key, tool)
);
"""
CUSTOMERS = [("C-1", "Ada Brook", "ada@example.com"), ("C-2", "Sam Reed", "sam@example.com")]
ORDERS = [
    ("O-12345", "C-1", "processing", "12 Main Street, Springfield"),
    ("O-12346", "C-1", "shipped", "12 Main Street, Springfield"),
    ("O-777", "C-2", "delivered", "4 Mill Lane, Ashford"),
    ("O-778", "C-2", "processing", "4 Mill Lane, Ashford"),
    ("O-779", "C-2", "cancelled", "4 Mill Lane, Ashford"),
]
ITEMS = [
    ("O-12345", "desk lamp", 1, 3990),
    ("O-12345", "light bulb", 3, 450),
    ("O-12346", "bookshelf", 1, 12900),
    ("O-777", "teapot", 1, 2750),
    ("O-778", "notebook", 5, 320),
    ("O-779", "headphones", 1, 8900),
]


_beside: Path | None = None
"""Beside which conversations it is kept."""


def database_path() -> Path:
    """The shop's database file: where the environment says, or beside the conversations.

    Where nobody said what conversations, it is with the user's application data.
    """
    if named := os.environ.get(DATABASE_VARIABLE):
        return Path(named)
    if _beside is not None:
        return _beside
    if sys.platform == "win32":
        data = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    else:
        data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "langmem-ext" / "shop.db"


def keep_beside(database: str) -> None:
    """Have the shop's database lie beside that of its conversations, as `memory-shop.db`.

    So a new conversation in another folder finds the orders as they were at first. Where the
    environment names a place, that counts; beside a database in memory or on a server there is
    none.

    Args:
        database: The path or URL of the conversations' database.
    """
    global _beside
    path = Path(":memory:" if is_server(database) else sqlite_path(database)[0])
    _beside = path.with_stem(f"{path.stem}-shop") if path.name and str(path) != ":memory:" else None


@contextmanager
def transaction() -> Iterator[sqlite3.Connection]:
    """A transaction on the shop's database, which is created if missing.

    It is committed at the end, or rolled back by an exception.
    """
    path = database_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        connection.row_factory = sqlite3.Row
        connection.execute("BEGIN IMMEDIATE")
        try:
            _make(connection)
            yield connection
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
    finally:
        connection.close()


def _make(connection: sqlite3.Connection) -> None:
    """Create the tables and the first rows, in one transaction: two processes create them once."""
    [version] = connection.execute("PRAGMA user_version").fetchone()
    if version:
        return
    for statement in SCHEMA.split(";"):
        connection.execute(statement)
    connection.executemany("INSERT INTO customer VALUES (?, ?, ?)", CUSTOMERS)
    connection.executemany(
        "INSERT INTO orders (order_id, customer_id, status, address) VALUES (?, ?, ?, ?)", ORDERS
    )
    connection.executemany("INSERT INTO item VALUES (?, ?, ?, ?)", ITEMS)
    connection.execute("PRAGMA user_version = 1")


def _once(key: str, name: str, act: Callable[[sqlite3.Connection], Row]) -> Row:
    """The result of `act`, which runs once for `key`; without a key it runs every time."""
    with transaction() as connection:
        done = connection.execute(
            "SELECT result FROM effect WHERE idempotency_key = ? AND tool = ?", (key, name)
        ).fetchone()
        if key and done:
            recorded: Row = json.loads(done["result"])
            return recorded
        result = act(connection)
        if key:
            connection.execute(
                "INSERT INTO effect VALUES (?, ?, ?)", (key, name, json.dumps(result))
            )
        return result


def _order(connection: sqlite3.Connection, order_id: str) -> sqlite3.Row:
    row: sqlite3.Row | None = connection.execute(
        "SELECT * FROM orders WHERE order_id = ?", (order_id,)
    ).fetchone()
    if row is None:
        raise ToolException(
            f"I cannot find an order {order_id}. Please check the number on your confirmation."
        )
    return row


def _open_order(connection: sqlite3.Connection, order_id: str, change: str) -> sqlite3.Row:
    """An order that has not left the house yet; else the reason why it can no longer be changed."""
    row = _order(connection, order_id)
    if row["status"] == "cancelled":
        raise ToolException(f"Order {order_id} has been cancelled already.")
    if row["status"] != "processing":
        raise ToolException(f"Order {order_id} has been {row['status']} already, so {change}.")
    return row


def _total(connection: sqlite3.Connection, order_id: str) -> int:
    [cents] = connection.execute(
        "SELECT coalesce(sum(quantity * cents), 0) FROM item WHERE order_id = ?", (order_id,)
    ).fetchone()
    total: int = cents
    return total


@tool
def check_order(order_id: OrderId) -> Row:
    """Find out what an order holds and where it is."""
    with transaction() as connection:
        row = _order(connection, order_id)
        items = connection.execute(
            "SELECT quantity, name FROM item WHERE order_id = ? ORDER BY rowid", (order_id,)
        ).fetchall()
        return {
            "order_id": order_id,
            "status": row["status"],
            "items": ", ".join(f"{item['quantity']} × {item['name']}" for item in items),
            "total": f"{_total(connection, order_id) / 100:.2f}",
        }


@tool
def cancel_order(order_id: OrderId, idempotency_key: Key = "") -> Row:
    """Cancel an order that has not been shipped."""

    def act(connection: sqlite3.Connection) -> Row:
        _open_order(
            connection,
            order_id,
            "it can no longer be cancelled. I can arrange a refund once it is back",
        )
        connection.execute("UPDATE orders SET status = 'cancelled' WHERE order_id = ?", (order_id,))
        return {"order_id": order_id, "status": "cancelled"}

    return _once(idempotency_key, "cancel_order", act)


@tool
def change_address(
    order_id: OrderId,
    address: Annotated[
        str, Field(min_length=5, max_length=200, description="New delivery address")
    ],
    idempotency_key: Key = "",
) -> Row:
    """Send an order that has not been shipped to another address."""

    def act(connection: sqlite3.Connection) -> Row:
        _open_order(connection, order_id, "its address can no longer be changed")
        connection.execute("UPDATE orders SET address = ? WHERE order_id = ?", (address, order_id))
        return {"order_id": order_id, "status": "changed"}

    return _once(idempotency_key, "change_address", act)


@tool
def refund_order(
    order_id: OrderId,
    reason: Annotated[Reason, Field(description="Reason for the refund")],
    amount: Annotated[
        float | None,
        Field(gt=0, description="Amount to pay back; the rest of the order's price if left out"),
    ] = None,
    idempotency_key: Key = "",
) -> Row:
    """Pay money back for an order that has been delivered or cancelled."""

    def act(connection: sqlite3.Connection) -> Row:
        row = _order(connection, order_id)
        if row["status"] not in ("delivered", "cancelled"):
            raise ToolException(
                f"Order {order_id} is {row['status']}: I can pay it back once it is delivered or"
                " cancelled."
            )
        left = _total(connection, order_id) - row["refunded_cents"]
        cents = left if amount is None else round(amount * 100)
        if left <= 0:
            raise ToolException(f"Order {order_id} has been paid back already.")
        if cents > left:
            raise ToolException(f"I can pay back {left / 100:.2f} for order {order_id} at most.")
        connection.execute(
            "UPDATE orders SET refunded_cents = refunded_cents + ? WHERE order_id = ?",
            (cents, order_id),
        )
        return {"order_id": order_id, "refunded": f"{cents / 100:.2f}", "for": reason}

    return _once(idempotency_key, "refund_order", act)


@tool
def talk_to_human(
    topic: Annotated[str, Field(max_length=500, description="What it is about")] = "",
    idempotency_key: Key = "",
) -> Row:
    """Ask a colleague to take over."""

    def act(connection: sqlite3.Connection) -> Row:
        cursor = connection.execute("INSERT INTO ticket (topic) VALUES (?)", (topic,))
        return {"ticket": f"T-{cursor.lastrowid}"}

    return _once(idempotency_key, "talk_to_human", act)


TOOLS: list[BaseTool] = [check_order, cancel_order, change_address, refund_order, talk_to_human]
"""The order desk's tools."""
