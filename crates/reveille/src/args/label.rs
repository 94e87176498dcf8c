//! Labels on the command line.

/// Reads `key=value`.
pub fn label(text: &str) -> Result<(String, String), &'static str> {
    let (key, value) = text.split_once('=').ok_or("it is not key=value")?;
    Ok((key.to_owned(), value.to_owned()))
}
