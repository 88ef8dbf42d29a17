"""What a conversation's memory holds, where an application names no schema of its own."""

from __future__ import annotations

from pydantic import BaseModel, Field


class ConversationMemoryData(BaseModel):
    """What a conversation is about, what is to be done, and what was observed.

    Any other pydantic model can take its place: its fields and their descriptions are what the
    model is asked for, and its names are the keys that placeholders may ask for.

    Attributes:
        main_topics: The topics that were talked about.
        action: What would be good to do next.
        typical_observation: What was observed of the user.
    """

    main_topics: list[str] = Field(
        default_factory=list, description="The main topics of the conversation, each in a few words"
    )
    action: list[str] = Field(
        default_factory=list, description="Suggested next actions, each in a few words"
    )
    typical_observation: str = Field(
        default="", description="One sentence: what is typical of the user in this conversation"
    )
