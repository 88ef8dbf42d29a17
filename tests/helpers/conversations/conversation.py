"""A conversation with the order desk in which every step is a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import desk
from patience import PATIENCE_S


class Server:
    """The process that forks one process for each step; started once, it imports everything before
    the first fork.
    """

    def __init__(self) -> None:
        script = Path(desk.__file__)
        self.process = subprocess.Popen(
            [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, command: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "the desk's server has died"
        return json.loads(line)

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(timeout=PATIENCE_S)
        self.process.stdout.close()


class Conversation:
    """One user at the desk; nothing survives a step but the database, by its URL, and the shop,
    which is a file.
    """

    thread = "t1"

    def __init__(self, server: Server, database: str, folder: Path) -> None:
        self.server = server
        self.database = database
        self.shop = desk.Shop(folder / "shop.db")

    def step(self, do: str, **more: Any) -> dict[str, Any]:
        """Run one step in a new process; its exit code under "exit", and what it returned."""
        command = {
            "do": do,
            "database": self.database,
            "shop": str(self.shop.path),
            "thread": self.thread,
            **more,
        }
        return self.server.ask(command)

    def say(
        self, text: str, *, message_id: str | None = None, kill: object = None
    ) -> dict[str, Any]:
        """Send one message and return the turn."""
        answer = self.step("converse", text=text, id=message_id, kill=kill)
        assert "error" not in answer, answer
        assert answer["exit"] == 0, answer
        return answer["turn"]

    def resume(self, value: object, *, by_id: bool) -> dict[str, Any]:
        return self.step("resume", value=value, by_id=by_id)

    def edit(self, values: dict[str, Any], as_node: str | None = None) -> None:
        answer = self.step("update", values=values, as_node=as_node)
        assert "error" not in answer, answer

    @contextmanager
    def graph(self) -> Iterator[Any]:
        """The graph over a newly opened database, in this process."""
        saver = desk.open_saver(self.database)
        try:
            yield desk.make_graph(saver, self.shop)
        finally:
            desk.close_saver(saver)

    @property
    def config(self) -> dict[str, Any]:
        return {"configurable": {"thread_id": self.thread}}

    def state(self) -> dict[str, Any]:
        """The thread's channels as the database holds them."""
        with self.graph() as graph:
            return dict(graph.get_state(self.config).values)

    def texts(self) -> list[tuple[str, str]]:
        """Every message that a person reads: who said it and what."""
        return [
            (m.type, m.text)
            for m in self.state()["messages"]
            if m.type in ("human", "ai") and m.text
        ]

    def pending(self) -> list[dict[str, Any]]:
        """What the thread waits for."""
        with self.graph() as graph:
            return [dict(i.value) for i in graph.get_state(self.config).interrupts]
