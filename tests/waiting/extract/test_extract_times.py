"""Dates become ISO 8601 and times `HH:MM`, counted from the moment of the message."""

from __future__ import annotations

from datetime import datetime

import pytest

from langmem_ext.waiting.catalog.param import Extraction, Param, ParamType
from langmem_ext.waiting.extract import Reply, extract, find

NOW = datetime(2024, 5, 15, 10, 30)
"""A Wednesday."""

DAY = Param(name="delivery_date", type=ParamType.DATE)
START = Param(name="start_date", type=ParamType.DATE, role="from")
END = Param(name="end_date", type=ParamType.DATE, role="to")
CLOCK = Param(name="pickup_time", type=ParamType.TIME)


def answer(
    param: Param, text: str, prompt: str = "When?", others: tuple[Param, ...] = ()
) -> Extraction:
    return extract(param, Reply(text, prompt=prompt, others=others, now=NOW))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2024-06-01", "2024-06-01"),
        ("March 8th", "2025-03-08"),
        ("the 8th of june", "2024-06-08"),
        ("May 15", "2024-05-15"),
        ("1st of July 2025", "2025-07-01"),
        ("May 11,2026", "2026-05-11"),
        ("the 3rd", "2024-06-03"),
        ("on the 16th, please", "2024-05-16"),
        ("the 20th of this month", "2024-05-20"),
        ("the 4th of next month", "2024-06-04"),
        ("today", "2024-05-15"),
        ("Tomorrow at 5", "2024-05-16"),
        ("the day after tomorrow", "2024-05-17"),
        ("Friday", "2024-05-17"),
        ("this saturday", "2024-05-18"),
        ("Wednesday", "2024-05-22"),
        ("next Friday", "2024-05-24"),
        ("Tuesday next week", "2024-05-21"),
        ("fri", "2024-05-17"),
        ("Sunday the 19th", "2024-05-19"),
        ("the 2nd monday of june", "2024-06-10"),
        ("in two weeks", "2024-05-29"),
        ("3 days from now", "2024-05-18"),
        ("8/3", "2024-08-03"),
        ("24/12/2024", "2024-12-24"),
        ("24.12.2024", "2024-12-24"),
        ("Feb 29", "2028-02-29"),
        ("not Friday, Saturday", "2024-05-18"),
        ("Friday, sorry, I mean Saturday", "2024-05-18"),
    ],
)
def test_a_date_is_normalised_against_now(text: str, value: str) -> None:
    assert answer(DAY, text).value == value


@pytest.mark.parametrize(
    "text",
    [
        "30 February",
        "the 31st of June",
        "13/13/2024",
        "June",
        "next week",
        "the first one",
        "may I ask why?",
        "two",
        "at 5 pm",
        "9th Avenue",
        "Friday or Saturday",
        "I don't know",
    ],
)
def test_what_names_no_single_existing_day_is_no_date(text: str) -> None:
    assert answer(DAY, text).status != "filled"


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("from June 3rd to June 9th", "2024-06-03", "2024-06-09"),
        ("I keep it until the 9th of June and start on June 3rd", "2024-06-03", "2024-06-09"),
        ("June 3rd, June 9th", "2024-06-03", "2024-06-09"),
        ("returning June 9th", None, "2024-06-09"),
        ("from June 3rd", "2024-06-03", None),
    ],
)
def test_of_two_dates_each_goes_to_its_role(text: str, start: str | None, end: str | None) -> None:
    assert answer(START, text, "From when to when?", (END,)).value == start
    assert answer(END, text, "From when to when?", (START,)).value == end


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("half past 3 in the afternoon", "15:30"),
        ("ten to five in the afternoon", "16:50"),
        ("5 in the evening", "17:00"),
        ("evening 6:15", "18:15"),
        ("seven pm", "19:00"),
        ("3PM", "15:00"),
        ("6 a.m.", "06:00"),
        ("12:30 am", "00:30"),
        ("12 am", "00:00"),
        ("noon", "12:00"),
        ("at midnight", "00:00"),
        ("18:45", "18:45"),
        ("07:30", "07:30"),
        ("0:30", "00:30"),
        ("19h", "19:00"),
        ("12", "12:00"),
        ("1830", "18:30"),
        ("730pm", "19:30"),
        ("half past 5pm", "17:30"),
        ("quarter past nine in the morning", "09:15"),
        ("half six in the evening", "18:30"),
        ("8ish pm", "20:00"),
        ("quarter to one", "12:45"),
        ("30 minutes before 12pm", "11:30"),
        ("an hour after noon", "13:00"),
        ("1615", "16:15"),
        ("16h30", "16:30"),
        ("6 o'clock in the evening", "18:00"),
        ("in half an hour", "11:00"),
        ("4 people at 6 pm on June 3rd", "18:00"),
    ],
)
def test_a_time_is_hours_and_minutes(text: str, value: str) -> None:
    assert answer(CLOCK, text, "At what time?").value == value


@pytest.mark.parametrize(
    "text",
    [
        "25:00",
        "13:61",
        "tomorrow",
        "in the morning",
        "for 2 people",
        "after lunch",
        "the 3rd",
        "what times?",
        "",
    ],
)
def test_what_names_no_hour_is_no_time(text: str) -> None:
    assert answer(CLOCK, text, "At what time?").status != "filled"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("tonight at 9", "21:00"),
        ("for 2 tonight at 9", "21:00"),
        ("tonight at quarter to eight", "19:45"),
        ("dinner for 4 at 8", "20:00"),
        ("breakfast, say around 8", "08:00"),
        ("lunch at 1", "13:00"),
        ("tomorrow evening, let's say half past 6", "18:30"),
        ("11 at night", "23:00"),
        ("2 at night", "02:00"),
        ("tonight at 12", "00:00"),
    ],
)
def test_words_for_a_part_of_the_day_decide_the_half_of_it(text: str, value: str) -> None:
    assert answer(CLOCK, text, "At what time?").value == value


@pytest.mark.parametrize(
    ("text", "raw", "choices"),
    [
        ("7", "7", ("07:00", "19:00")),
        ("at eight", "eight", ("08:00", "20:00")),
        ("around 8", "8", ("08:00", "20:00")),
        ("1", "1", ("01:00", "13:00")),
        ("7.30 please", "7.30", ("07:30", "19:30")),
        ("somewhere between 7 and 9 pm", "between 7 and 9", ("19:00", "21:00")),
        ("half past 3", "half past 3", ("03:30", "15:30")),
        ("half six", "half six", ("06:30", "18:30")),
        ("quarter to six", "quarter to six", ("05:45", "17:45")),
        ("5 to 8", "5 to 8", ("07:55", "19:55")),
        ("7 o'clock", "7 o'clock", ("07:00", "19:00")),
        ("seven thirty", "seven thirty", ("07:30", "19:30")),
        ("good evening, 7 please", "7", ("07:00", "19:00")),
        ("not 7, 7:30", "7:30", ("07:30", "19:30")),
    ],
)
def test_an_hour_that_may_be_in_the_morning_or_in_the_evening_is_not_taken(
    text: str, raw: str, choices: tuple[str, str]
) -> None:
    found = answer(CLOCK, text, "At what time?")
    assert (found.status, found.value, found.reason) == ("abstained", None, "morning or evening")
    assert (found.raw, found.choices) == (raw, choices)


def test_the_question_and_the_parameter_decide_the_half_of_the_day_too() -> None:
    assert answer(CLOCK, "9", "In the evening, at what time?").value == "21:00"
    assert answer(CLOCK, "9", "For lunch or for dinner?").choices == ("09:00", "21:00")
    assert (
        answer(Param(name="dinner_time", type=ParamType.TIME), "9", "What time?").value == "21:00"
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7pm, no wait, 8pm", "20:00"),
        ("8pm no wait 9", "21:00"),
        ("tonight at 8, no, 9", "21:00"),
        ("10 am. Sorry, I meant 11", "11:00"),
        ("make it 19:00, actually 19:30", "19:30"),
    ],
)
def test_of_a_time_that_is_corrected_the_last_said_counts(text: str, value: str) -> None:
    assert answer(CLOCK, text, "At what time?").value == value


@pytest.mark.parametrize(
    "text",
    ["we are 5, no 6", "table for 4", "9 Mill Lane", "at 9 Mill Lane", "from 7 or 8", "7 people"],
)
def test_numbers_of_something_else_are_no_time(text: str) -> None:
    found = answer(CLOCK, text, "At what time?")
    assert (found.status, found.choices) == ("abstained", ())


@pytest.mark.parametrize(
    "text", ["a table at 8", "see you around 8 on friday", "half seven would do"]
)
def test_a_message_that_answers_nothing_marks_an_hour_by_its_preposition(text: str) -> None:
    assert find(CLOCK, text, now=NOW).choices
    assert (
        find(CLOCK.model_copy(update={"bounds": ("11:00", "23:00")}), text, now=NOW).status
        == "filled"
    )


@pytest.mark.parametrize(
    "text", ["at 12 Mill Lane", "around 8 people", "5 to 8", "at 8 Mile Cafe", "for 8", "8"]
)
def test_a_message_that_answers_nothing_holds_no_hour_without_its_mark(text: str) -> None:
    found = find(CLOCK, text, now=NOW)
    assert (found.status, found.choices) == ("abstained", ())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a week from saturday", "2024-05-25"),
        ("saturday week", "2024-05-25"),
        ("tuesday week", "2024-05-28"),
        ("two weeks from friday", "2024-05-31"),
        ("a week tomorrow", "2024-05-23"),
        ("a fortnight from saturday", "2024-06-01"),
        ("a week from the 3rd", "2024-06-10"),
        ("two days before christmas", "2024-12-23"),
        ("from friday for 3 days", "2024-05-17"),
        ("for a week from friday", "2024-05-17"),
        ("4 days from the 20th", "2024-05-20"),
        ("a table for a week from friday", "2024-05-24"),
    ],
)
def test_a_day_may_be_counted_from_another_one(text: str, value: str) -> None:
    assert answer(DAY, text).value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("christmas eve", "2024-12-24"),
        ("Christmas", "2024-12-25"),
        ("new year's eve", "2024-12-31"),
        ("new years day", "2025-01-01"),
        ("Halloween", "2024-10-31"),
    ],
)
def test_a_feast_is_its_next_day(text: str, value: str) -> None:
    assert answer(DAY, text).value == value


@pytest.mark.parametrize(
    ("text", "value", "raw"),
    [
        ("wensday", "2024-05-22", "wensday"),
        ("next wendesday please", "2024-05-22", "next wendesday"),
        ("tomorow", "2024-05-16", "tomorow"),
        ("ok tmrw", "2024-05-16", "tmrw"),
        ("day after tmrw at 5", "2024-05-17", "day after tmrw"),
        ("on satuday, please", "2024-05-18", "satuday"),
        ("febuary 3rd", "2025-02-03", "febuary 3rd"),
        ("the 1st of setpember", "2024-09-01", "1st of setpember"),
        ("2moro or so", "2024-05-16", "2moro"),
    ],
)
def test_a_misspelt_day_or_month_is_read_where_it_stands(text: str, value: str, raw: str) -> None:
    found = answer(DAY, text)
    assert (found.value, found.raw) == (value, raw)


@pytest.mark.parametrize(
    "text",
    [
        "remember me",
        "this weekend",
        "a christmas party",
        "we sat down",
        "not on monday",
        "all sundry",
    ],
)
def test_words_that_look_like_days_are_none(text: str) -> None:
    assert answer(DAY, text).status != "filled"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("friday no wait saturday", "2024-05-18"),
        ("not friday, saturday", "2024-05-18"),
        ("monday no tuesday", "2024-05-21"),
        ("friday but not on monday", "2024-05-17"),
        ("last friday", "2024-05-10"),
        ("yesterday", "2024-05-14"),
        ("this coming sat", "2024-05-18"),
        ("fri 7pm", "2024-05-17"),
    ],
)
def test_of_a_day_that_is_corrected_the_last_said_counts(text: str, value: str) -> None:
    assert answer(DAY, text).value == value


def test_bounds_choose_among_the_readings_of_a_date_without_its_year() -> None:
    march = DAY.model_copy(update={"bounds": ("2024-03-01", "2024-03-31")})
    assert answer(march, "8/3").value == "2024-03-08"
    assert answer(march, "12 march").value == "2024-03-12"
    assert answer(march, "12 april").problem == "it must be between 2024-03-01 and 2024-03-31"


NEW_DAY = Param(name="new_day", type=ParamType.DATE, description="new day of the session")
NEW_TIME = Param(name="new_time", type=ParamType.TIME, description="new time of the session")


@pytest.mark.parametrize(
    ("text", "day", "time"),
    [
        ("I was meant to come at 2pm today, could I come tomorrow at 3pm", "2024-05-16", "15:00"),
        ("on thursday I have no time, is monday at 3pm possible", "2024-05-20", "15:00"),
        ("friday 2pm but I can't make it, saturday 4pm would do", "2024-05-18", "16:00"),
        ("I was booked for 2pm", None, None),
    ],
)
def test_what_another_day_and_time_take_the_place_of_is_neither(
    text: str, day: str | None, time: str | None
) -> None:
    assert (find(NEW_DAY, text, now=NOW).value, find(NEW_TIME, text, now=NOW).value) == (day, time)


@pytest.mark.parametrize(
    ("text", "value"),
    [("half past would be better", "10:30"), ("quarter to", "09:45"), ("half past 4pm", "16:30")],
)
def test_minutes_alone_move_the_hour_that_is_known(text: str, value: str) -> None:
    assert find(NEW_TIME, text, now=NOW, filled={"new_time": "10:00"}).value == value
    assert find(NEW_TIME, "half past", now=NOW).status == "abstained"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("can we have the court 3-5pm", "15:00"),
        ("from 11 to 1pm", "11:00"),
        ("7.30-9am", "07:30"),
        ("10 to 4pm", "16:00"),
    ],
)
def test_the_beginning_of_a_range_shares_the_part_of_the_day(text: str, value: str) -> None:
    assert answer(CLOCK, text).value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a wash, fri 12 april 9.40, under Novak", "09:40"),
        ("I'll be at yours at 8.30", "08:30"),
        ("10.15 on monday", "10:15"),
        ("a 9.40 refund on 12 march", None),
        ("42.60 for a taxi yesterday", None),
    ],
)
def test_hours_and_minutes_with_a_point_are_a_time_beside_a_day(
    text: str, value: str | None
) -> None:
    morning = CLOCK.model_copy(update={"bounds": ("08:00", "18:00")})
    assert find(morning, text, now=NOW).value == value


BEGINS = Param(name="start_time", type=ParamType.TIME, role="from", bounds=("07:00", "20:00"))
ENDS = Param(name="end_time", type=ParamType.TIME, role="to", bounds=("07:00", "20:00"))


@pytest.mark.parametrize(
    ("text", "begins", "ends"),
    [
        ("9 to 10", "09:00", "10:00"),
        ("a hall on friday, 2-4 please", "14:00", "16:00"),
        ("from two to half past three", "14:00", "15:30"),
        ("between 10 and 11.30", "10:00", "11:30"),
        ("3pm to 4pm", "15:00", "16:00"),
        ("11 till quarter to 1", "11:00", "12:45"),
        ("the hall for 20 to 30 people", None, None),
        ("14 to 16 march", None, None),
        ("3 and 4", None, None),
    ],
)
def test_a_range_of_hours_has_two_ends(text: str, begins: str | None, ends: str | None) -> None:
    pair = (BEGINS, ENDS)
    values = [extract(param, Reply(text, others=pair, now=NOW)).value for param in pair]
    assert values == [begins, ends]


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("thursday. no hang on she has choir, saturday", "2024-05-18"),
        ("thursday, wait my car is at the garage, so friday", "2024-05-17"),
        ("thursday, no need to call back before saturday", "2024-05-16"),
    ],
)
def test_a_reason_may_stand_before_the_day_that_is_meant(text: str, day: str) -> None:
    date = Param(name="visit_day", type=ParamType.DATE)
    assert extract(date, Reply(text, prompt="Which day?", now=NOW)).value == day


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("ten in the mornign", "10:00"),
        ("late afternoon, say five", "17:00"),
        ("this evening, around seven", "19:00"),
        ("this evening, 7 large pizzas", None),
        ("good afternoon, 3 please", None),
        ("10ish people", None),
    ],
)
def test_a_part_of_the_day_names_the_hour_behind_it(text: str, value: str | None) -> None:
    assert find(CLOCK, text, now=NOW).value == value


@pytest.mark.parametrize(
    ("text", "choices"),
    [
        ("not before three. 3.30 maybe", ("03:30", "15:30")),
        ("after four, 4.30 perhaps", ("04:30", "16:30")),
        ("before noon, maybe 11", ("11:00", "23:00")),
        ("9ish", ("09:00", "21:00")),
    ],
)
def test_a_proposed_hour_goes_before_its_limit(text: str, choices: tuple[str, str]) -> None:
    assert answer(CLOCK, text).choices == choices


NEW_DAY = Param(name="new_date", type=ParamType.DATE, description="the new day of the lesson")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("oh no i work tomorrow!! could you move it to monday", "2024-05-20"),
        ("shift the thursday one to the 22nd", "2024-05-22"),
        ("push it to saturday, sunday i am away", "2024-05-18"),
        ("busy tomorrow! change it to friday or saturday", None),
    ],
)
def test_what_is_moved_to_a_day_is_on_no_other(text: str, value: str | None) -> None:
    assert find(NEW_DAY, text, now=NOW).value == value


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("I'll collect it at 8.30. Name is Ann", "08:30"),
        ("One correction, there will be 16 of us", None),
        ("one please", "13:00"),
        ("how scary is it? my youngest is nine", None),
    ],
)
def test_a_point_ends_a_sentence_and_one_thing_is_no_hour(text: str, time: str | None) -> None:
    param = Param(name="at", type=ParamType.TIME, prompt="When?", bounds=("08:00", "18:00"))
    assert extract(param, Reply(text, prompt=param.prompt, now=NOW)).value == time


def test_what_follows_from_another_day_is_the_day() -> None:
    text = "we're back on the 22nd so till the 21st"
    assert answer(END, text).value == "2024-05-21"


@pytest.mark.parametrize(
    ("text", "choices"),
    [
        ("monday at 10 about my rash", ("10:00", "22:00")),
        ("at 11 to see the flat", ("11:00", "23:00")),
        ("we land at 1 so say half past", ("01:30", "13:30")),
        ("it starts at 2, quarter past for us", ("02:15", "14:15")),
        ("about 12 to feed", ()),
        ("at 10 or half past", ()),
    ],
)
def test_what_an_hour_is_for_leaves_it_one(text: str, choices: tuple[str, ...]) -> None:
    assert find(CLOCK, text, now=NOW).choices == choices


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("we open on the 27th of june but id need them by the 24th", "2024-06-24"),
        ("my birthday is the 20th of june, could you do the 18th", "2024-06-18"),
        ("the wedding is june 8th and i want them on june 6th", "2024-06-06"),
        ("i need them on june 6th, the wedding is june 8th", "2024-06-06"),
        ("we'd want to be off by the 10th of june, so by the 9th", "2024-06-09"),
    ],
)
def test_of_two_days_the_one_that_is_wished_for_counts(text: str, value: str) -> None:
    needed = Param(
        name="needed_by",
        type=ParamType.DATE,
        description="day the order must be ready",
        prompt="By which day do you need it?",
    )
    assert extract(needed, Reply(text, prompt=needed.prompt, now=NOW)).value == value


@pytest.mark.parametrize("text", ["thursday next week", "tomorrow", "1 may 2031"])
def test_nobody_is_born_on_a_day_to_come(text: str) -> None:
    born = Param(name="born", type=ParamType.DATE, description="date of birth")
    assert extract(born, Reply(text, prompt="When were you born?", now=NOW)).value is None
