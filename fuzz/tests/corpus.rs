use reveille_fuzz::{FuzzFailure, FuzzSignal, FuzzTarget, TARGETS, corpus, fuzz};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

#[test]
fn everything_in_the_corpus_holds() {
    for target in TARGETS {
        let inputs = corpus::read(target.name).unwrap();
        assert!(inputs.len() >= 4, "{} has {} inputs", target.name, inputs.len());
        for input in inputs {
            (target.run)(&input, &mut FuzzSignal::default());
        }
    }
}

#[test]
fn every_folder_of_the_corpus_has_a_target() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let folders: BTreeSet<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(folders, TARGETS.iter().map(|target| target.name.to_owned()).collect());
}

/// A target that is wrong about inputs which none of the corpus is.
#[test]
fn what_does_not_hold_is_found_and_found_again_from_the_same_seed() {
    let wrong = FuzzTarget {
        name: "trace_context",
        dictionary: &["--"],
        run: |input, signal| {
            signal.see_count(input.len());
            assert!(!input.windows(2).any(|pair| pair == b"--"), "on purpose");
        },
    };
    let find = || match fuzz(&wrong, 7, Duration::from_mins(1)) {
        Err(FuzzFailure::Input { path }) => fs::read(path).unwrap(),
        other => panic!("{other:?}"),
    };
    let found = find();
    assert!(found.windows(2).any(|pair| pair == b"--"));
    assert_eq!(find(), found);
}
