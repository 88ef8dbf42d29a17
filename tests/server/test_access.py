"""Who comes in sees what is theirs; what is refused is said as a problem, and no stack is shown."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from calling import Caller, another, calling
from fastapi import FastAPI, HTTPException, Request
from served import notebook

from langmem_ext import DeltaSaver, InvalidInput, Threads
from langmem_ext.server import Limits, by_token, create_app, create_router, on_this_machine

ANN, BOB, ALL = "ann-0123456789abcdef", "bob-0123456789abcdef", "all-0123456789abcdef"
TOKENS = {ANN: "ann", BOB: "bob", ALL: None}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def search(caller: Caller, **headers: str) -> httpx.Response:
    return await caller.http.post("/threads/search", json={}, headers=headers)


async def test_only_this_machine_calls_without_a_token() -> None:
    app = create_app(":memory:")
    async with calling(app) as caller, another(app, address="192.0.2.7") as stranger:
        assert (await search(caller)).status_code == 200
        assert (await search(caller, Origin="http://localhost:3000")).status_code == 200
        for headers in (
            {"Host": "rebound.example.com"},
            {"Host": ""},
            {"Origin": "https://evil.example.com"},
            {"Origin": "null"},
        ):
            assert (await search(caller, **headers)).status_code == 403, headers
        refused = await stranger.http.post("/threads", json={})
        assert (refused.status_code, "token" in refused.json()["detail"]) == (403, True)
        assert await caller.sdk.threads.count() == 0


async def test_a_token_shows_the_threads_of_its_owner_alone(url: str) -> None:
    app = create_app(url, graph=notebook(), access=by_token(TOKENS))
    async with (
        calling(app, headers=bearer(ANN)) as ann,
        another(app, headers=bearer(BOB)) as bob,
        another(app, headers=bearer(ALL)) as every,
    ):
        await ann.sdk.threads.create(thread_id="of-ann")
        await bob.sdk.threads.create(thread_id="of-bob")
        assert [thread["thread_id"] for thread in await ann.sdk.threads.search()] == ["of-ann"]
        assert await bob.sdk.threads.count() == 1
        assert await every.sdk.threads.count() == 2
        assert await bob.sdk.threads.prune(["of-ann"]) == {"pruned_count": 0}
        calls: list[tuple[str, str, Any]] = [
            ("GET", "/threads/of-ann", None),
            ("PATCH", "/threads/of-ann", {"metadata": {"x": 1}}),
            ("DELETE", "/threads/of-ann", None),
            ("POST", "/threads/of-ann/copy", None),
            ("GET", "/threads/of-ann/state", None),
            ("POST", "/threads/of-ann/state", {"values": {"notes": ["x"]}, "as_node": "note"}),
            ("POST", "/threads/of-ann/history", {}),
        ]
        for method, path, content in calls:
            answer = await bob.http.request(method, path, json=content)
            assert answer.status_code == 404, (method, path)
        assert (await ann.sdk.threads.get("of-ann"))["metadata"].get("x") is None  # type: ignore[union-attr]


async def test_who_has_no_token_is_told_so() -> None:
    app = create_app(":memory:", access=by_token(TOKENS))
    async with calling(app, address="192.0.2.7") as caller:
        for headers in (
            {},
            bearer("wrong"),
            {"Authorization": f"Basic {ANN}"},
            {"Authorization": "Bearer"},
            {"X-Api-Key": b"\xe9"},
        ):
            refused = await caller.http.get("/threads/t1", headers=headers)
            assert refused.status_code == 401, headers
            assert refused.headers["WWW-Authenticate"] == "Bearer"
            assert refused.headers["Content-Type"] == "application/problem+json"
        for headers in (bearer(ANN), {"Authorization": f"bearer {ANN}"}, {"X-Api-Key": ANN}):
            assert (await caller.http.get("/threads/t1", headers=headers)).status_code == 404


def test_a_token_that_can_be_guessed_or_sent_by_nobody_is_refused() -> None:
    for token in ("short", "with a space in it!", "no-ascii-é-0123456789"):
        with pytest.raises(InvalidInput):
            by_token({token: "ann"})
    for owners in ({}, {ANN: ""}):
        with pytest.raises(InvalidInput):
            by_token(owners)


async def test_an_application_says_itself_who_comes_in() -> None:
    async def access(request: Request) -> str | None:
        if request.headers.get("cookie") != "session=7":
            raise HTTPException(401, "log in first")
        return "ann"

    with DeltaSaver.open(":memory:") as saver:
        app = FastAPI()
        app.include_router(create_router(saver, access=access), prefix="/memory")
        async with calling(app, address="192.0.2.7") as caller:
            refused = await caller.http.post("/memory/threads", json={})
            assert (refused.status_code, refused.json()["detail"]) == (401, "log in first")
            made = await caller.http.post(
                "/memory/threads", json={"thread_id": "t1"}, headers={"Cookie": "session=7"}
            )
            assert made.status_code == 200
        assert (
            Threads(saver.for_owner("ann")).get("t1").owner == "ann"
        )  # and the saver is still open


async def test_what_is_too_much_is_refused() -> None:
    async def pieces() -> Any:
        for _ in range(20):
            yield b'{"thread_id":'

    json, text = ({"Content-Type": kind} for kind in ("application/json", "text/plain"))
    calls: list[tuple[str, Any, int]] = [
        ("/threads", {"json": {"thread_id": "x" * 200}}, 413),
        ("/threads", {"content": pieces(), "headers": json}, 413),  # its length is not announced
        ("/threads", {"content": b"thread_id=1", "headers": text}, 415),
        ("/threads/search", {"json": {"limit": 1001}}, 422),
        ("/threads/count", {"json": {}}, 200),
        ("/threads/count", {"json": {}}, 429),
    ]
    async with calling(create_app(":memory:", limits=Limits(body=100, rate=5))) as caller:
        for path, body, status in calls:
            answer = await caller.http.post(path, **body)
            assert answer.status_code == status, body
        assert int(answer.headers["Retry-After"]) >= 1


async def test_a_body_that_does_not_end_is_waited_for_only_so_long() -> None:
    never = asyncio.Event()

    async def slowly() -> AsyncIterator[bytes]:
        yield b'{"thread_id":'
        await never.wait()

    async with calling(create_app(":memory:", limits=Limits(body_seconds=0.05))) as caller:
        answer = await caller.http.post(
            "/threads", content=slowly(), headers={"Content-Type": "application/json"}
        )
        assert answer.status_code == 408
        assert "too long" in answer.json()["detail"]
        assert (await caller.http.post("/threads/count", json={})).json() == 0


async def test_a_failure_says_nothing_of_the_server(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with another(create_app(str(tmp_path / "no" / "memory.db"))) as caller:
        with caplog.at_level(logging.ERROR):
            failed = await caller.http.get("/threads/t1")
        assert failed.status_code == 503
        assert str(tmp_path) not in failed.text
        assert "Traceback" not in failed.text
        assert str(tmp_path) in caplog.text


async def test_what_is_wrong_with_a_request_is_named_and_not_repeated() -> None:
    async with calling(create_app(":memory:")) as caller:
        wrong = await caller.http.post(
            "/threads/search", json={"limit": "4711-secret", "sort_by": "colour"}
        )
        assert wrong.status_code == 422
        assert wrong.headers["Content-Type"] == "application/problem+json"
        assert "body.limit" in wrong.json()["detail"]
        assert "body.sort_by" in wrong.json()["detail"]
        assert "4711-secret" not in wrong.text
        missing = await caller.http.get("/nothing/here")
        assert (missing.status_code, missing.headers["Content-Type"]) == (
            404,
            "application/problem+json",
        )


async def test_other_pages_may_call_only_where_they_are_named() -> None:
    page = "https://chat.example.com"
    asked = {
        "Origin": page,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type,x-api-key,x-auth-scheme",
    }
    async with calling(create_app(":memory:", access=by_token(TOKENS))) as caller:
        refused = await caller.http.options("/threads/search", headers=asked)
        assert "access-control-allow-origin" not in refused.headers
    async with calling(create_app(":memory:", origins=[page])) as caller:
        allowed = await caller.http.options("/threads/search", headers=asked)
        assert (allowed.status_code, allowed.headers["access-control-allow-origin"]) == (200, page)
        shown = (await search(caller, Origin=page)).headers["access-control-expose-headers"]
        needed = {"x-pagination-total", "x-pagination-next", "content-location"}
        assert needed <= {*shown.lower().replace(" ", "").split(",")}


async def test_the_default_access_can_be_bound_to_an_owner() -> None:
    async with calling(create_app(":memory:", access=on_this_machine(owner="ann"))) as caller:
        await caller.sdk.threads.create(thread_id="t1")
        assert (await caller.sdk.threads.count()) == 1
