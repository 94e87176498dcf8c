//! Each engine starts, is killed, starts again where it was, and is gone when its value is.

#![allow(clippy::unwrap_used, reason = "a failed check is a failed test")]

use reveille_test_servers::{Fsync, Nats, Postgres, Redis, RedisCluster};
use std::io::{Read, Write};
use std::net::TcpStream;

#[test]
fn redis_keeps_what_it_answered_over_a_kill() {
    let mut redis = Redis::start_with(Fsync::Always, &[]);
    assert_eq!(ask(redis.port(), "SET a 1\r\n"), "+OK\r\n");
    redis.server().restart();
    assert_eq!(ask(redis.port(), "GET a\r\n"), "$1\r\n1\r\n");
    let port = redis.port();
    drop(redis);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[test]
fn a_cluster_of_redis_is_one_and_ends_with_its_value() {
    let cluster = RedisCluster::start();
    let owner = cluster.owner_of("a");
    assert_eq!(cluster.ask(owner, "SET a 1"), "+OK\r\n");
    assert!(cluster.ask((owner + 1) % 3, "GET a").starts_with("-MOVED"));
    let ports: Vec<String> =
        (0..3).map(|node| cluster.url(node).trim_start_matches("redis://").to_owned()).collect();
    drop(cluster);
    assert!(ports.iter().all(|port| TcpStream::connect(port).is_err()));
}

#[test]
fn nats_starts_again_where_it_was() {
    let mut nats = Nats::start();
    nats.server().restart();
    assert!(greeting(nats.port()).contains("\"jetstream\":true"));
}

#[test]
fn postgres_makes_databases_before_and_after_a_kill() {
    let mut postgres = Postgres::start();
    let first = postgres.database();
    postgres.server().restart();
    assert_ne!(first, postgres.database());
}

fn ask(port: u16, command: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(command.as_bytes()).unwrap();
    read(&mut stream)
}

fn greeting(port: u16) -> String {
    read(&mut TcpStream::connect(("127.0.0.1", port)).unwrap())
}

fn read(stream: &mut TcpStream) -> String {
    let mut buffer = vec![0; 4096];
    let len = stream.read(&mut buffer).unwrap();
    String::from_utf8(buffer[..len].to_vec()).unwrap()
}
