"""Routes under `/langmem` for prompts that are stored in versions, of which one is active.

Prompts are shared by all: a caller who sees one owner's threads alone must not change them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, HTTPException, Path, Query, Response
from pydantic import Field

from langmem_ext import PromptVersion, PromptVersions
from langmem_ext.server import wire
from langmem_ext.server.guard import AtDesk
from langmem_ext.server.routes.threads import Body
from langmem_ext.server.service import Desk

Name: TypeAlias = Annotated[
    str,
    Path(description="The prompt's name.", examples=["memory_generation"], max_length=200),
]


class NewVersion(Body):
    """A version of a prompt."""

    prompt_text: str = Field(examples=["Context: {{CONVERSATION_MEMORY}}"], max_length=100_000)


def add_prompt_routes(router: APIRouter) -> None:
    """Add the routes."""
    add: Callable[..., Any] = router.add_api_route
    tags = {"tags": ["prompts"], "response_model": None}
    add("/langmem/prompts/{name}", active, methods=["GET"], **tags)
    add("/langmem/prompts/{name}/versions", new_version, methods=["POST"], **tags)
    add("/langmem/prompts/{name}/versions", versions, methods=["GET"], **tags)
    add(
        "/langmem/prompts/{name}/versions/{version_id}/activate", activate, methods=["POST"], **tags
    )


async def active(name: Name, desk: AtDesk) -> Response:
    """The active version of a prompt."""
    version = await _prompts(desk).aactive(name)
    if version is None:
        raise HTTPException(404, f"no version of the prompt {name!r} is active")
    return await wire.answer(_shape(name, version))


async def versions(name: Name, desk: AtDesk) -> Response:
    """All versions of a prompt, the latest first."""
    return await wire.answer(
        [_shape(name, version) for version in await _prompts(desk).aversions(name)]
    )


async def new_version(
    name: Name,
    body: NewVersion,
    desk: AtDesk,
    set_active: Annotated[bool, Query(description="Use it from now on.")] = False,
) -> Response:
    """Add a version of a prompt."""
    return await wire.answer(
        _shape(name, await _prompts(desk).aadd(name, body.prompt_text, set_active=set_active))
    )


async def activate(
    name: Name, version_id: Annotated[str, Path(max_length=200)], desk: AtDesk
) -> Response:
    """Use another version from now on."""
    version = await _prompts(desk).aactivate(name, version_id)
    assert version is not None  # it exists
    return await wire.answer(_shape(name, version))


def _prompts(desk: Desk) -> PromptVersions:
    if desk.owner is not None:
        raise HTTPException(
            403,
            "prompts are everybody's: who sees the threads of one owner alone may neither read nor"
            " change them",
        )
    return PromptVersions(desk.keeping)


def _shape(name: str, version: PromptVersion) -> wire.Shape:
    return {
        "id": version.id,
        "name": name,
        "prompt_text": version.text,
        "created_at": version.added_at.isoformat(),
        "is_active": version.active,
    }
