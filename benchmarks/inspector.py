"""How long the inspector's pages take with 100,000 threads and a thread of 10,000 messages.

`python -m benchmarks.inspector [FOLDER]`: the database is made in the folder if it is not there; of
the threads of the list, the rows are copied from one. Each page is asked for as a browser does,
over HTTP on loopback, with nothing cached by a browser; the median and the worst of nine. Where
Chromium is installed, also when it first paints them, and when it has painted the largest part of
what is on the screen, and, to compare with, a page of one line. Its window is opened before: what
Chromium loads for a new window of its own (half a second of processor time) is not the page's.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any, Final
from urllib.parse import quote

import httpx
import uvicorn
from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from playwright.sync_api import sync_playwright

from langmem_ext import DeltaSaver, ThreadChatMessageHistory
from langmem_ext.inspector import inspector_router

THREADS: Final = 100_000
MESSAGES: Final = 10_000
TIMES: Final = 9
LONG: Final = "long"
REST_S: Final = 1.5
"""How long a window rests before a page is opened in it."""
PAINTS: Final = """new Promise(done => {
    const seen = {};
    const look = () => 'first' in seen && 'largest' in seen && done([seen.first, seen.largest]);
    new PerformanceObserver(list => {
        for (const entry of list.getEntriesByName('first-contentful-paint')) {
            seen.first = entry.startTime;
        }
        look();
    }).observe({type: 'paint', buffered: true});
    new PerformanceObserver(list => {
        seen.largest = list.getEntries().at(-1).startTime;
        setTimeout(look, 200);
    }).observe({type: 'largest-contentful-paint', buffered: true});
})"""
"""When a page was first painted, and when the largest part of it was."""


def main(folder: Path) -> None:
    """Make the database, and measure."""
    path = folder / "inspector.db"
    if not path.exists():
        make(path)
    with DeltaSaver.open(str(path)) as saver:
        app = FastAPI()
        app.include_router(inspector_router(saver))
        app.add_api_route("/one-line", lambda: HTMLResponse("<!doctype html><p>One line</p>"))
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
        running = threading.Thread(target=server.run, daemon=True)
        running.start()
        while not server.started:
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        address = f"http://127.0.0.1:{port}"
        with httpx.Client(base_url=address, timeout=60) as client:
            for name, page in pages(saver).items():
                print(f"{name:44} {measured(client, page)}")
        shown = {"a page of one line": "/one-line", **pages(saver)}
        for name, times in painted(address, shown).items():
            first, largest = zip(*times, strict=True)
            print(
                f"{name:44} first paint: median {median(first):5.0f} ms, worst {max(first):5.0f};"
                f" largest part: median {median(largest):5.0f}, worst {max(largest):5.0f}"
            )
        server.should_exit = True
        running.join()


def make(path: Path) -> None:
    """A thread of 10,000 messages and as many checkpoints, and 100,000 others."""
    started = time.perf_counter()
    with DeltaSaver.open(str(path), synchronous="normal") as saver:
        write_long(saver)
        ThreadChatMessageHistory("one", saver).add_messages([HumanMessage("Where is my order?")])
    with closing(sqlite3.connect(path)) as connection:
        columns = [name for (_, name, *_) in connection.execute("PRAGMA table_info(thread)")]
        row = dict(
            zip(
                columns,
                connection.execute("SELECT * FROM thread WHERE id = 'one'").fetchone(),
                strict=True,
            )
        )
        for at in range(THREADS):
            moment = row["updated_at"] - at * 60_000
            own = {
                "number": 10 + at,
                "id": f"thread-{at:06}",
                "title": f"Conversation {at}",
                "tokens": at * 7919 % 100_003,
            }
            own |= {
                "updated_at": moment,
                "active_at": moment // 60_000,
                "waiting_for": "order_id" if at % 20 == 0 else None,
            }
            values = [own.get(name, row[name]) for name in columns]
            connection.execute(
                f"INSERT INTO thread VALUES ({', '.join('?' * len(columns))})", values
            )
        connection.commit()
    print(f"made in {time.perf_counter() - started:.0f} s")


def write_long(saver: DeltaSaver) -> None:
    """The long thread, put as a graph of two nodes would put it.

    No graph is run: it would read the whole thread each time.
    """
    config: Any = {"configurable": {"thread_id": LONG, "checkpoint_ns": ""}}
    messages: list[BaseMessage] = []
    seen: dict[str, dict[str, str]] = {"ask": {}, "answer": {}}
    for step in range(MESSAGES):
        node, kind = (("ask", HumanMessage), ("answer", AIMessage))[step % 2]
        message = kind(f"Message {step}: {'some words ' * 12}", id=f"m{step}")
        version = f"{step + 1:032}.0"
        checkpoint = empty_checkpoint()
        seen = {**seen, node: {"messages": f"{step:032}.0"}}
        (
            saver.put_writes(
                config, [("messages", [message])], f"task-{step}", f"~__pregel_pull, {node}"
            )
            if step
            else None
        )
        messages = [*messages, message]
        checkpoint |= {
            "channel_values": {"messages": messages},
            "channel_versions": {"messages": version},
            "versions_seen": seen,
            "updated_channels": ["messages"],
        }
        config = saver.put(
            config,
            checkpoint,
            {"source": "loop", "step": step, "parents": {}},
            {"messages": version},
        )


def pages(saver: DeltaSaver) -> dict[str, str]:
    """The pages that are measured, by what is said of them."""
    listed = [
        found.config["configurable"]["checkpoint_id"]
        for found in saver.list({"configurable": {"thread_id": LONG}}, limit=5000)
    ]
    middle = listed[-1]
    early = quote('["m10"]')
    return {
        "100,000 threads, by last use": "/",
        "100,000 threads, by tokens": "/?order=tokens",
        "100,000 threads, those that wait": "/?waiting=*",
        "100,000 threads, part of a title": "/?q=tion+99",
        "10,000 messages, conversation": f"/thread?id={LONG}",
        "10,000 messages, 5,000 steps ago": f"/thread?id={LONG}&at={middle}",
        "10,000 messages, earliest": f"/thread?id={LONG}&before=50",
        "10,000 messages, state": f"/thread/state?id={LONG}",
        "10,000 messages, changes": f"/thread/changes?id={LONG}",
        "10,000 messages, context": f"/thread/context?id={LONG}",
        "10,000 messages, usage": f"/thread/usage?id={LONG}",
        "10,000 checkpoints, blame of a message": (
            f"/thread/blame?id={LONG}&channel=messages&path={early}&part=1"
        ),
        "10,000 checkpoints, blame of the last step": (
            f"/thread/blame?id={LONG}&channel=messages&part=1"
        ),
    }


def measured(client: httpx.Client, page: str) -> str:
    """How long a page takes: cold once, then again and again."""
    times = []
    for _ in range(TIMES):
        started = time.perf_counter()
        client.get(page).raise_for_status()
        times.append((time.perf_counter() - started) * 1000)
    return (
        f"first {times[0]:5.0f} ms   median {median(times):5.0f}   worst after"
        f" {max(times[1:]):5.0f}"
    )


def painted(address: str, asked: dict[str, str]) -> dict[str, list[tuple[float, float]]]:
    """When Chromium paints each page first, and its largest part, in ms from when it is asked."""
    program = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if program is None:
        return {}
    times: dict[str, list[tuple[float, float]]] = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for name, page in asked.items():
            if "part=1" in page:  # no page of its own
                continue
            for _ in range(TIMES):
                context = browser.new_context(viewport={"width": 1360, "height": 860})
                tab = context.new_page()
                time.sleep(REST_S)
                tab.goto(f"{address}{page}")
                first, largest = tab.evaluate(PAINTS)
                times.setdefault(name, []).append((first, largest))
                context.close()
        browser.close()
    return times


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
