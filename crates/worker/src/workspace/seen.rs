//! Which results are known already. Pure, and bounded: the oldest are forgotten first.

use std::collections::{HashSet, VecDeque};

/// How many results are remembered. A registry lists fewer, newest first, so that a result has left its
/// list long before it is forgotten here.
pub const SEEN_MAX: usize = 2000;

#[derive(Debug, Default)]
pub struct SeenDelegations {
    ids: HashSet<String>,
    oldest_first: VecDeque<String>,
}

impl SeenDelegations {
    pub fn contains(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    pub fn insert(&mut self, id: &str) {
        if !self.ids.insert(id.to_owned()) {
            return;
        }
        self.oldest_first.push_back(id.to_owned());
        if self.oldest_first.len() > SEEN_MAX
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            self.ids.remove(&oldest);
        }
    }
}

impl<'a> FromIterator<&'a str> for SeenDelegations {
    fn from_iter<Ids: IntoIterator<Item = &'a str>>(ids: Ids) -> Self {
        let mut seen = Self::default();
        ids.into_iter().for_each(|id| seen.insert(id));
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten_first_and_repeats_change_nothing() {
        let ids: Vec<String> = (0..SEEN_MAX).map(|number| number.to_string()).collect();
        let mut seen: SeenDelegations = ids.iter().map(String::as_str).collect();
        seen.insert("5");
        assert!(seen.contains("0"));
        seen.insert("new");
        assert!(seen.contains("new") && seen.contains("1") && !seen.contains("0"));
        assert_eq!((seen.ids.len(), seen.oldest_first.len()), (SEEN_MAX, SEEN_MAX));
    }
}
