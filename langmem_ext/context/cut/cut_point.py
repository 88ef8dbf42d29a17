"""Which messages are left out, and which tool outputs shortened, so that a request fits. Pure.

Old tool outputs go first, oldest before newest, and the last of them only as far as is needed. If
that is not enough, the thread is cut: the newest messages are shown, whole turns where that leaves
enough, else whole rounds of tool calls: enough of the budget, and as many messages as are to be
kept. The latest round of tool calls stays word for word if it fits at all.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

from langchain_core.messages import HumanMessage, ToolMessage

from langmem_ext.context.budget.budget import scaled
from langmem_ext.context.cut.view import ThreadView
from langmem_ext.context.decisions import ContextEvent, Decisions
from langmem_ext.context.tool_output.tool_output import READ_TOOL, plan_offload, trimmed
from langmem_ext.messages.pairing import safe_boundaries
from langmem_ext.messages.text import text_of

LEAST_SAVED: Final = 32
"""Tokens: an output that would be shorter by less is left as it is."""

LEAST_SHOWN: Final = 60
"""Tokens: an output of which there is no room for more is not shown with its round."""

TRIES: Final = 8
CLOSE: Final = 0.95
"""How near to its room an output is cut down, and in how many attempts at most."""


@dataclass(frozen=True, slots=True)
class Room:
    """What a request may cost, in tokens of messages alone.

    Attributes:
        limit: At most.
        target: What it takes after something was left out, at most.
        floor: And at least, if there is enough to show.
        text: Of it, what may replace the messages left out.
        recent: Where the messages begin that are all shown if the target lets them.
        most: How many messages it has at most; None: as many as fit.
    """

    limit: int
    target: int
    floor: int
    text: int
    recent: int
    most: int | None = None


@dataclass(frozen=True, slots=True)
class PlannedCut:
    """A cut that is planned.

    Attributes:
        start: The first message that is shown again; where the shown part begins already, only
            outputs are cut down.
        kept: Those before it that are shown.
        events: What is cut down of the outputs that are shown.
    """

    start: int
    kept: tuple[int, ...]
    events: tuple[ContextEvent, ...] = ()


# -- old tool outputs ------------------------------------------------------------------------------


def plan_outputs(
    thread: ThreadView, decisions: Decisions, over: int, limit: int, end: int
) -> list[ContextEvent]:
    """How old tool outputs are shortened so that a request costs `over` tokens less, if possible.

    The messages from `end` on, the last two, and the latest round of tool calls stay as they are.
    """
    chars = thread.policy.tool_output_trim_chars
    shown = range(thread.start(decisions), min(thread.latest_round, len(thread) - 2))
    old = [
        at
        for at in shown
        if isinstance(thread.messages[at], ToolMessage) and not _is_cut_down(thread, at, decisions)
    ]
    before = bisect_left(old, end)
    events, saved = (
        _offloads(thread, decisions, old, before, limit) if thread.policy.offload else ([], 0)
    )
    if not chars:
        return events
    for at in old[:before]:
        if saved >= over:
            break
        if any(event["at"] == thread.key(at) for event in events):
            continue
        full = thread.cost(at, decisions)
        size = max(chars, _length_that_costs(thread, at, full - (over - saved)))
        less = full - _cost_of(thread, at, size)
        if less > LEAST_SAVED:
            events.append({"kind": "trim", "at": thread.key(at), "chars": size})
            saved += less
    return events


def _offloads(
    thread: ThreadView, decisions: Decisions, old: Sequence[int], before: int, limit: int
) -> tuple[list[ContextEvent], int]:
    """The first `before` of some outputs, as far as they are offloaded, and what that saves."""
    policy = thread.policy
    costs = [thread.cost(at, decisions) for at in old]
    outputs = [thread.messages[at] for at in old]
    protected, least = (
        scaled(policy.protected_tokens, limit),
        scaled(policy.least_offload_tokens, limit),
    )
    exempt = (READ_TOOL,)
    chosen = plan_offload(
        outputs, costs, protected_tokens=protected, least_tokens=least, exempt=exempt, before=before
    )
    events: list[ContextEvent] = [
        {"kind": "offload", "at": thread.key(old[place])} for place in chosen
    ]
    after = decisions.and_then(events)
    return events, sum(costs[place] - thread.cost(old[place], after) for place in chosen)


def _is_cut_down(thread: ThreadView, at: int, decisions: Decisions) -> bool:
    key = thread.key(at)
    return key in decisions.trims or key in decisions.offloads


def _length_that_costs(thread: ThreadView, at: int, wanted: int) -> int:
    """About how many characters of an output cost `wanted` tokens."""
    return int(
        _length(thread, at)
        * max(wanted, 0)
        / max(thread.counter.count(thread.messages[at]), 1)
        * 0.95
    )


def _length_within(thread: ThreadView, at: int, tokens: int) -> int:
    """How many characters of an output cost so many tokens at most, and nearly so many."""
    low, high, chars = 1, _length(thread, at), max(_length_that_costs(thread, at, tokens), 1)
    for _ in range(TRIES):
        cost = _cost_of(thread, at, chars)
        low, high = (chars, high) if cost <= tokens else (low, chars)
        if tokens * CLOSE <= cost <= tokens or high - low <= 1:
            break
        # A text's tokens are not spread evenly over it, but more evenly near a place that was
        # measured.
        chars = min(max(int(chars * tokens * (1 + CLOSE) / 2 / max(cost, 1)), low + 1), high - 1)
    return low


def _length(thread: ThreadView, at: int) -> int:
    content: Any = thread.messages[at].content
    return (
        len(content)
        if isinstance(content, str)
        else max(len(text_of(content)), len(str(content)) // 2)
    )


def _cost_of(thread: ThreadView, at: int, chars: int) -> int:
    message = thread.messages[at]
    assert isinstance(message, ToolMessage)
    return thread.counter.count(trimmed(message, chars))


# -- where a thread is cut -------------------------------------------------------------------------


def plan_cut(
    thread: ThreadView, decisions: Decisions, room: Room, important: Iterable[Sequence[int]] = ()
) -> PlannedCut | None:
    """Where the thread is cut so that the request fits; None if it fits nowhere.

    Args:
        thread: The thread.
        decisions: What holds; outputs that are cut down cost what is shown of them.
        room: What the request may cost.
        important: Messages that stay, each with what it cannot be sent without, newest first, as
            far as a quarter of the room goes.
    """
    old = thread.start(decisions)
    costs = [thread.cost(at, decisions) for at in range(old, len(thread))]
    tail = [*accumulate(reversed(costs), initial=0)][::-1]
    pins = _Pins(
        thread, decisions, old, costs, _within(thread, decisions, important, room.limit // 4)
    )
    places = [old + at for at in safe_boundaries(thread.messages[old:])]
    sizes = {at: tail[at - old] + pins.before(at) for at in places}
    most = len(thread) if room.most is None else room.most - (1 if room.text else 0)
    later = {at: size for at, size in sizes.items() if pins.leave_out(old, at)}
    few = {at: size for at, size in later.items() if len(thread) - at + len(pins.at(at)) <= most}
    if 0 < room.limit < sizes.get(thread.latest_round, 0) + room.text and not (
        few and max(few) < thread.latest_round
    ):
        squeezed = _squeezed(
            thread,
            decisions,
            room,
            pins,
            {at: size for at, size in sizes.items() if at < len(thread)},
        )
        if squeezed is not None:
            return squeezed
    # A cut that leaves too many messages whatever it does leaves as few as it can.
    start = _start(thread, few or later, room, room.recent if few else len(thread))
    if start is not None:
        return _fuller(thread, decisions, room, pins, PlannedCut(start, pins.at(start)), sizes)
    return _squeezed(thread, decisions, room, pins, sizes)


class _Pins:
    """Which messages before a cut stay, and what they cost."""

    def __init__(
        self,
        thread: ThreadView,
        decisions: Decisions,
        old: int,
        costs: Sequence[int],
        important: frozenset[int],
    ) -> None:
        self._costs = {
            at: costs[at - old] if at >= old else thread.cost(at, decisions)
            for at in thread.pinned | important
        }
        self._places = sorted(self._costs)
        self._sums = [*accumulate((self._costs[at] for at in self._places), initial=0)]
        self._were = any(at not in self._costs for at in thread.before(old, decisions))

    def at(self, start: int) -> tuple[int, ...]:
        return tuple(self._places[: bisect_left(self._places, start)])

    def before(self, start: int) -> int:
        return self._sums[bisect_left(self._places, start)]

    def leave_out(self, old: int, start: int) -> bool:
        """Whether a cut at `start` leaves out more than one at `old`, or the latest user turn."""
        return self._were or start - old > bisect_left(self._places, start) - bisect_left(
            self._places, old
        )


def _within(
    thread: ThreadView, decisions: Decisions, important: Iterable[Sequence[int]], tokens: int
) -> frozenset[int]:
    kept = set[int]()
    for places in important:
        tokens -= sum(thread.cost(at, decisions) for at in places)
        if tokens < 0:
            break
        kept.update(places)
    return frozenset(kept)


def _start(thread: ThreadView, sizes: dict[int, int], room: Room, recent: int) -> int | None:
    """The first message that is sent: of a turn if whole turns are enough, else of a round.

    The latest round is sent if it fits at all.

    Enough are those that take up the floor, with all that are recent; where these do not fit, as
    many as do.
    """
    newest = (
        thread.latest_round
        if sizes.get(thread.latest_round, room.limit + 1) <= room.limit
        else len(thread)
    )
    fits = [at for at, size in sizes.items() if size + room.text <= room.target and at <= newest]
    full = [at for at in fits if sizes[at] >= room.floor]
    enough = [at for at in full if at <= recent]
    turns = [
        at
        for at in enough or full
        if at < len(thread) and isinstance(thread.messages[at], HumanMessage)
    ]
    if enough:
        return max(
            turns or enough
        )  # the fewest messages that are enough: the longest way until something is left out again
    if full:
        return min(turns if turns and room.floor else full)
    if fits:
        return min(fits)
    over = [at for at, size in sizes.items() if size + room.text <= room.limit and at <= newest]
    return max(over) if over else newest if newest < len(thread) else None


def _fuller(
    thread: ThreadView,
    decisions: Decisions,
    room: Room,
    pins: _Pins,
    cut: PlannedCut,
    sizes: dict[int, int],
) -> PlannedCut:
    """The cut, or one a round earlier with shortened outputs, if too little would be sent."""
    earlier = max((at for at in sizes if at < cut.start), default=None)
    if (
        sizes[cut.start] >= room.floor
        or earlier is None
        or not thread.policy.tool_output_trim_chars
    ):
        return cut
    over = sizes[earlier] + (room.text if pins.leave_out(thread.start(decisions), earlier) else 0)
    events = plan_squeeze(thread, decisions, range(earlier, cut.start), over - room.target)
    if events is None:
        # Nothing of it can be cut down: it is shown as it is, if it fits.
        events = [] if over <= room.limit else None
    return (
        cut
        if events is None
        else PlannedCut(earlier, tuple(at for at in cut.kept if at < earlier), tuple(events))
    )


def _squeezed(
    thread: ThreadView, decisions: Decisions, room: Room, pins: _Pins, sizes: dict[int, int]
) -> PlannedCut | None:
    """The latest round with its outputs shortened; without it if too long; None if nothing fits."""
    for start in (thread.latest_round, len(thread)):
        if start not in sizes:
            continue
        text = room.text if pins.leave_out(thread.start(decisions), start) else 0
        for most in (room.target, room.limit):
            events = plan_squeeze(
                thread, decisions, range(start, len(thread)), sizes[start] + text - most
            )
            if events is not None:
                return PlannedCut(start, pins.at(start), tuple(events))
    return None


def plan_squeeze(
    thread: ThreadView, decisions: Decisions, among: Iterable[int], over: int
) -> list[ContextEvent] | None:
    """How these outputs are shortened so that they cost `over` tokens less; None if they cannot.

    The largest give first, down to a level that is the same for all.
    """
    if over <= 0:
        return []
    costs = {
        at: thread.cost(at, decisions)
        for at in among
        if isinstance(thread.messages[at], ToolMessage)
    }
    level = _level(list(costs.values()), over)
    if level < LEAST_SHOWN:
        return None
    events: list[ContextEvent] = []
    saved = 0
    for at, full in ((at, full) for at, full in costs.items() if full > level):
        chars = _length_within(thread, at, level)
        saved += full - _cost_of(thread, at, chars)
        events.append({"kind": "trim", "at": thread.key(at), "chars": chars})
    return events if saved >= over else None


def _level(costs: Sequence[int], over: int) -> int:
    """The level to which the highest costs must fall to save `over` in all; 0 if they cannot."""
    highest = [*sorted(costs, reverse=True), 0]
    for count in range(1, len(highest)):
        gives = sum(highest[:count]) - highest[count] * count
        if over <= gives:
            return highest[count] + (gives - over) // count
    return 0
