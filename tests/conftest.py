"""Fixtures that all tests share, and how much the random ones do."""

from __future__ import annotations

import inspect
import os
import re
import signal
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import cast

import pytest
from _pytest.mark.expression import Expression
from blocking import no_blocking_calls
from clock import Clock
from hypothesis import HealthCheck, Phase, settings
from postgres.server import SHARED, Database
from savers import BACKENDS, MODES, Backend, Calls, Mode

from langmem_ext import DeltaSaver

SOAK = os.environ.get("LANGMEM_EXT_SOAK") == "1"

# Shrinking a program of forty graph runs takes minutes: ask for it when a failure is to be
# understood.
PHASES = [
    Phase.explicit,
    Phase.generate,
    *([Phase.shrink] if os.environ.get("LANGMEM_EXT_SHRINK") == "1" else []),
]
EXAMPLES = int(os.environ.get("LANGMEM_EXT_EXAMPLES", "500" if SOAK else "6"))
COMMON = {
    "max_examples": EXAMPLES,
    "deadline": None,
    "database": None,
    "suppress_health_check": list(HealthCheck),
    "phases": PHASES,
}
settings.register_profile("default", settings(derandomize=True, **COMMON))  # type: ignore[arg-type]
settings.register_profile("soak", settings(derandomize=False, print_blob=True, **COMMON))  # type: ignore[arg-type]
settings.load_profile("soak" if SOAK else "default")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """What time the package takes it to be, until it is moved."""
    return Clock(monkeypatch)


@pytest.fixture(params=BACKENDS, ids=lambda backend: backend.name, scope="session")
def backend(request: pytest.FixtureRequest) -> Backend:
    """Each kind of database that the subject runs on."""
    return cast(Backend, request.param)


@pytest.fixture(
    params=[backend for backend in BACKENDS if backend.survives_close],
    ids=lambda backend: backend.name,
    scope="session",
)
def durable(request: pytest.FixtureRequest) -> Backend:
    """Each kind of database that outlives its connections; or those whose names a test gives."""
    if isinstance(request.param, str):
        return next(backend for backend in BACKENDS if backend.name == request.param)
    return cast(Backend, request.param)


@pytest.fixture
def url(durable: Backend, tmp_path: Path) -> str:
    """A database of the test's own that may be opened repeatedly, of each durable kind."""
    return durable.new_url(tmp_path)


@pytest.fixture
def place(durable: Backend, tmp_path: Path) -> str:
    """Where a test's database is: `memory.db` in the test's folder, or tables on PostgreSQL."""
    return str(tmp_path / "memory.db") if durable.name == "file" else durable.new_url(tmp_path)


@pytest.fixture(params=MODES, scope="session")
def mode(request: pytest.FixtureRequest) -> Mode:
    """Each way of calling: the sync methods, or their async twins on an event loop."""
    return cast(Mode, request.param)


@pytest.fixture
def saver(url: str) -> Iterator[DeltaSaver]:
    """A saver on a database of the test's own, of each durable kind."""
    with DeltaSaver.open(url) as saver:
        yield saver


@pytest.fixture
def calls(mode: Mode) -> Calls:
    """Calls in each mode."""
    return Calls(mode)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the databases of a run."""
    return tmp_path_factory.mktemp("databases")


@pytest.fixture(scope="session", autouse=True)
def processes_can_be_interrupted() -> Iterator[None]:
    """Ctrl-C reaches the processes that the tests start: a shell that runs the tests in the
    background has their whole family ignore it.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session", autouse=True)
def postgres_is_left_as_it_was() -> Iterator[None]:
    """The database that the tests of this process share is dropped after them."""
    yield
    SHARED.close()


@pytest.fixture(autouse=True)
def schemas_are_dropped() -> Iterator[None]:
    """A test's schemas on PostgreSQL go with it."""
    with SHARED.own_schemas():
        yield


@pytest.fixture
def database() -> Database:
    """The PostgreSQL database of this process; `SHARED.new_schema` names a schema for the test."""
    return SHARED.database()


@pytest.fixture(autouse=True)
def event_loops_are_never_blocked(request: pytest.FixtureRequest) -> Iterator[None]:
    """In tests with an event loop, a blocking call of something async of the package raises."""
    called = getattr(request.node, "callspec", None)
    if not inspect.iscoroutinefunction(getattr(request.node, "obj", None)) and (
        called is None or called.params.get("mode") != "async"
    ):
        yield
        return
    with no_blocking_calls():
        yield


KITS = (
    *("IPython", "a2a", "ag_ui_langgraph", "deepagents", "langchain_anthropic"),
    *("langchain_google_genai", "langchain_openai", "langgraph_api", "langmem", "nbclient"),
    *("playwright", "schemathesis"),
)
"""What the group `interop` of pyproject.toml installs, by a module of each."""

MISSING = [kit for kit in KITS if find_spec(kit) is None]
ALL_INTEROP = re.compile(r"^pytestmark = .*\binterop\b", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out modules that are all interop where their kits are missing.

    They could not be imported. In CI they are left out only where `-m` leaves out their tests too,
    as `make test` does: otherwise a kit that is missing there is an error.
    """
    if not MISSING or collection_path.suffix != ".py":
        return None
    chosen = config.option.markexpr
    if os.environ.get("CI") and (not chosen or Expression.compile(chosen).evaluate(_is_interop)):
        return None
    return bool(ALL_INTEROP.search(collection_path.read_text(encoding="utf-8"))) or None


def _is_interop(name: str, /, **_: str | int | bool | None) -> bool:
    return name == "interop"


def pytest_report_header() -> list[str]:
    """Say what is left out, and why."""
    return [f"left out: tests that need {', '.join(MISSING)} (group interop)"] if MISSING else []


SLOW = (
    "test_dev_server.py",
    "test_kills.py",
    "test_demo.py",
    "test_ugly_path.py",
    "test_random_users.py",
    "test_notebooks.py",
    "test_cli.py",
    "test_equivalence.py",
    "test_peers.py",
)
"""Files whose tests take seconds each: they begin first, no worker is alone with one at the end,
and what they share starts once."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what each test needs, put long tests first, and leave soak tests to a soak."""
    for item in items:
        _mark(item)
    items.sort(key=lambda item: SLOW.index(item.path.name) if item.path.name in SLOW else len(SLOW))
    if SOAK:
        for item in items:
            item.add_marker(pytest.mark.timeout(0), append=False)
        return
    long = [item for item in items if item.get_closest_marker("soak")]
    config.hook.pytest_deselected(items=long)
    items[:] = [item for item in items if item not in long]


def _mark(item: pytest.Item) -> None:
    """Mark what needs PostgreSQL, and the async twins of sync tests, which a fast run leaves out.

    A database in memory is the same code as one in a file: outside of contracts only a soak has it.
    """
    called = getattr(item, "callspec", None)
    given = list(called.params.values()) if called is not None else []
    names = [
        value.name if isinstance(value, Backend) else value
        for value in given
        if isinstance(value, Backend | str)
    ]
    used = getattr(item, "fixturenames", ())
    if "server" in used and "talk" in used:
        item.add_marker("process")
    if (
        "postgres" in item.path.parts
        or "database" in used
        or any("postgres" in name.split() for name in names)
    ):
        item.add_marker("postgres")
    if item.get_closest_marker("contract") is not None:
        return
    if "async" in names:
        item.add_marker("twin")
    if any(isinstance(value, Backend) and value.name == "memory" for value in given):
        item.add_marker("soak")
