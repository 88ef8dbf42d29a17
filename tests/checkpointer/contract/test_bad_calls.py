"""Promise: what a saver cannot store or look for is refused by name, whatever the argument, and
changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from prune_reference import assert_sound, everything
from savers import Backend, Calls, Mode, brief_saver

from langmem_ext import DeltaSaver, InvalidInput

NO_TEXTS: Final[tuple[Any, ...]] = (5, 1.5, True, b"bytes", ["a list"], {"a": "dict"})


def config_of(**named: Any) -> dict[str, Any]:
    return {"configurable": {"thread_id": "t", **named}}


Call = tuple[str, tuple[Any, ...], dict[str, Any]]


def call(name: str, *args: Any, **kwargs: Any) -> Call:
    return name, args, kwargs


def put(
    checkpoint: Any = None, *, at: Any = None, metadata: Any = None, versions: Any = None
) -> Call:
    """Putting a checkpoint that is right but for what is given."""
    given = checkpoint if isinstance(checkpoint, dict) else {}
    return call(
        "put",
        config_of() if at is None else at,
        {**empty_checkpoint(), **given},
        {} if metadata is None else metadata,
        {} if versions is None else versions,
    )


def of_no_checkpoint(at: Any) -> Iterator[Call]:
    """What names no checkpoint."""
    for bad in NO_TEXTS:
        for named in (
            config_of(checkpoint_ns=bad, checkpoint_id=at["configurable"]["checkpoint_id"]),
            config_of(checkpoint_id=bad),
        ):
            yield call("get_tuple", named)
            yield call("list", named)
            yield call("list", config_of(), before=named)
            yield put(at=named)
            yield call("put_writes", named, [("a", 1)], "task")
            yield call("get_delta_channel_history", config=named, channels=["a"])
    for nothing in (None, "t", ["t"], 5, {"configurable": "t"}):
        yield call("get_tuple", nothing)
        yield call("put", nothing, empty_checkpoint(), {}, {})
        yield call("put_writes", nothing, [("a", 1)], "task")
    for limit in (1.5, "2", [1]):
        yield call("list", config_of(), limit=limit)
    for wanted in (["source"], "source"):
        yield call("list", config_of(), filter=wanted)


def odd_checkpoints(at: Any) -> Iterator[Call]:
    """What is no checkpoint."""
    for name in ("id", "ts", "channel_values", "channel_versions", "versions_seen"):
        for bad in (5, 1.5, True, b"bytes", ["a list"], None):
            yield put({name: bad})
    for bad in (5, None, b"bytes", ("a", "tuple")):
        values = {"channel_values": {"a": 1, bad: 1}, "channel_versions": {"a": 1, bad: 1}}
        yield put(values, versions={"a": 1, bad: 1})
        yield put({"versions_seen": {"node": bad}})
    for bad in (5, True, "abc", b"bytes", {"a": 1}):
        yield put({"updated_channels": bad})
    for no_versions in (5, "a", ["a"]):
        yield put(versions=no_versions)
    for no_checkpoint in (None, 5, [], {}, {"ts": "2026-01-01T00:00:00+00:00"}):
        yield call("put", config_of(), no_checkpoint, {}, {})
    for no_metadata in (5, [("step", 1)]):
        yield put(metadata=no_metadata)


def odd_names(at: Any) -> Iterator[Call]:
    """What no reader takes as a name or a version."""
    for bad in (None, "1", 1.5, True, b"1", [1]):
        yield put({"v": bad})
    for name in (5, None, True, b"bytes", ("a", "tuple"), "half \ud83d"):
        yield put({"channel_versions": {name: "1"}})
        yield put({"versions_seen": {name: {"a": "1"}}})
        yield put({"versions_seen": {"node": {name: "1"}}})
        yield put({"updated_channels": [name]})
    for version in (None, True, b"1", (1, 2), "half \ud83d"):
        yield put({"channel_versions": {"a": version}})
        yield put({"versions_seen": {"node": {"a": version}}})
    yield put({"channel_values": {"half \ud83d": 1}})
    yield put({"ts": "\ud800"})


def odd_writes(at: Any) -> Iterator[Call]:
    """What no task writes."""
    for bad in NO_TEXTS:
        yield call("put_writes", at, [("a", 1)], bad)
        yield call("put_writes", at, [("a", 1)], "another task", bad)
        yield call("put_writes", at, [("a", 1), (bad, 1)], "another task")
    for no_writes in (None, 5, "ab", [("a",)], [("a", 1, 2)], ["ab"], {"a": 1}):
        yield call("put_writes", at, no_writes, "another task")
    for nowhere in (config_of(), config_of(checkpoint_id=None)):
        yield call("put_writes", nowhere, [("a", 1)], "another task")


def texts_for_lists(at: Any) -> Iterator[Call]:
    """What names threads or runs by a text instead of a list of them."""
    for bad in (b"5", "5", bytearray(b"5"), None, 5, {"5": 1}):
        yield call("prune", bad, strategy="delete")
        yield call("delete_for_runs", bad)
        if bad is not None:
            yield call("outline", bad)
    for bad in ([None], [b"5"], [5.0], [True], [["5"]]):
        yield call("prune", bad, strategy="delete")
        yield call("delete_for_runs", bad)


@pytest.mark.parametrize(
    "calls_of", [of_no_checkpoint, odd_checkpoints, odd_names, odd_writes, texts_for_lists]
)
async def test_what_cannot_be_used_is_refused_and_changes_nothing(
    calls_of: Callable[[Any], Iterator[Call]], backend: Backend, folder: Path, mode: Mode
) -> None:
    calls = Calls(mode)
    with brief_saver(backend, folder) as saver:
        at = saver.put(config_of(), empty_checkpoint(), {"step": 0}, {})
        saver.put_writes(at, [("a", 1)], "task")
        for thread in ("5", "53", "None"):
            place: Any = {"configurable": {"thread_id": thread}}
            saver.put(place, empty_checkpoint(), {"run_id": thread}, {})  # type: ignore[typeddict-unknown-key]
        before = everything(saver)
        for name, args, kwargs in calls_of(at):
            with pytest.raises(InvalidInput):
                await (calls.collect if name == "list" else calls.call)(
                    saver, name, *args, **kwargs
                )
        assert everything(saver) == before
        assert_sound(saver)


@pytest.mark.parametrize(
    "option",
    [
        {"retention": timedelta(days=90)},
        {"metadata_keys": "user_id"},
        {"metadata_keys": 5},
        {"owner": b"x"},
    ],
)
def test_an_option_that_is_none_is_refused_before_there_is_a_file(
    option: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput):
        DeltaSaver.open(str(tmp_path / "new.db"), **option)
    with pytest.raises(InvalidInput):
        DeltaSaver(str(tmp_path / "new.db"), **option)
    assert list(tmp_path.iterdir()) == []


async def test_a_namespace_and_a_checkpoint_that_are_none_are_left_out(
    backend: Backend, folder: Path, mode: Mode
) -> None:
    calls = Calls(mode)
    with brief_saver(backend, folder) as saver:
        named = config_of(checkpoint_ns=None, checkpoint_id=None)
        stored = await calls.call(saver, "put", named, empty_checkpoint(), {"step": 0}, {})
        assert stored["configurable"]["checkpoint_ns"] == ""
        await calls.call(
            saver,
            "put_writes",
            config_of(checkpoint_ns=None, checkpoint_id=stored["configurable"]["checkpoint_id"]),
            [("a", 1)],
            "t",
        )
        found = await calls.call(saver, "get_tuple", named)
        assert found.config == stored
        assert found.pending_writes == [("t", "a", 1)]
        assert await calls.collect(
            saver, "list", named, before=config_of(checkpoint_id=None), limit=None
        ) == [found]


async def test_a_name_in_a_config_that_is_no_text_is_no_metadata(
    backend: Backend, folder: Path, mode: Mode
) -> None:
    calls = Calls(mode)
    with brief_saver(backend, folder) as saver:
        config = {
            "configurable": {"thread_id": "t", 5: "a", "user": "u"},
            "metadata": {None: "b", "kind": "k"},
        }
        await calls.call(saver, "put", config, empty_checkpoint(), {"step": 0}, {})
        [found] = await calls.collect(saver, "list", None)
        assert found.metadata == {"step": 0, "user": "u", "kind": "k"}


async def test_a_number_of_more_digits_than_python_writes_is_no_obstacle_to_a_list(
    backend: Backend, folder: Path, mode: Mode
) -> None:
    calls = Calls(mode)
    with brief_saver(backend, folder) as saver:
        saver.put(config_of(), empty_checkpoint(), {"step": 0, "n": 1 << 60}, {})
        assert len(await calls.collect(saver, "list", None, filter={"n": 1 << 60})) == 1
        assert await calls.collect(saver, "list", None, filter={"n": 1 << 20_000}) == []
