"""Messages that meet a waiting question: answers, corrections, requests, questions, others.

Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from pydantic import JsonValue

from langmem_ext.types import CONFIRMATION
from langmem_ext.waiting.catalog.param import Extraction, Param, ParamType, doubtful_below
from langmem_ext.waiting.catalog.playbook import Playbook
from langmem_ext.waiting.catalog.tool_schema import WRONG_FORM
from langmem_ext.waiting.extract import Reply, extract
from langmem_ext.waiting.extract.choices.enum import named, nearest
from langmem_ext.waiting.extract.english.attitude import says_no
from langmem_ext.waiting.extract.english.lexicon import APPROVING, FUNCTION_WORDS
from langmem_ext.waiting.policy.asking import question
from langmem_ext.waiting.policy.session import Session
from langmem_ext.waiting.state import PlanExecution, choices_of, in_doubt, known_values
from langmem_ext.waiting.understand.acts.assent import yes_or_no
from langmem_ext.waiting.understand.acts.statements import WISHES
from langmem_ext.waiting.understand.acts.steering import ends_after_yes, is_cancel
from langmem_ext.waiting.understand.answers.anothers import far_out, whole_of_another, with_somebody
from langmem_ext.waiting.understand.answers.asked_back import (
    asks_about,
    asks_what_it_is,
    is_topic,
    question_of,
    tells_what_about,
)
from langmem_ext.waiting.understand.clauses import Clause, clauses_of, phrases_of, without
from langmem_ext.waiting.understand.commands import (
    Cancel,
    Chat,
    Clarify,
    Command,
    Correct,
    Decline,
    Deny,
    DontCare,
    Fill,
    Refuse,
    Start,
    Unclear,
)
from langmem_ext.waiting.understand.intents.similarity import about, units_of
from langmem_ext.waiting.understand.likely_time import chosen
from langmem_ext.waiting.understand.message import Heard
from langmem_ext.waiting.understand.requests import (
    CHATTING,
    OPEN_TYPES,
    Commands,
    Understanding,
    aside_of,
    classified,
    given_anew,
    other_requests,
)
from langmem_ext.waiting.understand.values import (
    SURE,
    Reading,
    alike,
    decided_by_request,
    is_named_near,
    overlap,
    read_values,
    spans_of,
)


def read_answer(
    playbook: Playbook, session: Session, plan: PlanExecution, heard: Heard, whole: str
) -> Understanding:
    """An answer, a correction, another request, a question, or none of these.

    Args:
        playbook: The catalog and its tools.
        session: The state that the message meets.
        plan: The request that runs.
        heard: The message, as far as it is read.
        whole: All that it says: a free text may be long.
    """
    name, clauses = session.waiting_for, clauses_of(heard.text)
    if is_cancel(heard.text) and not _is_plain_no(playbook, name, heard.text):
        return [Cancel(why="says to stop")]
    if name and (decided := _at_doubt(playbook, plan, name, heard, whole)):
        return [decided]
    if name and (plain := _plainly(playbook, session, plan, name, heard)):
        return [plain]
    if name and len(whole) > len(heard.text) and playbook.param(name).type is ParamType.TEXT:
        answer = _answer(playbook, session, plan, heard, whole)
        if answer is not None and answer.status == "filled":
            return [_fill(playbook, name, answer)]
    aside = aside_of(heard.text, clauses)
    if isinstance(aside, Chat) and says_no(heard.text):  # "no thanks" to a question of yes or no
        answer = _answer(playbook, session, plan, heard, heard.text)
        if name and answer is not None and answer.value is False:
            return [_fill(playbook, name, answer)]
    if aside:
        return [aside]
    return (yield from _taken_apart(playbook, session, plan, heard, clauses))


def _plainly(
    playbook: Playbook, session: Session, plan: PlanExecution, name: str, heard: Heard
) -> Command | None:
    """The answer of a message that is an allowed value, or the topic of a question, and no more."""
    if is_topic(playbook.param(name), heard.text):
        return Fill(name, heard.text.strip(" .!"), why="says what it is about")
    if named(playbook.param(name), heard.text) is None:
        return None
    answer = _answer(playbook, session, plan, heard, heard.text)
    if answer is None or answer.status != "filled":
        return None
    return Fill(name, answer.value, confidence=answer.confidence, why=answer.reason)


def _taken_apart(
    playbook: Playbook,
    session: Session,
    plan: PlanExecution,
    heard: Heard,
    clauses: Sequence[Clause],
) -> Understanding:
    name = session.waiting_for
    clauses, dropped = _ended(playbook, session, plan, heard, clauses)
    asides = [
        clause
        for clause in clauses
        if clause.act in (*CHATTING, "question", "cancel") or _only_approves(playbook, name, clause)
    ]
    body = without(heard.text, asides)
    without_asides = replace(heard, text=body)
    answer = _answer(playbook, session, plan, heard, body) if body.strip() else None
    values = {} if dropped else _values(playbook, session, plan, without_asides, answer)
    values = values or _next_answer(playbook, session, plan, without_asides, answer)
    stance = answer is not None and (answer.status not in _SAYS_NOTHING or bool(answer.choices))
    anew = given_anew(
        playbook,
        session,
        plan,
        without_asides,
        taken=spans_of(values),
        answered=stance or bool(values),
    )
    corrections: Commands = [
        Correct(other, value, why="gives a known value anew")
        for other, value in ({} if dropped else anew.values).items()
    ]
    if corrections and name in values and playbook.param(name).type is ParamType.TEXT:
        values = _without_takeback(values, name, heard.text)
    if corrections and anew.certain:
        beside = _beside_correction(playbook, session, plan, without_asides, clauses, anew.values)
        return [*beside, *corrections]
    if (asks := asks_what_it_is(playbook, name, clauses)) and not dropped:
        return [*(_fill(playbook, other, value) for other, value in values.items()), asks]
    asked_for = yield from classified(
        playbook, session, plan, heard, answer if name in values else None
    )
    starts = other_requests(playbook, plan, heard, asked_for)
    if (
        starts
        and name
        and answer is not None
        and answer.status == "filled"
        and _is_told_within(playbook, name, starts, clauses)
    ):
        return [_fill(playbook, name, answer)]
    if starts:
        own = {} if dropped else _own_values(playbook, heard, starts, values)
        fills = [_fill(playbook, other, value) for other, value in own.items()]
        return [*dropped, *fills, *starts]
    if dropped:
        return dropped
    commands: Commands = [_fill(playbook, other, value) for other, value in values.items()]
    commands += corrections
    if any(clause.act == "question" for clause in clauses):
        commands.append(
            _named_by_question(playbook, session, plan, heard)
            or question_of(playbook, session, clauses)
        )
    if commands and (accepted := _passed_over(playbook, plan, name, clauses, values)):
        commands.insert(0, accepted)
    return commands or _stance(playbook, plan, heard, name, answer)


def _without_takeback(
    values: Mapping[str, Extraction], name: str, text: str
) -> dict[str, Extraction]:
    """The values without a text that only says why another is taken back: "no wait, that's …"."""
    back = _WAIT.match(text)
    kept = {other: value for other, value in values.items() if other != name}
    return kept if back else dict(values)


_WAIT: Final = re.compile(r"\W*(?:(?:oh|ah|no|sorry|actually)\W+)*(?:wait|hang on|hold on)\b", re.I)


def _only_approves(playbook: Playbook, name: str | None, clause: Clause) -> bool:
    """Whether a sentence says no more than "good." to a question that any words may answer."""
    open_question = name is not None and playbook.param(name).type in OPEN_TYPES
    words = re.findall(r"[^\W\d_]+", clause.text.lower())
    return (
        open_question and clause.text.rstrip().endswith((".", "!")) and APPROVING.issuperset(words)
    )


def _ended(
    playbook: Playbook,
    session: Session,
    plan: PlanExecution,
    heard: Heard,
    clauses: Sequence[Clause],
) -> tuple[Sequence[Clause], Commands]:
    """The clauses, and the end of the request where one of them ends it.

    A plain no, or a value that is taken back for another, does not end it.
    """
    clauses = [
        replace(clause, act="cancel") if ends_after_yes(clause.text) else clause
        for clause in clauses
    ]
    if not any(clause.act == "cancel" for clause in clauses):
        return clauses, []
    if _is_plain_no(playbook, session.waiting_for, heard.text):
        return [
            replace(clause, act="say") if clause.act == "cancel" else clause for clause in clauses
        ], []
    return clauses, (
        [] if _replaces(playbook, session, plan, heard, clauses) else [Cancel(why="says to stop")]
    )


_NOT_NEEDED: Final = re.compile(
    r"\b(?:do\s?n['o’]?t bother|do not bother|leave it|no need|not (?:needed|necessary))\b",
    re.IGNORECASE,
)


def _is_plain_no(playbook: Playbook, name: str | None, text: str) -> bool:
    """Whether what sounds like an end is the no to a question of yes or no: "no, don't bother"."""
    return (
        name is not None
        and playbook.param(name).type is ParamType.BOOLEAN
        and says_no(text)
        and _NOT_NEEDED.search(text) is not None
    )


def _beside_correction(
    playbook: Playbook,
    session: Session,
    plan: PlanExecution,
    heard: Heard,
    clauses: Sequence[Clause],
    new: Mapping[str, JsonValue],
) -> Commands:
    """The values of the clauses that take nothing back: "the 21st. oh, and make that five"."""
    taking = [
        clause
        for clause in clauses
        if given_anew(playbook, session, plan, replace(heard, text=clause.text)).certain
    ]
    rest = replace(heard, text=without(heard.text, taking))
    if not taking or not re.search(r"\w", rest.text):
        return _identified(playbook, session, plan, heard)
    values = _values(
        playbook, session, plan, rest, _answer(playbook, session, plan, rest, rest.text)
    )
    return [_fill(playbook, name, value) for name, value in values.items() if name not in new]


def _identified(
    playbook: Playbook, session: Session, plan: PlanExecution, heard: Heard
) -> Commands:
    """The answer in the very words that take something back: "GH-27, and call it 9"."""
    name = session.waiting_for
    if name is None or playbook.param(name).type not in _UNMISTAKABLE:
        return []
    read = read_values([playbook.param(name)], Reading(heard.text, heard.now))
    return [_fill(playbook, name, read[name])] if name in read else []


_UNMISTAKABLE: Final = frozenset(
    {ParamType.IDENTIFIER, ParamType.PHONE, ParamType.EMAIL, ParamType.URL}
)
"""Types whose values are like no others."""


def _is_told_within(
    playbook: Playbook, name: str, starts: Commands, clauses: Sequence[Clause]
) -> bool:
    """Whether a free text says something that sounds like a request among other things.

    It is stored as text where the tool would run without a confirmation: "we come by bike and
    cancel M-100".
    """
    intents = [playbook.intents[start.intent] for start in starts if isinstance(start, Start)]
    unasked = any(
        intent.tool and playbook.catalog.confirm_question(intent) is None for intent in intents
    )
    parts = [part for clause in clauses if clause.act == "say" for part in phrases_of(clause)]
    telling = [
        part
        for part in parts
        if not set(re.findall(r"[^\W\d_]+", part.text.lower())) <= FUNCTION_WORDS
    ]
    return unasked and playbook.param(name).type is ParamType.TEXT and len(telling) > 1


def _next_answer(
    playbook: Playbook,
    session: Session,
    plan: PlanExecution,
    heard: Heard,
    answer: Extraction | None,
) -> dict[str, Extraction]:
    """The answer to the next question, where the value that waits for a yes is passed over."""
    name = session.waiting_for
    later = [other for other in playbook.missing(plan, session.params) if other != name]
    if not in_doubt(plan, name) or not later or answer is None or answer.status != "abstained":
        return {}
    param = playbook.param(later[0])
    read = extract(param, Reply(heard.text, prompt=param.prompt, now=heard.now))
    certain = read.status == "filled" and read.confidence >= doubtful_below(param)
    return {param.name: read} if certain and param.type is not ParamType.TEXT else {}


def _passed_over(
    playbook: Playbook,
    plan: PlanExecution,
    name: str | None,
    clauses: Sequence[Clause],
    values: Mapping[str, Extraction],
) -> Command | None:
    """A value that waits for a yes and that the user passes over, to go on with other values.

    It is read back before the tool runs. A free text may be all kinds of words: it counts only
    where the catalog wants the request confirmed.
    """
    goes_on = (
        values
        and name not in values
        and all(clause.act in ("say", *CHATTING) and not says_no(clause.text) for clause in clauses)
    )
    if name is None or not in_doubt(plan, name) or not goes_on:
        return None
    if playbook.param(name).type is ParamType.TEXT and not playbook.confirm_question(plan):
        return None
    return Fill(
        name, choices_of(plan, name)[0], silent=True, why="goes on without a word against it"
    )


_SAYS_NOTHING: Final = ("abstained", "question")
"""What an answer is that says nothing to what is asked: "monday?" proposes a day."""

_FEW: Final = 3
"""Telling words of a message that says little besides a value, at most."""

_TAKEN_BACK: Final = re.compile(
    r"\b(?:scrap|scratch|strike|forget|drop) (?:about )?(?:that|it|this|the|my|our)\b",
    re.IGNORECASE,
)


def _replaces(
    playbook: Playbook,
    session: Session,
    plan: PlanExecution,
    heard: Heard,
    clauses: Sequence[Clause],
) -> bool:
    """Whether an apparent end only replaces a value: "scratch that, one salad"."""
    if not any(clause.act == "cancel" and _TAKEN_BACK.search(clause.text) for clause in clauses):
        return False
    rest = without(heard.text, [clause for clause in clauses if clause.act == "cancel"])
    uses = [playbook.param(name) for name in playbook.uses(plan)]
    values = read_values(uses, Reading(rest, heard.now, about=about(playbook.intent_of(plan))))
    return any(
        value.confidence > SURE and value.value != session.params.get(name)
        for name, value in values.items()
    )


def _fill(playbook: Playbook, name: str, extraction: Extraction) -> Command:
    """The command for a value; an uncertain one is confirmed, unless it is sensitive.

    The question would show a sensitive value.
    """
    if (
        extraction.confidence < doubtful_below(playbook.param(name))
        and name not in playbook.sensitive
    ):
        return Clarify(
            param=name,
            choices=(extraction.value,),
            confidence=extraction.confidence,
            why=extraction.reason,
        )
    return Fill(name, extraction.value, confidence=extraction.confidence, why=extraction.reason)


def _at_doubt(
    playbook: Playbook, plan: PlanExecution, name: str, heard: Heard, whole: str
) -> Command | None:
    """Yes or no to the value that is to be confirmed, or the value again; None for any other."""
    if not in_doubt(plan, name):
        return None
    param, [doubted] = playbook.param(name), choices_of(plan, name)
    decided = yes_or_no(whole)
    if decided is False:
        return Deny(why="says no to the value")
    said = extract(param, Reply(heard.text, prompt=param.prompt, now=heard.now))
    if decided or (said.status == "filled" and said.value == doubted):
        return Fill(name, doubted, why="says yes to the value")
    return None


def _answer(
    playbook: Playbook, session: Session, plan: PlanExecution, heard: Heard, text: str
) -> Extraction | None:
    """What the message says to the waiting question."""
    name = session.waiting_for
    if name is None:
        return None
    if playbook.param(name).type is ParamType.TEXT and yes_or_no(text):
        return Extraction("abstained", reason="says yes")
    others = alike(
        playbook.param(name),
        [playbook.param(other) for other in playbook.missing(plan, session.params)],
    )
    prompt = _prompt(playbook, session, plan, name)
    choices = choices_of(plan, name)
    if len(choices) > 1 and (value := chosen(text, choices)) is not None:
        return Extraction("filled", value, confidence=0.9, reason=_CHOSEN)
    filled = known_values(plan, session.params)
    reply = Reply(text, prompt=prompt, others=others, filled=filled, now=heard.now)
    extraction = extract(playbook.param(name), reply)
    if others and extraction.status != "filled":
        extraction = extract(playbook.param(name), replace(reply, others=()))
    return decided_by_request(extraction, playbook.param(name), about(playbook.intent_of(plan)))


_CHOSEN: Final = "one of two readings"
"""Why an answer counts that only says which of two values is meant."""


def _prompt(playbook: Playbook, session: Session, plan: PlanExecution, name: str) -> str:
    """What was asked; of a value that is to be confirmed, the question before."""
    asked = playbook.param(name).prompt if plan.get("expired") or in_doubt(plan, name) else ""
    return asked or question(playbook, plan, session.params, name).prompt


def _values(
    playbook: Playbook,
    session: Session,
    plan: PlanExecution,
    heard: Heard,
    answer: Extraction | None,
) -> dict[str, Extraction]:
    """The values that the message gives for what is asked and for what is still open."""
    name = session.waiting_for
    open_names = [
        other for other in playbook.uses(plan) if other == name or other not in session.params
    ]
    prompt = _prompt(playbook, session, plan, name) if name else ""
    reading = Reading(
        heard.text,
        heard.now,
        filled=known_values(plan, session.params),
        asked=name,
        prompt=prompt,
        about=about(playbook.intent_of(plan)),
    )
    values = read_values([playbook.param(other) for other in open_names], reading)
    if name and answer is not None and answer.reason == _CHOSEN:
        return {name: answer}  # "the second" is no day
    if name and name not in values and answer is not None and answer.status == "filled":
        rivals = [other for other in values.values() if overlap(answer, other)]
        if not rivals:
            values[name] = answer
    if name and answer is not None and answer.problem:
        values |= far_out(playbook, open_names, name, heard, answer)
    if name and not values and answer is not None and answer.status == "abstained":
        values = whole_of_another(playbook, open_names, name, heard)
    if name:
        values = with_somebody(
            playbook, open_names, name, heard, values, doubted=in_doubt(plan, name)
        )
    if name in values and in_doubt(plan, name) and playbook.param(name).type in _WORDS:
        values = values if says_no(heard.text) else _without_remark(values, name)
    if name and name not in values:  # then the message may be about something else altogether
        values = {
            other: value
            for other, value in values.items()
            if _is_sure(playbook.param(other), value, heard.text)
        }
    return {
        other: value
        for other, value in values.items()
        if playbook.value_error(plan, other, value.value) is None
    }


def _without_remark(values: Mapping[str, Extraction], name: str) -> dict[str, Extraction]:
    """The values of others alone, if there are some: "drives fine" is the name of no car.

    What they are said beside is no other value of what is in doubt.
    """
    surely = {
        other: value for other, value in values.items() if other != name and value.confidence > SURE
    }
    return surely or dict(values)


_WORDS: Final = frozenset({ParamType.TEXT, ParamType.NAME})
"""Types of which a remark may seem to be a value."""


def _is_sure(param: Param, extraction: Extraction, text: str) -> bool:
    """Whether a value that was not asked for is one, whatever else the message says."""
    return (
        param.type not in OPEN_TYPES
        or (param.type is not ParamType.TEXT and extraction.confidence >= _MARKED)
        or (extraction.span is not None and is_named_near(text, extraction.span, param))
        or len(units_of(text)) <= _FEW
    )


_MARKED: Final = 0.8
"""Confidence in a name or an address that words beside it mark as one."""


def _own_values(
    playbook: Playbook, heard: Heard, starts: Commands, values: Mapping[str, Extraction]
) -> dict[str, Extraction]:
    """The values that do not belong to a request that the same message begins.

    A free text that wishes for something is that request, and no value.
    """
    names = {
        name
        for start in starts
        if isinstance(start, Start)
        for name in playbook.intents[start.intent].param_names
    }
    theirs = read_values(
        [playbook.param(name) for name in names], Reading(heard.text, heard.now)
    ).values()
    return {
        name: value
        for name, value in values.items()
        if name not in names
        and not any(overlap(value, other) for other in theirs)
        and not (playbook.param(name).type is ParamType.TEXT and WISHES.search(value.raw))
    }


def _named_by_question(
    playbook: Playbook, session: Session, plan: PlanExecution, heard: Heard
) -> Command | None:
    """The value asked for, in a question that nobody answers: "is it O-2?"."""
    name = session.waiting_for
    if name is None or name == CONFIRMATION:
        return None
    if playbook.param(name).type is not ParamType.IDENTIFIER and not tells_what_about(heard.text):
        return None
    extraction = _answer(playbook, session, plan, heard, heard.text)
    return (
        _fill(playbook, name, extraction)
        if extraction
        and extraction.status == "filled"
        and not playbook.value_error(plan, name, extraction.value)
        else None
    )


def _stance(
    playbook: Playbook,
    plan: PlanExecution,
    heard: Heard,
    name: str | None,
    answer: Extraction | None,
) -> Commands:
    """Why a message that gives nothing gives nothing."""
    if name is None:
        return [Unclear(why="nothing was asked")]
    status = answer.status if answer else "abstained"
    reason = answer.reason if answer else ""
    if status == "filled" and answer is not None:
        problem = playbook.value_error(plan, name, answer.value)
        return [Refuse(name, problem, why=reason)] if problem else [_fill(playbook, name, answer)]
    if answer is not None and answer.problem:
        return [Refuse(name, answer.problem, answer.half, why=reason)]
    if answer is not None and answer.choices and name not in playbook.sensitive:
        return [Clarify(param=name, choices=answer.choices, why=reason)]
    if status == "dontcare":
        return [DontCare(name, why=reason)]
    if status == "declined":
        return [Decline(name, why=reason)]
    if status == "question":
        return [asks_about(playbook, name, heard.text, reason)]
    return [_no_value(playbook, name, heard.text, reason)]


def _no_value(playbook: Playbook, name: str, text: str, reason: str) -> Command:
    """The command for a message that gives no value of the parameter.

    It declines, is near an allowed value, has the wrong form, or is unclear.
    """
    param = playbook.param(name)
    if param.on_declined != "ask" and (yes_or_no(text) is False or _NOTHING.fullmatch(text)):
        return Decline(name, why="says no")
    if (
        param.type is ParamType.ENUM
        and name not in playbook.sensitive
        and (near := nearest(param, text))
    ):
        return Clarify(
            param=name,
            choices=(near,),
            confidence=0.4,
            why="the allowed value that is most like it",
        )
    if param.type is ParamType.IDENTIFIER and re.search(r"\d", text):
        return Refuse(name, WRONG_FORM, why="does not have the right form")
    return Unclear(why=reason or "no value found")


_NOTHING: Final = re.compile(
    r"\W*(?:no,? )?(?:none|nothing(?: else| more)?|nope|not really)\W*", re.IGNORECASE
)
