"""The desks of `tests/cases/talks`: their catalogs, and tools that note their calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import yaml
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import Field, create_model
from repository import ROOT

TALKS = ROOT / "tests" / "cases" / "talks"
KINDS: Mapping[str, Any] = {"integer": int, "money": float, "number": float, "boolean": bool}

Calls: TypeAlias = list[dict[str, dict[str, Any]]]
"""Calls of tools, each a tool's name with its arguments."""


def desk_named(name: str) -> dict[str, Any]:
    """What the file of a desk holds."""
    text = (TALKS / f"{name}.yaml").read_text(encoding="utf-8")
    return dict(yaml.safe_load(text))


def tools_of(desk: Mapping[str, Any], calls: Calls) -> list[BaseTool]:
    """The tools of a desk; each notes its calls and returns what the file says."""
    return [_tool(desk, name, calls) for name in desk["tools"]]


def _tool(desk: Mapping[str, Any], name: str, calls: Calls) -> BaseTool:
    def call(**given: Any) -> Any:
        calls.append({name: {key: value for key, value in given.items() if value is not None}})
        return desk["tools"][name].get("result") or {}

    intents = [intent for intent in desk["catalog"]["intents"] if intent.get("tool") == name]
    required = {param for intent in intents for param in intent.get("required", ())}
    fields: dict[str, Any] = {}
    for arg in desk["tools"][name]["args"]:
        kind = KINDS.get(desk["catalog"]["params"][arg]["type"], str)
        fields[arg] = (kind, ...) if arg in required else (kind | None, Field(default=None))
    return StructuredTool.from_function(
        call, name=name, description=name, args_schema=create_model(name, **fields)
    )
