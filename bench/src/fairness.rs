//! Fair service: what honest clients get of a server, and how long they wait, beside one that floods it.
//!
//! Nothing was published; the goals are the project's own. Client 0 keeps 512 calls in flight, the server works about 2,100 cycles for each
//! request (5x5), so that it is what everybody waits for. Deficit round robin (`libipc/src/serve.rs`) should then leave
//! everybody a share by weight, and a client that asks now and then should hardly notice.
//!
//! | experiment | clients | record | goal |
//! |---|---|---|---|
//! | equal shares | 64 with the flooding one, the others with 16 calls in flight: 1,520 in all | `ipc.fairness`, `ipc.fairness.least_share` | Jain's index 0.99, the worst honest client 95 % of its fair share |
//! | weighted shares | 8, weights 1, 1, 2, 4, twice; 32 in flight | the same, of calls divided by weight | the same |
//! | waiting | 6 on harts of their own, a call every 150,000 cycles on average | `ipc.fairness.p99_ratio` | the 99th percentile at most twice that without the flood |
//!
//! Shares are counted by the server, over a window in which everybody always asks. Jain's index is (sum x)^2 / (n sum x^2) (Jain, Chiu and Hawe,
//! 1984): 1 if all x are equal, 1/n if one client has everything.

use images::{Builder, Manifest};
use serde::Deserialize;

use crate::boot::{Boot, Run};
use crate::error::Error;
use crate::results::{Params, Record};
use crate::table::Table;

/// Calls that the flooding client keeps in flight.
const FLOOD: u32 = 512;
/// Requests before the counted ones, when everybody has come.
const WARMUP: u64 = 1_000;
/// Microseconds between two calls of a client that is not in a hurry.
const PAUSE: u64 = 1_500;
/// Least index and least share, greatest ratio of waits.
const GOALS: (f64, f64, f64) = (0.99, 0.95, 2.0);

/// One machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    clients: u32,
    /// The first of them floods.
    flooded: bool,
    /// Calls in flight of an honest client; 0: now and then one.
    depth: u32,
    /// By channel, repeated.
    weights: &'static [u32],
    /// Harts beside the server's; the flooding client has the first of them for itself.
    harts: u32,
    measured: u64,
}

impl Spec {
    /// All machines; `quick` with fewer clients and requests.
    pub fn all(quick: bool) -> Vec<Self> {
        let clients = if quick { 16 } else { 64 };
        let shares = Self { clients, flooded: true, depth: 16, weights: &[1], harts: 3, measured: 12_800 };
        let weighted = Self { clients: 8, depth: 32, weights: &[1, 1, 2, 4], ..shares };
        let flooded = Self { clients: 7, depth: 0, harts: 7, measured: 25_600, ..shares };
        let alone = Self { flooded: false, measured: 2_400, ..flooded };
        let fewer = |spec: Self| Self { measured: if quick { spec.measured / 4 } else { spec.measured }, ..spec };
        [shares, weighted, flooded, alone].map(fewer).to_vec()
    }

    /// The machine that measures it.
    ///
    /// # Errors
    /// If its image cannot be built.
    pub fn boot(&self, builder: &mut Builder) -> Result<Boot, Error> {
        let Self { clients, flooded, depth, .. } = self;
        let label = format!("fairness, {clients} clients, depth {depth}{}", if *flooded { ", flooded" } else { "" });
        Boot::new(label, &self.manifest()?, self.harts + 1, builder)
    }

    /// `images/fairness.toml` with as many clients, on their harts.
    ///
    /// # Errors
    /// If a manifest of this name cannot be read.
    pub fn manifest(&self) -> Result<Manifest, images::Error> {
        let mut manifest = Manifest::named("fairness")?;
        let Self { clients, flooded, depth, weights, harts, measured } = *self;
        let kind = if flooded { "flooded" } else { "alone" };
        manifest.rename(&format!("fairness-{clients}-{depth}-{kind}"));
        let mut set = |key: &str, value: String| manifest.set(key, &format!("\"{value}\""));
        set("program.server.args.measured", measured.to_string())?;
        set("program.server.args.warmup", if flooded { WARMUP } else { WARMUP / 4 }.to_string())?;
        set("program.server.args.weights", weights.iter().map(u32::to_string).collect::<Vec<_>>().join(" "))?;
        set("machine.memory", "256M".into())?;
        manifest.set("machine.harts", &(harts + 1).to_string())?;
        let (depth, pause) = if depth == 0 { (1, PAUSE) } else { (depth, 0) };
        manifest.set("program.client-01.args", &format!("{{ depth = \"{depth}\", pause = \"{pause}\" }}"))?;
        manifest.set("channel.c-01.entries", &depth.next_power_of_two().max(2).to_string())?;
        if !flooded {
            // One of the others, in its place: what is compared is the flood, not one client more.
            manifest.copy("program.client-01.args", "program.flood.args")?;
        }
        for client in 1..clients {
            let name = format!("client-{client:02}");
            if client > 1 {
                manifest.copy("program.client-01", &format!("program.{name}"))?;
                manifest.copy("channel.c-01", &format!("channel.c-{client:02}"))?;
                manifest.set(&format!("channel.c-{client:02}.client"), &name)?;
            }
            manifest.set(&format!("program.{name}.hart"), &(2 + (client - 1) % (harts - 1)).to_string())?;
        }
        Ok(manifest)
    }

    /// The point, from what the guests have printed.
    ///
    /// # Errors
    /// If they have not printed the totals of this point.
    pub fn point(&self, run: &Run) -> Result<Point, Error> {
        let fail = |reason: String| Error::Measurement { label: run.label.clone(), reason };
        let lines: Result<Vec<Line>, Error> = run
            .results
            .iter()
            .map(|line| serde_json::from_str(line).map_err(|error| fail(format!("{error} in `{line}`"))))
            .collect();
        let (mut served, mut waits) = (Vec::new(), Vec::new());
        for line in lines? {
            match line {
                Line::Server { served: counts } => served.extend(counts),
                Line::Client { client, p99, .. } => waits.push((client, p99)),
            }
        }
        if (served.len(), served.iter().sum()) != (self.clients as usize, self.measured) || waits.len() != served.len()
        {
            return Err(fail(format!("the guests measured something else: {:?}", run.results)));
        }
        let honest = waits.iter().filter(|(client, _)| *client > 0);
        let p99 = honest.map(|(_, p99)| *p99).max().unwrap_or(0);
        Ok(Point { spec: *self, served, p99 })
    }
}

/// What a guest prints.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Line {
    Server { served: Vec<u64> },
    Client { client: usize, p99: u64 },
}

/// What was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    spec: Spec,
    /// Requests served in the window, by client.
    served: Vec<u64>,
    /// 99th percentile of what a call of the worst honest client takes, in cycles.
    p99: u64,
}

impl Point {
    /// Harts of the machine.
    pub fn harts(&self) -> u32 {
        self.spec.harts + 1
    }

    /// Requests served by weight.
    fn shares(&self) -> Vec<f64> {
        let weights = self.spec.weights.iter().cycle();
        self.served.iter().zip(weights).map(|(served, weight)| *served as f64 / f64::from(*weight)).collect()
    }

    /// Jain's index of the shares.
    pub fn jain(&self) -> f64 {
        let (sum, squares) = self.shares().iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
        sum * sum / (self.served.len() as f64 * squares)
    }

    /// What the worst honest client got of its fair share.
    pub fn least_share(&self) -> f64 {
        let weights: u32 = self.spec.weights.iter().cycle().take(self.served.len()).sum();
        let fair = self.served.iter().sum::<u64>() as f64 / f64::from(weights);
        self.shares()[1..].iter().copied().fold(f64::INFINITY, f64::min) / fair
    }

    fn is_about_shares(&self) -> bool {
        self.spec.depth > 0
    }

    fn params(&self) -> Params {
        let weights = self.spec.weights.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
        Params::new()
            .with("clients", u64::from(self.spec.clients))
            .with("flooding", u64::from(FLOOD))
            .with("weights", weights.as_str())
    }
}

/// The 99th percentile with the flood over that without, if both were measured.
fn p99_ratio(points: &[Point]) -> Option<(&Point, &Point, f64)> {
    let waiting = |flooded| points.iter().find(|point| !point.is_about_shares() && point.spec.flooded == flooded);
    let (flooded, alone) = (waiting(true)?, waiting(false)?);
    Some((flooded, alone, flooded.p99 as f64 / alone.p99 as f64))
}

/// The records of `points`.
pub fn records(points: &[Point]) -> Vec<Record> {
    let shares = points.iter().filter(|point| point.is_about_shares()).flat_map(|point| {
        [
            Record::new("ipc.fairness", point.params(), "Jain's index", point.jain()),
            Record::new("ipc.fairness.least_share", point.params(), "of the fair share", point.least_share()),
        ]
    });
    let waits = p99_ratio(points)
        .map(|(flooded, _, ratio)| Record::new("ipc.fairness.p99_ratio", flooded.params(), "flooded over not", ratio));
    shares.chain(waits).collect()
}

/// The statements, each with its goal and a verdict.
pub fn table(points: &[Point]) -> Table {
    let mut table = Table::new(
        "Fair service beside a client with 512 calls in flight",
        &[("", &["clients", "weights", "what"]), ("", &["ours", "goal"]), ("", &["verdict"])],
    );
    for (point, what, value, goal, holds) in verdicts(points) {
        let weights = point.spec.weights.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
        let clients = point.spec.clients.to_string();
        let verdict = if holds { "pass" } else { "miss" };
        table.row(vec![clients, weights, what.into(), format!("{value:.3}"), goal, verdict.into()]);
    }
    if let Some((flooded, alone, _)) = p99_ratio(points) {
        table.note(&format!("99 % of the calls take at most {} cycles, {} beside the flood.", alone.p99, flooded.p99));
    }
    table
}

/// Point, what of it, ours, the goal in words, whether it is reached.
fn verdicts(points: &[Point]) -> Vec<(&Point, &'static str, f64, String, bool)> {
    let (index, share, wait) = GOALS;
    let mut verdicts = Vec::new();
    for point in points.iter().filter(|point| point.is_about_shares()) {
        let (jain, least) = (point.jain(), point.least_share());
        verdicts.push((point, "Jain's index", jain, format!("{index} or more"), jain >= index));
        verdicts.push((point, "least share", least, format!("{share} or more"), least >= share));
    }
    if let Some((flooded, _, ratio)) = p99_ratio(points) {
        verdicts.push((flooded, "p99, flooded over not", ratio, format!("{wait:.0} or less"), ratio <= wait));
    }
    verdicts
}

/// What misses its goal, in words.
pub fn misses(points: &[Point]) -> Vec<String> {
    let missed = verdicts(points).into_iter().filter(|(.., holds)| !holds);
    missed.map(|(point, what, value, goal, _)| format!("{:?}: {what} {value}, not {goal}", point.spec)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(weights: &'static [u32], served: &[u64]) -> Point {
        let spec = Spec { clients: served.len() as u32, weights, ..Spec::all(true)[0] };
        Point { spec, served: served.to_vec(), p99: 0 }
    }

    #[test]
    fn shares_are_by_weight_and_the_flood_is_none_of_the_honest() {
        let fair = shares(&[1, 3], &[100, 300, 100, 300]);
        assert_eq!((fair.jain(), fair.least_share()), (1.0, 1.0));
        assert!(misses(&[fair]).is_empty());
        let hogged = shares(&[1], &[700, 100, 100, 100]);
        assert_eq!((hogged.jain(), hogged.least_share()), (1e6 / 4.0 / 520_000.0, 0.4));
        assert_eq!(misses(&[hogged]).len(), 2);
        assert_eq!(shares(&[1], &[50, 100, 100, 150]).least_share(), 1.0, "the flooding client may get less");
    }

    #[test]
    fn waits_are_compared_with_those_without_the_flood() {
        let [_, _, flooded, alone] = Spec::all(true)[..] else { panic!("four machines") };
        let point = |spec, p99| Point { spec, served: vec![], p99 };
        assert!(misses(&[point(alone, 100), point(flooded, 200)]).is_empty());
        let slow = [point(alone, 100), point(flooded, 201)];
        assert_eq!((misses(&slow).len(), records(&slow).len()), (1, 1));
    }

    #[test]
    fn every_machine_is_a_system_and_the_lines_are_checked() {
        for spec in Spec::all(true) {
            let manifest = spec.manifest().unwrap();
            assert!(manifest.system().is_ok(), "{spec:?}: {:?}", manifest.system());
        }
        let spec = Spec { clients: 2, measured: 30, ..Spec::all(true)[0] };
        let lines = [
            r#"{"served":[10,20]}"#,
            r#"{"client":0,"calls":9,"p50":1,"p99":5}"#,
            r#"{"client":1,"calls":9,"p50":1,"p99":7}"#,
        ];
        let point = |lines: &[&str]| {
            let results = lines.iter().map(|line| (*line).to_owned()).collect();
            spec.point(&Run { label: "x".into(), results, report: None, capture: None })
        };
        assert_eq!(point(&lines).unwrap().p99, 7);
        assert!(point(&lines[..2]).is_err(), "a client is missing");
        assert!(point(&lines[1..]).is_err(), "the server is missing");
    }
}
