//! The network on the simulated machine, end to end: load generator, NIC, driver, network server, channel, echo server.

use images::{Builder, Image, Manifest, Options};
use soc::snapshot::Snapshot;
use soc::wire::loadgen::Report;
use soc::{Config, End, Machine, Mode};
use std::cell::RefCell;
use std::rc::Rc;

/// Far beyond what these loads need: 20 s of simulated time.
const MAX_CYCLES: u64 = 2_000_000_000;

/// The image of `echo.toml` with `changes`, and a machine for it with `network`.
fn prepare(name: &str, changes: &[(&str, &str)], network: &str) -> (Image, Config) {
    let mut manifest = Manifest::named("echo").unwrap();
    manifest.rename(name);
    changes.iter().for_each(|(key, value)| manifest.set(key, value).unwrap());
    let options = Options { out: None, quiet: true, without_firmware: false, progress: &|_| () };
    let image = Builder::new()
        .and_then(|mut builder| builder.build(&manifest, &options))
        .unwrap_or_else(|error| panic!("{error}"));
    let config = Config {
        harts: image.machine.harts,
        memory_bytes: image.machine.memory.0,
        mode: Mode::Fast,
        max_cycles: Some(MAX_CYCLES),
        net: network.parse().unwrap_or_else(|error| panic!("{error}")),
        ..Config::default()
    };
    (image, config)
}

/// Runs `echo.toml` with `changes` against the load generator; every byte of every reply is checked there.
fn run(name: &str, changes: &[(&str, &str)], network: &str) -> Report {
    let (image, config) = prepare(name, changes, network);
    let console = Rc::new(RefCell::new(Vec::new()));
    let mut machine = Machine::new(config).unwrap_or_else(|error| panic!("{error}"));
    machine.load_elf(&image.bytes).unwrap_or_else(|error| panic!("{error}"));
    let sink = console.clone();
    machine.set_console(move |bytes| sink.borrow_mut().extend_from_slice(bytes));
    let end = machine.run().end;
    let report = machine.network_report().expect("the load generator is there");
    let text = String::from_utf8_lossy(&console.borrow()).into_owned();
    assert_eq!(end, End::PeerDone, "{report:?}\n{text}");
    assert!(report.passed(), "{report:?}\n{text}");
    report
}

const SYNC: (&str, &str) = ("channel.net.transport", "sync");
const TWO_HARTS: [(&str, &str); 2] = [("machine.harts", "2"), ("program.echo-server.hart", "1")];

#[test]
fn replies_are_right_over_both_transports_on_one_hart_and_on_two() {
    let load = "loadgen:connections=1,4,32;requests=60;warmup=20";
    for (name, changes) in [
        ("echo-test-async-1", vec![]),
        ("echo-test-sync-1", vec![SYNC]),
        ("echo-test-async-2", TWO_HARTS.to_vec()),
        ("echo-test-sync-2", [SYNC].into_iter().chain(TWO_HARTS).collect()),
    ] {
        let report = run(name, &changes, load);
        assert_eq!(report.phases.len(), 3, "{name}");
        assert!(report.phases.iter().all(|phase| phase.requests == u64::from(phase.connections) * 60), "{name}");
        for phase in &report.phases {
            let (fewest, most) = (phase.fewest, phase.most);
            assert!(fewest * 2 >= most, "{name}: one connection had {fewest} answers, another {most}");
        }
    }
}

#[test]
fn requests_longer_than_a_segment_and_than_a_buffer_are_answered() {
    run("echo-test-long", &[], "loadgen:connections=2;requests=4;warmup=0;size=20000");
}

#[test]
fn pings_are_answered() {
    run("echo-test-ping", &[], "loadgen:proto=ping;connections=1;requests=20;warmup=0");
}

#[test]
fn lost_frames_cost_time_and_nothing_else() {
    run("echo-test-loss", &[], "loadgen:connections=4;requests=50;warmup=0;loss=0.02");
}

#[test]
fn virtio_serves_as_well() {
    run("echo-test-virtio", &[], "virtio,loadgen:connections=1,8;requests=60;warmup=20");
    run("echo-test-virtio-ping", &[], "virtio,loadgen:proto=ping;connections=1;requests=20;warmup=0");
}

#[test]
fn a_saved_system_goes_on_under_the_same_load() {
    let (image, config) = prepare("echo-test-snapshot", &TWO_HARTS, "loadgen:connections=4;requests=60;warmup=10");
    let start = || {
        let mut network = config.net.clone().build().unwrap();
        network.link.as_mut().expect("there is a cable").keep_calls();
        let mut machine = Machine::with_network(config.clone(), network).unwrap();
        machine.load_elf(&image.bytes).unwrap();
        machine
    };
    let mut whole = start();
    let outcome = whole.run();
    let mut first_part = start();
    assert_eq!(first_part.run_to(outcome.cycles * 3 / 4), None);
    let file = first_part.snapshot().unwrap();
    let mut second_part = Machine::restore(Snapshot::read(&file).unwrap()).unwrap();
    assert_eq!(second_part.network_report(), first_part.network_report());
    assert_eq!(second_part.run(), outcome);
    assert_eq!(second_part.digest(), whole.digest());
    let report = second_part.network_report().expect("the load generator is there");
    assert!(report.passed() && whole.network_report() == Some(report));
}
