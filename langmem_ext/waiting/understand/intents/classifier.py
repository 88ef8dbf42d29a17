"""What a message asks for: the protocol of classifiers, and the one that works by rules."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime
from itertools import pairwise
from typing import Final, Literal, Protocol, TypeAlias, runtime_checkable

from langchain_core.messages import BaseMessage
from pydantic import JsonValue

from langmem_ext.types import CONFIRMATION
from langmem_ext.waiting.catalog.catalog import Intent, IntentCatalog
from langmem_ext.waiting.catalog.param import Param, ParamType
from langmem_ext.waiting.extract.dates.date import is_birth
from langmem_ext.waiting.extract.english.concepts import phrases_in
from langmem_ext.waiting.extract.reply import LONGEST
from langmem_ext.waiting.sensitive import NOTHING_KNOWN, Known
from langmem_ext.waiting.understand.acts.statements import (
    WISHES,
    asks_back_only,
    tells,
    wants_instead,
)
from langmem_ext.waiting.understand.clauses import (
    MOST,
    Clause,
    clauses_of,
    phrases_of,
    without,
    words_without_values,
)
from langmem_ext.waiting.understand.intents.similarity import IntentIndex, about, without_refusals
from langmem_ext.waiting.understand.values import Reading, sure_values

PATTERN: Final = 0.9
"""Confidence in an intent whose pattern matches."""

CERTAIN: Final = 0.36
"""Confidence from which an intent is taken for what the message asks for."""

CERTAIN_TO_ACT: Final = 0.5
"""The same where nothing is confirmed before a tool runs, and another is worth a question."""

CERTAIN_WHILE_WAITING: Final = 0.5
"""The same while a question waits: an answer that is like an example is still an answer first."""

CERTAIN_BESIDE_FREE_WORDS: Final = 0.7
"""The same where the answer may be in any words."""

DIGRESSION: Final = 0.15
"""How much less it takes where the message says that it speaks of something else."""

AHEAD: Final = 0.2
"""How far ahead of the request that runs another one must be."""

CERTAIN_OF_SEVERAL: Final = 0.36
"""The same for each of several requests in one message."""

CERTAIN_WHEN_TOLD: Final = 0.6
"""The same for what a message only tells, before it asks for another thing as well."""

CERTAIN_WHEN_ANSWERED: Final = 0.8
"""The same for a message that answers the question."""

CERTAIN_AT_CONFIRMATION: Final = 0.72
"""The same while a confirmation waits, of which nothing may be taken for what it is not."""

GUESS: Final = 0.02
"""Confidence from which an intent is worth a question."""

OFFERED: Final = 3
"""Intents that a user is asked to choose from, at most."""

WORTH_A_QUESTION: Final = 0.2
"""How far from the likeliest intent another is still worth a question."""

MARGIN: Final = 0.06
"""How far an intent must be ahead of the next: closer ones are a tie, and a tie is not decided."""

VALUE: Final = 0.1
"""What each value of a message adds to a possible intent that takes it."""

PART: Final = 0.9
"""What the likeness of one clause of a message is worth."""

FORM: Final = 0.07
"""How much the form of a clause counts: who asks wants an answer, who wishes wants something
done."""


@dataclass(frozen=True, slots=True)
class ClassifyRequest:
    """A user's message and what is known when it arrives.

    Attributes:
        text: The message.
        catalog: What users can ask for.
        history: The latest messages before it, oldest first; may be empty.
        params: Values known already, by parameter.
        waiting_for: The parameter that is being asked for.
        prompt: The question that is waiting; empty when none is.
        now: When the message was written.
        values: The spans of values in the message, as `[start, end)` offsets. An intent's words are
            looked for besides them; patterns see the whole message.
        param_spans: Where the message may hold a value of a parameter, by parameter: they speak for
            the intents that take them.
        running: The intent of the request that runs.
        answered: Whether the message holds a certain answer to the question.
        among: The intents to choose from; empty: all of the catalog.
        unread: Whether a question waits and the rules could not read the message: a model may.
        local: Parameters whose values no model may see.
        summary: What was said before `history`, in short; empty where it was not summarised.
        known: The sensitive values that are known: no model may see them, whatever they are said
            for.
    """

    text: str
    catalog: IntentCatalog
    _: KW_ONLY
    history: Sequence[BaseMessage] = ()
    params: Mapping[str, JsonValue] = field(default_factory=dict)
    waiting_for: str | None = None
    prompt: str = ""
    now: datetime
    values: Sequence[tuple[int, int]] = ()
    param_spans: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    running: str | None = None
    answered: bool = False
    among: Collection[str] = ()
    unread: bool = False
    local: Collection[str] = ()
    summary: str = ""
    known: Known = NOTHING_KNOWN


Act: TypeAlias = Literal["dontcare", "decline", "ask", "chat", "repeat", "handover", "cancel"]
"""What a message does to the question that waits, besides answering it."""


@dataclass(frozen=True, slots=True)
class Classification:
    """What a message asks for.

    Attributes:
        intent_id: The intent; None if the classifier is not sure.
        params: Values of that intent's parameters in the message. Without an intent, and for a
            request that is `unread`: values of the request that runs.
        confidence: 0 to 1.
        source: Who decided.
        reason: Why, in a few words, for tests and traces; never holds a value.
        also: What else the message asks for, in its order.
        choices: Without an intent: those that fit as well, for a question which of them is meant.
        act: What a message that is `unread` does to the question that waits.
        part: The message without what only other requests of it say; empty where it asks for one.
    """

    intent_id: str | None = None
    params: Mapping[str, JsonValue] = field(default_factory=dict)
    confidence: float = 0.0
    source: Literal["rules", "model"] = "rules"
    reason: str = ""
    also: Sequence[Classification] = ()
    choices: Sequence[str] = ()
    act: Act | None = None
    part: str = ""


@runtime_checkable
class Classifier(Protocol):
    """Decides which intent of the catalog a message asks for; it never raises."""

    def classify(self, request: ClassifyRequest) -> Classification:
        """The intent of the message; none if that is not certain."""
        ...

    async def aclassify(self, request: ClassifyRequest) -> Classification:
        """Async twin of `classify`."""
        ...


@dataclass(frozen=True, slots=True)
class Won:
    """A phrase that asks for one intent clearly.

    Attributes:
        intent_id: The intent.
        score: How well it fits.
        phrase: The phrase.
    """

    intent_id: str
    score: float
    phrase: Clause


def wishes(phrase: Clause) -> bool:
    """Whether a phrase asks or wishes for something in so many words."""
    asks = phrase.text.rstrip().endswith("?") and asks_back_only(phrase.text)
    return phrase.act == "question" or asks or WISHES.search(phrase.text) is not None


_ADDED: Final = re.compile(
    r"\b(?:also|too|as well|besides|after that|on top|another thing|secondly|then)\b", re.IGNORECASE
)
"""Words that add one request to another."""

_AND_FIRST: Final = re.compile(r"\W*(?:(?:and|n|oh|ps|plus|also|but)\b[\s,]*)+", re.IGNORECASE)
"""How a sentence begins that adds something."""

_JOINED: Final = re.compile(r"\band\W*$", re.IGNORECASE)
_ADDED_BEFORE: Final = re.compile(r"\b(?:also|then|plus)\W*$", re.IGNORECASE)
_ADDED_FIRST: Final = re.compile(r"\W*(?:and\s+)?(?:also|then|plus)\b", re.IGNORECASE)


_SEVERAL_THINGS: Final = re.compile(
    r"\b(?:two|2|three|3|a couple of|a few|several) (?:other )?things\b", re.IGNORECASE
)
"""Words that say that more than one thing is asked for."""


def _wished(won: Sequence[Won]) -> str | None:
    """The one intent that the wishes of a message ask for."""
    wished = {
        each.intent_id
        for each in won
        if wishes(each.phrase)
        and not tells(each.phrase.text)
        and each.score >= CERTAIN_WHILE_WAITING
    }
    return wished.pop() if len(wished) == 1 else None


def _led_by_wish(best: list[tuple[str, float]], wished: str | None) -> list[tuple[str, float]]:
    """The ranking, led by what the message wishes for, whatever else it tells."""
    if wished is None or not best or best[0][0] == wished:
        return best
    return [(wished, best[0][1]), *((name, PART * score) for name, score in best if name != wished)]


_CANNOT: Final = re.compile(
    r"\b(?:can(?:no|['’]?)t|can not|won['’]?t|will not|unable to|no longer|could(?:n['’]?t|"
    r" not))\s+(?:\w+\s+)?"
    r"(?:make|come|do|be|attend|manage|get|collect|fetch|pick)\b"
    r"|(?:am|are|is|be|['’]?(?:m|re|s))\s+(?:shut|closed|busy|at work|working|not in)\b"
    r"|\b(?:have|got|has) no time\b"
    r"|\b(?:is|was)\s+(?:down|booked|due|scheduled|set|coming)\b",
    re.IGNORECASE,
)


def _possible(text: str) -> str:
    """The message without what it says is so, or not possible: "I can't make it on monday".

    That holds no value of what it wishes for, but says what it is about: "I can't come for M-100".
    """
    if not _CANNOT.search(text) or not WISHES.search(text):
        return text
    ends = [0, *(joint.start() for joint in _JOINT.finditer(text)), len(text)]
    parts = [Clause(a, b, text[a:b], "say") for a, b in pairwise(ends)]
    ruled_out = [
        part for part in parts if _CANNOT.search(part.text) and not WISHES.search(part.text)
    ]
    return without(text, ruled_out)


_JOINT: Final = re.compile(r"[,;!?\n]|\.(?=\s|$)|\b(?:so|but|and)\b", re.IGNORECASE)


class RuleClassifier:
    """Classifies by the catalog alone: its patterns and its words.

    It abstains when two intents are equally likely.
    """

    def __init__(self) -> None:
        """Make a classifier; it keeps nothing but the words of the catalog it saw last."""
        self._index: tuple[IntentCatalog, IntentIndex] | None = None

    def classify(self, request: ClassifyRequest) -> Classification:
        """The intent of the message; none if that is not certain."""
        parts = _parts(request)
        won = self._won(request, parts)
        if several := self._several(request, won):
            return several
        wished = _wished(won)
        best = _led_by_wish(self.scores(request), wished)
        if not best:
            return Classification(reason="no intent fits")
        (intent_id, score), runner_up = best[0], best[1] if len(best) > 1 else ("", 0.0)
        if score < _needed(request, intent_id, score - runner_up[1]) or (
            request.running
            and not _ends_first(request.text)
            and score < dict(best).get(request.running, 0.0) + AHEAD
            and intent_id != request.running
        ):
            return Classification(
                confidence=score,
                reason="no intent fits well enough",
                choices=_told_apart(request, _choices(request, best), dict(best)),
            )
        if score - runner_up[1] < MARGIN:
            choices = (intent_id, runner_up[0])
            answering = self._answering(request, parts[0], choices)
            if answering is None:
                return Classification(
                    confidence=score,
                    reason="two intents fit as well",
                    choices=_told_apart(request, choices, dict(best)),
                )
            intent_id = answering
        return Classification(
            intent_id,
            find_params(request.catalog.intent(intent_id), request),
            min(score, 1.0),
            reason="it fits best",
        )

    def scores(self, request: ClassifyRequest) -> list[tuple[str, float]]:
        """The score of each intent, highest first: the best of the message and its clauses."""
        whole, *clauses = [self._scores(request, clause) for clause in _parts(request)]
        return _best(
            [
                whole,
                *(
                    {intent_id: PART * score for intent_id, score in scores.items()}
                    for scores in clauses
                ),
            ]
        )

    @staticmethod
    def _answering(request: ClassifyRequest, whole: Clause, choices: Sequence[str]) -> str | None:
        """The one of two intents that only answers, if the message asks and the other acts."""
        answering = [
            intent_id for intent_id in choices if not request.catalog.intent(intent_id).tool
        ]
        return answering[0] if whole.act == "question" and len(answering) == 1 else None

    def _won(self, request: ClassifyRequest, parts: Sequence[Clause]) -> list[Won]:
        """The phrases of a message that ask for one intent clearly, in order.

        A phrase that only tells something asks for nothing.
        """
        won: list[Won] = []
        for clause in (parts[1:] or parts)[:MOST]:
            phrases = phrases_of(clause)[:MOST]
            by_phrase = (
                [winner for phrase in phrases if (winner := self._winner(request, phrase))]
                if len(phrases) > 1
                else []
            )
            whole = (
                self._winner(request, clause)
                if len(parts) > 1 and len({winner.intent_id for winner in by_phrase}) < 2
                else None
            )
            won += [whole] if whole else by_phrase
        return won

    def _winner(self, request: ClassifyRequest, phrase: Clause) -> Won | None:
        """The one intent that a phrase asks for clearly."""
        ranked = _best([self._scores(request, phrase)])
        ahead = ranked[0][1] - (ranked[1][1] if len(ranked) > 1 else 0.0) if ranked else 0.0
        clear = ranked and ranked[0][1] >= CERTAIN_OF_SEVERAL and ahead >= 2 * MARGIN
        return Won(ranked[0][0], ranked[0][1], phrase) if clear else None

    def _several(self, request: ClassifyRequest, won: Sequence[Won]) -> Classification | None:
        """The requests of a message that asks for several things; None if it does not.

        Each has the values of its own part of the message.
        """
        wanted = [
            name
            for name in dict.fromkeys(
                each.intent_id for each in won if self._is_wanted(request, each, won)
            )
            if name != request.running
        ]
        if len(wanted) < 2:
            return None
        won = [each for each in won if each.intent_id in wanted]
        classifications = []
        for intent_id in wanted:
            others = [each.phrase for each in won if each.intent_id != intent_id]
            text = without(request.text, _reaching(request, others, won, intent_id))
            intent = request.catalog.intent(intent_id)
            apart = without(request.text, [_sentence(request.text, other) for other in others])
            params = {
                name: value
                for name, value in find_params(intent, replace(request, text=apart)).items()
                if _is_of_all(request.catalog.params[name])
            } | find_params(intent, replace(request, text=text))
            score = max(each.score for each in won if each.intent_id == intent_id)
            classifications.append(
                Classification(
                    intent_id, params, min(score, 1.0), reason="its clause fits best", part=text
                )
            )
        if _SEVERAL_THINGS.search(request.text) or not _DIFFERENT.search(request.text):
            classifications = [
                replace(
                    classification,
                    params={
                        **_shared(request.catalog, classification, classifications),
                        **classification.params,
                    },
                )
                for classification in classifications
            ]
        return replace(classifications[0], also=classifications[1:])

    def _is_wanted(self, request: ClassifyRequest, candidate: Won, won: Sequence[Won]) -> bool:
        """Whether a phrase is a request of its own.

        It wishes, says what to do, or tells what "and also …" adds to.
        """
        begins = _AND_FIRST.match(candidate.phrase.text)
        joined = (begins or _JOINED.search(request.text, 0, candidate.phrase.start)) and any(
            each.phrase.start < candidate.phrase.start for each in won
        )
        last = max(each.phrase.end for each in won)
        followed = (
            any(each.phrase.start > candidate.phrase.start for each in won)
            and _ADDED.search(request.text, candidate.phrase.end, last) is not None
        )
        continued = (candidate.score >= CERTAIN_WHILE_WAITING and followed) or (
            candidate.score >= CERTAIN_WHEN_TOLD and bool(joined and begins)
        )
        if _SEVERAL_THINGS.search(request.text) and candidate.score >= CERTAIN_WHILE_WAITING:
            return True
        if tells(candidate.phrase.text):
            return continued or (candidate.score >= CERTAIN_WHEN_TOLD and bool(joined))
        if continued:
            return True
        added = _ADDED_FIRST.match(candidate.phrase.text) or _ADDED_BEFORE.search(
            request.text, 0, candidate.phrase.start
        )
        if (
            added is None
            and candidate.score >= CERTAIN_WHEN_TOLD
            and any(wishes(each.phrase) for each in won)
        ):
            added = _JOINED.search(
                request.text, 0, candidate.phrase.start
            )  # "a meal and an extra bag, please"
        opens = candidate.score >= CERTAIN_WHILE_WAITING and self._words(request.catalog).opens(
            candidate.intent_id, candidate.phrase.text
        )
        return wishes(candidate.phrase) or added is not None or opens

    async def aclassify(self, request: ClassifyRequest) -> Classification:
        """Async twin of `classify`."""
        return self.classify(request)

    def _scores(self, request: ClassifyRequest, clause: Clause) -> dict[str, float]:
        """How likely each intent is for a clause."""
        index = self._words(request.catalog)
        text = without_refusals(clause.text)
        spans = [
            (start - clause.start, end - clause.start)
            for start, end in request.values
            if start < clause.end and clause.start < end
        ]
        words = words_without_values(
            clause.text,
            _besides_phrases(clause.text, [(max(start, 0), end) for start, end in spans]),
        )
        spans_by_param = {
            name: span
            for name, span in request.param_spans.items()
            if span[0] < clause.end and clause.start < span[1]
        }
        wish = _WISHED_VERB.search(clause.text)
        begun = index.begun_by(wish["verb"]) if wish else None
        scores: dict[str, float] = {}
        for intent in request.catalog.intents:
            if request.among and intent.id not in request.among:
                continue
            asks = (  # whoever asks may name what would be needed, and not want it
                clause.act == "question" and bool(intent.tool) and not _is_asked_for(intent)
            )
            likeness = index.score(intent.id, words, {} if asks else spans_by_param)
            if likeness:
                likeness += _form(intent, clause) + (2 * FORM if begun == intent.id else 0.0)
            scores[intent.id] = _score(intent, text, likeness)
        return scores

    def _words(self, catalog: IntentCatalog) -> IntentIndex:
        if self._index is None or self._index[0] is not catalog:
            self._index = (catalog, IntentIndex(catalog))
        return self._index[1]


_WISHED_VERB: Final = re.compile(
    r"\b(?:(?:i|we)(?:['’]?d| would)? (?:like|love|want|need|wish) to|(?:i|we) wanna"
    r"|(?:can|could|may) (?:i|we|you|u)(?: please)?|please|pls|let me|(?:to|and))"
    r"\s+(?P<verb>[a-z]{3,})\b",
    re.IGNORECASE,
)
"""What somebody wishes to do."""


_DIFFERENT: Final = re.compile(
    r"\b(?:an)?other\b(?!\s*[£$€\d])|\b(?:different|second|new)\b", re.IGNORECASE
)
"""Words that tell the things of two requests apart."""

_OF_ALL: Final = frozenset(
    {ParamType.IDENTIFIER, ParamType.EMAIL, ParamType.PHONE, ParamType.PERSON}
)
"""Types of values that are those of every request in a message: "2 things for ZKR551: a meal, and a
bag"."""


def _is_of_all(param: Param) -> bool:
    """Whether a value says who asks, or what it is about: it holds for all that is asked for."""
    return param.type in _OF_ALL or is_birth(param)


_SAME_DAY: Final = re.compile(
    r"\b(?:the|that|on) same (?:day|date)\b|\b(?:for|on) that day\b", re.IGNORECASE
)
"""Words for the day of the other request."""

_SENTENCE_END: Final = re.compile(r"[.!?\n](?=\s|$)")


def _sentence(text: str, phrase: Clause) -> Clause:
    """A phrase up to the end of its sentence."""
    end = _SENTENCE_END.search(text, phrase.end - 1)
    return replace(phrase, end=end.start() if end else len(text))


def _shared(
    catalog: IntentCatalog,
    classification: Classification,
    classifications: Sequence[Classification],
) -> dict[str, JsonValue]:
    """The values of the other requests that are this one's, too."""
    names = [
        name
        for name in catalog.intent(classification.intent_id or "").param_names
        if name in catalog.params
    ]
    taken = [name for name in names if _is_of_all(catalog.params[name])]
    shared = {
        name: other.params[name]
        for name in taken
        for other in classifications
        if name in other.params
    }
    days = [name for name in names if catalog.params[name].type is ParamType.DATE]
    said = {
        value
        for other in classifications
        if other is not classification
        for name, value in other.params.items()
        if catalog.params[name].type is ParamType.DATE
    }
    if len(days) == len(said) == 1 and _SAME_DAY.search(classification.part):
        shared[days[0]] = said.pop()
    return shared


def _besides_phrases(text: str, spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans of values without an overlapping phrase: "left my" of "i left my scarf"."""
    ends = [(start, end) for start, end, _ in phrases_in(text.lower())]
    return [
        (max([start, *(stop for begin, stop in ends if begin < start < stop)]), end)
        for start, end in spans
    ]


def _needed(request: ClassifyRequest, intent_id: str, ahead: float) -> float:
    """The confidence that an intent needs that is so far ahead of the next."""
    if request.waiting_for is None:
        intent = request.catalog.intent(intent_id)
        acts = intent.tool and request.catalog.confirm_question(intent) is None
        unsure = acts and ahead < WORTH_A_QUESTION and not request.among
        return CERTAIN_TO_ACT if unsure else CERTAIN
    if request.waiting_for == CONFIRMATION:
        return CERTAIN_WHILE_WAITING if _ends_first(request.text) else CERTAIN_AT_CONFIRMATION
    if _ends(request.text):
        return CERTAIN
    digresses = DIGRESSES.search(request.text)
    if request.answered and not digresses:
        return CERTAIN_WHEN_ANSWERED
    aside = digresses or _WANTS_ONLY.match(request.text)
    less = DIGRESSION if aside else 0.0
    asked = request.catalog.params.get(request.waiting_for)
    free = asked is not None and asked.type in (ParamType.TEXT, ParamType.ENUM)
    return (CERTAIN_BESIDE_FREE_WORDS if free else CERTAIN_WHILE_WAITING) - less


def _ends_first(text: str) -> bool:
    """Whether a message drops what is shown, and may want something else: "forget it, I'll …"."""
    return wants_instead(text) or _ends(text)


def _ends(text: str) -> bool:
    return any(clause.act == "cancel" for clause in clauses_of(text))


_WANTS_ONLY: Final = re.compile(
    r"\W*(?:(?:no|oh|sorry|actually|but|ok(?:ay)?|well|hm+)\b\W*)*(?:i|we)(?:['’]?d| would)?\s+"
    r"(?:(?:just|only|really|actually)\s+(?:want|need|like|wanna)|rather)\b",
    re.IGNORECASE,
)
"""Who says that they only want something wants nothing of what is asked."""

DIGRESSES: Final = re.compile(
    r"\b(?:before (?:that|i forget|(?:we|you|i) (?:do|go on|start|begin|finish))|(?:but"
    r" )?first\b(?!\s+(?:of|one|name|day|time|floor|week))|"
    r"one more thing|by the way|btw|in the meantime|meanwhile)\b",
    re.IGNORECASE,
)
"""Words that turn to another thing."""


def _parts(request: ClassifyRequest) -> list[Clause]:
    """The whole message without greetings and thanks, then its clauses, where it has several."""
    text = request.text[:LONGEST]
    every = clauses_of(text)
    clauses = [
        clause
        for clause in every
        if clause.act not in ("hello", "thanks", "bye", "talk")
        and not (clause.act == "cancel" and request.running)
    ] or every
    rest = without(text, [clause for clause in every if clause not in clauses])
    whole = Clause(
        0,
        len(text),
        rest,
        "question" if clauses and all(clause.act == "question" for clause in clauses) else "say",
    )
    return [whole, *(clauses if len(clauses) > 1 else ())]


def _best(scores: Iterable[Mapping[str, float]]) -> list[tuple[str, float]]:
    best: dict[str, float] = {}
    for some in scores:
        for intent_id, score in some.items():
            best[intent_id] = max(best.get(intent_id, 0.0), score)
    return sorted(
        ((intent_id, score) for intent_id, score in best.items() if score > 0),
        key=lambda item: -item[1],
    )


def _choices(request: ClassifyRequest, best: Sequence[tuple[str, float]]) -> tuple[str, ...]:
    """The intents that are worth asking about, a few; none while another question waits."""
    if request.waiting_for or not best or best[0][1] < GUESS:
        return ()
    return tuple(name for name, score in best[:OFFERED] if best[0][1] - score < WORTH_A_QUESTION)


def _told_apart(
    request: ClassifyRequest, choices: tuple[str, ...], scores: Mapping[str, float]
) -> tuple[str, ...]:
    """The choices, or the one of them that takes more of the message's values than the others."""
    taken = {name: len(find_params(request.catalog.intent(name), request)) for name in choices}
    ranked = sorted(choices, key=lambda name: scores[name] + VALUE * taken[name], reverse=True)
    if len(ranked) < 2:
        return choices
    first, second = ranked[:2]
    lead = scores[first] - scores[second] + VALUE * (taken[first] - taken[second])
    most = all(taken[first] > taken[name] for name in choices if name != first)
    return (first,) if most and lead >= MARGIN else choices


def _reaching(
    request: ClassifyRequest, others: Sequence[Clause], won: Sequence[Won], intent_id: str
) -> list[Clause]:
    """The parts of other requests, each up to where the next part of this request begins.

    What only this request takes begins it as well.
    """
    end = len(request.text)
    theirs = {name for each in won if each.intent_id != intent_id for name in _takes(request, each)}
    mine = [
        span[0]
        for name, span in request.param_spans.items()
        if name in request.catalog.intent(intent_id).param_names and name not in theirs
    ]
    own = sorted(each.phrase.start for each in won if each.intent_id == intent_id)
    reaching = []
    for clause in others:
        stop = min(
            (start for start in own if start >= clause.end),
            default=end if not own or clause.start > own[-1] else clause.end,
        )
        stop = min((start for start in mine if clause.end <= start < stop), default=stop)
        reaching.append(replace(clause, end=stop))
    return reaching


def _takes(request: ClassifyRequest, won: Won) -> Sequence[str]:
    return request.catalog.intent(won.intent_id).param_names


def _is_asked_for(intent: Intent) -> bool:
    """Whether users ask for an intent by a question: "where is my order"."""
    return any(asks_back_only(example) for example in intent.examples)


def _form(intent: Intent, clause: Clause) -> float:
    """A question speaks for an intent that only answers, a wish for one that does something."""
    answers = not intent.tool
    if clause.act == "question":
        return 2 * FORM if answers else 0.0 if _is_asked_for(intent) else -2 * FORM
    return -FORM if answers and WISHES.search(clause.text) else 0.0


def _score(intent: Intent, text: str, likeness: float) -> float:
    """The score of an intent: a pattern makes it certain, likeness then tells two apart.

    A whole example is surer than a pattern.
    """
    if likeness < 1 and any(re.search(pattern, text, re.IGNORECASE) for pattern in intent.patterns):
        return PATTERN + (1 - PATTERN) * max(likeness, 0.0)
    return likeness


def find_params(intent: Intent, request: ClassifyRequest) -> dict[str, JsonValue]:
    """The values of the intent's parameters that the message clearly gives, by name."""
    params = [
        request.catalog.params[name]
        for name in intent.param_names
        if name in request.catalog.params
    ]
    reading = Reading(request.text, request.now, about=about(intent))
    said, possible = sure_values(params, reading), _possible(request.text)
    if possible == request.text:
        return said
    of_all = {param.name for param in params if _is_of_all(param)}
    return {name: value for name, value in said.items() if name in of_all} | sure_values(
        params, replace(reading, text=possible)
    )
