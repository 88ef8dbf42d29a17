"""A small order desk to converse with: catalog, tools over a file, and a server that runs every
step in a process of its own.

Run as a script it reads one JSON command a line, forks a fresh process for it, and prints one JSON
answer a line. The forked process opens the database, does one thing, closes it and exits, so every
step of a conversation runs after a real restart that costs milliseconds.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import json
import os
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import yaml
from langchain_core.tools import BaseTool, InjectedToolArg, ToolException, tool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.types import Command
from pydantic import Field

from langmem_ext import DeltaSaver, IntentCatalog, build_waiting_graph, converse

KILLED = 9


def open_saver(path: Path | str) -> BaseCheckpointSaver[Any]:
    """The checkpointer under test, on a file, as a process opens it after a restart."""
    return DeltaSaver.open(str(path))


def close_saver(saver: BaseCheckpointSaver[Any]) -> None:
    assert isinstance(saver, DeltaSaver)
    saver.close()


CATALOG: dict[str, Any] = yaml.safe_load(
    Path(__file__).with_name("desk.yaml").read_text(encoding="utf-8")
)

Number = Annotated[str, Field(pattern=r"^O-\d{1,6}$", description="the order's number")]
Key = Annotated[str, InjectedToolArg]


class Shop:
    """What the tools act on: one row for each call, one for each effect; an effect happens once for
    one key.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = path
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.executescript(
                "CREATE TABLE IF NOT EXISTS call (tool TEXT, arguments TEXT);CREATE TABLE IF NOT"
                " EXISTS effect (key TEXT PRIMARY KEY, tool TEXT, arguments TEXT);"
            )

    def act(self, name: str, key: str, arguments: dict[str, Any]) -> None:
        text = json.dumps(arguments, sort_keys=True)
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.execute("INSERT INTO call VALUES (?, ?)", (name, text))
            connection.execute("INSERT OR IGNORE INTO effect VALUES (?, ?, ?)", (key, name, text))
        if os.environ.get("DESK_KILL") == "after_effect":
            os._exit(KILLED)

    def calls(self) -> list[tuple[str, dict[str, Any]]]:
        return self._rows("SELECT tool, arguments FROM call ORDER BY rowid")

    def effects(self) -> list[tuple[str, dict[str, Any]]]:
        return self._rows("SELECT tool, arguments FROM effect ORDER BY rowid")

    def _rows(self, sql: str) -> list[tuple[str, dict[str, Any]]]:
        with closing(sqlite3.connect(self.path)) as connection:
            return [(name, json.loads(arguments)) for name, arguments in connection.execute(sql)]


def make_tools(shop: Shop) -> list[BaseTool]:
    """The desk's tools; all take an idempotency key that no model and no user sees."""

    @tool
    def check_order(number: Number, idempotency_key: Key) -> dict[str, str]:
        """Find out where an order is."""
        shop.act("check_order", idempotency_key, {"number": number})
        if number == "O-404":
            raise ToolException("There is no order O-404.")
        if number == "O-500":
            raise RuntimeError("password=hunter2 at db.internal")
        return {"status": "on its way", "carrier": "Swift Post"}

    @tool
    def cancel_order(number: Number, idempotency_key: Key) -> dict[str, str]:
        """Cancel an order."""
        shop.act("cancel_order", idempotency_key, {"number": number})
        return {"status": "cancelled"}

    @tool
    def change_address(number: Number, address: str, idempotency_key: Key) -> str:
        """Send an order to another address."""
        shop.act("change_address", idempotency_key, {"number": number, "address": address})
        return "changed"

    @tool
    def refund(
        number: Number,
        amount: Annotated[float, Field(gt=0, le=500)],
        method: str,
        idempotency_key: Key,
    ) -> dict[str, str]:
        """Give money back for an order."""
        shop.act("refund", idempotency_key, {"number": number, "amount": amount, "method": method})
        return {"receipt": "R-1"}

    @tool
    def store_card(card: str, idempotency_key: Key) -> str:
        """Remember a bank card."""
        shop.act("store_card", idempotency_key, {"card": card})
        return f"stored {card}"

    @tool
    def talk_to_human(idempotency_key: Key) -> str:
        """Hand over to a person."""
        shop.act("talk_to_human", idempotency_key, {})
        return "handed over"

    return [check_order, cancel_order, change_address, refund, store_card, talk_to_human]


COUNTER = Shop(":memory:")
"""The shop that the tools of `BUILDER` act on; `make_graph` says which."""

BUILDER = build_waiting_graph(IntentCatalog.from_dict(CATALOG), make_tools(COUNTER))
"""The desk, made once: a process that is forked for one step has it already."""


def make_graph(saver: BaseCheckpointSaver[Any], shop: Shop) -> Any:
    """The desk's graph over `saver`, acting on `shop`; one shop at a time in a process."""
    COUNTER.path = shop.path
    return BUILDER.compile(checkpointer=saver)


def async_desk() -> Any:
    """A desk of one request, whose tool is async and touches nothing."""

    @tool
    async def check_order(number: Number) -> dict[str, str]:
        """Find out where an order is."""
        await asyncio.sleep(0)
        return {"status": "on its way"}

    checking = {**CATALOG["intents"][0], "patterns": ["where is it"]}
    catalog = {"intents": [checking], "params": {"order_id": CATALOG["params"]["order_id"]}}
    return build_waiting_graph(IntentCatalog.from_dict(catalog), [check_order])


def kill_at(saver: BaseCheckpointSaver[Any], call: int, when: str) -> None:
    """Make this process die without warning `when` ("before" or "after") the saver's `call`-th
    write, counted from 1.
    """
    numbers = itertools.count(1)

    def mortal(method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def run(*args: Any, **kwargs: Any) -> Any:
            own = next(numbers)  # writes may come from several threads
            if own == call and when == "before":
                os._exit(KILLED)
            result = method(*args, **kwargs)
            if own == call:
                os._exit(KILLED)
            return result

        return run

    for name in ("put", "put_writes"):
        setattr(saver, name, mortal(getattr(saver, name)))


def execute(command: dict[str, Any]) -> dict[str, Any]:
    """One command against a freshly opened database; its answer as JSON."""
    saver = open_saver(command["database"])
    if kill := command.get("kill"):
        if kill == "after_effect":
            os.environ["DESK_KILL"] = kill
        else:
            kill_at(saver, kill["call"], kill["when"])
    graph = make_graph(saver, Shop(command["shop"]))
    config = {"configurable": {"thread_id": command["thread"]}}
    try:
        match command["do"]:
            case "converse":
                name, said = command.get("id"), command["text"]
                turn = converse(graph, said, thread_id=command["thread"], message_id=name)
                asked = [dict(interrupt.value) for interrupt in turn.interrupts]
                return {"turn": {**asdict(turn), "interrupts": asked}}
            case "resume":
                value = command["value"]
                if command["by_id"]:
                    [task] = graph.get_state(config).tasks
                    value = {task.interrupts[0].id: value}
                graph.invoke(Command(resume=value), config, durability="sync")
            case "update":
                graph.update_state(config, command["values"], as_node=command.get("as_node"))
        return {}
    finally:
        close_saver(saver)


def serve() -> None:
    """Answer commands from standard input, each from a process of its own."""
    import_module("langmem_ext.storage.postgres.driver")  # once, before the first fork
    for line in sys.stdin:
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                answer = execute(json.loads(line))
            except Exception as error:
                answer = {"error": type(error).__name__, "message": str(error)}
            with os.fdopen(write, "w") as pipe:
                json.dump(answer, pipe, default=str)
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as pipe:
            text = pipe.read()
        _, status = os.waitpid(pid, 0)
        print(
            json.dumps({"exit": os.waitstatus_to_exitcode(status), **json.loads(text or "{}")}),
            flush=True,
        )


if __name__ == "__main__":
    serve()
