# Made by generate.py; a change here is lost with the next one.
"""Workflows: documents that runs are made of."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from .._http import segment
from ..models import DryRunReply, SavedReply, WorkflowDetail
from .transport import Transport

# Named out here: in the class `list` is the method.
Saved = list[WorkflowDetail]


class Workflows:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def save(self, document: Mapping[str, Any]) -> SavedReply:
        """Every save of a changed document is a new version. A bad one is a `BadRequest` with `step` and `field`."""
        return self._transport.call("POST", "/api/v1/workflows", SavedReply, body=dict(document))

    def get(self, workflow_id: str, *, version: int | None = None) -> WorkflowDetail:
        """The document is in `rest`."""
        return self._transport.call("GET", _path(workflow_id), WorkflowDetail, query={"version": version})

    def list(self, *, page_size: int | None = None) -> Generator[WorkflowDetail]:
        """All of them by id, fetched as they are read."""
        after = None
        while True:
            query = {"limit": page_size, "after": after}
            page = self._transport.call("GET", "/api/v1/workflows", Saved, query=query)
            for workflow in page:
                yield workflow
            if not page:
                return
            after = str(page[-1].rest["id"])

    def delete(self, workflow_id: str) -> None:
        """Runs that began with it go on."""
        self._transport.call("DELETE", _path(workflow_id), object)

    def dry_run(
        self, workflow_id: str, input: Any = None, *, workflow: Mapping[str, Any] | None = None
    ) -> DryRunReply:
        """What would become of each step; nothing is stored or sent. `workflow` is a document not saved yet."""
        body = {"input": {} if input is None else input}
        if workflow is not None:
            body["workflow"] = dict(workflow)
        return self._transport.call("POST", _path(workflow_id) + "/dry-run", DryRunReply, body=body, is_safe=True)


def _path(workflow_id: str) -> str:
    return "/api/v1/workflows/" + segment("workflow_id", workflow_id)
