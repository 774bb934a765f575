//! A traced or profiled run is the plain run, and a trace is what a viewer expects: every slice ends, time goes forward on each track.

mod guest;

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn run(program: &str, more: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_soc"))
        .arg("run")
        .arg(guest::program(program))
        .args(["--harts", "2", "--digest"])
        .args(more)
        .output()
        .expect("the command was built with this test");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{program}: {errors}");
    errors.lines().find(|line| line.starts_with("digest ")).expect("a digest was asked for").to_owned()
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).expect("the run wrote it")).expect("it is JSON")
}

#[test]
fn a_trace_is_complete_and_changes_nothing() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (trace, statistics) = (directory.join("trace.json"), directory.join("trace-stats.json"));
    let paths = [&trace, &statistics].map(|path| path.to_str().expect("the target directory has a plain name"));
    for mode in ["fast", "timed"] {
        let plain = run("conformance", &["--mode", mode]);
        let traced = run("conformance", &["--mode", mode, "--trace", paths[0], "--stats-json", paths[1]]);
        assert_eq!(plain, traced);

        let events = json(&trace)["traceEvents"].as_array().expect("an array of events").clone();
        let mut tracks: HashMap<(u64, u64), (f64, i64)> = HashMap::new();
        let mut count: HashMap<String, u64> = HashMap::new();
        let mut arrows: HashMap<u64, Vec<(String, String, f64)>> = HashMap::new();
        for event in events.iter().filter(|event| event["ph"] != "M") {
            let track = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
            let (time, depth) = tracks.entry(track).or_default();
            let now = event["ts"].as_f64().unwrap();
            match event["ph"].as_str().unwrap() {
                "B" => *depth += 1,
                "E" => *depth -= 1,
                // A slice with a duration is written at its end, an arrow when it arrives.
                "X" => continue,
                end @ ("s" | "f") => {
                    let arrow = event["id"].as_u64().expect("an arrow has a number");
                    let name = event["name"].as_str().expect("an arrow has a name").to_owned();
                    arrows.entry(arrow).or_default().push((end.to_owned(), name, now));
                    continue;
                }
                _ => {}
            }
            assert!(now >= *time && *depth >= 0, "{event}");
            *time = now;
            *count.entry(format!("{} {}", event["ph"].as_str().unwrap(), event["name"])).or_default() += 1;
        }
        assert!(tracks.values().all(|(_, depth)| *depth == 0), "{tracks:?}");

        let harts = json(&statistics)["harts"].as_array().expect("an array of harts").clone();
        let total = |name: &str| harts.iter().map(|hart| hart[name].as_u64().unwrap()).sum::<u64>();
        let seen = |name: &str| count.get(name).copied().unwrap_or(0);
        assert!(seen("B \"user interrupt\"") > 0, "{count:?}");
        assert_eq!(seen("B \"user interrupt\""), total("user_interrupts"));
        assert_eq!(seen("i \"uipi\""), total("uipi_sent"));
        assert!((1..=total("uipi_sent")).contains(&(arrows.len() as u64)), "{count:?}");
        for ends in arrows.values() {
            let [(first, from_name, from), (last, to_name, to)] = &ends[..] else { panic!("{ends:?}") };
            assert!(first == "s" && last == "f" && from_name == to_name && from <= to, "{ends:?}");
        }
    }
}

#[test]
fn a_window_of_cycles_is_all_that_is_traced() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("trace-window.json");
    run("conformance", &["--trace", path.to_str().unwrap(), "--trace-cycles", "2000..5000"]);
    let trace = json(&path);
    let mut events = trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] != "M").peekable();
    assert!(events.peek().is_some());
    for event in events {
        assert!((20.0..=50.0).contains(&event["ts"].as_f64().unwrap()), "{event}");
    }
}

#[test]
fn a_profile_accounts_for_every_cycle() {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (profile, statistics) = (directory.join("profile.tsv"), directory.join("profile-stats.json"));
    let paths = [&profile, &statistics].map(|path| path.to_str().expect("the target directory has a plain name"));
    let plain = run("conformance", &["--mode", "timed"]);
    let more = ["--mode", "timed", "--profile", paths[0], "--stats-json", paths[1]];
    assert_eq!(plain, run("conformance", &more));

    let table = std::fs::read_to_string(&profile).expect("the run wrote it");
    let mut rows = table.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    assert_eq!(rows.next().expect("a head")[..2], ["cycles", "instructions"]);
    let rows: Vec<_> = rows.collect();
    assert!(rows.iter().any(|row| row[4].contains("conformance")), "{table}");
    let sum = |column: usize| rows.iter().map(|row| row[column].parse::<u64>().expect("a number")).sum::<u64>();
    let harts = json(&statistics)["harts"].as_array().expect("an array of harts").clone();
    let total = |name: &str| harts.iter().map(|hart| hart[name].as_u64().unwrap()).sum::<u64>();
    // The last block of each hart has no look behind it.
    let (busy, instructions) = (total("cycles") - total("idle_cycles"), total("instructions"));
    assert!((busy - 1000..=busy).contains(&sum(0)), "{} of {busy} cycles", sum(0));
    assert!((instructions - 1000..=instructions).contains(&sum(1)), "{} of {instructions} instructions", sum(1));
}
