"""Chat models by name, and how one is called for a purpose of the package's own."""

from __future__ import annotations

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable

from langmem_ext.errors import InvalidInput, MissingExtra

NOSTREAM_TAG = "nostream"
"""The tag by which LangGraph keeps a model call's tokens out of the user's stream
(`langgraph.constants.TAG_NOSTREAM`), written out because this layer does not import LangGraph."""


def make_model(name: BaseChatModel | str) -> BaseChatModel:
    """The chat model that `init_chat_model` makes for a name; a model that is given is it itself.

    Raises:
        MissingExtra: The extra `agents` is not installed.
        InvalidInput: There is no such model, its provider's package or key is missing, or what is
            given is neither a model nor a name.
    """
    if isinstance(name, Runnable):  # what wraps a model, as `with_retry` does, is one, too
        return name
    if not isinstance(name, str):
        raise InvalidInput(
            f"a model must be a chat model or its name, not {type(name).__name__}: pass"
            " 'provider:model', or what init_chat_model returns"
        )
    try:
        from langchain.chat_models import (  # noqa: PLC0415
            init_chat_model,
        )
    except ImportError:
        raise MissingExtra("a model passed by name", "agents") from None
    try:
        model = init_chat_model(name)
    except Exception as exc:  # providers raise errors of their own for a missing package or key
        reason = next(
            iter(str(exc).strip().splitlines()), type(exc).__name__
        )  # some continue for a page
        raise InvalidInput(f"the model {name!r} cannot be used: {reason}") from exc
    if not isinstance(model, BaseChatModel):
        raise InvalidInput(f"{name!r} is ambiguous: write 'provider:model'")
    return model
