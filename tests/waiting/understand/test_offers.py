"""Where no request is recognised, the user is offered the likeliest; what was said is kept."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from typing import Any, Protocol

import pytest
from langchain_core.tools import tool
from talk_desks import Calls, desk_named, tools_of

from langmem_ext import (
    Classification,
    ClassifyRequest,
    DeltaSaver,
    IntentCatalog,
    Turn,
    build_waiting_graph,
    converse,
)

NOW = datetime(2026, 3, 4, 10, 15)
NUMBER = {"type": "identifier", "prompt": "Which number?", "pattern": r"S\d{6}"}
PAPER: Any = {
    "intents": [
        {
            "id": "missing_paper",
            "description": "Report a paper that was not delivered",
            "examples": ["my paper didn't come"],
            "required": ["number", "missed_on"],
            "reply": "Sorry: {number}, {missed_on}.",
        },
        {
            "id": "end_subscription",
            "description": "End a subscription",
            "examples": ["unsubscribe"],
            "required": ["number"],
            "reply": "{number} is ended.",
        },
        {
            "id": "small_ad",
            "description": "Place a small ad",
            "examples": ["advertise something"],
            "required": ["edition", "issue"],
            "reply": "{edition} on {issue}.",
        },
    ],
    "params": {
        "number": {**NUMBER, "description": "subscription number"},
        "missed_on": {"type": "date", "description": "day without a paper", "prompt": "Which day?"},
        "edition": {"type": "enum", "enum": ["morning", "weekend"], "prompt": "Which edition?"},
        "issue": {"type": "date", "description": "day of the ad", "prompt": "For which day?"},
    },
    "replies": {"unknown": "I can help with papers and ads."},
}


class Said(Protocol):
    """Says messages in turn on one thread; the last reply."""

    def __call__(self, *texts: str) -> str: ...


@pytest.fixture
def said() -> Iterator[Said]:
    builder = build_waiting_graph(IntentCatalog.from_dict(PAPER), [])
    with DeltaSaver.open(":memory:") as saver:
        graph = builder.compile(checkpointer=saver)

        def say(*texts: str) -> str:
            turns: list[Turn] = [converse(graph, text, thread_id="t", now=NOW) for text in texts]
            return turns[-1].reply

        yield say


def test_values_alone_offer_the_requests_that_take_them(said: Said) -> None:
    assert said("nothing on the doormat") == "I can help with papers and ads."
    offered = said("S204417")
    assert "report a paper" in offered
    assert "end a subscription" in offered
    assert "small ad" not in offered


def test_the_choice_takes_what_was_said_before_and_is_no_value_itself(said: Said) -> None:
    said("nothing on the doormat", "S204417")
    assert said("the first") == "Which day?"
    assert said("today") == "Sorry: S204417, 2026-03-04."


def test_values_that_only_one_request_takes_offer_it_alone(said: Said) -> None:
    offered = said("nothing on the doormat today", "S204417")
    assert offered == "Do you mean: report a paper that was not delivered?"
    assert said("yes") == "Sorry: S204417, 2026-03-04."


def test_a_second_message_that_is_not_understood_lists_what_a_small_catalog_offers(
    said: Said,
) -> None:
    listed = said("hocus pocus", "abracadabra simsalabim")
    assert all(
        text in listed for text in ("report a paper", "end a subscription", "place a small ad")
    )
    assert said("the third") == "Which edition?"


def last_reply(name: str, *texts: str) -> tuple[str, Calls]:
    """What a desk says to the last of some messages, and the calls that it has made."""
    desk = desk_named(name)
    calls: Calls = []
    builder = build_waiting_graph(IntentCatalog.from_dict(desk["catalog"]), tools_of(desk, calls))
    with DeltaSaver.open(":memory:") as saver:
        graph = builder.compile(checkpointer=saver)
        turns = [converse(graph, text, thread_id="t", now=NOW) for text in texts]
    return turns[-1].reply, calls


def test_a_request_that_is_little_like_the_message_does_not_stand_alone() -> None:
    offered, _ = last_reply("giftshop", "its been ten days now and still nothing in the post")
    assert offered.startswith("Do you mean: track an order, or")


def test_what_runs_without_a_confirmation_is_asked_about_where_another_is_as_likely() -> None:
    asked, calls = last_reply("bikes", "you rang me about T-655. fine, do the chain as well")
    assert asked == "Do you mean: ask whether a bicycle is ready, or agree to a higher price?"
    assert calls == []


def test_what_says_no_more_than_good_is_no_part_of_an_answer_in_any_words() -> None:
    asked, _ = last_reply("airline", "book help for a passenger, PTN606", "good. aberdeen")
    assert asked == "What is the passenger's name?"


TOP_UP = "top up my daughter's phone, 07700 900277, with 10 pounds"


def test_who_asked_is_offered_to_the_request_that_was_interrupted() -> None:
    before = ("change my plan to medium", f"before that, {TOP_UP}", "yes")
    asked, _ = last_reply("mobile", *before)
    assert asked.endswith("Did you mean 07700900277?")
    asked, _ = last_reply("mobile", *before, "yes", "tomorrow")
    assert asked == "Change 07700900277 to medium from 2026-03-05?"


def test_another_value_counts_whatever_is_said_before_it() -> None:
    before = ("change my plan to medium", f"before that, could you {TOP_UP}", "yes")
    own = "Right, now my plan. My own number is 07700 900278."
    asked, _ = last_reply("mobile", *before, own, "tomorrow")
    assert asked == "Change 07700900278 to medium from 2026-03-05?"


@pytest.mark.parametrize("no", ["no", "none of them"])
def test_who_wants_none_of_them_is_asked_nothing_more(said: Said, no: str) -> None:
    said("hocus pocus", "abracadabra simsalabim")
    assert said(no) == "I can help with papers and ads."


def test_one_of_two_values_that_a_first_message_names_is_asked_for(said: Said) -> None:
    asked = said("i want to place a small ad on friday, morning edition, no idea, weekend edition")
    assert asked == "Do you mean: morning or weekend?"
    assert said("the second") == "weekend on 2026-03-06."


def test_the_second_of_two_dates_is_that_date_and_no_day_of_the_month(said: Said) -> None:
    asked = said("i want to place a small ad, morning edition, on thursday, no idea, friday")
    assert asked == "Do you mean: 2026-03-05 or 2026-03-06?"
    assert said("the second") == "morning on 2026-03-06."


def test_a_value_that_is_taken_back_is_not_offered(said: Said) -> None:
    told = said("i want to place a small ad, morning edition, on thursday - sorry no, friday")
    assert told == "morning on 2026-03-06."


def test_who_goes_on_with_one_of_the_offered_requests_keeps_what_was_said_before(
    said: Said,
) -> None:
    said("nothing on the doormat", "S204417")
    assert said("my paper didn't come today") == "Sorry: S204417, 2026-03-04."


def test_a_choice_by_place_may_say_more(said: Said) -> None:
    said("nothing on the doormat", "S204417")
    assert said("the first, and it was today") == "Sorry: S204417, 2026-03-04."


def test_the_one_request_that_a_first_message_may_ask_for_is_taken_up() -> None:
    asked, _ = last_reply("podiatry", "dad needs his corns done, thursday the 12th")
    assert asked == "At what time?"


class OneGuess:
    """A classifier that is sure of nothing, and takes the first request for a possible one."""

    def classify(self, request: ClassifyRequest) -> Classification:
        """One choice."""
        return Classification(confidence=0.2, choices=[request.catalog.intents[0].id])

    async def aclassify(self, request: ClassifyRequest) -> Classification:
        """Async twin of `classify`."""
        return self.classify(request)


def test_it_is_read_back_unless_the_user_answers_one_of_its_questions() -> None:
    @tool
    def hire_skip(size: str, day: date) -> str:
        """Hire a skip."""
        return f"{size} {day}"

    skip = {"id": "hire_skip", "description": "Hire a skip", "required": ["size", "day"]}
    params = {"size": {"enum": ["mini", "large"]}, "day": {"type": "date", "prompt": "Which day?"}}
    catalog = IntentCatalog.from_dict(
        {"intents": [{**skip, "tool": "hire_skip", "reply": "Ordered."}], "params": params}
    )
    graph = build_waiting_graph(catalog, [hire_skip], classifier=OneGuess())

    def ends(*texts: str) -> str:
        with DeltaSaver.open(":memory:") as saver:
            ask = graph.compile(checkpointer=saver)
            turns = [converse(ask, text, thread_id="t", now=NOW) for text in texts]
        return turns[-1].reply

    whole = "rubble everywhere, mini, 6 march"
    assert ends(whole) == "Hire a skip (size mini, day 2026-03-06). Is that right?"
    assert ends(whole, "yes") == "Ordered."
    assert ends("rubble everywhere, mini", "6 march") == "Ordered."


def test_of_several_offered_requests_the_next_values_choose_the_one_that_takes_most(
    said: Said,
) -> None:
    said("hocus pocus", "abracadabra simsalabim")
    assert said("S204417, it was today") == "Sorry: S204417, 2026-03-04."


def test_a_possible_request_that_takes_more_of_the_values_than_the_others_is_taken_up() -> None:
    asked, _ = last_reply("lounge", "lounge for four on the 20th, flying QL882")
    assert asked == "What time will you arrive?"


def test_who_starts_over_where_requests_are_offered_has_said_nothing_before(said: Said) -> None:
    assert said("nothing on the doormat", "S204417").startswith("Do you mean: ")
    begun = said("that's all wrong. start over: a small ad on friday")
    assert begun == "Which edition?"
    assert said("weekend") == "weekend on 2026-03-06."


def test_a_doubtful_value_that_is_passed_over_counts_and_is_read_back() -> None:
    asked, _ = last_reply("water", *LEAK)
    assert asked == "Did you mean gushing?"
    read_back, calls = last_reply("water", *LEAK, "07700 900733")
    assert read_back.endswith("severity gushing, reporter phone 07700900733). Is that right?")
    assert calls == []


LEAK = (
    "theres a river running down our hill, must be one of your pipes",
    "the first",
    "outside 22 Bellevue Crescent",
    "absolutely pounding",
)


def test_a_question_in_between_is_answered_and_the_offer_stands() -> None:
    rang = "you rang me about T-655. fine, do the chain as well"
    answered, _ = last_reply("bikes", rang, "when are you open?")
    assert answered == "Tuesday to Saturday, 9 to 6."
    asked, _ = last_reply("bikes", rang, "when are you open?", "the second")
    assert asked == last_reply("bikes", rang, "the second")[0] != answered


def test_a_wish_for_something_else_is_no_free_text() -> None:
    broken = "id like to bring in my cylinder vacuum for repair"
    asked, _ = last_reply("appliances", broken)
    assert asked == "What is wrong with it?"
    instead, _ = last_reply(
        "appliances", broken, "its too heavy, could you fetch it from my house?"
    )
    assert instead == "What is your address?"
    back, _ = last_reply(
        "appliances", broken, "its too heavy, could you fetch it from my house?", "cancel"
    )
    assert back.endswith("What is wrong with it?")


VISIT: Any = {
    "intents": [
        {
            "id": "visit",
            "description": "Have a tuner come",
            "examples": ["tune my piano", "I need a tuner"],
            "required": ["visit", "address"],
            "reply": "We come on {visit} to {address}.",
        }
    ],
    "params": {
        "visit": {"type": "datetime", "prompt": "On which day and at what time?", "future": True},
        "address": {"type": "address", "prompt": "Where?"},
    },
}


@pytest.mark.parametrize("before", [("tune my piano on friday",), ("tune my piano", "friday")])
def test_the_day_of_a_moment_counts_until_its_time_is_said(before: tuple[str, ...]) -> None:
    builder = build_waiting_graph(IntentCatalog.from_dict(VISIT), [])
    with DeltaSaver.open(":memory:") as saver:
        graph = builder.compile(checkpointer=saver)
        turns = [converse(graph, text, thread_id="t", now=NOW) for text in (*before, "at 2 pm")]
        assert "It must have a time of day, too." in turns[-2].reply
        assert turns[-1].reply == "Where?"
        values = graph.get_state({"configurable": {"thread_id": "t"}}).values
    assert values["params"] == {"visit": "2026-03-06T14:00"}


def test_nothing_of_a_sensitive_moment_is_kept_before_it_is_whole() -> None:
    catalog = {**VISIT, "params": {**VISIT["params"]}}
    catalog["params"]["visit"] = {**VISIT["params"]["visit"], "sensitive": True}
    builder = build_waiting_graph(IntentCatalog.from_dict(catalog), [])
    with DeltaSaver.open(":memory:") as saver:
        graph = builder.compile(checkpointer=saver)
        for text in ("tune my piano", "friday"):
            converse(graph, text, thread_id="t", now=NOW)
        values = graph.get_state({"configurable": {"thread_id": "t"}}).values
    assert "2026-03-06" not in str(values["plan"])


def test_a_day_does_not_come_back_when_the_whole_moment_is_taken_back() -> None:
    builder = build_waiting_graph(IntentCatalog.from_dict(VISIT), [])
    with DeltaSaver.open(":memory:") as saver:
        graph = builder.compile(checkpointer=saver)
        for text in ("tune my piano", "friday", "at 2 pm"):
            converse(graph, text, thread_id="t", now=NOW)
        values = graph.get_state({"configurable": {"thread_id": "t"}}).values
    assert values["params"] == {"visit": "2026-03-06T14:00"}
    assert values["plan"]["halves"] == {}
