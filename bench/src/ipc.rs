//! The null call: cycles per round trip, synchronous against asynchronous, and user interrupts per call.
//!
//! Repeats the experiments of reL4 (async IPC, "Performance Evaluation"): a client in one process calls a server in another, which
//! answers at once ("no server work") or multiplies two matrices first, with 1 to 512 calls in flight. Published on a 100 MHz Rocket with the
//! N extension. Transports, with reL4's names:
//!
//! | ours | reL4 | client, server | a call in flight is |
//! |---|---|---|---|
//! | `sync-fastpath` | `sync_up_fp` | one hart | a thread in `Call`; the server in `ReplyRecv` |
//! | `sync-slowpath` | `sync_up` | one hart | the same, the kernel built into the image has its fast path off |
//! | `sync-smp` | `sync_smp` | two harts | the same as the first; the kernel crosses harts by IPI |
//! | `async-up` | `async_up` | one hart | a coroutine that awaits its reply on a shared ring |
//! | `async-smp` | `async_smp` | two harts | the same |
//! | `async-smp-armed` | - | two harts | the same, but nobody looks at the rings while idle: whoever has nothing to do waits for a user interrupt |
//!
//! The last is there for the user interrupts: a side that looks before it dozes is seldom woken by one, and so its count says nothing about
//! wakes. It is what the published system does, whose executors do not poll.
//!
//! Published shape, which `tests/shape.rs` checks: the cost of a synchronous call does not depend on the calls in flight, and
//! fast path < slow path < across harts; the cost of an asynchronous call falls with every doubling, at least fivefold from 1
//! to 32, and crosses below the synchronous fast path; user interrupts per call fall with the calls in flight.
//!
//! How a point is measured: one boot, so that no point inherits another's caches. The client warms up, then times a fixed
//! number of calls with `rdcycle` of its hart and checks the content of every reply; the guest prints totals, and the
//! division is done here. User interrupts are those that both sides have taken while the calls were timed.

mod claims;
mod shapes;

use images::{Builder, Manifest};
use serde::Deserialize;

use crate::boot::{Boot, Run};
use crate::error::Error;
use crate::figure::{Chart, Line, Scale};
use crate::published::Figures;
use crate::results::{Params, Record};
use crate::table::{self, Table};
use crate::{fairness, syscall, wake};

/// Calls in flight, of the published figure.
pub const CONCURRENCIES: [u32; 6] = [1, 2, 4, 8, 16, 32];

/// Calls in flight, of the published ratios.
pub const ALL_CONCURRENCIES: [u32; 10] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/// Server loads of the figure of user interrupts.
const FIGURE_LOADS: [Load; 2] = [Load::None, Load::Ten];

/// Calls in flight over an endpoint, at most: each is a thread, and a program has no more.
pub const MAX_THREADS: u32 = 64;

/// What the server does for each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Load {
    /// Nothing but answering.
    None,
    /// Multiplies two matrices of 2 rows and columns: about the work of the published "moderate" (`claims`).
    #[value(name = "2x2")]
    Two,
    /// Of 5: about the published "overload".
    #[value(name = "5x5")]
    Five,
    /// Of 10.
    #[value(name = "10x10")]
    Ten,
    /// Of 20.
    #[value(name = "20x20")]
    Twenty,
    /// Of 30.
    #[value(name = "30x30")]
    Thirty,
}

impl Load {
    /// All, rising.
    pub const ALL: [Self; 6] = [Self::None, Self::Two, Self::Five, Self::Ten, Self::Twenty, Self::Thirty];

    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Two => "2x2",
            Self::Five => "5x5",
            Self::Ten => "10x10",
            Self::Twenty => "20x20",
            Self::Thirty => "30x30",
        }
    }

    /// Rows and columns of the matrices.
    fn order(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Two => 2,
            Self::Five => 5,
            Self::Ten => 10,
            Self::Twenty => 20,
            Self::Thirty => 30,
        }
    }

    /// Calls to time where `calls` are asked for: fewer the more each costs, so that all loads take about as long. A product takes
    /// about ten cycles for each of its terms.
    fn calls(self, calls: u64) -> u64 {
        calls.min(16_000_000 / (10 * self.order().pow(3)).max(1))
    }
}

/// How a call travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Transport {
    /// Endpoint, one hart, fast path.
    SyncFastpath,
    /// Endpoint, one hart, slow path.
    SyncSlowpath,
    /// Endpoint, client and server on two harts.
    SyncSmp,
    /// Rings and user interrupts, one hart.
    AsyncUp,
    /// Rings and user interrupts, two harts.
    AsyncSmp,
    /// The same, woken by user interrupts only.
    AsyncSmpArmed,
}

impl Transport {
    /// Those with a published counterpart, in the order of tables.
    pub const PUBLISHED: [Self; 5] =
        [Self::SyncFastpath, Self::SyncSlowpath, Self::SyncSmp, Self::AsyncUp, Self::AsyncSmp];

    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::SyncFastpath => "sync-fastpath",
            Self::SyncSlowpath => "sync-slowpath",
            Self::SyncSmp => "sync-smp",
            Self::AsyncUp => "async-up",
            Self::AsyncSmp => "async-smp",
            Self::AsyncSmpArmed => "async-smp-armed",
        }
    }

    /// Its name in figures.
    fn title(self) -> &'static str {
        match self {
            Self::SyncFastpath => "sync, fast path",
            Self::SyncSlowpath => "sync, slow path",
            Self::SyncSmp => "sync, two harts",
            Self::AsyncUp => "async, one hart",
            Self::AsyncSmp => "async, two harts",
            Self::AsyncSmpArmed => "armed, two harts",
        }
    }

    /// Harts that it uses.
    pub fn harts(self) -> u32 {
        match self {
            Self::SyncFastpath | Self::SyncSlowpath | Self::AsyncUp => 1,
            Self::SyncSmp | Self::AsyncSmp | Self::AsyncSmpArmed => 2,
        }
    }

    /// Whether it is one of ours.
    pub fn is_async(self) -> bool {
        matches!(self, Self::AsyncUp | Self::AsyncSmp | Self::AsyncSmpArmed)
    }
}

/// Which points to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// Transports.
    pub transports: Vec<Transport>,
    /// Calls in flight.
    pub concurrencies: Vec<u32>,
    /// What the server does.
    pub loads: Vec<Load>,
    /// What it does besides where executors wait armed ([`Transport::AsyncSmpArmed`]).
    pub armed: Vec<Load>,
    /// Calls to time at each point, at most: long ones are fewer. Every caller makes two at least, or with a load one.
    pub calls: u64,
    /// Calls before these.
    pub warmup: u64,
    /// Wakes to measure beside the calls.
    pub wakes: Vec<wake::Spec>,
    /// Async system calls to measure beside them.
    pub syscalls: Vec<syscall::Spec>,
    /// Shares of a server's time to measure beside the calls.
    pub fairness: Vec<fairness::Spec>,
}

impl Sweep {
    /// Every point of the published figure, without load, and the user interrupts of some loads; `quick` with an eighth of the calls.
    pub fn new(quick: bool) -> Self {
        let (calls, warmup) = if quick { (256, 64) } else { (2048, 256) };
        let armed = if quick { vec![Load::None] } else { FIGURE_LOADS.to_vec() };
        let (concurrencies, loads) = (CONCURRENCIES.to_vec(), vec![Load::None]);
        Self {
            transports: Transport::PUBLISHED.to_vec(),
            concurrencies,
            loads,
            armed,
            calls,
            warmup,
            wakes: Vec::new(),
            syscalls: Vec::new(),
            fairness: Vec::new(),
        }
    }

    /// Every point of the published ratios, with all loads; `quick` a few of them.
    pub fn full(quick: bool) -> Self {
        if quick {
            let loads = vec![Load::None, Load::Two, Load::Ten];
            let (wakes, syscalls, fairness) =
                (wake::Spec::all(true), syscall::Spec::all(true), fairness::Spec::all(true));
            return Self { concurrencies: vec![1, 8, 64], loads, wakes, syscalls, fairness, ..Self::new(true) };
        }
        Self {
            concurrencies: ALL_CONCURRENCIES.to_vec(),
            loads: Load::ALL.to_vec(),
            armed: Load::ALL.to_vec(),
            wakes: wake::Spec::all(false),
            syscalls: syscall::Spec::all(false),
            fairness: fairness::Spec::all(false),
            ..Self::new(false)
        }
    }

    /// The points, by load, by transport and then by calls in flight; those with more threads than a program may have are left out.
    pub fn specs(&self) -> Vec<Spec> {
        let mut specs = Vec::new();
        for &load in &self.loads {
            for &transport in &self.transports {
                let possible = self.concurrencies.iter().filter(|&&calls| transport.is_async() || calls <= MAX_THREADS);
                specs.extend(possible.map(|&concurrency| self.spec(load, transport, concurrency)));
            }
        }
        for &load in &self.armed {
            let armed = |&concurrency| self.spec(load, Transport::AsyncSmpArmed, concurrency);
            specs.extend(self.concurrencies.iter().map(armed));
        }
        specs
    }

    fn spec(&self, load: Load, transport: Transport, concurrency: u32) -> Spec {
        let each = if load == Load::None { 2 } else { 1 };
        let calls = load.calls(self.calls).max(u64::from(concurrency) * each);
        Spec { transport, concurrency, load, calls, warmup: load.calls(self.warmup) }
    }
}

/// One point to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    transport: Transport,
    concurrency: u32,
    load: Load,
    calls: u64,
    warmup: u64,
}

impl Spec {
    /// The machine that measures the point.
    ///
    /// # Errors
    /// If the parameters make no system, or its image cannot be built.
    pub fn boot(&self, builder: &mut Builder) -> Result<Boot, Error> {
        let Self { transport, concurrency, .. } = self;
        let load = if self.load == Load::None { String::new() } else { format!(", {}", self.load.name()) };
        let label = format!("ipc {}, {concurrency} in flight{load}", transport.name());
        Boot::new(label, &self.manifest()?, transport.harts(), builder)
    }

    /// `images/ipc.toml` with the transport, the harts and the arguments of the point.
    ///
    /// # Errors
    /// If a manifest of this name cannot be read.
    pub fn manifest(&self) -> Result<Manifest, images::Error> {
        let mut manifest = Manifest::named("ipc")?;
        let order = self.load.order();
        let suffix = if order == 0 { String::new() } else { format!("-{order}") };
        manifest.rename(&format!("ipc-{}-{}{suffix}", self.transport.name(), self.concurrency));
        manifest.set("program.ipc-server.args.load", &format!("\"{order}\""))?;
        let harts = self.transport.harts();
        manifest.set("machine.harts", &harts.to_string())?;
        manifest.set("program.ipc-client.hart", &(harts - 1).to_string())?;
        for (argument, value) in
            [("concurrency", u64::from(self.concurrency)), ("warmup", self.warmup), ("calls", self.calls)]
        {
            manifest.set(&format!("program.ipc-client.args.{argument}"), &format!("\"{value}\""))?;
        }
        if self.transport.is_async() {
            manifest.set("channel.ipc.transport", "async")?;
            manifest.set("channel.ipc.entries", &self.concurrency.next_power_of_two().max(32).to_string())?;
        } else {
            manifest.set("channel.ipc.transport", "sync")?;
            manifest.set("program.ipc-client.threads", &self.concurrency.to_string())?;
        }
        if self.transport == Transport::SyncSlowpath {
            manifest.set("kernel.fastpath", "false")?;
        }
        if self.transport == Transport::AsyncSmpArmed {
            manifest.set("program.ipc-server.args.armed", "\"true\"")?;
            manifest.set("program.ipc-client.args.armed", "\"true\"")?;
        }
        Ok(manifest)
    }

    /// The point, from what the guest has printed.
    ///
    /// # Errors
    /// If the guest has not printed the totals of this point, and of no other.
    pub fn point(&self, run: &Run) -> Result<Point, Error> {
        let totals =
            run.total(|totals: &Totals| (totals.concurrency, totals.calls) == (self.concurrency, self.calls))?;
        Ok(Point { transport: self.transport, load: self.load, totals })
    }
}

/// What `ipc-client` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Totals {
    /// Calls in flight.
    pub concurrency: u32,
    /// Calls timed.
    pub calls: u64,
    /// Cycles of the client's hart that they took.
    pub cycles: u64,
    /// User interrupts that the client took meanwhile.
    pub client_interrupts: u64,
    /// User interrupts that the server took meanwhile.
    pub server_interrupts: u64,
}

/// One measured point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// How the calls travelled.
    pub transport: Transport,
    /// What the server did.
    pub load: Load,
    /// What the guest measured.
    pub totals: Totals,
}

impl Point {
    /// Cycles per call.
    pub fn cycles(&self) -> f64 {
        self.totals.cycles as f64 / self.totals.calls as f64
    }

    /// User interrupts per call, of both sides.
    pub fn user_interrupts(&self) -> f64 {
        let Totals { calls, client_interrupts, server_interrupts, .. } = self.totals;
        (client_interrupts + server_interrupts) as f64 / calls as f64
    }

    /// The same without one of the server's: the question how many there were may have cost it one.
    fn user_interrupts_at_least(&self) -> f64 {
        let Totals { calls, client_interrupts, server_interrupts, .. } = self.totals;
        (client_interrupts + server_interrupts.saturating_sub(1)) as f64 / calls as f64
    }

    fn params(&self) -> Params {
        Params::new()
            .with("transport", self.transport.name())
            .with("concurrency", u64::from(self.totals.concurrency))
            .with("load", self.load.name())
    }
}

/// The published round trips and user interrupts.
#[derive(Clone, Debug)]
pub struct Published {
    round_trips: Figures,
    interrupts: Figures,
}

impl Default for Published {
    fn default() -> Self {
        Self {
            round_trips: Figures::parse(include_str!("../published/ipc.csv")),
            interrupts: Figures::parse(include_str!("../published/ipc-interrupts.csv")),
        }
    }
}

impl Published {
    /// The round trip that was published for such a point: without server work only.
    fn round_trip(&self, load: Load, transport: Transport, concurrency: u32) -> Option<crate::results::Published> {
        let key = [transport.name(), &concurrency.to_string()];
        if load == Load::None { self.round_trips.get(&key) } else { None }
    }

    /// The user interrupts that were published for such a point.
    fn interrupts(&self, load: Load, transport: Transport, concurrency: u32) -> Option<crate::results::Published> {
        let key = [transport.name(), &concurrency.to_string()];
        if load == Load::None { self.interrupts.get(&key) } else { None }
    }

    fn cycles(&self, load: Load, transport: Transport, concurrency: u32) -> Option<f64> {
        self.round_trip(load, transport, concurrency).map(|published| published.value)
    }
}

/// The records of `points`: all round trips, then all user interrupts, then the published ratios.
pub fn records(points: &[Point]) -> Vec<Record> {
    let published = Published::default();
    let round_trips =
        points.iter().map(|point| {
            Record::new("ipc.round_trip", point.params(), "cycles per call", point.cycles())
                .beside(published.round_trip(point.load, point.transport, point.totals.concurrency))
        });
    let interrupts = points.iter().filter(|point| point.transport.is_async()).map(|point| {
        let published = published.interrupts(point.load, point.transport, point.totals.concurrency);
        Record::new("ipc.user_interrupts", point.params(), "per call", point.user_interrupts()).beside(published)
    });
    round_trips.chain(interrupts).chain(claims::records(points)).collect()
}

/// The point of `transport` with `concurrency` calls in flight.
fn find(points: &[Point], load: Load, transport: Transport, concurrency: u32) -> Option<&Point> {
    let key = (load, transport, concurrency);
    points.iter().find(|point| (point.load, point.transport, point.totals.concurrency) == key)
}

/// The numbers of calls in flight that occur, rising.
fn concurrencies(points: &[Point]) -> Vec<u32> {
    let mut all: Vec<u32> = points.iter().map(|point| point.totals.concurrency).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// A table for each load, and one of the published claims if there is more than one.
pub fn tables(points: &[Point]) -> Vec<Table> {
    let loads = Load::ALL.into_iter().filter(|&load| points.iter().any(|point| point.load == load));
    let mut tables: Vec<Table> = loads.map(|load| table(points, load)).collect();
    if tables.len() > 1 {
        tables.push(claims::table(points));
    }
    tables
}

/// A row for each number of calls in flight, the published one below it.
fn table(points: &[Point], load: Load) -> Table {
    use Transport::{AsyncSmp, AsyncSmpArmed, AsyncUp, SyncFastpath, SyncSlowpath, SyncSmp};
    let title = match load {
        Load::None => "IPC: cycles per null call between two processes".to_owned(),
        load => format!("IPC: cycles per call between two processes, server load {}", load.name()),
    };
    let mut table = Table::new(
        &title,
        &[
            ("calls", &["in flight"]),
            ("one hart", &["sync fast", "sync slow", "async", "uintr/call", "async:sync"]),
            ("two harts", &["sync", "async", "uintr/call", "async:sync"]),
            ("two harts, armed", &["async", "uintr/call"]),
        ],
    );
    let published = Published::default();
    for concurrency in concurrencies(points) {
        let ours = |transport| find(points, load, transport, concurrency).map(Point::cycles);
        let interrupts =
            |transport| table::optional(find(points, load, transport, concurrency).map(Point::user_interrupts));
        let theirs = |transport| published.cycles(load, transport, concurrency);
        let cells = |head: String, of: &dyn Fn(Transport) -> Option<f64>, interrupts: &dyn Fn(Transport) -> String| {
            vec![
                head,
                table::optional(of(SyncFastpath)),
                table::optional(of(SyncSlowpath)),
                table::optional(of(AsyncUp)),
                interrupts(AsyncUp),
                table::ratio(of(AsyncUp), of(SyncFastpath)),
                table::optional(of(SyncSmp)),
                table::optional(of(AsyncSmp)),
                interrupts(AsyncSmp),
                table::ratio(of(AsyncSmp), of(SyncSmp)),
                table::optional(of(AsyncSmpArmed)),
                interrupts(AsyncSmpArmed),
            ]
        };
        table.row(cells(concurrency.to_string(), &ours, &interrupts));
        let their_interrupts = |transport| {
            table::optional(published.interrupts(load, transport, concurrency).map(|published| published.value))
        };
        table.published(cells("published".into(), &theirs, &their_interrupts));
    }
    table.note("async:sync below 1: the asynchronous call is cheaper; on one hart against the fast path.");
    table.note("uintr/call 0: one hart hands over by a switch; on two, whoever was to be woken was still looking, or slept in the kernel.");
    table.note("armed: nobody looks before it dozes, and none sleeps in the kernel: each wake is a user interrupt, as published.");
    if load == Load::None {
        table.note("published: reL4 on a 100 MHz Rocket FPGA, read off its chart.");
    }
    table
}

/// The figures, by file name.
pub fn charts(points: &[Point]) -> Vec<(&'static str, Chart)> {
    let published = Published::default();
    let line = |colour, name: String, is_dashed, value: &dyn Fn(u32) -> Option<f64>| Line {
        name,
        colour,
        dashed: is_dashed,
        points: concurrencies(points).into_iter().filter_map(|x| value(x).map(|y| (f64::from(x), y))).collect(),
    };
    let mut round_trip = Vec::new();
    for transport in Transport::PUBLISHED {
        let ours = |x| find(points, Load::None, transport, x);
        round_trip.push(line(transport as usize, transport.title().into(), false, &|x| ours(x).map(Point::cycles)));
        let theirs = |x| ours(x).and(published.cycles(Load::None, transport, x));
        round_trip.push(line(transport as usize, format!("{} (reL4)", transport.title()), true, &theirs));
    }
    let mut user_interrupts: Vec<Line> = [Transport::AsyncUp, Transport::AsyncSmp]
        .into_iter()
        .map(|transport| {
            let value = |x| find(points, Load::None, transport, x).map(Point::user_interrupts);
            line(transport as usize, transport.title().into(), true, &value)
        })
        .collect();
    for (colour, load) in FIGURE_LOADS.into_iter().enumerate() {
        let value = |x| find(points, load, Transport::AsyncSmpArmed, x).map(Point::user_interrupts);
        user_interrupts.push(line(colour, format!("armed, load {}", load.name()), false, &value));
    }
    let chart = |title: &str, y: &str, scale, lines| Chart {
        title: title.into(),
        x: "calls in flight".into(),
        y: y.into(),
        scale,
        lines,
    };
    vec![
        ("ipc-round-trip", chart("Null call between two processes", "cycles per call", Scale::Logarithmic, round_trip)),
        (
            "ipc-user-interrupts",
            chart("User interrupts of a call, by server load", "interrupts per call", Scale::Linear, user_interrupts),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(transport: Transport, concurrency: u32, cycles: u64, server_interrupts: u64) -> Point {
        let totals = Totals { concurrency, calls: 1000, cycles, client_interrupts: 0, server_interrupts };
        Point { transport, load: Load::None, totals }
    }

    #[test]
    fn every_published_point_of_the_sweep_is_there() {
        let published = Published::default();
        for transport in Transport::PUBLISHED {
            for concurrency in CONCURRENCIES {
                assert!(
                    published.round_trip(Load::None, transport, concurrency).is_some(),
                    "{transport:?} {concurrency}"
                );
            }
        }
        assert_eq!(published.cycles(Load::None, Transport::AsyncSmp, 32), Some(1370.0));
    }

    #[test]
    fn a_point_becomes_its_records() {
        let records =
            records(&[point(Transport::SyncFastpath, 1, 2_000_000, 0), point(Transport::AsyncUp, 32, 1_234_500, 62)]);
        let ids: Vec<_> = records.iter().map(|record| (record.id, record.value.0)).collect();
        assert_eq!(
            ids,
            [("ipc.round_trip", 2000.0), ("ipc.round_trip", 1234.5), ("ipc.user_interrupts", 0.062)],
            "no user interrupts for a synchronous call"
        );
        assert_eq!(records[1].published.map(|number| number.0), Some(1670.0));
    }

    #[test]
    fn the_table_has_a_ratio_on_each_row() {
        let points = [
            point(Transport::SyncFastpath, 4, 2_000_000, 0),
            point(Transport::AsyncUp, 4, 3_000_000, 500),
            point(Transport::SyncSmp, 4, 8_000_000, 0),
            point(Transport::AsyncSmp, 4, 2_000_000, 500),
        ];
        let text = table(&points, Load::None).render(table::Colour::Off);
        let row: Vec<_> =
            text.lines().find(|line| line.trim_start().starts_with('4')).unwrap().split_whitespace().collect();
        assert_eq!(row, ["4", "2", "000", "3", "000", "0.500", "1.50", "8", "000", "2", "000", "0.500", "0.25"]);
        assert!(text.contains("published"));
    }

    #[test]
    fn the_guest_s_line_is_checked() {
        let spec = Spec { transport: Transport::AsyncUp, concurrency: 4, load: Load::None, calls: 10, warmup: 0 };
        let point = |lines: &[&str]| {
            let results = lines.iter().map(|line| (*line).to_owned()).collect();
            spec.point(&Run { label: "x".into(), results, report: None, capture: None })
        };
        let good = r#"{"concurrency":4,"calls":10,"cycles":105,"client_interrupts":0,"server_interrupts":1}"#;
        assert_eq!(point(&[good]).unwrap().cycles(), 10.5);
        assert!(point(&[]).is_err());
        assert!(point(&[good, good]).is_err());
        assert!(point(&[r#"{"concurrency":4,"calls":10}"#]).is_err());
        assert!(
            point(&[r#"{"concurrency":8,"calls":10,"cycles":105,"client_interrupts":0,"server_interrupts":1}"#])
                .is_err()
        );
    }

    #[test]
    fn every_point_of_the_sweep_is_a_system() {
        for spec in Sweep::full(false).specs() {
            let manifest = spec.manifest().unwrap();
            assert!(manifest.system().is_ok(), "{spec:?}: {:?}", manifest.system());
        }
    }
}
