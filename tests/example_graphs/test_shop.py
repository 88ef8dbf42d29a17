"""The order desk's tools act once for one key, and leave the database whole.

They refuse in words for the customer.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import BaseTool, ToolException
from patience import PATIENCE_S

from graphs import shop
from langmem_ext import IntentCatalog

CATALOG_FILE = Path(shop.__file__).with_name("intents.yaml")


@pytest.fixture(autouse=True)
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "data" / "shop.db"
    monkeypatch.setenv(shop.DATABASE_VARIABLE, str(path))
    return path


def call(tool: BaseTool, key: str = "", **arguments: Any) -> Any:
    return tool.invoke({**arguments, "idempotency_key": key} if key else arguments)


def rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def test_the_shop_is_made_once_at_the_first_call(database: Path) -> None:
    assert call(shop.check_order, order_id="O-12345") == {
        "order_id": "O-12345",
        "status": "processing",
        "items": "1 × desk lamp, 3 × light bulb",
        "total": "53.40",
    }
    call(shop.cancel_order, order_id="O-12345")
    assert call(shop.check_order, order_id="O-12345")["status"] == "cancelled"
    assert rows(database, "SELECT count(*) FROM orders") == [(len(shop.ORDERS),)]


def test_the_catalog_fits_the_tools() -> None:
    catalog = IntentCatalog.from_yaml(CATALOG_FILE).with_tools(shop.TOOLS)
    assert {intent.id for intent in catalog.intents} == {
        "check_order",
        "cancel_order",
        "change_address",
        "refund",
        "talk_to_human",
    }
    assert catalog.escalate_to == "talk_to_human"
    assert catalog.is_sensitive("address")
    assert catalog.param("order_id").keep == "plan"
    for tool in shop.TOOLS:
        assert "idempotency_key" not in tool.tool_call_schema.model_json_schema()["properties"]
    assert list(catalog.param("reason").enum) == ["damaged", "wrong_item", "late", "not_wanted"]


def test_a_key_acts_once_and_gives_the_same_result(database: Path) -> None:
    order = {"order_id": "O-12345"}
    late, moved = {"reason": "late", "amount": 5}, {"address": "9 Hill Road"}
    effects: list[tuple[BaseTool, dict[str, Any], str]] = [
        (shop.change_address, order | moved, "orders WHERE address = '9 Hill Road'"),
        (shop.cancel_order, order, "orders WHERE status = 'cancelled' AND order_id = 'O-12345'"),
        (shop.refund_order, {"order_id": "O-777"} | late, "orders WHERE refunded_cents = 500"),
        (shop.talk_to_human, {"topic": "a lamp"}, "ticket"),
    ]
    for tool, arguments, effect in effects:
        key = f"key of {tool.name}"
        first = call(tool, key, **arguments)
        assert call(tool, key, **arguments) == first
        assert rows(database, f"SELECT count(*) FROM {effect}") == [(1,)]
        [done] = rows(database, f"SELECT tool FROM effect WHERE idempotency_key = '{key}'")
        assert done == (tool.name,)


def test_another_key_acts_again(database: Path) -> None:
    call(shop.talk_to_human, "key-1")
    call(shop.talk_to_human, "key-2")
    call(shop.talk_to_human)
    call(shop.talk_to_human)
    assert rows(database, "SELECT count(*) FROM ticket") == [(4,)]


def test_a_refusal_is_worded_for_the_customer_and_changes_nothing(database: Path) -> None:
    call(shop.check_order, order_id="O-777")
    before = rows(database, "SELECT * FROM orders")
    missing = "I cannot find an order O-404"
    sent = "Order O-12346 has been shipped already, so it can no longer be cancelled"
    late = {"reason": "late"}
    refused: list[tuple[BaseTool, str, dict[str, Any], str]] = [
        (shop.check_order, "O-404", {}, missing),
        (shop.cancel_order, "O-404", {}, missing),
        (shop.cancel_order, "O-12346", {}, sent),
        (shop.cancel_order, "O-779", {}, "Order O-779 has been cancelled already"),
        (shop.change_address, "O-777", {"address": "9 Hill Road"}, "can no longer be changed"),
        (shop.refund_order, "O-12345", late, "once it is delivered or cancelled"),
        (shop.refund_order, "O-777", late | {"amount": 1000}, "27.50 for order O-777 at most"),
    ]
    for tool, order, more, words in refused:
        with pytest.raises(ToolException, match=words):
            call(tool, "key-1", order_id=order, **more)
        assert rows(database, "SELECT * FROM orders") == before
        assert rows(database, "SELECT * FROM effect") == []


def test_no_more_is_paid_back_than_was_paid(database: Path) -> None:
    assert (
        call(shop.refund_order, order_id="O-777", reason="late", amount=20)["refunded"] == "20.00"
    )
    assert call(shop.refund_order, order_id="O-777", reason="late")["refunded"] == "7.50"
    with pytest.raises(ToolException, match="has been paid back already"):
        call(shop.refund_order, order_id="O-777", reason="late")
    assert rows(database, "SELECT refunded_cents FROM orders WHERE order_id = 'O-777'") == [(2750,)]


async def test_the_tools_work_from_an_event_loop() -> None:
    assert (await shop.check_order.ainvoke({"order_id": "O-778"}))["items"] == "5 × notebook"


@pytest.mark.process
def test_many_processes_may_act_at_once(database: Path) -> None:
    """They find no shop, make it together, and act once for the key that they share and once for
    each key of their own.
    """
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = (
        "import json, sys, test_shop; print(json.dumps(test_shop.open_tickets(int(sys.argv[1]))))"
    )
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", command, str(worker)],
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )
        for worker in range(3)
    ]
    tickets = [json.loads(worker.communicate(timeout=PATIENCE_S)[0]) for worker in workers]
    shared = {first for first, _ in tickets}
    own = {second for _, second in tickets}
    assert len(shared) == 1
    assert len(own) == 3
    assert rows(database, "SELECT count(*) FROM ticket") == [(4,)]
    assert rows(database, "PRAGMA integrity_check") == [("ok",)]


def open_tickets(worker: int) -> tuple[str, str]:
    return (
        call(shop.talk_to_human, "shared")["ticket"],
        call(shop.talk_to_human, f"own-{worker}")["ticket"],
    )


def test_the_shop_lies_beside_the_conversations_or_with_the_users_data(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shop, "_beside", None)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    shop.keep_beside(str(tmp_path / "memory.db"))
    assert shop.database_path() == tmp_path / "data" / "shop.db", (
        "what the environment says counts for more"
    )
    monkeypatch.delenv(shop.DATABASE_VARIABLE)
    for place, beside in (
        (str(tmp_path / "memory.db"), "memory-shop.db"),
        (f"sqlite:///{tmp_path / 'another.db'}", "another-shop.db"),
        (":memory:", "langmem-ext/shop.db"),
        ("postgresql://me@host/name", "langmem-ext/shop.db"),
    ):
        shop.keep_beside(place)
        assert shop.database_path() == tmp_path / beside
