"""The type and role of a parameter follow from its name and description."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from langmem_ext import IntentCatalog, Param, ParamType

CASES = yaml.safe_load(Path(__file__).with_name("inference.yaml").read_text("utf-8"))


def declared(name: str, description: str = "", **more: Any) -> Param:
    """A parameter that a catalog declares with this name and description."""
    params = {name: {"description": description, **more}}
    return IntentCatalog.from_dict({"intents": [{"id": "a"}], "params": params}).param(name)


def test_type_and_role_follow_from_name_and_description() -> None:
    for field, more in (("type", {}), ("role", {"type": "place"})):
        for value, given_ in CASES[field].items():
            for words in given_:
                name, *description = [words] if isinstance(words, str) else words
                param = declared(name, *description, **more)
                assert getattr(param, field) == value, words


@given(st.from_regex(r"[a-z][a-z_]{0,39}", fullmatch=True), st.text(max_size=80))
def test_any_name_has_a_type_and_a_role_or_none(name: str, description: str) -> None:
    param = declared(name, description)
    assert param.type in ParamType
    assert param.role in ("from", "to", None)
