"""Takes the pictures of the tour: `python -m docs.making.tour`.

Needs Chromium, and the groups interop and docs; the database of a demonstration is made for it.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Final

import uvicorn
from fastapi import FastAPI
from playwright.sync_api import Page, sync_playwright

from docs.making.palette import shrink
from langmem_ext.inspector import inspector_router
from langmem_ext.inspector.demo import WAITING, make_demo

PICTURES: Final = Path(__file__).parents[1] / "pictures" / "tour"
DESK: Final[Any] = {"viewport": {"width": 1200, "height": 760}}
PHONE: Final[Any] = {"viewport": {"width": 390, "height": 760}, "has_touch": True}


def take(url: str, browser: Any) -> None:
    """Take one picture per step: waiting, answer, blame, forks, memory, usage, dark, phone."""
    page = browser.new_page(**DESK)
    _shot(page, f"{url}/", "threads")
    page.goto(f"{url}/thread?id={WAITING}")
    page.get_by_role("button", name="damaged").scroll_into_view_if_needed()
    _shot(page, None, "waiting")
    page.get_by_role("button", name="damaged").click()
    page.keyboard.press("Enter")
    page.locator(".said.agent", has_text="You get").wait_for()
    _shot(page, None, "answered")
    page.locator(".said", has_text="You get").hover()
    page.locator(".said", has_text="You get").get_by_role("link", name="Blame").click()
    page.locator("#panel", has_text="wrote it").wait_for()
    _shot(page, None, "blame")
    _shot(page, f"{url}/thread?id=second-thoughts", "forks")
    _shot(page, f"{url}/thread/memory?id=trip-to-lisbon", "memory")
    _shot(page, f"{url}/thread/usage?id=trip-to-lisbon", "usage")
    dark = browser.new_page(**DESK, color_scheme="dark")
    _shot(dark, f"{url}/thread?id=trip-to-lisbon", "dark")
    _shot(browser.new_page(**PHONE), f"{url}/thread?id=trip-to-lisbon", "phone")


def _shot(page: Page, url: str | None, name: str) -> None:
    if url is not None:
        page.goto(url)
    page.screenshot(path=PICTURES / f"{name}.png")
    shrink(PICTURES / f"{name}.png")


def main() -> None:
    """Serve a demonstration, and take its pictures."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    os.chdir(tempfile.mkdtemp())  # the pages name the database's folder
    saver, graph = make_demo(Path())
    app = FastAPI()
    app.include_router(inspector_router(saver, graph=graph), prefix="/ui")
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    running = threading.Thread(target=server.run, args=([listening],), daemon=True)
    running.start()
    while not server.started:
        time.sleep(0.01)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        take(f"http://127.0.0.1:{listening.getsockname()[1]}/ui", chromium)
        chromium.close()
    server.should_exit = True
    running.join()
    saver.close()


if __name__ == "__main__":
    main()
