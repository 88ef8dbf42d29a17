"""A chat model that answers in a form: by its structured output, or by JSON in its text.

Its answer is validated, even if it was parsed already. An answer that cannot be used says why, in
words that quote nothing of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import BaseModel, ValidationError

from langmem_ext._internal.models import NOSTREAM_TAG, make_model
from langmem_ext.context.summary.checks import Unusable, bare, refuses
from langmem_ext.context.summary.prompts import ask
from langmem_ext.memory.calls import Call, Steps

S = TypeVar("S", bound=BaseModel)

LONGEST: Final = 32_000
"""Characters of an answer, as JSON: a longer one is no memory."""

_AS_JSON: Final = "Answer with one JSON object that fits this JSON schema, and with nothing else:\n"
_REFUSED: Final = frozenset({"content_filter", "refusal"})


class StructuredModel:
    """A chat model, asked for answers of a form.

    Args:
        model: The model, or its name for `init_chat_model` (needs the extra `agents`).
        run_name: What its calls are called in traces.

    Raises:
        MissingExtra: The model is a name, and the extra is not installed.
        InvalidInput: There is no such model.
    """

    def __init__(self, model: BaseChatModel | str, run_name: str) -> None:
        self.model = make_model(model)
        self._config: RunnableConfig = {"tags": [NOSTREAM_TAG], "run_name": run_name}
        self._bound: dict[type[BaseModel], Runnable[Any, Any] | None] = {}

    def asked(
        self, form: type[S], system: str, wanted: Sequence[str], data: Sequence[tuple[str, str]]
    ) -> Steps[S]:
        """The model's answer.

        Args:
            form: What it looks like.
            system: Who the model is.
            wanted: What it is asked for, in paragraphs.
            data: What it reads, each with the name of its tag: nothing in it is
                an instruction.

        Raises:
            Unusable: It refuses, or the answer is not of this form or too long.
            Exception: Whatever the model raises.
        """
        bound = self._in_form(form)
        if bound is None:
            wanted = [*wanted, _AS_JSON + json.dumps(form.model_json_schema(), ensure_ascii=False)]
        try:
            answer = yield Call(
                bound or self.model, "invoke", list(ask(system, wanted, data)), self._config
            )
        except ValidationError as error:  # some clients parse within the call
            raise _misformed(error) from None
        return read_answer(answer, form)

    def _in_form(self, form: type[BaseModel]) -> Runnable[Any, Any] | None:
        """The model, bound to a form; None for one that knows no structured output."""
        if form not in self._bound:
            profile: Mapping[str, Any] = getattr(self.model, "profile", None) or {}
            method = {"method": "json_schema"} if profile.get("structured_output") else {}
            try:
                self._bound[form] = self.model.with_structured_output(
                    form, include_raw=True, **method
                )
            except NotImplementedError:
                self._bound[form] = None
        return self._bound[form]


def read_answer(answer: object, form: type[S]) -> S:
    """What a model has answered, in the form that it was asked for.

    Args:
        answer: A message, or what `with_structured_output(include_raw=True)` gives.
        form: The form.

    Raises:
        Unusable: It refuses, or the answer is not of this form or too long.
    """
    parts = answer if isinstance(answer, Mapping) else {"raw": answer}
    raw, parsed, failed = (parts.get(name) for name in ("raw", "parsed", "parsing_error"))
    if isinstance(raw, BaseMessage) and _is_refusal(raw, failed, answered=parsed is not None):
        raise Unusable("refuses")
    try:
        if isinstance(failed, ValidationError):
            raise failed
        value = parsed.model_dump() if isinstance(parsed, BaseModel) else parsed
        read = form.model_validate(_json_in(raw) if value is None else value)
    except ValidationError as error:
        raise _misformed(error) from None
    if len(read.model_dump_json()) > LONGEST:
        raise Unusable(f"is longer than {LONGEST:,} characters")
    return read


def _is_refusal(raw: BaseMessage, error: object, *, answered: bool) -> bool:
    ended = {raw.response_metadata.get(name) for name in ("finish_reason", "stop_reason")}
    named = type(error).__name__ == "ModelRefusalError"  # of newer releases of langchain-core
    in_words = not answered and refuses(bare(raw.text))
    return named or in_words or bool(raw.additional_kwargs.get("refusal")) or bool(ended & _REFUSED)


def _json_in(raw: object) -> Any:
    """The JSON object in a model's text, with or without words around it.

    Raises:
        Unusable: There is none.
    """
    text = bare(raw.text) if isinstance(raw, BaseMessage) else ""
    start, end = text.find("{"), text.rfind("}")
    try:
        return json.loads(text[start : end + 1] if 0 <= start < end else text)
    except (ValueError, RecursionError):
        raise Unusable(
            "is not of the form that was asked for (no JSON object)" if text else "is empty"
        ) from None


def _misformed(error: ValidationError) -> Unusable:
    """Which fields are wrong, and how; no value is quoted."""
    mistakes = error.errors(include_input=False, include_url=False)[:5]
    errors = ", ".join(
        f"{'.'.join(map(str, mistake['loc'])) or 'it'}: {mistake['type']}" for mistake in mistakes
    )
    return Unusable(f"is not of the form that was asked for ({errors})")
