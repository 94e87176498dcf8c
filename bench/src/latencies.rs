//! How long each of many things took.

pub struct Latencies {
    sorted_ms: Vec<f64>,
}

impl Latencies {
    pub fn of(mut all_ms: Vec<f64>) -> Self {
        all_ms.sort_by(f64::total_cmp);
        Self { sorted_ms: all_ms }
    }

    pub fn count(&self) -> usize {
        self.sorted_ms.len()
    }

    /// What so many percent of them did not take; not a number if there are none.
    pub fn at(&self, percent: usize) -> f64 {
        self.sorted_ms.get(self.sorted_ms.len() * percent / 100).copied().unwrap_or(f64::NAN)
    }
}
