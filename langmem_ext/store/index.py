"""What a query can find of an item: its texts, their words, and their vectors."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias
from zlib import crc32

from langgraph.store.base import IndexConfig, ensure_embeddings, get_text_at_path, tokenize_path

from langmem_ext.errors import InvalidInput
from langmem_ext.messages.search.words import list_words

LONGEST: Final = 32_768
"""The words of so many characters of a text are found; a vector is of the whole text."""

Fields: TypeAlias = Literal[False] | Sequence[str] | None
"""What `put(index=)` takes: no fields, these, or those of the index."""


class Index:
    """An index of a store's items.

    Args:
        config: LangGraph's `IndexConfig`; without `embed`, texts are found by their words alone.

    Attributes:
        signature: A number that identifies the model, the size of its vectors and the fields.

    Raises:
        InvalidInput: The config is invalid.
    """

    def __init__(self, config: IndexConfig | None) -> None:
        options: Mapping[str, Any] = config or {}
        self.fields = _checked_fields(options.get("fields") or ["$"])
        self.dims: int = options.get("dims") or 0
        embed = options.get("embed")
        if embed is not None and (not isinstance(self.dims, int) or self.dims < 1):
            raise InvalidInput("an index with embed needs dims, the length of the model's vectors")
        self.embeddings = None if embed is None else ensure_embeddings(embed)
        self.model = _model_of(embed)
        named = json.dumps([self.model, self.dims, self.fields])
        self.signature = crc32(named.encode()) >> 1

    def texts(self, value: Mapping[str, Any], fields: Fields) -> list[str]:
        """The texts by which an item is found, each once.

        Raises:
            InvalidInput: `fields` is invalid.
        """
        if fields is False:
            return []
        paths = self.fields if fields is None else _checked_fields(fields)
        texts: list[str] = []
        for path in paths:
            texts += get_text_at_path(value, "$" if path == "$" else tokenize_path(path))
        return list(dict.fromkeys(texts))

    def embed(self, texts: Sequence[str]) -> dict[str, bytes]:
        """The vector of each text, as it is stored.

        Raises:
            InvalidInput: The model's vectors do not fit the index.
        """
        if self.embeddings is None or not texts:
            return {}
        return self._packed(texts, self.embeddings.embed_documents(list(texts)))

    async def aembed(self, texts: Sequence[str]) -> dict[str, bytes]:
        """Async twin of `embed`."""
        if self.embeddings is None or not texts:
            return {}
        return self._packed(texts, await self.embeddings.aembed_documents(list(texts)))

    def embed_query(self, query: str) -> bytes | None:
        """The vector of a query; None if there is no model."""
        if self.embeddings is None:
            return None
        return self._packed([query], [self.embeddings.embed_query(query)])[query]

    async def aembed_query(self, query: str) -> bytes | None:
        """Async twin of `embed_query`."""
        if self.embeddings is None:
            return None
        return self._packed([query], [await self.embeddings.aembed_query(query)])[query]

    def _packed(self, texts: Sequence[str], vectors: Sequence[Sequence[float]]) -> dict[str, bytes]:
        if len(vectors) != len(texts):
            counts = f"{len(vectors)} vectors for {len(texts)} texts"
            raise InvalidInput(
                f"the embedding model {self.model} gave {counts}; nothing was stored"
            )
        return {text: self._pack(vector) for text, vector in zip(texts, vectors, strict=True)}

    def _pack(self, vector: Sequence[float]) -> bytes:
        if len(vector) != self.dims:
            raise InvalidInput(
                f"the embedding model {self.model} gave a vector of {len(vector)} numbers where"
                f" dims says {self.dims}: give the index the model's dims; nothing was stored"
            )
        return pack_vector(vector)


def words_of(texts: Sequence[str]) -> str | None:
    """The words by which an item with these texts is found; None if it has no texts.

    Words of two texts are kept apart: no query finds them in a row.
    """
    return "\n".join(list_words(text[:LONGEST]) for text in texts) if texts else None


def pack_vector(vector: Sequence[float]) -> bytes:
    """A vector of length 1 in the same direction, as 32-bit floats; a zero vector stays zero.

    Raises:
        InvalidInput: It has a number that is not finite.
    """
    length = math.hypot(*vector)
    if not math.isfinite(length):
        raise InvalidInput(
            "an embedding model gave a vector that is not finite; nothing was stored"
        )
    unit = [number / length for number in vector] if length else vector
    return struct.pack(f"<{len(unit)}f", *unit)


def _checked_fields(fields: object) -> list[str]:
    if isinstance(fields, str) or not isinstance(fields, Sequence):
        raise InvalidInput("index is False, or a list of fields like ['text', 'notes[*].title']")
    for field in fields:
        if not isinstance(field, str):
            raise InvalidInput(f"a field is a path like 'notes[*].title', not {field!r}")
    return list(fields)


def _model_of(embed: object) -> str:
    """A model's name, or else that of its class or function."""
    if embed is None or isinstance(embed, str):
        return embed or ""
    for attribute in ("model", "model_name"):
        if isinstance(name := getattr(embed, attribute, None), str) and name:
            return name
    return str(getattr(embed, "__qualname__", type(embed).__qualname__))
