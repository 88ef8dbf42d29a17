"""Promise: who looks at a database says of an array what building it would say, and builds none."""

from __future__ import annotations

from typing import Any

import ormsgpack
import pytest
from langgraph.checkpoint.serde.jsonplus import EXT_NUMPY_ARRAY

from langmem_ext.contents import Contents
from langmem_ext.messages.identity import pack
from langmem_ext.serde import DataSerializer, RestorePolicy

numpy = pytest.importorskip("numpy")

ARRAYS = [
    numpy.zeros((2, 3), dtype=kind)
    for kind in ("int8", "uint16", "int64", ">i4", "float16", "float32", ">f8", "longdouble", "complex64", "bool")
]
ARRAYS += [numpy.array(["a", "ünï"]), numpy.array([b"a", b"bc"]), numpy.zeros(3, dtype=[("a", "i4"), ("b", "f8")]), numpy.zeros((0, 4))]
# LangGraph packs these where they do not stand in one piece.
ARRAYS += [numpy.zeros((2, 6), dtype=kind)[:, ::2] for kind in ("M8[ns]", "m8[25s]", "M8", "M8[D]")]
ARRAYS += [numpy.asfortranarray(numpy.arange(6.0).reshape(2, 3)), numpy.array(5.0)]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: array.dtype.str)
def test_an_array_is_one(array: Any) -> None:
    body = DataSerializer().dumps_typed({"a": [array]})[1]
    assert Contents().read_value(body) == 0


@pytest.mark.parametrize(
    "parts",
    [
        ("|O", (1,), "C", b"\0" * 8),
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
def test_what_is_none_is_told_without_building_it(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:

    def never(*parts: Any) -> Any:
        raise AssertionError("an array was built")

    monkeypatch.setattr(RestorePolicy, "array", never)
    body = pack({"a": ormsgpack.Ext(EXT_NUMPY_ARRAY, pack(parts))})
    with pytest.raises(ValueError, match="."):
        Contents().read_value(body)
