"""A server of OpenAI's Chat Completions on this machine: what it answers, and how it fails, is
scripted request by request.

It refuses what OpenAI refuses: messages that break the rules, and requests longer than its window.
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal, Self

from langchain_core.messages import BaseMessage, convert_to_messages
from provider_rules import openai_problems

from langmem_ext import TiktokenCounter

Failure = Literal[
    "hang", "disconnect", "malformed", "no choices", "broken stream", "error in stream"
]
OVERFLOW = "context_length_exceeded"


@dataclass(frozen=True)
class Reply:
    """What one request is answered with.

    Attributes:
        text: What the model says.
        calls: Tools that it calls, each with its arguments.
        status: 200, or an error's.
        code: The code of an error.
        fails: How the answer does not arrive.
    """

    text: str = ""
    calls: Sequence[tuple[str, Mapping[str, Any]]] = ()
    status: int = 200
    code: str = ""
    fails: Failure | None = None


@dataclass
class Asked:
    """A request that was sent.

    Attributes:
        model: Which model was asked.
        messages: What it was sent.
        tokens: What that costs, with its tools.
        streamed: Whether the answer was to be streamed.
        refused: Why the request was refused; empty where it was not.
    """

    model: str
    messages: list[BaseMessage]
    tokens: int
    streamed: bool
    refused: str = ""


@dataclass
class OpenAIServer:
    """The server; it answers from when it is entered until it is left.

    Attributes:
        window: How many tokens a request may have.
        windows: The same, of a model for which it is another.
        answers: What a model answers when nothing is scripted, by its name.
        script: What the next requests to a model are answered with, by its name.
        asked: All requests that were sent, oldest first.
    """

    window: int = 1_000_000
    windows: dict[str, int] = field(default_factory=dict)
    answers: dict[str, Callable[[Sequence[BaseMessage]], Reply]] = field(default_factory=dict)
    script: dict[str, deque[Reply]] = field(default_factory=lambda: defaultdict(deque))
    asked: list[Asked] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._counter = TiktokenCounter()
        self.over = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._http.daemon_threads = False
        self._http.owner = self  # type: ignore[attr-defined]
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.02}
        )
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.over.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def begin(self, answers: Mapping[str, Callable[[Sequence[BaseMessage]], Reply]]) -> None:
        """Begin anew, with other answers: what was asked and scripted is forgotten, and who still
        waits is let go.
        """
        self.over.set()
        self.over = threading.Event()
        self.window, self.windows, self.answers = 1_000_000, {}, dict(answers)
        self.script, self.asked = defaultdict(deque), []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def to(self, model: str) -> list[Asked]:
        """The requests that a model was sent."""
        return [one for one in self.asked if one.model == model]

    def answer(self, body: Mapping[str, Any]) -> tuple[Reply, Asked]:
        """What a request is answered with."""
        messages = convert_to_messages(body["messages"])
        tokens = sum(map(self._counter.count, messages)) + self._counter.count_tools(
            body.get("tools") or []
        )
        asked = Asked(body["model"], messages, tokens, bool(body.get("stream")))
        self.asked.append(asked)
        if problems := openai_problems(messages):
            asked.refused = problems[0]
            return Reply(problems[0], status=400, code="invalid_value"), asked
        if self.script[asked.model]:
            return self.script[asked.model].popleft(), asked
        window = self.windows.get(asked.model, self.window)
        if tokens > window:
            asked.refused = OVERFLOW
            said = (
                f"This model's maximum context length is {window} tokens. However, your messages"
                f" resulted in {tokens} tokens."
            )
            return Reply(said, status=400, code=OVERFLOW), asked
        return self.answers[asked.model](messages), asked


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the tests read what was asked."""

    def do_POST(self) -> None:
        server: OpenAIServer = self.server.owner  # type: ignore[attr-defined]
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        reply, asked = server.answer(body)
        self.close_connection = True
        if reply.fails == "hang":
            server.over.wait(10)
        elif reply.fails == "disconnect":
            return
        elif reply.status != 200:
            error = {
                "message": reply.text or "scripted",
                "type": "scripted",
                "param": None,
                "code": reply.code or None,
            }
            self._whole(reply.status, json.dumps({"error": error}))
        elif asked.streamed:
            usage = bool((body.get("stream_options") or {}).get("include_usage"))
            self._stream(reply, _usage(reply, asked) if usage else None)
        elif reply.fails in ("malformed", "broken stream"):
            self._whole(200, '{"id": "chatcmpl-1", "choices": [{"message": {"role": "assi')
        elif reply.fails is not None:
            self._whole(
                200, json.dumps({"id": "chatcmpl-1", "object": "chat.completion", "choices": None})
            )
        else:
            message = {"role": "assistant", "content": reply.text or None} | (
                {"tool_calls": _calls(reply, asked)} if reply.calls else {}
            )
            self._whole(
                200,
                json.dumps(
                    _shell(asked, "chat.completion")
                    | {
                        "choices": [_choice(reply, "message", message)],
                        "usage": _usage(reply, asked),
                    }
                ),
            )

    def _whole(self, status: int, body: str) -> None:
        data = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, reply: Reply, usage: dict[str, int] | None) -> None:
        asked = self.server.owner.asked[-1]  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("Connection", "close")
        self.end_headers()
        shell = _shell(asked, "chat.completion.chunk")
        words = (reply.text or "one two three").split(" ") if reply.text or reply.fails else []
        for place, word in enumerate(words):
            if place == 2 and reply.fails == "broken stream":
                return  # no last chunk: the connection ends in the middle
            if place == 2 and reply.fails == "malformed":
                self._event('{"id": "chatcmpl-1", "choices": [{"del')
            if place == 2 and reply.fails in ("error in stream", "no choices"):
                failed = {
                    "message": "The server had an error",
                    "type": "server_error",
                    "code": None,
                }
                self._event(json.dumps({"error": failed}))
            said = {"role": "assistant", "content": (" " if place else "") + word}
            self._chunk(shell, {"index": 0, "delta": said})
        if reply.calls:
            calls = [call | {"index": place} for place, call in enumerate(_calls(reply, asked))]
            said = {"role": "assistant", "tool_calls": calls}
            self._chunk(shell, {"index": 0, "delta": said})
        self._chunk(shell, _choice(reply, "delta", {}))
        if usage is not None:
            self._event(json.dumps(shell | {"choices": [], "usage": usage}))
        self._event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, shell: Mapping[str, Any], choice: Mapping[str, Any]) -> None:
        self._event(json.dumps({**shell, "choices": [choice]}))

    def _event(self, data: str) -> None:
        line = f"data: {data}\n\n".encode()
        self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")


def _shell(asked: Asked, kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": asked.model}


def _choice(reply: Reply, name: str, message: Mapping[str, Any]) -> dict[str, Any]:
    return {"index": 0, name: message, "finish_reason": "tool_calls" if reply.calls else "stop"}


def _calls(reply: Reply, asked: Asked) -> list[dict[str, Any]]:
    return [
        {
            "id": f"call-{len(asked.messages)}-{place}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(args)},
        }
        for place, (name, args) in enumerate(reply.calls)
    ]


def _usage(reply: Reply, asked: Asked) -> dict[str, int]:
    said = max(len(reply.text) // 4, 1)
    return {
        "prompt_tokens": asked.tokens,
        "completion_tokens": said,
        "total_tokens": asked.tokens + said,
    }
