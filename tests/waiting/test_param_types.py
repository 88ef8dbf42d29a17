"""Promise: every type of parameter is read, checked, described to clients, inferred and told apart
from what a tool takes: a new type is not left out of any of these.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple

import jsonschema  # type: ignore[import-untyped]  # ships no types
import pytest
from langchain_core.tools import StructuredTool
from pydantic import JsonValue, create_model

from langmem_ext import CatalogError, IntentCatalog, Param, ParamType, Reply, extract
from langmem_ext.waiting.catalog.inference import infer_type
from langmem_ext.waiting.extract.validity import is_valid
from langmem_ext.waiting.policy.asking import value_schema


class Sample(NamedTuple):
    """What is known of a type.

    Attributes:
        name: A name from which it is inferred; None: only values that are given make it.
        answer: An answer to its question.
        value: The value that the answer holds.
        wrong: A value of the same JSON type that it never has; None: it may be any text.
        refused: The JSON types of arguments that it never fits; others may hold it, or the value
            is checked when the tool is called.
    """

    name: str | None
    answer: str
    value: JsonValue
    wrong: JsonValue
    refused: frozenset[str] = frozenset({"integer", "number", "boolean"})


JSON_TYPES: Final = {"string": str, "integer": int, "number": float, "boolean": bool}
ANY: Final = frozenset[str]()
COUNTS: Final = frozenset({"integer", "number"})
NUMBERS: Final = frozenset({"string", "boolean"})
SAMPLES: Final = {
    ParamType.ENUM: Sample(None, "red", "red", "blue", ANY),
    ParamType.BOOLEAN: Sample("is_gift", "yes", True, "yes", frozenset({"string"})),
    ParamType.INTEGER: Sample("quantity", "4", 4, 4.5, NUMBERS),
    ParamType.NUMBER: Sample("weight", "4.5", 4.5, "4.5", NUMBERS),
    ParamType.MONEY: Sample("price", "$40", 40, "$40", NUMBERS),
    ParamType.DATE: Sample("birthday", "May 3rd 2025", "2025-05-03", "May 3rd"),
    ParamType.TIME: Sample("pickup_time", "7 pm", "19:00", "7 pm"),
    ParamType.DATETIME: Sample(
        "date_and_time", "May 3rd 2025 at 7 pm", "2025-05-03T19:00", "2025-05-03"
    ),
    ParamType.DURATION: Sample(None, "90 minutes", "PT1H30M", "90 minutes", COUNTS),
    ParamType.PLACE: Sample("city", "Oslo", "Oslo", None),
    ParamType.PERSON: Sample("first_name", "Ann", "Ann", None),
    ParamType.NAME: Sample("movie_title", "Alien", "Alien", None),
    ParamType.ADDRESS: Sample("street", "12 Elm Street", "12 Elm Street", None),
    ParamType.EMAIL: Sample("email", "a@example.com", "a@example.com", None),
    ParamType.PHONE: Sample("phone_number", "415-555-2671", "+14155552671", None, ANY),
    ParamType.URL: Sample("link", "example.com", "https://example.com", "example"),
    ParamType.IDENTIFIER: Sample("order_id", "O-1234", "O-1234", None, ANY),
    ParamType.TEXT: Sample("reason", "it was wet", "it was wet", None, ANY),
}


def test_there_is_a_sample_of_every_type() -> None:
    assert set(SAMPLES) == set(ParamType)


@pytest.fixture(params=SAMPLES, ids=str)
def kind(request: pytest.FixtureRequest) -> ParamType:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def param(kind: ParamType) -> Param:
    values = {"red": (), "green": ()} if kind is ParamType.ENUM else {}
    return Param(name=SAMPLES[kind].name or "x", type=kind, enum=values)


def test_it_is_read_from_an_answer(kind: ParamType, param: Param) -> None:
    reply = Reply(SAMPLES[kind].answer, prompt="Which one?", now=datetime(2025, 1, 1))
    assert extract(param, reply).value == SAMPLES[kind].value


def test_a_value_of_another_form_is_not_valid(kind: ParamType, param: Param) -> None:
    sample = SAMPLES[kind]
    assert is_valid(param, sample.value)
    assert not is_valid(param, [])
    assert sample.wrong is None or not is_valid(param, sample.wrong)


def test_a_client_is_told_its_form(kind: ParamType, param: Param) -> None:
    schema = value_schema(param)
    jsonschema.validate(SAMPLES[kind].value, schema)
    assert SAMPLES[kind].wrong is None or schema != {"type": "string"}


def test_it_is_inferred(kind: ParamType) -> None:
    name = SAMPLES[kind].name
    assert name is None or infer_type(name) is kind


def test_tools_that_take_another_type_are_refused(kind: ParamType) -> None:
    assert {name for name in JSON_TYPES if not fits(kind, name)} == SAMPLES[kind].refused


def fits(kind: ParamType, taken: str) -> bool:
    """Whether a catalog accepts a tool whose argument has a JSON type."""
    tool = StructuredTool.from_function(
        lambda x: "done",
        name="act",
        description="Act.",
        args_schema=create_model("Act", x=(JSON_TYPES[taken], ...)),
    )
    values = {"enum": {"1": []}} if kind is ParamType.ENUM else {}
    catalog = IntentCatalog.from_dict(
        {
            "intents": {"act": {"tool": "act", "required": ["x"]}},
            "params": {"x": {"type": str(kind), **values}},
        }
    )
    try:
        catalog.with_tools([tool])
    except CatalogError as error:
        return not any(" takes 'x' as " in problem for problem in error.problems)
    return True
