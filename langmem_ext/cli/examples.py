"""What the help shows of each command in use; a conversation is begun, found, and handled in this order."""

from __future__ import annotations

from typing import Final

_EXAMPLES: Final = {
    "": (
        ("chat --new", "begin a conversation; /quit ends it, and all of it is kept"),
        ("threads list --since yesterday", "find it again: its id, title and age"),
        ("chat --continue", "go on with the one that was used last"),
        ("chat --resume ID", "go on with another one"),
    ),
    "chat": (
        ("chat --thread order-17", "begin this conversation, or go on with it"),
        ("chat --continue", "go on with the one that was used last"),
        ("chat --resume 'My order'", "go on with the one of this title"),
        ("chat --graph app.py:graph", "talk to a graph of your own"),
    ),
    "threads": (
        ("threads list --since yesterday", "the conversations of yesterday and today"),
        ("threads search 'broken lamp'", "those in which this was said"),
        ("threads show order-17", "what there is to know of one"),
        ("threads history order-17", "what was said in it"),
        ("threads export order-17 --to order.md", "the same as Markdown"),
    ),
    "list": (
        ("threads list --since yesterday --until today", "those last used yesterday"),
        ("threads list --waiting", "those that wait for an answer"),
        ("threads list --expired", "those whose question has waited longer than its timeout"),
        ("threads list --all --limit 0 --json", "all there are, for a program"),
    ),
    "search": (
        ("threads search 'broken lamp'", "both words, anywhere in a message"),
        ("threads search '\"broken lamp\"'", "both words next to each other"),
        ("threads search lamp --role human", "only what users said"),
    ),
    "tag": (("threads tag order-17 late vip", "two more tags"), ("threads tag order-17 --remove late", "one tag less")),
    "fork": (
        ("threads fork order-17", "all of it; the copy's id is printed"),
        ("threads fork order-17 --to again", "under an id of your own"),
    ),
    "export": (
        ("threads export order-17 --to order.md", "Markdown, to read"),
        ("threads export --all --to all.jsonl.gz", "everything, compressed, to import again"),
    ),
    "import": (
        ("threads import all.jsonl.gz --db other.db", "under new ids"),
        ("threads import all.jsonl.gz --keep-ids", "what is there already stays as it is"),
    ),
    "catalog": (
        ("catalog check intents.yaml --tools app.py:TOOLS", "every mistake, with its line"),
        ("catalog try intents.yaml", "talk, and see what is understood and why; no tool is called"),
    ),
    "sweep": (
        ("sweep --dry-run", "what would be deleted by the settings"),
        ("sweep --ttl 720", "what was not used for 30 days"),
    ),
    "prune": (
        ("prune --older-than 30 --dry-run", "how much would be deleted"),
        ("prune --older-than 30", "delete it, after a question"),
    ),
    "roles": (
        ("roles grant app --writer", "the role app reads and writes all threads"),
        ("roles grant acme --writer --owner acme", "the role acme those of the owner acme, and sees no others"),
        ("roles list", "which roles were granted what"),
    ),
    "grant": (
        ("roles grant app --writer", "it reads and writes"),
        ("roles grant reports --reader", "it reads"),
        ("roles grant acme --writer --owner acme", "its owner's threads alone"),
        ("roles grant app --writer --sql", "how it is done, for somebody else to do it"),
    ),
    "show": (
        ("config show ttl_hours", "one setting, and what it takes"),
        ("config show --set ttl_hours=12", "what an argument would do"),
    ),
}

COMMANDS: Final = tuple(_EXAMPLES)


def examples(command: str) -> list[str]:
    """The examples of a command, each a line of shell with its purpose as a comment."""
    return [f"langmem-ext {typed}  # {purpose}" for typed, purpose in _EXAMPLES[command]]


def examples_of(command: str) -> str:
    """The examples of a command as the end of its help; of the program, if no command is named."""
    lines = [(f"langmem-ext {typed}", purpose) for typed, purpose in _EXAMPLES[command]]
    width = max(len(typed) for typed, _ in lines)
    # What stands after this mark keeps its lines. A purpose that would leave 80 columns stands below.
    shown = [f"  {typed:{width}}  {purpose}" if width + len(purpose) < 74 else f"  {typed}\n      {purpose}" for typed, purpose in lines]
    return "\n".join(["\b", "Examples:", *shown])
