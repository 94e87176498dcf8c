//! Our packets against the published SDK: the same fields under the same numbers, and signatures that each side
//! accepts of the other. The scripts are beside the crate that they check, in `crates/wire/tests`.

use crate::install::venv_python;
use crate::process::{built, cargo_for_all, check, command, target_directory};
use anyhow::{Context, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const COMPARE_DESCRIPTORS: &str = "crates/wire/tests/compare_descriptors.py";
const CHECK_SIGNATURE: &str = "crates/wire/tests/check_signature.py";
/// Packets of the SDK that are kept with the code, and the key that all of them were signed with.
const CAPTURED: &str = "crates/wire/tests/captured";
const CAPTURED_SENDER: &str = "w-echo";
/// Packets of random content that the SDK signs for us to verify.
const RANDOM_PACKETS: u32 = 500;

pub fn run() -> anyhow::Result<()> {
    let scratch = target_directory().join("wire");
    fs::create_dir_all(&scratch).with_context(|| format!("cannot make {}", scratch.display()))?;
    // The examples, as the unit tests have them: built otherwise, their dependencies would be built again.
    check(cargo_for_all("test").args(["--quiet", "--no-run"]))?;
    compare_descriptors(&scratch)?;
    we_accept_what_the_sdk_signed(&scratch)?;
    the_sdk_accepts_what_we_signed(&scratch)
}

fn compare_descriptors(scratch: &Path) -> anyhow::Result<()> {
    let descriptors = scratch.join("descriptors.bin");
    check(example("descriptors").arg(&descriptors))?;
    check(venv_python()?.arg(COMPARE_DESCRIPTORS).arg(&descriptors))
}

fn we_accept_what_the_sdk_signed(scratch: &Path) -> anyhow::Result<()> {
    // A test runs in its crate's directory, so it is told the whole path.
    let signed = std::path::absolute(scratch.join("captured"))?;
    let random = RANDOM_PACKETS.to_string();
    check(venv_python()?.args([CHECK_SIGNATURE, "--random", &random, "--sign"]).arg(&signed))?;
    check(cargo_for_all("test").args(["--quiet", "--test", "wire", "stock_sdk"]).env("CAPTURED", signed))
}

fn the_sdk_accepts_what_we_signed(scratch: &Path) -> anyhow::Result<()> {
    let captured = Path::new(CAPTURED);
    let packets = captured_packets(captured)?;
    if packets.is_empty() {
        bail!("no packets in {CAPTURED}");
    }
    let signed = scratch.join("signed.bin");
    for packet in packets {
        check(example("sign").arg(packet).arg(captured.join("private.pem")).arg(&signed))?;
        check(
            venv_python()?
                .arg(CHECK_SIGNATURE)
                .arg(&signed)
                .arg(captured.join("public.pem"))
                .arg(CAPTURED_SENDER),
        )?;
    }
    Ok(())
}

fn example(name: &str) -> Command {
    command(&built("examples").join(name).to_string_lossy())
}

fn captured_packets(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory).with_context(|| format!("cannot list {}", directory.display()))?;
    let mut packets = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
    packets.retain(|path| path.extension().is_some_and(|end| end == "hex"));
    packets.sort();
    Ok(packets)
}
