"""Promises of the tool that reads outputs: every page once, from the thread's own state.

It works in any graph, sync and async.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool, tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode
from pydantic import BaseModel
from savers import Mode
from scripted_model import scripted

from langmem_ext import DeltaSaver, InvalidInput, output_reader

LOG = "\n".join(f"line {number} of the log" for number in range(2_000))
PNG = {"type": "image", "base64": "iVBORw0KGgo" * 40, "mime_type": "image/png"}


class DataState(BaseModel):
    """A graph's state as a pydantic model."""

    messages: Annotated[list[AnyMessage], add_messages] = []


@dataclass
class PlainState:
    """A graph's state as a dataclass."""

    messages: Annotated[list[AnyMessage], add_messages] = field(default_factory=list)


def reading(ref: str, page: Any = 1, call: str = "r1", **others: str) -> ToolCall:
    return ToolCall(name="read_tool_output", args={"ref": ref, "page": page, **others}, id=call)


def asked(*calls: ToolCall, output: Any = LOG) -> list[AnyMessage]:
    """A conversation in which an output was made, and is now to be read."""
    made = ToolMessage(output, tool_call_id="c1", name="run", id="t1")
    return [
        HumanMessage("go"),
        AIMessage("", tool_calls=[ToolCall(name="run", args={}, id="c1")]),
        made,
        AIMessage("", tool_calls=[*calls]),
    ]


def graph_of(reader: BaseTool, schema: Any = MessagesState, **compiled: Any) -> Any:
    """A graph that only runs tools."""
    builder = StateGraph(schema).add_node("tools", ToolNode([reader])).add_edge(START, "tools")
    return builder.compile(**compiled)


async def read(
    messages: Sequence[AnyMessage],
    mode: Mode = "sync",
    reader: BaseTool | None = None,
    schema: Any = MessagesState,
) -> list[ToolMessage]:
    """What a tool node answers."""
    graph, given = graph_of(reader or output_reader(), schema), {"messages": [*messages]}
    result = graph.invoke(given) if mode == "sync" else await graph.ainvoke(given)
    return list(result["messages"][len(messages) :])


def piece(answer: ToolMessage) -> str:
    """The part of the output that stands in a page."""
    assert isinstance(answer.content, str)
    return re.sub(r"\n\[Next: .*\]\Z", "", answer.content.partition("\n")[2])


# -- pages -----------------------------------------------------------------------------------------


async def test_all_pages_together_are_the_output(mode: Mode) -> None:
    pages = []
    for page in range(1, 7):
        [answer] = await read(asked(reading("t1", page)), mode)
        pages.append(answer)
    assert "".join(map(piece, pages)) == LOG
    assert pages[0].content.startswith(
        f'[Page 1 of 6 of "t1", characters 1 to 7,990 of {len(LOG):,}]\nline 0 of the log\n'
    )
    assert pages[0].content.endswith('\n[Next: read_tool_output(ref="t1", page=2)]')
    assert piece(pages[0]).endswith("log\n")
    assert "[Next" not in pages[-1].content
    assert [answer.status for answer in pages] == ["success"] * 6
    said = [{"type": "text", "text": "The page:"}, PNG]
    [words], [image] = [await read(asked(reading("t1", page), output=said)) for page in (1, 2)]
    assert piece(words) == "The page:\n[image, image/png, 330 bytes]"
    assert image.content == [{"type": "text", "text": '[Page 2 of 2 of "t1"]'}, PNG]
    assert (image.tool_call_id, image.name) == ("r1", "read_tool_output")


async def test_places_that_have_a_text_are_found_with_their_pages(mode: Mode) -> None:
    [answer] = await read(asked(reading("t1", find="LINE 1999")), mode)
    heading = '[Page 1 of 1 of the places with "LINE 1999" in "t1", characters 1 to 28 of 28]'
    assert answer.content == f"{heading}\npage 6: line 1999 of the log"
    found, page = list[str](), 1
    while True:
        [answer] = await read(asked(reading("t1", page, find="line")))
        found += [line.partition(": ")[2] for line in piece(answer).splitlines()]
        page += 1
        if f'[Next: read_tool_output(ref="t1", find="line", page={page})]' not in answer.content:
            break
    assert found == LOG.splitlines(), "every line once"
    [none] = await read(asked(reading("t1", find="(line")))
    assert none.content.startswith('The output "t1" has no "(line": look for a shorter text')
    needle = "x" * 50_000 + "needle" + "y" * 50_000
    [answer] = await read(asked(reading("t1", find="needle"), output=needle))
    assert piece(answer) == f"page 7: {'x' * 120}needle{'y' * 120}"


async def test_an_output_is_found_by_its_id_or_its_call_and_nothing_else_is_read(
    mode: Mode,
) -> None:
    for ref in ("t1", "c1"):
        [answer] = await read(asked(reading(ref)))
        assert answer.status == "success"
    wrong: list[tuple[str, Any, str]] = [
        ("t9", 1, 'no tool output "t9": pass the reference as it is given'),
        ("t9", 1, 'The newest that it has: "t1".'),
        *(("t1", page, f"pass a page from 1 to 6, not {page}.") for page in (0, -1, 7, 10**9)),
        ("t1", "the last", "page"),
    ]
    for ref, page, why in wrong:
        [answer] = await read(asked(reading(ref, page)), mode)
        assert answer.status == "error"
        assert why in answer.content
    [answer] = await read(asked(reading("t1")), reader=output_reader(messages_key="talk"))
    assert "no list of messages named 'talk'" in answer.content


@pytest.mark.parametrize("schema", [MessagesState, DataState, PlainState])
async def test_any_kind_of_state_will_do(schema: Any) -> None:
    [answer] = await read(asked(reading("t1")), schema=schema)
    assert piece(answer).startswith("line 0 of the log")


# -- what is refused -------------------------------------------------------------------------------


async def test_no_more_pages_are_read_in_a_turn_than_allowed(mode: Mode) -> None:
    reader = output_reader(pages_per_turn=2)
    calls = [reading("t1", page, f"r{page}") for page in (1, 2, 3)]
    answers = await read(asked(*calls), mode, reader)
    assert [answer.status for answer in answers] == ["success", "success", "error"]
    assert answers[2].content.startswith("2 pages were read since the user spoke; no more may be")
    given = [ToolMessage("…", tool_call_id=call, name="read_tool_output") for call in ("r1", "r2")]
    before, again = [*asked(*calls[:2]), *given], AIMessage("", tool_calls=calls[2:])
    [third] = await read([*before, again], mode, reader)
    assert third.status == "error"
    [later] = await read([*before, HumanMessage("go on"), again], mode, reader)
    assert later.status == "success"
    many = asked(*(reading("t1", 1, f"r{n}") for n in range(15)))
    answers = await read(many, mode, output_reader(pages_per_turn=0))
    assert len({answer.status for answer in answers}) == 1


def test_what_cannot_be_a_quota_is_refused() -> None:
    for wrong in (0, 199, True, 1e4):
        with pytest.raises(InvalidInput, match="page_chars"):
            output_reader(page_chars=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="pages_per_turn"):
        output_reader(pages_per_turn=-1)


# -- in an agent -----------------------------------------------------------------------------------


@tool
def run(command: str) -> str:
    """Run a command."""
    return LOG


def agent_that_reads(ref: str, saver: DeltaSaver | None = None) -> Any:
    answers = [
        AIMessage("", tool_calls=[ToolCall(name="run", args={"command": "cat log"}, id="c1")]),
        AIMessage(
            "",
            tool_calls=[
                ToolCall(
                    name="read_tool_output",
                    args={"ref": ref, "page": 6, "runtime": {"state": {}}},
                    id="r1",
                )
            ],
        ),
        AIMessage("done"),
    ]
    left = iter(answers)
    model = scripted(lambda asked: next(left))
    return create_agent(model, [run, output_reader()], checkpointer=saver)


def test_another_thread_reaches_nothing_and_what_is_deleted_is_gone() -> None:
    with DeltaSaver.open(":memory:") as saver:
        first: Any = {"configurable": {"thread_id": "first"}}
        agent = agent_that_reads("c1", saver)
        made = agent.invoke({"messages": [("user", "go")]}, first)["messages"]
        page = next(message for message in made if message.name == "read_tool_output")
        assert page.content.endswith("line 1999 of the log")
        [ref] = [message.id for message in made if message.name == "run"]
        graph = graph_of(output_reader(), checkpointer=saver)
        wanted = {"messages": [AIMessage("", tool_calls=[reading(ref, 1, "r9")])]}

        def status(config: Any) -> str:
            return str(graph.invoke(wanted, config)["messages"][-1].status)

        assert status(first) == "success"
        assert status({"configurable": {"thread_id": "second"}}) == "error"
        saver.delete_thread("first")
        assert status(first) == "error"
    schema: Any = output_reader().tool_call_schema
    assert set(schema.model_json_schema()["properties"]) == {"ref", "page", "find"}
