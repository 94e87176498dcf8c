//! Several redis-servers that are one Redis Cluster: three that share the slots, and perhaps one that follows one
//! of them.

use crate::server::{Recipe, Server, ask, free_port, mortal, program, says, until};
use tempfile::TempDir;

/// Slots are numbered from 0.
const SLOTS: u32 = 16_384;
const PRIMARIES: u32 = 3;

pub struct RedisCluster {
    nodes: Vec<ClusterNode>,
}

struct ClusterNode {
    server: Server,
    port: u16,
    bus_port: u16,
    _folder: TempDir,
}

impl RedisCluster {
    /// Nodes that are slow are not taken for dead: the machine of a test may be busy.
    pub fn start() -> Self {
        Self::start_with(&["--cluster-node-timeout", "15000"])
    }

    /// With more arguments for every redis-server.
    pub fn start_with(arguments: &[&str]) -> Self {
        let cluster = Self { nodes: (0..PRIMARIES).map(|_| ClusterNode::start(arguments)).collect() };
        for (n, node) in (0..PRIMARIES).zip(&cluster.nodes) {
            let (first, after) = (n * SLOTS / PRIMARIES, (n + 1) * SLOTS / PRIMARIES);
            node.must(&format!("CLUSTER ADDSLOTSRANGE {first} {}", after - 1));
            // Otherwise all begin at the same epoch, and quarrel over it.
            node.must(&format!("CLUSTER SET-CONFIG-EPOCH {}", n + 1));
        }
        for node in &cluster.nodes[1..] {
            cluster.nodes[0].meet(node);
        }
        cluster.settle();
        cluster
    }

    /// Adds a node that follows the one that has this key, and takes its place when it dies.
    pub fn add_follower_of(&mut self, key: &str, arguments: &[&str]) {
        let followed = self.owner_of(key);
        let id = self.id_of(followed);
        let node = ClusterNode::start(arguments);
        self.nodes[0].meet(&node);
        until("the node is known", || ask(node.port, &format!("CLUSTER REPLICATE {id}")).starts_with("+OK"));
        until("it has copied all", || ask(node.port, "INFO replication").contains("master_link_status:up"));
        self.nodes.push(node);
        self.settle();
    }

    /// The address of one node; it knows the others.
    pub fn url(&self, node: usize) -> String {
        format!("redis://127.0.0.1:{}", self.nodes[node].port)
    }

    /// The node that has this key.
    pub fn owner_of(&self, key: &str) -> usize {
        let slot = self.slot_of(key);
        let owns = |range: &str| match range.split_once('-') {
            Some((first, last)) => (number(first)..=number(last)).contains(&slot),
            None => number(range) == slot,
        };
        // A line has the node's id, seven words about it, and the slots that it owns.
        (0..self.nodes.len())
            .find(|&n| {
                let about = self.ask(n, "CLUSTER NODES");
                let own = about.lines().find(|line| line.contains("myself,")).unwrap_or_default();
                own.split(' ').skip(8).filter(|word| !word.starts_with('[')).any(owns)
            })
            .expect("every slot has an owner")
    }

    pub fn slot_of(&self, key: &str) -> u32 {
        number(ask(self.nodes[0].port, &format!("CLUSTER KEYSLOT {key}")).trim_start_matches(':').trim())
    }

    pub fn id_of(&self, node: usize) -> String {
        let answer = ask(self.nodes[node].port, "CLUSTER MYID");
        answer.lines().nth(1).unwrap().to_owned()
    }

    /// Asks one node, and shows what it said as it came.
    pub fn ask(&self, node: usize, command: &str) -> String {
        ask(self.nodes[node].port, command)
    }

    pub fn server(&mut self, node: usize) -> &mut Server {
        &mut self.nodes[node].server
    }

    /// Until every node knows every other, and who has which slots.
    fn settle(&self) {
        let known = format!("cluster_known_nodes:{}\r", self.nodes.len());
        for node in &self.nodes {
            until("the cluster is one", || {
                let about = ask(node.port, "CLUSTER INFO");
                about.contains("cluster_state:ok") && about.contains(&known)
            });
        }
    }
}

impl ClusterNode {
    fn start(arguments: &[&str]) -> Self {
        let (binary, port, bus_port) = (program("redis-server", "redis-server"), free_port(), free_port());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_owned();
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let command = move || {
            let mut command = mortal(binary.clone());
            command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "yes"]);
            command.args(["--port", &port.to_string(), "--cluster-port", &bus_port.to_string()]);
            command.args(["--cluster-enabled", "yes"]).arg("--dir").arg(&path).args(&arguments);
            command
        };
        let answers = move || says(port, "PING\r\n", "+PONG");
        let recipe = Recipe { command: Box::new(command), answers: Box::new(answers) };
        Self { server: Server::start(recipe), port, bus_port, _folder: folder }
    }

    fn meet(&self, other: &Self) {
        self.must(&format!("CLUSTER MEET 127.0.0.1 {} {}", other.port, other.bus_port));
    }

    fn must(&self, command: &str) {
        let answer = ask(self.port, command);
        assert!(answer.starts_with("+OK"), "{command}: {answer}");
    }
}

fn number(text: &str) -> u32 {
    text.parse().unwrap_or_else(|_| panic!("{text:?} is no number"))
}
