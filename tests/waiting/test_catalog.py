"""An intents file is read whole or refused with all mistakes; tools fill in what it lacks."""

from __future__ import annotations

import datetime
import enum
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolArg, StructuredTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import (
    BaseModel,
    EmailStr,
    Field,
    HttpUrl,
    SecretStr,
    field_validator,
    model_validator,
)

from langmem_ext import (
    CatalogError,
    Extensions,
    IntentCatalog,
    InvalidInput,
    ParamType,
    build_waiting_graph,
    converse,
)


class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"


@tool
def book(
    table_id: Annotated[str, Field(pattern=r"^T\d+$", description="Number of the table")],
    guests: Annotated[int, Field(gt=0, le=8)],
    day: datetime.date,
    email: EmailStr,
    size: Size,
    note: str | None = None,
    tip: float = 0.0,
    terrace: bool = False,
    meal: Literal["lunch", "dinner"] = "dinner",
    pin: SecretStr | None = None,
    *,
    key: Annotated[str, InjectedToolArg],
    config: RunnableConfig,
) -> str:
    """Book a table."""
    return "booked"


@tool
def greet(name: str) -> str:
    """Say hello."""
    return f"hello {name}"


@tool
def plan(
    start: datetime.datetime, length: datetime.timedelta, page: HttpUrl, minutes: int, iban: str
) -> str:
    """Plan a meeting."""
    return "planned"


TOOLS = [book, greet, plan]


def mistakes(error: pytest.ExceptionInfo[CatalogError]) -> list[str]:
    return list(error.value.problems)


def write(folder: Path, text: str) -> Path:
    path = folder / "intents.yaml"
    path.write_text(text)
    return path


# -- reading ---------------------------------------------------------------------------------------


def test_a_file_is_read_with_its_defaults() -> None:
    catalog = IntentCatalog.from_yaml(Path(__file__).with_name("catalog.yaml"))
    assert [intent.id for intent in catalog.intents] == ["greet", "bye"]
    assert catalog.intent("greet").tool == ("greet",)
    assert catalog.intent("greet").confirm is True
    assert catalog.confirm_question(catalog.intent("greet")) == "Shall I go ahead?"
    assert catalog.confirm_question(catalog.intent("bye")) is None
    assert catalog.param("when").examples == ("11:30", "2024-05-01", "no", "7", "0x10")
    assert catalog.param("when").prompt == "What is the time of the visit?"
    assert catalog.param("size").type is ParamType.ENUM
    assert catalog.param("size").enum == {"small": ("tiny",), "large": ("big", "huge"), "none": ()}
    assert list(catalog.param("colour").enum) == ["red", "yes", "3"]
    assert catalog.is_sensitive("name")
    assert not catalog.is_sensitive("when")
    assert not catalog.is_sensitive("unheard of")


def test_intents_and_params_may_be_mappings_or_lists() -> None:
    by_list = {
        "intents": [{"id": "a", "required": ["x"]}],
        "params": [{"name": "x", "type": "date"}],
    }
    by_name = {"intents": {"a": {"required": ["x"]}}, "params": {"x": {"type": "date"}}}
    one, other = IntentCatalog.from_dict(by_list), IntentCatalog.from_dict(by_name)
    assert (one.intents, one.params) == (other.intents, other.params)


def test_what_is_not_declared_is_named_with_the_nearest_that_is() -> None:
    catalog = IntentCatalog.from_dict({"intents": {"check_order": {}}, "params": {"order_id": {}}})
    with pytest.raises(InvalidInput, match="did you mean 'check_order'"):
        catalog.intent("chek_order")
    with pytest.raises(InvalidInput, match="did you mean 'order_id'"):
        catalog.param("orderid")


# -- mistakes --------------------------------------------------------------------------------------

MISTAKES: dict[str, dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("catalog_mistakes.yaml").read_text("utf-8")
)
NO_CATALOG = [
    *MISTAKES.pop("no catalog at all")["files"],
    ("[" * 5000, "line 1: nested too deeply"),
    ("intents: " + "[" * 100 + "]" * 100, "line 1: intents" + "[0]" * 50 + ": nested too deeply"),
]


@pytest.mark.parametrize("name", MISTAKES)
def test_every_mistake_is_reported_at_once_with_its_place(tmp_path: Path, name: str) -> None:
    """As a file, with its lines, and as a dictionary."""
    case = MISTAKES[name]
    with pytest.raises(CatalogError) as error:
        IntentCatalog.from_yaml(write(tmp_path, case["file"])).with_tools(TOOLS)
    problems = mistakes(error)
    for problem, expected in zip(problems, case["problems"], strict=True):
        for part in [expected] if isinstance(expected, str) else expected:
            assert part in problem, problem
    if case.get("as a dictionary"):
        data = yaml.safe_load(case["file"])
        with pytest.raises(CatalogError, match="the desk has [1-9]") as error:
            IntentCatalog.from_dict(data, source="the desk").with_tools(TOOLS)
        without = [re.sub(r"^line \d+: ", "", problem) for problem in problems]
        assert sorted(mistakes(error)) == sorted(without)


@pytest.mark.parametrize(("text", "problem"), NO_CATALOG)
def test_a_file_that_is_no_catalog_gets_one_clear_problem(
    tmp_path: Path, text: str, problem: str
) -> None:
    with pytest.raises(CatalogError) as error:
        IntentCatalog.from_yaml(write(tmp_path, text))
    assert mistakes(error)[0].startswith(problem)


def test_aliases_that_multiply_are_refused_soon(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"] + [
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)
    ]
    with pytest.raises(CatalogError, match="aliases multiply them"):
        IntentCatalog.from_yaml(write(tmp_path, "\n".join(lines)))


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    binary = tmp_path / "image.yaml"
    binary.write_bytes(b"\xff\xfe\x00\xd8")
    for path in (tmp_path / "missing.yaml", tmp_path, binary, Path("nul\0byte")):
        with pytest.raises(CatalogError, match="it (cannot be read|is not UTF-8 text)"):
            IntentCatalog.from_yaml(path)


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
KEYS = (
    "intents params replies redaction escalate_to id examples patterns required optional tool"
    " param_mapping reply confirm type enum pattern prompt max_attempts keep a b identifier {a}"
    " {result.x} ( [a"
)
WORDS = st.sampled_from(KEYS.split())
DATA = st.recursive(
    SCALARS | WORDS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(WORDS | st.integers() | st.none(), inner, max_size=5)
    ),
    max_leaves=30,
)
SHAPED = st.fixed_dictionaries(
    {"intents": st.lists(st.dictionaries(WORDS, DATA, max_size=4), max_size=3) | DATA},
    optional={
        "params": st.dictionaries(WORDS, DATA, max_size=3) | DATA,
        "replies": DATA,
        "redaction": DATA,
        "escalate_to": DATA,
    },
)


def outcome(read: Callable[[], IntentCatalog]) -> Sequence[object]:
    """The result of reading: intents or problems, never neither.

    Any other exception passes.
    """
    try:
        return read().intents
    except CatalogError as error:
        return error.problems


@settings(max_examples=15 * settings().max_examples)
@given(DATA | SHAPED)
def test_data_of_any_shape_is_a_catalog_or_a_catalog_error(data: Any) -> None:
    assert outcome(lambda: IntentCatalog.from_dict(data))


@settings(max_examples=15 * settings().max_examples)
@given(
    text=st.text(max_size=60)
    | st.lists(st.sampled_from(list("ab:-[]{}&*!|>?'\"\n\t #%,")), max_size=40).map("".join)
    | SHAPED.map(yaml.safe_dump)
)
def test_text_of_any_kind_is_a_catalog_or_a_catalog_error(
    text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    assert outcome(lambda: IntentCatalog.from_yaml(path))


# -- with the tools --------------------------------------------------------------------------------


def test_an_intent_without_parameters_takes_its_tools_arguments() -> None:
    catalog = IntentCatalog.from_dict({"intents": {"book": {"tool": "book"}}}).with_tools(
        [book, greet]
    )
    intent = catalog.intent("book")
    assert intent.required == ("table_id", "guests", "day", "email", "size")
    assert intent.optional == ("note", "tip", "terrace", "meal", "pin")
    types = {name: param.type for name, param in catalog.params.items()}
    assert types == {
        "table_id": ParamType.IDENTIFIER,
        "guests": ParamType.INTEGER,
        "day": ParamType.DATE,
        "email": ParamType.EMAIL,
        "size": ParamType.ENUM,
        "note": ParamType.TEXT,
        "tip": ParamType.NUMBER,
        "terrace": ParamType.BOOLEAN,
        "meal": ParamType.ENUM,
        "pin": types["pin"],
    }
    table = catalog.param("table_id")
    assert (table.pattern, table.prompt) == (r"^T\d+$", "What is the number of the table?")
    assert list(catalog.param("size").enum) == ["small", "large"]
    assert list(catalog.param("meal").enum) == ["lunch", "dinner"]
    assert catalog.is_sensitive("pin")


def test_a_declaration_keeps_what_it_says_and_takes_the_rest_from_the_tool() -> None:
    data = {
        "intents": {
            "book": {
                "tool": "book",
                "required": ["table", "guests", "day", "email", "size"],
                "param_mapping": {"table": "table_id"},
            }
        },
        "params": {
            "table": {"prompt": "Which table?"},
            "size": {"description": "how large"},
            "email": {"type": "text"},
        },
    }
    catalog = IntentCatalog.from_dict(data).with_tools([book])
    table, size = catalog.param("table"), catalog.param("size")
    assert (table.prompt, table.pattern, table.type) == (
        "Which table?",
        r"^T\d+$",
        ParamType.IDENTIFIER,
    )
    assert (size.description, list(size.enum), size.type) == (
        "how large",
        ["small", "large"],
        ParamType.ENUM,
    )
    assert catalog.param("email").type is ParamType.TEXT
    assert catalog.param("guests").type is ParamType.INTEGER
    assert catalog.with_tools([book]) == catalog


def test_a_later_step_may_take_what_an_earlier_one_returned() -> None:
    @tool
    def find_customer(email: str) -> dict[str, str]:
        """Find a customer."""
        return {"customer_id": "C-1"}

    @tool
    def send(customer_id: str, text: str) -> str:
        """Send a message."""
        return "sent"

    data = {"tool": ["find_customer", "send"], "required": ["email", "text"]}
    mapped = {
        "intents": {"write": {**data, "param_mapping": {"send": {"customer_id": "customer_id"}}}}
    }
    assert IntentCatalog.from_dict(mapped).with_tools([find_customer, send])
    with pytest.raises(
        CatalogError, match="nothing fills the argument 'customer_id' of tool 'send'"
    ):
        IntentCatalog.from_dict({"intents": {"write": data}}).with_tools([find_customer, send])


def test_tools_that_are_no_tools_or_share_a_name_are_refused() -> None:
    catalog = IntentCatalog.from_dict({"intents": {"greet": {"tool": "greet"}}})
    with pytest.raises(InvalidInput, match="is not a tool"):
        catalog.with_tools([print])  # type: ignore[list-item]
    with pytest.raises(InvalidInput, match="two tools are named 'greet'"):
        catalog.with_tools([greet, greet])


class Booking(BaseModel):
    guests: int = Field(gt=0, le=8)
    code: str = Field(pattern="^T[0-9]+$", examples=["T7"])
    extra: list[int] = []

    @field_validator("code")
    @classmethod
    def not_the_first(cls, value: str) -> str:
        if value == "T1":
            raise ValueError("the first table is taken")
        return value


def _run(**arguments: object) -> str:
    return "ran"


BY_MODEL = StructuredTool.from_function(_run, name="by_model", description="x", args_schema=Booking)
BY_SCHEMA = StructuredTool.from_function(
    _run,
    name="by_schema",
    description="x",
    args_schema={
        "type": "object",
        "properties": {
            "guests": {"type": "integer", "exclusiveMinimum": 0, "maximum": 8},
            "code": {"$ref": "#/$defs/code"},
            "size": {"anyOf": [{"enum": ["small", "large"]}, {"type": "null"}]},
        },
        "required": ["guests", "code"],
        "$defs": {
            "code": {"type": "string", "pattern": "^T[0-9]+$", "description": "code of the table"}
        },
    },
)


def asked_again(subject: BaseTool, name: str, value: object) -> str:
    """What is replied where a client gives a value that the tool's field refuses; else nothing."""
    intents = {"go": {"patterns": ["go"], "tool": subject.name}}
    builder = build_waiting_graph(IntentCatalog.from_dict({"intents": intents}), [subject])
    graph = builder.compile(checkpointer=InMemorySaver())
    if converse(graph, "go", thread_id="t").waiting_for != name:
        converse(graph, resume={"guests": 2}, thread_id="t")
    taken = converse(graph, resume={name: value}, thread_id="t")
    return taken.reply if taken.waiting_for == name else ""


@pytest.mark.parametrize("subject", [BY_MODEL, BY_SCHEMA], ids=["pydantic", "json schema"])
def test_a_value_is_judged_by_the_tools_own_field(subject: BaseTool) -> None:
    for name, value in (("guests", 8), ("code", "T7")):
        assert asked_again(subject, name, value) == "", value
    for name, value in (("guests", 9), ("guests", "many"), ("code", "7")):
        assert asked_again(subject, name, value), value


def test_a_fields_own_validator_has_its_say() -> None:
    assert asked_again(BY_MODEL, "code", "T1").startswith("The first table is taken.\n")


def test_a_tool_with_odd_arguments_is_refused_or_judges_for_itself() -> None:
    def odd(schema: Any) -> BaseTool:
        return StructuredTool.from_function(
            lambda **given: "ran", name="odd", description="x", args_schema=schema
        )

    class Pair(BaseModel):
        low: int

        @model_validator(mode="before")
        @classmethod
        def ordered(cls, data: dict[str, int]) -> dict[str, int]:
            assert data["low"] < data["high"]
            return data

    missing = {"type": "object", "properties": {"low": {"$ref": "#/$defs/missing"}}}
    for schema, value in ((Pair, 3), ({**missing, "required": ["low"]}, "three")):
        assert asked_again(odd(schema), "low", value) == ""
    broken = odd({"type": "object", "properties": {"a": {"type": "strng"}}})
    with pytest.raises(InvalidInput, match="the arguments of tool 'odd' cannot be described"):
        asked_again(broken, "a", 3)


def test_examples_come_from_the_tool() -> None:
    catalog = IntentCatalog.from_dict({"intents": {"book": {"tool": "by_model"}}}).with_tools(
        [BY_MODEL]
    )
    assert catalog.param("code").examples == ("T7",)


def test_parameters_come_from_a_json_schema_too() -> None:
    catalog = IntentCatalog.from_dict({"intents": {"book": {"tool": "by_schema"}}}).with_tools(
        [BY_SCHEMA]
    )
    assert {name: param.type for name, param in catalog.params.items()} == {
        "guests": ParamType.INTEGER,
        "code": ParamType.IDENTIFIER,
        "size": ParamType.ENUM,
    }
    assert catalog.param("code").pattern == "^T[0-9]+$"
    assert catalog.param("code").prompt == "What is the code of the table?"


# -- types, units and functions of the application -------------------------------------------------


def test_moments_durations_and_addresses_come_from_the_tool() -> None:
    bound = IntentCatalog.from_dict({"intents": {"plan": {"tool": "plan"}}}).with_tools([plan])
    kinds = {
        name: param.type
        for name, param in bound.params.items()
        if name in ("start", "length", "page")
    }
    assert kinds == {
        "start": ParamType.DATETIME,
        "length": ParamType.DURATION,
        "page": ParamType.URL,
    }


def test_a_timeout_is_a_number_of_seconds() -> None:
    data = {
        "intents": {"a": {}},
        "timeout": "3d",
        "params": {"x": {"timeout": "2h"}, "y": {"timeout": 90}, "z": {}},
    }
    catalog = IntentCatalog.from_dict(data)
    assert catalog.timeout == 3 * 86_400
    assert [param.timeout for param in catalog.params.values()] == [7_200, 90, None]


def test_a_decimal_of_a_file_is_a_default_of_a_number(tmp_path: Path) -> None:
    text = (
        "intents: {a: {required: [x]}}\nparams: {x: {type: number, default: 0.5, min_confidence:"
        " 0.7}}"
    )
    [param] = IntentCatalog.from_yaml(write(tmp_path, text)).params.values()
    assert (param.default, param.min_confidence) == (0.5, 0.7)


def test_every_function_that_is_not_given_is_named_at_once() -> None:
    data = {
        "intents": {"plan": {"tool": "plan"}},
        "params": {
            "iban": {"type": "iban", "validator": "checksum", "normaliser": "capitals"},
            "page": {"type": "webpage"},
        },
    }
    catalog = IntentCatalog.from_dict(data)
    with pytest.raises(CatalogError) as error:
        catalog.with_tools(
            [plan],
            Extensions({"ibans": lambda param, reply: []}, {"check_sum": lambda value: None}),
        )
    assert [problem.partition(": ")[2] for problem in error.value.problems] == [
        "unknown type 'iban'; did you mean 'ibans'?",
        "unknown validator 'checksum'; did you mean 'check_sum'?",
        "unknown normaliser 'capitals'; pass one: normalisers={'capitals': …}",
        "unknown type 'webpage'; pass an extractor: extractors={'webpage': …}",
    ]
    with pytest.raises(
        InvalidInput, match=r"extractors\['iban'\], validators\['x'\]: pass a function"
    ):
        Extensions({"iban": None}, {"x": "y"})  # type: ignore[dict-item]
