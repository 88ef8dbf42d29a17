"""Promise: an error says what is wrong, and nothing of what is stored."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from pydantic import ValidationError

from langmem_ext.errors import DamagedRow, cause, told

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
    assert SECRET not in told(error)
    assert SECRET not in str(cause(error))


def test_what_quotes_nothing_is_told_whole() -> None:
    ours, plain = (
        DamagedRow("message 3 is damaged"),
        ValueError("its text does not match its blocks"),
    )
    assert (told(ours), cause(ours)) == (str(ours), ours)
    assert (told(plain), cause(plain)) == (str(plain), plain)
    assert told("it has changed") == "it has changed"
    assert told(failure(lambda: HumanMessage(content={"card": SECRET}))) == ValidationError.__name__
