//! Who may depend on whom (docs/architecture.md, section 1). An arrow that is not in the table fails.

use cargo_metadata::{DependencyKind, MetadataCommand};
use std::collections::BTreeSet;

/// Package, and the packages of this workspace that it may use.
const ARROWS: [(&str, &[&str]); 17] = [
    ("abi", &[]),
    ("uintr", &[]),
    ("drivers", &[]),
    ("firmware", &[]),
    ("kernel", &["abi", "uintr"]),
    ("sel4-conformance", &[]),
    ("kernel-guest", &["userlib", "abi"]),
    ("userlib", &["abi"]),
    ("libipc", &["userlib", "abi", "uintr"]),
    ("nwp-api", &["libipc", "userlib"]),
    ("nwp-server", &["nwp-api", "libipc", "drivers", "userlib"]),
    ("apps", &["nwp-api", "libipc", "userlib", "abi", "uintr"]),
    ("bench-guest", &["nwp-api", "libipc", "userlib", "abi"]),
    ("soc", &[]),
    ("soc-guest", &["uintr", "drivers"]),
    ("images", &["soc", "abi"]),
    ("bench", &["images", "soc"]),
];

/// Beyond those, what tests may use: the models of the devices, and the other side of a contract.
const TEST_ARROWS: [(&str, &[&str]); 5] = [
    ("drivers", &["soc"]),
    ("kernel", &["sel4-conformance"]),
    ("images", &["userlib"]),
    ("soc", &["abi", "uintr"]),
    ("nwp-server", &["soc"]),
];

#[test]
fn every_arrow_between_packages_is_an_allowed_one() {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let metadata = MetadataCommand::new().manifest_path(manifest).no_deps().exec().expect("cargo metadata");
    let ours: BTreeSet<&str> = metadata.packages.iter().map(|package| package.name.as_str()).collect();
    let known: BTreeSet<&str> = ARROWS.iter().map(|(name, _)| *name).collect();
    assert_eq!(ours, known, "the table above must name every package of the workspace");

    let allowed = |table: &[(&str, &[&str])], from: &str, to: &str| {
        table.iter().any(|(name, arrows)| *name == from && arrows.contains(&to))
    };
    let mut wrong = Vec::new();
    for package in &metadata.packages {
        for dependency in package.dependencies.iter().filter(|dependency| ours.contains(dependency.name.as_str())) {
            let (from, to) = (package.name.as_str(), dependency.name.as_str());
            let for_tests = dependency.kind == DependencyKind::Development && allowed(&TEST_ARROWS, from, to);
            if !allowed(&ARROWS, from, to) && !for_tests {
                wrong.push(format!("{from} -> {to} ({:?})", dependency.kind));
            }
        }
    }
    assert!(wrong.is_empty(), "arrows that the architecture does not allow: {wrong:#?}");
}
