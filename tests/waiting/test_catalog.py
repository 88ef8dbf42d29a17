"""An intents file is read whole or refused with all mistakes; tools fill in what it lacks."""

from __future__ import annotations

import datetime
import enum
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


def mistakes(error: pytest.ExceptionInfo[CatalogError]) -> list[str]:
    return list(error.value.problems)


def write(folder: Path, text: str) -> Path:
    path = folder / "intents.yaml"
    path.write_text(text)
    return path


# -- reading ---------------------------------------------------------------------------------------


def test_a_file_is_read_with_its_defaults(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        r"""
intents:
  - id: greet
    examples: [hello, 2 hellos]
    tool: greet
    required: [name]
    confirm: yes
  - id: bye
    reply: "Bye {name}"
params:
  name: {type: person}
  when:
    description: the time of the visit
    type: time
    examples: [11:30, 2024-05-01, no, 7, 0x10]
  size:
    enum: {small: tiny, large: [big, huge], none: }
  colour:
    enum: [red, yes, 3]
escalate_to: bye
redaction:
  params: [name]
""",
    )
    catalog = IntentCatalog.from_yaml(path)
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


def test_every_mistake_is_reported_at_once_with_its_line_in_file_order(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        r"""intents:
  - id: check
    tool: check_order
    required: [oder_id]
    patterns: ["(foo"]
    reply: "Order {orderid} is {result.status}"
  - id: check
  - id: b
    confrim: yes
    required: [nowhere]
    param_mapping: {a: 3, other_tool: {a: b}}
params:
  order_id:
    type: identifer
    prompt: 5
    prompt: 6
    max_attempts: 0
  number:
    pattern: "O-\\d+"
    examples: [O-1, P-2]
  broken: {pattern: "["}
  reason:
    type: enum
  size:
    enum: {a: [x, y], b: X}
escalate_to: chek
redaction:
  params: [nmber]
replies:
  unknwn: hm
foo: !!python/object:os.system bar
""",
    )
    with pytest.raises(CatalogError) as error:
        IntentCatalog.from_yaml(path)
    starts = [problem.split(": ")[:2] for problem in mistakes(error)]
    assert starts == [
        ["line 4", "intents.check.required[0]"],
        ["line 5", "intents.check.patterns[0]"],
        ["line 6", "intents.check.reply"],
        ["line 7", "intents[1].id"],
        ["line 9", "intents[2].confrim"],
        ["line 11", "intents[2].param_mapping.a"],
        ["line 14", "params.order_id.type"],
        ["line 16", "params.order_id.prompt"],
        ["line 17", "params.order_id.max_attempts"],
        ["line 20", "params.number.examples[1]"],
        ["line 21", "params.broken.pattern"],
        ["line 22", "params.reason.enum"],
        ["line 25", "params.size.enum.b[0]"],
        ["line 26", "escalate_to"],
        ["line 28", "redaction.params[0]"],
        ["line 30", "replies.unknwn"],
        ["line 31", "foo"],
    ]
    text = str(error.value)
    assert str(path) in text
    assert "17 mistakes" in text
    for hint in (
        "did you mean 'order_id'",
        "did you mean 'confirm'",
        "did you mean 'identifier'",
        "first in line 15",
        "did you mean 'check'",
    ):
        assert hint in text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it is empty: declare at least 'intents'"),
        ("# nothing", "it is empty: declare at least 'intents'"),
        ("- a", "line 1: it must be a mapping with the key 'intents'"),
        ("params: {}", "line 1: 'intents' is missing"),
        ("intents: []", "line 1: intents: it must hold at least one intent"),
        ("intents: hello", "line 1: intents: must be a list, or a mapping by id"),
        ("intents: [7]", "line 1: intents[0]: must be a mapping"),
        ("intents:\n  - {id: a, required: x}", "line 2: intents[0].required: must be a list"),
        ("intents:\n  - description: x", "line 2: intents[0].id: is missing"),
        (
            "intents:\n  a: {required: [x], optional: [x]}\nparams: {x: }",
            "line 2: intents.a.optional[0]: 'x' is also in `required`: list it once",
        ),
        (
            "intents: {a: {required: [x]}}",
            "line 1: intents.a.required[0]: unknown parameter 'x'; none are declared",
        ),
        (
            "intents: {a: &a {examples: *a}}",
            "line 1: intents.a.examples: an alias that contains itself",
        ),
        ("intents: {a: }\n? [b]\n: c", "line 2: a key must be text"),
        ("intents: {a: }\nescalate_to: !!int x", "line 2: escalate_to: not a whole number"),
        (
            "intents: [a\nb: c",
            (
                "line 2: not valid YAML: while parsing a flow sequence, expected ',' or ']', but"
                " got ':'"
            ),
        ),
        ("a: b: c", "line 1: not valid YAML: mapping values are not allowed here"),
        ("intents: {a: }\n\tparams: x", "line 2: not valid YAML: "),
        ("---\nintents: {a: }\n---\nb: c", "line 3: not valid YAML: "),
        ("a: \x07", "not valid YAML: special characters are not allowed"),
        ("[" * 5000, "line 1: nested too deeply"),
        (
            "intents: " + "[" * 100 + "]" * 100,
            "line 1: intents" + "[0]" * 50 + ": nested too deeply",
        ),
    ],
)
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


def test_a_dictionary_with_mistakes_says_where_they_are() -> None:
    with pytest.raises(CatalogError) as error:
        IntentCatalog.from_dict(
            {"intents": [{"id": "a", "tool": 3}], "parms": {}}, source="the desk"
        )
    assert mistakes(error) == [
        "parms: unknown key; did you mean 'params'?",
        "intents[0].tool: must be a list",
    ]
    assert str(error.value).startswith("the desk has 2 mistakes")


def test_a_possible_value_that_is_no_number_is_a_mistake_of_a_number() -> None:
    with pytest.raises(CatalogError) as error:
        IntentCatalog.from_dict(
            {
                "intents": [{"id": "a"}],
                "params": {"riders": {"type": "integer", "enum": {"1": [], "two": []}}},
            }
        )
    assert mistakes(error) == ["params.riders.enum.two: 'two' is not a valid integer"]


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


def test_a_catalog_that_does_not_fit_its_tools_says_everything_at_once(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """intents:
  - id: greet
    tool: gret
  - id: hello
    tool: greet
    required: [who]
    param_mapping: {who: nam}
  - id: book
    tool: book
    required: [table_id, guests, day, size]
    param_mapping:
      book: {mail: e-mail}
params:
  size:
    enum: {small: , medium: }
  guests: {type: place}
""",
    )
    catalog = IntentCatalog.from_yaml(path)
    with pytest.raises(CatalogError) as error:
        catalog.with_tools([greet, book])
    assert [problem.split(";")[0] for problem in mistakes(error)] == [
        "line 3: intents.greet.tool: unknown tool 'gret'",
        (
            "line 5: intents.hello.tool: nothing fills the argument 'name' of tool 'greet': name a"
            " parameter for it under 'required'"
        ),
        (
            "line 6: intents.hello.required[0]: 'who' is neither declared under 'params' nor an"
            " argument of a tool"
        ),
        "line 7: intents.hello.param_mapping.who: tool 'greet' has no argument 'nam'",
        (
            "line 9: intents.book.tool: nothing fills the argument 'email' of tool 'book': name a"
            " parameter for it under 'required'"
        ),
        "line 12: intents.book.param_mapping.book.mail: tool 'book' has no argument 'e-mail'",
        (
            "line 15: params.size.enum.medium: tool 'book' does not accept it for 'size': Input"
            " should be 'small' or 'large'"
        ),
        "line 16: params.guests.type: place does not fit: tool 'book' takes 'guests' as integer",
    ]


def test_a_redacted_name_that_is_no_parameter_is_a_mistake() -> None:
    data = {"intents": {"greet": {"tool": "greet"}}, "redaction": {"params": ["name", "pasword"]}}
    with pytest.raises(CatalogError, match="unknown parameter 'pasword'"):
        IntentCatalog.from_dict(data).with_tools([greet])
    with pytest.raises(CatalogError, match="did you mean 'password'"):
        IntentCatalog.from_dict({**data, "params": {"password": {}}})


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


def test_a_label_names_an_allowed_value_and_a_default_is_one() -> None:
    params = {
        "size": {
            "type": "enum",
            "enum": ["small", "large"],
            "labels": {"smal": "little"},
            "default": "huge",
        },
        "count": {"type": "integer", "default": "many"},
    }
    with pytest.raises(CatalogError) as raised:
        IntentCatalog.from_dict(
            {
                "intents": {"order": {"examples": ["order"], "required": ["size", "count"]}},
                "params": params,
            }
        )
    told = str(raised.value)
    assert "params.size.labels.smal" in told
    assert "params.size.default" in told
    assert "params.count.default" in told


# -- types, units and functions of the application -------------------------------------------------


@tool
def plan(
    start: datetime.datetime,
    length: datetime.timedelta,
    page: HttpUrl,
    minutes: int,
    iban: str,
) -> str:
    """Plan a meeting."""
    return "planned"


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


def test_units_open_values_and_names_must_fit() -> None:
    params = {
        "start": {"type": "datetime", "units": "hours"},
        "length": {"type": "duration", "units": "parsecs"},
        "page": {"type": "url", "open_values": True, "min_confidence": 2},
        "minutes": {"type": "duration", "timeout": "soon"},
    }
    with pytest.raises(CatalogError) as error:
        IntentCatalog.from_dict(
            {"intents": {"plan": {"tool": "plan"}}, "params": params, "timeout": "-3"}
        )
    text = str(error.value)
    assert len(error.value.problems) == 5
    for hint in (
        "only numbers and durations have units",
        "not a unit of time; known: seconds, minutes",
        "params.page.min_confidence",
        "like '30m', '2h' or '3d'",
        "timeout: must be a number of seconds, or a duration",
    ):
        assert hint in text


def test_a_duration_counts_what_the_tool_counts() -> None:
    with pytest.raises(CatalogError, match="takes 'minutes' as integer: say in which `units`"):
        IntentCatalog.from_dict(
            {"intents": {"p": {"tool": "plan"}}, "params": {"minutes": {"type": "duration"}}}
        ).with_tools([plan])
    params = {"length": {"type": "duration", "units": "hours"}}
    with pytest.raises(CatalogError, match="takes 'length' as string: leave `units` out"):
        IntentCatalog.from_dict({"intents": {"p": {"tool": "plan"}}, "params": params}).with_tools(
            [plan]
        )


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
