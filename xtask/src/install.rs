//! Installs what the tests need and the machine lacks: system packages with apt-get, Python packages into `.venv`.
//!
//! What is there already is left alone. A server that was installed here is not left running: the tests start
//! their own on free ports, and the well-known ports belong to whoever works on this machine.

use crate::process::{check, command, find, succeeds};
use anyhow::{Context, bail};
use std::fs;
use std::path::Path;
use std::process::Command;

const VENV: &str = ".venv";
const VENV_PYTHON: &str = ".venv/bin/python";
const REQUIREMENTS: &str = "tests/stock/requirements.txt";
/// A list that is complete in itself: what its packages ask for is not installed.
const CLOSED_REQUIREMENTS: &str = "tests/stock/requirements-voicegateway.txt";
/// What the tests of the Python client need besides.
const CLIENT_REQUIREMENTS: &str = "clients/python/requirements-test.txt";
/// The lists as they were last installed.
const INSTALLED: &str = ".venv/requirements.installed";

struct SystemPackage {
    name: &'static str,
    /// The service that the package starts by itself.
    service: Option<&'static str>,
    is_there: fn() -> bool,
}

const SYSTEM_PACKAGES: [SystemPackage; 7] = [
    SystemPackage {
        name: "redis-server",
        service: Some("redis-server"),
        is_there: || find("redis-server").is_some(),
    },
    SystemPackage {
        name: "nats-server",
        service: Some("nats-server"),
        is_there: || find("nats-server").is_some(),
    },
    SystemPackage {
        name: "postgresql",
        service: Some("postgresql"),
        is_there: || Path::new("/usr/lib/postgresql").exists() || find("initdb").is_some(),
    },
    SystemPackage {
        name: "python3-venv",
        service: None,
        is_there: || succeeds(command("python3").args(["-c", "import ensurepip, venv"])),
    },
    SystemPackage { name: "chromium", service: None, is_there: || find("chromium").is_some() },
    SystemPackage { name: "openssl", service: None, is_there: || find("openssl").is_some() },
    SystemPackage { name: "chromium-driver", service: None, is_there: || find("chromedriver").is_some() },
];

pub fn run() -> anyhow::Result<()> {
    install_system_packages()?;
    install_python_packages()
}

/// The Python that has the stock SDK.
pub fn venv_python() -> anyhow::Result<Command> {
    if !Path::new(VENV_PYTHON).exists() {
        bail!("{VENV} is missing; `cargo xtask test --only install` makes it");
    }
    Ok(command(VENV_PYTHON))
}

fn install_system_packages() -> anyhow::Result<()> {
    let missing: Vec<&SystemPackage> =
        SYSTEM_PACKAGES.iter().filter(|package| !(package.is_there)()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|package| package.name).collect();
    if find("apt-get").is_none() {
        bail!("missing: {}; this machine has no apt-get, so install them by its own means", names.join(", "));
    }
    check(as_root("apt-get").args(["update", "-qq"]))?;
    check(
        as_root("env")
            .args([
                "DEBIAN_FRONTEND=noninteractive",
                "apt-get",
                "install",
                "-y",
                "-qq",
                "--no-install-recommends",
            ])
            .args(&names),
    )?;
    for service in missing.iter().filter_map(|package| package.service) {
        stop_service(service)?;
    }
    for package in missing {
        if !(package.is_there)() {
            bail!("{} was installed and is still not to be found", package.name);
        }
    }
    Ok(())
}

fn stop_service(service: &str) -> anyhow::Result<()> {
    if Path::new("/run/systemd/system").exists() {
        check(as_root("systemctl").args(["disable", "--now", service]))
    } else if Path::new("/etc/init.d").join(service).exists() {
        // Stopping what never started is an error to some scripts and no concern of ours.
        succeeds(as_root("service").args([service, "stop"]));
        Ok(())
    } else {
        Ok(())
    }
}

fn as_root(program: &str) -> Command {
    let is_root = command("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0");
    if is_root || find("sudo").is_none() {
        return command(program);
    }
    let mut sudo = command("sudo");
    sudo.arg(program);
    sudo
}

fn install_python_packages() -> anyhow::Result<()> {
    let mut wanted = Vec::new();
    for list in [REQUIREMENTS, CLOSED_REQUIREMENTS, CLIENT_REQUIREMENTS] {
        wanted.extend(fs::read(list).with_context(|| format!("cannot read {list}"))?);
    }
    let works = succeeds(command(VENV_PYTHON).args(["-c", "import pip"]));
    if works && fs::read(INSTALLED).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    if !works {
        check(command("python3").args(["-m", "venv", "--clear", VENV]))?;
    }
    install_list(&["-r", REQUIREMENTS])?;
    install_list(&["--no-deps", "-r", CLOSED_REQUIREMENTS])?;
    install_list(&["-r", CLIENT_REQUIREMENTS])?;
    fs::write(INSTALLED, wanted).with_context(|| format!("cannot write {INSTALLED}"))
}

fn install_list(arguments: &[&str]) -> anyhow::Result<()> {
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    check(venv_python()?.args(install).args(arguments))
}
