//! Refusals: the tables of `sel4-conformance`, one per object, on the portable kernel. The same tables run on the machine
//! (`images/tests/conformance.rs`). Refusals of our own invocations are in `user_interrupts.rs`.

use sel4_conformance::row::MAX_WORDS;
use sel4_conformance::{Answer, Outcome, System, table};

use super::world::{DEVICE_UNTYPED, UNTYPED, World, with_cores};
use crate::arch::Arch;

/// A fresh world for each table, and what came out differently.
struct Worlds {
    make: fn() -> World,
    world: World,
    rows: usize,
    bad: Vec<String>,
}

impl System for Worlds {
    fn smp(&self) -> bool {
        self.world.k.config.labels == abi::label::Table::Smp
    }
    fn cores(&self) -> u64 {
        self.world.k.arch.cores() as u64
    }
    fn call(&mut self, capability: u64, label: u64, words: &[u64], extra: &[u64]) -> Answer {
        let (error, got) = self.world.call(capability, label, words, extra);
        let mut words = [0; MAX_WORDS];
        words[..got.len()].copy_from_slice(&got);
        Answer { error, words, length: got.len() }
    }
    fn block(&mut self) -> u64 {
        self.world = (self.make)();
        UNTYPED
    }
    fn device(&self) -> u64 {
        DEVICE_UNTYPED
    }
    fn fresh(&mut self) -> u64 {
        self.world.fresh()
    }
    fn report(&mut self, outcome: &Outcome<'_>) {
        self.rows += 1;
        if !outcome.good() {
            self.bad.push(format!("{outcome:x?}"));
        }
    }
}

fn run(make: fn() -> World) -> usize {
    let mut worlds = Worlds { make, world: make(), rows: 0, bad: Vec::new() };
    table::all(&mut worlds);
    assert!(worlds.bad.is_empty(), "{:#?}", worlds.bad);
    worlds.rows
}

#[test]
fn every_object_refuses_what_sel4_refuses_with_its_words() {
    let up = run(World::new);
    let smp = run(|| with_cores(3));
    assert!(up > 400 && smp > up, "rows went missing: {up} UP, {smp} SMP");
}
