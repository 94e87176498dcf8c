//! What a script can tell from the exit code. The list is shown under `reveille --help` and on the man page, and
//! `docs/command-line.md` has it too; none of it changes its meaning.

/// Refused, out of reach, not found, or not as it should be; standard error says which.
pub const FAILED: u8 = 1;
/// The job, the run or a step of it ended, and not in success.
pub const JOB_FAILED: u8 = 3;
/// The job has not ended in the time given.
pub const NOT_YET: u8 = 4;

/// What a checkpoint of the audit trail stands for was pruned; nothing else is wrong.
pub const PRUNED: u8 = 5;

/// Every code. 2 is clap's.
const CODES: [(u8, &str); 6] = [
    (0, "It is done; of a job or a run that was waited for: it succeeded"),
    (
        FAILED,
        "It failed: the server refused it or does not answer, an input cannot be read, or a check does not hold",
    ),
    (2, "The command line cannot be read; nothing was asked of the server"),
    (JOB_FAILED, "The job or run that was waited for did not succeed, or a dry run says that it would not"),
    (NOT_YET, "The job that was waited for has not ended within --timeout; it goes on"),
    (PRUNED, "Everything that could be checked holds; a checkpoint is of entries that were pruned since"),
];

/// As it stands under the help.
pub fn help() -> String {
    CODES.iter().fold("Exit codes:".to_owned(), |help, (code, words)| format!("{help}\n  {code}  {words}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_lists_the_codes_that_the_help_lists() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/command-line.md");
        let page = std::fs::read_to_string(path).unwrap();
        let rows: Vec<String> = CODES.iter().map(|(code, words)| format!("| {code} | {words} |")).collect();
        assert!(page.contains(&rows.join("\n")), "docs/command-line.md should have\n{}", rows.join("\n"));
        // Where the lines are broken depends on the terminal.
        let help = crate::args::command_line().render_help().to_string();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(CODES.iter().all(|(code, words)| help.contains(&format!(" {code} {words}"))), "{help}");
    }
}
