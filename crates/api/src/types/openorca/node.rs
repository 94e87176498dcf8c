//! A member of the fleet as the console draws it, and the machine it runs on.

use super::NodeIds;
use reveille_core::fleet::Worker;
use reveille_core::placement::Member;
use reveille_core::presence::workspace::Workspace;
use reveille_core::presence::{About, Contract, Ttls};
use reveille_core::time::Millis;
use reveille_engine::{WorkerView, in_hand, is_away, is_degraded, says_busy};
use serde::Serialize;
use utoipa::ToSchema;

/// The console draws only agents of one of these.
const DOMAINS: [&str; 5] = ["communications", "productivity", "research", "development", "automation"];
const SYSTEMS: [&str; 4] = ["macos", "windows", "linux", "android"];
/// Activity that one session stands for.
const ACTIVITY_PER_SESSION: u32 = 20;

/// A member of the fleet.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FleetNode {
    pub id: String,
    pub name: String,
    pub machine_id: String,
    pub machine_name: String,
    /// active, idle, waiting, `intervention_required` or offline.
    pub status: &'static str,
    /// communications, productivity, research, development or automation.
    pub domain: &'static str,
    #[schema(value_type = Vec<String>)]
    pub integrations: [&'static str; 0],
    pub current_task_id: Option<String>,
    pub current_action: String,
    /// From 0 to 100.
    pub memory_usage: f64,
    pub uptime: String,
    pub tasks_completed: u32,
    #[schema(value_type = Vec<String>)]
    pub collaborating_with: [&'static str; 0],
    pub intervention_required: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intervention_reason: Option<&'static str>,
    /// From 0 to 100.
    pub activity_level: u32,
    #[schema(value_type = Vec<String>)]
    pub loaded_cores: [&'static str; 0],
    pub knowledge_contributions: u32,
    pub graph_access: &'static str,
    pub active_sessions: u32,
    // Beyond what the console knows.
    pub contract: &'static str,
    pub tenant: String,
    pub last_seen: Option<String>,
}

/// A member with what else is known of it.
pub struct KnownMember<'a> {
    pub view: &'a WorkerView,
    /// Its record, if it is a workspace.
    pub workspace: Option<&'a Workspace>,
    pub current_task: Option<String>,
    pub ttls: &'a Ttls,
    pub now: Millis,
}

impl FleetNode {
    pub fn of(seen: &KnownMember<'_>, ids: NodeIds) -> Self {
        let worker = &seen.view.worker;
        let member = Member::of(worker);
        let away = is_away(worker, seen.ttls, seen.now);
        let in_hand = if away { 0 } else { in_hand(worker) };
        let wedged = matches!(&worker.about, About::Workspace(pulse) if pulse.wedged) && !away;
        let host = seen.host();
        Self {
            name: seen.name(),
            machine_id: ids.within(&worker.tenant, &host),
            machine_name: host,
            status: status(worker, away, wedged, in_hand),
            domain: seen.domain(),
            current_task_id: seen.current_task.clone().filter(|_| !away),
            current_action: action(worker, away, in_hand),
            memory_usage: if away { 0.0 } else { memory(worker) },
            uptime: if away { String::new() } else { uptime(worker, seen.now) },
            intervention_required: wedged,
            intervention_reason: wedged.then_some("It beats, but its agent hangs"),
            activity_level: activity(worker, in_hand),
            active_sessions: in_hand,
            last_seen: Some(worker.last_seen.rfc3339()),
            ..Self::unknown(&member, ids)
        }
    }

    /// Somebody who is known no longer.
    pub fn gone(member: &Member, ids: NodeIds) -> Self {
        Self { current_action: "Gone".to_owned(), ..Self::unknown(member, ids) }
    }

    fn unknown(member: &Member, ids: NodeIds) -> Self {
        let name = member.id.to_string();
        Self {
            id: ids.node(member),
            machine_id: ids.within(&member.tenant, &name),
            machine_name: name.clone(),
            name,
            status: "offline",
            domain: usual_domain(member.contract),
            integrations: [],
            current_task_id: None,
            current_action: String::new(),
            memory_usage: 0.0,
            uptime: String::new(),
            tasks_completed: 0,
            collaborating_with: [],
            intervention_required: false,
            intervention_reason: None,
            activity_level: 0,
            loaded_cores: [],
            knowledge_contributions: 0,
            graph_access: "read",
            active_sessions: 0,
            contract: member.contract.as_str(),
            tenant: member.tenant.to_string(),
            last_seen: None,
        }
    }
}

impl KnownMember<'_> {
    fn name(&self) -> String {
        let worker = &self.view.worker;
        let name = self.workspace.map_or_else(|| worker.agent_name(), |workspace| workspace.name.as_str());
        if name.is_empty() { worker.id.to_string() } else { name.to_owned() }
    }

    /// The machine, as far as the member says; else each is its own.
    fn host(&self) -> String {
        let labels = &self.view.profile.labels;
        let told = match &self.view.worker.about {
            About::Agent(agent) => agent.host.clone(),
            About::Workspace(_) => self.workspace.and_then(|w| host_of(w.url.as_deref()?)),
            About::Cap => labels.get("host").or_else(|| labels.get("hostname")).cloned(),
        };
        told.filter(|host| !host.is_empty()).unwrap_or_else(|| self.view.worker.id.to_string())
    }

    /// What it says of itself, if that is a word the console knows.
    fn domain(&self) -> &'static str {
        let profile = &self.view.profile;
        let told = match &self.view.worker.about {
            About::Agent(agent) => [Some(agent.project.as_str()), None, None],
            About::Workspace(_) => [self.workspace.and_then(|w| w.role.as_deref()), None, None],
            About::Cap => {
                let label = |name: &str| profile.labels.get(name).map(String::as_str);
                [label("domain"), label("project"), Some(profile.kind.as_str())]
            }
        };
        let known = told.into_iter().flatten().find_map(|word| one_of(&DOMAINS, word));
        known.unwrap_or(usual_domain(self.view.worker.contract()))
    }

    fn system(&self) -> &'static str {
        let told = self.view.profile.labels.get("os").and_then(|word| one_of(&SYSTEMS, word));
        told.unwrap_or("linux")
    }

    fn region(&self) -> Option<String> {
        let told = match &self.view.worker.about {
            About::Agent(agent) => agent.region.clone().unwrap_or_default(),
            _ => self.view.profile.region.clone(),
        };
        Some(told).filter(|region| !region.is_empty())
    }
}

fn one_of<const N: usize>(known: &[&'static str; N], word: &str) -> Option<&'static str> {
    known.iter().copied().find(|known| known.eq_ignore_ascii_case(word))
}

/// The host and nothing else of an address such as `http://user@host:80/path`.
fn host_of(url: &str) -> Option<String> {
    let authority = url.split_once("://")?.1.split(['/', '?', '#']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let end = if host.starts_with('[') { host.find(']').map(|end| end + 1) } else { host.find(':') };
    Some(host[..end.unwrap_or(host.len())].to_owned())
}

pub(super) fn usual_domain(contract: Contract) -> &'static str {
    match contract {
        Contract::VoiceGateway => "communications",
        Contract::Cap => "automation",
        Contract::Molecule => "productivity",
    }
}

fn status(worker: &Worker, away: bool, wedged: bool, in_hand: u32) -> &'static str {
    let is_agent = worker.contract() == Contract::VoiceGateway;
    match worker {
        _ if away => "offline",
        _ if wedged => "intervention_required",
        _ if in_hand > 0 || says_busy(worker) => "active",
        worker if !is_agent && (worker.restored || worker.drained || is_degraded(worker)) => "waiting",
        _ => "idle",
    }
}

fn action(worker: &Worker, away: bool, in_hand: u32) -> String {
    let many = |one: &str| format!("{in_hand} {one}{}", if in_hand == 1 { "" } else { "s" });
    match &worker.about {
        _ if away => "Offline".to_owned(),
        About::Workspace(pulse) if !pulse.current_task.is_empty() => pulse.current_task.clone(),
        _ if worker.drained => format!("Drained, {}", many("job")),
        _ if in_hand == 0 => "Idle".to_owned(),
        About::Agent(_) => many("live call"),
        About::Workspace(_) => many("task"),
        About::Cap => many("job"),
    }
}

fn memory(worker: &Worker) -> f64 {
    let told = match &worker.about {
        About::Agent(agent) => agent.memory_pct().unwrap_or(0.0),
        _ => f64::from(worker.load.memory),
    };
    told.clamp(0.0, 100.0)
}

fn uptime(worker: &Worker, now: Millis) -> String {
    let seconds = match &worker.about {
        About::Agent(agent) => agent.started_at.map(|started| now.0 / 1000 - started as i64),
        About::Workspace(pulse) => Some(pulse.uptime_seconds),
        About::Cap => None,
    };
    match seconds {
        None => String::new(),
        Some(seconds) if seconds < 60 => format!("{}s", seconds.max(0)),
        Some(seconds) if seconds < 3_600 => format!("{}m", seconds / 60),
        Some(seconds) if seconds < 48 * 3_600 => format!("{}h", seconds / 3_600),
        Some(seconds) => format!("{}d", seconds / 86_400),
    }
}

fn activity(worker: &Worker, in_hand: u32) -> u32 {
    let level = match &worker.about {
        About::Agent(_) => in_hand.saturating_mul(ACTIVITY_PER_SESSION),
        _ => in_hand.saturating_mul(100) / worker.capacity(),
    };
    level.min(100)
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Machine {
    pub id: String,
    pub name: String,
    pub os: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    pub is_online: bool,
    pub last_seen: String,
}

impl Machine {
    /// The machine of a node. Of several nodes on one machine, the one heard last tells of it.
    pub fn of(seen: &KnownMember<'_>, node: &FleetNode) -> Self {
        Self {
            id: node.machine_id.clone(),
            name: node.machine_name.clone(),
            os: seen.system(),
            location: seen.region(),
            is_online: node.status != "offline",
            last_seen: seen.view.worker.last_seen.rfc3339(),
        }
    }
}
