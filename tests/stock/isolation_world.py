"""Tenants that share a server: what each of them does, what it then owns, and what it must never hear.

Everything that belongs to a tenant bears its marker or is an id that the server made for it. Nobody who did not say it
itself may ever read it. Names that carry no marker are used by all tenants alike, because clashing is the point.
"""

import contextlib
import json
import uuid

from a2a_agent import Agent, agent_card_of
from streams import EventStream, WebSocket
from voices import beat_of, bearer

SHARED_AGENTS = [f"shared-{number}" for number in range(4)]
SHARED_KEYS = [f"again-{number}" for number in range(6)]
TOPIC = "job.nobody-takes-it"
MARKS = ["qzx", "wvk", "jyh"]


class Tenant:
    """One tenant: its keys, and a model of what its own doings have made."""

    def __init__(self, server, mark, stack):
        self.server, self.mark = server, f"{mark}{mark}{mark}"
        self.name = f"tenant-{self.mark}"
        self.beats = server.create_key(self.name, "ingest", "write")
        self.all = server.create_key(self.name, "ingest", "read", "write")
        self.agent = stack.enter_context(Agent(f"agent-{self.mark}"))
        keys = server.call("GET", "/api/v1/auth/keys")[1]["items"]
        self.key_ids = [key["id"] for key in keys if key["tenant"] == self.name]
        self.secrets = {*self.key_ids, self.mark, self.beats, self.all, self.agent.url}
        self.agents = {}
        self.workspaces = {}
        self.tokens = {}
        self.jobs = {}
        self.job_of_key = {}
        self.delegations = {}
        self.said = []

    def listen(self, stack):
        """Every stream there is, each from before anything happens."""
        key = bearer(self.all)
        first = self.register()
        token = bearer(self.tokens[first])
        listeners = [
            EventStream(self.server, "/openorca/events", key),
            EventStream(self.server, "/api/v1/events", key),
            EventStream(self.server, f"/workspaces/{first}/events/stream", token),
            WebSocket(self.server, "/ws", key),
            WebSocket(self.server, "/ws", token | {"X-Workspace-ID": first}),
        ]
        self.listeners = [stack.enter_context(listener) for listener in listeners]
        self.watched = first

    # Asking, with an eye on the answer.

    def ask(self, method, path, body=None, headers=None, others=()):
        """One exchange as this tenant. Its answer may name of other tenants only what the question named."""
        headers = bearer(self.all) | (headers or {})
        answer = self.server.exchange(method, path, body, headers)
        asked = f"{method} {path} {json.dumps(headers)} {json.dumps(body)}"
        heard = answer.text + json.dumps(answer.headers)
        for other in others:
            leaked = {secret for secret in other.secrets if secret in heard and secret not in asked}
            assert not leaked, f"{self.name} was told {leaked}\n{asked}\n{answer}"
        return answer

    def owns(self, *ids):
        self.secrets.update(ids)

    # Its own doings. Each changes the model exactly if the server said yes.

    def beat(self, dice, headers=None, others=(), tenant_id=None):
        agent_id = dice.choice(SHARED_AGENTS)
        beat = self.new_beat(dice, agent_id, tenant_id)
        answer = self.ask("POST", "/v1/agents/heartbeat", beat, headers, others)
        assert answer.status == 202, answer
        self.agents[agent_id] = shown(beat)

    def beat_many(self, dice, headers=None, others=(), tenant_id=None):
        beats = [self.new_beat(dice, agent_id, tenant_id) for agent_id in dice.sample(SHARED_AGENTS, 2)]
        answer = self.ask("POST", "/api/v1/presence", {"beats": beats}, headers, others)
        if answer.status == 202:
            assert answer.json()["accepted"] == len(beats), answer
            self.agents |= {beat["agent_id"]: shown(beat) for beat in beats}
        return answer

    def new_beat(self, dice, agent_id, tenant_id):
        sessions = dice.randrange(3)
        return beat_of(
            agent_id,
            agent_name=f"name-{self.mark}-{dice.randrange(100)}",
            project=f"project-{self.mark}",
            region=f"region-{self.mark}",
            host=f"host-{self.mark}",
            status="busy" if sessions else "idle",
            active_sessions=sessions,
            tenant_id=tenant_id,
        )

    def register(self, others=()):
        workspace_id = str(uuid.uuid4())
        card = agent_card_of(f"workspace-{self.mark}", self.agent.url)
        body = {"id": workspace_id, "url": self.agent.url, "agent_card": card}
        answer = self.ask("POST", "/registry/register", body, bearer(self.beats), others)
        assert answer.status == 200, answer
        self.tokens[workspace_id] = answer.json()["auth_token"]
        self.workspaces[workspace_id] = ""
        self.owns(workspace_id, self.tokens[workspace_id])
        return workspace_id

    def beat_workspace(self, dice, others=()):
        workspace_id = dice.choice(list(self.workspaces))
        task = f"task-{self.mark}-{dice.randrange(100)}"
        body = {"workspace_id": workspace_id, "error_rate": 0, "active_tasks": 1, "current_task": task}
        answer = self.ask("POST", "/registry/heartbeat", body, bearer(self.tokens[workspace_id]), others)
        assert answer.status in (200, 429), answer
        if answer.status == 200:
            self.workspaces[workspace_id] = task

    def notify(self, dice, others=()):
        workspace_id = dice.choice(list(self.workspaces))
        body = {"message": f"message-{self.mark}"}
        headers = bearer(self.tokens[workspace_id])
        assert self.ask("POST", f"/workspaces/{workspace_id}/notify", body, headers, others).status == 200

    def delegate(self, dice, others=()):
        if len(self.workspaces) < 2:
            return
        source, target = dice.sample(list(self.workspaces), 2)
        task = f"work-{self.mark}-{dice.randrange(100)}"
        body = {"target_id": target, "task": task, "idempotency_key": dice.choice(SHARED_KEYS)}
        headers = bearer(self.tokens[source])
        answer = self.ask("POST", f"/workspaces/{source}/delegate", body, headers, others)
        assert answer.status in (200, 202), answer
        delegation = answer.json()["delegation_id"]
        self.owns(delegation)
        if answer.status == 202:
            self.said.append(task)
            self.delegations[delegation] = (source, target, task)
        else:
            assert delegation in self.delegations, f"{delegation} is not one of {self.name}"

    def submit(self, dice, others=()):
        context, key = {"input": f"input-{self.mark}-{dice.randrange(100)}"}, dice.choice([None, *SHARED_KEYS])
        body = {"topic": TOPIC, "context": context, "labels": {"label": f"label-{self.mark}"}}
        body |= {"idempotency_key": key} if key else {}
        answer = self.ask("POST", "/api/v1/jobs", body, others=others)
        assert answer.status == 200, answer
        job_id = answer.json()["job_id"]
        self.owns(job_id)
        if job_id not in self.jobs:
            assert key not in self.job_of_key, f"{key} made a second job of {self.name}"
            self.jobs[job_id] = ("SCHEDULED", context)
        if key:
            assert self.job_of_key.setdefault(key, job_id) == job_id

    def cancel(self, dice, others=()):
        if not self.jobs:
            return
        job_id = dice.choice(list(self.jobs))
        answer = self.ask("POST", f"/api/v1/jobs/{job_id}/cancel", {}, others=others)
        assert answer.status == 200, answer
        self.jobs[job_id] = ("CANCELLED", self.jobs[job_id][1])

    # What it owns according to the server.

    def agents_there(self):
        rows = self.ask("GET", "/v1/agents").json()["workers"]
        return {row["agent_id"]: shown(row) for row in rows}

    def workspaces_there(self):
        rows = self.ask("GET", "/workspaces").json()
        return {row["id"]: row["current_task"] for row in rows}

    def jobs_there(self):
        found, cursor = {}, None
        while True:
            page = self.ask("GET", "/api/v1/jobs?limit=50" + (f"&cursor={cursor}" if cursor else "")).json()
            for row in page["items"]:
                job = self.ask("GET", f"/api/v1/jobs/{row['id']}").json()
                if job["topic"] == TOPIC:
                    found[row["id"]] = (job["state"], job["context"])
            cursor = page["next_cursor"]
            if cursor is None:
                return found

    def delegations_there(self):
        """With `None` for whatever has not ended yet."""
        found = {}
        for source in self.workspaces:
            headers = bearer(self.tokens[source])
            for row in self.ask("GET", f"/workspaces/{source}/delegations", headers=headers).json():
                has_ended = row["status"] == "completed"
                found[row["delegation_id"]] = (source, row["target_id"], row["summary"]) if has_ended else None
        return found


def shown(beat):
    return tuple(beat[name] for name in ("agent_name", "project", "region", "status", "active_sessions"))


@contextlib.contextmanager
def three_tenants(server):
    with contextlib.ExitStack() as stack:
        tenants = [Tenant(server, mark, stack) for mark in MARKS]
        for tenant in tenants:
            tenant.listen(stack)
        yield tenants
