//! The scripts: one for each operation that must be atomic.

use super::script::scripts;

scripts!(Scripts {
    commit: CommitStep = "lua/commit.lua",
        keys [job_record, job_meta, job_seq, audit_outbox],
        args [
            prefix, id, expects, now, token, record, was_state, state, was_worker, worker, was_live, live, active, placed,
            asked, released, updated, owner, tenant, topic, trace, idempotency, letter, reason, worker_max, tenant_max,
            topic_max, queue_max, approvals_max, lock, fence, processed, in_flight, kept, kept_ms, event, events_max
        ];
    lock: TakeLock = "lua/lock.lua",
        keys [record],
        args [prefix, lock, ttl_ms, now, holder, grace_ms, processed, in_flight, what];
    renew: RenewLock = "lua/renew.lua", keys [lock], args [prefix, fence, ttl_ms, now, grace_ms];
    locks_held: ListLocks = "lua/locks_held.lua", keys [locks], args [prefix, limit, now];
    index_page: ReadIndex = "lua/index_page.lua",
        keys [],
        args [direction, last, want, budget, updated_min, updated_max, hash, record];
    prune: PruneJobs = "lua/prune.lua", keys [ended], args [prefix, tag, before, limit];
    remove_dead_letter: RemoveDeadLetter = "lua/remove_dead_letter.lua", keys [job_meta], args [prefix, id];
    put_blob: PutBlob = "lua/put_blob.lua", keys [blob], args [prefix, now, value, expires_at, ttl_ms];
    put_under: PutBlobUnder = "lua/put_under.lua",
        keys [lock, beside, blob],
        args [prefix, fence, now, expires_at, ttl_ms];
    record_under: RecordUnder = "lua/record_under.lua",
        keys [lock, audit_outbox],
        args [fence, now];
    delete_blobs: DeleteBlobs = "lua/delete_blobs.lua", keys [], args [prefix, now];
    sweep_blobs: SweepBlobs = "lua/sweep_blobs.lua", keys [ends], args [now, limit];
    swap: SwapValue = "lua/swap.lua", keys [value], args [before, after];
    beat: SendBeat = "lua/beat.lua", keys [replicas], args [prefix, me, about, ttl_ms, now, grace_ms];
    adopt: AdoptJobs = "lua/adopt.lua", keys [replicas], args [prefix, silent, me, limit, ttl_ms, now];
    bury: BuryPacket = "lua/bury.lua",
        keys [packet, packets, job_seq],
        args [prefix, name, content, now, keep_ms, packets_max];
    append_events: AppendEvents = "lua/append_events.lua",
        keys [events, last_batch],
        args [now, batch, kept_max, bytes_max];
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::script::tests::disagreement;

    #[test]
    fn every_script_says_the_names_of_its_list() {
        for (file, declared) in Scripts::declared() {
            assert_eq!(disagreement(&declared), None, "{file}");
        }
    }
}
