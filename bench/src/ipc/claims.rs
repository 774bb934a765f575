//! What reL4 claims about synchronous and asynchronous calls, claim by claim beside ours: pass or miss.
//!
//! Ratios: a synchronous call over an asynchronous one, the best of ours from 64 calls in flight on; more synchronous calls than 64
//! in flight cost what 64 cost. With a server load both
//! contain the work; published two-hart calls with "moderate work" cost 1,200 cycles, less than the work of our server, so
//! theirs seem not to contain it. Therefore each ratio is also given without the work, which is what the load adds to a synchronous
//! call alone.
//!
//! Shapes: more calls in flight never make an asynchronous call dearer; user interrupts per call are at most one with one in
//! flight, fall, and are none when the server is full.

use crate::ipc::{ALL_CONCURRENCIES, Load, MAX_THREADS, Point, Transport, find};
use crate::published::Figures;
use crate::table::Table;

/// Calls in flight from which the published ratios hold.
const MANY: u32 = 64;
/// How much dearer a call may be than with half as many in flight: what the placement of code and data in the cache moves.
const TOLERANCE: f64 = 1.05;

/// The claims, each with ours and a verdict. A claim about points that were not measured is left out.
pub fn table(points: &[Point]) -> Table {
    let mut table = Table::new(
        "IPC: published claims",
        &[("claim", &["load", "about"]), ("factor", &["published", "ours", "without work"]), ("", &["verdict"])],
    );
    let published = Figures::parse(include_str!("../../published/ipc-claims.csv"));
    for load in Load::ALL {
        for (sync, asynchronous) in PAIRS {
            let key = [load.name(), sync.name(), asynchronous.name()];
            let (Some(theirs), Some(ours)) = (published.get(&key), ratio(points, load, sync, asynchronous, 0.0)) else {
                continue;
            };
            let net = ratio(points, load, sync, asynchronous, work(points, load));
            let cell = |factor: f64| format!("{factor:.2}");
            table.row(vec![
                load.name().into(),
                format!("{} / {}", sync.name(), asynchronous.name()),
                cell(theirs.value),
                cell(ours),
                net.map(cell).unwrap_or_default(),
                verdict(ours >= theirs.value).into(),
            ]);
        }
    }
    for (about, load, holds) in shapes(points) {
        let blank = String::new;
        table.row(vec![load.name().into(), about, blank(), blank(), blank(), verdict(holds).into()]);
    }
    table.note("factor: synchronous over asynchronous call, the best from 64 calls in flight on.");
    table.note("without work: less what the load adds to a synchronous call on one hart.");
    table
}

/// Which are compared.
const PAIRS: [(Transport, Transport); 3] = [
    (Transport::SyncFastpath, Transport::AsyncUp),
    (Transport::SyncSlowpath, Transport::AsyncUp),
    (Transport::SyncSmp, Transport::AsyncSmp),
];

fn verdict(holds: bool) -> &'static str {
    if holds { "pass" } else { "miss" }
}

/// The best ratio with many calls in flight, with `less` cycles taken from each side.
fn ratio(points: &[Point], load: Load, sync: Transport, asynchronous: Transport, less: f64) -> Option<f64> {
    let cycles = |transport, concurrency| find(points, load, transport, concurrency).map(|point| point.cycles() - less);
    let ratios = ALL_CONCURRENCIES.into_iter().filter(|&concurrency| concurrency >= MANY).filter_map(|concurrency| {
        Some(cycles(sync, concurrency.min(MAX_THREADS))? / cycles(asynchronous, concurrency)?)
    });
    ratios.filter(|ratio| *ratio > 0.0).max_by(f64::total_cmp)
}

/// Cycles of the server's work for one call.
fn work(points: &[Point], load: Load) -> f64 {
    let alone = |load| find(points, load, Transport::SyncFastpath, 1).map(Point::cycles);
    match (alone(load), alone(Load::None)) {
        (Some(loaded), Some(unloaded)) => loaded - unloaded,
        _ => 0.0,
    }
}

/// The claims about shapes: what, under which load, and whether it holds.
fn shapes(points: &[Point]) -> Vec<(String, Load, bool)> {
    let mut shapes = Vec::new();
    for transport in [Transport::AsyncUp, Transport::AsyncSmp] {
        for load in Load::ALL {
            let series: Vec<&Point> =
                ALL_CONCURRENCIES.into_iter().filter_map(|calls| find(points, load, transport, calls)).collect();
            let Some(first) = series.first().filter(|_| series.len() > 1) else { continue };
            let name = transport.name();
            let cheaper = series.windows(2).all(|pair| pair[1].cycles() <= pair[0].cycles() * TOLERANCE);
            shapes.push((format!("{name}: cost falls to a floor"), load, cheaper));
            let calmer = series.windows(2).all(|pair| pair[1].user_interrupts() <= pair[0].user_interrupts());
            let few = first.user_interrupts() <= 1.0;
            shapes.push((format!("{name}: uintr/call <= 1, falling"), load, few && calmer));
            if load == Load::Overload {
                let full = series.iter().filter(|point| point.totals.concurrency >= 8);
                let none = full.clone().all(|point| point.user_interrupts() == 0.0);
                shapes.push((format!("{name}: uintr/call 0 from 8 on"), load, none));
            }
        }
    }
    shapes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipc::Totals;
    use crate::table::Colour;

    fn point(transport: Transport, load: Load, concurrency: u32, cycles: u64) -> Point {
        Point { transport, load, totals: Totals { concurrency, calls: 1, cycles, user_interrupts: 0 } }
    }

    #[test]
    fn a_ratio_passes_or_misses_and_the_work_can_be_taken_out() {
        let points = [
            point(Transport::SyncFastpath, Load::None, 1, 1000),
            point(Transport::SyncFastpath, Load::None, 64, 1000),
            point(Transport::AsyncUp, Load::None, 64, 500),
            point(Transport::SyncFastpath, Load::Moderate, 1, 9000),
            point(Transport::SyncFastpath, Load::Moderate, 64, 9000),
            point(Transport::AsyncUp, Load::Moderate, 64, 8500),
        ];
        let text = table(&points).render(Colour::Off);
        let rows: Vec<Vec<&str>> = text
            .lines()
            .filter(|line| line.contains("sync-fastpath"))
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(rows[0], ["none", "sync-fastpath", "/", "async-up", "1.73", "2.00", "2.00", "pass"]);
        assert_eq!(rows[1], ["10x10", "sync-fastpath", "/", "async-up", "1.72", "1.06", "2.00", "miss"]);
    }

    #[test]
    fn a_curve_that_rises_is_a_miss() {
        let series = |costs: [u64; 3]| {
            let points = [8, 16, 32].into_iter().zip(costs);
            points.map(|(calls, cost)| point(Transport::AsyncSmp, Load::Overload, calls, cost)).collect::<Vec<_>>()
        };
        let verdicts = |costs| shapes(&series(costs)).into_iter().map(|(_, _, holds)| holds).collect::<Vec<_>>();
        assert_eq!(verdicts([900, 500, 510]), [true, true, true]);
        assert_eq!(verdicts([900, 500, 600]), [false, true, true]);
    }
}
