//! How a run ended and what it did.

use crate::time::SimTime;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// Why the machine stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The guest ended the run with this exit code (test finisher, or `tohost` of a bare program).
    Exit(u32),
    /// The guest asked for a reset.
    Reset,
    /// The far end of the wire has done all it came for ([`crate::wire::Peer::finished`]).
    PeerDone,
    /// Every hart waits for an interrupt and nothing is left that could raise one.
    IdleDeadlock,
    /// [`crate::Config::max_cycles`] was reached.
    CycleLimit,
}

/// Privilege mode of a hart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Privilege {
    /// User.
    U = 0,
    /// Supervisor.
    S = 1,
    /// Machine.
    M = 3,
}

/// One hart at the end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HartReport {
    /// Program counter of the next instruction.
    pub pc: u64,
    /// Privilege mode.
    pub privilege: Privilege,
    /// True if the hart waits in `wfi`.
    pub waiting: bool,
    /// The hart's trap handler cannot be fetched; it was stopped.
    pub stuck: bool,
    /// The hart's own clock, in core cycles.
    pub cycles: u64,
    /// Instructions retired.
    pub instructions: u64,
    /// Counters of the run.
    pub statistics: HartStatistics,
}

/// Counters of one hart. The miss counters stay 0 in fast mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HartStatistics {
    /// Exceptions taken, all privilege levels.
    pub exceptions: u64,
    /// Interrupts taken to M or S.
    pub interrupts: u64,
    /// User interrupts taken (entries through `utvec`).
    pub user_interrupts: u64,
    /// `uipi.send` instructions that reached a receiver.
    pub uipi_sent: u64,
    /// Accesses to devices.
    pub device_accesses: u64,
    /// Cycles spent in `wfi`.
    pub idle_cycles: u64,
    /// L1 instruction cache misses.
    pub l1i_misses: u64,
    /// L1 data cache misses and upgrades.
    pub l1d_misses: u64,
    /// Of these, misses served from a dirty line of another hart.
    pub l1d_dirty_elsewhere: u64,
    /// Instruction TLB misses.
    pub itlb_misses: u64,
    /// Data TLB misses.
    pub dtlb_misses: u64,
    /// Mispredicted branches, jumps and returns.
    pub mispredicts: u64,
}

/// The result of [`crate::Machine::run`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Why the machine stopped.
    pub end: End,
    /// Simulated time of the stop.
    pub time: SimTime,
    /// The same in core cycles (100 MHz).
    pub cycles: u64,
    /// Per hart, by hart id.
    pub harts: Vec<HartReport>,
}

impl Outcome {
    /// Process exit code for this end: the guest's own (values above 255 become 255 so that they never read as success),
    /// 0 for a reset or a finished peer, 124 for the cycle limit, 125 for an idle deadlock.
    pub fn exit_code(&self) -> u8 {
        match self.end {
            End::Exit(code) => u8::try_from(code).unwrap_or(u8::MAX),
            End::Reset | End::PeerDone => 0,
            End::CycleLimit => 124,
            End::IdleDeadlock => 125,
        }
    }

    /// What the run and each hart did, in one line each.
    pub fn statistics(&self) -> String {
        let micros = self.time.as_us();
        let mut text = format!(
            "{} cycles, {} instructions, {}.{:06} s simulated\n",
            self.cycles,
            self.instructions(),
            micros / 1_000_000,
            micros % 1_000_000
        );
        for (id, hart) in self.harts.iter().enumerate() {
            let s = &hart.statistics;
            let busy = hart.cycles.saturating_sub(s.idle_cycles);
            let cpi = (busy * 1000).checked_div(hart.instructions).unwrap_or(0);
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "hart {id}: cycles {} idle {} instructions {} CPI {}.{:03} exceptions {} interrupts {} user-interrupts {} \
                 uipi-sends {} device-accesses {} l1i-misses {} l1d-misses {} (dirty elsewhere {}) itlb-misses {} \
                 dtlb-misses {} mispredicts {}",
                hart.cycles,
                s.idle_cycles,
                hart.instructions,
                cpi / 1000,
                cpi % 1000,
                s.exceptions,
                s.interrupts,
                s.user_interrupts,
                s.uipi_sent,
                s.device_accesses,
                s.l1i_misses,
                s.l1d_misses,
                s.l1d_dirty_elsewhere,
                s.itlb_misses,
                s.dtlb_misses,
                s.mispredicts
            );
        }
        text
    }

    /// The same as a JSON object: `cycles`, `picoseconds`, and an array `harts` with the counters by their names in
    /// [`HartStatistics`].
    pub fn statistics_json(&self) -> serde_json::Value {
        let hart = |hart: &HartReport| {
            let mut object = serde_json::json!({ "cycles": hart.cycles, "instructions": hart.instructions });
            // A struct of numbers is an object of numbers.
            if let (Some(object), Ok(serde_json::Value::Object(counters))) =
                (object.as_object_mut(), serde_json::to_value(hart.statistics))
            {
                object.extend(counters);
            }
            object
        };
        serde_json::json!({
            "cycles": self.cycles,
            "picoseconds": self.time.as_ps(),
            "instructions": self.instructions(),
            "harts": self.harts.iter().map(hart).collect::<Vec<_>>(),
        })
    }

    /// Instructions retired by all harts.
    pub fn instructions(&self) -> u64 {
        self.harts.iter().map(|hart| hart.instructions).sum()
    }
}
