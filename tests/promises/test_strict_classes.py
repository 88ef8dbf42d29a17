"""Promise: LangGraph's `LANGGRAPH_STRICT_MSGPACK` means the same with every saver."""

from __future__ import annotations

import json
import subprocess
import sys
from os import environ

import pytest

PROGRAM = """
import json
import sys
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from pydantic import BaseModel, SecretStr
from typing_extensions import TypedDict

from langmem_ext import DataSerializer, DeltaSaver


class Unlisted(BaseModel):
    a: int = 1


class Listed(BaseModel):
    a: int = 1


class State(TypedDict):
    anything: Any
    own: Listed
    secret: Any


def kinds(saver):
    values = {"anything": Unlisted(), "own": Listed(), "secret": SecretStr("s")}
    builder = StateGraph(State).add_node("n", lambda _: values).add_edge(START, "n")
    graph = builder.compile(checkpointer=saver)
    config = {"configurable": {"thread_id": "t"}}
    graph.invoke({"anything": None}, config)
    read = graph.get_state(config).values
    return [type(read[name]).__name__ for name in ("anything", "own", "secret")]


savers = {
    "InMemorySaver": InMemorySaver(),
    "DeltaSaver": DeltaSaver(),
    "allowed": DeltaSaver(serde=DataSerializer(allow=[Unlisted])),
    "strict": DeltaSaver(serde=DataSerializer(strict=True)),
}
print(json.dumps({name: kinds(saver) for name, saver in savers.items()}))
"""


@pytest.mark.process
@pytest.mark.parametrize("value", ["true", "1", "false", None])
def test_only_classes_of_the_states_schema_are_rebuilt(value: str | None) -> None:
    given = {} if value is None else {"LANGGRAPH_STRICT_MSGPACK": value}
    others = {name: text for name, text in environ.items() if name != "LANGGRAPH_STRICT_MSGPACK"}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**others, **given},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(run.stdout)
    assert found["DeltaSaver"] == found["InMemorySaver"]
    strict = value in ("true", "1")
    assert found["DeltaSaver"][:2] == [("dict" if strict else "Unlisted"), "Listed"]
    assert found["allowed"][0] == "Unlisted"
    assert found["strict"][:2] == ["dict", "Listed" if strict else "dict"]
    assert found["strict"][2] == "str"
    assert "is neither on LangGraph's strict list" in run.stderr
