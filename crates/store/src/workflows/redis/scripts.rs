//! The scripts: one for each operation that must be atomic.

use crate::redis::script::scripts;

scripts!(Scripts {
    commit: CommitRun = "lua/commit.lua",
        keys [run, timeline, timers, run_seq],
        args [
            prefix, id, expects, token, head, revision, state, open, live, updated, due, team, tenant, workflow, version,
            idempotency, runs_max, lines_max
        ];
    save: SaveWorkflow = "lua/save.lua", keys [definition, index], args [id, document, record, workflows_max];
    delete: DeleteWorkflow = "lua/delete.lua", keys [definition, index], args [id, kept_ms];
    remove: RemoveRuns = "lua/remove.lua", keys [ended], args [prefix, named, before, limit, kept_ms];
    due: DueRuns = "lua/due.lua", keys [timers], args [prefix, now, limit];
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
