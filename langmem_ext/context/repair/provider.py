"""What a provider requires of messages beyond what all require: a table of rules by provider."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from langchain_core.messages import BaseMessage

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

Kinds: TypeAlias = Mapping[str, frozenset[str]]
"""The types of content blocks that a message may hold, by its type (`human`, `ai`, `system`,
`tool`)."""


@dataclass(frozen=True, slots=True)
class ProviderRules:
    """What a provider asks of the messages of a request.

    Every one of them is sent calls whose results are directly behind them, ids that are used once,
    names of letters and digits, and no empty texts; that is not a rule here.

    Attributes:
        name: The provider's.
        first_is_user: The first message that is not a system message is the user's.
        system_first: System messages come before all others.
        alternates: The user and the model take turns: neighbours of one role are one message, and a
            model answers results before the user speaks again.
        bare_end: A model's message at the end, which it is to continue, ends in no blank.
        signs_calls: It wants the signatures of its calls back as long as the calls are shown.
        signed: Thoughts without what proves them are refused.
        longest_id: Characters of a call's id, at most.
        kinds: The blocks that a message may hold; None: whatever there is.
        own: What a message's `response_metadata["model_provider"]` says where the provider wrote
            it: it is sent its own blocks back.
    """

    name: str
    first_is_user: bool = False
    system_first: bool = False
    alternates: bool = False
    bare_end: bool = False
    signs_calls: bool = False
    signed: bool = False
    longest_id: int = 64
    kinds: Kinds | None = None
    own: frozenset[str] = frozenset()

    def wrote(self, message: BaseMessage) -> bool:
        """Whether the provider wrote the message, and so knows all of its blocks."""
        return bool(self.own) and message.response_metadata.get("model_provider") in self.own

    def takes(self, role: str, block: Mapping[str, Any]) -> bool:
        """Whether a message of the type `role` may hold the block."""
        allowed = self.kinds.get(role) if self.kinds is not None else None
        kind = str(block.get("type"))
        return (
            allowed is None
            or kind in allowed
            or (SERVER_RESULT in allowed and kind.endswith(SERVER_RESULT))
        )


SERVER_RESULT: Final = "_tool_result"
"""How the types of what a provider's own tools found end."""

THOUGHTS: Final = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_content"})
"""Types of blocks that hold what a model thought, in every provider's writing and in
LangChain's."""

CALL_SIGNATURES: Final = "__gemini_function_call_thought_signatures__"
"""Key, in `additional_kwargs`, of what Gemini wants back with its calls: signatures by the calls'
ids."""

SIGNED: Final = MappingProxyType({"thinking": "signature", "redacted_thinking": "data"})
"""Thoughts that are sent back as they came or not at all, each with the field that proves it."""

_FILES = frozenset({"image_url", "image", "file", "document", "text-plain"})
_OPENAI: Final[Kinds] = {
    "system": frozenset({"text"}),
    "human": frozenset({"text", "image_url", "image", "file", "audio", "input_audio"}),
    # LangChain's integration leaves all but the first two out itself. It does not know what is
    # redacted, nor others' reasoning.
    "ai": frozenset({"text", "refusal", "tool_use", "tool_call", "thinking", "reasoning_content"}),
    "tool": frozenset({"text"}),
}
_ANTHROPIC: Final[Kinds] = {
    "system": frozenset({"text"}),
    "human": _FILES | {"text", "search_result", "container_upload"},
    "ai": frozenset(
        {
            "text",
            "tool_use",
            "tool_call",
            "thinking",
            "redacted_thinking",
            "server_tool_use",
            SERVER_RESULT,
        }
    ),
    "tool": _FILES | {"text", "search_result", "tool_reference"},
}
_BOTH: Final[Kinds] = {role: _OPENAI[role] & _ANTHROPIC[role] for role in _OPENAI}
_MEDIA = frozenset({"text", "image_url", "image", "audio", "video", "file", "text-plain", "media"})
_GOOGLE: Final[Kinds] = {
    "system": frozenset({"text"}),
    "human": _MEDIA,
    "ai": (
        _MEDIA
        | {
            "tool_use",
            "tool_call",
            "thinking",
            "reasoning",
            "executable_code",
            "code_execution_result",
            "function_call_signature",
        }
    ),
    "tool": _MEDIA,
}

_RESPONSES: Final = frozenset({"input_text", "input_image", "input_file"})

OPENAI: Final = ProviderRules(
    "openai",
    longest_id=40,
    kinds={**_OPENAI, "human": _OPENAI["human"] | _RESPONSES, "tool": _OPENAI["tool"] | _RESPONSES},
    own=frozenset({"openai", "azure", "azure_ai"}),
)
ANTHROPIC: Final = ProviderRules(
    "anthropic",
    first_is_user=True,
    system_first=True,
    bare_end=True,
    signed=True,
    kinds=_ANTHROPIC,
    own=frozenset({"anthropic", "google_anthropic_vertex"}),
)
GOOGLE: Final = ProviderRules(
    "google",
    first_is_user=True,
    system_first=True,
    alternates=True,
    signs_calls=True,
    kinds=_GOOGLE,
    own=frozenset({"google_genai", "google_vertexai"}),
)
MISTRAL: Final = ProviderRules(
    "mistral", first_is_user=True, system_first=True, alternates=True, own=frozenset({"mistralai"})
)
LLAMA: Final = ProviderRules("llama", first_is_user=True, system_first=True, alternates=True)
"""Chat templates of open models, many of which know a user and an assistant in turn and nothing
else."""

OTHER: Final = ProviderRules(
    "other",
    first_is_user=True,
    system_first=True,
    bare_end=True,
    signs_calls=True,
    signed=True,
    longest_id=40,
)
"""A provider that no rules are known of: an order that all take, and whatever blocks there are."""

BOTH: Final = ProviderRules(
    "openai and anthropic",
    first_is_user=True,
    system_first=True,
    bare_end=True,
    signed=True,
    longest_id=40,
    kinds=_BOTH,
    own=OPENAI.own | ANTHROPIC.own,
)
"""What OpenAI and Anthropic both take, for a request whose provider is not known."""

_BY_WORD: Final[Mapping[str, ProviderRules]] = {
    "openai": OPENAI,
    "azure": OPENAI,
    "anthropic": ANTHROPIC,
    "claude": ANTHROPIC,
    "mistral": MISTRAL,
    "mistralai": MISTRAL,
    "llama": LLAMA,
    "llamacpp": LLAMA,
    "huggingface": LLAMA,
    "google": GOOGLE,
    "gemini": GOOGLE,
    "vertexai": GOOGLE,
}
"""In this order: who made a model comes before who runs it (`google_anthropic_vertex`)."""


def rules_for(provider: str | None) -> ProviderRules:
    """The rules of a provider, by what LangChain calls it.

    Args:
        provider: As in `init_chat_model("anthropic:…")`, a model's `ls_provider` or a message's
            `model_provider`; what follows a colon does not count. None: valid for OpenAI and
            Anthropic both.
    """
    if provider is None:
        return BOTH
    words = re.split(r"[^a-z]+", provider.split(":")[0].lower())
    return next((rules for word, rules in _BY_WORD.items() if word in words), OTHER)


def provider_of(model: BaseChatModel | None) -> str | None:
    """The provider of a model, as LangChain reports it to LangSmith; None if unknown."""
    try:
        return None if model is None else model._get_ls_params().get("ls_provider")
    except (AttributeError, TypeError):
        return None
