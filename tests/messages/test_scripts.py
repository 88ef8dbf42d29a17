"""The approximation against the tokenizer it replaces: never too low, not much too high."""

from __future__ import annotations

import json
import random
from base64 import b64encode
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from uuid import UUID

import pytest
import yaml
from repository import ROOT

from langmem_ext import ApproximateCounter, TiktokenCounter

pytestmark = pytest.mark.skipif(
    find_spec("bpe_openai") is None, reason="the extra tokens-offline is not installed"
)

CHANCE = random.Random(5)
PIECE = 1_200
"""Characters of a message."""


def pieces(text: str) -> list[str]:
    return [text[at : at + PIECE] for at in range(0, len(text), PIECE)]


def tokens_in(text: str) -> int:
    return ApproximateCounter().count_text(text)


TALK = """Hi! I'd like to change my flight from New York to Boston on May 20, please.
My reservation id is H8Q05L and my user id is mia_li_3668.
I'm sorry, but that flight is fully booked. Would you prefer one that leaves at 11:45 am, or \
should I put you on the waiting list?
Wow, that's amazing! We went camping in the mountains last weekend, and the kids loved roasting \
marshmallows around the campfire.
How was yours?
To list all files by size, run `du -ah . | sort -rh | head -n 20`. If you don't have permission, \
put `sudo` before the command."""

RECORDS = [
    {
        "id": str(UUID(int=CHANCE.getrandbits(128))),
        "user": {
            "firstName": CHANCE.choice(["Ann", "Raj", "Lee"]),
            "active": CHANCE.random() < 0.5,
        },
        "flight_number": f"HAT{CHANCE.randrange(1000):03}",
        "price": round(CHANCE.uniform(20, 2000), 2),
        "scheduled_departure": f"2024-05-{CHANCE.randrange(1, 29):02}T06:00:00Z",
    }
    for _ in range(40)
]

FITTED = {
    "talk": [TALK, *TALK.splitlines()],
    "code": pieces(Path(__file__).read_text("utf-8")),
    "json": pieces(json.dumps(RECORDS)),
    "json, indented": pieces(json.dumps(RECORDS, indent=2)),
    "json, escaped": pieces(json.dumps({"note": "我想修改上周预订的机票" * 40})),
    "ids": [
        "\n".join(str(UUID(int=CHANCE.getrandbits(128))) for _ in range(count))
        for count in range(1, 30)
    ],
    "digests": [
        " ".join(sha256(bytes([at, more])).hexdigest() for more in range(9)) for at in range(20)
    ],
    "base64": [b64encode(CHANCE.randbytes(900)).decode() for _ in range(20)],
    "numbers": [" ".join(f"{CHANCE.uniform(-1e4, 1e4):.3f}" for _ in range(60)) for _ in range(20)],
    "log": [
        "\n".join(
            f"2024-05-03T10:{at:02}:07.{CHANCE.randrange(1000)}Z INFO [worker-3] GET"
            f" /api/v1/users/{at * 977} 200 31ms"
            for at in range(20)
        )
    ],
    "listing": [
        "\n".join(
            f"-rw-r--r-- 1 root root {at * 7919} May 20 10:{at:02} package-lock_{at}.json"
            for at in range(10, 40)
        )
    ],
}

LANGUAGES: dict[str, str] = yaml.safe_load((ROOT / "tests/cases/languages.yaml").read_text("utf-8"))


@pytest.fixture(scope="module")
def exact() -> TiktokenCounter:
    return TiktokenCounter()


def test_talk_code_data_and_ids_are_not_understated(exact: TiktokenCounter) -> None:
    for kind, texts in FITTED.items():
        ratios = [tokens_in(text) / exact.count_text(text) for text in texts]
        whole = sum(map(tokens_in, texts)) / sum(map(exact.count_text, texts))
        assert 0.99 <= whole <= 1.3, kind
        assert min(ratios) >= 0.9, kind


def test_no_language_is_understated_by_much(exact: TiktokenCounter) -> None:
    for language, text in LANGUAGES.items():
        assert 0.9 <= tokens_in(text) / exact.count_text(text) <= 1.75, language
        mixed = "\n".join((TALK, text, json.dumps(RECORDS[:3])))
        assert 0.95 <= tokens_in(mixed) / exact.count_text(mixed) <= 1.4, language
