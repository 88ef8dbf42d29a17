"""The instructions of a model that writes a memory. Texts can be replaced, the fence cannot."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from langmem_ext.errors import InvalidInput

SYSTEM_PROMPT: Final = "You read conversations and write down what is worth remembering of them."

MEMORY_PROMPT: Final = """\
Read the following conversation and fill in its memory.
- Write only what the conversation says; leave a field empty rather than guess.
- Be brief: a few words an entry, in the language of the user.
- ••• stands for something that must not be known: never write of it."""

CARRY_ON: Final = """\
The conversation is read in pieces. The memory of what was said before this piece is given too: \
return one memory of both, and keep
everything of the earlier one that still holds."""


FACTS_PROMPT: Final = """\
List what the user says in the following conversation that will still hold in other conversations: \
who they are, what they like, what
they own, what they are working on, what they have decided.
- Only what the user says of themselves or of their world; not what the agent says, and nothing of \
the moment.
- With each fact give the numbers of the messages in which the user says so.
- Where facts are known already, leave them out; if one has changed, give the new one under the \
same subject.
- ••• stands for something that must not be known: leave it out."""


def prompt_text(prompt: str | os.PathLike[str]) -> str:
    """A prompt: a text, or the contents of a file.

    Raises:
        InvalidInput: It has no text, or the file cannot be read.
    """
    if isinstance(prompt, str):
        text = prompt
    else:
        try:
            text = Path(prompt).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise InvalidInput(
                f"the prompt's file {os.fspath(prompt)!r} cannot be read: {reason}"
            ) from None
    if not text.strip():
        raise InvalidInput("the prompt has no text: leave it out for the usual one")
    return text
