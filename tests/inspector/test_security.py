"""Nobody but this machine's reader is answered, and nothing that was stored runs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from fastapi import FastAPI
from fastapi.testclient import TestClient
from inspected import HOSTILE, browsing, tags, token_of, travel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from langmem_ext import DeltaSaver, ThreadChatMessageHistory, Threads
from langmem_ext.inspector import inspector_router


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[DeltaSaver]:
    with DeltaSaver.open(str(tmp_path / "memory.db"), synchronous="normal") as saver:
        yield saver


@pytest.fixture
def client(saver: DeltaSaver) -> Iterator[TestClient]:
    ThreadChatMessageHistory("t", saver).add_messages([HumanMessage("hello")])
    with browsing(saver, graph=travel(saver)) as client:
        yield client


def test_only_this_machines_own_names_are_answered(client: TestClient) -> None:
    strangers = ("evil.example", "127.0.0.1.evil.example", "evil.example:8127", "", "[::2]", "[")
    for host in strangers:
        for path in ("/ui/", "/ui/thread?id=t", "/ui/static/inspector.js"):
            answer = client.get(path, headers={"Host": host})
            assert answer.status_code == 421, (host, path)
            assert "hello" not in answer.text
    for host in ("127.0.0.1", "127.0.0.1:8127", "localhost:1", "[::1]:80", "LOCALHOST"):
        assert client.get("/ui/", headers={"Host": host}).status_code == 200, host


def test_another_sites_form_changes_nothing(client: TestClient, saver: DeltaSaver) -> None:
    text = client.get("/ui/thread?id=t").text
    token, before = token_of(text), Threads(saver).count()
    form = {"id": "t", "at": tags(text, "form")[1] and "", "token": token}
    for headers, fields in (
        ({}, {"id": "t"}),
        ({}, {"id": "t", "token": "guessed"}),
        ({"Origin": "https://evil.example"}, form),
        ({"Origin": "null"}, form),
        ({"Sec-Fetch-Site": "cross-site"}, form),
        ({"Sec-Fetch-Site": "same-site"}, form),
    ):
        for name in ("fork", "reply", "replay"):
            answer = client.post(f"/ui/thread/{name}", data=fields, headers=headers)
            assert answer.status_code == 403, (name, headers, fields)
    assert client.get("/ui/thread/fork?id=t").status_code == 405
    assert Threads(saver).count() == before
    assert Threads(saver).get("t").messages == 1


def test_a_form_that_is_too_large_is_refused(client: TestClient) -> None:
    assert (
        client.post("/ui/thread/reply", data={"id": "t", "text": "x" * 300_000}).status_code == 413
    )
    assert client.post("/ui/thread/reply", content=b"\xff\xfe" * 10).status_code in (400, 403)


async def test_a_form_that_does_not_end_is_waited_for_only_so_long(
    saver: DeltaSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("langmem_ext.inspector.security.FORM_SECONDS", 0.05)
    never = asyncio.Event()

    async def slowly() -> AsyncIterator[bytes]:
        yield b"token="
        await never.wait()

    app = FastAPI()
    app.include_router(inspector_router(saver))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        answer = await client.post("/thread/fork", content=slowly())
    assert answer.status_code == 408


def test_no_file_but_those_of_the_pages_is_served(client: TestClient) -> None:
    for name in (
        "../site.py",
        "..%2fsite.py",
        "%2e%2e%2f%2e%2e%2fsite.py",
        "..%5csite.py",
        "%2fetc%2fpasswd",
        "inspector.css%00.py",
        "inspector.css/../../site.py",
        "",
    ):
        answer = client.get(f"/ui/static/{name}")
        assert answer.status_code == 404, name
        assert "import" not in answer.text
        assert "root:" not in answer.text


def test_every_answer_lets_nothing_run_that_does_not_come_with_it(client: TestClient) -> None:
    for path in (
        "/ui/",
        "/ui/thread?id=t",
        "/ui/thread?id=nothing",
        "/ui/static/inspector.css",
        "/ui/thread/bundle?id=t",
    ):
        headers = client.get(path).headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Referrer-Policy"] == "same-origin", (
            "with no-referrer, its own forms say `Origin: null`"
        )
    text = client.get("/ui/thread?id=t").text
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|<script>", text), "the policy would stop it"


def test_stored_text_never_becomes_part_of_a_page(saver: DeltaSaver) -> None:
    call = {"name": HOSTILE, "args": {HOSTILE: HOSTILE}, "id": HOSTILE, "type": "tool_call"}
    image = {"type": "image", "base64": '"><script>alert(1)</script>', "mime_type": "image/png"}
    vector = {
        "type": "image_url",
        "image_url": {"url": "data:image/svg+xml;base64,PHN2Zz48L3N2Zz4="},
    }
    said: list[Any] = [
        SystemMessage(HOSTILE, id="s"),
        HumanMessage([{"type": "text", "text": HOSTILE}, image, vector], id=HOSTILE, name=HOSTILE),
        AIMessage(
            HOSTILE,
            id="a",
            name=HOSTILE,
            tool_calls=[call],
            response_metadata={"model_name": HOSTILE},
        ),
        ToolMessage(HOSTILE, tool_call_id=HOSTILE, name=HOSTILE, id="r", status="error"),
        ToolMessage(HOSTILE, tool_call_id="none", name=HOSTILE, id="r2"),
    ]
    graph = travel(saver)
    graph.update_state(
        {"configurable": {"thread_id": HOSTILE}},
        {"messages": said, "city": {HOSTILE: [HOSTILE]}},
        as_node="look",
    )
    threads = Threads(saver)
    threads.rename(HOSTILE, HOSTILE)
    threads.tag(HOSTILE, HOSTILE[:99].strip())
    here, blame = {"id": HOSTILE}, {"channel": "city", "path": "[]"}
    with browsing(saver, graph=graph) as client:
        pages = [
            client.get(f"/ui/{name}", params=asked)
            for name, asked in (
                ("", {}),
                ("search", {"q": "alert"}),
                ("", {"q": HOSTILE, "tag": HOSTILE}),
                ("thread", here),
                *((f"thread/{name}", here) for name in ("state", "changes", "context", "usage")),
                ("thread/blame", here | blame),
                ("thread/blame", here | blame | {"part": "1"}),
                ("thread", {"id": f"{HOSTILE}."}),
            )
        ]
    assert "\\u202efdp.exe" in pages[3].text
    for answer in pages:
        text = answer.text
        assert answer.status_code in (200, 400, 404)
        assert not {"\u202e", "\u2066"} & set(re.sub("<[^>]*>", "", text)), "it would turn words"
        assert text.count("<script") <= 1
        assert all("inspector.js" in str(one.get("src")) for one in tags(text, "script"))
        assert all(
            str(one.get("src", "")).startswith("data:image/png") for one in tags(text, "img")
        )
        for name in ("a", "button", "input", "span", "img", "li", "details", "code"):
            for attributes in tags(text, name):
                assert not any(key.startswith("on") for key in attributes), attributes
                assert (
                    not str(attributes.get("href", ""))
                    .lower()
                    .startswith(("javascript:", "data:", "vbscript:"))
                ), attributes


def test_markdown_makes_no_script_and_no_request(saver: DeltaSaver) -> None:
    texts = yaml.safe_load(Path(__file__).with_name("markdown.yaml").read_text("utf-8"))
    said = [AIMessage(text) for text in texts]
    ThreadChatMessageHistory("t", saver).add_messages(said)
    with browsing(saver) as client:
        page = client.get("/ui/thread", params={"id": "t"}).text
    shown = page[page.index('<li class="said') : page.rindex('<li class="said')]
    assert shown.count('<li class="said') == len(said) - 1
    for name in ("script", "img", "iframe", "object", "style"):
        assert tags(shown, name) == []
    assert "alert(1)" in shown
    for attributes in tags(shown, "a"):
        assert str(attributes["href"]).startswith(("https://", "http://", "mailto:", "/ui/"))
        assert not any(name.startswith("on") for name in attributes)
