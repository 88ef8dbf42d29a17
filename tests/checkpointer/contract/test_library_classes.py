"""Promise: no row makes a library's code run, wherever the library is installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from langchain_core.agents import AgentFinish
from langchain_core.example_selectors import length_based
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.prompt_values import ChatPromptValue
from langgraph.checkpoint.serde import jsonplus
from raw_tables import change
from test_serde import CONFIG, forge, through

from langmem_ext import DataSerializer, DeltaSaver

LIBRARY = """
import enum, functools
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar, Union
import pydantic
from pydantic import BaseModel, Discriminator, Field, PrivateAttr, Tag
from pydantic_core import core_schema

RAN = []

def run(value=None):
    RAN.append(value)
    return "ran"

def wrapped(value, handler):
    return run(value)

class Before(BaseModel):
    x: Annotated[str, pydantic.BeforeValidator(run)]

class After(BaseModel):
    x: Annotated[str, pydantic.AfterValidator(run)]

class Wrap(BaseModel):
    x: list[dict[str, Annotated[str, pydantic.WrapValidator(wrapped)]]] | str

class Plain(BaseModel):
    x: Annotated[str, pydantic.PlainValidator(run)] | None

class Hidden:
    @classmethod
    def __get_pydantic_core_schema__(cls, source, handler):
        return core_schema.no_info_plain_validator_function(run)

class OwnSchema(BaseModel):
    x: Hidden

class Nested(BaseModel):
    x: Before | str

class Inner(NamedTuple):
    x: Annotated[str, pydantic.AfterValidator(run)]

class NestedTuple(BaseModel):
    x: Inner | str

class Called(BaseModel):
    x: Any
    y: str = Field(default_factory=run)

class Client:
    __init__ = run

class Maker(BaseModel):
    model_config = {"arbitrary_types_allowed": True}
    x: Any
    y: Client = Field(default_factory=Client)

class Private(BaseModel):
    x: Any
    _y: str = PrivateAttr(default_factory=run)

class ModelPostInit(BaseModel):
    x: Any
    def model_post_init(self, context):
        run()

class ModelInit(BaseModel):
    x: Any
    def __init__(self, **fields):
        run()
        super().__init__(**fields)

class Construct(BaseModel):
    x: int
    @classmethod
    def model_construct(cls, *args, **fields):
        run()

class Union_(BaseModel):
    x: Annotated[Annotated[Any, Tag("ran")] | Annotated[int, Tag("b")], Discriminator(run)]

@dataclass
class PostInit:
    x: Any
    def __post_init__(self):
        run()

@dataclass
class OwnInit:
    x: Any
    @functools.wraps(BaseModel.__init__)
    def __init__(self, x):
        run()

@dataclass
class New:
    x: Any
    def __new__(cls, *args, **fields):
        run()
        return super().__new__(cls)

@dataclass
class Set:
    x: Any
    def __setattr__(self, name, value):
        run()

@dataclass
class Delete:
    x: Any
    def __del__(self):
        run()

@dataclass
class Property:
    x: Any
    @property
    def x(self):
        return 1
    @x.setter
    def x(self, value):
        run()

@dataclass
class Made:
    x: Any
    y: Client = field(default_factory=Client)

@dataclass
class BuiltBy:
    y: Any
    @classmethod
    def construct(cls, **fields):
        run()

class Meta(type):
    def __call__(cls, *args, **fields):
        run()

@dataclass
class OfMeta(metaclass=Meta):
    x: Any

@pydantic.dataclasses.dataclass
class Checked:
    x: Annotated[str, pydantic.BeforeValidator(run)]

class Subclassed(NamedTuple("Subclassed", [("x", Any)])):
    def __new__(cls, x):
        run()

class Missing(enum.Enum):
    A = 1
    @classmethod
    def _missing_(cls, value):
        run()

HOSTILE = [kind for kind in list(vars().values()) if getattr(kind, "__module__", "") == __name__
           and isinstance(kind, type) and kind not in (Hidden, Inner, Client, Meta)]

T = TypeVar("T")

class Part(BaseModel):
    kind: Literal["part"] = "part"
    size: int | float = 1

class Other(BaseModel):
    kind: Literal["other"]

class Good(BaseModel):
    x: Any
    parts: list[Annotated[Part | Other, Field(discriminator="kind")]] = Field(default_factory=list)
    later: "Later | None" = None

class Later(BaseModel):
    more: dict[str, Part] = {}

@dataclass(frozen=True, slots=True)
class Slots(Generic[T]):
    x: T
    y: list = field(default_factory=list)

@pydantic.dataclasses.dataclass
class Typed:
    x: Any
    y: Part = Field(default_factory=Part)

class Pair(NamedTuple):
    x: Any

class Way(enum.StrEnum):
    UP = "up"

GOOD = [Good, Slots, Typed, Pair]
"""


@pytest.fixture
def libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    """The same modules, installed in some ways, and as the application's own."""
    folders = {
        "user": "lib/site-packages",
        "debian": "dist-packages",
        "target": "app",
        "own": "app",
    }
    found = {}
    for how, folder in folders.items():
        path = tmp_path / folder
        path.mkdir(parents=True, exist_ok=True)
        monkeypatch.syspath_prepend(path)
        (path / f"by_{how}.py").write_text(LIBRARY)
        if how == "target":  # as `pip install --target` leaves it
            record = path / "a_library-1.0.dist-info" / "RECORD"
            record.parent.mkdir()
            record.write_text("by_target.py,sha256=0,1\na_library-1.0.dist-info/RECORD,,\n")
        found[how] = __import__(f"by_{how}")
    yield found
    for how in folders:
        del sys.modules[f"by_{how}"]


def read(module: str, name: str, fields: Any, code: int) -> Any:
    """What is read of a row that names a class."""
    return DataSerializer().loads_typed(("msgpack", forge(code, (module, name, fields))))


CODES = {
    "Wrap": (jsonplus.EXT_PYDANTIC_V2, {"x": [{"a": "ran"}]}),
    "Nested": (jsonplus.EXT_PYDANTIC_V2, {"x": {"x": "ran"}}),
    "NestedTuple": (jsonplus.EXT_PYDANTIC_V2, {"x": ["ran"]}),
    "Subclassed": (jsonplus.EXT_CONSTRUCTOR_POS_ARGS, ["ran"]),
    "Missing": (jsonplus.EXT_CONSTRUCTOR_SINGLE_ARG, "ran"),
}


def test_a_librarys_code_does_not_run_and_its_data_is_built(
    libraries: dict[str, ModuleType], caplog: pytest.LogCaptureFixture
) -> None:
    for how, module in libraries.items():
        for kind in module.HOSTILE:
            code, fields = CODES.get(kind.__name__, (jsonplus.EXT_PYDANTIC_V2, {"x": "ran"}))
            built = type(read(module.__name__, kind.__name__, fields, code)) is kind
            if how == "own":
                assert module.RAN or kind is module.BuiltBy, kind
                module.RAN.clear()
                continue
            assert module.RAN == [], (how, kind)
            named = f"{module.__name__}.{kind.__name__}" in caplog.text
            assert (built, named) == (
                (True, False) if kind is module.Construct else (False, True)
            ), (how, kind)
        for kind in module.GOOD:
            found = read(module.__name__, kind.__name__, {"x": 1}, jsonplus.EXT_PYDANTIC_V2)
            assert found == kind(x=1), (how, kind)
        code = jsonplus.EXT_CONSTRUCTOR_SINGLE_ARG
        assert read(module.__name__, "Way", "up", code) is module.Way.UP
        made = read("enum", "Enum", ["Made", ["A"]], jsonplus.EXT_CONSTRUCTOR_POS_ARGS)
        assert made == ["Made", ["A"]]


def test_of_langchain_only_data_is_built(url: str) -> None:
    """A template may be a program: it would loop for ever, or be told what is in memory."""
    template = {"template": "{{ x }}", "template_format": "jinja2", "input_variables": ["x"]}
    fields = {"examples": [{"x": "ran"}], "example_prompt": template}
    kind = length_based.LengthBasedExampleSelector
    with DeltaSaver(url) as saver:
        through(saver, "x" * 100)
    forged = forge(jsonplus.EXT_PYDANTIC_V2, (kind.__module__, kind.__name__, fields))
    change(url, "UPDATE value SET body = ?", forged, sealed=True)
    with DeltaSaver(url) as saver:
        found = saver.get_tuple(CONFIG)
        assert found is not None
        assert found.checkpoint["channel_values"]["thing"] == fields
    for data in (
        LLMResult(generations=[[ChatGeneration(message=AIMessage("hello"))]]),
        ChatPromptValue(messages=[AIMessage("hello")]),
        AgentFinish({"output": "a"}, "log"),
    ):
        with DeltaSaver() as saver:
            assert type(through(saver, data)) is type(data)
