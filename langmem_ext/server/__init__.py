"""Threads over HTTP: the routes of LangGraph's SDK, and the package's own under `/langmem`.

It needs the extra `server`.
"""

from __future__ import annotations

from langmem_ext._internal.extras import require

require("the server", "server")  # before what imports it

from langmem_ext.server.access import Access, by_token, on_this_machine  # noqa: E402
from langmem_ext.server.app import create_app, create_router  # noqa: E402
from langmem_ext.server.limits import Limits  # noqa: E402
from langmem_ext.server.queue import Queue, StoreQueue, Task, TaskState  # noqa: E402
from langmem_ext.server.service import Memory, ServerOptions, Service  # noqa: E402
from langmem_ext.server.tasks import perform_task  # noqa: E402

__all__ = [
    "Access",
    "Limits",
    "Memory",
    "Queue",
    "ServerOptions",
    "Service",
    "StoreQueue",
    "Task",
    "TaskState",
    "by_token",
    "create_app",
    "create_router",
    "on_this_machine",
    "perform_task",
]
