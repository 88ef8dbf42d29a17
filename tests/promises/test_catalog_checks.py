"""Promise: a catalog that cannot work is refused at once and says why; synonyms are values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from scripted_model import scripted
from typer.testing import CliRunner

from langmem_ext import (
    CatalogError,
    ContextGovernor,
    ContextMiddleware,
    DeltaSaver,
    IntentCatalog,
    InvalidInput,
    MemoryGenerator,
    ModelClassifier,
    Threads,
    TitleWriter,
    aconverse,
    build_waiting_graph,
    converse,
)
from langmem_ext.cli.app import app

CONFIG: Any = {"configurable": {"thread_id": "t"}}


@tool
def search(to: str, from_: str = "", via: str = "") -> str:
    """Search."""
    return f"from {from_} to {to} via {via}"


def trips(**intent: Any) -> dict[str, Any]:
    """A catalog whose request needs `from`, which no argument of the tool is called."""
    needs = {"patterns": ["trip"], "required": ["from", "to"], "tool": "search", **intent}
    city = {"type": "place", "prompt": "Which city?"}
    return {"intents": {"trip": needs}, "params": {"from": city, "to": city}}


# -- a parameter that nothing uses -----------------------------------------------------------------


def test_a_required_parameter_that_nothing_uses_is_refused_and_the_slip_is_named() -> None:
    with pytest.raises(CatalogError) as error:
        build_waiting_graph(IntentCatalog.from_dict(trips()), [search])
    assert "intents.trip.required[0]" in str(error.value)
    assert "uses 'from': write param_mapping: {from: from_}" in str(error.value)


def test_without_a_slip_the_error_says_what_can_be_done() -> None:
    catalog = IntentCatalog.from_dict(trips(required=["colour", "to"], confirm="To {to}?"))
    catalog = catalog.model_copy(
        update={"params": {**catalog.params, "colour": catalog.params["to"]}}
    )
    with pytest.raises(CatalogError, match="uses 'colour': name it as the tool's argument, map it"):
        build_waiting_graph(catalog, [search])


@pytest.mark.parametrize(
    "intent",
    [
        {"param_mapping": {"from": "from_"}},
        {"reply": "A trip from {from}."},
        {"confirm": "From {from} to {to}?"},
        {"required": ["to"], "optional": ["from"]},
    ],
)
def test_a_parameter_that_something_uses_is_fine(intent: dict[str, Any]) -> None:
    assert build_waiting_graph(IntentCatalog.from_dict(trips(**intent)), [search])


def test_what_is_kept_for_the_thread_or_for_the_application_is_used() -> None:
    kept = trips()
    kept["params"]["from"]["keep"] = "thread"
    assert build_waiting_graph(IntentCatalog.from_dict(kept), [search])
    plain = {"intents": {"a": {"required": ["to"]}}, "params": {"to": {"prompt": "To?"}}}
    assert build_waiting_graph(IntentCatalog.from_dict(plain), [])


def test_the_command_finds_it_too(tmp_path: Path) -> None:
    (tmp_path / "trips.yaml").write_text(
        """
intents:
  - {id: trip, patterns: [trip], required: [from, to], tool: search}
params:
  from: {type: place, prompt: "From?"}
  to: {type: place, prompt: "To?"}
"""
    )
    (tmp_path / "tools.py").write_text(
        """
from langchain_core.tools import tool

@tool
def search(to: str, from_: str = "") -> str:
    \"\"\"Search.\"\"\"
    return ""

TOOLS = [search]
"""
    )
    told = CliRunner().invoke(
        app,
        ["catalog", "check", str(tmp_path / "trips.yaml"), "--tools", f"{tmp_path}/tools.py:TOOLS"],
    )
    assert told.exit_code != 0
    assert "param_mapping: {from: from_}" in " ".join(told.output.split())


# -- structured answers ----------------------------------------------------------------------------

SERVICES = {"brake_service": ["brakes", "brake job"], "oil_change": ["oil"]}


@tool
def book(service: str, people: int) -> str:
    """Book."""
    return f"{service} for {people}"


def garage(**service: Any) -> Any:
    params = {
        "service": {"enum": SERVICES, "prompt": "Which service?", **service},
        "people": {"type": "integer", "enum": {"1": ["alone"], "2": ["a pair"]}, "prompt": "Many?"},
    }
    needs = {"patterns": ["book"], "required": ["service", "people"], "tool": "book"}
    catalog = IntentCatalog.from_dict({"intents": {"book": needs}, "params": params})
    return build_waiting_graph(catalog, [book]).compile(checkpointer=InMemorySaver())


@pytest.mark.parametrize("spec", [{"type": "enum"}, {"type": "enum", "open_values": True}])
@pytest.mark.parametrize(
    "value", ["brakes", "Brake Job", "brake service", "brake_service", "Service of the brakes"]
)
async def test_a_clients_value_is_taken_by_its_name_label_or_synonym(
    spec: dict[str, Any], value: str
) -> None:
    graph = garage(**spec, labels={"brake_service": "Service of the brakes"})
    given = {"service": value, "people": "a pair"}
    converse(graph, "book", thread_id="t")
    assert converse(graph, resume=given, thread_id="t").reply == "brake_service for 2"
    await aconverse(graph, "book", thread_id="a")
    assert (await aconverse(graph, resume=given, thread_id="a")).reply == "brake_service for 2"
    converse(graph, "book", thread_id="r")
    config: Any = {"configurable": {"thread_id": "r"}}
    state = graph.invoke(Command(resume=given), config)
    assert state["params"] == {"service": "brake_service", "people": 2}


def test_another_value_is_refused_or_where_any_is_allowed_kept_as_it_is() -> None:
    graph = garage(type="enum")
    converse(graph, "book", thread_id="t")
    asked = converse(graph, resume={"service": "paint", "people": 1}, thread_id="t")
    assert asked.waiting_for == "service"
    graph = garage(type="enum", open_values=True)
    converse(graph, "book", thread_id="t")
    said = converse(graph, resume={"service": "New tyres", "people": 1}, thread_id="t").reply
    assert said == "New tyres for 1"


# -- models ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [5, object(), InMemorySaver, ["gpt"], {"model": "gpt"}])
def test_what_is_no_model_is_refused_at_once_wherever_a_model_is_taken(wrong: Any) -> None:
    catalog = IntentCatalog.from_dict({"intents": {"a": {"reply": "b"}}})
    with DeltaSaver.open(":memory:") as saver:
        threads = Threads(saver)
        for take in (
            lambda: build_waiting_graph(catalog, [], model=wrong),
            lambda: ModelClassifier(wrong),
            lambda: ContextGovernor(model=wrong),
            lambda: ContextMiddleware(model=wrong),
            lambda: TitleWriter(threads, wrong),
            lambda: MemoryGenerator(saver, wrong),
        ):
            with pytest.raises(InvalidInput, match="must be a chat model or its name, not"):
                take()


def test_a_model_and_what_wraps_one_are_taken() -> None:
    catalog = IntentCatalog.from_dict({"intents": {"a": {"reply": "b"}}})
    model = scripted(lambda messages: "no idea")
    assert build_waiting_graph(catalog, [], model=model)
    assert build_waiting_graph(catalog, [], model=model.with_retry())  # type: ignore[arg-type]
