"""A conversation that is killed somewhere and finished by another process, again and again.

Run as a script it imports everything once, then reads one JSON command a line and prints one JSON
answer a line. For each command it forks a process that converses until it dies at the appointed
place, forks another that sends again what was not answered and finishes, and tells what the
database and the shop hold then. A fork costs milliseconds, so does a kill.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

from dying_database import Steps, dying_log
from nursery import answer_commands, in_child

from graphs.shop import TOOLS
from graphs.support import SUMMARIZE_ABOVE, catalog
from langmem_ext import DeltaSaver, Event, build_waiting_graph, converse

SAID = ("hello, I want to cancel my order", "it's O-12345", "yes", "and where is order O-778?")

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Files that survive a process and need no disk: a kill is not a power cut."""


class Noting:
    """A sink that writes each event to a file, where a kill loses nothing of it: what it is about,
    without when and how long.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def emit(self, event: Event) -> None:
        told = {
            name: value
            for name, value in event.as_dict().items()
            if name not in ("time", "duration_ms")
        }
        with self._path.open("a") as events:
            events.write(json.dumps(told, sort_keys=True) + "\n")


def talk(folder: Path, first: int, dies_at: int | None, url: str | None = None) -> int:
    """Send the messages from `first` on, noting each answer in a file; the number of steps that the
    database took.

    It is a file beside the others where no URL is given.
    """
    os.environ["LANGMEM_EXT_SHOP_DB"] = str(folder / "shop.db")
    steps = Steps(dies_at)
    log = dying_log(url or str(folder / "memory.db"), steps, synchronous="normal")
    builder = build_waiting_graph(
        catalog, TOOLS, summarize_above=SUMMARIZE_ABOVE, telemetry=[Noting(folder / "events")]
    )
    graph = builder.compile(checkpointer=DeltaSaver(log))
    for number in range(first, len(SAID)):
        converse(graph, SAID[number], thread_id="t", message_id=f"said-{number}")
        with (folder / "answered").open("a") as answered:
            answered.write("x")
    (folder / "end.json").write_text(json.dumps(end_of(graph, folder)))
    log.close()
    return steps.count


def timeless(noted: dict[str, Any]) -> dict[str, Any]:
    """The notes on a message without its time of writing, which differs from run to run."""
    own = {name: value for name, value in noted.get("langmem_ext", {}).items() if name != "at"}
    rest = {name: value for name, value in noted.items() if name != "langmem_ext"}
    return {**rest, "langmem_ext": own} if own else rest


def end_of(graph: Any, folder: Path) -> Any:
    """What the conversation left, without random ids and times."""
    values = dict(graph.get_state({"configurable": {"thread_id": "t"}}).values)
    ids: dict[str, str] = {}

    def known(text: str) -> str:
        return ids.setdefault(text, f"id{len(ids)}")

    messages = [
        [
            message.type,
            message.content,
            message.id if str(message.id).startswith("said-") else known(str(message.id)),
            [
                [call["name"], call["args"], known(str(call["id"]))]
                for call in getattr(message, "tool_calls", [])
            ],
            known(message.tool_call_id) if message.type == "tool" else None,
            timeless(message.additional_kwargs),
        ]
        for message in values.pop("messages")
    ]
    if values.get("summary"):
        values["summary"] = values["summary"]["text"]
    with closing(sqlite3.connect(folder / "shop.db")) as shop:
        tables = [
            name
            for (name,) in shop.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
            )
        ]
        rows = {
            name: [
                list(map(_timeless, row))
                for row in shop.execute(f"SELECT * FROM {name} ORDER BY 1")
            ]
            for name in tables
        }
    return {"messages": messages, "values": values, "shop": rows}


def _timeless(cell: Any) -> Any:
    return "time" if isinstance(cell, str) and cell[:2] == "20" and cell[4:5] == "-" else cell


def run(command: dict[str, Any]) -> dict[str, Any]:
    """Converse, die, go on; what came of it."""
    folder, url = Path(tempfile.mkdtemp(dir=MEMORY)), command.get("url")
    try:
        steps, dies_at = folder / "steps", command.get("dies_at")
        died = in_child(
            lambda: steps.write_text(str(talk(folder, 0, dies_at, url))), command.get("after_s")
        )
        answered = folder / "answered"
        first = len(answered.read_text()) if answered.exists() else 0
        if died:
            code = in_child(lambda: talk(folder, first, None, url))
            assert code == 0, f"the second process failed with {code}"
        return {
            "died": died,
            "answered": first,
            "steps": int(steps.read_text()) if steps.exists() else None,
            "end": json.loads((folder / "end.json").read_text()),
            "events": (folder / "events").read_text().splitlines(),
        }
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as warm:
        # Everything is imported, and every pattern compiled, before the first fork.
        talk(Path(warm), 0, None)
        import_module("langmem_ext.storage.postgres.driver")
    answer_commands(run)
