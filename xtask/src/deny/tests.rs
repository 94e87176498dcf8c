use super::*;
use crate::packages::Requirement;
use serde_json::json;

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

fn rules() -> Rules {
    toml::from_str(
        r#"
        [graph]
        targets = []
        [licenses]
        allow = ["MIT", "Apache-2.0"]
        [sources]
        allow-registry = ["https://github.com/rust-lang/crates.io-index"]
        [bans]
        multiple-versions = "deny"
        deny = [{ crate = "openssl-sys", reason = "rustls" }]
        skip = [{ crate = "rand@0.8", reason = "theirs" }]
        "#,
    )
    .unwrap()
}

fn package(name: &str, version: &str, license: &str, source: &str) -> Package {
    let package = json!({
        "name": name, "version": version, "license": license, "source": source,
        "description": null, "repository": null, "manifest_path": "", "dependencies": [],
    });
    serde_json::from_value(package).unwrap()
}

/// What breaks the rules, beside a graph that keeps them.
#[track_caller]
fn check(packages: &[Package], expected: &[&str]) {
    let sound = [
        package("a", "1.0.0", "MIT/Apache-2.0", CRATES_IO),
        package("b", "1.0.0", "MIT", CRATES_IO),
        package("rand", "0.8.8", "MIT OR GPL-3.0-only", CRATES_IO),
        package("rand", "0.10.3", "(MIT AND Apache-2.0)", CRATES_IO),
    ];
    let packages: Vec<Package> = packages.iter().chain(&sound).cloned().collect();
    assert_eq!(complaints(&rules(), &packages), expected);
}

#[test]
fn a_sound_graph_has_no_breach() {
    check(&[], &[]);
}

#[test]
fn a_licence_that_is_not_allowed_is_a_breach() {
    let with = |license| package("x", "1.0.0", license, CRATES_IO);
    check(&[with("GPL-3.0-only")], &["x 1.0.0: its licence \"GPL-3.0-only\" is not allowed"]);
    check(&[with("MIT AND ISC")], &["x 1.0.0: its licence \"MIT AND ISC\" is not allowed"]);
    check(
        &[with("Apache-2.0 WITH LLVM-exception")],
        &["x 1.0.0: its licence \"Apache-2.0 WITH LLVM-exception\" is not allowed"],
    );
    check(&[with("free for all")], &["x 1.0.0: \"free for all\" is no licence expression"]);
    check(&[Package { license: None, ..with("") }], &["x 1.0.0: has no licence"]);
}

#[test]
fn what_comes_from_elsewhere_is_a_breach() {
    let git = "git+https://example.com/x?rev=1#1";
    check(
        &[package("x", "1.0.0", "MIT", git)],
        &["x 1.0.0: comes from git+https://example.com/x?rev=1#1, which is not allowed"],
    );
    check(
        &[package("x", "1.0.0", "MIT", "registry+https://example.com/index")],
        &["x 1.0.0: comes from registry+https://example.com/index, which is not allowed"],
    );
    check(&[Package { source: None, ..package("ours", "0.1.0", "MIT", "") }], &[]);
}

#[test]
fn a_banned_crate_and_any_version_are_breaches() {
    check(&[package("openssl-sys", "0.9.0", "MIT", CRATES_IO)], &["openssl-sys 0.9.0: banned: rustls"]);
    let any = Requirement { name: "y".to_owned(), req: "*".to_owned(), path: None };
    let with =
        |any: Requirement| Package { dependencies: vec![any], ..package("x", "1.0.0", "MIT", CRATES_IO) };
    check(&[with(any.clone())], &["x 1.0.0: asks for any version of y"]);
    check(&[with(Requirement { path: Some("crates/y".to_owned()), ..any })], &[]);
}

#[test]
fn a_second_version_is_listed_or_a_breach() {
    check(
        &[package("b", "2.1.0", "MIT", CRATES_IO)],
        &[
            "b: in versions 2.1.0 and 1.0.0; `cargo tree --invert b@…` says whose; one can go, or a line of bans.skip is needed",
        ],
    );
    check(
        &[package("rand", "0.9.5", "MIT", CRATES_IO)],
        &[
            "rand: in versions 0.9.5 and 0.10.3; `cargo tree --invert rand@…` says whose; one can go, or a line of bans.skip is needed",
        ],
    );
}

#[test]
fn lists_do_not_outlive_what_they_were_for() {
    let packages = [package("rand", "0.80.0", "MIT", CRATES_IO)];
    assert_eq!(
        complaints(&rules(), &packages),
        [
            "deny.toml: licenses.allow: nothing has the licence \"Apache-2.0\"",
            "deny.toml: bans.skip: rand@0.8 is no second version any more"
        ]
    );
}
