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

from langmem_ext.context.budget.counters import TiktokenCounter
from langmem_ext.messages.token_costs import scripts
from langmem_ext.messages.token_costs.scripts import tokens_in

pytestmark = pytest.mark.skipif(
    find_spec("bpe_openai") is None, reason="the extra tokens-offline is not installed"
)

CHANCE = random.Random(5)
PIECE = 1_200
"""Characters of a message."""


def pieces(text: str) -> list[str]:
    return [text[at : at + PIECE] for at in range(0, len(text), PIECE)]


def source(name: str) -> str:
    return (Path(scripts.__file__).parent / name).read_text(encoding="utf-8")


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
    "code": pieces(source("tokens.py") + source("blocks.py")),
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

LANGUAGES = {
    "Chinese": (
        "您好，我想修改我上周预订的机票。原定航班是五月二十日从北京飞往上海，现在由于公司会议推迟，"
        "我需要改到五月二十三日下午出发。请问改签需要支付多少手续费？"
    ),
    "Chinese, traditional": (
        "您好，我想請問關於上個月的訂單狀況。當時承諾三個工作天內送達，可是到現在還沒有收到商品。"
        "麻煩您幫我查詢一下物流進度。"
    ),
    "Japanese": (
        "お世話になっております。先日予約した航空券の変更についてお問い合わせします。"
        "窓側の座席が空いていればお願いします。手数料はいくらかかりますか。"
    ),
    "Korean": (
        "안녕하세요, 지난주에 예약한 항공권을 변경하고 싶습니다. "
        "변경 수수료가 얼마인지 알려 주시고, "
        "창가 좌석이 있으면 배정해 주세요. 감사합니다."
    ),
    "Russian": (
        "Здравствуйте, я хотел бы изменить бронирование авиабилета, которое я оформил на прошлой"
        " неделе. Сколько стоит изменение билета?"
    ),
    "Ukrainian": (
        "Добрий день, я хотів би змінити бронювання квитка, яке зробив минулого тижня. Скільки"
        " коштує зміна дати? Перевірте налаштування мережі."
    ),
    "Arabic": (
        "مرحبا، أود تغيير حجز تذكرة الطيران الذي قمت به الأسبوع الماضي. "
        "كم تبلغ رسوم التغيير؟ يرجى التحقق من إعدادات الشبكة ثم المحاولة مرة أخرى."
    ),
    "Hebrew": (
        "שלום, אני רוצה לשנות את ההזמנה של כרטיס הטיסה שביצעתי בשבוע שעבר. כמה עולה השינוי? אנא"
        " בדקו את הגדרות הרשת ונסו שוב."
    ),
    "Armenian": (
        "Բարև ձեզ, ես ուզում եմ փոխել անցյալ շաբաթ կատարած իմ ինքնաթիռի տոմսի ամրագրումը։ Որքա՞ն"
        " արժե փոփոխությունը։"
    ),
    "Hindi": (
        "नमस्ते, मैं पिछले सप्ताह बुक किए गए अपने हवाई टिकट को बदलना चाहता हूँ। टिकट बदलने का शुल्क"
        " कितना है? आपकी सहायता के लिए धन्यवाद।"
    ),
    "Thai": (
        "สวัสดีครับ ผมต้องการเปลี่ยนแปลงการจองตั๋วเครื่องบินที่ทำไว้เมื่อสัปดาห์ที่แล้ว ค่าธรรมเนียมการเปลี่ยนแปลงเท่าไหร่ครับ"
    ),
    "Greek": (
        "Γεια σας, θα ήθελα να αλλάξω την κράτηση του αεροπορικού εισιτηρίου που έκανα την"
        " περασμένη εβδομάδα. Πόσο κοστίζει η αλλαγή;"
    ),
    "German": (
        "Guten Tag, ich möchte die Buchung meines Fluges ändern, die ich letzte Woche getätigt"
        " habe. Wie hoch sind die Umbuchungsgebühren?"
    ),
    "Spanish": (
        "Hola, quisiera cambiar la reserva de mi vuelo que hice la semana pasada. ¿Cuánto cuesta el"
        " cambio? Compruebe la configuración de la red."
    ),
    "Polish": (
        "Dzień dobry, chciałbym zmienić rezerwację biletu lotniczego, której dokonałem w zeszłym"
        " tygodniu. Ile wynosi opłata za zmianę?"
    ),
    "Turkish": (
        "Merhaba, geçen hafta yaptığım uçak bileti rezervasyonunu değiştirmek istiyorum. Değişiklik"
        " ücreti ne kadar? Lütfen tekrar deneyin."
    ),
    "Vietnamese": (
        "Xin chào, tôi muốn thay đổi vé máy bay đã đặt tuần trước. Phí thay đổi là bao nhiêu? Vui"
        " lòng kiểm tra cài đặt mạng và thử lại."
    ),
    "Indonesian": (
        "Halo, saya ingin mengubah pemesanan tiket pesawat yang saya lakukan minggu lalu. Berapa"
        " biaya perubahannya? Silakan coba lagi."
    ),
    "emoji": (
        "Great job! 🎉🎉 See you tomorrow 😊👍🏽 — can't wait… ✅ Done ❌ Failed ⚠️ Warning 🚀🔥💯"
    ),
}


@pytest.fixture(scope="module")
def exact() -> TiktokenCounter:
    return TiktokenCounter()


@pytest.mark.parametrize("kind", FITTED)
def test_talk_code_data_and_ids_are_not_understated(kind: str, exact: TiktokenCounter) -> None:
    ratios = [tokens_in(text) / exact.count_text(text) for text in FITTED[kind]]
    whole = sum(map(tokens_in, FITTED[kind])) / sum(map(exact.count_text, FITTED[kind]))
    assert 0.99 <= whole <= 1.3, whole
    assert min(ratios) >= 0.9, min(ratios)


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_language_is_understated_by_much(language: str, exact: TiktokenCounter) -> None:
    text = LANGUAGES[language]
    assert 0.9 <= tokens_in(text) / exact.count_text(text) <= 1.75


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_text_of_two_languages_costs_what_both_do(language: str, exact: TiktokenCounter) -> None:
    mixed = "\n".join((TALK, LANGUAGES[language], json.dumps(RECORDS[:3])))
    assert 0.95 <= tokens_in(mixed) / exact.count_text(mixed) <= 1.4
