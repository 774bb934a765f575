//! One server, 64 clients, each a program of its own, and more than 1,000 calls in flight. As many channels as a doorbell has bits.

mod system;

use images::{Image, Manifest};
use soc::{End, Mode};
use system::{build, run};

const CLIENTS: u64 = 64;
/// Calls of a client: all together, then again and again.
const IN_FLIGHT: u64 = 16;
const CALLS: u64 = 50;

/// The client of `images/crowd.toml` as often as there are clients, on the harts behind the server's, or beside it on one.
fn crowd(harts: u64) -> Image {
    let mut manifest = Manifest::named("crowd").unwrap();
    manifest.rename(&format!("crowd-{harts}"));
    manifest.set("machine.harts", &harts.to_string()).unwrap();
    for client in 0..CLIENTS {
        let name = format!("asker-{client:02}");
        if client > 0 {
            manifest.copy("program.asker-00", &format!("program.{name}")).unwrap();
            manifest.copy("channel.sums-00", &format!("channel.sums-{client:02}")).unwrap();
            manifest.set(&format!("channel.sums-{client:02}.client"), &name).unwrap();
        }
        let hart = if harts == 1 { 0 } else { 1 + client % (harts - 1) };
        manifest.set(&format!("program.{name}.hart"), &hart.to_string()).unwrap();
        for (argument, value) in [("calls", CALLS), ("in-flight", IN_FLIGHT)] {
            manifest.set(&format!("program.{name}.args.{argument}"), &format!("\"{value}\"")).unwrap();
        }
    }
    build(&manifest)
}

#[test]
fn sixty_four_programs_with_a_thousand_calls_in_flight_are_all_answered() {
    for harts in [1, 4] {
        let (end, text) = run(&crowd(harts), Mode::Fast);
        for client in 0..CLIENTS {
            let line = format!("asker-{client:02}: sums-{client:02}: {CALLS} of {CALLS} answers right over rings");
            assert_eq!(text.matches(&line).count(), 1, "{harts} harts: `{line}` in:\n{text}");
        }
        assert_eq!(end, End::Exit(0), "{harts} harts:\n{text}");
    }
}

/// A doorbell has 64 bits, and the manifest says so, not the machine.
#[test]
fn a_sixty_fifth_client_is_refused_before_anything_runs() {
    let mut manifest = Manifest::named("crowd").unwrap();
    for client in 1..=CLIENTS {
        manifest.copy("program.asker-00", &format!("program.asker-{client:02}")).unwrap();
        manifest.copy("channel.sums-00", &format!("channel.sums-{client:02}")).unwrap();
        manifest.set(&format!("channel.sums-{client:02}.client"), &format!("asker-{client:02}")).unwrap();
    }
    let error = images::Builder::new().unwrap().check(&manifest).unwrap_err().to_string();
    assert!(error.contains("65 channels and rings reach it, but only 64 doorbell bits are left"), "{error}");
}
