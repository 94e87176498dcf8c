# Made by generate.py; a change here is lost with the next one.
"""What the server answers, as dataclasses, and what it is sent, as TypedDicts.

The fields and what is said of them are those of `docs/openapi.json`. `Any` is any JSON.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypedDict


@dataclass(frozen=True, slots=True, kw_only=True)
class Alive:
    status: str
    """`ok`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A question to a person about one job, and what has become of it."""

    approval_actionability: str
    """actionable, `own_job` (somebody else has to approve it) or resolved."""
    approval_decision: str | None = None
    """approve or reject, once somebody has decided."""
    approval_ref: str
    approval_required: bool
    approval_status: str
    """pending, approved, rejected, expired or invalidated."""
    constraints: Any = None
    decision: str
    """What policy said when it asked."""
    job: JobRecord
    job_hash: str
    """Name it in the answer to be sure that it is about this request."""
    policy_reason: str
    policy_rule_id: str
    policy_snapshot: str
    requested_at: int
    """Microseconds since the epoch."""
    resolved_at: int | None = None
    resolved_by: str | None = None
    resolved_comment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalContext:
    """What a person should know before they decide."""

    approval: Approval
    blast_radius: BlastRadius
    constraints: Any = None
    input: Input
    policy_snapshot_summary: SnapshotSummary
    prior_approvals: list[PriorApproval]
    """The last ten of the same topic and tenant."""
    rollback_hint: RollbackHint
    time_remaining_ms: int | None = None
    """Nothing when it waits for as long as it takes, or no longer waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalPage:
    items: list[Approval]
    next_cursor: str | None = None
    """Nothing on the last page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved:
    approved_at: int | None = None
    """Microseconds since the epoch."""
    approved_by: str | None = None
    job_id: str
    status: str | None = None
    """`already_approved` if it was before."""
    trace_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEvent:
    """One entry of a tenant's chain."""

    action: str
    decision: str | None = None
    event_hash: str
    event_type: str
    extra: dict[str, str]
    id: str
    """The tenant and its number for the entry."""
    identity: str
    """Who did it, or on whose behalf."""
    job_id: str | None = None
    """Nothing if it belongs to no job."""
    matched_rule: str
    policy_version: str
    prev_hash: str
    reason: str
    seq: int
    """Every tenant's entries are numbered from one."""
    severity: str
    tenant_id: str
    timestamp: str


class Batch(TypedDict):
    """Beats of many agents."""

    beats: list[Beat]
    """At most 1,000."""


class _BeatNeeded(TypedDict):
    agent_id: str
    """1 to 256 bytes without spaces."""
    agent_name: str
    """1 to 256 bytes."""


class Beat(_BeatNeeded, total=False):
    """What an agent says of itself."""

    active_sessions: int
    """0 unless told."""
    cpu_pct: float | None
    """From 0 to 100."""
    dispatch_name: str | None
    host: str | None
    memory_rss_bytes: int | None
    memory_total_bytes: int | None
    project: str
    """`default` unless told."""
    region: str | None
    started_at: float | None
    """Seconds since the epoch, by the agent's clock."""
    status: str
    """idle, busy or offline; idle unless told."""
    tenant_id: str | None
    """Not looked at: the tenant is the key's."""
    ts: Any
    """Not looked at: the time is the server's."""
    version: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BlastRadius:
    """Where the job would go, and how risky it says it is."""

    capability: str
    pools: list[str]
    risk_tags: list[str]
    topic: str
    workers: list[str]
    """Up to 20 of the workers that could get it now."""
    workers_total: int


class CancelBody(TypedDict, total=False):
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    id: str
    reason: str | None = None
    """Why nothing was cancelled, if nothing was."""
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainGap:
    at_seq: int
    type: str
    """`missing`, `altered` or `reordered`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainLink:
    """What a chain has at one place."""

    event_hash: str | None = None
    """Of an entry that is kept, and of the last that was pruned."""
    kept_since: str
    """What was recorded after this is not pruned yet."""
    last_seq: int
    retention_boundary_seq: int
    """The oldest entry that must still be there."""
    seq: int
    state: str
    """`kept`, `pruned`, `altered` or `missing`."""
    tenant_id: str


class CheckBudget(TypedDict, total=False):
    deadline_ms: int
    max_input_tokens: int
    max_output_tokens: int
    max_total_tokens: int


class CheckMeta(TypedDict, total=False):
    actor_id: str
    actor_type: str
    capability: str
    idempotency_key: str
    labels: dict[str, str]
    pack_id: str
    requires: list[str]
    risk_tags: list[str]
    tenant_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointLine:
    """One chain's checkpoint, as it stands in a file of them."""

    payload: str
    """The text that is signed: a JSON object with `format`, `tenant`, `first_seq`, `last_seq`, `last_hash`,
    `last_at`, `at` and `key_id`.
    """
    signature: str
    """Ed25519 over the bytes of `payload`, in base64."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointPage:
    """What chains were at this moment, signed."""

    items: list[CheckpointLine]
    next_cursor: str | None = None
    """Nothing on the last page."""
    signing_key: SigningKey


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitState:
    """A circuit breaker of the safety kernel."""

    name: str
    state: str
    """`closed`, `open` or `half-open`."""


class CompensationBody(TypedDict, total=False):
    """What is not said is as the job has it. Its priority is always critical."""

    capability: str
    context_ptr: str
    """Where its input is; the job's own unless told."""
    deadline_ms: int
    """Milliseconds that it may take."""
    idempotency_key: str
    """Made of the workflow, the job and the topic unless told."""
    labels: dict[str, str]
    """`saga_parallel: "true"` on all of them lets them go at once."""
    pack_id: str
    requires: list[str]
    risk_tags: list[str]
    topic: str
    """`job.…`: who undoes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    busy: int
    degraded: int
    offline: int
    online: int
    total: int


class _CreateKeyNeeded(TypedDict):
    name: str


class CreateKey(_CreateKeyNeeded, total=False):
    expiresAt: str | None
    scopes: list[str]
    """Of ingest, read, submit, approve, release, operate, write, worker, admin; read and write unless told."""
    tenant: str | None
    """Whose key it is; the caller's tenant unless told."""
    worker: WorkerGrant | None
    """What it may serve, if `worker` is one of its scopes; every topic and pool of its own tenant unless told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedKey:
    key: Key
    secret: str = field(repr=False)
    """Shown here and never again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    attempts: int
    created_at: str
    """RFC 3339, as in the reference."""
    job_id: str
    last_state: str
    reason: str
    reason_code: str
    status: str
    tenant: str
    topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterList:
    items: list[DeadLetter]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterPage:
    items: list[DeadLetter]
    next_cursor: str | None = None
    """Nothing on the last page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterStats:
    by_reason: dict[str, int]
    """How many of each reason code; `none` for those without."""
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadPacket:
    buried_at: str
    """RFC 3339."""
    bytes: int
    """How many bytes it had."""
    content: str
    """Its content in base64, or the first 48 KiB of it."""
    deliveries: int
    """How often it was handed out."""
    id: str
    """Which packet it is: the stream that had it and its number there."""
    reason: str
    """Why nobody could deal with it."""
    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadPacketPage:
    items: list[DeadPacket]
    next_cursor: str | None = None
    """Nothing on the last page."""


class Decided(TypedDict, total=False):
    """Why, for whoever asks later."""

    note: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    checked_at: int
    decision: str
    policy_snapshot: str
    reason: str
    rule_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRecord:
    """One decision about a job, with what it saw."""

    approval_ref: str
    approval_required: bool
    approved_by: str | None = None
    """Who allowed it, if a person did."""
    checked_at: int
    """Microseconds."""
    checked_at_text: str
    constraints: Any = None
    decision: str
    facts: Facts
    job_hash: str
    """Names what was asked for."""
    policy_snapshot: str
    reason: str
    remediations: list[Any]
    rule_id: str


class DrainRequest(TypedDict, total=False):
    timeout_seconds: int | None
    """Seconds that jobs may stay; 300 unless told, at most 3600. What is left then goes elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    drain_started_at: str
    drain_timeout_seconds: int
    drained_by: str
    name: str
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DryPolicy:
    """What policy would say now; of several rounds, the strictest."""

    approval_required: bool
    constraints: Any = None
    decision: str
    is_unread: bool
    """Rules will read the input, and it is not known yet."""
    policy_snapshot: str
    reason: str
    remediations: list[Any]
    round: int | None = None
    """Of which round."""
    rule_id: str


class DryRunBody(TypedDict, total=False):
    environment: Any
    """Understood by the reference and of no effect here: policy does not look at it."""
    input: Any
    workflow: Any
    """Ours: a document to go through instead of the one that is saved under this id. It is not saved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunReply:
    estimated_duration_sec: float
    """What the delays that are known add up to; how long workers take is not known."""
    steps: list[DryStepRecord]
    """In an order in which they could run."""
    version: int | None = None
    """Nothing for a document that is not saved."""
    warnings: list[str]
    workflow_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DryStepRecord:
    begins_on: list[str]
    """What it rests on whether it begins."""
    compensation_policy: DryPolicy | None = None
    """What policy would say of the job that undoes it, if it had to be undone."""
    condition: bool | None = None
    """What its condition says, if that is known."""
    error: str
    """Why it would be skipped or fail."""
    input: Any
    """What it would be given (in its first round), if that is known."""
    input_on: list[str]
    """What its input rests on, if it is not known."""
    output: Any
    """What it would give, if that needs no worker."""
    policy: DryPolicy | None = None
    """Nothing for a step that is no job, or that would be skipped."""
    rounds: int | None = None
    """How many rounds a `for_each` would have, if that is known."""
    run: DryRunReply | None = None
    """Of a step that is another run: how that would go. Of several rounds, the first whose input is known."""
    status: str
    """Where it would come to stand: `running`, `waiting` (for a person or a rate), `denied`, `failed`, `skipped`, or
    `pending` if it is not known whether it begins.
    """
    step_id: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """Why a job is where it is."""

    code: str
    explanation: str
    """One sentence."""
    job_id: str
    since: str
    state: str
    unblock: str | None = None
    """What would let it go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What policy saw of the job: a request never changes, so these are the facts of every decision about it."""

    actor_id: str
    actor_type: str
    capability: str
    deadline_ms: int
    labels: dict[str, str]
    pack_id: str
    principal_id: str
    priority: str
    requires: list[str]
    risk_tags: list[str]
    team: str
    tenant: str
    topic: str
    workflow_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphDetail:
    edges: list[GraphEdge]
    layers: int
    nodes: list[GraphNode]
    """Layer by layer, from the left."""
    step_width: int
    """How wide a step is, in the same unit."""
    version: int
    ways: list[GraphWay]
    width: int
    """From the left of the first step to the right of the last."""
    workflow_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphEdge:
    from_: str = field(metadata={"wire": "from"})
    label: str
    """The cases of a switch."""
    to: str
    type: str
    """`after`, `case`, `branch`, `body`, `error`, or `through` (it depends on the parallel step or loop that `from`
    belongs to).
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    about: str
    """Its topic, what it asks, or what it runs."""
    is_compensated: bool
    layer: int
    name: str
    notes: list[str]
    """What it waits for, under which conditions it begins, what undoes it."""
    position: int
    """Counts the steps of its layer, from the left."""
    step_id: str
    type: str
    x: int
    """Where its middle is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphWay:
    """Lines of one type that leave one step are one line until they part: where it is in the layers that it goes
    past, from the one below the step on.
    """

    from_: str = field(metadata={"wire": "from"})
    type: str
    x: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A result in quarantine."""

    held_at: int
    """Microseconds."""
    job_id: str
    output_safety: OutputSafety | None = None
    reason: str
    tenant: str
    topic: str
    worker_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldPage:
    items: list[Held]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """What the job would work on."""

    availability: str | None = None
    """available; gone (it has expired, or was never stored); elsewhere (the pointer names what is another's, or is
    not kept here, and so is not shown); or none.
    """
    len: int | None = None
    """In bytes; nothing unless it is available."""
    pointer: str
    value: Any = None
    """Up to 256 KiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    actor_id: str
    actor_type: str
    attempts: int
    capability: str
    created_at: int
    deadline_unix: int
    """Microseconds despite its name, as in the reference; zero when there is none."""
    failure_reason: str
    id: str
    idempotency_key: str
    pack_id: str
    principal: str
    priority: str
    requires: list[str]
    risk_tags: list[str]
    safety_decision: str
    safety_reason: str
    safety_rule_id: str
    safety_snapshot: str
    state: str
    team: str
    tenant: str
    topic: str
    trace_id: str
    updated_at: int
    """Microseconds since the epoch, like every time of the reference."""
    worker_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDetail(JobRecord):
    context: Any = None
    """The input, up to 256 KiB."""
    context_availability: str | None = None
    """available; gone (it has expired, or was never stored); elsewhere (the pointer names what is another's, or is
    not kept here, and so is not shown); or none.
    """
    context_ptr: str
    decisions: list[Decision]
    error_code: str
    error_message: str
    execution_ms: int
    labels: dict[str, str]
    output_safety: OutputSafety | None = None
    """What output policy said of the result."""
    parent_job_id: str
    """The job it came of: the one that was retried, if it is a retry."""
    progress: Progress | None = None
    reason_code: str
    """Why it failed, in one word."""
    result: Any = None
    """The output, up to 256 KiB."""
    result_availability: str | None = None
    """The same of the result; also held."""
    result_held: bool
    """Nobody may read the result: it is in quarantine, or its content is still to be looked at."""
    result_ptr: str
    step_index: int
    timeline: list[TimelineEntry]
    traceparent: str
    """Where the job stands in its trace (W3C Trace Context): the trace's id, and the job's span in it."""
    workflow_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPage:
    items: list[JobRecord]
    next_cursor: str | None = None
    """Nothing on the last page. A page may be short, or empty, and not be the last: for each, 10,000 jobs at most
    are looked through.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    created_at: str = field(metadata={"wire": "createdAt"})
    expires_at: str | None = field(default=None, metadata={"wire": "expiresAt"})
    id: str
    last_used_at: str | None = field(default=None, metadata={"wire": "lastUsedAt"})
    """To about a minute."""
    name: str
    public_key: PublicKey | None = field(default=None, metadata={"wire": "publicKey"})
    """For a key that has no secret: what its worker signs with."""
    replaced_by: str | None = field(default=None, metadata={"wire": "replacedBy"})
    """The key that has taken its place."""
    replaces: str | None = None
    """The key whose place it has taken."""
    revoked_at: str | None = field(default=None, metadata={"wire": "revokedAt"})
    scopes: list[str]
    tenant: str
    worker: WorkerGrant | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyList:
    items: list[Key]


@dataclass(frozen=True, slots=True, kw_only=True)
class LockHeld:
    holder: str
    """The server that has it; empty where there is only one."""
    name: str
    purpose: str
    """What its holder does; empty for a lock that this server does not know."""
    until: str
    """When it lapses, unless it is renewed before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotRetried:
    error: str
    job_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFinding:
    """Something that was found. The preview never shows the thing itself."""

    at: str
    """Where: a JSON pointer, or nothing for plain text."""
    confidence: float
    """From 0 to 1."""
    end: int
    name: str
    preview: str
    scanner: str
    severity: str
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputSafety:
    """What output policy said of a result."""

    checked_at: int
    """Microseconds."""
    checked_at_text: str
    decision: str
    """ALLOW, QUARANTINE, DENY or REDACT."""
    findings: list[OutputFinding]
    phase: str
    """`sync`: by what is known of it. `async`: by its content."""
    policy_snapshot: str
    reason: str
    redacted: bool
    """A redacted copy has taken the result's place."""
    resolution: str | None = None
    """`released` or `discarded`, once somebody has decided."""
    resolved_at: int | None = None
    resolved_by: str | None = None
    resolved_note: str | None = None
    rule_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    approvals: int
    """Jobs that want a person's approval, up to 100."""
    at: str
    dead_letters: int
    fleet: Counts
    quarantined: int
    """Results that are held back, up to 100."""
    throughput: Throughput | None = None
    """What this server has counted since it started; for operators."""
    waits: list[Wait]
    """Why jobs that wait do so; of the newest that wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyAnswer:
    """What policy says, in the reference's protojson."""

    approval_ref: str = field(metadata={"wire": "approvalRef"})
    approval_required: bool = field(metadata={"wire": "approvalRequired"})
    constraints: Any = None
    decision: str
    """`DECISION_TYPE_…`"""
    policy_snapshot: str = field(metadata={"wire": "policySnapshot"})
    reason: str
    remediations: list[Any]
    rule_id: str = field(metadata={"wire": "ruleId"})
    trace: list[TraceLine] | None = None
    """Of every rule, in the order of asking, why it matched or did not; only when that was asked for."""


class PolicyCheck(TypedDict, total=False):
    """A job that might be asked for."""

    action: Any
    budget: CheckBudget
    effective_config: Any
    """Understood by the reference and of no effect here."""
    estimated_cost: float
    job_id: str
    labels: dict[str, str]
    memory_id: str
    meta: CheckMeta
    org_id: str
    principal_id: str
    priority: str
    step_id: str
    team_id: str
    tenant: str
    """If given, it must be one that the key may see."""
    topic: str
    """`job.…`"""
    workflow_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    active_jobs: int
    capacity: int
    drain_started_at: str | None = None
    name: str
    status: str
    """active or draining."""
    utilization: float
    """Active jobs per capacity, from 0 to 1 and beyond."""
    workers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolList:
    items: list[Pool]


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorApproval:
    decision: str
    """approved, rejected, expired or invalidated."""
    job_id: str
    resolved_at: int | None = None
    """Microseconds since the epoch."""
    resolved_by: str | None = None
    tenant: str
    topic: str
    was_approved: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    message: str
    percent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicKey:
    """What a worker signs with."""

    agent: str
    """Its id as an agent in the trust handshake."""
    pem: str
    """P-256, as PEM."""
    proof_key_id: str = field(metadata={"wire": "proofKeyId"})
    """What the worker calls the key."""
    worker: str
    """The worker's id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    recovered: bool
    """Whether what was there before the start is picked up again."""
    replicas: list[str]
    """The servers that share the work, by name."""
    status: str
    """`ready`, `draining` or `cut_off`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    error: str
    field: str | None = None
    index: int
    """Its place in the batch, from zero."""


class _RegisterWorkerKeyNeeded(TypedDict):
    publicKey: str
    """P-256, as PEM: `BEGIN PUBLIC KEY`."""
    worker: str
    """The worker's id, which is the `sender_id` of its packets."""


class RegisterWorkerKey(_RegisterWorkerKeyNeeded, total=False):
    """Registers the public half of a key pair. The worker keeps the private half, and signs with it."""

    agent: str | None
    """Its id as an agent in the trust handshake (`expected_agent_id`); the worker's id unless told."""
    expiresAt: str | None
    grant: WorkerGrant | None
    """What it may serve; every topic and pool of its own tenant unless told."""
    proofKeyId: str | None
    """What the worker calls the key (`proof_key_id`); the key's id here unless told."""
    tenant: str | None
    """Whose worker it is; the caller's tenant unless told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    job_id: str
    rejected_at: int | None = None
    """Microseconds since the epoch."""
    rejected_by: str | None = None
    status: str | None = None
    """`already_rejected` if it was before."""


class Remediate(TypedDict):
    remediation_id: str
    """The id of one of the `remediations` of the job's last decision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayDifference:
    job_id: str
    reason: str
    tenant: str
    topic: str
    was: str
    was_rule: str
    would_be: str
    would_be_rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayReply:
    changed: int
    differences: list[ReplayDifference]
    examined: int
    partial: bool
    """There were more jobs than are looked at."""
    snapshot: str


class ReplayRequest(TypedDict):
    """Another policy, and since when jobs are to be judged by it."""

    policy: str
    """The text of a `safety.yaml`."""
    since: str
    """How far back, such as `24h`, or a time such as `2026-11-15T12:00:00Z`."""


class RerunBody(TypedDict, total=False):
    dry_run: bool | None
    from_step: str | None
    """The step to begin with; all of it unless told."""


class Resolution(TypedDict, total=False):
    """A person's answer. All of it may be left out."""

    job_hash: str | None
    """The request that is meant, as the list names it."""
    note: str | None
    policy_snapshot: str | None
    """The policy that asked, as the list names it."""
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedReply:
    job_id: str
    resolution: str
    """`released` or `discarded`."""
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RetriedJob:
    """The job that was made of a dead letter."""

    input: str | None = None
    """copied; or elsewhere: what the old job worked on is not its own, and the new one only points at it."""
    job_id: str
    state: str
    """Where it stands: policy may have denied it, or ask a person first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetriedMany:
    failed: list[NotRetried]
    retried: list[RetriedJob]


class RetryFilter(TypedDict, total=False):
    """Which dead letters to retry. A field that is not known is refused: a filter that is misspelt would retry
    everything.
    """

    before: str | None
    """Only those that died before this moment, such as 2026-11-15T12:00:00Z."""
    limit: int | None
    """100 unless told, at most 500."""
    reason_code: str | None
    topic: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackHint:
    """Whether the job brought a way to undo it."""

    has_compensation: bool
    hint: str


class RotateKey(TypedDict, total=False):
    overlapSec: int | None
    """For how long the old secret goes on: an hour unless told, at most 7 days. With 0 it is revoked at once."""


class _RotateWorkerKeyNeeded(TypedDict):
    publicKey: str
    """The public key that takes the place of the old one."""


class RotateWorkerKey(_RotateWorkerKeyNeeded, total=False):
    overlapSec: int | None
    """For how long the old one goes on: an hour unless told, at most 7 days. With 0 it is revoked at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RotatedKey:
    key: Key
    old_expires_at: str = field(metadata={"wire": "oldExpiresAt"})
    """When the old key ends."""
    secret: str = field(repr=False)
    """Shown here and never again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RotatedWorkerKey:
    key: Key
    old_expires_at: str = field(metadata={"wire": "oldExpiresAt"})
    """When the old key ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    begun: int
    count: int
    failed: int
    succeeded: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    compensations: int
    """How much of it can be undone."""
    completed_at: str | None = None
    created_at: str
    error: str
    id: str
    org_id: str
    origin: str
    """`started`, `step`, `rerun`, `rollback`, or `client`: it keeps what undoes the jobs of a workflow that a client
    drives itself.
    """
    parent_run_id: str | None = None
    """The run that this one is a step of, repeats or undoes."""
    running: int
    """Steps under way, and steps that wait."""
    started_at: str
    status: str
    updated_at: str
    waiting: int
    workflow_id: str
    workflow_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDetail(RunRecord):
    context: Any
    input: Any
    output: Any
    rollback_run_id: str | None = None
    """The run that undoes this one, if there is one; the last, if there are several."""
    steps: dict[str, StepRecord]
    """By the step's id; rounds as `step[0]`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    items: list[RunRecord]
    next_cursor: str | None = None
    """Nothing on the last page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedReply:
    id: str
    version: int
    """Counts the versions of this workflow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerKey:
    """What packets to workers are signed with."""

    key_id: str = field(metadata={"wire": "keyId"})
    """What the key is called in the trust handshake."""
    public_key: str = field(metadata={"wire": "publicKey"})
    """P-256, as PEM."""
    sender: str
    """The `sender_id` of our packets (`expected_scheduler_id`)."""
    signatures: str
    """What becomes of packets of workers that are not signed by them: `warn` or `require`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKey:
    """The public half of the key that checkpoints are signed with."""

    key_id: str
    public_key: str
    """Ed25519, as PEM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotSummary:
    asked_under: str
    """The policy that asked."""
    in_force: str
    is_current: bool
    reason: str
    rule_id: str


class StartBody(TypedDict, total=False):
    idempotency_key: str | None
    input: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedReply:
    existing: bool
    """Whether the same idempotency key had started it before."""
    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    attempt: int
    due_at: str | None = None
    """When time alone moves it on."""
    job_id: str | None = None
    message: str
    """Why it is where it is."""
    output: Any
    rounds: Rounds | None = None
    """Of a step that goes through a list: how many rounds there are, were begun, succeeded and failed."""
    since: str
    started_at: str | None = None
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitReply:
    job_id: str
    reason: str | None = None
    status: str | None = None
    """`approval_required` when a person must decide first."""
    trace_id: str


class SubmitRequest(TypedDict, total=False):
    """`prompt` or `context` must be there; the worker gets the context, with the prompt in it."""

    actor_id: str | None
    actor_type: str | None
    """human or service."""
    adapter_id: str | None
    allow_retrieval: bool
    allow_summarization: bool
    capability: str | None
    compensation: CompensationBody | None
    """What undoes it, once it has succeeded, when a job of the same workflow fails for good."""
    context: Any
    """Any JSON: the worker's input."""
    context_mode: str | None
    deadline_ms: int | None
    """Milliseconds until the job must be over."""
    idempotency_key: str | None
    """The same key returns the same job, within a tenant."""
    labels: dict[str, str]
    max_input_tokens: int | None
    max_output_tokens: int | None
    max_total_tokens: int | None
    memory_id: str | None
    org_id: str | None
    pack_id: str | None
    principal_id: str | None
    priority: str | None
    """batch, interactive or critical."""
    project_id: str | None
    prompt: str | None
    """At most 50,000 characters."""
    requires: list[str]
    risk_tags: list[str]
    step_index: int | None
    """Which step of that workflow it is."""
    tags: list[str]
    team_id: str | None
    tenant_id: str | None
    """If given, it must be the key's own tenant."""
    topic: str | None
    """`job.…`; `job.default` unless told."""
    workflow_id: str | None
    """The workflow that it is part of, if the caller drives one itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    at: str
    circuits: list[CircuitState]
    cut_off: bool
    """It is cut off from what it shares with others, and takes no work."""
    decisions: int
    """Decisions about jobs that this server is at."""
    job_timers: Timers
    """When this server looks at a job again."""
    locks: list[LockHeld] | None = None
    """Who holds which lock, of all servers; nothing while the store does not answer. Each decision about a job takes
    one for a moment; those are not listed.
    """
    more_locks: bool
    """There are more locks than are listed."""
    policy: str
    """The policy in force."""
    recovered: bool
    """It has read what it had to do before it started."""
    run_timers: Timers
    """When this server looks at a run again."""
    server: str
    """The server that answers; empty where there is only one."""
    servers: list[str]
    """Those that share the work, by their last beat; none where there is only one."""
    snapshot_written_at: str | None = None
    """When this server last wrote the snapshot of the workers; nothing if it has not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What became of a batch."""

    accepted: int
    next_beat_s: int
    """How often an agent should beat, in seconds."""
    rejected: list[Refused]


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    failed: int
    """Ended in any other way."""
    live: int
    received: int
    succeeded: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry:
    at: int
    event: str
    note: str
    state: str
    worker_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineLine:
    job_id: str | None = None
    message: str
    n: int
    """Counts the lines of this run, from one."""
    run_id: str
    status: str
    step_id: str | None = None
    time: str
    type: str
    workflow_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Timers:
    next_at: str | None = None
    """When the next is due; one that has passed is late."""
    owed: int
    """How many are owed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceLine:
    decision: str
    matched: bool
    rule_id: str = field(metadata={"wire": "ruleId"})
    tier: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrailPage:
    items: list[AuditEvent]
    next_cursor: str | None = None
    """Nothing on the last page."""
    returned: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Undrained:
    name: str
    was_drained: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """Whether a chain is what it was."""

    complete: bool
    """Not if the chain is longer than one check looks at."""
    first_seq: int | None = None
    gaps: list[ChainGap]
    last_seq: int | None = None
    retention_boundary_seq: int
    """The oldest entry that must still be there."""
    status: str
    """`ok`; `partial` if what is there is sound and older entries were pruned, or newer ones not looked at;
    `broken`.
    """
    tenant_id: str
    total_events: int
    verified_events: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    code: str
    """Such as `no_workers`."""
    examples: list[WaitingJob]
    jobs: int
    """How many of those that were looked at."""
    more: bool
    """There are more that wait than were looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingJob:
    explanation: str
    """One sentence."""
    job_id: str
    since: str
    tenant: str
    topic: str
    unblock: str | None = None
    """What would let it go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    active_jobs: int
    """Jobs it has: ours, and what it said it does for others; an agent's sessions."""
    agent_name: str
    capabilities: list[str]
    contract: str
    """How it speaks to us: cap, voicegateway or molecule."""
    cpu_load: float
    current_task: str | None = None
    """What it says it is working on."""
    drained: bool
    """An operator has taken it, or its pool, out of service."""
    expires_in_ms: int
    """Milliseconds left before it counts as dead."""
    gpu_utilization: float
    key_id: str | None = None
    """The key that says what it may serve, if it came with one."""
    labels: dict[str, str]
    last_heartbeat: str
    max_parallel_jobs: int
    memory_load: float
    online: bool
    """It has been heard within its TTL, does not say that it is offline, and nothing sent to it went unheard since."""
    pool: str
    region: str
    restored: bool
    """It was there before the server restarted and has not been heard since."""
    serves: list[str] | None = None
    """Tenants whose jobs it may be given; everybody's if nothing is said."""
    status: str
    """online, busy, degraded, restored, drained or offline."""
    tenant: str
    topics: list[str]
    type: str
    worker_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerGrant:
    """What a worker may serve."""

    pools: list[str] | None = None
    """Pools that it may join; none means any."""
    serves: list[str] | None = None
    """Tenants whose jobs it may be given; `*` is everyone. None means the tenant that it belongs to."""
    topics: list[str] | None = None
    """Topics, or patterns such as `job.mail.*`; none means every topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPage:
    items: list[Worker]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowDetail:
    """A workflow as it was saved: its document, and which version of it this is."""

    saved_at: str
    saved_by: str
    rest: dict[str, Any] = field(default_factory=dict)
    """Every field that is not named here."""
