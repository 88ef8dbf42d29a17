"""Promises of the tool that reads outputs: every page once, from the thread's own state.

It works in any graph, sync and async.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool, tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode
from pydantic import BaseModel
from savers import Mode
from scripted_model import scripted

from langmem_ext import DeltaSaver
from langmem_ext.context.tool_output.reader import output_reader, page_starts
from langmem_ext.context.tool_output.tool_output import previewed
from langmem_ext.errors import InvalidInput

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


async def read(
    messages: Sequence[AnyMessage],
    mode: Mode = "sync",
    reader: BaseTool | None = None,
    schema: Any = MessagesState,
) -> list[ToolMessage]:
    """What a tool node answers."""
    builder = StateGraph(schema)
    builder.add_node("tools", ToolNode([reader or output_reader()]))
    builder.add_edge(START, "tools")
    graph: Any = builder.compile()
    result = (
        graph.invoke({"messages": [*messages]})
        if mode == "sync"
        else await graph.ainvoke({"messages": [*messages]})
    )
    return list(result["messages"][len(messages) :])


def piece(answer: ToolMessage) -> str:
    """The part of the output that stands in a page."""
    assert isinstance(answer.content, str)
    return re.sub(r"\n\[Next: .*\]\Z", "", answer.content.partition("\n")[2])


# -- pages -----------------------------------------------------------------------------------------


@given(text=st.text(alphabet="ab\n", max_size=900), chars=st.integers(1, 120))
def test_pages_hold_the_text_once_and_none_is_longer_than_allowed(text: str, chars: int) -> None:
    starts = [*page_starts(text, chars), len(text)]
    pages = [text[start:end] for start, end in zip(starts, starts[1:], strict=False)]
    assert "".join(pages) == text
    assert all(0 < len(page) <= chars for page in pages) or pages == [""]


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


async def test_an_image_is_a_page_of_its_own() -> None:
    [words] = await read(asked(reading("t1"), output=[{"type": "text", "text": "The page:"}, PNG]))
    assert piece(words) == "The page:\n[image, image/png, 330 bytes]"
    [image] = await read(
        asked(reading("t1", 2), output=[{"type": "text", "text": "The page:"}, PNG])
    )
    assert image.content == [{"type": "text", "text": '[Page 2 of 2 of "t1"]'}, PNG]
    assert (image.tool_call_id, image.name) == ("r1", "read_tool_output")


async def test_places_that_have_a_text_are_found_with_their_pages(mode: Mode) -> None:
    [answer] = await read(asked(reading("t1", find="LINE 1999")), mode)
    assert (
        answer.content
        == '[Page 1 of 1 of the places with "LINE 1999" in "t1", characters 1 to 28 of 28]\npage 6:'
        " line 1999 of the log"
    )
    [first] = await read(asked(reading("t1", find="line")))
    assert first.content.startswith(
        '[Page 1 of 8 of the places with "line" in "t1", characters 1 to '
    )
    assert first.content.endswith('\n[Next: read_tool_output(ref="t1", find="line", page=2)]')
    [none] = await read(asked(reading("t1", find="(line")))
    assert (
        none.content
        == 'The output "t1" has no "(line": look for a shorter text, or read its pages.'
    )


async def test_of_a_long_line_only_what_stands_around_a_text_is_shown() -> None:
    [answer] = await read(
        asked(reading("t1", find="needle"), output="x" * 50_000 + "needle" + "y" * 50_000)
    )
    assert piece(answer) == f"page 7: {'x' * 120}needle{'y' * 120}"


@given(
    text=st.text(alphabet="ab\n", max_size=600), find=st.text(alphabet="ab", min_size=1, max_size=3)
)
def test_every_line_that_has_a_text_is_found_once_and_no_other(text: str, find: str) -> None:
    reader: Any = output_reader(page_chars=10**6)
    answer = (
        ""
        if find not in text
        else reader.func("t1", runtime_of({"messages": asked(output=text)}), find=find)
    )
    found = [line.removeprefix("page 1: ") for line in answer.split("\n")[1:]]
    lines = [line for line in text.split("\n") if find in line]
    if all(len(line) < 100 for line in lines):
        assert found == lines


@pytest.mark.parametrize("schema", [MessagesState, DataState, PlainState])
async def test_any_kind_of_state_will_do(schema: Any) -> None:
    [answer] = await read(asked(reading("t1")), schema=schema)
    assert piece(answer).startswith("line 0 of the log")


def test_a_state_that_is_a_list_will_do() -> None:
    node = ToolNode([output_reader()])
    builder = StateGraph(Annotated[list[AnyMessage], add_messages])
    builder.add_node("tools", node)
    builder.add_edge(START, "tools")
    graph: Any = builder.compile()
    assert piece(graph.invoke(asked(reading("t1")))[-1]).startswith("line 0 of the log")


async def test_a_preview_names_what_can_be_read() -> None:
    shown = previewed(ToolMessage(LOG, tool_call_id="c1", id="t1"), "t1")
    found = re.search(r'read_tool_output\(ref="(.*)", page=(\d)\)', str(shown.content))
    assert found is not None
    [answer] = await read(asked(reading(found[1], int(found[2]))))
    assert piece(answer).startswith("line 0 of the log")


async def test_an_output_is_found_by_its_id_its_call_or_its_place() -> None:
    for ref in ("t1", "c1"):
        [answer] = await read(asked(reading(ref)))
        assert answer.status == "success"
    [missed] = await read(asked(reading("@2")))
    assert missed.status == "error"
    messages = asked(reading("@2"))
    messages[2].id = None
    node: Any = output_reader()
    state = {"messages": messages}
    assert node.func("@2", runtime_of(state)).startswith("[Page 1 of 6")


def runtime_of(state: Any) -> Any:
    """What a tool node gives to a tool, for a state that no graph would give ids."""

    @dataclass
    class Given:
        state: Any
        tool_call_id: str = "r1"

    return Given(state)


# -- what is refused -------------------------------------------------------------------------------


async def test_an_unknown_reference_is_an_error_that_names_the_known_ones(mode: Mode) -> None:
    [answer] = await read(asked(reading("t9")), mode)
    assert answer.status == "error"
    assert (
        answer.content
        == 'This conversation has no tool output "t9": pass the reference as it is given where a'
        ' part is shown. The newest that it has: "t1".'
    )


@pytest.mark.parametrize("page", [0, -1, 7, 10**9])
async def test_a_page_that_is_not_there_is_an_error(page: int) -> None:
    [answer] = await read(asked(reading("t1", page)))
    assert answer.status == "error"
    assert answer.content == f'There are 6 pages of "t1": pass a page from 1 to 6, not {page}.'


async def test_arguments_that_make_no_sense_are_an_error() -> None:
    [answer] = await read(asked(reading("t1", "the last")))
    assert answer.status == "error"


async def test_no_more_pages_are_read_in_a_turn_than_allowed(mode: Mode) -> None:
    reader = output_reader(pages_per_turn=2)
    answers = await read(
        asked(*(reading("t1", page, f"r{page}") for page in (1, 2, 3))), mode, reader
    )
    assert [answer.status for answer in answers] == ["success", "success", "error"]
    assert (
        answers[2].content
        == "2 pages were read since the user spoke; no more may be: go on with what they say, or"
        " say what is missing."
    )
    before = asked(reading("t1", 1, "r1"), reading("t1", 2, "r2"))
    given = [ToolMessage("…", tool_call_id=call, name="read_tool_output") for call in ("r1", "r2")]
    [third] = await read(
        [*before, *given, AIMessage("", tool_calls=[reading("t1", 3, "r3")])], mode, reader
    )
    assert third.status == "error"
    [later] = await read(
        [
            *before,
            *given,
            HumanMessage("go on"),
            AIMessage("", tool_calls=[reading("t1", 3, "r3")]),
        ],
        mode,
        reader,
    )
    assert later.status == "success"
    assert (
        len(
            {
                answer.status
                for answer in await read(
                    asked(*(reading("t1", 1, f"r{n}") for n in range(15))),
                    mode,
                    output_reader(pages_per_turn=0),
                )
            }
        )
        == 1
    )


def test_what_cannot_be_a_quota_is_refused() -> None:
    for wrong in (0, 199, True, 1e4):
        with pytest.raises(InvalidInput, match="page_chars"):
            output_reader(page_chars=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="pages_per_turn"):
        output_reader(pages_per_turn=-1)


def test_a_state_without_messages_is_told() -> None:
    reader: Any = output_reader(messages_key="talk")
    for state in ({"messages": []}, object()):
        with pytest.raises(Exception, match="no list of messages named 'talk'"):
            reader.func("t1", runtime_of(state))
    assert "of 6" in reader.func("t1", runtime_of({"talk": asked()}))


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


async def test_an_agent_reads_what_its_tool_gave(mode: Mode) -> None:
    agent, asking = agent_that_reads("c1"), {"messages": [("user", "what does the log end with?")]}
    result = agent.invoke(asking) if mode == "sync" else await agent.ainvoke(asking)
    page = next(message for message in result["messages"] if message.name == "read_tool_output")
    assert page.content.endswith("line 1999 of the log")
    assert page.status == "success"


def test_another_thread_reaches_nothing_and_what_is_deleted_is_gone() -> None:
    with DeltaSaver.open(":memory:") as saver:
        first: Any = {"configurable": {"thread_id": "first"}}
        made = agent_that_reads("c1", saver).invoke({"messages": [("user", "go")]}, first)[
            "messages"
        ]
        [ref] = [message.id for message in made if message.name == "run"]
        builder = StateGraph(MessagesState)
        builder.add_node("tools", ToolNode([output_reader()]))
        builder.add_edge(START, "tools")
        graph: Any = builder.compile(checkpointer=saver)
        wanted = {"messages": [AIMessage("", tool_calls=[reading(ref, 1, "r9")])]}
        assert graph.invoke(wanted, first)["messages"][-1].status == "success"
        assert (
            graph.invoke(wanted, {"configurable": {"thread_id": "second"}})["messages"][-1].status
            == "error"
        )
        saver.delete_thread("first")
        assert graph.invoke(wanted, first)["messages"][-1].status == "error"


def test_a_model_is_shown_the_reference_and_the_page_alone() -> None:
    schema: Any = output_reader().tool_call_schema
    assert set(schema.model_json_schema()["properties"]) == {"ref", "page", "find"}
    assert schema.model_json_schema()["required"] == ["ref"]
