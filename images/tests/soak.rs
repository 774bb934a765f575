//! Long runs of clients and servers under many schedules: a server that dies with calls in flight, programs that are moved, stopped, cut off and
//! killed by a third (`apps/src/bin/disturber.rs`), and a client that destroys its channel. What is checked is in the programs
//! (`apps/src/bin/{survivor,mortal,asker,vandal}.rs`); here are the configurations and the seeds.
//!
//! `make soak` runs the long form (`SOAK_SEEDS`, default here 3 seeds).

mod system;

use images::{Image, Manifest};
use soc::{End, Mode};
use std::time::Instant;
use system::{assert_lines, build, run_on};

/// Seeds of schedules.
fn seeds() -> u64 {
    std::env::var("SOAK_SEEDS").ok().map_or(3, |seeds| seeds.parse().expect("SOAK_SEEDS is a number"))
}

fn image(of: &str, name: &str, changes: &[(&str, &str)]) -> Image {
    let mut manifest = Manifest::named(of).unwrap();
    manifest.rename(name);
    for (key, value) in changes {
        manifest.set(key, value).unwrap();
    }
    build(&manifest)
}

/// Runs the image once per seed; each console must hold the line, and none of the wrong ones.
fn soak(what: &str, image: &Image, line: &str, wrong: &[&str]) {
    let (start, seeds) = (Instant::now(), seeds());
    for seed in 1..=seeds {
        let (end, text) = run_on(image, Mode::Fast, |config| config.schedule_seed = seed);
        assert_eq!(end, End::Exit(0), "{what}, seed {seed}:\n{text}");
        assert_lines(&text, &[line]);
        for wrong in wrong {
            assert!(!text.contains(wrong), "{what}, seed {seed}: `{wrong}` in:\n{text}");
        }
        if seed.is_multiple_of(10) {
            let left = start.elapsed() / seed as u32 * (seeds - seed) as u32;
            println!("{what}: {seed} of {seeds} seeds, {} s left", left.as_secs());
        }
    }
}

/// Said by a server that missed a request.
const MISSED: &str = "came in place of";
/// Said by a client whose server's deaths had no effect.
const NO_DEATH: &str = " 0 calls lost";

/// 5,000 calls a seed, over 33 servers.
fn soak_restarts(harts: &str) {
    let name = format!("soak-restart-{harts}");
    let changes = [
        ("machine.harts", harts),
        ("program.mortal.hart", if harts == "1" { "0" } else { "1" }),
        ("program.survivor.args.calls", "\"625\""),
        ("program.survivor.args.delay", "\"200\""),
    ];
    soak(&name, &image("restart", &name, &changes), "survivor: 5000 answers right, ", &[MISSED, NO_DEATH]);
}

#[test]
fn nothing_is_lost_while_servers_die_on_one_hart() {
    soak_restarts("1");
}

#[test]
fn nothing_is_lost_while_servers_die_on_another_hart() {
    soak_restarts("2");
}

/// 5,000 calls a seed while client and server are moved and stopped, their registrations revoked and their doorbells taken away; and the
/// server killed `deaths` times, at any instruction, also while it starts again.
fn soak_disturbed(harts: &str, deaths: &str) {
    let name = format!("soak-disturb-{harts}-{deaths}");
    let (harts_word, deaths_word) = (format!("\"{harts}\""), format!("\"{deaths}\""));
    let acts = if deaths == "0" { "move stop revoke take" } else { "move stop revoke take kill" };
    let changes = [
        ("machine.harts", harts),
        ("program.mortal.hart", if harts == "1" { "0" } else { "1" }),
        ("program.survivor.args.calls", "\"625\""),
        ("program.disturber.args.acts", acts),
        ("program.disturber.args.harts", &harts_word),
        ("program.disturber.args.deaths", &deaths_word),
        ("program.disturber.args.rest", "\"0\""),
    ];
    let image = image("disturb", &name, &changes);
    if deaths == "0" {
        soak(&name, &image, "survivor: 5000 answers right, 0 calls lost", &[MISSED]);
    } else {
        soak(&name, &image, "survivor: 5000 answers right, ", &[MISSED, NO_DEATH]);
    }
}

#[test]
fn nothing_is_lost_while_programs_are_moved_stopped_and_cut_off() {
    soak_disturbed("1", "0");
    soak_disturbed("2", "0");
}

#[test]
fn nothing_is_lost_while_servers_are_killed_at_any_instruction() {
    soak_disturbed("1", "20");
    soak_disturbed("2", "20");
}

/// The server and its honest client do not mind a client that destroys its channel.
#[test]
fn a_vandal_harms_only_itself() {
    for (harts, server, vandal) in [("1", "0", "0"), ("2", "1", "0"), ("3", "1", "2")] {
        let name = format!("soak-vandal-{harts}");
        let changes = [("machine.harts", harts), ("program.adder.hart", server), ("program.vandal.hart", vandal)];
        let line = "asker: sums: 10000 of 10000 answers right over rings";
        // Where the vandal shares its hart with the honest client that one may be done before the vandal is pardoned.
        let effect = if harts == "3" { "connected again 0 times" } else { " 0 refused; connected again 0 times" };
        soak(&name, &image("vandal", &name, &changes), line, &[effect]);
    }
}

/// Cycles of a call of the honest client, with a vandal that tries so many calls on a hart of its own.
fn honest_cycles(rounds: &str) -> u64 {
    let name = format!("soak-honest-{}", if rounds == "0" { "alone" } else { "vandal" });
    let rounds = format!("\"{rounds}\"");
    let changes = [
        ("program.vandal.args.rounds", rounds.as_str()),
        ("program.vandal.main", "false"),
        ("program.asker.args.calls", "\"2000\""),
    ];
    let (end, text) = run_on(&image("vandal", &name, &changes), Mode::Timed, |_| ());
    assert_eq!(end, End::Exit(0), "{text}");
    let line = text.lines().find_map(|line| line.strip_prefix("asker: sums: 2000 of 2000 answers right over rings, "));
    let cycles = line.and_then(|rest| rest.split(' ').next()?.parse().ok());
    cycles.unwrap_or_else(|| panic!("no cycles in:\n{text}"))
}

/// What a vandal costs others is bounded: a call takes at most twice as long as without it. The vandal never stops before the honest client.
#[test]
fn a_vandal_at_most_doubles_what_an_honest_call_takes() {
    let (alone, beside) = (honest_cycles("0"), honest_cycles("1000000000"));
    println!("an honest call takes {alone} cycles, {beside} beside a vandal");
    assert!(beside > alone, "the vandal did nothing: {alone} cycles alone, {beside} beside it");
    assert!(beside <= 2 * alone, "{alone} cycles alone, {beside} beside a vandal");
}
