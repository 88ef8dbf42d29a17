"""Promise: a list that is stored in pieces costs each checkpoint a little, reads back exactly, and
survives pruning and copying.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.checkpoint.base import empty_checkpoint

from langmem_ext import DeltaSaver
from langmem_ext.maintenance.doctor import examine
from langmem_ext.messages.manifest import length_of, runs_of
from langmem_ext.storage.operation import Op, Rows, Statement, operation
from langmem_ext.storage.rows.checkpoint import Header
from langmem_ext.storage.rows.manifest import MAX_RUNS, decode_runs, encode_runs, plan_row

CONFIG: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


def grow(saver: DeltaSaver, steps: int) -> list[Any]:
    """A thread whose tasks answer in another order than their answers are listed in; the configs of
    its checkpoints.
    """
    chance = random.Random(5)
    listed: list[BaseMessage] = []
    config, configs = CONFIG, []
    for step in range(steps):
        answers = [
            AIMessage(f"answer {step} of worker {number}", id=f"{step}-{number}")
            for number in range(8)
        ]
        for number in chance.sample(range(8), 8):
            saver.put_writes(
                {"configurable": {**config["configurable"], "checkpoint_id": f"{step:05}"}},
                [("messages", answers[number])],
                f"w{number}",
            )
        listed = [*listed, *answers]
        config = saver.put(config, *checkpoint(f"{step + 1:05}", listed))
        configs.append(config)
    return configs


def checkpoint(id: str, messages: list[BaseMessage]) -> Any:
    made = empty_checkpoint() | {"id": id}
    made["channel_values"], made["channel_versions"] = (
        {"messages": list(messages)},
        {"messages": id},
    )  # type: ignore[typeddict-unknown-key]
    return made, {"step": 1}, {"messages": id}


def said(saver: DeltaSaver, config: Any) -> list[Any]:
    found = saver.get_tuple(config)
    assert found is not None
    return [message.content for message in found.checkpoint["channel_values"]["messages"]]


def expected(steps: int) -> list[str]:
    return [f"answer {step} of worker {number}" for step in range(steps) for number in range(8)]


def headers(saver: DeltaSaver) -> list[Header]:
    [cache] = saver.log.caches._caches.values()
    return list(cache.headers.values())


def test_a_fragmented_list_reads_back_exactly_warm_and_cold(url: str) -> None:
    with DeltaSaver.from_conn_string(url) as saver:
        configs = grow(saver, 60)
        assert all(
            said(saver, config) == expected(step) for step, config in enumerate(configs, start=1)
        )
        refs = [header.values["messages"] for header in headers(saver)]
        assert max(len(ref.runs) for ref in refs) > 4 * MAX_RUNS
        assert all(
            len(ref.runs) - (ref.manifest[1] if ref.manifest else 0) <= 2 * MAX_RUNS for ref in refs
        )
    with DeltaSaver.from_conn_string(url) as saver:
        assert all(
            said(saver, config) == expected(step) for step, config in enumerate(configs, start=1)
        )
        again = saver.put(
            configs[-1],
            *checkpoint(
                "00099", [*saver_messages(saver, configs[-1]), AIMessage("more", id="more")]
            ),
        )
        assert said(saver, again) == [*expected(60), "more"]
        assert not [finding for finding in examine(saver).findings if finding.severity != "note"]


def saver_messages(saver: DeltaSaver, config: Any) -> list[BaseMessage]:
    found = saver.get_tuple(config)
    assert found is not None
    messages: list[BaseMessage] = found.checkpoint["channel_values"]["messages"]
    return messages


def test_its_checkpoints_do_not_grow_with_it(url: str) -> None:
    with DeltaSaver.from_conn_string(url) as saver:
        grow(saver, 120)
        sizes = [size for (size,) in saver.log.driver.run(_sizes(), write=False)]
    assert max(sizes[-20:]) < 1000
    assert sum(sizes[-20:]) < 2 * sum(sizes[30:50])


@operation
def _sizes() -> Op[Rows]:
    return (yield Statement("SELECT length(body) FROM checkpoint ORDER BY id", {}))


def test_what_is_kept_of_it_stays_whole(url: str) -> None:
    with DeltaSaver.from_conn_string(url) as saver:
        configs = grow(saver, 60)
        saver.copy_thread("t", "copy")
        saver.prune(["t"], keep_last=2)
        assert said(saver, configs[-1]) == expected(60)
        assert said(saver, configs[-2]) == expected(59)
        saver.delete_thread("t")
        copy = {"configurable": {**configs[20]["configurable"], "thread_id": "copy"}}
        assert said(saver, copy) == expected(21)
        assert not [finding for finding in examine(saver).findings if finding.severity != "note"]


def test_runs_come_back_from_their_row() -> None:
    for runs in ((0, 3, 5, 7, 4, 5), (7, 9), ()):
        assert decode_runs(encode_runs(runs)) == runs
    assert len(encode_runs(runs_of([number ^ 1 for number in range(2000)]))) < 5000
    for body in (b"\x81\x01\x01", b"\x92\x01\xc3", b"\x92\x05\xfb", b"\x91\x01"):
        with pytest.raises(ValueError, match="messages|argument"):
            decode_runs(body)


def test_a_row_is_used_again_while_it_is_the_beginning() -> None:
    runs = runs_of(range(0, 400, 2))
    row = plan_row((), runs)
    assert row == runs[:-2]
    assert plan_row(row, (*runs, 1000, 1001)) == row
    assert plan_row(row, runs_of(range(0, 800, 2))) != row
    assert plan_row(row, (1, 2, *runs)) != row
    assert plan_row(row, runs[:100]) == ()
    assert length_of(row) == 199
