"""The parts of a model's context window: the answer, the history, files, and a safety margin.

The margin exists because token counts are approximate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from langchain_core.messages import BaseMessage

from langmem_ext.errors import InvalidInput
from langmem_ext.messages.token_costs.tokens import approximate_tokens
from langmem_ext.messages.turns import ConversationTurn

if TYPE_CHECKING:
    from langmem_ext.settings.model import Settings

RESPONSE: Final = 16_000
"""The maximum number of tokens reserved for the answer."""

HISTORY: Final = 50_000
"""The maximum number of tokens for the history if files are shown too."""

WINDOW: Final = 128_000
"""The context window in tokens of a model whose window is unknown."""

WIDE: Final = 112_000
"""The request size in tokens from which sizes given in tokens apply unchanged, as in a window of
128,000. In a smaller request they shrink."""


@dataclass(frozen=True, slots=True)
class Budget:
    """A model's context window in tokens, divided into parts.

    `Budget.of_window` and `Budget.of_model` use default shares.

    Attributes:
        window: The context window, including the answer.
        response: Reserved for the answer.
        history: What messages may take if files are sent, too; without files they may take the
            whole request.
        files: What files may take.
        margin: Left free, because counts are approximate.

    Raises:
        InvalidInput: A number is invalid or below 0, the window is empty, or its parts exceed it.

    Example:
        `Budget.of_model(model, default=128_000).request`
    """

    window: int
    response: int
    history: int
    files: int
    margin: int = 0

    def __post_init__(self) -> None:
        for name in self.__slots__:
            _count(getattr(self, name), name)
        if not self.window:
            raise InvalidInput(
                "`window` must be at least 1 token: pass the context window of the model"
            )
        if (parts := self.response + self.margin + self.history + self.files) > self.window:
            raise InvalidInput(
                f"the parts need {parts:,} tokens, more than the window of {self.window:,}: make"
                " one smaller"
            )

    @property
    def request(self) -> int:
        """The limit of a whole request: system prompt, tools and messages."""
        return self.window - self.response - self.margin

    @classmethod
    def of_window(
        cls,
        window: int,
        *,
        response: int | None = RESPONSE,
        history: int | None = HISTORY,
        files: int | None = None,
        margin: int | None = 0,
    ) -> Self:
        """Divide a window: a quarter for the answer, a third of the rest for the history.

        What remains is for files.

        Args:
            window: The context window, in tokens.
            response: The maximum reserved for the answer. 0 or None: nothing.
            history: The maximum for the history. 0 or None: its third, however large.
            files: The maximum for files. 0 or None: all that remains.
            margin: What is left free, at most an eighth of the window. 0 or None: nothing.

        Raises:
            InvalidInput: A number is invalid or below 0, or the window is empty.
        """
        window, longest = _count(window, "window"), _count(response or 0, "response")
        for_answer = min(window // 4, longest)
        rest = window - for_answer
        for_history = min(rest // 3, _count(history or 0, "history") or rest)
        free = min(_count(margin or 0, "margin"), window // 8)
        remains = rest - for_history - free
        return cls(
            window,
            for_answer,
            for_history,
            min(remains, _count(files or 0, "files") or remains),
            free,
        )

    @classmethod
    def of_model(
        cls,
        model: object,
        default: int | None = None,
        *,
        response: int | None = RESPONSE,
        history: int | None = HISTORY,
        files: int | None = None,
        margin: int | None = 0,
    ) -> Self:
        """`of_window` for the window in the model's profile.

        It reserves no more for the answer than the profile's maximum output.

        Args:
            model: A chat model, or one with tools or settings bound to it.
            default: The window of a model whose profile has none, in tokens.
            response: As in `of_window`.
            history: As in `of_window`.
            files: As in `of_window`.
            margin: As in `of_window`.

        Raises:
            InvalidInput: The model's profile has no window and there is no default, or a number is
                invalid.
        """
        stated = _profile(model)
        window = _stated(stated, "max_input_tokens") or default
        if window is None:
            raise InvalidInput(
                f"{type(model).__name__} has no profile with its context window: pass `default`, or"
                " a model with a profile"
            )
        longest = _stated(stated, "max_output_tokens")
        response = min(_count(response or 0, "response"), longest) if longest else response
        return cls.of_window(window, response=response, history=history, files=files, margin=margin)

    @classmethod
    def from_settings(cls, settings: Settings, model: object = None) -> Self:
        """The budget that the settings describe.

        The window is `context_window_tokens`, else that of the model's profile, divided by the
        other settings. If neither is known, the limit of a request is `max_history_tokens`; if that
        is off, the window is 128,000 tokens.

        Args:
            settings: The settings.
            model: The chat model that gets the requests, if known.
        """
        window = settings.context_window_tokens or _stated(_profile(model), "max_input_tokens")
        if window is None and (most := settings.max_history_tokens):
            return cls(window=most, response=0, history=most, files=0)
        parts = {
            "response": settings.response_budget_tokens,
            "history": settings.history_budget_tokens,
            "files": settings.file_budget_tokens,
            "margin": settings.safety_margin_tokens,
        }
        if settings.context_window_tokens:
            return cls.of_window(settings.context_window_tokens, **parts)
        return cls.of_model(model, WINDOW, **parts)

    def allocate_history(
        self,
        turns: Sequence[ConversationTurn],
        count: Callable[[BaseMessage], int] = approximate_tokens,
    ) -> tuple[ConversationTurn, ...]:
        """The newest turns that fit in the history's part, whole and without a gap, oldest first.

        Args:
            turns: Turns of a conversation, oldest first.
            count: What a message costs, in tokens.
        """
        room, start = self.history, len(turns)
        while start and (room := room - sum(map(count, turns[start - 1].messages))) >= 0:
            start -= 1
        return tuple(turns[start:])


def scaled(tokens: int, request: int) -> int:
    """Scale a size meant for wide windows to a request: smaller in proportion below `WIDE` tokens.

    >>> scaled(50_000, 1_000_000), scaled(50_000, 11_200)
    (50000, 5000)
    """
    return tokens if request >= WIDE else tokens * request // WIDE


def request_tokens(budget: int | Budget) -> int:
    """What a whole request may cost, in tokens.

    Raises:
        InvalidInput: The budget is invalid.
    """
    return budget.request if isinstance(budget, Budget) else _count(budget, "budget")


def _profile(model: object) -> Mapping[Any, Any]:
    profile = getattr(model, "profile", None)
    return profile if isinstance(profile, Mapping) else {}


def _stated(profile: Mapping[Any, Any], name: str) -> int | None:
    """A number of a profile; None if it is missing, as for models that generate images."""
    value = profile.get(name)
    return value if type(value) is int and value > 0 else None


def _count(value: object, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidInput(f"{name} must be a number of tokens, 0 or more, not {value!r}")
    return value
