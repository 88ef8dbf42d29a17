"""Promise: memories are written, shown, listed and forgotten from the command line.

The model is behind OpenAI's protocol.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import commands
import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_openai import ChatOpenAI
from openai_server import OpenAIServer, Reply
from patience import PATIENCE_S

from langmem_ext import (
    ConversationMemories,
    DeltaSaver,
    DeltaStore,
    MemoryGenerator,
    PromptVersions,
    ThreadChatMessageHistory,
    Threads,
)

pytestmark = pytest.mark.interop

MODEL = "openai:scripted"


def answer(messages: Sequence[BaseMessage]) -> Reply:
    """What the model writes: the topic that the user names."""
    asked = messages[-1].text
    topics = re.findall(r"user: I ask about (\w+)", asked)
    if "List what the user says" in asked:
        return Reply(
            json.dumps(
                {
                    "facts": [
                        {"subject": "interest", "text": f"Asks about {topics[0]}", "messages": [1]}
                    ]
                }
            )
        )
    return Reply(json.dumps({"main_topics": topics, "action": [], "typical_observation": "Asks"}))


@pytest.fixture(scope="module")
def running() -> Iterator[OpenAIServer]:
    with OpenAIServer() as one:
        yield one


@pytest.fixture
def server(running: OpenAIServer, folder: Path, monkeypatch: pytest.MonkeyPatch) -> OpenAIServer:
    running.begin({"scripted": answer})
    monkeypatch.setenv("OPENAI_BASE_URL", running.url)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with DeltaSaver.open("memory.db") as log:
        for name, topic, owner in (("order-17", "lamps", "ann"), ("order-18", "chairs", None)):
            said = [
                HumanMessage(f"I ask about {topic}", id=f"{name}-0"),
                AIMessage("Yes?", id=f"{name}-1"),
            ]
            ThreadChatMessageHistory(name, log, owner=owner).add_messages(said)
    return running


def run(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    return commands.run("memory", *words, code=code)


def lines(*words: str) -> list[Any]:
    return commands.data("memory", *words)


def test_memories_that_are_needed_are_written_and_can_be_read(server: OpenAIServer) -> None:
    done = run("run", "--model", MODEL, "--idle", "0s", "--facts")
    assert sorted(done.stdout.splitlines()) == ["order-17\twritten", "order-18\twritten"]
    assert "2 memories written, 0 failed" in done.stderr
    assert "0 memories written" in run("run", "--model", MODEL, "--idle", "0s").stderr
    assert "0 memories written" in run("run", "--model", MODEL).stderr, "they do not rest yet"

    shown = run("show", "order-17")
    assert shown.stdout.splitlines() == [
        "main_topics: lamps",
        "action: ",
        "typical_observation: Asks",
    ]
    assert "from 2 messages" in shown.stderr
    [whole] = lines("show", "order-17")
    assert (whole["memory"]["main_topics"], whole["messages"]) == (
        ["lamps"],
        ["order-17-0", "order-17-1"],
    )
    assert sorted(memory["thread_id"] for memory in lines("list")) == ["order-17", "order-18"]
    assert [memory["thread_id"] for memory in lines("list", "--owner", "ann")] == ["order-17"]
    [fact] = lines("list", "--facts", "--owner", "ann")
    assert (fact["text"], fact["sources"]) == (
        "Asks about lamps",
        [{"thread_id": "order-17", "message_id": "order-17-0"}],
    )
    [theirs] = run("list", "--facts").stdout.splitlines()
    assert theirs.endswith("\tinterest\tAsks about chairs")


def test_what_is_forgotten_is_gone_and_the_conversation_stays(server: OpenAIServer) -> None:
    run("run", "--model", MODEL, "--idle", "0s", "--facts")
    refused = run("forget", "order-17", code=2)
    assert "--yes" in refused.stderr
    assert "deleted 1 memory" in run("forget", "order-17", "--yes").stderr
    assert "has no memory" in run("show", "order-17", code=1).stderr
    [fact] = lines("list", "--facts", "--owner", "ann")
    assert lines("forget", fact["id"], "--facts", "--owner", "ann", "--yes") == [{"deleted": 1}]
    assert lines("list", "--facts", "--owner", "ann") == []
    with DeltaSaver.open("memory.db") as log:
        assert Threads(log).get("order-17").messages == 2
    assert b"lamps" not in b"".join(
        path.read_bytes() for path in Path().glob("memory.db*")
    ).replace(b"I ask about lamps", b"")
    with DeltaSaver.open("memory.db") as log:
        assert Threads(log).delete("order-18").store_items > 0
    assert lines("list") == [], "memories go with their conversation"


def test_a_model_that_fails_leaves_the_memory_and_says_why(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_MAX_RETRIES", "0")
    run("run", "--model", MODEL, "--thread", "order-17")
    before = lines("show", "order-17")
    for reply, why in (
        (Reply("I cannot do that, Dave."), "json_invalid"),
        (Reply('{"main_topics": "lamps"}'), "main_topics: list_type"),
        (Reply("oops", status=500), r"failed \(\w+Error\)"),
        (Reply(fails="no choices"), "failed"),
    ):
        server.script["scripted"].clear()
        server.script["scripted"].extend([reply] * 5)
        failed = run("run", "--model", MODEL, "--thread", "order-17", code=1)
        assert re.match(rf"order-17\tfailed\tthe model.*({why})", failed.stdout), failed.stdout
        assert "the last generation wrote no memory" in run("show", "order-17").stderr
        assert lines("show", "order-17") == before
    server.script["scripted"].clear()
    server.script["scripted"].append(Reply(fails="hang"))
    with DeltaSaver.open("memory.db") as log:
        model = ChatOpenAI(model="scripted", timeout=0.2, max_retries=0)
        generation = MemoryGenerator(log, model).generate("order-17")
        assert generation.outcome == "failed"
        assert str(generation.reason).startswith("the model timed out")
    assert lines("show", "order-17") == before


def test_a_stored_prompt_is_used_and_a_file_comes_before_it(
    server: OpenAIServer, folder: Path
) -> None:
    with DeltaSaver.open("memory.db") as log:
        PromptVersions(DeltaStore(log)).add("memory_generation", "THE STORED PROMPT")
    run("run", "--model", MODEL, "--thread", "order-17")
    assert "THE STORED PROMPT" in server.asked[-1].messages[-1].text
    (folder / "prompt.txt").write_text("THE PROMPT OF THE FILE")
    run("run", "--model", MODEL, "--thread", "order-17", "--prompt", "prompt.txt")
    assert "THE PROMPT OF THE FILE" in server.asked[-1].messages[-1].text


def test_what_cannot_be_used_is_refused(server: OpenAIServer) -> None:
    for line, said in (
        ("run", "--model"),
        (f"run --model {MODEL} --idle soon", "30m"),
        (f"run --model {MODEL} --every 0s", "--every"),
        ("run --model nobody:nothing", "nobody:nothing"),
        (f"run --model {MODEL} --prompt none.txt", "none.txt"),
    ):
        assert said in run(*line.split(), code=2).stderr
    assert server.asked == []


@pytest.mark.process
def test_it_is_done_again_and_again_until_it_is_stopped(server: OpenAIServer) -> None:
    asked = ["memory", "run", "--model", MODEL, "--idle", "0s", "--every", "1s"]
    program = subprocess.Popen(
        [sys.executable, "-m", "langmem_ext.cli", *asked],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with program:
        assert program.stdout is not None
        assert {program.stdout.readline(), program.stdout.readline()} == {
            "order-17\twritten\n",
            "order-18\twritten\n",
        }
        with DeltaSaver.open("memory.db") as log:
            ThreadChatMessageHistory("order-19", log).add_messages(
                [HumanMessage("I ask about tables")]
            )
            assert program.stdout.readline() == "order-19\twritten\n"
            assert len(ConversationMemories(log).all()) == 3
        program.send_signal(signal.SIGINT)
        assert program.wait(PATIENCE_S) == 130
