"""What is sent is valid for its provider, whoever wrote the conversation and however it was cut.

The payloads are those that LangChain's integrations really send.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    FunctionMessage,
    HumanMessage,
    ToolMessage,
)
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from payloads import CLAUDE, RESPONSES, anthropic, google, openai_chat, openai_responses
from rounds import DATA, PIECES, ROUNDS, SAID, round_of

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


def ai(writer: str, *blocks: Any) -> AIMessage:
    return AIMessage(list(blocks), response_metadata={"model_provider": writer})


# -- conversations over all kinds of blocks --------------------------------------------------------


@st.composite
def conversations(draw: st.DrawFn) -> list[AnyMessage]:
    """A conversation that changed its provider, whole, cut anywhere, or broken off in a stream."""
    said: list[Any] = []
    for number in range(draw(st.integers(1, 4))):
        said.append(HumanMessage([draw(st.sampled_from(SAID))]))
        said += round_of(*draw(st.sampled_from(ROUNDS)), number)
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


def test_what_its_provider_wrote_is_sent_as_it_is() -> None:
    for who, name in ROUNDS:
        # a result with a picture is sent to the Responses API alone
        takes = {"anthropic": ["anthropic"], "openai": ["openai-responses", "openai"]}
        for provider in takes.get(who, [])[: 1 if name.startswith("function") else 2]:
            for said in ([], [HumanMessage("Thanks")]):
                messages = [HumanMessage("Hello"), *round_of(who, name), *said]
                model = CLAUDE if who == "anthropic" else RESPONSES
                given = model._get_request_payload(list(messages))
                payload = model._get_request_payload(sent(messages, provider))
                assert payload == given, (provider, name)


# -- one rule at a time ----------------------------------------------------------------------------


def test_what_nobody_knows_is_passed_on() -> None:
    block = {"type": "block_of_next_year", "id": "x"}
    for provider in PROVIDERS:
        messages = [HumanMessage([block]), AIMessage([block, TEXT]), HumanMessage([TEXT])]
        assert sent(messages, provider) == messages
    hers = [HumanMessage("Hello"), ai("anthropic", block, TEXT), HumanMessage("And?")]
    assert sent(hers, "anthropic") == hers
    assert sent(hers, "openai")[1].content == [TEXT]


MEDIA = yaml.safe_load(Path(__file__).with_name("media.yaml").read_text("utf-8"))
LETTERS = dict(zip(PROVIDERS, "ACRGN", strict=True))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name", MEDIA)
def test_a_medium_is_sent_to_those_who_take_it(name: str, provider: str | None) -> None:
    """To others goes a text that says what it was; what is stored stays as it is."""
    block, takers = MEDIA[name]
    messages = [HumanMessage([block, TEXT])]
    before = json.dumps(block)
    request = sent(messages, provider)
    assert [problem for check in PROVIDERS[provider] for problem in check(request)] == []
    first = request[0].content[0]
    assert (first["type"] != "text") == (LETTERS[provider] in takers), first
    assert first.get("text", "-").strip()
    assert sent(request, provider) == request
    assert json.dumps(block) == before
    result = ToolMessage([block, TEXT], tool_call_id="c1")
    call = AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "c1"}])
    request = sent([HumanMessage("Look"), call, result], provider)
    assert [problem for check in PROVIDERS[provider] for problem in check(request)] == []


def test_four_marks_are_sent_and_an_id_of_a_providers_own_tool_once() -> None:
    marked = {**TEXT, "cache_control": {"type": "ephemeral"}}
    messages = [HumanMessage([marked, marked, marked]), AIMessage([marked]), HumanMessage([marked])]
    request = sent(messages, "anthropic")
    assert anthropic(request) == []
    assert ["cache_control" in block for block in request[0].content] == [False, True, True]
    assert request[1:] == messages[1:]
    search = round_of("anthropic", "search")
    twice = [HumanMessage("Search"), *search, HumanMessage("Again"), *search, HumanMessage("So")]
    assert anthropic(sent(twice, "anthropic")) == []
    assert sent(twice, "anthropic")[:3] == twice[:3]


def test_what_no_client_can_send_is_sent_in_another_form() -> None:
    """Half of an emoji of a broken stream, NaN, an outdated form."""
    call = {"name": "look", "args": {"q": float("nan"), "half \ud83d": ["\ud83d"]}, "id": "c1"}
    broken = {"name": "look", "args": '{"q": "so \\ud83d', "id": "c2", "error": None}
    function = {"function_call": {"name": "look", "arguments": "{}"}}
    picture = {"type": "image_url", "image_url": f"data:image/png;base64,{PNG}"}
    messages = [
        HumanMessage(["half \ud83d", picture]),
        AIMessage("\ud83d", tool_calls=[call], invalid_tool_calls=[broken]),
        ToolMessage("half \ud83d", tool_call_id="c1"),
        AIMessage("", additional_kwargs=function),
        FunctionMessage("found", name="look"),
        HumanMessage("And now?"),
    ]
    for provider, checks in PROVIDERS.items():
        request = sent(messages, provider)
        assert [problem for check in checks for problem in check(request)] == []
        assert sent(request, provider) == request
        for model in (CLAUDE, RESPONSES):
            json.dumps(model._get_request_payload(list(request)), allow_nan=False).encode()
            str(request).encode()


def test_without_a_provider_what_only_one_of_both_takes_is_left_out() -> None:
    item = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    messages = [
        HumanMessage("Search"),
        *round_of("anthropic", "search"),
        HumanMessage("And again"),
        ai("openai", item, TEXT),
        HumanMessage("Thanks"),
    ]
    answers = [message.content for message in sent(messages, None) if message.type == "ai"]
    assert answers == [[TEXT], [TEXT]]


def test_a_program_that_got_no_answer_leaves_its_calls_to_the_model() -> None:
    running = round_of("anthropic", "program")[:2]
    assert sent([HumanMessage("Sum it."), *running], "anthropic")[1:] == running
    after = sent([HumanMessage("Sum it."), *running, HumanMessage("Stop.")], "anthropic")
    assert [block["type"] for block in after[1].content] == ["text", "tool_use"]
    assert "caller" not in after[1].content[1]


def test_a_cut_leaves_a_program_whole() -> None:
    messages: list[Any] = []
    for number in range(6):
        messages += [
            HumanMessage(f"Sum {number}. " + "words " * 80),
            *round_of("anthropic", "program", number),
        ]
    messages += [HumanMessage("And now?"), *round_of("anthropic", "program", 9)[:4]]
    request = sent(messages, "anthropic", 900)
    assert len(request) < len(messages)
    assert anthropic(request) == []
    assert request[-4:] == messages[-4:]


@tool
def screenshot() -> list[dict[str, Any]]:
    """Take a screenshot."""
    return [{"type": "image", "base64": PNG, "mime_type": "image/png"}]


@pytest.mark.parametrize("builtin", [False, True], ids=["by the model", "by a tool of OpenAI's"])
def test_an_agent_asks_the_interface_that_its_model_is_sent_to(builtin: bool) -> None:
    bodies: list[Any] = []

    def respond(request: httpx.Request) -> httpx.Response:
        bodies.append(json.loads(request.content))
        return httpx.Response(200, json=DATA[0]["replies"][len(bodies) - 1])

    client = httpx.Client(transport=httpx.MockTransport(respond))
    api = None if builtin else True
    model = ChatOpenAI(model="gpt-4.1", api_key="x", use_responses_api=api, http_client=client)
    tools: list[Any] = [screenshot, *([{"type": "web_search"}] if builtin else [])]
    agent = create_agent(model, tools, middleware=[ContextMiddleware(budget=100_000)])
    agent.invoke({"messages": [("user", "What is on the screen?")]})
    assert bodies[-1]["input"][-1]["output"] == [
        {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}
    ]
