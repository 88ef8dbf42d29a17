"""Words that mean the same to somebody who asks for something: a small English lexicon.

A catalog says "cancel a lesson", a user writes "we have to call tuesday off". Each line, with
those that go on from it, is one concept; a word may belong to several. Words are compared by their
stems, phrases as they stand. Only everyday words are here: what a shop calls its goods is the
catalog's to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from langmem_ext.waiting.extract.english.vocabulary import stem
from langmem_ext.waiting.extract.reading_cache import remembered

_GROUPS: Final = """\
cancel: cancel, cancellation, call off, scrap, drop, withdraw, abandon, can't come, can't make it,
    cannot make it, cannot come, not coming, won't make it, won't be coming, won't come, unable to
    attend, don't need it anymore, no longer need, get rid of my, back out, pull out, undo, annul,
    won't need, won't be needing, will not need, don't need, do not need, not needed, don't bother,
    don't come, not going anymore, can't attend, won't be able to, not able to come, not going to
    make it, no longer want, don't want it anymore, take me off, take us off, terminate,
    unsubscribe, end my, stop my, had enough, want out
book: book, booking, put down, count me in, get me in,
    reserve, reservation, rent, rental, hire, schedule, appointment, arrange, set up, sign up,
    enrol, enroll, register, registration, slot, fit me in, squeeze in, squeeze me in, squeeze us
    in, see somebody, see someone, come in, take out, borrow, try out, trial
change: change, reschedule, move, postpone, shift, switch, swap, amend, modify, alter, adjust, edit,
    update, come instead, make it instead, correct, different, another day, another time, another
    date, other day, bring forward, push back, put off, rebook
extend: extend, extension, renew, renewal, prolong, keep longer, longer, more time, stay longer,
    stay on, a bit longer, keep it longer, another week, another night, extra night, extra week, an
    extra day
price: price, pricing, cost, costs, fee, fees, rate, rates, tariff, charge, charges, how much,
    expensive, cheap, fare, quote, estimate, what do you charge, what do you take, how much is, how
    much are, what does it cost, price list, charged, what would it be
hours: opening, open, opens, close, closed, closes, hours, opening hours, opening times, what time
    do you, when do you, office hours, till when, until when, shut, shuts, are you open, which days,
    what days, until what time
status: status, track, tracking, where is, where my, where our, where's, wheres, how far, progress,
    ready, done yet, finished yet, still waiting, hasn't arrived, hasn't come, not arrived, when
    will, any news, what happened to, follow up, look up, check on, how much longer, been waiting,
    when is someone coming, when are you coming, on its way, on the way, is it ready, any sign,
    getting on, coming along,
    if it's done, if it's ready, whether it's done, whether it's ready, is it done,
    where has, got to, still nothing, nothing came, no sign of, not turned up, never turned up,
    hasn't turned up, didn't turn up
broken: broken, break, broke, breakdown, broken down, fault, faulty, defect, defective, damage,
    damaged, not working, doesn't work, does not work, doesnt work, isn't working, isnt working,
    stopped working, won't start, wont start, won't turn on, wont turn on, dead, crash, crashed,
    crashes, cracked, crack, smashed, leak, leaking, leaks, jammed, is stuck, gets stuck, got
    stuck, weird noise, noise, problem, issue, trouble, acting up, out of order, malfunction,
    freeze, freezes, frozen, won't work, wont work, playing up, won't switch on, won't open, won't
    close, won't shut, won't charge, torn, ripped, burst, clogged, bent, chipped, scratched,
    dented, wobbly, wobbles, grinding, rattling, squeaks, squeaky, worn out, fell off, come off,
    came off, snapped, cuts out, cutting out, went wrong, keeps stopping, nothing works, doesn't
    do anything, something is wrong, something's wrong, something wrong, somethings wrong,
    something's up, somethings up
repair: repair, fix, mend, service, servicing, maintenance, have a look at, take a look at, look at,
    inspect, inspection, check up, checkup, tune up, overhaul, technician, mechanic, plumber,
    engineer, sort out, put right, patch up, see to, tune, sew, stitch, someone look, somebody look,
    have it seen to
lost: lost, lose, missing, forgot, forget, left behind, left my, forgot my, forgotten, misplaced,
    can't find, cannot find, gone, disappeared, vanished, never arrived, never came, didn't arrive,
    didnt arrive, left it, left something, must have left, left in, left on, think i left
stolen: stolen, theft, stole, robbed, nicked, pinched, mugged
noise: noise, noisy, loud, music, singing, party, partying, shouting
accident: accident, crash, crashed, collision, bump, bumped, drove into, ran into, hit me, hit my
found: found, find, turned up
collect: collect, collection, pick up, pickup, picked up, fetch, come and get, haul
    away, take away, taken away, remove, removal, get rid of, dispose, disposal, empty,
    emptied
deliver: deliver, delivery, drop off, dropoff, bring, ship, shipping, shipment, send, sending,
    dispatch, post, mail, courier
parcel: parcel, package, packet, box, shipment, letter, envelope, consignment
return: return, give back, bring back, send back, hand back, take back, sent back, goes back
buy: buy, purchase, get, order, shop for, pay for, acquire
ticket: ticket, tickets, pass, fare
refund: refund, money back, reimburse, reimbursement, pay back, compensation, compensate
pay: pay, payment, paid, settle, bill, invoice
transfer: transfer, wire, send money, remit
report: report, tell you, let you know, notify, inform, announce, complain, complaint, flag
absent: absent, absence, away, miss, missing, can't come, can't make it, cannot come, won't be
    there, not coming, won't be in, won't be coming, skip, sick, ill, off sick, off today,
    off tomorrow, sick note, unwell,
    out sick, call in sick, won't be at, not be at, not be in, can't get in, cannot make it, can't
    come in, won't be able to come, won't be able to come in, won't be able to make it, not going
    to be able to come, not going to be able to come in, not gonna be able to come, not gonna be
    able to come in, not gonna make it, won't make it
sick: sick, ill, illness, unwell, fever, flu, cold, pain, hurts, hurt, ache, aching, sore, cough,
    headache, vomiting, dizzy, rash, symptoms, not feeling well, feel bad, feeling bad
doctor: doctor, doc, gp, physician, dr, nurse, practice, surgery, clinic, knee, shoulder, elbow,
    wrist, ankle, foot, toe, hip, neck, throat, chest, stomach, tummy, skin
medicine: prescription, medicine, medication, meds, pills, tablets, drug, repeat prescription,
    refill, inhaler, ointment
results: result, results, findings, lab, blood test, test results
leave: leave, holiday, holidays, vacation, time off, day off, days off, pto, annual leave, off work,
    week off, take off
work: work, job, office
room: room, meeting room, conference room, hall, space, venue
desk: desk, workplace, workspace, workstation, seat
computer: laptop, computer, notebook, pc, macbook, machine, screen, monitor, keyboard, mouse,
    device, hardware, printer
it: it support, tech support, helpdesk, help desk, it department, it problem, technical, software,
    login, log in, log on, locked out, password, vpn, wifi, internet, network, email account
phone: phone, mobile, cell, cellphone, smartphone, telephone
car: car, vehicle, auto, automobile, van, truck, motor, suv
tyre: tyre, tire, tyres, tires, wheel, wheels
bike: bike, bicycle, cycle, ebike
boat: boat, kayak, canoe, dinghy, sailboat, vessel, craft, pedalo, rowing boat
train: train, rail, railway
bus: bus, coach
flight: flight, plane, airplane, fly
trip: trip, journey, travel, ride, taxi, cab, tour, excursion, outing
seat: seat, seats, place to sit, window seat, aisle
luggage: luggage, baggage, bag, bags, suitcase, backpack, rucksack
lesson: lesson, lessons, class, classes, course, courses, tuition, tutoring, teach, teaching, learn,
    learning, session, workshop, training
teacher: teacher, tutor, instructor, coach, trainer
child: child, children, kid, kids, son, daughter, boy, girl, toddler, baby
instrument: instrument, guitar, piano, violin, drums, flute, cello, trumpet
waste: waste, trash, garbage, rubbish, litter, refuse, junk, scrap, bin, bins, dustbin, recycling,
    recyclables, dump, bulky, furniture
container: bin, bins, container, dustbin, can
home: home, house, flat, apartment, property, place, studio, unit
viewing: viewing, view, visit, see, come and see, come round, look around, look at the flat, see the
    flat, see the apartment, show me around, tour, look round, have a look round, come by, pop in,
    drop in, show us around, show us round, show me round, take a look round, see round
tenant: tenant, rent, renter, lease, landlord, rental
heating: heating, heater, radiator, boiler, hot water, warm water
water: water, tap, pipe, plumbing, drain, sink, toilet, shower
power: electricity, power, light, lights, socket, outlet
key: key, keys, lock, locked out, access card, badge, fob
address: address, moved, moving, relocate, relocated, new place, somewhere else, elsewhere
subscription: subscription, membership, contract, plan, member
account: account, profile
password: password, passcode, pin, log in, login, log on, sign in
human: human, person, somebody, someone, agent, representative, operator, colleague, real person,
    staff, adviser, advisor, manager, supervisor, talk to, speak to, speak with, talk with, call me,
    callback, call back
information: information, info, details, tell me about, know about, learn about, explain
rules: rules, policy, policies, allowed, permitted, am i allowed, may i
location: where are you, directions, how do i get, how to get there, parking, located, location
menu: menu, dishes, food, meal, eat, dinner, lunch
table: table
people: people, persons, guests, party, group, of us, headcount, attendees, adults, diners,
    passengers, travellers, visitors, heads
weather: weather, rain, wind, windy
availability: available, availability, free, vacancies, vacancy, in stock, left, any spots, do you
    have any, too late, room left, rooms left, space left, spaces left, place left, places left,
    seat left, seats left, ticket left, tickets left, spots left, slots left, any left
gift: gift, voucher, present, gift card, coupon
complaint: complaint, complain, unhappy, disappointed, unacceptable, terrible, awful, not happy, not
    good enough, not impressed, disgusted, appalling, dissatisfied, fed up, let down, complaining,
    disgrace, disgraceful
document: document, certificate, form, paper, papers, paperwork, letter, note
expense: expense, expenses, receipt, receipts, claim
salary: salary, payslip, pay slip, wages, paycheck, payroll
delay: delay, delayed, late, overdue
replace: replace, replacement, new one, substitute, exchange
photo: photo, picture, image
pet: pet, dog, cat, animal
birth: birth, birthday, born, dob, date of birth
party: party, celebration, celebrate, anniversary, wedding, married
test: test, exam, exams, check
vaccination: vaccination, vaccine, jab, shot, flu shot, booster
dentist: dentist, tooth, teeth, dental
insurance: insurance, insured, policy, cover, coverage, insure, insuring, protect, protection
loan: loan, credit, mortgage, borrow
card: card, credit card, debit card
block: block, freeze, lock, suspend, deactivate
large: large, big, biggest, largest, huge, full size, l
medium: medium, middle, mid, med, average, normal, regular, m
small: small, little, tiny, smallest, mini, s
extra large: extra large, extra_large, xl, xxl
cheap: cheap, cheapest, inexpensive, low, budget, affordable
expensive: expensive, pricey, high, upscale, premium, luxury
music: music, concert, concerts, gig, band, bands, singer, song, songs, live music, musical,
    orchestra
sport: sport, sports, game, games, match, football, soccer, baseball, basketball, hockey, rugby,
    tennis, stadium
wrong: wrong, wrong one, wrong thing, wrong item, not what i ordered, mixed up
early: early, morning, am
cash: cash, coins, notes
vegetarian: vegetarian, veggie, veg, meatless, no meat
automatic: automatic, auto
manual: manual, stick, stick shift, gears
urgent: urgent, asap, at once, immediately, emergency, straight away, right away, as soon as
    possible, here fast, out fast, come fast, come quick, come quickly, send someone, send
    somebody, get someone here, get somebody here, get someone out, get somebody out, pouring in,
    flooding in, coming through the ceiling
missing: missing, not delivered, wasn't delivered, undelivered, didn't come, didn't get, never came,
    never arrived, didn't arrive, hasn't come, hasn't arrived, never turned up, didn't turn up,
    hasn't turned up, not turned up, no sign of, still nothing, nothing came, not received, haven't
    received, didn't receive, haven't had
pause: pause, hold, suspend, put on hold, on hold, on holiday, while we're away, while i'm away,
    we're away, i'm away, being away
sell: sell, selling, take it off my hands, part exchange, second hand, for sale
advert: ad, advert, advertise, advertisement, announce, announcement, notice, classified, for sale
join: join, become a member, sign up, register, enrol, enroll, new here, new patient, new member,
    new customer, membership, put my name down
approve: approve, approval, agree, accept, authorise, authorize, go ahead, green light, fine by me
lend: borrow, lend, loan, take out, check out, on loan
wash: shower, showers, wash, bath, freshen up
"""


def _groups() -> Iterator[tuple[str, str]]:
    for line in re.sub(r"\n +", " ", _GROUPS).splitlines():
        name, words = line.split(": ", 1)
        for word in words.split(", "):
            yield name, word


def _by_stem() -> Mapping[str, frozenset[str]]:
    names_by_stem: dict[str, set[str]] = {}
    for name, word in _groups():
        if " " not in word:
            names_by_stem.setdefault(stem(word), set()).add(name)
    return {word: frozenset(names) for word, names in names_by_stem.items()}


def _by_phrase() -> Mapping[str, frozenset[str]]:
    names_by_phrase: dict[str, set[str]] = {}
    for name, words in _groups():
        if " " in words:
            names_by_phrase.setdefault(words, set()).add(name)
    return {words: frozenset(names) for words, names in names_by_phrase.items()}


WORDS: Final = _by_stem()
"""The concepts of a word, by its stem."""

ASPECTS: Final = frozenset({"price", "hours", "status", "rules", "location"})
"""Concepts that say what is asked about a thing, whatever the thing is."""

TROUBLES: Final = frozenset({"broken", "lost", "stolen", "wrong", "complaint", "accident"})
"""Concepts that say what has gone wrong with a thing that the user has already."""

PHRASES: Final = _by_phrase()
"""The concepts of several words together."""

_SPLIT: Final = re.compile(r"(\w+) (back|off|up|in|out|down|away|on)")
_OBJECT: Final = r"(?: (?:it|that|this|them|these|those|him|her|us|me|one))?"
"""What may stand inside a phrase of a verb and a particle: "send it back"."""


_VERY: Final = r"(?: at all| very| really| exactly| too| particularly| that)?"
"""What may stand behind the "not" of a phrase: "not at all happy"."""


def _pattern(words: str) -> str:
    split = _SPLIT.fullmatch(words)
    if words.startswith("not "):
        return rf"not{_VERY} {re.escape(words[4:])}"
    pattern = rf"{split[1]}{_OBJECT} {split[2]}" if split else re.escape(words)
    return pattern.replace("'", "'?")


_LONGEST_FIRST: Final = sorted(PHRASES, key=len, reverse=True)
_PHRASE: Final = re.compile(rf"(?<!\w)(?:{'|'.join(map(_pattern, _LONGEST_FIRST))})(?!\w)")
"""Any of the phrases, with or without its apostrophe."""

_UNMARKED: Final = {words.replace("'", ""): names for words, names in PHRASES.items()}
"""The phrases as people type them, without apostrophes."""


@remembered
def phrases_in(text: str) -> list[tuple[int, int, frozenset[str]]]:
    """The phrases of the lexicon in a lower-case text: start, end and concepts."""
    phrases = []
    for match in _PHRASE.finditer(text):
        words = match.group().replace("'", "")
        if words.startswith("not "):
            words = re.sub(rf"^not{_VERY} ", "not ", words)
        concepts = _UNMARKED.get(words) or _UNMARKED[re.sub(r" .* ", " ", words)]
        phrases.append((match.start(), match.end(), concepts))
    return phrases
