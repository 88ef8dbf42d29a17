"""Which counter counts: tiktoken where its encodings are on this machine, else an approximation; or what an application brings."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from langchain_core.language_models import BaseLanguageModel
from langchain_core.messages import BaseMessage, HumanMessage

from langmem_ext.context.encodings import CL100K, encoding_named, encoding_of_model
from langmem_ext.errors import InvalidInput, MissingExtra
from langmem_ext.messages.tokens import ApproximateCounter, TokenCounter, Tool, tokens_of_message, tokens_of_tools

if TYPE_CHECKING:
    from tiktoken import Encoding

Kind: TypeAlias = Literal["auto", "approximate", "tiktoken"]
CountMessages: TypeAlias = Callable[[Sequence[BaseMessage]], int]

_KINDS: Final[Mapping[str, Kind]] = {"auto": "auto", "approximate": "approximate", "tiktoken": "tiktoken"}

logger = logging.getLogger(__name__)


class TiktokenCounter:
    """Counts by one of tiktoken's encodings.

    With `cl100k_base` a message is never less than its text, the JSON of its tool calls and 4 tokens, each counted by that encoding.

    Args:
        encoding: `cl100k_base`, `o200k_base`, or an encoding that the application has loaded.

    Raises:
        InvalidInput: There is no such encoding.
        MissingExtra: It is not on this machine: nothing is fetched from a network.
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
        """Tokens of a text; what looks like a special token in it is counted as the text that it is."""
        return len(self._encode(text))

    def count_tools(self, tools: Sequence[Tool]) -> int:
        """Tokens of the schemas of tools."""
        return tokens_of_tools(tools, self.count_text)


class CallableCounter:
    """Counts by an application's own function of messages, like those that LangChain's `trim_messages` takes.

    It is asked message by message: what the function adds once for a request is added for each.

    Args:
        function: Counts messages.
    """

    def __init__(self, function: CountMessages) -> None:
        self._function = function

    @property
    def name(self) -> str:
        """What the function is called."""
        name: str = getattr(self._function, "__qualname__", type(self._function).__qualname__)
        return name

    def count(self, message: BaseMessage) -> int:
        """What the function says of the message alone.

        Raises:
            InvalidInput: That is no number of tokens.
        """
        tokens: Any = self._function([message])
        if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 0:
            raise InvalidInput(f"the token counter {self.name} must say a whole number of 0 or more, not {tokens!r}")
        return tokens

    def count_text(self, text: str) -> int:
        """What the function says of a user's message with the text."""
        return self.count(HumanMessage(text))

    def count_tools(self, tools: Sequence[Tool]) -> int:
        """What the function says of the tools' schemas as texts."""
        return tokens_of_tools(tools, self.count_text)


def counter_for(model: BaseLanguageModel[Any] | str | None = None, kind: Kind = "auto") -> TokenCounter:
    """The counter for a model.

    Making one may read an encoding, which takes half a second the first time: make it before there is an event loop to be held up.

    Args:
        model: The model, or its name (`gpt-5-mini`, `openai:gpt-5-mini`); None for one that is not known. OpenAI's models are counted by
            their own encoding, others by `cl100k_base`.
        kind: `tiktoken`; `approximate`, which needs none; `auto`, tiktoken where its encoding is on this machine, else the approximation,
            with one warning.

    Raises:
        InvalidInput: There is no such kind.
        MissingExtra: It is to be tiktoken, and its encoding is not on this machine.
    """
    if kind == "approximate":
        return ApproximateCounter()
    if kind not in _KINDS:
        raise InvalidInput(f"there is no token counter {kind!r}: use {', '.join(map(repr, _KINDS))}")
    try:
        return TiktokenCounter(encoding_of_model(model if isinstance(model, str) else name_of_model(model)))
    except MissingExtra as missing:
        if kind == "tiktoken":
            raise
        _warn_approximate(str(missing))
        return ApproximateCounter()


def counter_of(source: TokenCounter | CountMessages | BaseLanguageModel[Any] | str | None) -> TokenCounter:
    """The counter that a caller means: one itself, a function of messages, a kind (`approximate`, `tiktoken`), a model or its name.

    Raises:
        InvalidInput: It is none of these.
        MissingExtra: It is to be tiktoken, and its encoding is not on this machine.
    """
    if source is None or isinstance(source, BaseLanguageModel):
        return counter_for(source)
    if isinstance(source, str):
        return counter_for(None, _KINDS[source]) if source in _KINDS else counter_for(source)
    if isinstance(source, TokenCounter):
        return source
    if callable(source):
        return CallableCounter(source)
    raise InvalidInput(f"{type(source).__name__} counts no tokens: pass 'approximate', 'tiktoken', a model or a function of messages")


def name_of_model(model: object) -> str:
    """What a model says that it is called; empty where it does not."""
    model = getattr(model, "bound", model)  # a model with tools bound to it
    names = (getattr(model, name, None) for name in ("model_name", "deployment_name", "model", "model_id"))
    return next((name for name in names if isinstance(name, str) and name), "")


@cache
def _warn_approximate(reason: str) -> None:
    logger.warning("tokens are counted by an approximation, as by counter=ApproximateCounter(): %s", reason)
