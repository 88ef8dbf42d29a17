"""Conversations with every kind of damage that is met in the field, as hypothesis strategies."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    AnyMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)

IDS = st.sampled_from(
    ["a", "b", "c", "call_0", "", "functions.look:0", "x" * 41, "toolu_" + "y" * 30]
)
NAMES = st.sampled_from(["look", "find_it", "multi_tool_use.parallel", "", "n" * 70])
TEXTS = st.sampled_from(["hi", "So be it.", "", " ", "\n\t", "trailing \n", "Grüße 你好"])
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
BLOCKS: st.SearchStrategy[Any] = st.one_of(
    TEXTS,
    TEXTS.map(lambda text: {"type": "text", "text": text}),
    st.sampled_from(
        [
            IMAGE,
            {"type": "image", "base64": "AAAA", "mime_type": "image/png"},
            {"type": "audio", "base64": "AAAA", "mime_type": "audio/wav"},
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"},
            },
            {"text": "no type"},
            {"rows": [1, 2]},
            {"type": "json", "json": {"a": 1}},
            {"type": "text", "text": None},
        ]
    ),
)
THOUGHTS: st.SearchStrategy[Any] = st.sampled_from(
    [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "thinking", "thinking": "unsigned"},
        {"type": "redacted_thinking", "data": "ZGF0YQ=="},
        {"type": "redacted_thinking"},
        {"type": "reasoning", "summary": []},
        {"type": "reasoning_content", "reasoning_content": {"text": "hm"}},
        {
            "type": "server_tool_use",
            "id": "srvtoolu_1",
            "name": "web_search",
            "input": {"query": "x"},
        },
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
        {"type": "refusal", "refusal": "No."},
    ]
)


def calls(ids: list[tuple[str, str, int]]) -> list[dict[str, Any]]:
    return [
        {"name": name, "args": {"n": number}, "id": id_ or None, "type": "tool_call"}
        for id_, name, number in ids
    ]


@st.composite
def answers(draw: st.DrawFn) -> AIMessage:
    asked = calls(draw(st.lists(st.tuples(IDS, NAMES, st.integers(0, 1)), max_size=3)))
    bad = [
        {"name": name, "args": "{", "id": id_, "error": None}
        for id_, name in draw(st.lists(st.tuples(IDS, NAMES), max_size=1))
    ]
    content: Any = draw(st.one_of(TEXTS, st.lists(st.one_of(BLOCKS, THOUGHTS), max_size=3)))
    if isinstance(content, list):
        repeated = asked[: draw(st.integers(0, 3))] + calls(
            draw(st.lists(st.tuples(IDS, NAMES, st.just(2)), max_size=1))
        )
        blocks = [
            {
                "type": "tool_use",
                "id": call["id"] or "",
                "name": call["name"],
                "input": call["args"],
            }
            for call in repeated
        ]
        content = draw(st.permutations([*content, *blocks]))
    kwargs = draw(st.sampled_from([{}, {}, {"refusal": "No."}]))
    said = draw(st.sampled_from([AIMessage, AIMessage, AIMessageChunk]))
    return said(content, tool_calls=asked, invalid_tool_calls=bad, additional_kwargs=kwargs)


@st.composite
def results(draw: st.DrawFn) -> ToolMessage:
    content = draw(st.one_of(TEXTS, st.lists(BLOCKS, max_size=3)))
    return ToolMessage(
        content,
        tool_call_id=draw(IDS),
        name=draw(st.sampled_from([None, "look"])),
        status=draw(st.sampled_from(["success", "error"])),
    )


@st.composite
def rounds(draw: st.DrawFn) -> list[BaseMessage]:
    """A round as it should be: calls and their results, of ids that may be used again."""
    ids = draw(st.lists(IDS, min_size=1, max_size=3, unique=True))
    asked = AIMessage(draw(TEXTS), tool_calls=calls([(id_, "look", 1) for id_ in ids]))
    return [asked, *(ToolMessage("found", tool_call_id=id_) for id_ in draw(st.permutations(ids)))]


SAID: st.SearchStrategy[BaseMessage] = st.one_of(
    TEXTS.map(HumanMessage),
    st.lists(BLOCKS, max_size=3).map(lambda blocks: HumanMessage(blocks)),
    st.lists(BLOCKS, max_size=2).map(
        lambda blocks: SystemMessage([block for block in blocks if block is not IMAGE])
    ),
    TEXTS.map(SystemMessage),
    TEXTS.map(lambda text: HumanMessage(text, name="John <Doe>")),
    answers(),
    results(),
    st.sampled_from(["user", "assistant", "system", "critic"]).map(
        lambda role: ChatMessage("hi", role=role)
    ),
    st.just(RemoveMessage(id="gone")),
    IDS.map(
        lambda id_: HumanMessage(
            [
                {"type": "text", "text": "see"},
                {"type": "tool_result", "tool_use_id": id_, "content": "found"},
            ]
        )
    ),
    IDS.map(
        lambda id_: ToolMessage(
            [{"type": "tool_result", "tool_use_id": id_, "content": [IMAGE]}], tool_call_id=id_
        )
    ),
)
PIECES = st.one_of(SAID.map(lambda message: [message]), rounds())


@st.composite
def damaged(draw: st.DrawFn) -> list[AnyMessage]:
    """A conversation in which messages may be missing, doubled, empty, misplaced or foreign."""
    pieces = draw(st.lists(PIECES, max_size=8))
    said = [message for piece in pieces for message in piece]
    if len(said) > 1 and draw(st.booleans()):
        at = draw(st.integers(0, len(said) - 1))
        said.insert(draw(st.integers(0, len(said) - 1)), said.pop(at))
    named = draw(st.booleans())
    return [
        message.model_copy(update={"id": f"m{at}" if named else None})
        for at, message in enumerate(said)
    ]


@st.composite
def sound(draw: st.DrawFn) -> list[AnyMessage]:
    """A conversation in which nothing is wrong, of 0 to 6 exchanges."""
    said: list[AnyMessage] = [SystemMessage("be kind")] if draw(st.booleans()) else []
    for number in range(draw(st.integers(0, 6))):
        said.append(
            HumanMessage(draw(st.sampled_from(["hi", [{"type": "text", "text": "see"}, IMAGE]])))
        )
        for step in range(draw(st.integers(0, 2))):
            ids = [f"call_{number}_{step}_{part}" for part in range(draw(st.integers(1, 3)))]
            said.append(
                AIMessage(
                    draw(st.sampled_from(["", "Let me see."])),
                    tool_calls=calls([(id_, "look", 1) for id_ in ids]),
                )
            )
            said += [
                ToolMessage(draw(st.sampled_from(["", "found"])), tool_call_id=id_, name="look")
                for id_ in draw(st.permutations(ids))
            ]
        said.append(AIMessage("There."))
    return said
