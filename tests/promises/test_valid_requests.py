"""What is sent is valid for its provider, whoever wrote the conversation and however it was cut.

The payloads are those that LangChain's integrations really send.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from payloads import CLAUDE, RESPONSES, anthropic, google, openai_chat, openai_responses

from langmem_ext import ApproximateCounter, ContextMiddleware, ContextOverflow, govern

pytestmark = pytest.mark.interop

PNG = "QUJD" * 8
TEXT: dict[str, Any] = {"type": "text", "text": "So."}
PROVIDERS = {
    "anthropic": (anthropic,),
    "openai-chat": (openai_chat,),
    "openai-responses": (openai_responses,),
    "google_genai": (google,),
    None: (anthropic, openai_chat),
}


def sent(messages: list[Any], provider: str | None, budget: int = 100_000) -> list[BaseMessage]:
    governed = govern(messages, budget=budget, counter=ApproximateCounter(), provider=provider)
    return list(governed.messages)


def ai(writer: str, *blocks: Any, calls: tuple[str, ...] = (), v1: bool = False) -> AIMessage:
    metadata: dict[str, Any] = {"model_provider": writer} | ({"output_version": "v1"} if v1 else {})
    listed = [{"name": "look", "args": {"q": "x"}, "id": name} for name in calls]
    return AIMessage(list(blocks), tool_calls=listed, response_metadata=metadata)


def result(name: str, content: Any = "found") -> ToolMessage:
    return ToolMessage(content, tool_call_id=name, name="look")


# -- conversations over all kinds of blocks --------------------------------------------------------


def work(number: int, kind: str = "server_tool_use", name: str = "web_search") -> dict[str, Any]:
    return {"type": kind, "id": f"srvtoolu_{number}", "name": name, "input": {"query": "q"}}


def found(number: int, kind: str = "web_search_tool_result") -> dict[str, Any]:
    return {"type": kind, "tool_use_id": f"srvtoolu_{number}", "content": []}


def program(n: int, *, v1: bool) -> list[BaseMessage]:
    """Code at Anthropic that calls a tool of ours, in two steps."""
    code: dict[str, Any] = work(n, name="code_execution")
    ran: dict[str, Any] = found(n, "code_execution_tool_result")
    caller = {"type": "code_execution_20250825", "tool_id": f"srvtoolu_{n}"}

    def use(name: str) -> dict[str, Any]:
        if v1:
            call = {"type": "tool_call", "id": name, "name": "look", "args": {"q": "x"}}
            return {**call, "extras": {"caller": caller}}
        return {
            "type": "tool_use",
            "id": name,
            "name": "look",
            "input": {"q": "x"},
            "caller": caller,
        }

    if v1:
        code = {
            "type": "server_tool_call",
            "id": code["id"],
            "name": "code_interpreter",
            "args": {},
        }
        ran = {
            "type": "server_tool_result",
            "tool_call_id": code["id"],
            "status": "success",
            "output": [],
            "extras": {"block_type": "code_execution_tool_result"},
        }
    first, second = f"toolu_{n}_1", f"toolu_{n}_2"
    return [
        ai("anthropic", TEXT, code, use(first), calls=(first,), v1=v1),
        result(first),
        ai("anthropic", use(second), calls=(second,), v1=v1),
        result(second),
        ai("anthropic", ran, TEXT, v1=v1),
    ]


def approval(n: int) -> list[BaseMessage]:
    request = {
        "type": "mcp_approval_request",
        "id": f"mcpr_{n}",
        "arguments": "{}",
        "name": "pay",
        "server_label": "s",
    }
    answer = {"type": "mcp_approval_response", "approve": True, "approval_request_id": f"mcpr_{n}"}
    return [ai("openai", request), HumanMessage([answer]), ai("openai", {**TEXT, "id": f"msg_{n}"})]


def patch(n: int) -> list[BaseMessage]:
    call = {
        "type": "apply_patch_call",
        "id": f"ap_{n}",
        "call_id": f"p{n}",
        "operation": {"type": "delete_file", "path": "a"},
        "status": "completed",
    }
    output = {"type": "apply_patch_call_output", "call_id": f"p{n}", "status": "completed"}
    wrapped = {"type": "non_standard", "value": output}
    return [ai("openai", call), HumanMessage([wrapped if n % 2 else output]), ai("openai", TEXT)]


def custom(n: int) -> list[BaseMessage]:
    call = {"type": "custom_tool_call", "id": f"ctc_{n}", "call_id": f"x{n}", "name": "look"}
    output = {"type": "custom_tool_call_output", "call_id": f"x{n}", "output": "2"}
    wrapped = {"type": "non_standard", "value": output}
    asked = ai("openai", {**call, "input": "1+1"}, calls=(f"x{n}",))
    return [asked, result(f"x{n}", [wrapped if n % 2 else output])]


def screen(n: int) -> list[BaseMessage]:
    call = {"type": "computer_call", "id": f"cu_{n}", "call_id": f"s{n}", "action": {}}
    shot = {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}
    kwargs = {"type": "computer_call_output"}
    return [
        ai("openai", call),
        ToolMessage([shot], tool_call_id=f"s{n}", additional_kwargs=kwargs),
        ai("openai", TEXT),
    ]


def function(n: int, *, v1: bool) -> list[BaseMessage]:
    """A thought, two calls and their results, of OpenAI's Responses API."""
    thought = {"type": "reasoning", "id": f"rs_{n}"}
    names = (f"call_{n}_1", f"call_{n}_2")
    if v1:
        args = {"q": "x"}
        blocks = [{"type": "tool_call", "id": name, "name": "look", "args": args} for name in names]
        thought |= {"reasoning": "hm"}
    else:
        call = {"type": "function_call", "name": "look", "arguments": '{"q": "x"}'}
        blocks = [{**call, "id": f"fc_{name}", "call_id": name} for name in names]
        thought |= {"summary": []}
    image = {"type": "image", "base64": PNG, "mime_type": "image/png"}
    return [
        ai("openai", thought, *blocks, calls=names, v1=v1),
        result(names[1], [image]),
        result(names[0]),
        ai("openai", {**TEXT, "id": f"msg_{n}"}, v1=v1),
    ]


def searched(n: int, *, v1: bool) -> list[BaseMessage]:
    item: dict[str, Any] = {"type": "web_search_call", "id": f"ws_{n}", "status": "completed"}
    if not v1:
        return [ai("openai", item, {**TEXT, "id": f"msg_{n}"})]
    call = {"type": "server_tool_call", "id": f"ws_{n}", "name": "web_search", "args": {}}
    came = {"type": "server_tool_result", "tool_call_id": f"ws_{n}", "status": "success"}
    return [ai("openai", call, came, TEXT, v1=True)]


def thinking(n: int, *, v1: bool) -> list[BaseMessage]:
    name = f"toolu_{n}"
    hidden: dict[str, Any] = {"type": "redacted_thinking", "data": "ZGF0YQ=="}
    if v1:
        blocks = [
            {"type": "reasoning", "reasoning": "hm", "extras": {"signature": "c2ln"}},
            {"type": "non_standard", "value": hidden},
            {"type": "tool_call", "id": name, "name": "look", "args": {"q": "x"}},
        ]
    else:
        blocks = [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            hidden,
            {"type": "tool_use", "id": name, "name": "look", "input": {"q": "x"}},
        ]
    return [ai("anthropic", *blocks, calls=(name,), v1=v1), result(name), ai("anthropic", TEXT)]


def gemini(n: int) -> list[BaseMessage]:
    name = f"gem_{n}"
    thought = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    run = {"type": "executable_code", "executable_code": "1", "language": "PYTHON"}
    came = {"type": "code_execution_result", "code_execution_result": "1", "outcome": 1}
    return [
        ai("google_genai", thought, run, came, TEXT, calls=(name,)),
        result(name, [{"type": "text", "text": "found"}]),
        ai("google_genai", TEXT),
    ]


def spoken(n: int) -> list[BaseMessage]:
    audio = {"id": f"audio_{n}", "transcript": "Yes."}
    refused = {"type": "refusal", "refusal": "No."}
    return [
        AIMessage(
            "", additional_kwargs={"audio": audio}, response_metadata={"model_provider": "openai"}
        ),
        HumanMessage("And?"),
        ai("openai", refused),
    ]


def alone(writer: str, *blocks: Any, v1: bool = False) -> Callable[[int], list[BaseMessage]]:
    return lambda _: [ai(writer, *blocks, v1=v1)]


Round = Callable[[int], list[BaseMessage]]

CLAUDES: list[Round] = [
    *(partial(build, v1=v1) for build in (program, thinking) for v1 in (False, True)),
    lambda n: [ai("anthropic", work(n), found(n), TEXT)],
    lambda n: [ai("anthropic", work(n, "mcp_tool_use"), found(n, "mcp_tool_result"), TEXT)],
    lambda n: [ai("anthropic", TEXT, work(n)), ai("anthropic", found(n), TEXT)],
    alone("anthropic", {"type": "compaction", "content": "Before: much."}, TEXT),
]
RESPONSE_ITEMS: list[Round] = [
    *(partial(build, v1=v1) for build in (function, searched) for v1 in (False, True)),
    approval,
    patch,
    custom,
    screen,
    alone("openai", {"type": "image_generation_call", "id": "ig_1", "result": PNG}, TEXT),
    alone("openai", {"type": "output_text", "text": "So."}),
]
OTHERS: list[Round] = [
    gemini,
    spoken,
    alone("somebody", {"type": "reasoning_content", "reasoning_content": {"text": "hm"}}, TEXT),
    alone("anthropic", {"type": "thinking", "thinking": "hm"}),
    alone("bedrock", {"text": "So."}),
]
SAID: list[Any] = [
    "Hello",
    {"type": "image", "base64": PNG, "mime_type": "image/png"},
    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
    {"type": "file", "base64": PNG, "mime_type": "application/pdf", "filename": "a.pdf"},
    {"type": "text-plain", "text": "zebra", "mime_type": "text/plain"},
    {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "zebra"}},
    {
        "type": "document",
        "source": {"type": "base64", "media_type": "application/pdf", "data": PNG},
    },
    {"type": "search_result", "title": "t", "source": "s", "content": [TEXT]},
    {"type": "audio", "base64": PNG, "mime_type": "audio/wav"},
    {"type": "input_text", "text": "zebra"},
    {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
    {"type": "input_file", "file_data": PNG, "filename": "a.pdf"},
    {"type": "input_audio", "input_audio": {"data": PNG, "format": "wav"}},
    {"type": "json", "json": {"a": 1}},
    {"text": "zebra"},
    {"cachePoint": {"type": "default"}},
]
PIECES: list[dict[str, Any]] = [
    {"type": "input_json_delta", "partial_json": '{"q"'},
    {"type": "tool_call_chunk", "id": "half", "name": "look", "args": '{"q'},
    {"type": "server_tool_call_chunk", "id": "srvtoolu_half", "name": "web_search", "args": '{"q'},
]


@st.composite
def conversations(draw: st.DrawFn) -> list[AnyMessage]:
    """A conversation that changed its provider, whole, cut anywhere, or broken off in a stream."""
    said: list[Any] = []
    for number in range(draw(st.integers(1, 4))):
        said.append(HumanMessage([draw(st.sampled_from(SAID))]))
        said += draw(st.sampled_from([*CLAUDES, *RESPONSE_ITEMS, *OTHERS]))(number)
    said.append(HumanMessage("Thanks"))
    damage = draw(st.sampled_from(["whole", "cut", "ended", "gap", "half"]))
    at = draw(st.integers(0, len(said) - 1))
    if damage == "half":
        at = next(place for place in [*range(at, -1, -1), 1] if isinstance(said[place], AIMessage))
        kept = said[at].content[: draw(st.integers(0, 2))]
        broken = [*kept, draw(st.sampled_from(PIECES))]
        said[at] = said[at].model_copy(update={"content": broken, "tool_calls": []})
        said[at + 1 :] = [HumanMessage("And?")]
    elif damage == "gap":
        del said[at]
    else:
        said = said[at:] if damage == "cut" else said[: at + 1] if damage == "ended" else said
    return said


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("provider", PROVIDERS)
@settings(max_examples=10 * settings().max_examples)
@given(messages=conversations(), budget=st.sampled_from([100_000, 3_500, 300]))
def test_it_is_valid_for_its_provider(
    provider: str | None, messages: list[AnyMessage], budget: int
) -> None:
    try:
        request = sent(messages, provider, budget)
    except ContextOverflow:
        return
    assert [problem for check in PROVIDERS[provider] for problem in check(request)] == []
    assert budget < 100_000 or sent(request, provider) == request


@pytest.mark.parametrize(
    ("provider", "model", "build"),
    [
        *(("anthropic", CLAUDE, build) for build in CLAUDES),
        *(("openai-responses", RESPONSES, build) for build in RESPONSE_ITEMS),
        *(("openai", RESPONSES, build) for build in RESPONSE_ITEMS[2:]),
    ],
)
def test_what_its_provider_wrote_is_sent_as_it_is(provider: str, model: Any, build: Round) -> None:
    for said in ([], [HumanMessage("Thanks")]):
        messages = [HumanMessage("Hello"), *build(1), *said]
        given = model._get_request_payload(list(messages))
        assert model._get_request_payload(sent(messages, provider)) == given


# -- one rule at a time ----------------------------------------------------------------------------


def test_what_nobody_knows_is_passed_on() -> None:
    block = {"type": "block_of_next_year", "id": "x"}
    for provider in PROVIDERS:
        messages = [HumanMessage([block]), AIMessage([block, TEXT]), HumanMessage([TEXT])]
        assert sent(messages, provider) == messages
    hers = [HumanMessage("Hello"), ai("anthropic", block, TEXT), HumanMessage("And?")]
    assert sent(hers, "anthropic") == hers
    assert sent(hers, "openai")[1].content == [TEXT]


def test_without_a_provider_what_only_one_of_both_takes_is_left_out() -> None:
    item = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    messages = [
        HumanMessage("Search"),
        ai("anthropic", work(1), found(1), TEXT),
        HumanMessage("And again"),
        ai("openai", item, TEXT),
        HumanMessage("Thanks"),
    ]
    assert [message.content for message in sent(messages, None) if message.type == "ai"] == [
        [TEXT],
        [TEXT],
    ]


def test_a_program_that_got_no_answer_leaves_its_calls_to_the_model() -> None:
    running = program(1, v1=False)[:2]
    assert sent([HumanMessage("Sum it."), *running], "anthropic")[1:] == running
    after = sent([HumanMessage("Sum it."), *running, HumanMessage("Stop.")], "anthropic")
    assert [block["type"] for block in after[1].content] == ["text", "tool_use"]
    assert "caller" not in after[1].content[1]


def test_a_cut_leaves_a_program_whole() -> None:
    messages: list[Any] = []
    for number in range(6):
        messages += [HumanMessage(f"Sum {number}. " + "words " * 80), *program(number, v1=False)]
    messages += [HumanMessage("And now?"), *program(9, v1=False)[:4]]
    request = sent(messages, "anthropic", 900)
    assert len(request) < len(messages)
    assert anthropic(request) == []
    assert request[-4:] == messages[-4:]


USAGE = {
    "input_tokens": 1,
    "output_tokens": 1,
    "total_tokens": 2,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens_details": {"reasoning_tokens": 0},
}


@tool
def screenshot() -> list[dict[str, Any]]:
    """Take a screenshot."""
    return [{"type": "image", "base64": PNG, "mime_type": "image/png"}]


@pytest.mark.parametrize("builtin", [False, True], ids=["by the model", "by a tool of OpenAI's"])
def test_an_agent_asks_the_interface_that_its_model_is_sent_to(builtin: bool) -> None:
    bodies: list[Any] = []

    def respond(request: httpx.Request) -> httpx.Response:
        bodies.append(json.loads(request.content))
        call = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "screenshot"}
        text = {"type": "output_text", "text": "A cat.", "annotations": []}
        said = {"type": "message", "id": "msg_1", "role": "assistant", "content": [text]}
        output = [call | {"arguments": "{}"}] if len(bodies) == 1 else [said]
        body = {"id": "r", "object": "response", "created_at": 1, "model": "gpt-5", "usage": USAGE}
        done = {"status": "completed", "tools": [], "tool_choice": "auto"}
        return httpx.Response(
            200, json={**body, **done, "parallel_tool_calls": True, "output": output}
        )

    client = httpx.Client(transport=httpx.MockTransport(respond))
    api = None if builtin else True
    model = ChatOpenAI(model="gpt-4.1", api_key="x", use_responses_api=api, http_client=client)
    tools: list[Any] = [screenshot, *([{"type": "web_search"}] if builtin else [])]
    agent = create_agent(model, tools, middleware=[ContextMiddleware(budget=100_000)])
    agent.invoke({"messages": [("user", "What is on the screen?")]})
    assert bodies[-1]["input"][-1]["output"] == [
        {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}
    ]
