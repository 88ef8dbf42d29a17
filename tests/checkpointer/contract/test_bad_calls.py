"""Promise: what a saver cannot store or look for is refused by name, whatever the argument, and
changes nothing.
"""

from __future__ import annotations

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


async def refused(calls: Calls, saver: DeltaSaver, name: str, *args: Any, **kwargs: Any) -> None:
    call = calls.collect if name == "list" else calls.call
    with pytest.raises(InvalidInput):
        await call(saver, name, *args, **kwargs)


async def test_what_names_no_checkpoint_is_refused(
    backend: Backend, folder: Path, mode: Mode
) -> None:
    calls = Calls(mode)
    with brief_saver(backend, folder) as saver:
        at = saver.put(config_of(), empty_checkpoint(), {"step": 0}, {})
        before = everything(saver)
        for bad in NO_TEXTS:
            for named in (
                config_of(checkpoint_ns=bad, checkpoint_id=at["configurable"]["checkpoint_id"]),
                config_of(checkpoint_id=bad),
            ):
                await refused(calls, saver, "get_tuple", named)
                await refused(calls, saver, "list", named)
                await refused(calls, saver, "list", config_of(), before=named)
                await refused(calls, saver, "put", named, empty_checkpoint(), {}, {})
                await refused(calls, saver, "put_writes", named, [("a", 1)], "task")
                await refused(
                    calls, saver, "get_delta_channel_history", config=named, channels=["a"]
                )
        for nothing in (None, "t", ["t"], 5, {"configurable": "t"}):
            await refused(calls, saver, "get_tuple", nothing)
            await refused(calls, saver, "put", nothing, empty_checkpoint(), {}, {})
            await refused(calls, saver, "put_writes", nothing, [("a", 1)], "task")
        for wanted in (
            {"limit": 1.5},
            {"limit": "2"},
            {"limit": [1]},
            {"filter": ["source"]},
            {"filter": "source"},
        ):
            await refused(calls, saver, "list", config_of(), **wanted)
        assert everything(saver) == before
        assert_sound(saver)


async def test_what_is_no_checkpoint_is_refused(backend: Backend, folder: Path, mode: Mode) -> None:
    calls = Calls(mode)
    with brief_saver(backend, folder) as saver:
        saver.put(config_of(), empty_checkpoint(), {"step": 0}, {})
        before = everything(saver)
        for name in ("id", "ts", "channel_values", "channel_versions", "versions_seen"):
            for bad in (5, 1.5, True, b"bytes", ["a list"], None):
                await refused(
                    calls, saver, "put", config_of(), {**empty_checkpoint(), name: bad}, {}, {}
                )
        for bad in (5, None, b"bytes", ("a", "tuple")):
            values = {"channel_values": {"a": 1, bad: 1}, "channel_versions": {"a": 1, bad: 1}}
            await refused(
                calls, saver, "put", config_of(), empty_checkpoint() | values, {}, {"a": 1, bad: 1}
            )
            await refused(
                calls,
                saver,
                "put",
                config_of(),
                empty_checkpoint() | {"versions_seen": {"node": bad}},
                {},
                {},
            )
        for bad in (5, True, "abc", b"bytes", {"a": 1}):
            await refused(
                calls,
                saver,
                "put",
                config_of(),
                empty_checkpoint() | {"updated_channels": bad},
                {},
                {},
            )
        for no_versions in (None, 5, "a", ["a"]):
            await refused(calls, saver, "put", config_of(), empty_checkpoint(), {}, no_versions)
        for no_checkpoint in (None, 5, [], {}, {"ts": "2026-01-01T00:00:00+00:00"}):
            await refused(calls, saver, "put", config_of(), no_checkpoint, {}, {})
        for no_metadata in (None, 5, [("step", 1)]):
            await refused(calls, saver, "put", config_of(), empty_checkpoint(), no_metadata, {})
        assert everything(saver) == before
        assert_sound(saver)


async def test_what_no_task_writes_is_refused(backend: Backend, folder: Path, mode: Mode) -> None:
    calls = Calls(mode)
    with brief_saver(backend, folder) as saver:
        at = saver.put(config_of(), empty_checkpoint(), {"step": 0}, {})
        saver.put_writes(at, [("a", 1)], "task")
        before = everything(saver)
        for bad in NO_TEXTS:
            await refused(calls, saver, "put_writes", at, [("a", 1)], bad)
            await refused(calls, saver, "put_writes", at, [("a", 1)], "another task", bad)
            await refused(calls, saver, "put_writes", at, [("a", 1), (bad, 1)], "another task")
        for no_writes in (None, 5, "ab", [("a",)], [("a", 1, 2)], ["ab"], {"a": 1}):
            await refused(calls, saver, "put_writes", at, no_writes, "another task")
        for nowhere in (config_of(), config_of(checkpoint_id=None)):
            await refused(calls, saver, "put_writes", nowhere, [("a", 1)], "another task")
        assert everything(saver) == before
        assert_sound(saver)


async def test_what_no_reader_takes_as_a_name_or_a_version_is_refused(
    backend: Backend, folder: Path, mode: Mode
) -> None:
    calls = Calls(mode)
    with brief_saver(backend, folder) as saver:
        saver.put(config_of(), empty_checkpoint(), {"step": 0}, {})
        before = everything(saver)
        odd: list[dict[str, Any]] = [{"v": bad} for bad in (None, "1", 1.5, True, b"1", [1])]
        for name in (5, None, True, b"bytes", ("a", "tuple"), "half \ud83d"):
            odd += [
                {"channel_versions": {name: "1"}},
                {"versions_seen": {name: {"a": "1"}}},
                {"versions_seen": {"node": {name: "1"}}},
                {"updated_channels": [name]},
            ]
        for version in (None, True, b"1", (1, 2), "half \ud83d"):
            odd += [
                {"channel_versions": {"a": version}},
                {"versions_seen": {"node": {"a": version}}},
            ]
        odd += [{"channel_values": {"half \ud83d": 1}}, {"ts": "\ud800"}]
        for given in odd:
            await refused(calls, saver, "put", config_of(), {**empty_checkpoint(), **given}, {}, {})
        assert everything(saver) == before
        assert_sound(saver)


async def test_texts_are_not_taken_for_lists_by_what_deletes(
    backend: Backend, folder: Path, mode: Mode
) -> None:
    calls = Calls(mode)
    with brief_saver(backend, folder) as saver:
        for thread in ("5", "53", "None"):
            saver.put(
                {"configurable": {"thread_id": thread}}, empty_checkpoint(), {"run_id": thread}, {}
            )
        before = everything(saver)
        for bad in (b"5", "5", bytearray(b"5"), None, 5, {"5": 1}):
            await refused(calls, saver, "prune", bad, strategy="delete")
            await refused(calls, saver, "delete_for_runs", bad)
            await refused(calls, saver, "outline", bad) if bad is not None else None
        for bad in ([None], [b"5"], [5.0], [True], [["5"]]):
            await refused(calls, saver, "prune", bad, strategy="delete")
            await refused(calls, saver, "delete_for_runs", bad)
        assert everything(saver) == before


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
