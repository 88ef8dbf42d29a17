"""`continued`: turns a function that talks into a tool whose conversation others can continue."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Final, TypeAlias

from langmem_ext.errors import InvalidInput
from langmem_ext.threads.continuation.continuation import ToolResult
from langmem_ext.threads.threads import Threads

Function: TypeAlias = Callable[..., Any]

NAME: Final = "continuation_id"


def continued(threads: Threads, *, tool: str | None = None) -> Callable[[Function], Function]:
    """Pass a function its conversation, and return its callers the id by which to continue it.

    The function takes a `Continuation` as its first argument and returns a text. The decorated
    function takes the other arguments and a `continuation_id`, from an earlier result, and returns
    a `ToolResult`. LangChain's `tool` accepts it as it is. A coroutine function stays one.

    Args:
        threads: The conversations.
        tool: The tool's name. Default: the function's name.

    Raises:
        InvalidInput: The function takes no first argument, or has a `continuation_id` already.

    Example:
        ```
        @continued(threads)
        def debug(thread: Continuation, question: str) -> str:
            thread.say(question)
            return thread.answer(model.invoke(thread.history())).text

        first = debug("Why does it fail?")
        second = debug("And now?", continuation_id=first["continuation_id"])
        ```
    """

    def decorate(function: Function) -> Function:
        signature, annotations = _outer(function)
        name = tool or function.__name__

        @wraps(function)
        def call(*args: Any, continuation_id: str | None = None, **kwargs: Any) -> ToolResult:
            thread = threads.continue_(continuation_id, tool=name)
            return thread.result(function(thread, *args, **kwargs))

        @wraps(function)
        async def acall(
            *args: Any, continuation_id: str | None = None, **kwargs: Any
        ) -> ToolResult:
            thread = await threads.acontinue_(continuation_id, tool=name)
            return thread.result(await function(thread, *args, **kwargs))

        outer: Any = acall if inspect.iscoroutinefunction(function) else call
        outer.__signature__, outer.__annotations__ = signature, dict(annotations)
        return outer  # type: ignore[no-any-return]

    return decorate


def _outer(function: Function) -> tuple[inspect.Signature, Mapping[str, Any]]:
    """The signature and annotations that callers see."""
    inner = inspect.signature(function)
    first, *others = inner.parameters.values() or (None,)
    if first is None or first.kind not in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    ):
        raise InvalidInput(
            f"{function.__name__} takes no argument: the conversation is passed as its first one"
        )
    if NAME in inner.parameters:
        raise InvalidInput(
            f"{function.__name__} has a {NAME} parameter already: remove it, `continued` adds it"
        )
    own = inspect.Parameter(
        NAME, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=str | None
    )
    at = next(
        (at for at, other in enumerate(others) if other.kind is inspect.Parameter.VAR_KEYWORD),
        len(others),
    )
    others.insert(at, own)
    annotations = {
        name: hint
        for name, hint in function.__annotations__.items()
        if name not in (first.name, "return")
    }
    return (
        inner.replace(parameters=others, return_annotation=ToolResult),
        annotations | {NAME: str | None, "return": ToolResult},
    )
