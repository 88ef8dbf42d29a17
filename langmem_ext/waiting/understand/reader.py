"""From a message and the state it meets to commands. The policy decides what comes of them. Pure.

`understand` is a generator: it asks for a classification where the message may ask for something,
so a model is called by whoever drives it, sync or async, and reading itself does no I/O.

The order is the point. Taken first of all as an attempt to answer, "cancel that please" becomes an
address.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Final

from langmem_ext._internal.names import in_words
from langmem_ext.types import CONFIRMATION
from langmem_ext.waiting.catalog.inference import infer_role
from langmem_ext.waiting.catalog.param import ParamType
from langmem_ext.waiting.catalog.playbook import Playbook
from langmem_ext.waiting.extract.dates.spelling import Spelled
from langmem_ext.waiting.extract.english.attitude import says_no, says_yes, wishes_by_asking
from langmem_ext.waiting.extract.english.fillers import without_fillers
from langmem_ext.waiting.extract.english.lexicon import FUNCTION_WORDS, word_set
from langmem_ext.waiting.extract.reply import LONGEST, read_part
from langmem_ext.waiting.policy.session import Session
from langmem_ext.waiting.understand.acts.assent import yes_or_no
from langmem_ext.waiting.understand.acts.spelling import with_plain_answer
from langmem_ext.waiting.understand.acts.statements import refers_back
from langmem_ext.waiting.understand.acts.steering import (
    is_cancel,
    is_reset,
    wants_person,
    with_plain_end,
)
from langmem_ext.waiting.understand.answers.answer import read_answer
from langmem_ext.waiting.understand.answers.confirmation import read_at_confirmation
from langmem_ext.waiting.understand.answers.model_reading import is_unread, read_by_model
from langmem_ext.waiting.understand.answers.structured_answer import read_structured_answer
from langmem_ext.waiting.understand.clauses import Clause, clauses_of, without, words_without_values
from langmem_ext.waiting.understand.commands import (
    Ask,
    Cancel,
    Clarify,
    Command,
    Confirm,
    Correct,
    Fill,
    HandOver,
    Reset,
    Start,
    Unclear,
)
from langmem_ext.waiting.understand.corrections.other_values import other_values
from langmem_ext.waiting.understand.corrections.said import Said
from langmem_ext.waiting.understand.intents.classifier import (
    CERTAIN,
    Classification,
    ClassifyRequest,
    find_params,
    wishes,
)
from langmem_ext.waiting.understand.intents.similarity import about, units_of
from langmem_ext.waiting.understand.likely_time import after
from langmem_ext.waiting.understand.message import Heard
from langmem_ext.waiting.understand.requests import (
    Commands,
    Understanding,
    begun,
    chat_of,
    every_request,
    request_of,
    with_open,
)
from langmem_ext.waiting.understand.values import (
    Reading,
    read_values,
    spans_of,
    values_of,
)


def understand(
    playbook: Playbook, session: Session, heard: Heard, *, rereads: bool = True
) -> Understanding:
    """What the message says.

    Args:
        playbook: The catalog and its tools.
        session: The state that the message meets.
        heard: The message.
        rereads: Whether the classifier may read answers that the rules cannot.

    Returns:
        At least one command.
    """
    if heard.answer is not None:
        return read_structured_answer(playbook, session, heard, heard.answer)
    commands = yield from _understood(playbook, session, heard, rereads=rereads)
    return _in_sequence(playbook, session, heard, commands)


def _understood(
    playbook: Playbook, session: Session, heard: Heard, *, rereads: bool
) -> Understanding:
    whole, heard = heard, replace(heard, text=_spelled(playbook, session, read_part(heard.text)))
    if is_reset(whole.text):
        return [Reset(why="says to start over")]
    began = session.plan or _since(session)
    if began and (rest := _after_reset(heard.text)) is not None:
        anew: Commands = []
        if rest:
            anew = yield from _anew(playbook, session, replace(heard, text=rest))
        return [Reset(why="says to start over"), *anew]
    if session.plan is None:
        return (yield from _at_rest(playbook, session, heard))
    if session.plan.get("expired") and (decided := yes_or_no(whole.text)) is not None:
        return (
            [Confirm(why="wants to go on")] if decided else [Cancel(why="does not want to go on")]
        )
    if session.waiting_for == CONFIRMATION:
        commands = yield from read_at_confirmation(
            playbook, session, session.plan, heard, whole.text
        )
    else:
        commands = yield from read_answer(playbook, session, session.plan, heard, whole.text)
    if not rereads or not is_unread(commands) or session.waiting_for in playbook.local:
        return commands
    return (yield from read_by_model(playbook, session, session.plan, heard)) or commands


def _in_sequence(
    playbook: Playbook, session: Session, heard: Heard, commands: Commands
) -> Commands:
    """The commands, with a last day moved after the first: "the 12th, back on saturday"."""
    known = {**session.params}
    for command in commands:
        if isinstance(command, Start):
            known |= dict(command.values)
        elif isinstance(command, Fill | Correct):
            known[command.param] = command.value

    def days(role: str) -> dict[str, str]:
        params = playbook.catalog.params
        return {
            name: str(value)
            for name, value in known.items()
            if value is not None  # one that is taken back
            and name in params
            and params[name].type is ParamType.DATE
            and (params[name].role or infer_role(name)) == role
        }

    begins, ends = days("from"), days("to")
    if len(begins) != 1:
        return commands
    [begin] = begins.values()
    meant = {name: after(begin, value, heard.text) for name, value in ends.items()}

    def moved(command: Command) -> Command:
        if isinstance(command, Start):
            values = ((name, meant.get(name, value)) for name, value in command.values)
            return replace(command, values=tuple(values))
        if isinstance(command, Fill | Correct) and command.value and command.param in meant:
            return replace(command, value=meant[command.param])
        return command

    return [moved(command) for command in commands]


_PART: Final = re.compile(r"(?:^|(?<=[.;:!?\n]))[^.,;:!?\n–—-]+(?:[.,;:!?\n–—-]|$)")
"""The first words of each sentence."""


def _after_reset(text: str) -> str | None:
    """What follows words that only start over: "all wrong. start over: two beds for friday".

    None where no part of the message does.
    """
    part = next((part for part in _PART.finditer(text) if is_reset(part.group())), None)
    return text[part.end() :].strip() if part else None


def _anew(playbook: Playbook, session: Session, heard: Heard) -> Understanding:
    """What begins after all is forgotten: another request, or the same with other values."""
    commands = yield from _at_rest(playbook, Session(), heard)
    if any(isinstance(command, Start) for command in commands):
        return commands
    if session.plan is None:
        return []
    intent = playbook.intents[session.plan["intent_id"]]
    values = find_params(intent, request_of(playbook, Session(), heard))
    return [Start(intent.id, tuple(values.items()), why="begins anew")] if values else []


_GAP: Final = re.compile(r"(?P<one>\s)\s{2,}")
"""Blanks that say no more than one of them."""


def _spelled(playbook: Playbook, session: Session, text: str) -> str:
    """The message without fillers, its small words put right; not what may be kept as it is."""
    asked = playbook.catalog.params.get(session.waiting_for or "")
    free = asked is not None and asked.type in (ParamType.TEXT, ParamType.NAME)
    cleaned = without_fillers(_GAP.sub(r"\g<one>", text), free=free)
    cleaned = cleaned if free else with_plain_answer(Spelled(cleaned, playbook.vocabulary).text)
    if session.plan and not free:
        intent = playbook.intent_of(session.plan)
        own = units_of(f"{in_words(intent.id)} {intent.description}")
        cleaned = with_plain_end(cleaned, {unit.stem for unit in own})
    first, rest = (clauses := clauses_of(cleaned))[:1], clauses[1:]
    greeting = [clause for clause in first if clause.act == "hello" and rest]
    return without(cleaned, greeting)  # "good morning" says no time of day


def _at_rest(playbook: Playbook, session: Session, heard: Heard) -> Understanding:
    text, clauses = heard.text, clauses_of(heard.text)
    if is_cancel(text) and not refers_back(text):
        return [Cancel(why="says to stop")]
    if chat := chat_of(clauses):
        return [chat]
    classification, request, heard = yield from _asked_for(playbook, session, heard)
    named = classification.intent_id
    if named and session.last_intent_id and _is_remark(heard, classification):
        classification = replace(classification, intent_id=None, choices=(named,))
    if starts := _starts(playbook, heard, classification):
        return [*starts, *_still_offered(playbook, session, starts)]
    if again := _again(playbook, session, heard):
        return [again]
    if wants_person(text):
        return [HandOver(why="asks for a person")]
    return _not_certain(playbook, session, heard, request, classification)


def _still_offered(playbook: Playbook, session: Session, starts: Commands) -> Commands:
    """The offer that still stands after a question in between, which is only answered."""
    begun = [playbook.intents[start.intent] for start in starts if isinstance(start, Start)]
    offered = _offered(session, playbook)
    if not offered or any(intent.tool or intent.id in offered for intent in begun):
        return []
    return [Clarify(offered, why="stands as it was offered", since=_since(session))]


def _not_certain(
    playbook: Playbook,
    session: Session,
    heard: Heard,
    request: ClassifyRequest,
    classification: Classification,
) -> Commands:
    """What a message is that certainly asks for nothing: a likely request, an offer, or neither."""
    since = _since(session) or heard.id
    choices = _offer(playbook, session, request, classification)
    if likely := _likely(playbook, session, request, choices, classification):
        return [with_open(playbook, heard, likely)]
    if choices:
        return [
            Clarify(
                tuple(choices), why=classification.reason, by=classification.source, since=since
            )
        ]
    if is_cancel(heard.text):
        return [Cancel(why="says to stop")]
    if any(clause.act == "question" for clause in clauses_of(heard.text)):
        return [Ask(why="asks something", since=since)]
    return [Unclear(why=classification.reason or "no intent fits", since=since)]


def _asked_for(
    playbook: Playbook, session: Session, heard: Heard
) -> Generator[ClassifyRequest, Classification, tuple[Classification, ClassifyRequest, Heard]]:
    """What a message asks for, alone or with those before that were not understood, and both."""
    request = request_of(playbook, session, heard)
    classification = yield request
    both = _with_unread(session, heard)
    among = _offered(session, playbook)
    alone = classification.also or classification.intent_id not in (None, *among)
    if both is None or alone:
        return classification, request, heard
    together = request_of(playbook, session, both)
    if classification.intent_id is not None:
        before = replace(together, text=both.text.removesuffix(heard.text))
        return _with_earlier(playbook, classification, before), together, both
    if among:
        again = yield from _between(playbook, replace(together, among=among), heard, both)
    else:
        again = yield together
    if again.intent_id or again.choices:
        return again, together, both
    return classification, request, heard


_CLEAR: Final = 0.6
"""The confidence from which a message that neither wishes nor gives a value begins a request
after another: less is a remark on what was done ("great, sorry for the trouble")."""


def _is_remark(heard: Heard, classification: Classification) -> bool:
    return (
        classification.source == "rules"
        and classification.confidence < _CLEAR
        and not classification.params
        and not wishes(Clause(0, len(heard.text), heard.text, "say"))
        and "?" not in heard.text
    )


_MENU: Final = 6
"""Requests of a catalog that are all listed where none stands out, at most."""

_SLIGHT: Final = 0.3
"""The confidence below which an intent is no offer by itself."""


def _offer(
    playbook: Playbook, session: Session, request: ClassifyRequest, classification: Classification
) -> tuple[str, ...]:
    """The requests that a message may ask for.

    All that a small catalog has, where words alone are little like some of them, and in the second
    message that is not understood.
    """
    choices = tuple(classification.choices)
    if choices and (request.param_spans or classification.confidence >= _SLIGHT):
        return choices
    again = _since(session) and not _offered_ids(session)
    if len(playbook.intents) > _MENU or not (choices or again):
        return choices
    return tuple(dict.fromkeys((*choices, *playbook.intents)))


def _starts(playbook: Playbook, heard: Heard, classification: Classification) -> Commands:
    """The requests that a classification names, each with its values."""
    if classification.intent_id not in playbook.intents:
        return []
    return begun(playbook, heard, every_request(playbook, heard, classification))


def _likely(
    playbook: Playbook,
    session: Session,
    request: ClassifyRequest,
    choices: Sequence[str],
    classification: Classification,
) -> Start | None:
    """The one request that a first message may ask for; values alone ask for nothing."""
    if len(choices) != 1 or _since(session) or session.last_intent_id:
        return None
    words = words_without_values(request.text, [*request.param_spans.values()])
    if choices[0] not in playbook.intents or not re.search(r"[^\W\d_]{2}", words):
        return None
    values = find_params(playbook.intents[choices[0]], request)
    return Start(
        choices[0],
        tuple(values.items()),
        unsure=True,
        confidence=classification.confidence,
        by=classification.source,
        why="nothing else fits",
    )


def _since(session: Session) -> str:
    """The first message of those in a row that were not understood; empty where the last was."""
    return next((str(entry["since"]) for entry in session.understood if entry.get("since")), "")


def _with_unread(session: Session, heard: Heard) -> Heard | None:
    """The message together with those before it that were not understood; else None."""
    since = _since(session)
    messages = [message for message in heard.history if message.type == "human"]
    first = next((place for place, message in enumerate(messages) if message.id == since), None)
    if first is None:
        return None
    before = "\n".join(message.text for message in messages[first:])
    if len(before) + len(heard.text) >= LONGEST:
        return None
    return replace(heard, text=f"{Spelled(without_fillers(before)).text}\n{heard.text}")


def _offered_ids(session: Session) -> list[str]:
    return [
        str(intent)
        for command in session.understood
        if command.get("command") == "clarify"
        for intent in command.get("intents") or ()
    ]


def _offered(session: Session, playbook: Playbook) -> tuple[str, ...]:
    """The intents that the user was asked to choose from."""
    return tuple(intent for intent in _offered_ids(session) if intent in playbook.intents)


_PLACES: Final = (
    re.compile(r"\b(?:first|1st|former|1|one|a)\b", re.IGNORECASE),
    re.compile(r"\b(?:second|2nd|latter|2|two|b|other)\b", re.IGNORECASE),
    re.compile(r"\b(?:third|3rd|3|three|c)\b", re.IGNORECASE),
    re.compile(r"\b(?:fourth|4th|4|four|d)\b", re.IGNORECASE),
    re.compile(r"\b(?:fifth|5th|5|five|e)\b", re.IGNORECASE),
    re.compile(r"\b(?:sixth|6th|6|six|f)\b", re.IGNORECASE),
)
_PLACE_FIRST: Final = re.compile(
    r"\W*(?P<place>the (?:first|second|third|fourth|fifth|sixth|last)(?: one)?)"
    r"(?=[,.;!–—-]|\s+and\b)",
    re.IGNORECASE,
)
"""A choice by place that other things follow: "the first, and we are four"."""
_LAST: Final = re.compile(r"\blast\b", re.IGNORECASE)


_GUESSED: Final = 0.3
"""The confidence in one of several requests that the user did not name."""

_SHORT: Final = 3
"""Words of an answer that only says which of several is meant, at most."""


def _by_place(text: str, among: Sequence[str]) -> str | None:
    """The choice that an answer names by its place: "the second"."""
    if len(text.split()) > _SHORT:
        return None
    if _LAST.search(text):
        return among[-1]
    places = zip(_PLACES, among, strict=False)
    return next((choice for place, choice in places if place.search(text)), None)


def _between(
    playbook: Playbook, request: ClassifyRequest, heard: Heard, both: Heard
) -> Generator[ClassifyRequest, Classification, Classification]:
    """The intent that an answer chooses of several; the unclear messages are read again with it."""
    among = list(request.among)

    def chosen(intent_id: str, text: str, confidence: float, reason: str) -> Classification:
        params = find_params(playbook.intents[intent_id], replace(request, text=text))
        return Classification(intent_id, params, confidence, reason=reason, part=text)

    before = both.text.removesuffix(heard.text)  # "the second" is no day
    if place := _by_place(heard.text, among):
        return chosen(place, before, 1.0, "the user chose it")
    if (led := _PLACE_FIRST.match(heard.text)) and (place := _by_place(led["place"], among)):
        remaining = f"{before}\n{heard.text[led.end() :]}"
        return chosen(place, remaining, 1.0, "the user chose it, and says more")
    if says_yes(heard.text):
        sure = 0.6 if len(among) <= 2 else _GUESSED
        text = before if len(heard.text.split()) <= _SHORT else both.text
        return chosen(among[0], text, sure, "yes, to the likeliest")
    classification = yield replace(request, text=heard.text)
    if classification.intent_id is None and not says_no(heard.text):
        classification = yield request
    if classification.intent_id is None and not says_no(heard.text):
        fitting = [
            intent_id
            for intent_id in among
            if find_params(playbook.intents[intent_id], replace(request, text=heard.text))
        ]
        taken = {name: len(find_params(playbook.intents[name], request)) for name in fitting}
        most = [name for name in fitting if taken[name] == max(taken.values())]
        if most and (len(most) == 1 or 2 * len(most) <= len(among) or len(among) <= 2):
            sure = CERTAIN if len(fitting) == 1 else _GUESSED
            return chosen(most[0], both.text, sure, "takes the most of its values")
        return replace(classification, choices=())
    if classification.intent_id is None:
        return replace(classification, choices=())
    return _with_earlier(playbook, classification, replace(request, text=before))


def _with_earlier(
    playbook: Playbook, chosen: Classification, before: ClassifyRequest
) -> Classification:
    """The chosen request with the values of the message that left it open; the answer's win."""
    intent = playbook.intents.get(chosen.intent_id or "")
    earlier = find_params(intent, before) if intent else {}
    return replace(chosen, params={**earlier, **chosen.params})


def _again(playbook: Playbook, session: Session, heard: Heard) -> Start | None:
    """The last request once more, with values that the message corrects."""
    intent = playbook.intents.get(session.last_intent_id or "")
    if intent is None:
        return None
    uses = playbook.uses(playbook.begin(intent, heard.id))
    known = {name: session.params[name] for name in uses if name in session.params}
    params = [playbook.param(name) for name in uses]
    asks = heard.text.rstrip().endswith("?") and not wishes_by_asking(heard.text)
    anew = other_values([] if asks else params, Said(heard.text, known, heard.now))
    if anew.certain:
        return Start(
            intent.id, tuple({**known, **anew.values}.items()), why="corrects the last request"
        )
    read = read_values(params, Reading(heard.text, heard.now, about=about(intent)))
    rest = words_without_values(heard.text, spans_of(read))
    words = set(re.findall(r"[^\W\d_]+", rest.lower()))
    if all(known.get(name) == value for name, value in values_of(read).items()):
        return None  # the same is not wanted twice
    if not words <= _ONE_MORE | FUNCTION_WORDS or words.isdisjoint(_MORE):
        return None  # a value alone asks for nothing: it may be an answer that came twice
    return Start(
        intent.id,
        tuple({**known, **values_of(read)}.items()),
        why="asks the same about another value",
    )


_ONE_MORE: Final = word_set(
    "and what about how for the same also now then too please pls as well again is it with ok okay"
    " great thanks thanx thx thank you ta cheers one more next another oh"
)
"""Words beside a value that ask for the same once more: "and O-2?"."""

_MORE: Final = word_set("and what about how same also too well again more next another")
"""Of these at least one says that it is once more."""
