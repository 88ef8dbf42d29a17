"""Stored JSON is checked at any depth and copied; errors say where the fault is, not what."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Any

import pytest
from hypothesis import given
from samples import json_values

from langmem_ext._internal.json import DEEPEST, json_object, json_value
from langmem_ext.errors import InvalidInput


class Colour(StrEnum):
    RED = "red"


class Size(IntEnum):
    BIG = 2


@given(json_values)
def test_json_comes_back_as_it_was_in_objects_of_its_own(value: Any) -> None:
    copied = json_value(value, "value")
    assert repr(copied) == repr(value), "with its types: 1 is neither True nor 1.0"
    assert not isinstance(value, list | dict) or copied is not value


def test_what_is_nearly_json_becomes_json() -> None:
    copied = json_value({"a": (1, Colour.RED), "b": Size.BIG}, "value")
    assert repr(copied) == "{'a': [1, 'red'], 'b': 2}"


def nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


def endless() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (
            {"card": {"number": b"4111"}},
            r"params\['card'\]\['number'\] has the type bytes, which is not JSON",
        ),
        ({"card": [1, {2, 3}]}, r"params\['card'\]\[1\] has the type set, which is not JSON"),
        ({"card": float("inf")}, "not a finite number"),
        ({"card": 1 << 64}, "at most 64 bits"),
        ({"card": {7: 1}}, "has the type int: use strings"),
        ({"card": "\ud800"}, "lone surrogate"),
        ({"\ud800": 1}, "lone surrogate"),
        (endless(), "must be a dict"),
        ({"card": endless()}, "nested too deeply"),
        ({"card": nested(DEEPEST + 1)}, "nested too deeply"),
        (None, "must be a dict"),
    ],
)
def test_anything_else_is_refused(value: Any, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason) as caught:
        json_object(value, "params")
    assert "4111" not in str(caught.value)


def test_what_is_deep_and_wide_enough_is_taken() -> None:
    value = {"deep": nested(DEEPEST - 1), "large": (1 << 64) - 1, "small": -(1 << 63)}
    assert json_object(value, "params") == value
