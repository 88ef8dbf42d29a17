"""Calls a model for the context: hidden in the user's stream, reported in the custom stream."""

from __future__ import annotations

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langgraph.config import get_stream_writer

from langmem_ext._internal.models import NOSTREAM_TAG
from langmem_ext.context.summary.summary import ModelRequest


def ask(model: BaseChatModel, request: ModelRequest) -> str:
    """What a model answers; its tokens are kept out of the user's stream."""
    _progress(request)
    return model.invoke(list(request.messages), _config()).text


async def aask(model: BaseChatModel, request: ModelRequest) -> str:
    """Async twin of `ask`."""
    _progress(request)
    return (await model.ainvoke(list(request.messages), _config())).text


def _config() -> RunnableConfig:
    """How a model is called for the context: no stream of the user's shows it."""
    metadata = {"lc_source": "summarization"}
    try:
        from langchain.agents.middleware.internal_call_transformer import (  # noqa: PLC0415
            internal_call_metadata,
        )
    except ImportError:
        return {"tags": [NOSTREAM_TAG], "metadata": metadata}
    return {"tags": [NOSTREAM_TAG], "metadata": metadata | internal_call_metadata()}


def _progress(request: ModelRequest) -> None:
    """Tell who watches the graph's custom stream what takes the time."""
    try:
        write = get_stream_writer()
    except (RuntimeError, KeyError):  # called outside a graph
        return
    write({"type": "context", "step": request.purpose})
