//! Compiles `proto/` into Rust types and a descriptor set, without `protoc` on the machine.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use protox::prost::Message;

const FILES: [&str; 9] = [
    "cordum/agent/v1/alert.proto",
    "cordum/agent/v1/buspacket.proto",
    "cordum/agent/v1/handshake.proto",
    "cordum/agent/v1/heartbeat.proto",
    "cordum/agent/v1/job.proto",
    "cordum/agent/v1/policy.proto",
    "cordum/agent/v1/safety.proto",
    "cordum/v1/api.proto",
    "cordum/v1/output_policy.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var("OUT_DIR")?);

    let mut descriptors = protox::compile(FILES, ["proto"])?;
    // Maps in key order and bytes without copies; services are another crate's business.
    prost_build::Config::new().btree_map(["."]).bytes(["."]).compile_fds(descriptors.clone())?;

    // Comments went into the Rust docs; at run time they would only be weight.
    for file in &mut descriptors.file {
        file.source_code_info = None;
    }
    fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    Ok(())
}
