"""Names that look like those of secrets, whose values are kept out of metadata and displays.

A name looks secret if one of its whole words, or two in a row, is in the list: `dbPwd`, `PIN_2`,
`session-cookies`, `access_tokens` and `connection_string` do; `author`, `monkey`, `spinner`, and
`max_tokens`, which counts, do not. One word is enough, so `cookie_consent` does: a missing value is
noticed, a leaked one is not. `auth` is a secret where it ends a name, as in `basic_auth`; before
other words it says whose they are, as in `langgraph_auth_user_id`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from typing import Final

_STORES: Final = (
    *(
        "database",
        "db",
        "connection",
        "conn",
        "postgres",
        "postgresql",
        "mysql",
        "mongo",
        "mongodb",
    ),
    *("redis", "amqp", "broker"),
)

_USES: Final = (
    *("access", "api", "auth", "bearer", "client", "csrf", "encryption", "id", "master", "private"),
    *("refresh", "secret", "session", "signing", "user", "xsrf"),
)

_PAIRS: Final = frozenset(
    {
        *("passphrase", "passcode", "conninfo", "connstr"),
        *(f"{store}{kind}" for store in _STORES for kind in ("url", "uri", "string")),
        *(f"{use}key" for use in _USES),
        *(f"{use}password" for use in (*_STORES, *_USES, "ssl", "smtp")),
        *(f"{use}{word}" for use in _USES for word in ("token", "tokens", "secret")),
    }
)
"""Two words, also written as one."""

_EXACT: Final = frozenset({"token", "pat"})
"""Not in the plural: tokens are counted."""

_WORDS: Final = _PAIRS | {
    *("key", "secret", "password", "authorization", "authentication", "oauth", "ssn"),
    *("pass", "passwd", "pwd", "pw", "pin", "otp", "totp", "cvv", "cvc"),
    *(
        "credential",
        "cred",
        "bearer",
        "jwt",
        "cookie",
        "csrf",
        "sas",
        "sig",
        "signature",
        "hmac",
        "dsn",
    ),
}
"""In lower case and in the singular."""

_WORD: Final = re.compile(r"[A-Z]+s?(?![a-z])|[A-Z]?[^\W\d_A-Z]+|[A-Z]")

_PARAMETER: Final = re.compile(
    r"(?:(?<![\w.\-])|(?<=%3F)|(?<=%26))([a-z_][\w.\-]*)(\s*=\s*|%3D)", re.IGNORECASE
)
_VALUE: Final = re.compile(r"'[^']*'|[^&\s]*")
_CODED_VALUE: Final = re.compile(r"(?:(?!%26)[^&\s])*")
"""A value in a URL that is itself the value of a parameter."""


@lru_cache(maxsize=1024)
def is_secret_name(name: str) -> bool:
    """Whether a name looks like that of a secret.

    >>> names = ("userPin", "spinner", "DATABASE_URLS", "author", "max_tokens", "access_tokens")
    >>> [name for name in names if is_secret_name(name)]
    ['userPin', 'DATABASE_URLS', 'access_tokens']
    """
    words = [word.casefold() for word in _WORD.findall(name)]
    pairs = [f"{first}{second}" for first, second in pairwise(words)]
    return (
        words[-1:] == ["auth"]
        or not _EXACT.isdisjoint(words)
        or _holds_one_of(_WORDS, words)
        or _holds_one_of(_PAIRS, pairs)
    )


def _holds_one_of(known: frozenset[str], words: Iterable[str]) -> bool:
    return any(word in known or word.removesuffix("s") in known for word in words)


def masked_parameters(text: str) -> str:
    """The text with `***` for the value of each secret name, as in URLs and connection strings.

    >>> masked_parameters("https://host/x?sig=abc&v=1"), masked_parameters("host=h pin = 12")
    ('https://host/x?sig=***&v=1', 'host=h pin = ***')
    """
    shown, at = "", 0
    for match in _PARAMETER.finditer(text):
        if match.start() >= at and is_secret_name(match[1]):
            shown += f"{text[at : match.end()]}***"
            value = (_VALUE if "=" in match[2] else _CODED_VALUE).match(text, match.end())
            at = match.end() if value is None else value.end()
    return shown + text[at:]
