"""The frame around an answer: "I would like …, please"."""

from __future__ import annotations

import re

from langmem_ext.waiting.extract.english.tokens import trim

_OPENERS = re.compile(
    r"(?:\s|[,.;:!\-–—\"“”'])*(?:"
    r"yes|yeah|yep|yup|yea|no|nope|sure(?:"
    r" thing)?|ok(?:ay)?|well|hmm+|um+|uh|oh|so|actually|hi|hello|hey|alright|all right"
    r"|right(?!\s+[a-z])"
    r"|of course|certainly|absolutely|definitely"
    r"|great|perfect|cool|fine|thanks?(?: you)?|please|maybe|perhaps|probably|i think|i guess|i"
    r" believe|i suppose|let me see|let'?s see"
    r"|how about|what about|let'?s say|say|kindly|sorry|just|only|hang on|hold on|wait"
    r")\b(?:\s|[,.;:!\-–—])*",
    re.I,
)
_FRAMES = re.compile(
    r"(?:"
    r"(?:it|that|this|he|she|they)(?:'s|'re| is| was| are| would be| will be|'ll be|'d be| should"
    r" be| could be)(?: called| named| for"
    r"| from| at| in| on| about| going to be| gonna be| because)*"
    r"|(?:my|the|our|his|her|your|its)(?: \w+){1,4}? (?:is|are|was|would be|will be|should"
    r" be|being)(?: called| named| for)?"
    r"|(?:make|let|call|put|name|set|do|leave)(?: it| that| this| them)(?: be| is| down as| to|"
    r" for| as| at)*"
    r"|(?:i|we)(?:'d| would|'ll| will)?(?: really| also| definitely| rather| just| certainly| like"
    r" to| like| love| want| need| prefer"
    r"| hope| wish)*"
    r" (?:like|want|need|prefer|love|enjoy|choose|pick|take|go with|go"
    r" for|have|get|see|watch|try|eat|visit|hear|listen to|play|book"
    r"|find|like|be|stay|order)"
    r"(?: to)?(?: (?:see|watch|try|eat|have|visit|go(?: to| with|"
    r" for)?|book|reserve|find|get|hear|listen to|play|look for|search for|be"
    r"|stay at|check|make|attend|order|buy))*"
    r"(?: (?:a table|a reservation|tickets|a ticket|seats)(?: at| to| for)?)?"
    r"|(?:i|we)(?:'m| am|'re| are|'ve been| was| were)(?: really| currently| also)?(?: looking|"
    r" searching| hoping| interested| thinking"
    r"| in the mood| planning| going| craving| trying)"
    r"(?: for| to| in| of| about| on| with| at| find| see| watch| get| book| try| eat| go| visit|"
    r" have)*"
    r"|i(?:'m| am)(?=\s+[A-Z])"
    r"|(?:(?:can|could|would|will) (?:you|i|we)(?: please| kindly)?"
    r" )?(?:find|get|book|reserve|search|look|try|check|show|give|play|use"
    r"|put|pick|choose|select|go|see if there's|see if you can find|see)"
    r"(?: me| us| out| it)?(?: for| into| with| up| at| in)*(?: (?:a table|a reservation|tickets|a"
    r" ticket|some)(?: at| to| for)?)?"
    r"|(?:something|anything|somewhere|anywhere|some ?place|a place|one|stuff)(?:"
    r" (?:like|with|in|from|that(?: is|'s)?|which|serving"
    r"|that serves?|serves?|to))*"
    r"|(?:they|it|that|which) serves?|into|because(?: of)?|due"
    r" to|since|as|for|at|in|on|from|to|with|by|about|like|called|named|of|some"
    r"|any|an|a|the(?=\s+[a-z])"
    r")(?=\s|$|[,:])\s*[:,]?\s*",
    re.I,
)
_CLOSERS = re.compile(
    r"(?:[\s,.;:!?\-–—]+(?:please|pls|thanks?(?: you)?(?: (?:so|very) much| a lot)?|for me|if"
    r" possible|if you can|would be (?:great|good"
    r"|fine|nice|perfect|best|ideal|lovely|awesome|cool)"
    r"|(?:is|sounds|looks|seems|works)(?: just| all)?"
    r" (?:fine|good|great|ok(?:ay)?|perfect|nice|cool|right)(?: (?:for|with|to) me)?"
    r"|will do|works(?: for me)?|i think|i guess|though|sir|right"
    r" now|now|tonight|today|then|too|instead|preferably))+[\s.!?]*$"
    r"|[\s.!?]+$",
    re.I,
)

_TAIL = 80
"""Characters at the end of an answer in which its closers are looked for."""


def answer_span(
    text: str, start: int = 0, end: int | None = None, *, framed: bool = True
) -> tuple[int, int]:
    """The span of the answer itself within `text[start:end]`.

    Openers, frame and closers are left out; the span is empty when nothing else is there.

    Without `framed` the frame ("I would like …") stays: a free answer is more than a name.
    """
    begin, stop = trim(text, start, len(text) if end is None else end)
    for _ in range(12):
        before = (begin, stop)
        opener = _OPENERS.match(text, begin, stop)
        if opener and opener.end() > begin:
            begin = opener.end()
        frame = _FRAMES.match(text, begin, stop) if framed else None
        if frame and frame.end() > begin:
            begin = frame.end()
        closer = _CLOSERS.search(text, max(begin, stop - _TAIL), stop)
        if closer:
            stop = closer.start()
        begin, stop = trim(text, begin, stop)
        if (begin, stop) == before or begin >= stop:
            break
    return begin, max(begin, stop)
