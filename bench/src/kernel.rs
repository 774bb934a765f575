//! Kernel operations: cycles of a call with its reply, of a signal, of an empty system call, of mapping a page.
//!
//! Repeats what seL4's benchmark page measures (sel4.systems, "seL4 Benchmarks"), under its conditions: warm, the mean of many
//! rounds, client and server in different address spaces, of equal priority. With the measures:
//!
//! | record | what | how a round is timed |
//! |---|---|---|
//! | `kernel.call_reply` | Call, and the ReplyRecv of the server | all rounds at once, with loop and check of the reply |
//! | `kernel.signal` | Signal to a waiter | one by one: until the waiter runs (it is better), or until Signal returns (it is worse) |
//! | `kernel.null_syscall` | NBSend on an empty slot | all rounds at once |
//! | `kernel.map_unmap` | Page_Map and Page_Unmap of 2 MiB | all rounds at once, both together |
//! | `kernel.yield` | Yield to a thread of another process, which yields back | all rounds at once, both together |
//! | `kernel.irq_to_user` | a device register is written that raises an interrupt | one by one: until a thread that waits for it runs |
//! | `kernel.irq_latency_max` | the same while another thread keeps the kernel in its longest operation | the latest of all rounds |
//!
//! `kernel.instructions` counts the instructions of the same rounds, user code included: a yardstick that no cache moves.
//!
//! seL4 takes no message of 10 words on its fast path: four travel in registers, the rest in IPC buffers.
//! The longest operation that a program of this system can ask for is revoking the copies of a capability: the kernel looks for
//! interrupts after every 100 of them.
//! Threads that wait or signal here have no user-interrupt state. Each point is a boot of its own, as everywhere.

use images::{Builder, Manifest};
use serde::Deserialize;

use crate::boot::{Boot, Run};
use crate::error::Error;
use crate::published::Figures;
use crate::results::{Params, Record};
use crate::table::{self, Table};

/// The way of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// One hart, fast path on.
    Fastpath,
    /// One hart, fast path off.
    Slowpath,
    /// Client and server on two harts.
    CrossHart,
}

/// What one point measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Call and ReplyRecv with so many words each way.
    CallReply(Way, u64),
    /// Signal to a waiter of higher priority.
    SignalHigher,
    /// Signal to a waiter of lower priority.
    SignalLower,
    /// A system call that does nothing.
    NullSyscall,
    /// Page_Map and Page_Unmap.
    MapUnmap,
    /// Yield, and Yield back.
    Yield,
    /// A device interrupt until the thread that waits for it runs.
    IrqToUser,
    /// The same at its worst.
    IrqLatencyMax,
}

impl Measure {
    /// All, in the order of records.
    pub const ALL: [Self; 13] = [
        Self::CallReply(Way::Fastpath, 0),
        Self::CallReply(Way::Fastpath, 10),
        Self::CallReply(Way::Slowpath, 0),
        Self::CallReply(Way::Slowpath, 10),
        Self::CallReply(Way::CrossHart, 0),
        Self::CallReply(Way::CrossHart, 10),
        Self::SignalHigher,
        Self::SignalLower,
        Self::NullSyscall,
        Self::MapUnmap,
        Self::Yield,
        Self::IrqToUser,
        Self::IrqLatencyMax,
    ];

    /// What the programs call it.
    fn argument(self) -> &'static str {
        match self {
            Self::CallReply(..) => "call-reply",
            Self::SignalHigher => "signal-higher",
            Self::SignalLower => "signal-lower",
            Self::NullSyscall => "null-syscall",
            Self::MapUnmap => "map-unmap",
            Self::Yield => "yield",
            Self::IrqToUser => "irq-to-user",
            Self::IrqLatencyMax => "irq-latency",
        }
    }

    /// The record's id and parameters.
    fn record(self) -> (&'static str, Params) {
        match self {
            Self::CallReply(way, words) => {
                let path = match way {
                    Way::Fastpath => "fastpath",
                    Way::Slowpath => "slowpath",
                    Way::CrossHart => "cross-hart",
                };
                ("kernel.call_reply", Params::new().with("path", path).with("words", words))
            }
            Self::SignalHigher => ("kernel.signal", Params::new().with("waiter", "higher-priority")),
            Self::SignalLower => ("kernel.signal", Params::new().with("waiter", "lower-priority")),
            Self::NullSyscall => ("kernel.null_syscall", Params::new()),
            Self::MapUnmap => ("kernel.map_unmap", Params::new()),
            Self::Yield => ("kernel.yield", Params::new()),
            Self::IrqToUser => ("kernel.irq_to_user", Params::new()),
            Self::IrqLatencyMax => ("kernel.irq_latency_max", Params::new()),
        }
    }

    /// Its name in labels, tables and the published figures.
    fn name(self) -> String {
        match self {
            Self::CallReply(Way::Fastpath, words) => format!("call and reply, fast path, {words} words"),
            Self::CallReply(Way::Slowpath, words) => format!("call and reply, slow path, {words} words"),
            Self::CallReply(Way::CrossHart, words) => format!("call and reply, two harts, {words} words"),
            Self::SignalHigher => "signal to a higher priority".into(),
            Self::SignalLower => "signal to a lower priority".into(),
            Self::NullSyscall => "null system call".into(),
            Self::MapUnmap => "map and unmap a page".into(),
            Self::Yield => "yield, and yield back".into(),
            Self::IrqToUser => "interrupt to user".into(),
            Self::IrqLatencyMax => "interrupt to user, at worst".into(),
        }
    }

    /// Harts that it uses.
    pub fn harts(self) -> u32 {
        if matches!(self, Self::CallReply(Way::CrossHart, _)) { 2 } else { 1 }
    }
}

/// One point to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// What.
    pub measure: Measure,
    /// Rounds to time, after a sixteenth as many.
    pub rounds: u64,
}

impl Spec {
    /// Every measure; `quick` with an eighth of the rounds.
    pub fn all(quick: bool) -> Vec<Self> {
        let rounds = if quick { 128 } else { 1024 };
        Measure::ALL.iter().map(|&measure| Self { measure, rounds }).collect()
    }

    /// The machine that measures the point.
    ///
    /// # Errors
    /// If its image cannot be built.
    pub fn boot(&self, builder: &mut Builder) -> Result<Boot, Error> {
        let label = format!("kernel, {}", self.measure.name());
        Boot::new(label, &self.manifest()?, self.measure.harts(), builder)
    }

    /// `images/kernel.toml` with the harts, the threads and the arguments of the point.
    ///
    /// # Errors
    /// If the manifest cannot be read.
    pub fn manifest(&self) -> Result<Manifest, images::Error> {
        let mut manifest = Manifest::named("kernel")?;
        let index = Measure::ALL.iter().position(|&measure| measure == self.measure).unwrap_or(Measure::ALL.len());
        manifest.rename(&format!("kernel-{index}"));
        let words = if let Measure::CallReply(_, words) = self.measure { words } else { 0 };
        for program in ["kernel-client", "kernel-server"] {
            let mut set = |key: &str, value: &str| {
                manifest.set(&format!("program.{program}.args.{key}"), &format!("\"{value}\""))
            };
            set("measure", self.measure.argument())?;
            set("words", &words.to_string())?;
            set("warmup", &(self.rounds / 16).to_string())?;
            set("rounds", &self.rounds.to_string())?;
        }
        match self.measure {
            Measure::CallReply(Way::Slowpath, _) => manifest.set("kernel.fastpath", "false")?,
            Measure::CallReply(Way::CrossHart, _) => {
                manifest.set("machine.harts", "2")?;
                manifest.set("program.kernel-client.hart", "1")?;
            }
            Measure::SignalHigher => manifest.set("program.kernel-client.threads", "2")?,
            Measure::IrqToUser | Measure::IrqLatencyMax => {
                manifest.set("program.kernel-client.threads", "2")?;
                manifest.set("program.kernel-client.devices", "[\"google,goldfish-rtc\"]")?;
                manifest.set("program.kernel-client.reply-slots", "256")?;
            }
            Measure::SignalLower => manifest.set("program.kernel-server.threads", "2")?,
            _ => {}
        }
        Ok(manifest)
    }

    /// The point, from what the guest has printed.
    ///
    /// # Errors
    /// If the guest has not printed the total of this point, and of no other.
    pub fn point(&self, run: &Run) -> Result<Point, Error> {
        let total = run
            .total(|total: &Total| (total.measure.as_str(), total.rounds) == (self.measure.argument(), self.rounds))?;
        // The guest gives the latest of all rounds, which is no sum.
        let rounds = if self.measure == Measure::IrqLatencyMax { 1 } else { total.rounds };
        Ok(Point { measure: self.measure, rounds, cycles: total.cycles, instructions: total.instructions })
    }
}

/// What `kernel-client` prints.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Total {
    measure: String,
    rounds: u64,
    cycles: u64,
    instructions: u64,
}

/// One measured point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// What was measured.
    pub measure: Measure,
    /// Rounds timed.
    pub rounds: u64,
    /// Cycles that they took together.
    pub cycles: u64,
    /// Instructions that they took together; 0 where they are not counted.
    pub instructions: u64,
}

impl Point {
    /// Cycles of a round.
    pub fn mean(&self) -> f64 {
        self.cycles as f64 / self.rounds as f64
    }

    /// Instructions of a round, of one hart: where two work, the other's are not known.
    pub fn instructions(&self) -> Option<f64> {
        let counted = self.instructions != 0 && self.measure.harts() == 1;
        counted.then_some(self.instructions as f64 / self.rounds as f64)
    }
}

fn published() -> Figures {
    Figures::parse(include_str!("../published/kernel.csv"))
}

/// The records of `points`.
pub fn records(points: &[Point]) -> Vec<Record> {
    let published = published();
    let record = |point: &Point| {
        let (id, params) = point.measure.record();
        Record::new(id, params, "cycles", point.mean()).beside(published.get(&[&point.measure.name()]))
    };
    let instructions = |point: &Point| {
        let (id, params) = point.measure.record();
        point.instructions().map(|mean| Record::new("kernel.instructions", params.with("of", id), "instructions", mean))
    };
    points.iter().map(record).chain(points.iter().filter_map(instructions)).collect()
}

/// The table: a row for each measure.
pub fn table(points: &[Point]) -> Table {
    let published = published();
    let mut table = Table::new(
        "Kernel: cycles",
        &[("", &["operation"]), ("", &["instructions", "ours", "published", "ours:published"])],
    );
    for point in points {
        let theirs = published.get(&[&point.measure.name()]).map(|figure| figure.value);
        table.row(vec![
            point.measure.name(),
            table::optional(point.instructions()),
            table::optional(Some(point.mean())),
            table::optional(theirs),
            table::ratio(Some(point.mean()), theirs),
        ]);
    }
    table.note("published: seL4 on a U54 and reL4 on a 100 MHz Rocket, as bench/published/kernel.csv says.");
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_a_system() {
        for spec in Spec::all(false) {
            let manifest = spec.manifest().unwrap();
            assert!(manifest.system().is_ok(), "{spec:?}: {:?}", manifest.system());
        }
    }

    #[test]
    fn published_figures_stand_beside_their_measures() {
        let points = Measure::ALL.map(|measure| Point { measure, rounds: 4, cycles: 6, instructions: 8 });
        let published: Vec<_> =
            records(&points).into_iter().map(|record| record.published.map(|value| value.0)).collect();
        assert_eq!(published[0], Some(1434.0));
        assert_eq!(published.iter().flatten().count(), 4, "each row of the file belongs to a measure");
        let mean = |record: &Record| if record.id == "kernel.instructions" { 2.0 } else { 1.5 };
        assert!(records(&points).iter().all(|record| record.value.0 == mean(record)));
    }

    #[test]
    fn the_guest_s_line_is_checked() {
        let spec = Spec { measure: Measure::NullSyscall, rounds: 8 };
        let point = |lines: &[&str]| {
            let results = lines.iter().map(|line| (*line).to_owned()).collect();
            spec.point(&Run { label: "x".into(), results, report: None, capture: None })
        };
        assert_eq!(
            point(&[r#"{"measure":"null-syscall","rounds":8,"cycles":20,"instructions":9}"#]).unwrap().mean(),
            2.5
        );
        assert!(point(&[]).is_err());
        assert!(point(&[r#"{"measure":"null-syscall","rounds":7,"cycles":20,"instructions":9}"#]).is_err());
        assert!(point(&[r#"{"measure":"map-unmap","rounds":8,"cycles":20,"instructions":9}"#]).is_err());
    }
}
