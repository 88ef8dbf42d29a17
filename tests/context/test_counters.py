"""Counters by tiktoken, offline, and what stands in for it; those that an application brings."""

from __future__ import annotations

import hashlib
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langmem_ext.context.budget import counters
from langmem_ext.context.budget import counters as encodings
from langmem_ext.context.budget.counters import (
    CallableCounter,
    TiktokenCounter,
    counter_for,
    counter_of,
    encoding_named,
    encoding_of_model,
)
from langmem_ext.errors import InvalidInput, MissingExtra
from langmem_ext.messages.text import text_of
from langmem_ext.messages.token_costs.tokens import ApproximateCounter, TokenCounter

offline = pytest.mark.skipif(
    find_spec("bpe_openai") is None, reason="the extra tokens-offline is not installed"
)

TEXTS = (
    "I'd like to change my flight from New York to Boston on May 20, please.",
    (
        'def total(xs: list[int]) -> int:\n    """Sum."""\n\treturn sum(x for x in xs if x % 2 =='
        " 0)\n\n\n"
    ),
    '[{"id": "3f2b8c1e-7a4d-4e0b-9c55-1d2e3f4a5b6c", "price": 1234.56, "ok": true}]',
    (
        "我想修改我上周预订的机票。 お世話になっております。 안녕하세요, Здравствуйте! مرحبا"
        " नमस्ते 🎉👍🏽"
    ),
    "<|endoftext|> is only text here",
)


@pytest.fixture
def forgotten(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """As in a process that has counted nothing, on a machine without tiktoken's files."""
    monkeypatch.setattr(encodings, "find_spec", lambda _: None)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(tiktoken.registry, "ENCODINGS", {})
    encoding_named.cache_clear()
    counters._warn_approximate.cache_clear()
    yield
    encoding_named.cache_clear()
    counters._warn_approximate.cache_clear()


# -- encodings -------------------------------------------------------------------------------------


@offline
@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
def test_an_encoding_is_tiktokens_own(name: str) -> None:
    ours = encoding_named(name)
    public = import_module("tiktoken_ext.openai_public")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(public, "load_tiktoken_bpe", lambda *_, **__: ours._mergeable_ranks)
        theirs = tiktoken.Encoding(**getattr(public, name)())
    assert ours.special_tokens_set == theirs.special_tokens_set
    assert ours.n_vocab == theirs.n_vocab
    for text in TEXTS:
        assert ours.encode_ordinary(text) == theirs.encode_ordinary(text)


@pytest.mark.process
@offline
def test_ranks_are_read_without_the_wheels_native_code_and_without_a_network() -> None:
    code = (
        "import socket, sys\n"
        "def refuse(*_, **__): raise OSError('no network')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "from langmem_ext.context.budget.counters import counter_for\n"
        "print(counter_for('gpt-5-mini').count_text('hello there'), 'bpe_openai' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2", "False"]


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("gpt-5-mini", "o200k_base"),
        ("openai:gpt-4.1", "o200k_base"),
        ("azure_openai:gpt-4o-2024-08-06", "o200k_base"),
        ("ft:gpt-4o:acme::abc", "o200k_base"),
        ("openai/o3", "o200k_base"),
        ("gpt-4-turbo", "cl100k_base"),
        ("anthropic:claude-sonnet-4-5", "cl100k_base"),
        ("meta-llama/llama-3-8b", "cl100k_base"),
        ("", "cl100k_base"),
    ],
)
def test_a_model_is_counted_by_its_encoding(model: str, encoding: str) -> None:
    assert encoding_of_model(model) == encoding


@pytest.mark.usefixtures("forgotten")
def test_a_file_of_tiktokens_cache_is_used_when_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"
    place.write_bytes(b"IQ== 0\n")
    with pytest.raises(MissingExtra):
        encoding_named("cl100k_base")
    assert place.read_bytes() == b"IQ== 0\n"
    small = encodings._Definition(hashlib.sha256(b"IQ== 0\n").hexdigest(), r".", {})
    monkeypatch.setitem(encodings._DEFINITIONS, "cl100k_base", small)
    assert encoding_named("cl100k_base").encode_ordinary("!!") == [0, 0]


@pytest.mark.usefixtures("forgotten")
def test_an_encoding_that_is_not_here_is_told_with_the_command_that_brings_it() -> None:
    with pytest.raises(MissingExtra, match=r"langmem-ext\[tokens-offline\]"):
        TiktokenCounter()
    with pytest.raises(MissingExtra):
        counter_for("gpt-5", "tiktoken")
    with pytest.raises(InvalidInput, match="r50k"):
        TiktokenCounter("r50k_base")


@pytest.mark.usefixtures("forgotten")
def test_without_an_encoding_the_approximation_counts_with_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, logger="langmem_ext"):
        names = {
            counter_for(model).name
            for model in (None, "mistral-large", FakeListChatModel(responses=[]))
        }
    assert names == {"approximate"}
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "tokens-offline" in caplog.text


@pytest.mark.usefixtures("forgotten")
def test_the_approximation_that_was_asked_for_is_no_cause_to_warn(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert counter_for("gpt-5", "approximate").name == "approximate"
    assert not caplog.records


@pytest.mark.usefixtures("forgotten")
def test_an_encoding_of_the_applications_own_needs_no_file() -> None:
    own = tiktoken.Encoding(
        "own", pat_str=r".", mergeable_ranks={b"a": 0, b"b": 1}, special_tokens={}
    )
    assert TiktokenCounter(own).count_text("abba") == 4
    assert TiktokenCounter(own).name == "tiktoken/own"


# -- the rule --------------------------------------------------------------------------------------

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
    def length(text: str) -> int:
        return len(encoding_named("cl100k_base").encode_ordinary(text))

    calls = message.tool_calls if isinstance(message, AIMessage) else []
    texts = (
        [message.content]
        if isinstance(message.content, str)
        else [text_of([block]) for block in message.content]
    )
    counted = TiktokenCounter().count(message)
    assert counted >= 4 + sum(map(length, texts)) + (length(json.dumps(calls)) if calls else 0)
    assert counted >= 4 + sum(map(length, texts)) + sum(
        length(json.dumps(call["args"], ensure_ascii=False)) for call in calls
    )


# -- what an application brings --------------------------------------------------------------------


def letters(messages: Any) -> int:
    return sum(len(text_of(message.content)) for message in messages)


def test_a_function_of_messages_counts() -> None:
    counter = counter_of(letters)
    assert isinstance(counter, CallableCounter)
    assert isinstance(counter, TokenCounter)
    assert counter.name == "letters"
    assert counter.count(HumanMessage("hello")) == counter.count_text("hello") == 5
    assert counter.count_tools([{"type": "web_search"}]) > 10


@pytest.mark.parametrize("answer", [-1, True, 1.5, None, "4"])
def test_a_function_that_gives_no_number_is_told_so(answer: object) -> None:
    with pytest.raises(InvalidInput, match="whole number"):
        counter_of(lambda _: answer).count(HumanMessage("hello"))  # type: ignore[arg-type,return-value]


def test_a_counter_stays_itself() -> None:
    counter = ApproximateCounter()
    assert counter_of(counter) is counter


def test_a_kind_or_a_model_names_a_counter() -> None:
    assert counter_of("approximate").name == "approximate"
    assert counter_of(FakeListChatModel(responses=[])).name == counter_of(None).name


@offline
def test_models_by_name_and_as_objects_are_counted_alike() -> None:
    class Bound:
        bound = type("ChatOpenAI", (), {"model_name": "gpt-4o"})()

    assert counters.name_of_model(Bound()) == "gpt-4o"
    assert counter_of("gpt-4o").name == "tiktoken/o200k_base"
    assert counter_of("tiktoken").name == "tiktoken/cl100k_base"


@pytest.mark.parametrize("source", [5, object(), ["approximate"]])
def test_what_counts_nothing_is_refused(source: Any) -> None:
    with pytest.raises(InvalidInput, match="cannot count tokens"):
        counter_of(source)
    with pytest.raises(InvalidInput, match="unknown token counter 'exact'"):
        counter_for(None, "exact")  # type: ignore[arg-type]
