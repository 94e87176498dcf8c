//! What commands print: data to standard output, in words for people or as JSON for programs.

use crate::args::ServerArgs;
use anyhow::Result;
use reveille_client::{Error, Pages};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};

/// Prints what a server answered: as it came for a program, in words for a person.
pub fn answer<T: DeserializeOwned>(
    server: &ServerArgs,
    answer: &Value,
    in_words: impl FnOnce(T),
) -> Result<()> {
    if server.json {
        json(answer);
    } else {
        in_words(read(answer)?);
    }
    Ok(())
}

/// Prints the items of a list: as they came for a program, as a table for a person.
pub fn list<T: DeserializeOwned>(
    server: &ServerArgs,
    items: Pages<'_, Value>,
    titles: &[&str],
    row: impl Fn(T) -> Vec<String>,
) -> Result<()> {
    let items: Vec<Value> = items.collect::<Result<_, _>>()?;
    if server.json {
        json(&json!({ "items": items }));
    } else {
        let rows = items.iter().map(|item| Ok(row(read(item)?))).collect::<Result<Vec<_>>>()?;
        table(titles, &rows);
    }
    Ok(())
}

/// An answer in the shape that the API gives it.
pub fn read<T: DeserializeOwned>(answer: &Value) -> Result<T> {
    Ok(T::deserialize(answer).map_err(|error| Error::Unreadable(error.to_string()))?)
}

/// Prints JSON: indented for a terminal, one line for a pipe.
pub fn json(value: &Value) {
    let text = if std::io::stdout().is_terminal() {
        serde_json::to_string_pretty(value)
    } else {
        serde_json::to_string(value)
    };
    line(&text.unwrap_or_default());
}

/// Prints a line; a reader that has gone away is no error.
pub fn line(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Prints rows under their titles, each column as wide as it must be.
pub fn table(titles: &[&str], rows: &[Vec<String>]) {
    let width = |column: usize| {
        rows.iter().map(|row| row[column].chars().count()).chain([titles[column].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..titles.len()).map(width).collect();
    let print = |cells: Vec<&str>| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        line(padded.collect::<Vec<_>>().join("  ").trim_end());
    };
    print(titles.to_vec());
    for row in rows {
        print(row.iter().map(String::as_str).collect());
    }
}

/// Prints what is known of something, a line each, with the names in a column of this width.
pub fn facts(width: usize, facts: &[(&str, &str)]) {
    for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
        line(&format!("{name:width$} {value}"));
    }
}

/// A field as text, whatever it is.
pub fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Microseconds since the epoch as "how long ago".
pub fn ago(micros: i64, now_ms: i64) -> String {
    match (now_ms - micros / 1000).max(0) / 1000 {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3600 => format!("{}m{}s", seconds / 60, seconds % 60),
        seconds @ 3600..86400 => format!("{}h{}m", seconds / 3600, seconds % 3600 / 60),
        seconds => format!("{}d", seconds / 86400),
    }
}
