//! One target, chosen by `REVEILLE_FUZZ_TARGET`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use reveille_fuzz::{FuzzSignal, FuzzTarget, TARGETS};
use std::sync::LazyLock;

static TARGET: LazyLock<&FuzzTarget> = LazyLock::new(|| {
    let name = std::env::var("REVEILLE_FUZZ_TARGET").unwrap_or_default();
    TARGETS.iter().find(|target| target.name == name).unwrap_or_else(|| {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        panic!("REVEILLE_FUZZ_TARGET: one of {}", names.join(", "))
    })
});

fuzz_target!(|input: &[u8]| (TARGET.run)(input, &mut FuzzSignal::default()));
