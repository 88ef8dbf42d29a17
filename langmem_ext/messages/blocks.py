"""Every kind of content block: what it is, where its words are, and which provider takes it.

This is the one place that knows blocks by name: LangChain's own (`langchain_core.messages.content`)
and each provider's. A block whose type is not here is passed on as it is.

A provider is a letter: `A` Anthropic, `C` OpenAI's Chat Completions, `R` OpenAI's Responses API,
`G` Google; a small letter takes the block only in messages that it wrote itself. What they take is
what their documentation lists and LangChain's integrations translate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

Block: TypeAlias = Mapping[str, Any]


class Ways(NamedTuple):
    """Who takes a medium by where it is: in base64, in a `data:` URL, …, in Google's storage.

    And under which keys of the block that is said, at all.
    """

    data: str = ""
    uri: str = ""
    url: str = ""
    id: str = ""
    text: str = ""
    gs: str = ""
    keys: tuple[str, ...] = ("base64", "url", "file_id")


class Kind(NamedTuple):
    """What is known of a type of block.

    Attributes:
        what: `words`; a medium (`MEDIA`); a `thought`; a `call` of a tool, or one that stands in
            the content alone (`screen`), and its `result`; what the provider's own tools were
            asked (`work`) and `found`, in one block (`item`) or two; a question to the user
            (`ask`) and its `answer`; a `piece` of a stream, or of what could not be
            read; a `mark` without content.
        human, ai, tool, system: Who takes it in a message of that type.
        id: The key of the id that pairs it with another block.
        words: The keys under which its words are.
        proof: The key of what proves a thought to Anthropic.
        secret: The key of what only the provider reads.
        ways: Of a medium: who takes it in which way; None: whoever takes the block.
    """

    what: str
    human: str = ""
    ai: str = ""
    tool: str = ""
    system: str = ""
    id: str = ""
    words: tuple[str, ...] = ()
    proof: str = ""
    secret: str = ""
    ways: Ways | None = None

    def is_only_of(self, letter: str) -> bool:
        """Whether nobody else knows such a block."""
        return {*"".join((self.human, self.ai, self.tool, self.system))} == {letter}


MEDIA: Final = frozenset({"image", "audio", "video", "file", "document"})
ANSWERS: Final[Mapping[str, str]] = {"found": "work", "answer": "ask"}
"""What a block of a content may answer another one of, and that."""

_TEXT: Final = ("text",)
_FOUND: Final = Kind("found", ai="A", id="tool_use_id", words=("content",))
_ITEM: Final = Kind("item", ai="R")
_PIECE: Final = Kind("piece")
_SOURCE: Final = ("source.data", "source.url", "source.file_id")
_CLAUDE: Final = Ways("A", "", "A", "A", "A", keys=_SOURCE)
_GEMINI: Final = Ways("G", "", "G", "G", gs="G")
_FILE_KEYS: Final = ("file_data", "file_url", "file_id")
_RESPONSES: Final = Ways("", "R", "R", "R", keys=_FILE_KEYS)
_RESPONSES_IMAGE: Final = _RESPONSES._replace(keys=("image_url", "file_id"))
_NESTED: Final = Ways("", "CR", "R", "CR", keys=tuple(f"file.{key}" for key in _FILE_KEYS))
_OTHERS: Final = Ways("ACR", "", "ACR", "A", keys=_SOURCE)
_GOOGLE: Final = _GEMINI._replace(keys=("data", "file_uri"))
_PICTURE: Final = Ways("", "ACRG", "ACRG", gs="G", keys=("image_url.url",))
_SOUND: Final = Ways("C", keys=("input_audio.data",))
_FILE: Final = Ways("ACRG", "", "ARG", "ACRG", "A", "G")
_AUDIO: Final = Ways("CG", "", "G", "G", gs="G")
_GOOGLES: Final = "image/(?:png|jpeg|webp|heic|heif)"

TYPES: Final[Mapping[str, Mapping[str, str]]] = {
    "image": {**dict.fromkeys("ACR", "image/(?:png|jpeg|gif|webp)"), "G": _GOOGLES},
    "audio": {"C": "audio/(?:wav|mp3)", "G": "audio/.+"},
    "video": {"G": "video/.+"},
    "file": {
        "A": "(?:application/pdf)?",  # a file is a PDF to its integration if nothing is said
        "C": "application/pdf",
        "R": "(?:application|text)/.+",
        "G": f"(?:audio|video|text)/.+|application/(?:pdf|json)|{_GOOGLES}",
    },
    "document": {"A": "application/pdf"},
    "text": {"A": "(?:text/plain)?"},
}
"""The media types that a provider takes of a medium, and of what is given as a text."""

ALL_KEYS: Final = (
    *(*Ways().keys, *_CLAUDE.keys, *_NESTED.keys, *_PICTURE.keys, *_SOUND.keys),
    *(*_RESPONSES.keys, *_GOOGLE.keys, "source.bytes", "image_url", "video_url.url", "id"),
)
"""Where the data, the place or the id of a medium may be."""

KINDS: Final[Mapping[str, Kind]] = {
    # LangChain's and those that several providers share
    "text": Kind("words", "ACRG", "ACRG", "ACRG", "ACRG", words=_TEXT),
    "refusal": Kind("words", ai="CR", words=("refusal",)),
    "text-plain": Kind("file", "A", tool="A", words=_TEXT, ways=Ways(text="A")),
    "image": Kind("image", "ACRG", "rG", "ARG", ways=Ways("ACRG", "ACR", "ACRG", "AG", gs="G")),
    "image source": Kind("image", "ACR", tool="AR", ways=_OTHERS),
    "image_url": Kind("image", "ACRG", "G", "ARG", ways=_PICTURE),
    "file": Kind("file", "ACRG", "G", "ARG", words=_TEXT, ways=_FILE),
    "file file": Kind("file", "CR", tool="R", ways=_NESTED),
    "audio": Kind("audio", "CG", "G", "G", words=("transcript",), ways=_AUDIO),
    "video": Kind("video", "G", "G", "G", ways=_GEMINI),
    "reasoning": Kind(
        "thought",
        ai="aCrG",
        words=("reasoning", "summary", "content", "text"),
        proof="signature",
        secret="encrypted_content",
    ),
    "tool_call": Kind("call", ai="aCRG", id="id"),
    "invalid_tool_call": _PIECE,
    "tool_call_chunk": _PIECE,
    "server_tool_call": Kind("work", ai="arg", id="id"),
    "server_tool_result": Kind("found", ai="arg", id="tool_call_id", words=("output",)),
    "server_tool_call_chunk": _PIECE,
    # Anthropic
    "document": Kind("document", "A", tool="A", words=("text", "source"), ways=_CLAUDE),
    "search_result": Kind("words", "A", tool="A", words=("title", "source", "content")),
    "container_upload": Kind("item", "A"),
    "tool_reference": Kind("item", tool="A"),
    "tool_addition": Kind("mark", system="A"),
    "tool_removal": Kind("mark", system="A"),
    "thinking": Kind("thought", ai="ACRG", words=("thinking",), proof="signature"),
    "redacted_thinking": Kind("thought", ai="A", proof="data", secret="data"),
    "tool_use": Kind("call", ai="ACRG", id="id"),
    "tool_result": Kind("result", id="tool_use_id", words=("content",)),
    "server_tool_use": Kind("work", ai="A", id="id"),
    "mcp_tool_use": Kind("work", ai="A", id="id"),
    "web_search_result": Kind("item", words=("title", "url"), secret="encrypted_content"),
    "compaction": Kind("item", ai="ar"),
    "input_json_delta": _PIECE,
    # OpenAI's Chat Completions
    "input_audio": Kind("audio", "C", ways=_SOUND),
    "video_url": Kind("video"),
    # OpenAI's Responses API
    "input_text": Kind("words", "R", tool="R", words=_TEXT),
    "output_text": Kind("words", ai="R", words=_TEXT),
    "input_image": Kind("image", "R", tool="R", ways=_RESPONSES_IMAGE),
    "input_file": Kind("file", "R", tool="R", ways=_RESPONSES),
    "input_video": Kind("video"),
    "output_audio": Kind("audio", words=("transcript",)),
    "computer_screenshot": Kind("image"),
    "summary_text": Kind("words", words=_TEXT),
    "reasoning_text": Kind("words", words=_TEXT),
    "function_call": Kind("call", ai="CR", id="call_id"),
    "custom_tool_call": Kind("call", ai="R", id="call_id"),
    "function_call_output": Kind("result", id="call_id", words=("output",)),
    "custom_tool_call_output": Kind("result", tool="R", id="call_id", words=("output",)),
    "computer_call": Kind("screen", ai="R", id="call_id"),
    "computer_call_output": Kind("result", tool="R", id="call_id"),
    "apply_patch_call": Kind("ask", ai="R", id="call_id"),
    "apply_patch_call_output": Kind("answer", "R", "R", id="call_id"),
    "mcp_approval_request": Kind("ask", ai="R", id="id"),
    "mcp_approval_response": Kind("answer", "R", id="approval_request_id"),
    "tool_search_call": _ITEM,
    "tool_search_output": Kind("item", "R", "R"),
    "configuration_update": Kind("mark", "R"),
    "additional_tools": Kind("mark", ai="R", system="R"),
    "web_search_call": _ITEM,
    "file_search_call": _ITEM,
    "code_interpreter_call": _ITEM,
    "mcp_call": _ITEM,
    "mcp_list_tools": _ITEM,
    "image_generation_call": Kind("image", ai="R"),
    # Google
    "media": Kind("file", "G", "G", "G", ways=_GOOGLE),
    "executable_code": Kind("item", ai="G"),
    "code_execution_result": Kind("item", ai="G"),
    "function_call_signature": Kind("mark", ai="G"),
    # Bedrock, and others that their integrations translate
    "json": Kind("item"),
    "reasoning_content": Kind("thought", ai="CR", words=("reasoning_content", "text")),
    "cachePoint": Kind("mark"),
    "cache_point": Kind("mark"),
}

_READ: Final = frozenset({"words", *MEDIA})
"""What has words that its speaker says; those of thoughts, and of what tools found, are none."""

_DEEPEST: Final = 4
"""How deeply words may be nested, like the text of a document in a result."""


def unwrapped(block: Block) -> Block:
    """A block as its provider writes it: LangChain wraps what it has no form for."""
    value = block.get("value") if block.get("type") == "non_standard" else None
    return value if isinstance(value, dict) else block


def read_block(block: Block) -> tuple[Kind | None, Block]:
    """What a block is, None if that is not in the table, and the fields that say more."""
    name = block.get("type")
    if type(name) is str and (known := _kind(name, block)) is not None:
        return known, block  # nearly all of them
    fields = unwrapped(block)
    name = fields.get("type")
    if name is None:  # Bedrock names the kind by the field: {"text": …}, {"image": {…}}
        name = next((key for key in fields if key in KINDS), None)
        inner = fields.get(name) if name is not None else None
        fields = inner if isinstance(inner, dict) else fields
    if not isinstance(name, str):
        return None, fields
    kind = _kind(name, fields)
    return (_FOUND if kind is None and name.endswith("_tool_result") else kind), fields


def _kind(name: str, fields: Block) -> Kind | None:
    """The kind of a name; of a medium, also of a form that another provider calls the same."""
    kind = KINDS.get(name)
    if kind is None or kind.ways is None:
        return kind
    forms = (f"{name} {key}" for key in ("source", "file") if isinstance(fields.get(key), dict))
    return next((KINDS[form] for form in forms if form in KINDS), kind)


def is_a(block: object, *what: str) -> bool:
    """Whether a block is of one of these kinds."""
    kind = read_block(block)[0] if isinstance(block, dict) else None
    return kind is not None and kind.what in what


def blocks_of(content: Any) -> list[Any]:
    """The blocks of a content; none of a text."""
    return content if isinstance(content, list) else []


def named(block: object) -> tuple[str, str]:
    """What a block is, and the id that pairs it with another; empty if that is not known."""
    kind, fields = read_block(block) if isinstance(block, dict) else (None, {})
    return ("", "") if kind is None else (kind.what, str(fields.get(kind.id) or ""))


def caller_of(block: object) -> str:
    """The id of the program that makes a call; empty if the model does so itself."""
    if not isinstance(block, dict) or not ("caller" in block or "extras" in block):
        return ""
    extras = block.get("extras")
    caller = block.get("caller") or (extras.get("caller") if isinstance(extras, dict) else None)
    name = caller.get("tool_id") if isinstance(caller, dict) else None
    return name if isinstance(name, str) else ""


class Place(NamedTuple):
    """Where words are.

    Attributes:
        holder: The list or the dict that they are in.
        key: And where in it.
        flows: Whether they may be a part of a text whose other parts are beside them.
    """

    holder: Any
    key: Any
    flows: bool


def places_of(content: list[Any], kind: type = str, level: int = 0) -> Iterator[Place]:
    """Where the words of a content are that a person would read: values of the class `kind`."""
    for at, block in enumerate(content):
        if type(block) is kind:
            yield Place(content, at, level == 0)
        elif isinstance(block, dict) and level < _DEEPEST:
            known, fields = read_block(block)
            if known is not None and known.what in _READ:
                flows = level == 0 and known.what == "words" and len(known.words) == 1
                yield from _places_in(fields, known.words, kind, flows, level)


def _places_in(
    fields: Block, keys: Sequence[str], kind: type, flows: bool, level: int
) -> Iterator[Place]:
    for key in keys:
        value = fields.get(key)
        if type(value) is kind:
            yield Place(fields, key, flows)
        elif isinstance(value, list):
            yield from places_of(value, kind, level + 1)
        elif isinstance(value, dict) and level < _DEEPEST:
            data = ("data",) if value.get("type") == "text" else ()
            yield from _places_in(value, (*data, "text", "content"), kind, False, level + 1)
