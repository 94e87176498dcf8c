//! Redis, NATS and PostgreSQL for servers that share their work, on this machine and for this run.

use crate::server::cpu_seconds_of;
use reveille_test_servers::{Nats, Postgres, Redis};
use reveille_worker::Connect;

pub struct Engines {
    redis: Redis,
    nats: Nats,
    _postgres: Postgres,
    database: String,
}

impl Engines {
    /// As most run them: Redis with `appendfsync everysec`, one NATS with its streams on disk.
    pub fn start() -> Self {
        let (redis, nats, postgres) = (Redis::start(), Nats::start(), Postgres::start());
        let database = postgres.database();
        Self { redis, nats, _postgres: postgres, database }
    }

    pub fn flags(&self) -> [String; 6] {
        let (redis, nats) = (self.redis.url(0), self.nats.url());
        ["--redis", &redis, "--nats", &nats, "--postgres", &self.database].map(str::to_owned)
    }

    pub fn connect(&self) -> Connect {
        Connect { nats_url: self.nats.url(), redis_url: self.redis.url(0) }
    }

    /// CPU seconds of Redis and of NATS. PostgreSQL is not on the path of a job.
    pub fn cpu_seconds(&mut self) -> (f64, f64) {
        (cpu_seconds_of(self.redis.server().id()), cpu_seconds_of(self.nats.server().id()))
    }
}
