"""`ContextPolicy`: how a request's messages are chosen, for function, node and middleware."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias

from langmem_ext.errors import InvalidInput

if TYPE_CHECKING:
    from langmem_ext.settings.model import Settings

Strategy: TypeAlias = Literal["window", "summary", "hybrid", "messages"]
Condition: TypeAlias = tuple[Literal["tokens", "messages", "fraction"], float]
Trigger: TypeAlias = Condition | Sequence[Condition] | Mapping[str, float]
"""One condition; several, of which any is enough; or several by name, all of which must hold: as
LangChain's own middleware takes them."""

MEASURES: Final = ("tokens", "messages", "fraction")

_CHOICES: Final[Mapping[str, tuple[object, ...]]] = {
    "strategy": ("window", "summary", "hybrid", "messages"),
    "thoughts": ("turn", "compaction", "never"),
    "on_failure": ("marker", "keep", "raise"),
    "offload": (False, True),
    "verify": (False, True),
}
_COUNTS: Final = (
    "tool_output_trim_chars",
    "protected_tokens",
    "least_offload_tokens",
    "cooldown",
    "keep_recent_messages",
    "nudge_at",
    "stop_at",
    "max_messages",
)
_SHARES: Final = ("target", "floor", "summary_share", "least_saved")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPolicy:
    """How the messages of a request are selected. Sizes are in tokens unless stated otherwise.

    Attributes:
        strategy: What replaces the messages that are left out. `window`: a line that says how many
            they are. `summary`: a summary of them, by a model where there is one, else an extract.
            `hybrid`: a summary, and word for word the messages that are marked as important.
            `messages`: by the number of messages, whatever their size.
        trigger: When something is left out besides when a request would not fit: `("tokens", n)`,
            `("messages", n)`, `("fraction", f)` of the budget; a list of these, any of which is
            enough; or a mapping, all of whose conditions must hold. It acts in one of two turns at
            most, however small it is.
        target: How much of the budget the request takes after something was left out, at most,
            unless the latest tool round takes more.
        floor: How much of it the request takes at least, if there is enough to show.
        keep_recent_messages: How many of the newest messages are shown word for word when anything
            is left out; where they do not fit in `target` beside a summary, or are more than a
            trigger leaves, as many as do. 0: as many as `floor` asks for. With `messages`, half of
            `max_messages` are, whatever this says; and where a compaction is asked for on demand,
            the latest turn alone.
        tool_output_trim_chars: What is shown of an old tool output, in characters; 0: all of it.
        offload: Show of a large old output its beginning and its end with a reference, by which
            `read_tool_output` shows the rest.
        protected_tokens: How much of the newest tool output is not offloaded; in a budget under
            112,000 less, in proportion.
        least_offload_tokens: From how much old output on any is offloaded; in a small budget less
            too.
        thoughts: When a model's reasoning is left out of earlier turns: `turn`, when the user
            speaks again, as providers do themselves; `compaction`, only when something else is left
            out too, which keeps the prefix identical until then; `never`.
        summary_share: How much of what the pins leave of the budget a summary may take.
        least_saved: How much of a request a summary must save, as a share; one that saves less is
            not used.
        verify: Whether a model is asked a second time, for what its summary lacks.
        on_failure: What replaces messages whose summary failed: `marker`, the line of `window`;
            `keep`, the messages, as far as they fit; `raise`, the error.
        cooldown: How many messages must have been added until a summary is tried again after one
            that failed or saved too little.
        nudge_at: After how many equal tool calls with equal results in a turn the model is warned;
            0: never.
        stop_at: From how many on the turn is ended; 0: never.
        max_messages: The number of messages from which on `messages` leaves some out; 0: never.

    Raises:
        InvalidInput: A value is invalid.
    """

    strategy: Strategy = "summary"
    trigger: Trigger | None = None
    target: float = 0.75
    floor: float = 0.6
    keep_recent_messages: int = 20
    tool_output_trim_chars: int = 2_000
    offload: bool = False
    protected_tokens: int = 50_000
    least_offload_tokens: int = 30_000
    thoughts: Literal["turn", "compaction", "never"] = "turn"
    summary_share: float = 0.2
    least_saved: float = 0.2
    verify: bool = True
    on_failure: Literal["marker", "keep", "raise"] = "marker"
    cooldown: int = 6
    nudge_at: int = 3
    stop_at: int = 6
    max_messages: int = 40

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            if (value := getattr(self, name)) not in choices:
                raise InvalidInput(
                    f"{name} must be one of {', '.join(map(repr, choices))}, not {value!r}"
                )
        for name in _COUNTS:
            if type(value := getattr(self, name)) is not int or value < 0:
                raise InvalidInput(f"{name} must be a whole number of 0 or more, not {value!r}")
        for name in _SHARES:
            if not _is_number(value := getattr(self, name)) or not 0 <= value <= 1:
                raise InvalidInput(f"{name} must be a share from 0 to 1, not {value!r}")
        if not 0 < self.floor <= self.target:
            raise InvalidInput(f"`floor` ({self.floor}) must not exceed `target` ({self.target})")
        if self.nudge_at and self.stop_at and self.stop_at < self.nudge_at:
            raise InvalidInput(
                f"`stop_at` ({self.stop_at}) must not be below `nudge_at` ({self.nudge_at})"
            )
        conditions_of(self.trigger)

    @classmethod
    def of(cls, policy: ContextPolicy | None) -> ContextPolicy:
        """The policy that a caller passed; the default for None.

        Raises:
            InvalidInput: It is invalid.
        """
        if policy is not None and not isinstance(policy, ContextPolicy):
            raise InvalidInput(
                "policy must be a ContextPolicy, like ContextPolicy(strategy='window'), not"
                f" {policy!r}"
            )
        return policy or ContextPolicy()

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """The policy that settings describe; `ContextPolicy()` for default settings.

        Fields without a setting (`trigger`, `target`, `on_failure`, …) have their defaults.
        """
        offloaded = settings.tool_output_offload_tokens
        changed: dict[str, Any] = (
            {"offload": True, "least_offload_tokens": offloaded} if offloaded else {}
        )
        if not settings.detect_loops:
            changed |= {"nudge_at": 0, "stop_at": 0}
        return cls(
            strategy=settings.strategy,
            keep_recent_messages=settings.keep_recent_messages,
            tool_output_trim_chars=settings.tool_output_trim_chars,
            protected_tokens=settings.tool_output_protected_tokens,
            thoughts="turn" if settings.strip_thoughts else "never",
            verify=settings.verify_summary,
            max_messages=settings.max_history_messages,
            **changed,
        )

    def aim(self, tokens: int, messages: int, limit: int, *, forced: bool = False) -> Aim | None:
        """The size to which a request of so many tokens is cut; None if it may be sent as it is.

        It may cost `limit`.

        It comes down to a share of whatever it has passed, so that it has some way to go until it
        is passed again.
        """
        met = [
            group
            for group in conditions_of(self.trigger)
            if all(_measured(name, tokens, messages, limit) >= least for name, least in group)
        ]
        if not (met or forced or tokens > limit):
            return None
        sizes = [
            int(least * limit if name == "fraction" else least)
            for group in met
            for name, least in group
            if name != "messages"
        ]
        counts = [int(least) for group in met for name, least in group if name == "messages"]
        passed = min([limit, *sizes, *([tokens * 2 // 3] if forced else [])])
        most = max(int(min(counts) * self.target), 1) if counts else None
        return Aim(
            int(passed * self.target),
            int(passed * self.floor) if most is None and not forced else 0,
            most,
        )


@dataclass(frozen=True, slots=True)
class Aim:
    """What a request is to come down to.

    Attributes:
        tokens: What it costs at most.
        floor: What it costs at least, if there is enough to show.
        messages: How many messages it has at most; None: as many as fit.
    """

    tokens: int
    floor: int
    messages: int | None = None


def _measured(name: str, tokens: int, messages: int, limit: int) -> float:
    if name == "fraction":
        return tokens / limit if limit > 0 else float("inf")
    return tokens if name == "tokens" else messages


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def conditions_of(trigger: Any) -> list[list[tuple[str, float]]]:
    """A trigger as alternatives, each of conditions that must all hold.

    Raises:
        InvalidInput: It is not a trigger.
    """
    if trigger is None:
        return []
    if isinstance(trigger, Mapping):
        alternatives = [list(trigger.items())] if trigger else []
    elif isinstance(trigger, tuple | list) and len(trigger) == 2 and isinstance(trigger[0], str):
        alternatives = [[(trigger[0], trigger[1])]]
    elif isinstance(trigger, Sequence) and not isinstance(trigger, str):
        return [group for part in trigger for group in conditions_of(part)]
    else:
        raise InvalidInput(
            "a trigger must be like ('tokens', 4000), ('messages', 40) or ('fraction', 0.8), not"
            f" {trigger!r}"
        )
    for name, least in (condition for group in alternatives for condition in group):
        if name not in MEASURES or not _is_number(least) or not 0 < least < inf:
            raise InvalidInput(
                "a trigger must be like ('tokens', 4000), ('messages', 40) or ('fraction', 0.8),"
                f" not ({name!r}, {least!r})"
            )
    return alternatives
