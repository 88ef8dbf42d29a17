"""Promise: what is read is in proportion to the rows that it names."""

from __future__ import annotations

import sys
from collections import deque
from typing import Any

import ormsgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage

from langmem_ext.log import codec
from langmem_ext.log.codec import MessageCodec
from langmem_ext.log.restore import RestorePolicy
from langmem_ext.messages import size_limits
from langmem_ext.messages.packed import pack, unpack
from langmem_ext.messages.size_limits import (
    MEMORY,
    SMALL,
    TIMES,
    Extension,
    is_in_proportion,
    load_json,
    memory_of,
    require_shallow,
    walk,
)

TEXT = pack("x" * 1_000_000)
HOLLOW = b"\xdd" + (100_000).to_bytes(4) + b"\x90" * 100_000
"""A hundred kilobytes that are six megabytes in memory."""


def test_what_is_small_or_names_its_rows_a_few_times_is_in_proportion() -> None:
    assert is_in_proportion([[pack("a")] * 100_000])
    assert is_in_proportion([[pack(f"{number}" * 100_000) for number in range(100)]] * TIMES)
    assert is_in_proportion([[TEXT] * 200]), "200 MB"
    assert is_in_proportion([], [(TEXT, TIMES)] * 2000)


def test_what_names_a_row_so_often_that_it_fills_the_memory_is_not() -> None:
    assert not is_in_proportion([[TEXT] * 300])
    assert not is_in_proportion([[TEXT]] * 300)
    assert not is_in_proportion([], [(TEXT, 300)] * 300)
    assert len(HOLLOW) * 100 > SMALL
    assert not is_in_proportion([[HOLLOW] * 100]), "it is what it takes in memory that counts"
    assert not is_in_proportion([[TEXT] * 100], share=4)


def test_up_to_the_size_that_nobody_counts_nothing_takes_too_much() -> None:
    for part in (
        b"\x90",
        b"\x80",
        b"\xc3",
        pack(1.5),
        pack(2**60),
        pack("ab"),
        pack([1]),
        pack(ormsgpack.Ext(64, b"\0")),
    ):
        whole = b"\xdd" + (1000).to_bytes(4) + part * 1000
        assert memory_of(whole) / len(whole) * SMALL <= MEMORY * 1.2


def test_a_value_that_would_be_out_of_proportion_is_stored_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(codec, "SMALL", 1000)
    monkeypatch.setattr(size_limits, "SMALL", 1000)
    packer = MessageCodec(RestorePolicy())
    said = HumanMessage("x" * 1000, id="1")
    assert packer.pack_value([said] * 100).body is None
    monkeypatch.setattr(size_limits, "MEMORY", 200_000)
    for value in ([said] * 100, {"said": [said] * 100}):
        packed = packer.pack_value(value)
        assert (packed.body is not None, packed.messages) == (True, ())
        assert packer.load_value(packed) == value


@given(
    st.recursive(
        st.one_of(
            st.none(),
            st.integers(-(2**63), 2**63),
            st.floats(),
            st.text(max_size=9),
            st.binary(max_size=9),
        ),
        lambda inner: st.one_of(
            st.lists(inner, max_size=4),
            st.dictionaries(st.text(max_size=3), inner, max_size=4),
            st.builds(lambda value: ormsgpack.Ext(7, pack(value)), inner),
        ),
    )
)
def test_everything_in_a_value_is_looked_at_once(value: Any) -> None:
    def parts(value: Any) -> int:
        if isinstance(value, Extension):
            return 1 + parts(unpack(value.data, Extension))
        if isinstance(value, dict):
            return 1 + len(value) + sum(map(parts, value.values()))
        return 1 + (sum(map(parts, value)) if isinstance(value, list) else 0)

    packed = pack(value)
    assert len(deque(walk(packed))) == parts(unpack(packed, Extension))


def nested(*levels: int) -> bytes:
    value = b"\xc0"
    for lists in reversed(levels):
        value = pack(ormsgpack.Ext(7, b"\x91" * lists + value))
    return value


def test_a_value_is_looked_at_however_deep_it_is() -> None:
    require_shallow(nested(*[3] * 300))
    require_shallow(b"\x91" * 1000 + b"\xc0")
    for deep in (nested(*[3] * 500), nested(*[1000] * 5), nested(*[0] * 5000)):
        with pytest.raises(ValueError, match="nested too deeply"):
            require_shallow(deep)


def test_extension_types_in_each_other_are_not_copied_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(size_limits, "MEMORY", 10_000)
    value = pack("x" * 2000)
    for _ in range(100):
        value = pack(ormsgpack.Ext(7, value))
    with pytest.raises(ValueError, match="nested too deeply"):
        require_shallow(value)


def test_json_that_is_too_deep_is_an_error_and_a_full_stack_is_the_callers() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        load_json("[" * 100_000 + "]" * 100_000)
    with pytest.raises(ValueError, match="Expecting value"):
        load_json("[")

    def deep(left: int) -> Any:
        return load_json('{"a": [[[[[[[[[[]]]]]]]]]]}') if left == 0 else deep(left - 1)

    def until_full() -> None:
        for left in range(sys.getrecursionlimit()):
            deep(left)

    with pytest.raises(RecursionError):
        until_full()


def test_a_decoder_that_gives_up_is_an_error_like_any_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    panic = type("PanicException", (BaseException,), {})

    def give_up(*args: Any, **kwargs: Any) -> Any:
        raise panic("a pointer is null")

    monkeypatch.setattr("langmem_ext.messages.packed._unpackb", give_up)
    with pytest.raises(ValueError, match="gave up"):
        unpack(b"\xc0")
