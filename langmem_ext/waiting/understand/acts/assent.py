"""Yes and no: the words of each language, and the messages that say nothing else. Pure.

A yes lets a tool run, so it is an allow list: a message is a yes if it is understood whole as one.
Words of `_YES`, joined with those of `_BESIDE`, and nothing else: no other word, no number but one
that was shown, no question mark. Whatever may also mean something else ("it's fine" is often a
refusal, "ah ok" only says that one has heard) stands under `_BESIDE` or nowhere. A list of words
that take a yes back cannot be complete, so there is none.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, TypeAlias

_YES: Final[Mapping[str, str]] = {
    "en": "yes, yess, yep, yepp, yeah, yup, yupp, yea, yas, yeh, yh, yeap, ye, yessir, y, aye, uh"
    " huh, mhm, sure, sure thing, for sure, sure do, ok, okay, okey, okie, oki, okey dokey,"
    " okie dokie, ok then, okay then, alright, alright then, all right, correct, that's"
    " correct, this is correct, that is correct, it's correct, it is correct, all correct,"
    " everything is correct, that's right, this is right, that is right, it's right, it is"
    " right, that's the one, that's what i want, that's a yes, it's a yes, exactly, precisely,"
    " absolutely, definitely, certainly, totally, indeed, affirmative, agreed, i agree, i do"
    " agree, approve, approved, i approve, approve it, i approve it, confirm, confirmed, i"
    " confirm, i confirm it, i confirm this, i confirm that, confirm it, accept, accepted, i"
    " accept, accept it, perfect, that's perfect, great, that's great, that's good, that's"
    " fine, fine by me, fine with me, fine for me, fine to me, ok by me, ok with me, okay with"
    " me, okay by me, good by me, good with me, good to go, that's fine by me, that's fine"
    " with me, that's ok with me, that's okay with me, cool, excellent, awesome, lovely,"
    " brilliant, wonderful, fantastic, amazing, splendid, super, spot on, bang on, lgtm, deal,"
    " it's a deal, true, i do, i'm sure, i am sure, i'm certain, i'm positive, go"
    " ahead, go right ahead, go for it, go, proceed, you may proceed, you can proceed, you may"
    " go ahead, you can go ahead, continue, do it, do that, do this, do so, just do it, do go"
    " ahead, please do, let's do it, let's do that, let's do this, let's go, let's go ahead,"
    " let's go for it, make it so, by all means, of course, of course yes, but of course, you"
    " bet, sounds good, sounds great, sounds perfect, sounds fine, sounds right, sounds ok,"
    " sounds okay, sounds good to me, sounds great to me, sounds fine to me, that sounds good,"
    " that sounds great, that sounds right, that sounds fine, that sounds perfect, looks good,"
    " looks great, looks perfect, looks fine, looks right, looks correct, looks ok, looks good"
    " to me, looks fine to me, looks right to me, that looks good, that looks right, that"
    " looks correct, it looks good, all looks good, everything looks good, that looks great,"
    " works, works for me, that works, that works for me, that would be great, that would be"
    " wonderful, that would be marvellous, that would be good, that would be perfect, that"
    " would be lovely, that'd be great, i'd like that, i would like that, i'd love that, happy"
    " with that, i'm happy with that, very well, very good, yes i would, yes i am, hell yes,"
    " hell yeah, heck yes, oh yes, oh yeah, actually yes, yes correct, yeah correct, yes"
    " all good, yes that's it, that's it yes",
    "de": "ja, jap, jep, jup, jawohl, jawoll, na klar, klar, aber klar, klar doch, sicher, ganz"
    " sicher, aber sicher, natürlich, selbstverständlich, auf jeden fall, gern, gerne, sehr gern,"
    " sehr gerne, aber gerne, genau, ganz genau, genau so, richtig, das ist richtig, ist richtig,"
    " stimmt, das stimmt, stimmt alles, korrekt, das ist korrekt, alles korrekt, alles richtig,"
    " ist korrekt, passt, passt so, das passt, das passt so, passt alles, passt für mich, das"
    " passt für mich, in ordnung, das ist in ordnung, ist in ordnung, geht in ordnung, geht klar,"
    " einverstanden, bin einverstanden, ich bin einverstanden, ich stimme zu, bestätigt,"
    " bestätige, ich bestätige, bestätige ich, ich bestätige das, ich bestätige es, hiermit"
    " bestätigt, bestätigen, mach das, mach es, mach's, machen sie das, machen sie es, machen"
    " wir, machen wir so, so machen wir es, so machen wir's, tu das, tu es, tun sie das, tun sie"
    " es, leg los, los geht's, nur zu, fortfahren, bitte fortfahren, fahren sie fort, so ist"
    " es, so passt es, so passt das, absolut, unbedingt, perfekt, prima, wunderbar,"
    " ausgezeichnet, hervorragend, klasse, sehr gut, das ist gut, das ist ok, das ist okay, ja"
    " gut, ok gut, das klingt gut, klingt gut, hört sich gut an, sieht gut aus, das sieht gut"
    " aus, das wäre gut, das wäre super, das wäre toll, das wäre schön, das wäre nett,"
    " freigegeben, ich bin sicher, ich bin mir sicher, oh ja, aber ja, aber ja doch, ja"
    " genau, ja richtig, ja korrekt, ja alles gut",
    "es": "sí, claro, claro que sí, por supuesto, por supuesto que sí, desde luego, vale, de"
    " acuerdo, estoy de acuerdo, correcto, es correcto, todo correcto, está correcto, eso es, así"
    " es, exacto, exactamente, efectivamente, en efecto, perfecto, está perfecto, está bien,"
    " adelante, siga adelante, sigue adelante, hazlo, hágalo, hacedlo, háganlo, procede, proceda,"
    " procedan, confirmo, lo confirmo, confirmado, confirmada, confirmar, acepto, lo acepto,"
    " aceptado, me parece bien, me parece perfecto, me parece correcto, por mí bien, por mí vale,"
    " suena bien, sin duda, sin dudarlo, seguro, seguro que sí, estoy seguro, estoy segura,"
    " cierto, es cierto, genial, estupendo, excelente, conforme, afirmativo, apruebo, lo apruebo,"
    " aprobado, eso mismo, eso está bien, eso está perfecto, sip, pues sí, pues claro, que sí, sí"
    " quiero, sí correcto, sí exacto, sí todo bien, okey",
    "fr": "oui, ouais, ouaip, mais oui, si, d'accord, je suis d'accord, c'est d'accord, c'est ok,"
    " c'est ça, c'est bien ça, c'est cela, c'est exact, c'est correct, c'est juste, c'est"
    " parfait, exact, exactement, tout à fait, absolument, bien sûr, bien sûr que oui, bien"
    " entendu, certainement, évidemment, parfait, très bien, c'est très bien, allez-y, vas-y,"
    " allons-y, on y va, faites-le, fais-le, faites donc, faites ça, fais ça, confirmé, c'est"
    " confirmé, je confirme, je le confirme, je valide, validé, c'est validé, j'accepte, accepté,"
    " j'approuve, je suis sûr, je suis sûre, j'en suis sûr, j'en suis sûre, sans problème, avec"
    " plaisir, volontiers, ça marche, ça me va, ça me convient, cela me convient, ça roule,"
    " entendu, affirmatif, marché conclu, dac, impeccable, nickel, génial, je veux bien, oh oui,"
    " ben oui, bah oui, eh oui, eh bien oui, tout est correct, tout est bon, tout est en ordre,"
    " continuez, poursuivez, oui exact, oui c'est bon",
    "it": "sì, certo, va bene, d'accordo, sono d'accordo, perfetto, esatto, esattamente, giusto,"
    " è giusto, corretto, è corretto, confermo, lo confermo, confermato, procedi, proceda,"
    " procedete, vai avanti, certamente, assolutamente sì, volentieri, sì certo, sì esatto,"
    " naturalmente",
    "pt": "sim, certo, está certo, com certeza, está bem, perfeito, correto, correcto, exato,"
    " isso, isso mesmo, confirmo, confirmado, pode fazer, pode avançar, prossiga, de acordo,"
    " claro que sim, com prazer, aceito",
    "nl": "ja, jawel, ja hoor, zeker, zeker weten, natuurlijk, prima, akkoord, is goed, dat is"
    " goed, dat klopt, klopt, doe maar, ga je gang, ga door, graag, in orde, dat is in orde, oké,"
    " bevestigd, ik bevestig",
    "sv, da, nb": "ja, japp, jepp, visst, självklart, absolut, det stämmer, helt riktigt,"
    " okej, gärna, kör på, selvfølgelig, det er riktig, det er rigtigt, gerne, okay",
    "": "👍, 👌, ✅, ✔, ☑, 🆗",
}
"""What says yes, by language; the last line is of none."""

_NO: Final[Mapping[str, str]] = {
    "en": "no, nope, nah, nay, naw, nup, n, negative, never, not, don't, do not, no thanks, no"
    " thank you, no thank u, no sorry, sorry no, no way, of course not, certainly not, absolutely"
    " not, definitely not, surely not, probably not, better not, rather not, i'd rather not, i"
    " would rather not, please don't, please do not, isn't, that isn't, this isn't, it isn't,"
    " that's not, that is not, this is not, it's not, it is not, that's wrong, that is wrong,"
    " this is wrong, it's wrong, it is wrong, wrong, incorrect, false, i don't want, i do not"
    " want, i don't want it, i don't want that, i don't want to, i said no, i mean no, actually"
    " no, actually not, oh no",
    "de": "nein, nee, nö, ne, nope, nicht, kein, keine, keinen, nie, niemals, keinesfalls, auf"
    " keinen fall, auf gar keinen fall, bitte nicht, lieber nicht, besser nicht, doch nicht, noch"
    " nicht, nein danke, natürlich nicht, sicher nicht, klar nicht, stimmt nicht, das stimmt"
    " nicht, das ist nicht, das stimmt so nicht, passt nicht, das passt nicht, falsch, das ist"
    " falsch, ich will nicht, ich möchte nicht, lass es, lass das, lassen sie es, lassen sie das",
    "es": "no, nop, nunca, jamás, nada, para nada, de ninguna manera, en absoluto, mejor no,"
    " claro que no, por supuesto que no, no gracias, aún no, todavía no, eso no, así no, tampoco,"
    " ni hablar, incorrecto, es incorrecto, eso es incorrecto, falso, está mal",
    "fr": "non, nan, pas, ne, non merci, jamais, rien, pas du tout, pas encore, pas question,"
    " hors de question, surtout pas, certainement pas, absolument pas, bien sûr que non, c'est"
    " pas, ce n'est pas, ce n'est pas ça, c'est faux, faux, c'est incorrect, plutôt pas, mieux"
    " vaut pas",
    "it": "no, non, no grazie, per niente, assolutamente no, certo che no, sbagliato",
    "pt": "não, nunca, agora não, não obrigado, não obrigada, errado",
    "nl": "nee, neen, niet, nooit, geen, nee dank je, nee bedankt, liever niet, zeker niet",
    "sv, da, nb": "nej, nei, inte, ikke, aldrig, aldri, nej tack, nej tak, nei takk",
    "": "👎, ❌, ✖, 🚫, 🙅",
}
"""What says no, whatever follows."""

_BESIDE: Final[Mapping[str, str]] = {
    "en": "please, pls, plz, plse, thanks, thank you, thank u, thank ya, thankyou, thx, thanx,"
    " thnx, thnks, thnaks, tnx, ty, tysm, tyvm, tks, ta, cheers, many thanks, thanks a lot,"
    " thanks a million, thanks so much, thanks very much, thank you so much, thank you very much,"
    " thanks again, thank you again, much appreciated, appreciated, in advance, kindly, sir,"
    " madam, ma'am, mate, dear, love, buddy, bro, man, dude, guys, my friend, that will do,"
    " that'll do, fine, good, right away, straight away, asap",
    "de": "jo, bitte, bitteschön, bitte schön, bitte sehr, danke, dankeschön, danke schön, danke"
    " sehr, danke dir, danke ihnen, vielen dank, herzlichen dank, besten dank, lieben dank,"
    " tausend dank, vielen lieben dank, im voraus, gut, toll",
    "es": "por favor, porfa, porfavor, porfis, gracias, muchas gracias, mil gracias, muchísimas"
    " gracias, se lo agradezco, te lo agradezco, muy amable, bien, muy bien, señor, señora,"
    " amigo, amiga",
    "fr": "s'il vous plaît, s'il te plaît, svp, stp, merci, merci beaucoup, merci bien, merci à"
    " vous, merci à toi, mille mercis, merci d'avance, je vous remercie, je te remercie,"
    " bon, bien, monsieur, madame",
    "it": "per favore, per piacere, grazie, grazie mille, mille grazie, molte grazie, bene, va"
    " benissimo",
    "pt": "por favor, obrigado, obrigada, muito obrigado, muito obrigada, bem",
    "nl": "alsjeblieft, alstublieft, aub, dank je, dank u, dank je wel, dank u wel, dankjewel,"
    " dankuwel, bedankt, goed",
    "sv, da, nb": "tack, tack så mycket, tak, mange tak, takk, tusen takk, bra",
    "": "🙏, 🙂, 😊, 😀, 😃, 😄, 😁, ☺, ❤, 🎉, :), :-), =)",
}
"""What may stand beside a yes or a no, and says neither by itself."""

Kind: TypeAlias = Literal["yes", "no", "beside"]

_LONGEST: Final = 200
"""Characters of a message that only says yes or no, at most."""

_TOKEN: Final = re.compile(r"[:=]-?\)|[^\W\d_]+(?:['’‘`´][^\W\d_]+)*|-(?=\d)|[^\s.,:!¡…'’‘`´–—-]")
"""A smile, a word, or any sign that may mean something: only those of the lists are known. In Greek
a semicolon asks."""
_APOSTROPHES: Final = re.compile("['’‘`´]")
_HOW_WRITTEN: Final = re.compile(
    "[\u0300-\u0303\u0308\u030a\u0327\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]"
)
"""Accents, and what changes only how a picture looks."""
_ACCENTED: Final = re.compile("\\bsi[\u0300\u0301](?!\\w)")
"""Spanish "sí" and Italian "sì" are known by their accent."""
_ALONE: Final = frozenset(
    {"si", "y", "correct", "korrekt", "richtig", "genau", "exact", "exacto", "correcto"}
    | {"correto", "corretto", "exato", "esatto", "giusto", "certo"}
)
"""A yes that is the whole message, and nothing beside: else it may be "if" or "and", or ask to do
so: "please correct", "bitte richtig"."""
_DRAWN_OUT: Final = re.compile(r"(?<=[^\W\d_])([^\W\d_])\1{2,}|([^\W\d_])\2{2,}(?=[^\W\d_])")
"""A letter that is drawn out, beside others: "kkkk" is laughter."""
_LAUGHTER: Final = re.compile(r"\bja(?: ja)+\b")
"""Spanish "ja ja"; German "ja, ja" is no plain yes either."""


def _words(text: str) -> list[str]:
    """The words and signs of a text, whichever way they are spelt: "Yesss!" and "yes" are alike.

    Not "supper" and "super": two letters may be another word.
    """
    apart = unicodedata.normalize("NFKD", text.casefold())
    plain = _HOW_WRITTEN.sub("", _ACCENTED.sub("sí", apart))
    words = (_APOSTROPHES.sub("", word) for word in _TOKEN.findall(plain))
    once = " ".join(_DRAWN_OUT.sub(r"\1\2", word) for word in words)
    return _LAUGHTER.sub("jaja", once).split()


_KINDS: Final[Sequence[tuple[Kind, Mapping[str, str]]]] = (
    ("beside", _BESIDE),
    ("yes", _YES),
    ("no", _NO),
)
_PHRASES: Final[Mapping[tuple[str, ...], Kind]] = {
    tuple(_words(phrase)): kind
    for kind, languages in _KINDS
    for phrases in languages.values()
    for phrase in phrases.split(", ")
}
_MOST_WORDS: Final = max(map(len, _PHRASES))


def _read(text: str) -> tuple[list[Kind], bool]:
    """What the phrases say that a text begins with, and whether they are all of it."""
    words, kinds = _words(text[:_LONGEST]), list[Kind]()
    alone = len(words) == 1
    while words:
        lengths = range(min(_MOST_WORDS, len(words)), 0, -1)
        length = next((size for size in lengths if tuple(words[:size]) in _PHRASES), 0)
        if not length or (length == 1 and words[0] in _ALONE and not alone):
            return kinds, False
        kinds.append(_PHRASES[tuple(words[:length])])
        words = words[length:]
    return kinds, len(text) <= _LONGEST


def yes_or_no(text: str, shown: Iterable[str] = ()) -> bool | None:
    """What a message decides that says yes or no and nothing else; None for any other message.

    Args:
        text: The whole message.
        shown: Values of the question. A yes may repeat the only one with a digit, exactly as it
            was shown: "yes, O-123". Words, and one of several numbers, may mean anything.
    """
    numbers = [value for value in shown if re.search(r"\d", value)]
    if len(numbers) == 1:
        again = rf"(?<![^\s,;]){re.escape(numbers[0])}(?=[.,;!]*(?:\s|$))"
        text = re.sub(again, " ", text, flags=re.IGNORECASE)
    kinds, whole = _read(text)
    if not whole or {"yes", "no"} <= set(kinds):
        return None
    return True if "yes" in kinds else False if "no" in kinds else None


def begins_with_no(text: str) -> bool:
    """Whether a message says no first, whatever follows: "ok no, not that one"."""
    return "no" in _read(text)[0]
