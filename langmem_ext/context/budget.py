"""What a model's window is divided into: the answer, the history, files, and a margin because counts are approximate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from langchain_core.messages import BaseMessage

from langmem_ext.errors import InvalidInput
from langmem_ext.messages.tokens import approximate_tokens
from langmem_ext.messages.turns import ConversationTurn

if TYPE_CHECKING:
    from langmem_ext.settings.model import Settings

RESPONSE: Final = 16_000
"""Tokens kept for the answer, at most."""

HISTORY: Final = 50_000
"""Tokens that the history may take where files are shown too, at most."""

WINDOW: Final = 128_000
"""Tokens of the window of a model of which nothing says more."""

WIDE: Final = 112_000
"""Tokens of a request in which sizes given in tokens hold as they are, as in a window of 128,000; in a smaller one they shrink."""


@dataclass(frozen=True, slots=True)
class Budget:
    """A model's window in tokens, divided. `Budget.of_window` and `Budget.of_model` divide it by the usual rule.

    Attributes:
        window: All that the model takes, its answer included.
        response: Kept for the answer.
        history: What the messages may take where files are shown too; without files they may take the whole request.
        files: What files may take.
        margin: Left free, because counts are approximate.

    Raises:
        InvalidInput: A number is none or below 0, the window is empty, or its parts are more than it.

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
            raise InvalidInput("a window of 0 tokens holds nothing: pass how many the model takes")
        if (parts := self.response + self.margin + self.history + self.files) > self.window:
            raise InvalidInput(f"the parts are {parts:,} tokens of a window of {self.window:,}: make one smaller")

    @property
    def request(self) -> int:
        """What a whole request may cost: system prompt, tools and messages."""
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
        """A window divided: a quarter of it for the answer, a third of the rest for the history, files have what remains.

        Args:
            window: What the model takes, in tokens.
            response: What the answer is kept at most. 0 or None: nothing is kept for it.
            history: What the history may take at most. 0 or None: its third, however much that is.
            files: What files may take at most. 0 or None: all that remains.
            margin: What is left free of what remains, but never more than an eighth of the window. 0 or None: nothing.

        Raises:
            InvalidInput: A number is none or below 0, or the window is empty.
        """
        window, longest = _count(window, "window"), _count(response or 0, "response")
        for_answer = min(window // 4, longest)
        rest = window - for_answer
        for_history = min(rest // 3, _count(history or 0, "history") or rest)
        free = min(_count(margin or 0, "margin"), window // 8)
        remains = rest - for_history - free
        return cls(window, for_answer, for_history, min(remains, _count(files or 0, "files") or remains), free)

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
        """`of_window` for the window that the model's profile states; no more is kept for the answer than the profile says it can write.

        Args:
            model: A chat model, or one with tools or settings bound to it.
            default: The window of a model whose profile states none, in tokens.
            response: As in `of_window`.
            history: As in `of_window`.
            files: As in `of_window`.
            margin: As in `of_window`.

        Raises:
            InvalidInput: The model states no window and there is no default, or a number cannot be used.
        """
        stated = _profile(model)
        window = _stated(stated, "max_input_tokens") or default
        if window is None:
            raise InvalidInput(f"{type(model).__name__} does not say how many tokens it takes: pass `default`, or a model with a profile")
        longest = _stated(stated, "max_output_tokens")
        response = min(_count(response or 0, "response"), longest) if longest else response
        return cls.of_window(window, response=response, history=history, files=files, margin=margin)

    @classmethod
    def from_settings(cls, settings: Settings, model: object = None) -> Self:
        """What settings say that a request may cost.

        The window is `context_window_tokens`, else what the model's profile states, and divided as the other settings say. If neither says
        how large it is, a request may cost `max_history_tokens`; if that is off, the window is one of 128,000.

        Args:
            settings: The settings.
            model: The chat model that is sent the requests, if there is one.
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
        self, turns: Sequence[ConversationTurn], count: Callable[[BaseMessage], int] = approximate_tokens
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
    """A size meant for wide windows, in a request of that many tokens: less in the proportion in which the request is less than `WIDE`.

    >>> scaled(50_000, 1_000_000), scaled(50_000, 11_200)
    (50000, 5000)
    """
    return tokens if request >= WIDE else tokens * request // WIDE


def request_tokens(budget: int | Budget) -> int:
    """What a whole request may cost, in tokens.

    Raises:
        InvalidInput: The budget is none.
    """
    return budget.request if isinstance(budget, Budget) else _count(budget, "budget")


def _profile(model: object) -> Mapping[Any, Any]:
    profile = getattr(model, "profile", None)
    return profile if isinstance(profile, Mapping) else {}


def _stated(profile: Mapping[Any, Any], name: str) -> int | None:
    """A number of a profile; None for one that says nothing, as profiles of models that generate images have it."""
    value = profile.get(name)
    return value if type(value) is int and value > 0 else None


def _count(value: object, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidInput(f"{name} is how many tokens, a whole number from 0 on; not {value!r}")
    return value
