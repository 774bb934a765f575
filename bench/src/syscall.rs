//! Async system calls: cycles to map a page and unmap it again, by system calls and by a system-call ring, directly and through a memory
//! server.
//!
//! Repeats the experiment of reL4 ("asynchronous system calls"): coroutines of a client ask a memory server, which has the kernel map and unmap
//! pages, 1 to 64 requests in flight. Forms:
//!
//! | form | who | harts | in flight is |
//! |---|---|---|---|
//! | `trap` | a program maps and unmaps pages of its own, a system call each | 1 | - |
//! | `ring` | the same by a system-call ring | 1 | a coroutine |
//! | `server-sync` | a client calls the server over an endpoint, which makes a system call | 1 | - |
//! | `server-async` | requests over shared rings; the server uses its system-call ring | 1 | a coroutine of the client |
//! | `server-sync-smp`, `server-async-smp` | client and server on two harts | 2 | as above |
//! | `server-async-helped` | the same; a third hart idles, and works off the server's ring | 3 | as above |
//!
//! A pair is two requests of 4 KiB pages, both answers awaited; the page tables exist. Published shape: a pair gets cheaper with every doubling up to
//! 64, and crosses below the synchronous one at 32. `tests/shape.rs` checks what of it holds here: it falls, and across harts it
//! crosses. On one hart it does not cross here (libipc/README.md says why).

use images::{Builder, Manifest};
use serde::Deserialize;

use crate::boot::{Boot, Run};
use crate::error::Error;
use crate::published::Figures;
use crate::results::{Params, Published, Record};
use crate::table::{self, Table};

/// Requests in flight.
pub const DEPTHS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

/// How a pair is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// System calls of one program.
    Trap,
    /// The system-call ring of one program.
    Ring,
    /// A server over an endpoint, on one hart or on two.
    ServerSync {
        /// Harts.
        harts: u32,
    },
    /// A server over rings. With three harts one idles.
    ServerAsync {
        /// Harts.
        harts: u32,
    },
}

impl Form {
    /// All, in the order of tables.
    pub const ALL: [Self; 7] = [
        Self::Trap,
        Self::Ring,
        Self::ServerSync { harts: 1 },
        Self::ServerAsync { harts: 1 },
        Self::ServerSync { harts: 2 },
        Self::ServerAsync { harts: 2 },
        Self::ServerAsync { harts: 3 },
    ];

    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Trap => "trap",
            Self::Ring => "ring",
            Self::ServerSync { harts: 1 } => "server-sync",
            Self::ServerSync { .. } => "server-sync-smp",
            Self::ServerAsync { harts: 1 } => "server-async",
            Self::ServerAsync { harts: 2 } => "server-async-smp",
            Self::ServerAsync { .. } => "server-async-helped",
        }
    }

    /// Harts that it uses.
    pub fn harts(self) -> u32 {
        match self {
            Self::Trap | Self::Ring => 1,
            Self::ServerSync { harts } | Self::ServerAsync { harts } => harts,
        }
    }

    /// Whether the number in flight means something.
    pub fn is_async(self) -> bool {
        matches!(self, Self::Ring | Self::ServerAsync { .. })
    }
}

/// One point to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// How.
    pub form: Form,
    /// Requests in flight.
    pub depth: u32,
    rounds: u64,
    warmup: u64,
}

impl Spec {
    /// A point; `quick` with an eighth of the pairs.
    pub fn new(form: Form, depth: u32, quick: bool) -> Self {
        let (rounds, warmup) = if quick { (256, 128) } else { (2048, 512) };
        Self { form, depth, rounds, warmup }
    }

    /// Every form, and every depth where that means something; `quick` a few of them.
    pub fn all(quick: bool) -> Vec<Self> {
        let depths: &[u32] = if quick { &[1, 4, 64] } else { &DEPTHS };
        let of = |form: Form| {
            depths[..if form.is_async() { depths.len() } else { 1 }].iter().map(move |&depth| (form, depth))
        };
        Form::ALL.into_iter().flat_map(of).map(|(form, depth)| Self::new(form, depth, quick)).collect()
    }

    /// The machine that measures the point.
    ///
    /// # Errors
    /// If its image cannot be built.
    pub fn boot(&self, builder: &mut Builder) -> Result<Boot, Error> {
        let label = format!("map and unmap, {}, {} in flight", self.form.name(), self.depth);
        Boot::new(label, &self.manifest()?, self.form.harts(), builder)
    }

    /// `images/mapper.toml` or `images/memory.toml` with the harts and the arguments of the point.
    ///
    /// # Errors
    /// If a manifest of this name cannot be read.
    pub fn manifest(&self) -> Result<Manifest, images::Error> {
        let direct = matches!(self.form, Form::Trap | Form::Ring);
        let mut manifest = Manifest::named(if direct { "mapper" } else { "memory" })?;
        manifest.rename(&format!("syscall-{}-{}", self.form.name(), self.depth));
        let asks = if direct { "mapper" } else { "memory-client" };
        for (argument, value) in [("depth", u64::from(self.depth)), ("warmup", self.warmup), ("rounds", self.rounds)] {
            manifest.set(&format!("program.{asks}.args.{argument}"), &format!("\"{value}\""))?;
        }
        if direct {
            manifest.set("program.mapper.args.way", &format!("\"{}\"", self.form.name()))?;
            return Ok(manifest);
        }
        let harts = self.form.harts();
        manifest.set("machine.harts", &harts.to_string())?;
        manifest.set("program.memory-client.hart", if harts > 1 { "1" } else { "0" })?;
        if harts == 3 {
            manifest.set("program.memory-server.args.hand-over-from", "\"8\"")?;
        }
        manifest.set("channel.memory.entries", &self.depth.max(16).to_string())?;
        manifest.set("channel.memory.transport", if self.form.is_async() { "async" } else { "sync" })?;
        Ok(manifest)
    }

    /// The point, from what the guest has printed.
    ///
    /// # Errors
    /// If the guest has not printed the totals of this point, and of no other.
    pub fn point(&self, run: &Run) -> Result<Point, Error> {
        let totals = run.total(|totals: &Totals| (totals.depth, totals.rounds) == (self.depth, self.rounds))?;
        Ok(Point { form: self.form, totals })
    }
}

/// What `mapper` and `memory-client` print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Totals {
    /// Requests in flight.
    pub depth: u32,
    /// Pairs timed.
    pub rounds: u64,
    /// Cycles that they took.
    pub cycles: u64,
}

/// One measured point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// How.
    pub form: Form,
    /// What the guest measured.
    pub totals: Totals,
}

impl Point {
    /// Cycles of a pair.
    pub fn cycles(&self) -> f64 {
        self.totals.cycles as f64 / self.totals.rounds as f64
    }

    fn published(&self) -> Option<Published> {
        Figures::parse(include_str!("../published/syscall.csv"))
            .get(&[self.form.name(), &self.totals.depth.to_string()])
    }
}

/// The records of `points`.
pub fn records(points: &[Point]) -> Vec<Record> {
    let record = |point: &Point| {
        let params = Params::new().with("form", point.form.name()).with("depth", u64::from(point.totals.depth));
        Record::new("syscall.map_unmap", params, "cycles per pair", point.cycles()).beside(point.published())
    };
    points.iter().map(record).collect()
}

/// The table: a row for each number in flight, the published one below it.
pub fn table(points: &[Point]) -> Table {
    let mut table = Table::new(
        "Async system calls: cycles to map and unmap a page",
        &[
            ("pairs", &["in flight"]),
            ("own pages", &["trap", "ring"]),
            ("server, one hart", &["sync", "async"]),
            ("two harts", &["sync", "async"]),
            ("three", &["helped"]),
        ],
    );
    let find = |form: Form, depth: u32| {
        let is = |point: &&Point| point.form == form && (point.totals.depth == depth || !form.is_async());
        points.iter().find(is)
    };
    for depth in DEPTHS.into_iter().filter(|&depth| points.iter().any(|point| point.totals.depth == depth)) {
        let cells = |head: String, of: &dyn Fn(&Point) -> Option<f64>| {
            let values = Form::ALL.into_iter().map(|form| table::optional(find(form, depth).and_then(of)));
            [head].into_iter().chain(values).collect()
        };
        table.row(cells(depth.to_string(), &|point| Some(point.cycles())));
        table.published(cells("published".into(), &|point| point.published().map(|published| published.value)));
    }
    table.note("a synchronous pair costs the same whatever is in flight; \"helped\": an idle hart works off the server's system-call ring.");
    table.note("published: reL4 on a 100 MHz Rocket FPGA, 64 in flight; it crosses its synchronous server at 32.");
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_a_system_and_the_guest_s_line_is_checked() {
        for spec in Spec::all(false) {
            let manifest = spec.manifest().unwrap();
            assert!(manifest.system().is_ok(), "{spec:?}: {:?}", manifest.system());
        }
        let spec = Spec { form: Form::Ring, depth: 4, rounds: 10, warmup: 0 };
        let point = |line: &str| {
            spec.point(&Run { label: "x".into(), results: vec![line.into()], report: None, capture: None })
        };
        assert_eq!(point(r#"{"depth":4,"rounds":10,"cycles":125}"#).unwrap().cycles(), 12.5);
        assert!(point(r#"{"depth":8,"rounds":10,"cycles":125}"#).is_err());
        assert!(point(r#"{"depth":4,"rounds":10}"#).is_err());
    }

    #[test]
    fn the_published_figure_stands_beside_its_point() {
        let totals = Totals { depth: 64, rounds: 1, cycles: 2000 };
        let point = Point { form: Form::ServerAsync { harts: 1 }, totals };
        assert_eq!(records(&[point])[0].published.map(|number| number.0), Some(5380.0));
        assert!(table(&[point]).render(crate::table::Colour::Off).contains("5 380"));
    }
}
