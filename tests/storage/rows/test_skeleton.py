"""Promise: keys and values that were taken apart come together again to the byte, or not at all."""

from __future__ import annotations

from typing import Any

import ormsgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from langmem_ext.messages.packed import pack, unpack
from langmem_ext.storage.rows.skeleton import MAX_LENGTH, join_keys, split_keys

LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 2**40),
    st.floats(allow_nan=False),
    st.text(max_size=4),
    st.binary(max_size=4),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=10), st.dictionaries(st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.one_of(st.integers(-1, 20), st.text(max_size=3)), VALUES, max_size=6))
def test_a_dict_comes_together_again_to_the_byte(value: dict[Any, Any]) -> None:
    packed = pack(value)
    keys, values = split_keys(packed)
    assert join_keys(keys, values) == packed


def test_what_is_no_plain_data_is_kept_as_it_is() -> None:
    packed = pack({"when": ormsgpack.Ext(3, b"date"), "deep": [{"at": ormsgpack.Ext(70, b"x")}]})
    assert join_keys(*split_keys(packed)) == packed


def test_the_keys_of_two_messages_with_other_values_are_the_same() -> None:
    first, second = (
        {
            "usage": {"in": n, "out": n + 1},
            "calls": [{"name": "f", "args": {"q": str(n)}, "id": f"c{n}"}],
        }
        for n in (3, 400)
    )
    assert split_keys(pack(first))[0] == split_keys(pack(second))[0]
    assert unpack(split_keys(pack(first))[1]) == [3, 4, "f", "3", "c3"]


def test_a_long_list_stays_with_the_values() -> None:
    value = {"tokens": [{"p": n} for n in range(MAX_LENGTH + 1)]}
    assert unpack(split_keys(pack(value))[0]) == {"tokens": None}


@pytest.mark.parametrize("values", [[], [1, 2, 3]])
def test_keys_and_values_that_do_not_belong_together_are_refused(values: list[int]) -> None:
    with pytest.raises(ValueError, match="values than keys"):
        join_keys(pack({"a": None, "b": None}), pack(values))
