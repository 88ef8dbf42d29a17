"""What a provider requires of messages beyond what all require: a table of rules by provider."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import BaseMessage

from langmem_ext.messages.blocks import Kind
from langmem_ext.messages.token_costs.media import Given

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

_WRITERS: Final[Mapping[str, frozenset[str]]] = {
    "A": frozenset({"anthropic", "google_anthropic_vertex"}),
    "C": frozenset({"openai", "azure", "azure_ai"}),
    "R": frozenset({"openai", "azure", "azure_ai"}),
    "G": frozenset({"google_genai", "google_vertexai"}),
}
"""What a message's `response_metadata["model_provider"]` says, by who wrote it."""


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
        calls_last: A model's calls are behind all else that it says.
        letters: Who all must take a block, as `messages.blocks` calls them; none: it is sent
            whatever there is.
        perhaps: Who may be asked as well: what is its alone is sent, as nobody else can have
            written it.
    """

    name: str
    first_is_user: bool = False
    system_first: bool = False
    alternates: bool = False
    bare_end: bool = False
    signs_calls: bool = False
    signed: bool = False
    longest_id: int = 64
    calls_last: bool = True
    letters: str = ""
    perhaps: str = ""

    def wrote(self, message: BaseMessage) -> bool | None:
        """Whether the provider wrote the message; None if that does not say who did."""
        writer = message.response_metadata.get("model_provider")
        if writer is None or not self.letters:
            return None
        return all(writer in _WRITERS[letter] for letter in self.letters)

    def takes(
        self, message: BaseMessage, role: str, kind: Kind, given: Given | None = None
    ) -> bool:
        """Whether a message of the type `role` may hold a block of this kind, a medium so given."""
        if kind.what == "piece" or not self.letters:
            return kind.what != "piece"
        takers: str = getattr(kind, role, "")
        writer = message.response_metadata.get("model_provider")

        def taken(letter: str) -> bool:
            if given is not None and not given.suits(kind, letter, self.letters):
                return False
            return letter in takers or (letter.lower() in takers and writer in _WRITERS[letter])

        return all(map(taken, self.letters)) or any(
            taken(letter) and (letter not in takers or kind.is_only_of(letter))
            for letter in self.perhaps
        )


CALL_SIGNATURES: Final = "__gemini_function_call_thought_signatures__"
"""Key, in `additional_kwargs`, of what Gemini wants back with its calls: signatures by the calls'
ids."""

_CHAT: Final = ProviderRules("openai-chat", longest_id=40, calls_last=False, letters="C")
_RESPONSES: Final = replace(_CHAT, name="openai-responses", letters="R")
OPENAI: Final = replace(_CHAT, name="openai", perhaps="R")
"""Either of its interfaces: what both take, and what only the Responses API can have written."""

ANTHROPIC: Final = ProviderRules(
    "anthropic", first_is_user=True, system_first=True, bare_end=True, signed=True, letters="A"
)
GOOGLE: Final = ProviderRules(
    "google",
    first_is_user=True,
    system_first=True,
    alternates=True,
    signs_calls=True,
    letters="G",
)
MISTRAL: Final = ProviderRules("mistral", first_is_user=True, system_first=True, alternates=True)
LLAMA: Final = replace(MISTRAL, name="llama")
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

BOTH: Final = replace(ANTHROPIC, name="openai and anthropic", longest_id=40, letters="AC")
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
            `model_provider`; what follows a colon does not count. `openai-chat` and
            `openai-responses` name an interface. None: valid for OpenAI and Anthropic both.
    """
    if provider is None:
        return BOTH
    words = re.split(r"[^a-z]+", provider.split(":")[0].lower())
    known = next((rules for word, rules in _BY_WORD.items() if word in words), OTHER)
    finer = {"chat": _CHAT, "responses": _RESPONSES}.get(words[-1]) if known is OPENAI else None
    return finer or known


def provider_of(model: BaseChatModel | None, tools: Sequence[Any] = (), **asked: Any) -> str | None:
    """The provider of a model, as LangChain reports it to LangSmith; None if unknown.

    Of OpenAI's it says which interface a request with these tools and options is sent to.
    """
    try:
        provider = None if model is None else model._get_ls_params().get("ls_provider")
        uses_responses = getattr(model, "_use_responses_api", None)
        if provider is None or uses_responses is None or rules_for(provider) is not OPENAI:
            return provider
        function = {"type": "function"}
        schemas = [
            tool if isinstance(tool, dict) and "type" in tool else function for tool in tools
        ]
        payload = asked | ({"tools": schemas} if schemas else {})
        return f"{provider}-{'responses' if uses_responses(payload) else 'chat'}"
    except (AttributeError, TypeError):
        return None
