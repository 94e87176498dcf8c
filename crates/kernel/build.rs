//! Generates the gRPC services of `../wire/proto`. Their messages are `reveille-wire`'s.

use std::error::Error;

const PROTO: &str = "../wire/proto";
const FILES: [&str; 3] =
    ["cordum/agent/v1/safety.proto", "cordum/v1/api.proto", "cordum/v1/output_policy.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={PROTO}");
    println!("cargo::rerun-if-changed=build.rs");
    let descriptors = protox::compile(FILES, [PROTO])?;
    tonic_prost_build::configure()
        .extern_path(".cordum.agent.v1", "::reveille_wire::cap")
        .extern_path(".cordum.v1", "::reveille_wire::cordum")
        .compile_fds(descriptors)?;
    Ok(())
}
