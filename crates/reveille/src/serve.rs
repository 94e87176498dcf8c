//! `reveille serve`: bind, open, start, say where, run until told to stop, drain.

mod admin;
mod backends;
mod gate;
mod grpc;
mod http;
mod operator;
mod packet_key;
mod reload;
mod signing_key;
mod tls;
mod traces;

use crate::args::ServeArgs;
use crate::config::{
    Config, DoorsSection, EngineOptions, HttpSection, LogSection, OidcSection, SafetySection,
};
use crate::demo;
use anyhow::{Context, Result, bail};
use axum::Router;
pub use operator::{KEY_FILE, write_private};
pub use packet_key::new_key;

use backends::Backends;
use gate::KeyGate;
use reveille_a2a::{AddressRules, HttpA2aClient};
use reveille_api::unauthenticated::UnauthenticatedLimit;
use reveille_core::id::TenantId;
use reveille_core::presence::Ttls;
use reveille_doors::tls::DoorTls;
use reveille_doors::{DoorListener, UnixDoor, nats, resp};
use reveille_engine::{Clock, Engine, OutputSettings, Parts, RuleFiles, Settings, SystemClock, SystemRng};
use reveille_kernel::{GrpcKernel, Kernel};
use reveille_oidc::Oidc;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tls::ReloadingTls;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How long a drain may take before what is left is cut off. It is all in the store.
const DRAIN_PATIENCE: Duration = Duration::from_secs(10);

pub fn run(args: &ServeArgs) -> Result<ExitCode> {
    let config = Config::load(args)?;
    start_logging(&config.log)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("starting the runtime")?;
    runtime.block_on(serve(config, args.demo))?;
    Ok(ExitCode::SUCCESS)
}

fn demo_can_run(tls: Option<&DoorTls>, is_shared: bool) -> Result<()> {
    if tls.is_some() {
        bail!("--demo needs doors without TLS; leave out doors.tls_cert and doors.tls_key");
    }
    if is_shared {
        bail!("--demo runs by itself; leave out --redis, --nats and --postgres");
    }
    Ok(())
}

async fn serve(config: Config, with_demo: bool) -> Result<()> {
    let tls = load_tls(&config.doors)?;
    let is_shared = EngineOptions::of(&config.redis, &config.nats, &config.postgres)?.is_some();
    if with_demo {
        demo_can_run(tls.as_ref(), is_shared)?;
    }
    // Ports first: a server that cannot be reached must not touch the data.
    let web = bind(&config.http.address, "HTTP", "--http").await?;
    let web_tls = config.http.tls_files().map(ReloadingTls::load).transpose()?;
    let admin = bind_unless_off(&config.http.admin, "the admin listener", "--admin").await?;
    let grpc_door = bind_unless_off(&config.grpc.address, "gRPC", "--grpc").await?;
    // Where servers share their engines, workers go to those.
    let (mut nats_door, mut resp_door): (Option<DoorListener>, Option<DoorListener>) = (None, None);
    if !is_shared {
        nats_door = bind_door(&config.doors.nats, "the NATS door", "--nats-door").await?;
        resp_door = bind_door(&config.doors.resp, "the RESP door", "--resp-door").await?;
    }
    if with_demo && [&nats_door, &resp_door].into_iter().flatten().any(|door| door.tcp().is_none()) {
        bail!("--demo needs doors on TCP addresses");
    }

    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let name = replica_name()?;
    let Backends { store, roster, workflows, bus, doors, findings } =
        Backends::open(&config, &name, clock.clone()).await?;
    let files = rule_files(&config);
    let files_at_start = files.fingerprint();
    let a2a = HttpA2aClient::new(AddressRules::parse(&config.a2a.allow).context("a2a.allow")?);
    let engine = Engine::start(Parts {
        store,
        roster,
        workflows,
        bus,
        a2a: Arc::new(a2a),
        kernel: kernel(&config.safety)?,
        oidc: oidc(&config.oidc)?,
        traces: traces::start(&config.tracing)?,
        clock: clock.clone(),
        rng: Arc::new(SystemRng::default()),
        rules: files.load()?,
        settings: settings(&config, &name, is_shared)?,
    })
    .await
    .context("starting the engine")?;
    warn_about_openness(&config, &engine, &files);
    operator::ensure_key(&engine, &config.data.folder).await?;

    let (stop, stopped) = watch::channel(false);
    warn_about_clear_text(
        tls.as_ref(),
        [grpc_door.as_ref(), tcp(nats_door.as_ref()), tcp(resp_door.as_ref())],
    )?;
    let pages = reveille_console::router(engine.clone(), findings);
    let router = reveille_api::router(engine.clone()).merge(pages);
    let unauthenticated = UnauthenticatedLimit::new(engine.clone());
    let served = start_web(web, web_tls, router, unauthenticated, &config.http, stopped.clone())?;
    if let Some(listener) = admin {
        eprintln!("admin on http://{}", listener.local_addr()?);
        admin::start(listener, engine.clone(), stopped.clone())?;
    }
    if let Some(door) = grpc_door {
        grpc::start(door, &config, engine.clone(), stopped.clone())?;
    }
    let gate = Arc::new(KeyGate {
        engine: engine.clone(),
        open: doors_are_open(&config.doors, tcp(nats_door.as_ref()), tcp(resp_door.as_ref()))?,
    });
    let mut connect = demo::Addresses::default();
    if is_shared {
        eprintln!("shared: jobs in Redis, messages in NATS, the roster in PostgreSQL; this server is {name}");
    }
    if let (Some(door), Some(bus)) = (nats_door, doors) {
        let scheme = if tls.is_some() { "tls" } else { "nats" };
        connect.nats = door.location(scheme)?;
        eprintln!("nats door on {}", connect.nats);
        let limits = nats::NatsLimits::default();
        tokio::spawn(nats::serve(door, tls.clone(), bus, gate.clone(), limits, stopped.clone()));
    }
    if let Some(door) = resp_door {
        let scheme = if tls.is_some() { "rediss" } else { "redis" };
        connect.resp = door.location(scheme)?;
        eprintln!("resp door on {}", connect.resp);
        let limits =
            resp::RespLimits { blob_ttl_ms: engine.settings().blob_ttl_ms, ..resp::RespLimits::default() };
        let now = clock.clone();
        let now = Arc::new(move || now.now());
        let blobs = engine.jobs().readable_blobs();
        tokio::spawn(resp::serve(door, tls, blobs, gate, now, limits, stopped.clone()));
    }
    tokio::spawn(reload::watch(engine.clone(), files, files_at_start));
    if with_demo {
        demo::start(engine.clone(), &connect)?;
    }

    told_to_stop().await?;
    eprintln!("stopping: no new work; finishing what was begun");
    // Workers may still report while the engine settles what it has.
    engine.drain(DRAIN_PATIENCE).await;
    let _ = stop.send(true);
    let _ = tokio::time::timeout(DRAIN_PATIENCE, served).await;
    Ok(())
}

/// The API and the console.
fn start_web(
    listener: TcpListener,
    tls: Option<Arc<ReloadingTls>>,
    router: Router,
    unauthenticated: UnauthenticatedLimit,
    config: &HttpSection,
    stopped: watch::Receiver<bool>,
) -> Result<JoinHandle<()>> {
    if tls.is_none() && beyond_this_machine(&[Some(&listener)])? {
        tracing::warn!(
            "HTTP listens beyond this machine without TLS: keys and jobs can be read on the way; \
             set http.tls_cert and http.tls_key, or put a proxy with TLS in front"
        );
    }
    let (scheme, address) = (if tls.is_some() { "https" } else { "http" }, listener.local_addr()?);
    if let Some(tls) = tls.clone() {
        tokio::spawn(tls.watch());
    }
    let trusted = AddressRules::parse(&config.trusted_proxies).context("http.trusted_proxies")?;
    let limits = http::HttpLimits {
        connections_per_address: config.connections_per_address,
        trusted_proxies: Arc::new(trusted),
        unauthenticated: Some(unauthenticated),
        ..http::HttpLimits::new(config.connections_max)
    };
    let served = tokio::spawn(http::serve(listener, router, tls, limits, stopped));
    eprintln!("listening on {scheme}://{address}");
    eprintln!("the console is at {scheme}://{address}/");
    Ok(served)
}

/// What an operator may not have meant.
fn warn_about_openness(config: &Config, engine: &Engine, files: &RuleFiles) {
    if config.auth.open {
        tracing::warn!(
            tenant = config.auth.open_tenant,
            "auth.open: callers without a key are let in, as a tenant of their own"
        );
    }
    if config.auth.open_registration {
        tracing::warn!(
            "auth.open_registration: whoever knows the id of a workspace that was set up may register it and is given its token"
        );
    }
    if files.policy.is_none() && engine.jobs().policy().kernel_address().is_none() {
        tracing::warn!("no policy file: every job is allowed, and recorded as builtin-allow");
    }
}

/// Who judges instead of the policy file, if somebody does.
fn kernel(safety: &SafetySection) -> Result<Option<Arc<dyn Kernel>>> {
    let Some(target) = safety.target()? else { return Ok(None) };
    let kernel = GrpcKernel::new(&target)?;
    tracing::info!(address = target.address, "jobs and results are judged by another safety kernel");
    Ok(Some(Arc::new(kernel)))
}

/// Who vouches for people, if somebody does. It is asked when somebody comes, so it may be away now.
fn oidc(section: &OidcSection) -> Result<Option<Oidc>> {
    let Some(settings) = section.settings()? else { return Ok(None) };
    tracing::info!(issuer = settings.issuer, "people sign in with an identity provider");
    Ok(Some(Oidc::new(settings).context("oidc")?))
}

fn rule_files(config: &Config) -> RuleFiles {
    let files = &config.files;
    RuleFiles {
        pools: files.pools.clone(),
        policy: files.policy.clone(),
        timeouts: files.timeouts.clone(),
        scanners: files.scanners.clone(),
    }
}

/// The machine and this life of this server: a name that comes again is that of a server that is still here.
fn replica_name() -> Result<String> {
    let mut random = [0; 4];
    getrandom::fill(&mut random).context("the system has no randomness")?;
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let host: String = host.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    Ok(format!("{host}-{:08x}", u32::from_be_bytes(random)))
}

fn settings(config: &Config, name: &str, is_shared: bool) -> Result<Settings> {
    let hour_ms = 3600 * 1000;
    Ok(Settings {
        default_tenant: TenantId::parse(&config.doors.tenant).context("doors.tenant")?,
        blob_ttl_ms: i64::from(config.jobs.blob_hours) * hour_ms,
        keep_ended_ms: i64::from(config.jobs.keep_days) * 24 * hour_ms,
        keep_audit_ms: i64::from(config.jobs.audit_days) * 24 * hour_ms,
        approval_ms: config.approvals.expire_after()?.map(|after| after.as_millis() as i64),
        live_jobs_max: config.jobs.live_max,
        ttls: Ttls {
            cap_ms: i64::from(config.fleet.cap_ttl_seconds) * 1000,
            voicegateway_ms: i64::from(config.fleet.voicegateway_ttl_seconds) * 1000,
            molecule_ms: i64::from(config.fleet.molecule_ttl_seconds) * 1000,
        },
        warm_start: config.fleet.warm_start,
        snapshot_every: config.fleet.snapshot_every()?,
        keep_offline_ms: i64::from(config.fleet.keep_offline_days) * 24 * hour_ms,
        open_tenant: if config.auth.open {
            Some(TenantId::parse(&config.auth.open_tenant).context("auth.open_tenant")?)
        } else {
            None
        },
        open_registration: config.auth.open_registration,
        open_hosts: config.auth.open_hosts.clone(),
        role_grants: config.oidc.role_grants()?,
        session_secret: operator::session_secret(
            config.auth.session_secret_file.as_deref(),
            &config.data.folder,
            is_shared,
        )?,
        signing_seed: signing_key::signing_seed(
            config.audit.signing_key_file.as_deref(),
            &config.data.folder,
            is_shared,
        )?,
        signatures: packet_key::mode(config.fleet.signatures),
        packet_key: packet_key::packet_key(&config.fleet, &config.data.folder, is_shared)?,
        replica: name.to_owned(),
        output: OutputSettings {
            enabled: config.output.enabled,
            fail_mode: config.output.fail_mode,
            hold: config.output.hold,
        },
        policy_fail_mode: config.safety.fail_mode,
        trace_ratio: config.tracing.ratio()?,
        limits: config.limits.settings(),
    })
}

/// An address, `unix:` and a path, or `off`.
async fn bind_door(address: &str, what: &str, flag: &str) -> Result<Option<DoorListener>> {
    if let Some(path) = address.strip_prefix("unix:") {
        let door = UnixDoor::bind(Path::new(path)).await;
        let door = door.with_context(|| {
            format!("{what} cannot listen on {path}; choose another with {flag} unix:PATH")
        })?;
        return Ok(Some(door.into()));
    }
    Ok(bind_unless_off(address, what, flag).await?.map(DoorListener::from))
}

async fn bind_unless_off(address: &str, what: &str, flag: &str) -> Result<Option<TcpListener>> {
    if address == "off" { Ok(None) } else { bind(address, what, flag).await.map(Some) }
}

fn tcp(door: Option<&DoorListener>) -> Option<&TcpListener> {
    door.and_then(DoorListener::tcp)
}

async fn bind(address: &str, what: &str, flag: &str) -> Result<TcpListener> {
    let hint = match flag {
        "--http" => format!("choose another with {flag} 127.0.0.1:PORT"),
        _ => format!("choose another with {flag} 127.0.0.1:PORT, or {flag} off"),
    };
    let address: SocketAddr = address
        .parse()
        .with_context(|| format!("{what}: {address:?} is not an address such as 127.0.0.1:8080"))?;
    TcpListener::bind(address).await.with_context(|| format!("{what} cannot listen on {address}; {hint}"))
}

/// Doors are open to this machine, and ask for a key when they listen beyond it.
fn doors_are_open(
    doors: &DoorsSection,
    nats: Option<&TcpListener>,
    resp: Option<&TcpListener>,
) -> Result<bool> {
    if let Some(required) = doors.require_key {
        return Ok(!required);
    }
    Ok(!beyond_this_machine(&[nats, resp])?)
}

fn warn_about_clear_text(tls: Option<&DoorTls>, doors: [Option<&TcpListener>; 3]) -> Result<()> {
    if tls.is_none() && beyond_this_machine(&doors)? {
        tracing::warn!(
            "a door or gRPC listens beyond this machine without TLS: keys and jobs can be read on the way; \
             set doors.tls_cert and doors.tls_key"
        );
    }
    Ok(())
}

fn beyond_this_machine(doors: &[Option<&TcpListener>]) -> Result<bool> {
    for door in doors.iter().flatten() {
        if !door.local_addr()?.ip().is_loopback() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn load_tls(doors: &DoorsSection) -> Result<Option<DoorTls>> {
    let (Some(cert), Some(key)) = (&doors.tls_cert, &doors.tls_key) else { return Ok(None) };
    DoorTls::load(cert, key).map(Some).context("doors.tls_cert and doors.tls_key")
}

/// SIGTERM, or Ctrl-C.
pub async fn told_to_stop() -> Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate()).context("listening for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("listening for SIGINT")?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

fn start_logging(log: &LogSection) -> Result<()> {
    let filter = std::env::var("RUST_LOG").unwrap_or_else(|_| log.level.clone());
    let filter =
        tracing_subscriber::EnvFilter::try_new(&filter).with_context(|| format!("log.level: {filter:?}"))?;
    let colours = std::io::stderr().is_terminal();
    let lines =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(colours);
    if log.json {
        lines.json().init();
    } else {
        lines.with_target(false).init();
    }
    Ok(())
}
