"""The inspector as its reader has it: in Chromium, over HTTP, with the database of a demonstration
and those of other savers.

`LANGMEM_EXT_SHOTS=FOLDER` keeps what the pages looked like: on a desk, in the dark and on a phone.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI
from inspected import config, travel
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from patience import PATIENCE_S
from playwright.sync_api import Browser, Page, expect, sync_playwright
from postgres.missing import missing
from test_foreign import postgres_saver

from langmem_ext import DeltaSaver, Threads
from langmem_ext.inspector import inspector_router
from langmem_ext.inspector.demo import WAITING, make_demo

pytestmark = [pytest.mark.browser, pytest.mark.process, pytest.mark.interop]

PAGES = {
    "list": "",
    "talk": "thread?id=trip-to-lisbon",
    "tree": "thread?id=second-thoughts",
    "question": "thread?id=impatient",
    "state": "thread/state?id=trip-to-lisbon",
    "changes": "thread/changes?id=trip-to-lisbon",
    "memory": "thread/memory?id=trip-to-lisbon",
    "usage": "thread/usage?id=trip-to-lisbon",
    "context": "thread/context?id=cancelled&budget=300",
    "search": "search?q=order",
}
SHOTS = os.environ.get("LANGMEM_EXT_SHOTS")
AXE = Path(__file__).parents[2] / "build" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
"""What judges pages by the rules of accessibility; `make test-all` brings it with npm."""

OPENED = """
for (const one of document.querySelectorAll("details")) one.open = true;
for (const one of document.querySelectorAll(".tools, .blame")) one.style.opacity = 1;
"""
"""Shows what is folded, and what only a pointer brings up."""

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
LOOKS: dict[str, dict[str, Any]] = {
    "desk": {"viewport": {"width": 1360, "height": 860}},
    "dark": {"viewport": {"width": 1360, "height": 860}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True},
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    names = ("chromium", "chromium-browser", "google-chrome")
    program = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if program is None:
        missing(
            "Chromium is not there: install it (apt-get install chromium), or name it in CHROMIUM"
        )
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def axe() -> str:
    if not AXE.exists():
        missing("axe-core is not there: make test-all brings it, with npm")
    return AXE.read_text()


@contextmanager
def served(database: Any, **options: Any) -> Iterator[str]:
    """An inspector on a socket; its address."""
    app = FastAPI()
    app.include_router(inspector_router(database, **options), prefix="/ui")
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    running = threading.Thread(target=server.run, daemon=True)
    running.start()
    deadline = time.monotonic() + PATIENCE_S
    while not server.started and time.monotonic() < deadline:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/ui"
    finally:
        server.should_exit = True
        running.join(PATIENCE_S)


@contextmanager
def reading(browser: Browser, look: str = "desk") -> Iterator[Page]:
    """A page of a reader; at its end nothing was asked of another host, and nothing has failed."""
    context = browser.new_context(**LOOKS[look], reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(30_000)
    wrong: list[str] = []
    page.on(
        "request",
        lambda request: (
            None
            if re.match(r"http://127\.0\.0\.1:|data:", request.url)
            else wrong.append(request.url)
        ),
    )
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda line: wrong.append(line.text) if line.type == "error" else None)
    yield page
    context.close()
    assert wrong == []


def keep(page: Page, name: str) -> None:
    if SHOTS:
        page.screenshot(path=Path(SHOTS) / f"{name}.png", full_page=True)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, DeltaSaver]]:
    saver, graph = make_demo(tmp_path_factory.mktemp("demo"))
    with saver, served(saver, graph=graph, reveal=True) as url:
        yield url, saver


def test_a_reader_finds_answers_goes_back_blames_forks_compares_and_searches(
    browser: Browser, demo: tuple[str, DeltaSaver]
) -> None:
    url, saver = demo
    with reading(browser) as page:
        page.goto(f"{url}/")
        page.locator("select[name=waiting]").select_option("*")
        page.wait_for_url(re.compile("waiting"))
        page.locator(f"a[data-row][href*='{WAITING}']").click()
        expect(page.locator(".question .ask")).to_have_text("Why would you like the money back?")
        page.get_by_role("button", name="damaged").click()
        page.keyboard.press("Enter")
        expect(page.locator(".said.agent").last).to_contain_text("27.50")
        page.locator(".call", has_text="refund_order").locator("summary").click()
        expect(page.locator(".call", has_text="refund_order")).to_contain_text('"refunded"')
        keep(page, "answered")

        page.locator(".said", has_text="You get").hover()
        page.locator(".said", has_text="You get").get_by_role("link", name="Blame").click()
        expect(page.locator("#panel")).to_contain_text("respond wrote it")
        keep(page, "blame")
        page.locator("#panel").get_by_role("link", name=re.compile("respond")).click()
        expect(page.locator(".change").first).to_contain_text("You get")

        page.goto(f"{url}/thread?id={WAITING}")
        page.locator(".rail li", has_text="asked").first.locator("a").click()
        expect(page.locator(".question .ask")).to_have_text("Why would you like the money back?")
        expect(page.get_by_text("You get")).to_have_count(0)
        page.get_by_role("button", name="Fork from here").click()
        page.get_by_role("button", name="Go on").click()
        page.get_by_role("button", name="late", exact=True).click()
        page.get_by_role("button", name="Answer", exact=True).click()
        expect(page.locator(".said.agent").last).to_be_visible()
        expect(page.locator(".call", has_text="refund_order")).to_have_count(1)
        expect(page.get_by_role("link", name="waits for")).to_have_count(0)

        page.get_by_role("link", name="Changes").click()
        page.get_by_label("Compared with").select_option(index=3)
        page.wait_for_url(re.compile("against"))
        expect(page.locator(".change").first).to_be_visible()

        page.keyboard.press("/")
        page.keyboard.type("garden house")
        page.keyboard.press("Enter")
        expect(page.locator(".hits mark").first).to_be_visible()
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="A long weekend in Lisbon")).to_be_visible()

        page.get_by_text("Bundle", exact=True).click()
        with page.expect_download() as download:
            page.get_by_role("link", name="Without any words").click()
        with DeltaSaver.open(":memory:") as other:
            Threads(other).import_from(str(download.value.path()), keep_ids=True)
            with served(other) as there:
                page.goto(f"{there}/thread?id=trip-to-lisbon")
                expect(page.locator(".said.user").first).to_contain_text("xxxxx xxxxxx")
                expect(
                    page.get_by_text("Lisbon", exact=False).and_(page.locator(".talk *"))
                ).to_have_count(0)


@pytest.mark.parametrize("look", LOOKS)
def test_every_page_fits_every_screen(
    look: str, browser: Browser, demo: tuple[str, DeltaSaver]
) -> None:
    url, _ = demo
    with reading(browser, look) as page:
        for name, path in PAGES.items():
            page.goto(f"{url}/{path}")
            keep(page, f"{name}-{look}")
            for moment in page.locator("time:not([data-full])").all_text_contents():
                assert re.fullmatch(r"just now|\d+ (min|h|d|y) ago", moment), moment
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (
                f"{name} is wider than the {look}"
            )
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", background)[:3])) < 200) == (look == "dark")
        if look != "phone":
            page.keyboard.press("?")
            expect(page.locator("#keys")).to_contain_text("All threads")
            keep(page, f"keys-{look}")


@pytest.mark.parametrize("look", LOOKS)
def test_every_page_can_be_read_and_used_by_everybody(
    look: str, browser: Browser, demo: tuple[str, DeltaSaver], axe: str
) -> None:
    url, saver = demo
    pages = PAGES | {
        "filters": "?order=tokens&tag=vip",
        "nothing": "?q=nothing+is+called+so",
        "found nothing": "search?q=nowhere",
        "an earlier step": f"thread?id={WAITING}&at={_first_step(saver)}",
        "sent whole": "thread/context?id=cancelled",
    }
    with reading(browser, look) as page:
        # High enough for whole pages: bars that stay in sight cover nothing then.
        page.set_viewport_size({**LOOKS[look]["viewport"], "height": 4000})
        for name, path in pages.items():
            page.goto(f"{url}/{path}")
            assert violations(page, axe) == [], name
            page.evaluate(OPENED)
            assert violations(page, axe) == [], f"{name}, opened"
        page.goto(f"{url}/thread?id=trip-to-lisbon")
        page.locator("a.blame").first.click(force=True)
        expect(page.locator("#panel")).to_be_visible()
        assert violations(page, axe) == [], "the panel"
        page.keyboard.press("Escape")
        if look != "phone":
            page.keyboard.press("?")
            assert violations(page, axe) == [], "the keys"


def violations(page: Page, axe: str) -> list[str]:
    """What a page does against the rules, each with the elements that do."""
    page.evaluate(axe)
    found = page.evaluate(
        "rules => axe.run(document, {runOnly: rules, resultTypes: ['violations']})", RULES
    )
    return [
        f"{rule['id']}: {', '.join(node['html'][:120] for node in rule['nodes'])}"
        for rule in found["violations"]
    ]


def _first_step(saver: DeltaSaver) -> str:
    *_, first = saver.list({"configurable": {"thread_id": WAITING}})
    return str(first.checkpoint["id"])


def test_a_page_is_as_its_reader_has_chosen_on_a_phone_and_on_paper(
    browser: Browser, demo: tuple[str, DeltaSaver]
) -> None:
    url, _ = demo
    talk = f"{url}/thread?id=trip-to-lisbon"
    with reading(browser, "phone") as page:
        for name in ("thread", "thread/changes", "thread/usage"):
            page.goto(f"{url}/{name}?id=trip-to-lisbon")
            box = page.locator(".tabs [aria-current]").bounding_box()
            assert box is not None
            assert box["x"] >= 0, name
            assert box["x"] + box["width"] <= LOOKS["phone"]["viewport"]["width"], name
    with reading(browser) as page:
        page.goto(f"{url}/")
        page.keyboard.press("d")
        answer = page.goto(talk)
        assert answer is not None
        assert '<html lang="en" data-theme="dark">' in answer.text()
        page.keyboard.press("d")
        expect(page.locator("html")).to_have_attribute("data-theme", "light")
    with reading(browser, "dark") as page:
        page.goto(talk)
        page.emulate_media(media="print")
        colours = "(style => [style.backgroundColor, style.color])(getComputedStyle(document.body))"
        assert page.evaluate(colours) == ["rgb(255, 255, 255)", "rgb(0, 0, 0)"]
        for hidden in (".bar", ".rail", ".tabs", ".actions", ".compose"):
            expect(page.locator(hidden).first).to_be_hidden()
        expect(page.locator(".said").first).to_be_visible()
        keep(page, "talk-print")


def test_databases_of_other_savers_are_opened_as_they_are(browser: Browser, tmp_path: Path) -> None:
    with SqliteSaver.from_conn_string(str(tmp_path / "checkpoints.sqlite")) as saver:
        travel(saver).invoke({"messages": [HumanMessage("Where to?", id="first")]}, config("trip"))
        with served(str(tmp_path / "checkpoints.sqlite")) as url, reading(browser) as page:
            look_into(page, url)
            keep(page, "sqlite-saver")


@pytest.mark.postgres
def test_a_postgres_savers_database_is_opened_as_it_is(browser: Browser, tmp_path: Path) -> None:
    with postgres_saver(tmp_path) as (saver, address):
        travel(saver).invoke({"messages": [HumanMessage("Where to?", id="first")]}, config("trip"))
        with served(address) as url, reading(browser) as page:
            look_into(page, url)


def look_into(page: Page, url: str) -> None:
    """Read the only thread of a database that is only read."""
    page.goto(f"{url}/")
    page.locator("a[data-row]").click()
    expect(page.locator(".question")).to_contain_text("Rome or Oslo?")
    expect(page.locator(".place")).to_contain_text("read only")
    page.locator(".rail a").last.click()
    expect(page.locator(".question")).to_have_count(0)
    page.get_by_role("link", name="State").click()
    expect(page.locator(".steps")).to_contain_text("Back to the latest")
