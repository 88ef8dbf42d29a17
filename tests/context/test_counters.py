"""Counters by tiktoken, offline, and what stands in for it."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langmem_ext import ApproximateCounter, InvalidInput, TiktokenCounter, TokenCounter, counter_for

offline = pytest.mark.skipif(
    find_spec("bpe_openai") is None, reason="the extra tokens-offline is not installed"
)

SPECIAL = "<|endoftext|> is only text here"
SCRIPTS = (
    "我想修改我上周预订的机票。 お世話になっております。 안녕하세요, Здравствуйте! नमस्ते 🎉👍🏽"
)
COUNTED = [
    ("I'd like to change my flight from New York to Boston on May 20, please.", 19, 18),
    ('[{"id": "3f2b8c1e-7a4d", "price": 1234.56, "ok": true}]\n\n\n', 34, 34),
    (SCRIPTS, 54, 33),
    (SPECIAL, 11, 11),
]
"""Texts, and what tiktoken's own `cl100k_base` and `o200k_base` make of them."""


@offline
def test_an_encoding_is_tiktokens_own() -> None:
    for text, cl100k, o200k in COUNTED:
        assert TiktokenCounter("cl100k_base").count_text(text) == cl100k, text
        assert TiktokenCounter("o200k_base").count_text(text) == o200k, text


@offline
def test_a_model_is_counted_by_its_encoding() -> None:
    for model in (
        *("gpt-5-mini", "openai:gpt-4.1", "azure_openai:gpt-4o-2024-08-06"),
        *("ft:gpt-4o:acme::abc", "openai/o3"),
    ):
        assert counter_for(model).name == "tiktoken/o200k_base", model
    others = ("gpt-4-turbo", "anthropic:claude-sonnet-4-5", "meta-llama/llama-3-8b", "", None)
    for model in (*others, FakeListChatModel(responses=[])):
        assert counter_for(model).name == "tiktoken/cl100k_base", model


OFFLINE = """
import socket, sys
def refuse(*_, **__): raise OSError('no network')
socket.socket.connect = socket.getaddrinfo = refuse
from langmem_ext import counter_for
print(counter_for('gpt-5-mini').count_text('hello there'), 'bpe_openai' in sys.modules)
"""
WITHOUT = """
import logging, sys
sys.modules['bpe_openai'] = None
logging.basicConfig(format='%(levelname)s %(message)s', stream=sys.stdout)
from langmem_ext import MissingExtra, TiktokenCounter, counter_for
print(counter_for('gpt-5', 'approximate').name)
print(*(counter_for(model).name for model in (None, 'mistral-large', 'llama')))
for make in (TiktokenCounter, lambda: counter_for('gpt-5', 'tiktoken')):
    try:
        make()
    except MissingExtra as error:
        print(error)
"""


def printed(program: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


@pytest.mark.process
@offline
def test_ranks_are_read_without_the_wheels_native_code_and_without_a_network() -> None:
    assert printed(OFFLINE) == ["2 False"]


@pytest.mark.process
def test_without_an_encoding_the_approximation_counts_with_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    # A file of tiktoken's cache that is not whole is not used, and stays.
    cached = tmp_path / "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"
    cached.write_bytes(b"IQ== 0\n")
    asked_for, warning, names, *missing = printed(WITHOUT)
    assert asked_for == "approximate", "which is no cause to warn"
    assert warning.startswith("WARNING ")
    assert "tokens-offline" in warning
    assert names == "approximate approximate approximate"
    assert len(missing) == 2
    assert all("langmem-ext[tokens-offline]" in text for text in missing)
    assert cached.read_bytes() == b"IQ== 0\n"


def test_an_encoding_of_the_applications_own_needs_no_file() -> None:
    own = tiktoken.Encoding(
        "own", pat_str=r".", mergeable_ranks={b"a": 0, b"b": 1}, special_tokens={}
    )
    assert TiktokenCounter(own).count_text("abba") == 4
    assert TiktokenCounter(own).name == "tiktoken/own"
    assert isinstance(TiktokenCounter(own), TokenCounter)
    with pytest.raises(InvalidInput, match="r50k"):
        TiktokenCounter("r50k_base")
    with pytest.raises(InvalidInput, match="unknown token counter 'exact'"):
        counter_for(None, "exact")  # type: ignore[arg-type]
    assert counter_for(None, "approximate").name == ApproximateCounter().name


VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)
CALLS = st.builds(
    lambda args, number: {
        "name": "look_up",
        "args": args,
        "id": f"call_{number}",
        "type": "tool_call",
    },
    st.dictionaries(st.text(max_size=10), VALUES, max_size=4),
    st.integers(0, 10**9),
)
CONTENTS = st.text() | st.lists(
    st.text() | st.builds(lambda text: {"type": "text", "text": text}, st.text()), max_size=4
)
MESSAGES = st.one_of(
    st.builds(HumanMessage, CONTENTS),
    st.builds(
        lambda content, calls: AIMessage(content, tool_calls=calls),
        CONTENTS,
        st.lists(CALLS, max_size=3),
    ),
    st.builds(lambda content: ToolMessage(content, tool_call_id="call_1"), CONTENTS),
)


@offline
@given(MESSAGES)
def test_no_message_is_less_than_its_text_its_calls_and_four_tokens(message: BaseMessage) -> None:
    counter: Any = TiktokenCounter()
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    blocks = message.content if isinstance(message.content, list) else [message.content]
    texts = [block if isinstance(block, str) else block["text"] for block in blocks]
    least = 4 + sum(map(counter.count_text, texts))
    assert counter.count(message) >= least + (counter.count_text(json.dumps(calls)) if calls else 0)
    arguments = [json.dumps(call["args"], ensure_ascii=False) for call in calls]
    assert counter.count(message) >= least + sum(map(counter.count_text, arguments))
