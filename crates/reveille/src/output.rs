//! What commands print: data to standard output, as a table for people or as JSON.

use serde_json::Value;
use std::io::{IsTerminal, Write};

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

/// A field as text, whatever it is.
pub fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Microseconds since the epoch as "how long ago".
pub fn ago(micros: &Value, now_ms: i64) -> String {
    let Some(then) = micros.as_i64() else { return String::new() };
    match (now_ms - then / 1000).max(0) / 1000 {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3600 => format!("{}m{}s", seconds / 60, seconds % 60),
        seconds @ 3600..86400 => format!("{}h{}m", seconds / 3600, seconds % 3600 / 60),
        seconds => format!("{}d", seconds / 86400),
    }
}
