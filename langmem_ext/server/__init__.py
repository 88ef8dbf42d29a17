"""Threads over HTTP: the routes of LangGraph's SDK, and the package's own under `/langmem`.

It needs the extra `server`.
"""

from __future__ import annotations

from langmem_ext.server.access import Access, by_token, on_this_machine
from langmem_ext.server.app import create_app, create_router
from langmem_ext.server.limits import Limits
from langmem_ext.server.queue import Queue, StoreQueue, Task, TaskState
from langmem_ext.server.service import Memory, ServerOptions, Service
from langmem_ext.server.tasks import perform_task

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
