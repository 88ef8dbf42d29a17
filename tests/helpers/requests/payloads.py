"""What providers refuse in a request as LangChain's integrations really send it.

Each function takes a conversation, builds the payload with the provider's own integration, and
returns one sentence for each rule that it breaks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from unittest.mock import patch

from langchain_anthropic import ChatAnthropic
from langchain_core.messages import BaseMessage
from langchain_google_genai._image_utils import ImageBytesLoader
from langchain_google_genai.chat_models import _parse_chat_history
from langchain_openai import ChatOpenAI

CLAUDE = ChatAnthropic(model="claude-sonnet-4-5", api_key="x", max_tokens=1000)
CHAT = ChatOpenAI(model="gpt-5", api_key="x", use_responses_api=False)
RESPONSES = ChatOpenAI(model="gpt-5", api_key="x", use_responses_api=True)

# -- Anthropic -------------------------------------------------------------------------------------

_USER = {"text", "image", "document", "search_result", "tool_result", "container_upload"}
_MODEL = {"text", "thinking", "redacted_thinking", "compaction"} | {
    "tool_use",
    "server_tool_use",
    "mcp_tool_use",
}
_INSIDE = {"text", "image", "document", "search_result", "tool_reference"}


_URL = re.compile(r"https?://[^/]+/\S*")
_OFFICE = re.compile(r"\.(docx?|xlsx?|pptx?|csv)\b")
_CLAUDES = {
    ("image", "base64"): "image/(jpeg|png|gif|webp)",
    ("document", "base64"): "application/pdf",
    ("document", "text"): "text/plain",
}
"""`Base64ImageSourceParam`, `Base64PDFSourceParam` and `PlainTextSourceParam` of `anthropic`."""
_MOST_MARKS = 4
"""https://platform.claude.com/docs/en/build-with-claude/prompt-caching: four breakpoints."""


def anthropic(messages: Sequence[BaseMessage]) -> list[str]:
    """What Anthropic's Messages API refuses."""
    payload = CLAUDE._get_request_payload(list(messages))
    marks = json.dumps(payload).count('"cache_control"')
    return [
        *_anthropic(payload["messages"]),
        *([f"{marks} blocks with cache_control"] if marks > _MOST_MARKS else []),
    ]


def _anthropic_source(block: Mapping[str, Any]) -> Iterator[str]:
    kind, source = block["type"], block.get("source") or {}
    way = source.get("type")
    wanted = _CLAUDES.get((kind, way))
    if way == "url":
        good = _URL.fullmatch(source["url"]) and not _OFFICE.search(source["url"])
    elif way == "file":
        good = not re.match("file-|files/|http", source["file_id"])
    elif way == "content":
        good = kind == "document"
    else:
        good = wanted and re.fullmatch(wanted, source.get("media_type") or "") and source["data"]
    if not good:
        yield f"source of {block}"


def _anthropic(turns: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    joined = _joined(turns)
    if not joined or joined[0][0] != "user":
        yield "the first message must be the user's"
    open_work: set[str] = set()
    calls: list[str] = []
    work = [block["id"] for _, blocks in joined for block in blocks if "_tool_use" in block["type"]]
    if len(work) > len({*work}):
        yield f"ids must be unique: {work}"
    for at, (role, blocks) in enumerate(joined):
        yield from _anthropic_blocks(role, blocks)
        if role == "user":
            yield from _anthropic_results(blocks, calls)
            if open_work and not all(block["type"] == "tool_result" for block in blocks):
                yield f"the user speaks before {open_work} are answered"
            calls = []
        else:
            yield from _anthropic_work(blocks, open_work)
            calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
            if open_work and at < len(joined) - 1 and not calls:
                yield f"{open_work} have no result"
    if calls:
        yield f"no results of {calls}"


def _joined(turns: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """The messages as they are read: those of one role in a row are one."""
    joined: list[tuple[str, list[dict[str, Any]]]] = []
    for turn in turns:
        content = turn["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if joined and joined[-1][0] == turn["role"]:
            joined[-1][1].extend(blocks)
        else:
            joined.append((turn["role"], list(blocks)))
    return joined


def _anthropic_blocks(role: str, blocks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not blocks:
        yield f"{role}: empty content"
    for block in blocks:
        kind = str(block.get("type"))
        found = role != "user" and kind.endswith("_tool_result")
        if kind not in (_USER if role == "user" else _MODEL) and not found:
            yield f"{role}: unknown block {block}"
        if kind in ("image", "document"):
            yield from _anthropic_source(block)
        if kind == "text" and not str(block.get("text") or "").strip():
            yield f"{role}: empty text"
        if kind == "thinking" and not block.get("signature"):
            yield "a thought without signature"
        inside = block.get("content") if kind == "tool_result" else None
        for inner in inside if isinstance(inside, list) else ():
            if inner.get("type") not in _INSIDE:
                yield f"a result holds {inner}"
            elif inner["type"] in ("image", "document"):
                yield from _anthropic_source(inner)


def _anthropic_results(blocks: Sequence[Mapping[str, Any]], calls: list[str]) -> Iterator[str]:
    results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    if sorted(results) != sorted(calls):
        yield f"calls {calls}, results {results}"
    if any(block["type"] != "tool_result" for block in blocks[: len(results)]):
        yield "results must come first"


def _anthropic_work(blocks: Sequence[Mapping[str, Any]], open_work: set[str]) -> Iterator[str]:
    kinds = [str(block["type"]) for block in blocks]
    for block, kind in zip(blocks, kinds, strict=True):
        if kind in ("server_tool_use", "mcp_tool_use"):
            open_work.add(block["id"])
        elif kind.endswith("_tool_result"):
            name = str(block.get("tool_use_id"))
            if name not in open_work:
                yield f"result of {name} has no use"
            open_work.discard(name)
        elif kind == "tool_use" and block.get("caller", {}).get("tool_id", "") not in {
            "",
            *open_work,
        }:
            yield f"no program {block['caller']}"
    if kinds and kinds[-1] in ("thinking", "redacted_thinking"):
        yield "it ends in a thought"
    if "tool_use" in kinds and {*kinds[kinds.index("tool_use") :]} != {"tool_use"}:
        yield "something follows a call"


# -- OpenAI ----------------------------------------------------------------------------------------

_CHAT_PARTS = {
    "user": {"text", "image_url", "input_audio", "file"},
    "assistant": {"text", "refusal"},
    "tool": {"text"},
    "system": {"text"},
}


_PICTURE = re.compile(r"data:image/(png|jpe?g|gif|webp);base64,.+")
"""https://developers.openai.com/api/docs/guides/images-vision: or a URL."""
_PDF = re.compile(r"data:application/pdf;base64,.+")
"""The answer of Chat Completions to any other: "Expected a base64-encoded data URL with an
application/pdf MIME type". The Responses API takes more, and by URL
(https://developers.openai.com/api/docs/guides/file-inputs)."""


def _openai_media(part: Mapping[str, Any]) -> Iterator[str]:
    kind = part.get("type")
    picture = part.get("image_url")
    url = str(picture["url"] if isinstance(picture, dict) else picture or "")
    good: object = True
    if kind == "image_url" or (kind == "input_image" and url):
        good = _PICTURE.fullmatch(url) or (_URL.fullmatch(url) and "tiff" not in url)
    elif kind == "input_image":
        good = not re.match("file_|files/|http", part["file_id"])
    elif kind == "input_audio":  # `ChatCompletionContentPartInputAudioParam`
        good = part["input_audio"]["format"] in ("wav", "mp3")
    elif kind in ("file", "input_file"):
        file = part["file"] if kind == "file" else part
        if "file_id" in file:
            good = not re.match("file_|files/|http", file["file_id"])
        elif kind == "file":
            good = _PDF.fullmatch(file["file_data"])
        else:
            data = file.get("file_data")
            good = data.startswith("data:") if data else _URL.fullmatch(file["file_url"])
    if not good:
        yield f"medium {part}"


def openai_chat(messages: Sequence[BaseMessage]) -> list[str]:
    """What OpenAI's Chat Completions refuse."""
    return list(_openai_chat(CHAT._get_request_payload(list(messages))["messages"]))


def _openai_chat(sent: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    waiting: list[str] = []
    for message in sent:
        role, content = message["role"], message.get("content")
        for part in content if isinstance(content, list) else ():
            if not isinstance(part, dict) or part.get("type") not in _CHAT_PARTS[role]:
                yield f"{role}: unknown part {part}"
            else:
                yield from _openai_media(part)
        calls = [call["id"] for call in message.get("tool_calls") or ()]
        if content in (None, []) and not calls and "audio" not in message:
            yield f"{role}: no content"
        if role == "tool":
            if message["tool_call_id"] not in waiting:
                yield f"result of {message['tool_call_id']} has no call"
            else:
                waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            yield f"no results of {waiting}"
        waiting = calls
    if waiting:
        yield f"no results of {waiting}"


_CALLS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "computer_call": "computer_call_output",
    "apply_patch_call": "apply_patch_call_output",
}
_ALONE = {
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "mcp_call",
    "mcp_list_tools",
    "mcp_approval_request",
    "tool_search_call",
    "tool_search_output",
    "compaction",
}
_INPUT = {"input_text", "input_image", "input_file"}
_OUTPUT = {"output_text", "refusal"}


def openai_responses(messages: Sequence[BaseMessage]) -> list[str]:
    """What OpenAI's Responses API refuses."""
    return list(_openai_responses(RESPONSES._get_request_payload(list(messages))["input"]))


def _openai_responses(items: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    calls: dict[str, str] = {}
    thought = False
    for item in items:
        kind, role = str(item.get("type")), item.get("role")
        if thought and not (kind in _CALLS or kind in _ALONE or role == "assistant"):
            yield "a thought without the item that follows it"
        thought = kind == "reasoning"
        if role is not None:
            yield from _parts(item["content"], _OUTPUT if role == "assistant" else _INPUT)
        elif kind in _CALLS:
            calls[item["call_id"]] = _CALLS[kind]
        elif kind in _CALLS.values():
            if calls.pop(item["call_id"], None) != kind:
                yield f"output without call: {item}"
            yield from _parts(item.get("output") or "nothing", _INPUT)
        elif kind not in _ALONE | {"reasoning", "mcp_approval_response"}:
            yield f"unknown item {item}"
    yield from _approvals(items)
    if calls:
        yield f"no outputs of {calls}"
    if thought:
        yield "it ends in a thought"


def _approvals(items: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    asked: set[str] = set()
    for item in items:
        if item.get("type") == "mcp_approval_request":
            asked.add(item["id"])
        if item.get("type") == "reasoning" and not {"summary", "id"} <= {*item}:
            yield f"another's thought: {item}"
        if item.get("type") == "mcp_approval_response" and item["approval_request_id"] not in asked:
            yield f"approval of nothing: {item}"


def _parts(content: object, allowed: set[str]) -> Iterator[str]:
    if not content:
        yield "empty content"
    for part in content if isinstance(content, list) else ():
        if part.get("type") not in allowed:
            yield f"unknown part {part}"
        else:
            yield from _openai_media(part)


# -- Google ----------------------------------------------------------------------------------------


_GEMINIS = re.compile(
    r"image/(png|jpeg|webp|heic|heif)|(audio|video|text)/.+|application/(pdf|json)"
)
"""https://ai.google.dev/gemini-api/docs/image-understanding#supported-formats, and its pages of
audio, video and documents."""


def _load(_: object, url: str) -> bytes:
    if not _URL.fullmatch(url):
        raise ValueError(url)
    return b"\x89PNG\r\n\x1a\n" + bytes(32)


def google(messages: Sequence[BaseMessage]) -> list[str]:
    """What Gemini's API refuses; what it is to load by URL is a PNG."""
    with patch.object(ImageBytesLoader, "_bytes_from_url", _load):
        return list(_google(_parse_chat_history(list(messages), model="gemini-2.5-pro")[1]))


def _google(contents: Sequence[Any]) -> Iterator[str]:
    roles = [content.role for content in contents]
    if not roles or roles[0] != "user":
        yield "the first message must be the user's"
    calls = 0
    for content in contents:
        parts = content.parts or []
        answers = sum(part.function_response is not None for part in parts)
        if not parts:
            yield f"{content.role}: no parts"
        if answers != calls:
            yield f"{calls} calls, {answers} results"
        calls = sum(part.function_call is not None for part in parts)
        for part in parts:
            if part.text is not None and part.text.startswith("{'"):
                yield f"a block as text: {part.text[:80]}"
            data, file = part.inline_data, part.file_data
            if data is not None and not _GEMINIS.fullmatch(data.mime_type or ""):
                yield f"medium {data.mime_type}"
            if file is not None and not re.match("gs://|https://|files/|f1$", file.file_uri):
                yield f"file {file.file_uri}"
    if calls:
        yield f"{calls} calls without results"
