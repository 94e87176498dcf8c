"""The tools by which a Molecule agent delegates, each with the fault that it has there."""


class DelegationRefused(Exception):
    """What the agent is told when its delegation was not answered with 202."""


class Tools:
    """Each answers (status, JSON), except for `delegate`."""

    def __init__(self, workspace):
        self.workspace = workspace

    def delegate(self, target_id, task, idempotency_key=None):
        """The delegation's id. Takes only 202 for a yes: a repeat, which is answered with 200, is an error to it."""
        body = {"target_id": target_id, "task": task}
        if idempotency_key is not None:
            body["idempotency_key"] = idempotency_key
        status, answer = self.call("POST", "delegate", body, self.workspace.auth())
        if status != 202:
            raise DelegationRefused(status, answer)
        return answer["delegation_id"]

    def record(self, target_id, task, delegation_id):
        """Without a token, as everything below."""
        body = {"target_id": target_id, "task": task, "delegation_id": delegation_id}
        return self.call("POST", "delegations/record", body)

    def update(self, delegation_id, status, response_preview="", error=""):
        body = {"status": status, "response_preview": response_preview, "error": error}
        return self.call("POST", f"delegations/{delegation_id}/update", body)

    def list(self):
        return self.call("GET", "delegations")

    def notify(self, delegation_id):
        """Without a message too."""
        return self.call("POST", "notify", {"type": "delegation_result", "delegation_id": delegation_id})

    def call(self, method, what, body=None, headers=None):
        return self.workspace.platform.call(method, f"/workspaces/{self.workspace.id}/{what}", body, headers)
