//! Who is interested in which subject: a tree over the tokens of patterns.
//!
//! A lookup walks the subject's tokens once and keeps every branch that still matches, so its cost depends on the
//! subject's length and the matches, not on the number of subscriptions. Each client of the usual SDKs brings its own
//! wildcard (`_INBOX.<id>.*`), which is why patterns are not simply tried one after the other.
//!
//! Nothing here locks or waits; the bus holds its mutex around these calls.

use super::subscriber::{Recipients, Subscriber};
use crate::subject::{ANY_TAIL, ANY_TOKEN};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::str::Split;
use std::sync::Arc;

#[derive(Default)]
pub(super) struct Interest {
    root: InterestNode,
    /// Counts turns, so that the member that waited longest in a queue group is next.
    turn: u64,
}

impl Interest {
    pub fn insert(&mut self, subscriber: Arc<Subscriber>) {
        let mut node = &mut self.root;
        let pattern = subscriber.pattern.clone();
        for token in pattern.split('.') {
            node = node.child_or_new(token);
        }
        node.ends.insert(subscriber);
    }

    pub fn remove(&mut self, subscriber: &Subscriber) {
        self.root.remove(&mut subscriber.pattern.split('.'), subscriber);
    }

    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.root.is_empty()
    }

    /// Everyone a message on this subject should reach: every plain subscriber, and from each queue group the member
    /// whose turn it is.
    pub fn recipients(&mut self, subject: &str, audience: Recipients<'_>) -> Vec<Arc<Subscriber>> {
        let ends = self.root.matching(subject);
        let mut recipients: Vec<_> = (ends.iter().flat_map(|ends| &ends.plain))
            .filter(|subscriber| audience.includes(subscriber))
            .map(Arc::clone)
            .collect();
        for group in leading_groups(ends, audience).into_values() {
            self.turn += 1;
            recipients.extend(group.take_turn(self.turn, audience));
        }
        recipients
    }

    /// The next member of one queue group, after an earlier one could not take the message.
    pub fn next_in_group(
        &mut self,
        subject: &str,
        queue: &str,
        audience: Recipients<'_>,
    ) -> Option<Arc<Subscriber>> {
        let ends = self.root.matching(subject);
        let group = leading_groups(ends, audience).remove(queue)?;
        self.turn += 1;
        group.take_turn(self.turn, audience)
    }
}

/// A queue group may listen through several matching patterns, and still gets a message once: for each name, the
/// group whose next member has waited longest.
fn leading_groups<'e>(
    ends: Vec<&'e mut Ends>,
    audience: Recipients<'_>,
) -> BTreeMap<Arc<str>, &'e mut QueueGroup> {
    let mut leading: BTreeMap<Arc<str>, &'e mut QueueGroup> = BTreeMap::new();
    for group in ends.into_iter().flat_map(|ends| &mut ends.groups) {
        let Some(waited_since) = group.waited_since(audience) else { continue };
        let rival = leading.get(&group.name).and_then(|rival| rival.waited_since(audience));
        if rival.is_none_or(|rival| waited_since < rival) {
            leading.insert(Arc::clone(&group.name), group);
        }
    }
    leading
}

#[derive(Default)]
struct InterestNode {
    literal: HashMap<Box<str>, InterestNode>,
    any_token: Option<Box<InterestNode>>,
    any_tail: Option<Box<InterestNode>>,
    ends: Ends,
}

impl InterestNode {
    fn child_or_new(&mut self, token: &str) -> &mut Self {
        match token {
            ANY_TOKEN => self.any_token.get_or_insert_default(),
            ANY_TAIL => self.any_tail.get_or_insert_default(),
            literal => self.literal.entry(literal.into()).or_default(),
        }
    }

    /// Removes below this node, and every node on the way back that has become empty.
    fn remove(&mut self, tokens: &mut Split<'_, char>, subscriber: &Subscriber) {
        let Some(token) = tokens.next() else { return self.ends.remove(subscriber) };
        match token {
            ANY_TOKEN => remove_below(&mut self.any_token, tokens, subscriber),
            ANY_TAIL => remove_below(&mut self.any_tail, tokens, subscriber),
            literal => {
                let Some(child) = self.literal.get_mut(literal) else { return };
                child.remove(tokens, subscriber);
                if child.is_empty() {
                    self.literal.remove(literal);
                }
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.literal.is_empty() && self.any_token.is_none() && self.any_tail.is_none() && self.ends.is_empty()
    }

    /// Where the patterns that match this subject end.
    fn matching(&mut self, subject: &str) -> Vec<&mut Ends> {
        let mut found = Vec::new();
        let mut level = vec![self];
        let mut next_level = Vec::new();
        for token in subject.split('.') {
            for node in level.drain(..) {
                next_level.extend(node.literal.get_mut(token));
                next_level.extend(node.any_token.as_deref_mut());
                found.extend(node.any_tail.as_deref_mut().map(|tail| &mut tail.ends));
            }
            std::mem::swap(&mut level, &mut next_level);
        }
        found.extend(level.into_iter().map(|node| &mut node.ends));
        found
    }
}

fn remove_below(
    child: &mut Option<Box<InterestNode>>,
    tokens: &mut Split<'_, char>,
    subscriber: &Subscriber,
) {
    let Some(node) = child else { return };
    node.remove(tokens, subscriber);
    if node.is_empty() {
        *child = None;
    }
}

/// The subscribers of one pattern.
#[derive(Default)]
struct Ends {
    plain: Vec<Arc<Subscriber>>,
    groups: Vec<QueueGroup>,
}

impl Ends {
    fn insert(&mut self, subscriber: Arc<Subscriber>) {
        let Some(queue) = &subscriber.queue else { return self.plain.push(subscriber) };
        let group = match self.groups.iter().position(|group| group.name == *queue) {
            Some(position) => &mut self.groups[position],
            None => self.groups.push_mut(QueueGroup { name: Arc::clone(queue), members: VecDeque::new() }),
        };
        // A new member has waited since the beginning, so it is next after the others of its kind.
        let newcomers = group.members.partition_point(|member| member.waited_since == 0);
        group.members.insert(newcomers, GroupMember { waited_since: 0, subscriber });
    }

    fn remove(&mut self, subscriber: &Subscriber) {
        self.plain.retain(|other| other.id != subscriber.id);
        for group in &mut self.groups {
            group.members.retain(|member| member.subscriber.id != subscriber.id);
        }
        self.groups.retain(|group| !group.members.is_empty());
    }

    fn is_empty(&self) -> bool {
        self.plain.is_empty() && self.groups.is_empty()
    }
}

/// The members of a queue group on one pattern, in the order of their turns.
struct QueueGroup {
    name: Arc<str>,
    members: VecDeque<GroupMember>,
}

struct GroupMember {
    waited_since: u64,
    subscriber: Arc<Subscriber>,
}

impl QueueGroup {
    fn next_position(&self, audience: Recipients<'_>) -> Option<usize> {
        self.members.iter().position(|member| audience.includes(&member.subscriber))
    }

    fn waited_since(&self, audience: Recipients<'_>) -> Option<u64> {
        self.next_position(audience).map(|position| self.members[position].waited_since)
    }

    fn take_turn(&mut self, turn: u64, audience: Recipients<'_>) -> Option<Arc<Subscriber>> {
        let member = self.members.remove(self.next_position(audience)?)?;
        let subscriber = Arc::clone(&member.subscriber);
        self.members.push_back(GroupMember { waited_since: turn, ..member });
        Some(subscriber)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::subscriber::{Connected, Taker};
    use crate::subject::matches;
    use proptest::prelude::*;
    use tokio::sync::mpsc;

    fn pattern() -> impl Strategy<Value = String> {
        let token = prop_oneof![Just("a"), Just("b"), Just("c"), Just("*")];
        (prop::collection::vec(token, 1..4), any::<bool>())
            .prop_map(|(tokens, tail)| tokens.join(".") + if tail { ".>" } else { "" })
    }

    proptest! {
        #[test]
        fn the_tree_finds_exactly_what_matches_and_empties_again(
            patterns in prop::collection::vec(pattern(), 0..20),
            subject in "[abc](\\.[abc]){0,4}",
        ) {
            let (inbox, _messages) = mpsc::channel(1);
            let mut interest = Interest::default();
            let subscribers: Vec<_> = (0..).zip(&patterns)
                .map(|(id, pattern)| Subscriber::new(id, pattern, None, Taker::Inbox(inbox.clone())))
                .collect();
            for subscriber in &subscribers {
                interest.insert(subscriber.clone());
            }

            let mut found: Vec<_> =
                interest.recipients(&subject, Recipients { who: Connected::Anyone, tenant: None }).iter().map(|subscriber| subscriber.id).collect();
            found.sort_unstable();
            let expected: Vec<_> =
                subscribers.iter().filter(|s| matches(&s.pattern, &subject)).map(|s| s.id).collect();
            prop_assert_eq!(found, expected);

            for subscriber in &subscribers {
                interest.remove(subscriber);
            }
            prop_assert!(interest.is_empty());
        }
    }
}
