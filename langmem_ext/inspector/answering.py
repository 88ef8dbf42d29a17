"""The inspector answers a waiting question, and runs a thread again from a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from langchain_core.runnables import RunnableConfig
from langgraph.pregel import Pregel

from langmem_ext._internal.calls import uncut
from langmem_ext.errors import ConversationError, LangmemExtError, StaleAnswer
from langmem_ext.inspector.sources.source import config_for
from langmem_ext.threads.states.rewind import COPY
from langmem_ext.waiting.converse import aconverse, leases_of
from langmem_ext.waiting.interrupts.foreign import question_of
from langmem_ext.waiting.turn import asked_of

RECURSION_LIMIT: Final = 60


@dataclass(frozen=True, slots=True)
class Answering:
    """A graph that threads are run with.

    Attributes:
        graph: The graph, compiled with the checkpointer of the database.
    """

    graph: Pregel[Any, Any, Any, Any]

    async def reply(self, thread_id: str, text: str, interrupt_id: str | None = None) -> None:
        """Deliver a message: an answer to what waits, or a new request.

        Args:
            thread_id: The thread.
            text: The message.
            interrupt_id: The question that was seen, as `converse` has it.

        Raises:
            LangmemExtError: As `converse` has it, or the graph failed.
        """
        try:
            await aconverse(self.graph, text, thread_id=thread_id, interrupt_id=interrupt_id)
        except LangmemExtError:
            raise
        except Exception as error:  # whatever a node of somebody's graph raises
            raise _failed(
                error, "the message is stored, and sending it again goes on with it"
            ) from error

    async def replay(
        self,
        thread_id: str,
        checkpoint: str,
        text: str | None = None,
        interrupt_id: str | None = None,
    ) -> None:
        """Run a thread again from one of its steps, as a branch that becomes the newest state.

        The step is copied first: the original keeps what it was answered.

        Args:
            thread_id: The thread.
            checkpoint: The step.
            text: Another answer to a question that waited there; None: the step is run as it
                stands.
            interrupt_id: The question; its branch's interrupt has another id, and the same words.

        Raises:
            StaleAnswer: The step does not ask this question, or its branch no longer does.
            ThreadBusy: Another caller drives the thread.
            LangmemExtError: As `converse` has it, or the graph failed.
        """
        saver: Any = self.graph.checkpointer
        try:
            async with leases_of(saver).alease(thread_id, wait=10):
                then = (await self.graph.aget_state(config_for(thread_id, checkpoint))).interrupts
                shown = [question_of(asked_of(one)) for one in then if one.id == interrupt_id]
                alike = [one for one in then if question_of(asked_of(one)) in shown]
                if text and len(alike) != 1:  # nor is it guessed which of two is meant
                    raise StaleAnswer(
                        "the step does not ask what was answered; nothing was changed"
                    )
                await self.graph.aupdate_state(
                    config_for(thread_id, checkpoint), None, as_node=COPY
                )
                here: RunnableConfig = {**config_for(thread_id), "recursion_limit": RECURSION_LIMIT}
                await uncut(self.graph.ainvoke(None, here, durability="sync"))
                asked = (await self.graph.aget_state(here)).interrupts
        except LangmemExtError:
            raise
        except Exception as error:  # as above
            raise _failed(error, "the branch ends there") from error
        if text:
            same = [one.id for one in asked if question_of(asked_of(one)) in shown]
            if len(same) != 1:
                raise StaleAnswer("the step was run again, and does not ask what was answered")
            await self.reply(thread_id, text, same[0])


def _failed(error: Exception, then: str) -> ConversationError:
    return ConversationError(
        f"the graph failed ({type(error).__name__}: {str(error)[:200]}): {then}"
    )
