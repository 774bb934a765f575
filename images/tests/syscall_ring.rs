//! System calls from a ring on the machine: the memory server (images/memory.toml) on one hart and on several, with a kernel that checks its
//! invariants, where user interrupts are emulated, and with a hart that idles and works the ring off. What is checked of each page is
//! in the client (`apps/src/bin/memory-client.rs`), which fails if an answer is wrong.

mod system;

use images::{Image, Manifest};
use soc::{End, Isa, Mode};
use system::{build, outcome_on};

fn image(name: &str, changes: &[(&str, &str)]) -> Image {
    let mut manifest = Manifest::named("memory").unwrap();
    manifest.rename(&format!("memory-{name}"));
    let short = [("program.memory-client.args.rounds", "\"256\""), ("program.memory-client.args.warmup", "\"64\"")];
    for (key, value) in short.iter().chain(changes) {
        manifest.set(key, value).unwrap();
    }
    build(&manifest)
}

/// Runs an image to its good end; gives the instructions of each hart.
fn run(image: &Image, isa: Isa, mode: Mode, seed: u64) -> Vec<u64> {
    let (outcome, text) = outcome_on(image, mode, |config| {
        config.isa = isa;
        config.schedule_seed = seed;
        config.max_cycles = Some(1_000_000_000);
    });
    assert_eq!(outcome.end, End::Exit(0), "{isa:?}, {mode:?}, seed {seed}:\n{text}");
    assert!(text.contains("@{\"depth\":16,"), "{isa:?}, {mode:?}, seed {seed}:\n{text}");
    outcome.harts.iter().map(|hart| hart.instructions).collect()
}

#[test]
fn a_memory_server_maps_what_it_is_asked_to_on_any_harts() {
    for (harts, client) in [("1", "0"), ("2", "1"), ("4", "2")] {
        let image = image(harts, &[("machine.harts", harts), ("program.memory-client.hart", client)]);
        for isa in [Isa::Rv64imafdcn, Isa::Rv64imafdc] {
            run(&image, isa, Mode::Fast, 1);
        }
        run(&image, Isa::Rv64imafdcn, Mode::Timed, 0);
    }
}

#[test]
fn a_kernel_that_checks_itself_finds_nothing() {
    let changes = [
        ("machine.harts", "2"),
        ("program.memory-client.hart", "1"),
        ("kernel.checked", "true"),
        ("program.memory-client.args.rounds", "\"32\""),
        ("program.memory-client.args.warmup", "\"8\""),
        ("program.memory-server.args.hand-over-from", "\"1\""),
    ];
    run(&image("checked", &changes), Isa::Rv64imafdcn, Mode::Fast, 1);
}

/// The third hart has nothing to do but work on the ring: with rings that are handed over it does much more than without.
#[test]
fn a_hart_that_idles_works_the_ring_off() {
    let of = |name: &str, hand_over: &str| {
        let changes = [
            ("machine.harts", "3"),
            ("program.memory-client.hart", "1"),
            ("program.memory-server.args.hand-over-from", hand_over),
        ];
        image(name, &changes)
    };
    let (alone, helped) = (of("alone", "\"100\""), of("helped", "\"1\""));
    for seed in 1..=3 {
        let idle = run(&alone, Isa::Rv64imafdcn, Mode::Fast, seed)[2];
        let busy = run(&helped, Isa::Rv64imafdcn, Mode::Fast, seed)[2];
        assert!(busy > idle + 100_000, "seed {seed}: {idle} instructions, and {busy} with rings to work off");
    }
}
