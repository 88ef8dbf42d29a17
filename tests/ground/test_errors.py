"""Promise: an error says what is wrong, and nothing of what is stored."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from pydantic import ValidationError

from langmem_ext.errors import (
    CatalogError,
    ContextOverflow,
    DamagedRow,
    HeadConflict,
    ThreadDeleted,
    cause,
    safe_text,
)

SECRET = "4929123456781234"


def failure(action: Any) -> Exception:
    with pytest.raises(Exception) as failed:  # noqa: PT011  any of them
        action()
    return failed.value


@pytest.mark.parametrize(
    "action",
    [
        lambda: int(f"x{SECRET}"),
        lambda: {}[SECRET],
        lambda: HumanMessage(content={"card": SECRET}),
        lambda: SECRET.encode().decode("utf-16-be").encode("ascii"),
        lambda: json.loads(f'{{"card": {SECRET}x}}'),
    ],
)
def test_what_an_error_quotes_is_left_out(action: Any) -> None:
    error = failure(action)
    assert SECRET not in safe_text(error)
    assert SECRET not in str(cause(error))


def test_what_quotes_nothing_is_told_whole() -> None:
    ours, plain = (
        DamagedRow("message 3 is damaged"),
        ValueError("its text does not match its blocks"),
    )
    assert (safe_text(ours), cause(ours)) == (str(ours), ours)
    assert (safe_text(plain), cause(plain)) == (str(plain), plain)
    assert safe_text("it has changed") == "it has changed"
    assert (
        safe_text(failure(lambda: HumanMessage(content={"card": SECRET})))
        == ValidationError.__name__
    )


@pytest.mark.parametrize(
    "error",
    [
        CatalogError("shop.yaml", ["line 3: unknown type 'dat'"]),
        ContextOverflow(10, 20, [("a message", 20)]),
        HeadConflict("t", None, "1"),
        ThreadDeleted("t"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_passes_from_one_process_to_another(error: Exception) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
