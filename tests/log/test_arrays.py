"""Promise: who looks at a database says of an array what building it would say, and builds none."""

from __future__ import annotations

from typing import Any

import ormsgpack
import pytest
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import EXT_NUMPY_ARRAY

from langmem_ext import DeltaSaver, examine
from langmem_ext.log.restore import DataSerializer, RestorePolicy
from langmem_ext.maintenance.row_reader import Contents
from langmem_ext.messages.packed import pack

numpy = pytest.importorskip("numpy")

ARRAYS = [
    numpy.zeros((2, 3), dtype=kind)
    for kind in (
        "int8",
        "uint16",
        "int64",
        ">i4",
        "float16",
        "float32",
        ">f8",
        "longdouble",
        "complex64",
        "bool",
    )
]
ARRAYS += [
    numpy.array(["a", "ünï"]),
    numpy.array([b"a", b"bc"]),
    numpy.zeros(3, dtype=[("a", "i4"), ("b", "f8")]),
    numpy.zeros((0, 4)),
]
# LangGraph packs these where they do not stand in one piece.
ARRAYS += [numpy.zeros((2, 6), dtype=kind)[:, ::2] for kind in ("M8[ns]", "m8[25s]", "M8", "M8[D]")]
ARRAYS += [numpy.asfortranarray(numpy.arange(6.0).reshape(2, 3)), numpy.array(5.0)]


@pytest.mark.parametrize("objects", [["Lamp", None], [], [2**70], [[1], {"a": 2}]], ids=repr)
def test_an_array_of_objects_reads_as_nothing_and_damages_nothing(objects: list[Any]) -> None:
    config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    array = numpy.empty(len(objects), dtype=object)
    array[:] = objects
    for saver in (DeltaSaver.open(":memory:"), InMemorySaver()):
        values = {
            "rows": array,
            "messages": [ToolMessage("found", tool_call_id="c", artifact=array, id="m")],
            "kept": 1,
        }
        versions = dict.fromkeys(values, 1)
        at = saver.put(
            config,
            empty_checkpoint() | {"channel_values": values, "channel_versions": versions},
            {"rows": array},
            versions,
        )
        saver.put_writes(at, [("rows", array)], "task")
        if isinstance(saver, DeltaSaver):
            saver.log.caches.forget()
            assert [
                finding for finding in examine(saver).findings if finding.severity != "note"
            ] == []
        found = saver.get_tuple(config)
        assert found is not None
        state = found.checkpoint["channel_values"]
        assert (state["rows"], state["kept"], state["messages"][0].artifact) == (None, 1, None)
        assert found.pending_writes == [("task", "rows", None)]
        assert len(list(saver.list(None))) == 1


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: array.dtype.str)
def test_an_array_is_one(array: Any) -> None:
    body = DataSerializer().dumps_typed({"a": [array]})[1]
    assert Contents().read_value(body) == 0


@pytest.mark.parametrize(
    "parts",
    [
        ("<f3", (1,), "C", b"\0" * 3),
        ("<f8", (2,), "C", b"\0" * 8),
        ("<f8", (-1,), "C", b"\0" * 8),
        ("<f8", (True,), "C", b"\0" * 8),
        ("<f8", (1,), "X", b"\0" * 8),
        ("<U0", (1,), "C", b""),
        ("<U1", (1,), "C", b"\0"),
        ("<M8[x]", (1,), "C", b"\0" * 8),
        ("os", (1,), "C", b"\0" * 8),
        (5, (1,), "C", b"\0" * 8),
        ("<f8", (1,), "C"),
        ("<f8", 1, "C", b"\0" * 8),
    ],
)
def test_what_is_none_is_told_without_building_it(
    parts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:

    def never(*parts: Any) -> Any:
        raise AssertionError("an array was built")

    monkeypatch.setattr(RestorePolicy, "array", never)
    body = pack({"a": ormsgpack.Ext(EXT_NUMPY_ARRAY, pack(parts))})
    with pytest.raises(ValueError, match="."):
        Contents().read_value(body)
