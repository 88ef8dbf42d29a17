"""Settings of a context that need more than reading: a prompt in a file, models by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from langchain_core.language_models import BaseChatModel

from langmem_ext._internal.models import make_model
from langmem_ext.errors import SettingsError

if TYPE_CHECKING:
    from langmem_ext.settings.model import Settings


def summary_prompt(settings: Settings) -> str | None:
    """The prompt that asks for a summary; None for the built-in one.

    Raises:
        SettingsError: Its file cannot be read, or has no text.
    """
    path = settings.summary_prompt_file
    if not path:
        return None
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:  # a ValueError: no UTF-8, or no path
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise SettingsError([_at_fault(path, f"cannot be read: {reason}")]) from None
    if not text.strip():
        raise SettingsError([_at_fault(path, "has no text")])
    return text


def _at_fault(path: str, reason: str) -> str:
    return (
        f"summary_prompt_file: {path!r} {reason}; set the path of the prompt, or leave it empty for"
        " the built-in one"
    )


def model_named(model: BaseChatModel | str | None) -> BaseChatModel | None:
    """A chat model that may be given by its name; None for an empty one.

    Raises:
        MissingExtra: The extra `agents` is not installed.
        InvalidInput: There is no such model, or it is neither a model nor a name.
    """
    return None if model is None or model == "" else make_model(model)
