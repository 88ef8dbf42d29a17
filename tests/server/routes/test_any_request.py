"""No request makes the server fail: whether it fits the description or not, it is answered."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import SkipTest

import pytest
import schemathesis
import served
from calling import calling
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from patience import PATIENCE_S
from schemathesis import GenerationMode
from served import filling, notebook
from serving import listening

from langmem_ext.server import Limits, Memory, create_app

pytestmark = pytest.mark.interop

DRAWN = settings(
    max_examples=200 if settings.default.max_examples > 100 else 3,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[*HealthCheck],
)
"""Requests for each operation: so many, and the same in every run."""

NOT_SERVED = 501
"""What says so on purpose."""

# In a process of its own: who draws examples lets nobody else ask for random numbers meanwhile.
PROGRAM = """
import sys
import uvicorn
from served import filling, notebook
from langmem_ext.server import Limits, Memory, create_app

memory = Memory(filling({"main_topics": ["x"], "action": [], "typical_observation": ""}))
app = create_app(sys.argv[1], graph=notebook(), memory=memory, limits=Limits(rate=None, wait=0.1))
uvicorn.run(app, port=int(sys.argv[2]), log_level="critical")
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with all that it can have, on a file; its URL.

    What it logs is printed in the end.
    """
    folder = tmp_path_factory.mktemp("any")

    def command(port: int) -> list[str]:
        return [sys.executable, "-c", PROGRAM, str(folder / "memory.db"), str(port)]

    with (folder / "log").open("w+") as log:
        with listening(command, Path(served.__file__).parent, stderr=log) as (port, _):
            yield f"http://127.0.0.1:{port}"
        log.seek(0)
        print(log.read())


@pytest.fixture(scope="module")
def operations(server: str) -> list[Any]:
    """Every operation that the server describes."""
    described = schemathesis.openapi.from_url(f"{server}/openapi.json")
    return [found.ok() for found in described.get_all_operations()]


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.filterwarnings("ignore:Overriding standard format")
@pytest.mark.parametrize("mode", GenerationMode)
def test_no_request_that_can_be_described_fails_in_the_server(
    operations: list[Any], mode: GenerationMode
) -> None:
    assert len(operations) > 40
    for operation in operations:
        # In a path nothing breaks a rule but a name of more than a thousand characters: to draw
        # one takes minutes, and the test below sends one to each path.
        named = {"path_parameters": {one.name: "x" for one in operation.path_parameters}}
        drawn = operation.as_strategy(
            generation_mode=mode, **(named if mode == GenerationMode.NEGATIVE else {})
        )

        @DRAWN
        @given(case=drawn)
        def holds(case: Any) -> None:
            response = case.call(timeout=PATIENCE_S)
            assert response.status_code < 500 or response.status_code == NOT_SERVED, (
                case.as_curl_command(),
                response.text,
            )
            assert b"Traceback" not in response.content

        with suppress(Unsatisfiable, SkipTest):  # an operation without parameters breaks no rule
            holds()


NAMES = ("x", "%00", "%ED%A0%80", "%F0%9F%A6%8A", "a%2Fb", "..", "%20", "n" * 1001)
HALF, NUL = r"\ud800", r"\u0000"
BODIES = (
    *("", "null", "[]", "7", "NaN", "{", "{}", '{"a": 1e999}', "[" * 5000, '{"a":' * 5000),
    f'{{"thread_id": "{NUL}", "metadata": {{"{HALF}": "x"}}, "values": {{"a": [[[]]]}}}}',
    f'{{"text": "{HALF}", "content": "{NUL}", "prompt_text": "{NUL}"}}',
    '{"assistant_id": "agent", "input": {"notes": 7}, "config": {"recursion_limit": 0}}',
    '{"assistant_id": "agent", "input": {"notes": [{"a": 1}]}, "if_not_exists": "create"}',
    f'{{"namespace": ["{HALF}"], "key": "{NUL}", "value": {{"{HALF}": 1}}}}',
    '{"namespace_prefix": ["%"], "filter": {"a": {"$gt": {}}}}',
    f'{{"thread_ids": ["{NUL}", ""], "ids": ["{NUL}"], "limit": 99999999999999999999}}',
    f'{{"checkpoint": {{"checkpoint_id": "{HALF}"}}, "before": "{NUL}", "as_node": "{NUL}"}}',
    f'{{"conversation_id": "{NUL}", "memory_data": {{"main_topics": ["{HALF}"]}}}}',
    f'{{"task_type": "GENERATE_MEMORY_BATCH", "payload": {{"user_id": "{HALF}"}}}}',
)
"""What clients that are broken, or hostile, may send."""


async def test_what_no_client_should_send_is_refused() -> None:
    memory = Memory(filling({"main_topics": ["x"], "action": [], "typical_observation": ""}))
    app = create_app(":memory:", graph=notebook(), memory=memory, limits=Limits(rate=None, wait=0))
    async with calling(app) as caller:
        for path, methods in app.openapi()["paths"].items():
            for name in NAMES:
                for body in BODIES if name == "x" else BODIES[:1]:
                    for method in methods:
                        place = re.sub(r"\{\w+\}", name, path)
                        headers = {"Content-Type": "application/json"}
                        answer = await caller.http.request(
                            method, place, content=body, headers=headers, params={"wait": 0}
                        )
                        assert answer.status_code < 500 or answer.status_code == NOT_SERVED, (
                            method,
                            place[:99],
                            body[:99],
                            answer.text,
                        )
