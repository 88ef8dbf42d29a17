"""Promise: a small change of a large dict or list costs little, and each state is exact."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage

from langmem_ext.log.codec import codec_of
from langmem_ext.log.restore import DataSerializer
from langmem_ext.messages.packed import opaque, unpack
from langmem_ext.storage.rows.delta import (
    FANOUT,
    MAX_PARTS,
    Compound,
    apply_delta,
    plan_base,
    plan_delta,
    read_compound,
)

CODEC = codec_of(DataSerializer())


class Rows:
    """The rows of one channel, as storing each of its states makes them."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.stored: Compound | None = None

    def store(self, value: Any) -> tuple[int, ...]:
        """Store a state; its rows."""
        state = compound(value)
        delta = plan_delta(self.stored, state) if self.stored is not None else None
        if self.stored is None or delta is None:
            self.stored, delta = state, plan_base(state)
        self.stored = apply_delta(self.stored, state, delta, len(self.bodies))
        self.bodies.append(delta.body)
        return self.stored.rows()

    def read(self, rows: tuple[int, ...]) -> Compound:
        """A state, from its rows."""
        return read_compound((row, self.bodies[row]) for row in rows)

    @property
    def size(self) -> int:
        """Bytes of all rows."""
        return sum(map(len, self.bodies))


def compound(value: Any) -> Compound:
    """A value as the codec and the storage see it."""
    packed = CODEC.pack_value(value)
    found = Compound.of(packed)
    assert found is not None
    assert found.body == packed.body
    return found


ITEMS = st.sampled_from([True, 1, 1.0, None, "", [1], [True], {"a": 1}])
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(
            ["set", "set", "set", "remove", "move", "nothing", "turn", "grow", "double"]
        ),
        st.integers(0, 23),
        ITEMS,
    ),
    max_size=60,
)


def changed_dict(value: dict[str, Any], how: str, key: str, item: Any) -> dict[str, Any]:
    """What a dict is after a change."""
    rest = {other: held for other, held in value.items() if other != key}
    match how:
        case "set" | "grow":
            return {**value, key: item}
        case "remove" if len(rest) > 10:
            return rest
        case "move":
            return {**rest, key: item}
        case "turn":
            return dict(reversed(value.items()))
    return value


def changed_list(value: list[Any], how: str, item: Any) -> list[Any]:
    """What a list is after a change."""
    match how:
        case "set" | "grow" | "move":
            return [*value, item]
        case "double":
            return [*value, item, item]
        case "remove" if len(value) > 12:
            return value[:-1]
        case "turn":
            return value[::-1]
    return value


def check(states: list[Any]) -> None:
    """Store each state and read every one of them back."""
    rows = Rows()
    stored = [(state, rows.store(state)) for state in states]
    for state, numbers in stored:
        found = rows.read(numbers)
        assert repr(unpack(found.body)) == repr(state)
        assert found.body == compound(state).body
        assert len(numbers) <= MAX_PARTS
    assert rows.stored is not None
    assert rows.read(stored[-1][1]).parts == rows.stored.parts


@settings(max_examples=200)
@given(CHANGES)
def test_every_state_of_a_dict_comes_back_to_the_byte(changes: list[tuple[str, int, Any]]) -> None:
    states: list[Any] = [
        {f"key {number:02} {'k' * 120}": [number, "x" * 60] for number in range(12)}
    ]
    for how, number, item in changes:
        states.append(changed_dict(states[-1], how, f"key {number:02} {'k' * 120}", item))
    check(states)


@settings(max_examples=200)
@given(CHANGES)
def test_every_state_of_a_list_comes_back_to_the_byte(changes: list[tuple[str, int, Any]]) -> None:
    states: list[Any] = [[[number, "x" * 200] for number in range(12)]]
    for how, _, item in changes:
        states.append(changed_list(states[-1], how, item))
    check(states)


def test_a_key_that_changes_at_each_step_costs_what_changed() -> None:
    chance = random.Random(3)
    value = {f"key{n}": chance.randbytes(500).hex() for n in range(1000)}
    rows = Rows()
    whole = len(rows.bodies[rows.store(value)[0]])
    for step in range(400):
        value = {**value, f"key{step}": chance.randbytes(500).hex()}
        assert len(rows.store(value)) <= 4 * FANOUT
    assert rows.size - whole < 4 * 400 * 1010
    assert rows.stored is not None
    assert unpack(rows.read(rows.stored.rows()).body) == value


def test_a_list_that_grows_costs_what_it_grew_by() -> None:
    value: list[Any] = [f"{n:0200}" for n in range(10)]
    rows = Rows()
    rows.store(value)
    for step in range(2000):
        value = [*value, f"{step:0200}"]
        assert len(rows.store(value)) <= MAX_PARTS
    assert rows.size < 6 * 2000 * 203


@pytest.mark.parametrize(
    "value",
    [
        {"a": 1},
        [1] * 20,
        {number: "x" * 200 for number in range(20)},
        "x" * 5000,
        {"a": "x" * 5000},
        {f"key {number}": HumanMessage("x" * 200) for number in range(20)},
    ],
    ids=["small dict", "small list", "number keys", "text", "one key", "messages"],
)
def test_what_is_small_or_not_of_plain_keys_is_stored_whole(value: Any) -> None:
    assert Compound.of(CODEC.pack_value(value)) is None


class Meddling:
    """Is packed by Python code, as a model is, and changes its container meanwhile."""

    def __init__(self, meddle: Callable[[], None]) -> None:
        self.meddle = meddle

    def model_dump(self) -> dict[str, Any]:
        self.meddle()
        return {"plain": "x" * 200}


def test_a_list_that_grows_while_it_is_packed_has_as_many_elements_as_were_packed() -> None:
    value: list[Any] = ["x" * 100 for _ in range(15)]
    value.append(Meddling(lambda: value.append("late")))
    packed = CODEC.pack_value(value)
    assert packed.body is not None
    assert packed.count == len(unpack(packed.body, opaque))
    state = Compound.of(packed)
    assert state is not None
    assert read_compound([(0, plan_base(state).body)]).body == packed.body


def test_a_dict_that_changes_while_it_is_packed_is_stored_as_it_was_packed() -> None:
    value: dict[str, Any] = {f"key {number}": "x" * 200 for number in range(20)}
    value["last"] = Meddling(lambda: value.update({"key 3": "changed"}))
    packed = CODEC.pack_value(value)
    assert packed.body is not None
    state = Compound.of(packed)
    assert state is not None
    assert read_compound([(0, plan_base(state).body)]).body == packed.body
