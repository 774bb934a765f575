//! What a wake costs between harts: from `uipi.send`, or Signal, to whoever was woken.
//!
//! Two programs on two harts wake each other in turn, so that one counter times both ways; a wake is half a round. Everything
//! that the woken one does before it wakes the other is in it, so the figures are upper bounds:
//!
//! | record | the woken one | from, to |
//! |---|---|---|
//! | `uintr.to_handler` | runs, looking at the word where its handler leaves the bits | `uipi.send` to the program having seen the bits |
//! | `uintr.to_coroutine` | runs, its executor Armed, a coroutine awaits the bit | `uipi.send` to the coroutine going on |
//! | `uintr.to_blocked` | waits in the kernel, which is woken by Signal | Signal to the coroutine going on |
//!
//! Published: about 100 cycles from `uipi.send` to the handler's first instruction and about 400 to its body on a Rocket at
//! 50 MHz (user-interrupt project, ZCU102), 561 for a whole delivery.

use images::{Builder, Manifest};
use serde::Deserialize;

use crate::boot::{Boot, Run};
use crate::error::Error;
use crate::results::{Params, Published, Record};
use crate::table::{self, Table};

/// How the woken one waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// It looks at the handler's word.
    Watching,
    /// In a coroutine of an Armed executor.
    Coroutine,
    /// In the kernel.
    Blocked,
}

impl Waits {
    /// All, in the order of records.
    pub const ALL: [Self; 3] = [Self::Watching, Self::Coroutine, Self::Blocked];

    /// What the programs call it.
    fn argument(self) -> &'static str {
        match self {
            Self::Watching => "watching",
            Self::Coroutine => "coroutine",
            Self::Blocked => "blocked",
        }
    }

    fn id(self) -> &'static str {
        match self {
            Self::Watching => "uintr.to_handler",
            Self::Coroutine => "uintr.to_coroutine",
            Self::Blocked => "uintr.to_blocked",
        }
    }

    fn published(self) -> Option<Published> {
        let published = Published { value: 561.0, source: "user-interrupt project, ZCU102, one delivery".into() };
        (self == Self::Watching).then_some(published)
    }
}

/// One point to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    waits: Waits,
    rounds: u64,
}

impl Spec {
    /// Every way to wait; `quick` with an eighth of the rounds.
    pub fn all(quick: bool) -> Vec<Self> {
        let rounds = if quick { 128 } else { 1024 };
        Waits::ALL.into_iter().map(|waits| Self { waits, rounds }).collect()
    }

    /// The machine that measures the point.
    ///
    /// # Errors
    /// If its image cannot be built.
    pub fn boot(&self, builder: &mut Builder) -> Result<Boot, Error> {
        Boot::new(format!("wake, {}", self.waits.argument()), &self.manifest()?, 2, builder)
    }

    /// `images/doorbell.toml` with the arguments of the point.
    ///
    /// # Errors
    /// If a manifest of this name cannot be read.
    pub fn manifest(&self) -> Result<Manifest, images::Error> {
        let mut manifest = Manifest::named("doorbell")?;
        manifest.rename(&format!("doorbell-{}", self.waits.argument()));
        for program in ["first", "second"] {
            manifest.set(&format!("program.{program}.args.waits"), &format!("\"{}\"", self.waits.argument()))?;
            manifest.set(&format!("program.{program}.args.rounds"), &format!("\"{}\"", self.rounds))?;
        }
        Ok(manifest)
    }

    /// The point, from what the guest has printed.
    ///
    /// # Errors
    /// If the guest has not printed the total of this point, and of no other.
    pub fn point(&self, run: &Run) -> Result<Point, Error> {
        let total =
            run.total(|total: &Total| (total.waits.as_str(), total.wakes) == (self.waits.argument(), 2 * self.rounds))?;
        Ok(Point { waits: self.waits, wakes: total.wakes, cycles: total.cycles })
    }
}

/// What `doorbell` prints.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Total {
    waits: String,
    wakes: u64,
    cycles: u64,
}

/// One measured point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// How the woken one waited.
    pub waits: Waits,
    /// Wakes timed.
    pub wakes: u64,
    /// Cycles that they took together.
    pub cycles: u64,
}

impl Point {
    /// Cycles of a wake.
    pub fn mean(&self) -> f64 {
        self.cycles as f64 / self.wakes as f64
    }
}

/// The records of `points`.
pub fn records(points: &[Point]) -> Vec<Record> {
    let record = |point: &Point| {
        let params = Params::new().with("harts", "other");
        Record::new(point.waits.id(), params, "cycles", point.mean()).beside(point.waits.published())
    };
    points.iter().map(record).collect()
}

/// The table: a row for each way to wait.
pub fn table(points: &[Point]) -> Table {
    let mut table = Table::new("Wakes between harts: cycles", &[("", &["to"]), ("", &["ours", "published"])]);
    for point in points {
        let theirs = point.waits.published().map(|figure| figure.value);
        table.row(vec![point.waits.id().into(), table::optional(Some(point.mean())), table::optional(theirs)]);
    }
    table.note("half a round of two programs that wake each other: upper bounds, with what each does in between.");
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guest_s_line_is_checked_and_every_point_is_a_system() {
        for spec in Spec::all(true) {
            assert!(spec.manifest().unwrap().system().is_ok(), "{spec:?}");
        }
        let spec = Spec { waits: Waits::Coroutine, rounds: 4 };
        let point = |line: &str| {
            spec.point(&Run { label: "x".into(), results: vec![line.into()], report: None, capture: None })
        };
        assert_eq!(point(r#"{"waits":"coroutine","wakes":8,"cycles":1000}"#).unwrap().mean(), 125.0);
        assert!(point(r#"{"waits":"blocked","wakes":8,"cycles":1000}"#).is_err());
        assert!(point(r#"{"waits":"coroutine","wakes":4,"cycles":1000}"#).is_err());
    }
}
