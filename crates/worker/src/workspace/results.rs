//! The results of delegations, one JSON object per line, for the agent to read when it wakes.
//!
//! The file is also the memory over restarts: what stands in it is not announced again. Beside it, in
//! `<file>.announced`, stands the last result that the agent was woken for, so that a restart within the
//! cooldown forgets nothing. The agent may take the file away once it has read it.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use crate::workspace::payload::Completion;
use crate::workspace::seen::SeenDelegations;

/// How much of the file's end is read at the start.
const TAIL_LEN_MAX: u64 = 8 * 1024 * 1024;

pub struct ResultsFile {
    path: PathBuf,
    announced: PathBuf,
    /// The newest result in the file.
    last_id: Option<String>,
}

impl ResultsFile {
    pub fn new(path: PathBuf) -> Self {
        let mut announced = OsString::from(&path);
        announced.push(".announced");
        Self { path, announced: announced.into(), last_id: None }
    }

    /// What the file knows, as far back as we remember. A line that a crash cut short is passed over,
    /// and ended, so that the next one stands alone.
    pub fn load(&mut self) -> io::Result<SeenDelegations> {
        let text = match self.tail() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(SeenDelegations::default()),
            tail => tail?,
        };
        if !text.is_empty() && !text.ends_with('\n') {
            self.write(b"\n")?;
        }
        let known: Vec<Completion> =
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        self.last_id = known.last().map(|last| last.delegation_id.clone());
        Ok(known.iter().map(|completion| completion.delegation_id.as_str()).collect())
    }

    /// Whether there is a result in the file that the agent was not woken for.
    pub fn is_unannounced(&self) -> bool {
        let announced = fs::read_to_string(&self.announced).unwrap_or_default();
        self.last_id.as_ref().is_some_and(|last| *last != announced)
    }

    pub fn append(&mut self, completions: &[Completion]) -> io::Result<()> {
        let Some(last) = completions.last() else { return Ok(()) };
        let mut lines = Vec::new();
        for completion in completions {
            serde_json::to_writer(&mut lines, completion)?;
            lines.push(b'\n');
        }
        self.write(&lines)?;
        self.last_id = Some(last.delegation_id.clone());
        Ok(())
    }

    /// The agent is being woken for all that is there.
    pub fn announced(&self) {
        let Some(last) = &self.last_id else { return };
        if let Err(error) = fs::write(&self.announced, last) {
            tracing::warn!(path = %self.announced.display(), %error, "cannot note that results were announced");
        }
    }

    /// It was not woken after all.
    pub fn unannounced(&self) {
        if let Err(error) = fs::remove_file(&self.announced)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %self.announced.display(), %error, "cannot note that results are unannounced");
        }
    }

    /// In one piece, at the end of whatever is there.
    fn write(&self, lines: &[u8]) -> io::Result<()> {
        OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)?.write_all(lines)
    }

    fn tail(&self) -> io::Result<String> {
        let mut file = File::open(&self.path)?;
        let len = file.metadata()?.len();
        file.seek(SeekFrom::Start(len.saturating_sub(TAIL_LEN_MAX)))?;
        let mut bytes = Vec::new();
        file.take(TAIL_LEN_MAX).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::payload::CompletionStatus;

    fn completion(id: &str) -> Completion {
        Completion {
            delegation_id: id.to_owned(),
            target_id: String::new(),
            source_id: "me".to_owned(),
            status: CompletionStatus::Completed,
            summary: "two\nlines".to_owned(),
            response_preview: String::new(),
            error: String::new(),
            timestamp: 1.5,
        }
    }

    fn file() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.jsonl");
        (folder, path)
    }

    #[test]
    fn what_was_written_is_known_after_a_restart() {
        let (_folder, path) = file();
        let mut results = ResultsFile::new(path.clone());
        assert!(!results.load().unwrap().contains("a"));
        results.append(&[completion("a"), completion("b")]).unwrap();
        results.append(&[]).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");

        let seen = ResultsFile::new(path).load().unwrap();
        assert!(seen.contains("a") && seen.contains("b") && !seen.contains("c"));
    }

    #[test]
    fn a_line_that_was_cut_short_spoils_no_other() {
        let (_folder, path) = file();
        fs::write(&path, "garbage\n{\"delegation_id\":\"torn").unwrap();
        let mut results = ResultsFile::new(path.clone());
        results.load().unwrap();
        assert!(!results.is_unannounced());
        results.append(&[completion("a")]).unwrap();
        assert!(ResultsFile::new(path).load().unwrap().contains("a"));
    }

    #[test]
    fn a_restart_remembers_what_was_announced() {
        let (_folder, path) = file();
        let restarted = || {
            let mut results = ResultsFile::new(path.clone());
            results.load().unwrap();
            results
        };
        let mut results = restarted();
        assert!(!results.is_unannounced(), "there is nothing yet");
        results.append(&[completion("a")]).unwrap();
        assert!(restarted().is_unannounced());
        results.announced();
        assert!(!restarted().is_unannounced());
        results.unannounced();
        results.unannounced();
        assert!(restarted().is_unannounced());
        results.announced();
        results.append(&[completion("b")]).unwrap();
        assert!(restarted().is_unannounced());
        fs::remove_file(&path).unwrap();
        assert!(!restarted().is_unannounced(), "the agent has read it");
    }
}
