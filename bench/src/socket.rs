//! Sockets: requests per second and latency of a TCP server, synchronous against asynchronous.
//!
//! Repeats the experiment "TCP server" of reL4 (async network server): a generator on the wire keeps 1 to 32 connections
//! open and sends 64-byte requests on each, the next one when the reply has come; the server program is a client of the
//! network server in another process. Published on a 100 MHz Rocket with AXI Ethernet. Operations, with reL4's names:
//! `call` = request and reply.
//!
//! The same server program and the same network server run in every variant; the channel between them is an endpoint
//! (`sync`) or a pair of rings (`async`), on one hart or on two.
//!
//! Published shape, which `tests/shape.rs` checks: asynchronous sockets are faster in every cell, with the most on two
//! harts; the rate rises with the first few connections. Two published oddities are not wanted: the rate falls again beyond
//! 8 connections (their stack's first poll grows with merged packets), and `sync` on one hart is abnormally low at one.
//!
//! How a point is measured: the load generator lives in simulated time at the far end of a 1 Gb/s link. It checks every byte
//! of every reply; a wrong, missing or superfluous byte fails the run. Latency is from the first bit of the request leaving
//! the generator to the last bit of the reply reaching it.

use images::{Builder, Manifest};
use soc::wire::loadgen::{LoadGenConfig, PhaseReport};

use crate::boot::{Boot, Run};
use crate::error::Error;
use crate::figure::{Chart, Line, Scale};
use crate::published::Figures;
use crate::results::{Params, Record};
use crate::table::{self, Table};

/// Connections open at a time, of the published figure.
pub const CONNECTIONS: [u32; 6] = [1, 2, 4, 8, 16, 32];

/// Connections that the server program has places for at least: the same program at each point of the figure.
const PLACES: u32 = 32;

/// How the server program reaches the network server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Transport {
    /// Endpoint.
    Sync,
    /// Rings and user interrupts.
    Async,
}

impl Transport {
    /// Both, in the order of tables.
    pub const ALL: [Self; 2] = [Self::Sync, Self::Async];

    /// Its name in results and manifests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Async => "async",
        }
    }
}

/// Which points to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// Transports.
    pub transports: Vec<Transport>,
    /// Harts.
    pub harts: Vec<u32>,
    /// Connections open at a time.
    pub connections: Vec<u32>,
    /// Requests to time, for each connection.
    pub requests: u32,
    /// Requests before these, for each connection.
    pub warmup: u32,
}

impl Sweep {
    /// Every point of the published figure, with enough requests for a 99th percentile; `quick` without.
    pub fn new(quick: bool) -> Self {
        let (requests, warmup) = if quick { (10, 4) } else { (200, 20) };
        Self {
            transports: Transport::ALL.to_vec(),
            harts: vec![1, 2],
            connections: CONNECTIONS.to_vec(),
            requests,
            warmup,
        }
    }

    /// The boots, by harts and then by transport; each measures all numbers of connections, one after the other.
    pub fn specs(&self) -> Vec<Spec> {
        let of = |harts| {
            let spec = move |&transport| Spec {
                transport,
                harts,
                connections: self.connections.clone(),
                requests: self.requests,
                warmup: self.warmup,
            };
            self.transports.iter().map(spec)
        };
        self.harts.iter().flat_map(|&harts| of(harts)).collect()
    }
}

/// One boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    transport: Transport,
    harts: u32,
    connections: Vec<u32>,
    requests: u32,
    warmup: u32,
}

impl Spec {
    /// How many points it measures.
    pub fn points(&self) -> usize {
        self.connections.len()
    }

    /// The points in words, for a boot that is called `boot`.
    pub fn labels(&self, boot: &str) -> Vec<String> {
        let plural = |count: u32| if count == 1 { "" } else { "s" };
        self.connections.iter().map(|&count| format!("{boot}, {count} connection{}", plural(count))).collect()
    }

    /// The machine that measures the points; `captured` keeps the packets.
    ///
    /// # Errors
    /// If the parameters make no system, or its image cannot be built.
    pub fn boot(&self, captured: bool, builder: &mut Builder) -> Result<Boot, Error> {
        let label =
            format!("net {}, {} hart{}", self.transport.name(), self.harts, if self.harts == 1 { "" } else { "s" });
        let load = LoadGenConfig {
            connections: self.connections.clone(),
            requests: self.requests,
            warmup: self.warmup,
            ..LoadGenConfig::default()
        };
        Boot::new(label, &self.manifest()?, self.harts, builder)?.with_load(load, captured)
    }

    /// `images/echo.toml` with the transport and the harts of the boot: the network server on hart 0, its client on the last.
    ///
    /// # Errors
    /// If a manifest of this name cannot be read.
    pub fn manifest(&self) -> Result<Manifest, images::Error> {
        let mut manifest = Manifest::named("echo")?;
        manifest.rename(&format!("echo-{}-{}", self.transport.name(), self.harts));
        manifest.set("machine.harts", &self.harts.to_string())?;
        manifest.set("program.echo-server.hart", &(self.harts - 1).to_string())?;
        manifest.set("channel.net.transport", self.transport.name())?;
        // As many places as the largest point needs; over an endpoint each is a thread.
        let places = self.connections.iter().max().copied().unwrap_or(1).max(PLACES);
        manifest.set("program.echo-server.args.connections", &format!("\"{places}\""))?;
        manifest.set("program.echo-server.threads", &places.to_string())?;
        Ok(manifest)
    }

    /// The points, from the load generator's report.
    ///
    /// # Errors
    /// If a reply was wrong or missing.
    pub fn points_of(&self, run: &Run) -> Result<Vec<Point>, Error> {
        let fail = |reason: String| Error::Measurement { label: run.label.clone(), reason };
        let report = run.report.as_ref().ok_or_else(|| fail("no load generator was there".into()))?;
        if let Some(bad) = report.phases.iter().find(|phase| phase.errors > 0) {
            return Err(fail(format!("{} wrong or missing replies on {} connections", bad.errors, bad.connections)));
        }
        if report.finished.is_none() || report.phases.len() != self.connections.len() {
            return Err(fail(format!("the machine stopped after {} of {} phases", report.phases.len(), self.points())));
        }
        Ok(report.phases.iter().map(|phase| self.point(phase)).collect())
    }

    fn point(&self, phase: &PhaseReport) -> Point {
        let us = |time: soc::time::SimTime| time.as_ps() as f64 / 1e6;
        let latency = &phase.latency;
        Point {
            transport: self.transport,
            harts: self.harts,
            connections: phase.connections,
            rate: phase.requests as f64 * 1e12 / phase.elapsed.as_ps() as f64,
            latency: Latency {
                mean: us(latency.mean),
                p50: us(latency.p50),
                p99: us(latency.p99),
                p999: us(latency.p999),
            },
        }
    }
}

/// Latency of a request, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    /// Arithmetic mean.
    pub mean: f64,
    /// Half of all requests took no longer.
    pub p50: f64,
    /// 99 of 100 took no longer.
    pub p99: f64,
    /// 999 of 1000 took no longer.
    pub p999: f64,
}

/// One measured point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// How the server program reaches the network server.
    pub transport: Transport,
    /// Harts that the two share.
    pub harts: u32,
    /// Connections open at a time.
    pub connections: u32,
    /// Requests per second.
    pub rate: f64,
    /// How long a request took.
    pub latency: Latency,
}

impl Point {
    fn params(&self) -> Params {
        Params::new()
            .with("op", "call")
            .with("transport", self.transport.name())
            .with("harts", u64::from(self.harts))
            .with("connections", u64::from(self.connections))
    }
}

/// The published rates.
#[derive(Clone, Debug)]
pub struct Published(Figures);

impl Default for Published {
    fn default() -> Self {
        Self(Figures::parse(include_str!("../published/socket.csv")))
    }
}

impl Published {
    fn get(&self, transport: Transport, harts: u32, connections: u32) -> Option<crate::results::Published> {
        self.0.get(&[transport.name(), &harts.to_string(), &connections.to_string()])
    }

    fn rate(&self, transport: Transport, harts: u32, connections: u32) -> Option<f64> {
        self.get(transport, harts, connections).map(|published| published.value)
    }
}

/// The records of `points`: all rates, then all latencies.
pub fn records(points: &[Point]) -> Vec<Record> {
    let published = Published::default();
    let rates = points.iter().map(|point| {
        Record::new("socket.rate", point.params(), "operations/s", point.rate).beside(published.get(
            point.transport,
            point.harts,
            point.connections,
        ))
    });
    let latencies = points.iter().flat_map(|point| {
        let Latency { mean, p50, p99, p999 } = point.latency;
        [("mean", mean), ("p50", p50), ("p99", p99), ("p99.9", p999)].map(|(quantile, value)| {
            Record::new("socket.latency", point.params().with("quantile", quantile), "microseconds", value)
        })
    });
    rates.chain(latencies).collect()
}

/// The point of these parameters.
fn find(points: &[Point], transport: Transport, harts: u32, connections: u32) -> Option<&Point> {
    points.iter().find(|point| (point.transport, point.harts, point.connections) == (transport, harts, connections))
}

/// The (harts, connections) that occur, rising.
fn cells(points: &[Point]) -> Vec<(u32, u32)> {
    let mut all: Vec<_> = points.iter().map(|point| (point.harts, point.connections)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The table: a row for each number of harts and connections, the published one below it.
pub fn table(points: &[Point]) -> Table {
    let mut table = Table::new(
        "Sockets: 64-byte request and reply over TCP",
        &[
            ("", &["harts", "connections"]),
            ("requests per second", &["sync", "async", "async:sync"]),
            ("sync, microseconds", &["mean", "p50", "p99"]),
            ("async, microseconds", &["mean", "p50", "p99"]),
        ],
    );
    let published = Published::default();
    for (harts, connections) in cells(points) {
        let ours = |transport| find(points, transport, harts, connections);
        let latency = |transport| match ours(transport) {
            Some(Point { latency, .. }) => [latency.mean, latency.p50, latency.p99].map(table::number),
            None => Default::default(),
        };
        let rates = |[sync, asynchronous]: [Option<f64>; 2]| {
            [table::optional(sync), table::optional(asynchronous), table::ratio(asynchronous, sync)]
        };
        let head = [harts.to_string(), connections.to_string()];
        let [sync, asynchronous] = Transport::ALL.map(latency);
        let rate = rates(Transport::ALL.map(|transport| ours(transport).map(|point| point.rate)));
        table.row([&head[..], &rate, &sync, &asynchronous].concat());
        let rate = rates(Transport::ALL.map(|transport| published.rate(transport, harts, connections)));
        let none: [String; 6] = Default::default();
        table.published([&["".into(), "published".into()][..], &rate, &none].concat());
    }
    table.note("async:sync above 1: the asynchronous sockets are faster.");
    table.note("published: reL4 on a 100 MHz Rocket FPGA, read off its chart.");
    table
}

/// The figures, by file name.
pub fn charts(points: &[Point]) -> Vec<(&'static str, Chart)> {
    let published = Published::default();
    let cells = cells(points);
    let line = |colour, name: String, is_dashed, harts, value: &dyn Fn(u32) -> Option<f64>| Line {
        name,
        colour,
        dashed: is_dashed,
        points: cells
            .iter()
            .filter(|(of, _)| *of == harts)
            .filter_map(|&(_, x)| value(x).map(|y| (f64::from(x), y)))
            .collect(),
    };
    let mut rate = Vec::new();
    let mut latency = Vec::new();
    let variants = [1, 2].into_iter().flat_map(|harts| Transport::ALL.map(|transport| (transport, harts)));
    for (colour, (transport, harts)) in variants.enumerate() {
        let name = format!("{}, {}", transport.name(), if harts == 1 { "one hart" } else { "two harts" });
        let ours = |x| find(points, transport, harts, x);
        rate.push(line(colour, name.clone(), false, harts, &|x| ours(x).map(|point| point.rate)));
        let theirs = |x| ours(x).and(published.rate(transport, harts, x));
        rate.push(line(colour, format!("{name} (reL4)"), true, harts, &theirs));
        latency.push(line(colour, format!("{name}, mean"), false, harts, &|x| ours(x).map(|point| point.latency.mean)));
        latency.push(line(colour, format!("{name}, p99"), true, harts, &|x| ours(x).map(|point| point.latency.p99)));
    }
    let chart = |title: &str, y: &str, scale, lines| Chart {
        title: title.into(),
        x: "connections".into(),
        y: y.into(),
        scale,
        lines,
    };
    vec![
        ("socket-rate", chart("64-byte request and reply over TCP", "requests per second", Scale::Linear, rate)),
        ("socket-latency", chart("Latency of a 64-byte request over TCP", "microseconds", Scale::Logarithmic, latency)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(transport: Transport, harts: u32, connections: u32, rate: f64) -> Point {
        let latency = Latency { mean: 100.0, p50: 90.0, p99: 200.5, p999: 300.0 };
        Point { transport, harts, connections, rate, latency }
    }

    #[test]
    fn every_published_point_of_the_sweep_is_there() {
        let published = Published::default();
        for transport in Transport::ALL {
            for harts in [1, 2] {
                for connections in CONNECTIONS {
                    assert!(
                        published.get(transport, harts, connections).is_some(),
                        "{transport:?} {harts} {connections}"
                    );
                }
            }
        }
        assert_eq!(published.rate(Transport::Async, 2, 4), Some(2090.0));
    }

    #[test]
    fn a_point_becomes_one_rate_and_four_latencies() {
        let records = records(&[point(Transport::Async, 2, 8, 2500.5)]);
        let values: Vec<_> = records.iter().map(|record| (record.id, record.value.0)).collect();
        assert_eq!(values[0], ("socket.rate", 2500.5));
        assert_eq!(values[3], ("socket.latency", 200.5));
        assert_eq!(records.len(), 5);
        assert_eq!(records[0].published.map(|number| number.0), Some(2075.0));
        assert_eq!(records[3].params.get("quantile"), Some(&"p99".into()));
    }

    #[test]
    fn the_table_has_a_ratio_on_each_row() {
        let points = [point(Transport::Sync, 1, 8, 500.0), point(Transport::Async, 1, 8, 750.0)];
        let text = table(&points).render(table::Colour::Off);
        let row: Vec<_> = text.lines().nth(4).unwrap().split_whitespace().collect();
        assert_eq!(row, ["1", "8", "500", "750", "1.50", "100", "90.0", "200", "100", "90.0", "200"]);
    }

    #[test]
    fn every_boot_of_the_sweep_is_a_system() {
        for spec in Sweep::new(false).specs() {
            let manifest = spec.manifest().unwrap();
            assert!(manifest.system().is_ok(), "{spec:?}: {:?}", manifest.system());
        }
    }

    #[test]
    fn a_report_with_errors_gives_no_points() {
        use soc::time::SimTime;
        use soc::wire::loadgen::Report;
        let spec = Spec { transport: Transport::Sync, harts: 1, connections: vec![2], requests: 10, warmup: 0 };
        let phase =
            PhaseReport { connections: 2, requests: 20, elapsed: SimTime::from_us(10_000), ..PhaseReport::default() };
        let report =
            Report { phases: vec![phase.clone()], finished: Some(SimTime::from_us(20_000)), guest_ready: None };
        let points = |report| spec.points_of(&Run { label: "x".into(), results: vec![], report, capture: None });
        assert_eq!(points(Some(report.clone())).unwrap()[0].rate, 2000.0);
        assert!(points(None).is_err());
        assert!(points(Some(Report { finished: None, ..report.clone() })).is_err());
        let bad = PhaseReport { errors: 1, ..phase };
        assert!(points(Some(Report { phases: vec![bad], ..report })).is_err());
    }

    #[test]
    fn figures_can_be_drawn() {
        let points = [point(Transport::Sync, 1, 8, 500.0), point(Transport::Async, 2, 8, 750.0)];
        for (name, chart) in charts(&points) {
            assert!(chart.svg().is_ok(), "{name}");
        }
    }
}
