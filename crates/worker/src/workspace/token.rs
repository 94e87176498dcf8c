//! The token that the platform hands out once, in a file that only its owner reads.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

const NAME: &str = ".auth_token";
const LEN_MAX: u64 = 4096;

/// Does nothing where no folder was given.
pub struct TokenFile {
    folder: Option<PathBuf>,
    known: Mutex<Option<String>>,
}

impl TokenFile {
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self { folder, known: Mutex::new(None) }
    }

    /// The token in the file, if it is not the one that was last found or put there. An old one in a
    /// file that cannot be written does not push aside the one that the platform has handed out.
    pub fn load_new(&self) -> Option<String> {
        let found = self.load();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if found.is_none() || found == *known {
            return None;
        }
        known.clone_from(&found);
        found
    }

    fn load(&self) -> Option<String> {
        let path = self.folder.as_ref()?.join(NAME);
        match fs::metadata(&path) {
            Ok(about) if about.len() <= LEN_MAX => {}
            Ok(_) => {
                tracing::warn!(path = %path.display(), "the token file is too long; not read");
                return None;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(_) => {}
        }
        match fs::read_to_string(&path) {
            Ok(text) => Some(text.trim().to_owned()).filter(|token| !token.is_empty()),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "cannot read the token");
                None
            }
        }
    }

    /// A token that cannot be saved still works until the agent ends.
    pub fn save(&self, token: &str) {
        let Some(folder) = &self.folder else { return };
        let new = folder.join(format!("{NAME}.{}", std::process::id()));
        let saved = write(&new, token).and_then(|()| fs::rename(&new, folder.join(NAME)));
        match saved {
            Ok(()) => *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(token.to_owned()),
            Err(error) => {
                tracing::warn!(folder = %folder.display(), %error, "cannot save the token; it is lost when the agent ends");
            }
        }
    }
}

fn write(path: &Path, token: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(token.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_token_is_kept_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::new(Some(folder.path().to_owned()));
        assert_eq!(file.load(), None);
        file.save("first");
        file.save("second");
        assert_eq!(file.load().as_deref(), Some("second"));
        let mode = fs::metadata(folder.path().join(NAME)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left behind");
    }

    #[test]
    fn only_a_token_that_is_new_is_taken_from_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::new(Some(folder.path().to_owned()));
        fs::write(folder.path().join(NAME), "by hand").unwrap();
        assert_eq!(file.load_new().as_deref(), Some("by hand"));
        assert_eq!(file.load_new(), None);
        file.save("handed out");
        assert_eq!(file.load_new(), None);
        fs::write(folder.path().join(NAME), "by hand again").unwrap();
        assert_eq!(file.load_new().as_deref(), Some("by hand again"));
    }

    #[test]
    fn without_a_folder_nothing_is_kept_and_nothing_fails() {
        for folder in [None, Some(PathBuf::from("/nowhere/at/all"))] {
            let file = TokenFile::new(folder);
            file.save("token");
            assert_eq!(file.load(), None);
        }
    }

    #[test]
    fn what_people_write_by_hand_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::new(Some(folder.path().to_owned()));
        fs::write(folder.path().join(NAME), "  token\n").unwrap();
        assert_eq!(file.load().as_deref(), Some("token"));
        fs::write(folder.path().join(NAME), "\n").unwrap();
        assert_eq!(file.load(), None);
        fs::write(folder.path().join(NAME), "x".repeat(5000)).unwrap();
        assert_eq!(file.load(), None);
    }
}
