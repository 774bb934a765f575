//! `soc run --trace` of a whole system: messages are arrows, and each has both its ends.

mod system;

use images::Manifest;
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use std::process::ExitCode;

#[test]
fn calls_and_replies_between_two_harts_are_arrows() {
    let mut manifest = Manifest::named("pair").unwrap();
    manifest.rename("pair-test-trace");
    manifest.set("program.adder-endpoint.hart", "1").unwrap();
    let image = system::build(&manifest);
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (elf, trace) = (directory.join("pair-test-trace.elf"), directory.join("pair-test-trace.json"));
    std::fs::write(&elf, &image.bytes).unwrap();
    let arguments =
        ["soc".into(), "run".into(), elf.into_os_string(), "--trace".into(), trace.clone().into_os_string()];
    assert_eq!(format!("{:?}", soc::cli::perform(arguments)), format!("{:?}", ExitCode::SUCCESS));

    let text: Value = serde_json::from_slice(&std::fs::read(&trace).unwrap()).unwrap();
    let mut arrows: HashMap<u64, Vec<&Value>> = HashMap::new();
    for event in text["traceEvents"].as_array().unwrap().iter().filter(|event| event["name"] == "message") {
        arrows.entry(event["id"].as_u64().unwrap()).or_default().push(event);
    }
    let mut across = 0;
    for ends in arrows.values() {
        let [from, to] = ends[..] else { panic!("{ends:?}") };
        assert!(from["ph"] == "s" && to["ph"] == "f" && from["ts"].as_f64() <= to["ts"].as_f64(), "{ends:?}");
        across += u32::from(from["tid"] != to["tid"]);
    }
    // A hundred calls over the endpoint, and their replies; one whose receiver goes on inside a user interrupt is not seen.
    assert!(across >= 190, "{across} of {}", arrows.len());
}
