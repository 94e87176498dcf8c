//! The figures, as a table for people and as JSON for machines.

use anyhow::{Context, Result};
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;

#[derive(Default, Serialize)]
pub struct BenchReport {
    machine: MachineInfo,
    figures: Vec<Figure>,
}

#[derive(Serialize)]
struct MachineInfo {
    cores: usize,
    processor: String,
}

#[derive(Serialize)]
struct Figure {
    what: String,
    value: f64,
    unit: &'static str,
    target: &'static str,
}

impl Default for MachineInfo {
    fn default() -> Self {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            processor: name.map_or("unknown", |(_, name)| name.trim()).to_owned(),
        }
    }
}

impl BenchReport {
    /// Notes a figure, and shows it at once.
    pub fn add(&mut self, what: impl Into<String>, value: f64, unit: &'static str, target: &'static str) {
        let what = what.into();
        eprintln!("{what}: {} {unit}", short(value));
        self.figures.push(Figure { what, value, unit, target });
    }

    /// A figure of this run.
    pub fn value(&self, what: &str) -> Option<f64> {
        self.figures.iter().find(|figure| figure.what == what).map(|figure| figure.value)
    }

    pub fn write(&self, folder: &Path) -> Result<()> {
        std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        let mut table =
            format!("Measured on {} cores of {}.\n\n", self.machine.cores, self.machine.processor);
        table.push_str("| what | figure | target |\n|---|---|---|\n");
        for figure in &self.figures {
            let _ = writeln!(
                table,
                "| {} | {} {} | {} |",
                figure.what,
                short(figure.value),
                figure.unit,
                figure.target
            );
        }
        std::fs::write(folder.join("bench.md"), &table)?;
        std::fs::write(folder.join("bench.json"), serde_json::to_vec_pretty(self)?)?;
        println!("{table}");
        Ok(())
    }
}

fn short(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}
