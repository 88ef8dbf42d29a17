"""Closed word classes of English: what can never be a name, and what frames an answer."""

from __future__ import annotations

import re


def word_set(text: str) -> frozenset[str]:
    """The words of `text`, as a set."""
    return frozenset(text.split())


PRONOUNS = word_set(
    "i me my mine myself we us our ours you your yours he him his she her hers it its they them"
    " their this that these those someone somebody something somewhere anyone anybody anything"
    " anywhere everything nothing there here who what which where when why how"
)
AUXILIARIES = word_set(
    "am is are was were be been being do does did done doing have has had having will would shall"
    " should can could may might must i'm i'd i'll i've we're we'd we'll we've it's that's there's"
    " what's let's you're they're isn't don't doesn't didn't won't can't couldn't wouldn't"
    " shouldn't aren't wasn't im id ill ive dont cant its thats lets gonna wanna gotta it'll"
    " that'll he's she's"
)
CONTRACTIONS = frozenset(
    f"{word}'{end}" for word in PRONOUNS for end in ("s", "d", "ll", "re", "ve")
)
DETERMINERS = word_set(
    "a an the some any every each all both either neither no another other such same few several"
    " many much"
)
PREPOSITIONS = word_set(
    "in on at to from of for with by about near around into onto towards toward via through over"
    " under between within without until till above below before after during since off out up down"
    " inside outside close next as than per"
)
CONJUNCTIONS = word_set(
    "and or but if so because then also too either nor while though although plus"
)
POLITENESS = word_set(
    "yes yeah yep yup yea no nope nah ok okay k sure please thanks thank thx hi hello hey well hmm"
    " um umm uh uhh oh ah ahh aw wow however besides otherwise moreover anyway unfortunately"
    " currently thankyou great perfect fine good nice cool awesome alright right correct absolutely"
    " definitely certainly exactly actually sorry maybe perhaps probably just only really cheers ta"
    " mate thankyou thx ty tks np nvm lol innit ya yeh yas righto kindly course bye goodbye"
    " excellent wonderful sounds super fab brill brilliant ace not now later today again instead"
    " still already"
)
APPROVING = word_set(
    "yes yeah yep yup yea ya yas y aye sure ok okay k right correct exactly indeed perfect"
    " perfectly great good fine lovely wonderful marvellous marvelous brilliant fantastic super"
    " superb excellent splendid amazing ideal sweet neat nice cool awesome alright absolutely"
    " definitely certainly affirmative agreed agree approved confirm confirmed confirms proceed"
    " true spot deal done grand brill ace fab sound cushty smashing lush yh si"
    " oui ja mhm"
)
"""Words that say yes, without their apostrophes."""
VERBS = word_set(
    "want wanted need needs like likes liked love prefer looking look find finding search searching"
    " book booking reserve reserving get getting give go going gone goes come coming make making"
    " set take taking put try trying see seeing watch watching check checking show tell know think"
    " thinking hoping hope plan planning planned arrange schedule send sending transfer pay paying"
    " leave leaving depart departing travel traveling travelling fly flying head heading headed"
    " start starting begin stay staying visit visiting eat eating dine dining drive driving pick"
    " picking picked drop dropping dropped return returning rent renting buy buying use using order"
    " ordering cancel cancelling change changing help call called named name keep keeping live"
    " living located based arrive arriving reach be let add said say ask meet meeting play playing"
    " listen hear heard work works working move moving switch confirm proceed continue choose"
    " select explore interested talk talking speak speaking chat read write learn wait wish board"
    " boarding join happen happening attend require hold provide serve serves end ride riding enjoy"
    " believe suppose guess would'd"
)
GENERIC_NOUNS = word_set(
    "place places city town area location region one ones thing things kind type sort option"
    " options choice preference time date day table ticket tickets seat seats people person persons"
    " room rooms car cab taxi bus train flight flights hotel restaurant restaurants movie movies"
    " film event events apartment house way trip journey reservation appointment destination origin"
    " name address number id email phone money dollars bucks account friend friends family weather"
    " forecast alarm song music"
)
FUNCTION_WORDS = (
    PRONOUNS | AUXILIARIES | CONTRACTIONS | DETERMINERS | PREPOSITIONS | CONJUNCTIONS | POLITENESS
)
NEVER_NAMES = FUNCTION_WORDS | VERBS | {"back"}
"""Words that neither begin nor end a name, however they are written."""

STOPS_NAME = (FUNCTION_WORDS | VERBS) - {
    "the",
    "of",
    "la",
    "le",
    "los",
    "las",
    "el",
    "near",
    "next",
}
"""Words that end a name written in lower case."""

PRICE = re.compile(
    r"\b(?:cheap(?:er|est)?|inexpensive(?:ly)?|expensive|pricey|costly|affordable|moderate(?:ly)?"
    r"|mid-?range|budget|upscale|high-?end"
    r"|low-?cost|economical|luxury|luxurious)\b",
    re.I,
)
"""Words that say how dear something is."""

ANIMAL = (
    r"(?:dog|puppy|pup|cat|kitten|kitty|rabbit|bunny|hamster|guinea"
    r" pig|parrot|budgie|bird|horse|pony|tortoise|turtle|ferret|pet"
    r"|labrador|poodle|terrier|jack russell|spaniel|retriever|collie|beagle|snake|lizard|gecko|rat"
    r"|mouse|goat)"
)
"""An animal that one has, as the source of a regular expression."""
