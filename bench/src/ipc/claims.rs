//! What reL4 claims about synchronous and asynchronous calls, claim by claim beside ours: pass or miss.
//!
//! # How much work is "moderate", and "overload"
//!
//! It is not published, but the ratios tell. On one hart both calls of a ratio contain the work W, so that with S and A for the calls without it,
//! (S + W) / (A + W) = r, hence W = (S - r A) / (r - 1). With S = 2,960 cycles and A = S / 1.7294 the ratios of the fast path give W = 32
//! ("moderate") and 1,510 ("overload"), those of the slow path 190 and 1,850; on two harts the synchronous call got dearer by 660 cycles with
//! moderate work (1,288 x 4.878 to 1,200 x 5.788). So moderate work is some hundred cycles and overload less than two thousand: our 2x2 and 5x5.
//! Each claim is held against these, and against 10x10 and 30x30, which are 13,600 and 376,000 cycles: there the work hides
//! any way to call, and no ratio far from 1 is possible. Therefore each factor is also given without the work, which is what the load
//! adds to a synchronous call alone.
//!
//! Shapes are in `shapes`.

use crate::ipc::{ALL_CONCURRENCIES, Load, MAX_THREADS, Point, Transport, find, shapes};
use crate::published::Figures;
use crate::results::{Params, Published, Record};
use crate::table::Table;

/// Calls in flight from which the published ratios hold.
pub const MANY: u32 = 64;

/// A published statement, held against ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// What is claimed.
    pub about: String,
    /// Under which load of ours.
    pub load: Load,
    /// The published figure, if the claim has one.
    pub published: String,
    /// Ours.
    pub ours: String,
    /// Ours without the server's work.
    pub without_work: String,
    /// Whether it holds here.
    pub holds: bool,
}

/// The claims, each with ours and a verdict. A claim about points that were not measured is left out.
pub fn table(points: &[Point]) -> Table {
    let mut table = Table::new(
        "IPC: published claims",
        &[("claim", &["load", "about"]), ("", &["published", "ours", "without work"]), ("", &["verdict"])],
    );
    let claims: Vec<Claim> = ratios(points).iter().map(Ratio::claim).chain(shapes::claims(points)).collect();
    let missed = claims.iter().filter(|claim| !claim.holds).count();
    let total = claims.len();
    for Claim { about, load, published, ours, without_work, holds } in claims {
        let verdict = if holds { "pass" } else { "miss" };
        table.row(vec![load.name().into(), about, published, ours, without_work, verdict.into()]);
    }
    table.note(&format!("{} of {total} hold.", total - missed));
    table.note("sync / async: synchronous over asynchronous call, the best from 64 calls in flight on.");
    table.note("without work: less what the load adds to a synchronous call on one hart.");
    table.note(
        "2x2 and 5x5 are about the published moderate work and overload; with 10x10 and more the work hides the call.",
    );
    if let Some(fast) = find(points, Load::None, Transport::SyncFastpath, 1).map(Point::cycles) {
        table.note(&format!(
            "on one hart a ratio falls as the synchronous call gets cheaper: ours takes {fast:.0} cycles, the published 2960."
        ));
    }
    table
}

/// The ratios as records.
pub fn records(points: &[Point]) -> Vec<Record> {
    let record = |ratio: Ratio| {
        let params = Params::new()
            .with("sync", ratio.pair.0.name())
            .with("async", ratio.pair.1.name())
            .with("load", ratio.load.name())
            .with("published_load", ratio.published_load);
        Record::new("ipc.advantage", params, "sync over async", ratio.ours).beside(Some(ratio.published))
    };
    ratios(points).into_iter().map(record).collect()
}

/// Which are compared.
const PAIRS: [(Transport, Transport); 3] = [
    (Transport::SyncFastpath, Transport::AsyncUp),
    (Transport::SyncSlowpath, Transport::AsyncUp),
    (Transport::SyncSmp, Transport::AsyncSmp),
];

/// The published loads, and ours that stand for them.
const LOADS: [(&str, &[Load]); 3] =
    [("none", &[Load::None]), ("moderate", &[Load::Two, Load::Ten]), ("overload", &[Load::Five, Load::Thirty])];

/// A published ratio beside ours.
struct Ratio {
    pair: (Transport, Transport),
    load: Load,
    published_load: &'static str,
    published: Published,
    ours: f64,
    without_work: Option<f64>,
}

impl Ratio {
    fn claim(&self) -> Claim {
        let cell = |factor: f64| format!("{factor:.2}");
        Claim {
            about: format!("{} / {}", self.pair.0.name(), self.pair.1.name()),
            load: self.load,
            published: cell(self.published.value),
            ours: cell(self.ours),
            without_work: self.without_work.map(cell).unwrap_or_default(),
            holds: self.ours >= self.published.value,
        }
    }
}

fn ratios(points: &[Point]) -> Vec<Ratio> {
    let figures = Figures::parse(include_str!("../../published/ipc-claims.csv"));
    let mut ratios = Vec::new();
    for (published_load, loads) in LOADS {
        for &load in loads {
            for pair in PAIRS {
                let published = figures.get(&[published_load, pair.0.name(), pair.1.name()]);
                let (Some(published), Some(ours)) = (published, ratio(points, load, pair, 0.0)) else { continue };
                let without_work = ratio(points, load, pair, work(points, load));
                ratios.push(Ratio { pair, load, published_load, published, ours, without_work });
            }
        }
    }
    ratios
}

/// The best ratio with many calls in flight, with `less` cycles taken from each side. More synchronous calls than threads in flight cost what
/// as many as threads cost.
fn ratio(points: &[Point], load: Load, pair: (Transport, Transport), less: f64) -> Option<f64> {
    let cycles = |transport, concurrency| find(points, load, transport, concurrency).map(|point| point.cycles() - less);
    let ratios = ALL_CONCURRENCIES
        .into_iter()
        .filter(|&concurrency| concurrency >= MANY)
        .filter_map(|concurrency| Some(cycles(pair.0, concurrency.min(MAX_THREADS))? / cycles(pair.1, concurrency)?));
    ratios.filter(|ratio| *ratio > 0.0).max_by(f64::total_cmp)
}

/// Cycles of the server's work for one call.
pub fn work(points: &[Point], load: Load) -> f64 {
    let alone = |load| find(points, load, Transport::SyncFastpath, 1).map(Point::cycles);
    match (alone(load), alone(Load::None)) {
        (Some(loaded), Some(unloaded)) => loaded - unloaded,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipc::Totals;
    use crate::table::Colour;

    fn point(transport: Transport, load: Load, concurrency: u32, cycles: u64) -> Point {
        let totals = Totals { concurrency, calls: 1, cycles, client_interrupts: 0, server_interrupts: 0 };
        Point { transport, load, totals }
    }

    #[test]
    fn a_ratio_passes_or_misses_and_the_work_can_be_taken_out() {
        let points = [
            point(Transport::SyncFastpath, Load::None, 1, 1000),
            point(Transport::SyncFastpath, Load::None, 64, 1000),
            point(Transport::AsyncUp, Load::None, 64, 500),
            point(Transport::SyncFastpath, Load::Ten, 1, 9000),
            point(Transport::SyncFastpath, Load::Ten, 64, 9000),
            point(Transport::AsyncUp, Load::Ten, 64, 8500),
        ];
        let text = table(&points).render(Colour::Off);
        let rows: Vec<Vec<&str>> = text
            .lines()
            .filter(|line| line.contains("sync-fastpath"))
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(rows[0], ["none", "sync-fastpath", "/", "async-up", "1.73", "2.00", "2.00", "pass"]);
        assert_eq!(rows[1], ["10x10", "sync-fastpath", "/", "async-up", "1.72", "1.06", "2.00", "miss"]);
        let records = records(&points);
        assert_eq!(records.iter().map(|record| record.value.0).collect::<Vec<_>>(), [2.0, 9000.0 / 8500.0]);
        assert_eq!(records[1].published.map(|number| number.0), Some(1.7159));
    }

    #[test]
    fn every_published_ratio_has_a_load_of_ours() {
        let figures = Figures::parse(include_str!("../../published/ipc-claims.csv"));
        for (load, _) in LOADS {
            assert!(PAIRS.iter().all(|pair| figures.get(&[load, pair.0.name(), pair.1.name()]).is_some()), "{load}");
        }
    }
}
