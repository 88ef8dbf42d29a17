"""What to leave out of one request until it fits: old outputs first, then old messages.

Pure: texts are asked for.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

from langchain_core.messages import SystemMessage

from langmem_ext.context.cut.cut_point import PlannedCut, Room, plan_cut, plan_outputs
from langmem_ext.context.cut.head_tail import plan_old_outputs, plan_zoned_cut
from langmem_ext.context.cut.stand_in import MARKER_TOKENS, LeftOut, Replacement, known, marker
from langmem_ext.context.cut.view import Request, ThreadView
from langmem_ext.context.decisions import ContextEvent, Decisions
from langmem_ext.context.policy import Aim
from langmem_ext.context.summary.summary import saves_enough
from langmem_ext.messages.annotations import notes_of

LEAST_GAIN: Final = 0.1
"""Of a request that would fit: what saves less is not done."""

CLOSE: Final = 1.05
"""By how much a request may miss what it is to come down to, if it does so with nothing left out
but parts of outputs."""

ATTEMPTS: Final = 5
"""How often a request is planned again, with less room, because what mending adds to it was not
planned for."""

Relieving: TypeAlias = Generator[LeftOut, Replacement, list[ContextEvent]]
"""Steps that ask what shall replace messages, and return what is decided."""


class Relief:
    """The search for what to leave out of one request."""

    def __init__(
        self,
        thread: ThreadView,
        decisions: Decisions,
        now: Request,
        limit: int,
        aim: Aim,
        params: Mapping[str, Any],
        *,
        forced: bool = False,
    ) -> None:
        self._thread = thread
        self._decisions = decisions
        self._now = now
        self._limit = limit
        self._known = known(params)
        self._aim = aim
        self._forced = forced
        self._must = now.tokens > limit
        policy = thread.policy
        share = 0 if policy.strategy == "window" else policy.summary_share
        free = aim.tokens - sum(thread.cost(at, decisions) for at in thread.pinned)
        self._known_tokens = thread.counter.count_text(self._known) if self._known else 0
        self._longest = self._text = max(int(free * share), MARKER_TOKENS) + self._known_tokens
        # Who asks for a compaction wants what can be left out to be left out.
        self._recent = len(thread) if forced else thread.recent

    def reduced(self) -> Relieving:
        """What is decided: old outputs cut down, and if that is not enough, a cut.

        The newest messages stay word for word if older ones can give enough: a cut before them
        comes before cutting their outputs down.
        """
        thread, thoughts = self._thread, self._thoughts()
        older = thread.start(self._decisions) < self._recent < len(thread)
        for recent in (self._recent, len(thread)) if older else (len(thread),):
            over = self._now.tokens - self._aim.tokens
            outputs = plan_outputs(
                thread, self._decisions.and_then(thoughts), over, self._limit, recent
            )
            events = [*thoughts, *outputs]
            light = self._decisions.and_then(events)
            if self._enough(thread.request(light)):
                return events
            cut = self._cut(light)
            if cut is not None and self._shows(cut, recent) and self._worth(light, cut):
                break
        else:
            return events
        if not self._covered(light, cut):
            return [*events, *cut.events]
        return events + (yield from self._with_text(light, cut))

    def _enough(self, request: Request) -> bool:
        """Whether a request with nothing left out but parts of outputs has come down far enough."""
        aim = self._aim
        fits = request.tokens <= min(aim.tokens * CLOSE, self._limit)
        return fits and (aim.messages is None or len(request.messages) <= aim.messages)

    def by_count(self) -> Relieving:
        """What the strategy by number of messages decides, whatever the request costs."""
        events = plan_old_outputs(self._thread, self._decisions)
        light = self._decisions.and_then(events)
        cut = plan_zoned_cut(self._thread, light)
        return events if cut is None else events + (yield from self._with_text(light, cut))

    def compacted(self) -> Relieving:
        """What a compaction decides: only system messages and an open question stay."""
        thread, last = self._thread, len(self._thread) - 1
        end = last if thread.latest_user == last else last + 1
        systems = [
            at
            for at in sorted(thread.pinned)
            if at < end and isinstance(thread.messages[at], SystemMessage)
        ]
        cut = PlannedCut(end, tuple(systems))
        if not self._unread(self._decisions, cut):
            return []
        return (yield from self._with_text(self._decisions, cut, compact=True))

    def pins_alone(self) -> list[ContextEvent]:
        """What is decided where nothing else fits: only what must be shown is."""
        cut = PlannedCut(len(self._thread), tuple(sorted(self._thread.pinned)))
        return (
            [self._event(self._decisions, cut, Replacement("", "marker"))]
            if len(self._thread)
            else []
        )

    def _thoughts(self) -> list[ContextEvent]:
        thread = self._thread
        end = thread.strippable(self._decisions) if thread.policy.thoughts == "compaction" else 0
        return [{"kind": "thoughts", "through": thread.key(end - 1)}] if end else []

    # -- the cut

    def _cut(self, decisions: Decisions) -> PlannedCut | None:
        """A cut that fits with its text and is valid; its text is shortened if need be."""
        cuts: list[tuple[int, PlannedCut]] = []
        for text in dict.fromkeys((self._longest, MARKER_TOKENS, 0)):
            less = 0
            for _ in range(ATTEMPTS):
                cut = plan_cut(self._thread, decisions, self._room(text, less), self._important())
                if cut is None:
                    break
                over = self._size(decisions, cut) + text - self._limit
                if over <= 0:
                    cuts.append((text, cut))
                    break
                less += over
            if cuts and self._shows(cuts[-1][1], self._thread.latest_round):
                break
        if not cuts:
            return None
        self._text, cut = (
            cuts[-1] if self._shows(cuts[-1][1], self._thread.latest_round) else cuts[0]
        )
        return cut

    def _shows(self, cut: PlannedCut, at: int) -> bool:
        """Whether all messages from there on are shown word for word."""
        keys = {self._thread.key(place) for place in range(at, len(self._thread))}
        return at == len(self._thread) or (
            cut.start <= at and not any(event["at"] in keys for event in cut.events)
        )

    def _room(self, text: int, less: int) -> Room:
        limit, aim = self._limit - less, self._aim
        return Room(
            limit, min(aim.tokens - less, limit), aim.floor, text, self._recent, aim.messages
        )

    def _important(self) -> list[tuple[int, ...]]:
        """The positions of important messages, each with those it depends on, newest first."""
        if self._thread.policy.strategy != "hybrid":
            return []
        messages = self._thread.messages
        marked = [
            at
            for at in range(len(messages) - 1, -1, -1)
            if notes_of(vars(messages[at])).get("important") is True
        ]
        return list(dict.fromkeys(map(self._thread.whole, marked)))

    def _size(self, decisions: Decisions, cut: PlannedCut) -> int:
        if not self._covered(decisions, cut):
            return self._thread.request(decisions.and_then(cut.events)).tokens
        return self._tokens(decisions, cut, Replacement("", "marker"))

    def _worth(self, decisions: Decisions, cut: PlannedCut) -> bool:
        """Whether the cut leaves out enough, or anything at all if the request must be cut."""
        gained = self._now.tokens - self._size(decisions, cut) - self._text
        if not self._must and (
            cut.start > self._thread.latest_round
            or (self._forced and cut.start == len(self._thread))
        ):
            # the latest round, or exchange, stays as long as it fits, even if less is asked for
            return False
        return (
            self._must or self._aim.messages is not None or gained >= self._now.tokens * LEAST_GAIN
        )

    # -- what replaces what is cut

    def _with_text(
        self, decisions: Decisions, cut: PlannedCut, *, compact: bool = False
    ) -> Relieving:
        """The cut with its replacement text; with less where it saves too little or is too long."""
        left = self._left_out(decisions, cut)
        replacement = (yield left) if self._text >= MARKER_TOKENS else Replacement("", "marker")
        failed = replacement.failed
        if replacement.by == "keep" and not self._must:
            return self._noted(failed)
        least = self._thread.policy.least_saved
        if replacement.by == "model" and not saves_enough(
            self._now.tokens, self._tokens(decisions, cut, replacement), least
        ):
            if self._forced and not self._must:
                return []  # nothing is gained: it stays as it is
            replacement, failed = marker(left.count), True
        if compact and replacement.by != "marker":
            replacement = replace(replacement, by="compact")
        tried = [
            *([replacement] if replacement.by != "keep" else []),
            marker(left.count),
            Replacement("", "marker"),
        ]
        fits = next(
            (
                candidate
                for candidate in tried
                if self._tokens(decisions, cut, candidate) <= self._limit
            ),
            tried[-1],
        )
        cut = self._refilled(decisions, cut, fits)
        return [*self._noted(failed), *cut.events, self._event(decisions, cut, fits)]

    def _refilled(
        self, decisions: Decisions, cut: PlannedCut, replacement: Replacement
    ) -> PlannedCut:
        """The cut with more shown of its outputs, where the text took less than was kept for it."""
        if not cut.events or self._tokens(decisions, cut, replacement) >= self._aim.floor:
            return cut
        text = self._thread.counter.count_text(replacement.text) + MARKER_TOKENS
        again = plan_cut(
            self._thread, decisions, self._room(min(text, self._text), 0), self._important()
        )
        if (
            again is None
            or (again.start, again.kept) != (cut.start, cut.kept)
            or self._tokens(decisions, again, replacement) > self._limit
        ):
            return cut
        return again

    def _tokens(self, decisions: Decisions, cut: PlannedCut, replacement: Replacement) -> int:
        return self._thread.request(
            decisions.and_then([*cut.events, self._event(decisions, cut, replacement)])
        ).tokens

    def _noted(self, failed: bool) -> list[ContextEvent]:
        return [{"kind": "failed", "at": len(self._thread)}] if failed else []

    def _left_out(self, decisions: Decisions, cut: PlannedCut) -> LeftOut:
        thread, failed = self._thread, decisions.failed
        messages = tuple(thread.messages[at] for at in self._unread(decisions, cut))
        previous = (
            decisions.cut.text if decisions.cut is not None and decisions.cut.by != "marker" else ""
        )
        may = (
            self._forced or failed is None or not 0 <= len(thread) - failed < thread.policy.cooldown
        )
        return LeftOut(
            messages, previous, cut.start - len(cut.kept), self._text - self._known_tokens, may
        )

    def _unread(self, decisions: Decisions, cut: PlannedCut) -> list[int]:
        """The left-out messages that no text replaces yet.

        Where a text failed or had no room, that is all it was to replace.
        """
        if decisions.cut is not None and decisions.cut.by == "marker":
            return [at for at in range(cut.start) if at not in cut.kept]
        return self._covered(decisions, cut)

    def _covered(self, decisions: Decisions, cut: PlannedCut) -> list[int]:
        """The messages that were shown until now and are not any more."""
        thread, old = self._thread, self._thread.start(decisions)
        shown = [*thread.before(old, decisions), *range(old, cut.start)]
        return [at for at in shown if at not in cut.kept]

    def _event(
        self, decisions: Decisions, cut: PlannedCut, replacement: Replacement
    ) -> ContextEvent:
        thread = self._thread
        return {
            "kind": "cut",
            "through": thread.key(cut.start - 1),
            "place": cut.start - 1,
            "kept": [thread.key(at) for at in cut.kept],
            "text": replacement.text,
            "by": replacement.by,
            "known": self._known if replacement.text else "",
            "at": len(thread),
            "covers": [thread.key(at) for at in self._covered(decisions, cut)],
            "dropped": cut.start - len(cut.kept),
        }
