"""Promise: a catalog that cannot work is refused at once and says why; synonyms are values."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from savers import Calls
from scripted_model import scripted
from small_graphs import config
from typer.testing import CliRunner

import langmem_ext as lm
from langmem_ext.cli.app import app


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
    with pytest.raises(lm.CatalogError) as error:
        lm.build_waiting_graph(lm.IntentCatalog.from_dict(trips()), [search])
    assert "intents.trip.required[0]" in str(error.value)
    assert "uses 'from': write param_mapping: {from: from_}" in str(error.value)


def test_without_a_slip_the_error_says_what_can_be_done() -> None:
    slip = trips(required=["colour", "to"], confirm="To {to}?")
    slip["params"]["colour"] = slip["params"]["to"]
    catalog = lm.IntentCatalog.from_dict(slip)
    with pytest.raises(lm.CatalogError, match="'colour': name it as the tool's argument, map it"):
        lm.build_waiting_graph(catalog, [search])


def test_a_parameter_that_something_uses_is_fine() -> None:
    """The tool, a sentence, the user, the thread, or the application, which has no tool."""
    used: list[dict[str, Any]] = [
        {"param_mapping": {"from": "from_"}},
        {"reply": "A trip from {from}."},
        {"confirm": "From {from} to {to}?"},
        {"required": ["to"], "optional": ["from"]},
    ]
    kept = trips()
    kept["params"]["from"]["keep"] = "thread"
    for catalog in (*(trips(**intent) for intent in used), kept):
        assert lm.build_waiting_graph(lm.IntentCatalog.from_dict(catalog), [search]), catalog
    plain = {"intents": {"a": {"required": ["to"]}}, "params": {"to": {"prompt": "To?"}}}
    assert lm.build_waiting_graph(lm.IntentCatalog.from_dict(plain), [])


def test_the_command_finds_it_too(tmp_path: Path) -> None:
    catalog, tools = tmp_path / "trips.json", tmp_path / "tools.py"
    catalog.write_text(json.dumps(trips()))
    tools.write_text(f"from promises.{Path(__file__).stem} import search\n\nTOOLS = [search]\n")
    words = ["catalog", "check", str(catalog), "--tools", f"{tools}:TOOLS"]
    told = CliRunner().invoke(app, words)
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
    catalog = lm.IntentCatalog.from_dict({"intents": {"book": needs}, "params": params})
    return lm.build_waiting_graph(catalog, [book]).compile(checkpointer=InMemorySaver())


async def test_a_clients_value_is_taken_by_its_name_label_or_synonym(calls: Calls) -> None:
    said = ["brakes", "Brake Job", "brake service", "brake_service", "Service of the brakes"]
    for spec, value in product(({"type": "enum"}, {"type": "enum", "open_values": True}), said):
        graph = garage(**spec, labels={"brake_service": "Service of the brakes"})
        given, call = {"service": value, "people": "a pair"}, (lm, "converse", graph)
        await calls.call(*call, "book", thread_id="t")
        done = await calls.call(*call, resume=given, thread_id="t")
        assert done.reply == "brake_service for 2", value
        await calls.call(*call, "book", thread_id="r")
        state = await calls.call(graph, "invoke", Command(resume=given), config("r"))
        assert state["params"] == {"service": "brake_service", "people": 2}, value


def test_another_value_is_refused_or_where_any_is_allowed_kept_as_it_is() -> None:
    graph = garage(type="enum")
    lm.converse(graph, "book", thread_id="t")
    asked = lm.converse(graph, resume={"service": "paint", "people": 1}, thread_id="t")
    assert asked.waiting_for == "service"
    graph = garage(type="enum", open_values=True)
    lm.converse(graph, "book", thread_id="t")
    said = lm.converse(graph, resume={"service": "New tyres", "people": 1}, thread_id="t").reply
    assert said == "New tyres for 1"


# -- models ----------------------------------------------------------------------------------------


def test_what_is_no_model_is_refused_at_once_wherever_a_model_is_taken() -> None:
    catalog, saver = lm.IntentCatalog.from_dict({"intents": {"a": {"reply": "b"}}}), lm.DeltaSaver()
    takers: list[Callable[[Any], object]] = [
        lambda wrong: lm.build_waiting_graph(catalog, [], model=wrong),
        lm.ModelClassifier,
        lambda wrong: lm.ContextGovernor(model=wrong),
        lambda wrong: lm.ContextMiddleware(model=wrong),
        lambda wrong: lm.TitleWriter(lm.Threads(saver), wrong),
        lambda wrong: lm.MemoryGenerator(saver, wrong),
    ]
    for wrong in (5, object(), InMemorySaver, ["gpt"], {"model": "gpt"}):
        for take in takers:
            with pytest.raises(lm.InvalidInput, match="must be a chat model or its name, not"):
                take(wrong)


def test_a_model_and_what_wraps_one_are_taken() -> None:
    catalog = lm.IntentCatalog.from_dict({"intents": {"a": {"reply": "b"}}})
    model = scripted(lambda messages: "no idea")
    assert lm.build_waiting_graph(catalog, [], model=model)
    assert lm.build_waiting_graph(catalog, [], model=model.with_retry())  # type: ignore[arg-type]
