//! The published curves as statements that can fail: what falls, what stays flat, what crosses, and how often user interrupts come.
//!
//! Interrupts are counted on both sides; "at most one with one call in flight" is meant for each, since a call has two messages. One is
//! excused at each point: the question how many there were may have cost it. They are looked at twice: as our executors wait (`async-smp`: they look before they doze, so that most wakes need none) and as the
//! published ones do (`async-smp-armed`).

use crate::ipc::claims::{Claim, MANY, work};
use crate::ipc::{ALL_CONCURRENCIES, Load, Point, Transport, find};

/// How much dearer a call may be than with half as many in flight: what the placement of code and data in the cache moves.
const TOLERANCE: f64 = 1.05;

/// Calls in flight from which an overloaded server is said to be full.
const FULL: u32 = 8;

/// Our loads that overload the server.
const OVERLOADS: [Load; 2] = [Load::Five, Load::Thirty];

/// The claims about shapes. One about points that were not measured is left out.
pub fn claims(points: &[Point]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for transport in [Transport::AsyncUp, Transport::AsyncSmp] {
        for load in Load::ALL {
            let series = series(points, load, transport);
            if series.len() > 1 {
                claims.push(falls(transport, load, &series));
                claims.extend(OVERLOADS.contains(&load).then(|| flat(transport, load, &series)).flatten());
            }
        }
    }
    claims.extend(harts(points));
    // On one hart there are none, whatever is done: a peer that could be interrupted does not run.
    for transport in [Transport::AsyncSmp, Transport::AsyncSmpArmed] {
        for load in Load::ALL {
            let series = series(points, load, transport);
            if series.len() > 1 {
                claims.extend(interrupts(transport, load, &series));
            }
        }
        claims.extend(calmer_with_work(points, transport));
    }
    claims
}

fn claim(about: String, load: Load, ours: String, holds: bool) -> Claim {
    Claim { about, load, published: String::new(), ours, without_work: String::new(), holds }
}

/// The points of a curve, by calls in flight.
fn series(points: &[Point], load: Load, transport: Transport) -> Vec<&Point> {
    ALL_CONCURRENCIES.into_iter().filter_map(|calls| find(points, load, transport, calls)).collect()
}

fn falls(transport: Transport, load: Load, series: &[&Point]) -> Claim {
    let holds = series.windows(2).all(|pair| pair[1].cycles() <= pair[0].cycles() * TOLERANCE);
    let floor = series.iter().min_by(|a, b| a.cycles().total_cmp(&b.cycles())).expect("a curve has points");
    let last = series[series.len() - 1];
    let ours = format!(
        "{:.0} at {}, {:.0} at {}",
        floor.cycles(),
        floor.totals.concurrency,
        last.cycles(),
        last.totals.concurrency
    );
    claim(format!("{}: cost falls to a floor", transport.name()), load, ours, holds)
}

fn flat(transport: Transport, load: Load, series: &[&Point]) -> Option<Claim> {
    let full = series.iter().filter(|point| point.totals.concurrency >= FULL).map(|point| point.cycles());
    let (least, most) = (full.clone().min_by(f64::total_cmp)?, full.max_by(f64::total_cmp)?);
    let about = format!("{}: flat from {FULL} on", transport.name());
    Some(claim(about, load, format!("within {:.1} %", (most / least - 1.0) * 100.0), most <= least * TOLERANCE))
}

/// One hart beside two.
fn harts(points: &[Point]) -> Vec<Claim> {
    use Transport::{AsyncSmp, AsyncUp};
    let cycles = |load, transport, calls| find(points, load, transport, calls).map(Point::cycles);
    let best = |load, transport| {
        let many = series(points, load, transport).into_iter().filter(|point| point.totals.concurrency >= MANY);
        many.map(Point::cycles).min_by(f64::total_cmp)
    };
    let mut claims = Vec::new();
    if let (Some(one), Some(two)) = (cycles(Load::None, AsyncUp, 1), cycles(Load::None, AsyncSmp, 1)) {
        let ours = format!("{two:.0}, {one:.0}");
        claims.push(claim("two harts below one, one call in flight".into(), Load::None, ours, two <= one));
        if let (Some(one_many), Some(two_many)) =
            (cycles(Load::None, AsyncUp, MANY), cycles(Load::None, AsyncSmp, MANY))
        {
            let (few, many) = (one / two, one_many / two_many);
            let ours = format!("{few:.2} to {many:.2}");
            claims.push(claim("one hart catches up on two".into(), Load::None, ours, many < few));
        }
    }
    for load in Load::ALL.into_iter().filter(|load| *load != Load::None) {
        if let (Some(one), Some(two)) = (best(load, AsyncUp), best(load, AsyncSmp)) {
            claims.push(claim(
                "two harts below one, many in flight".into(),
                load,
                format!("{two:.0}, {one:.0}"),
                two <= one,
            ));
        }
    }
    for load in [Load::Two, Load::Ten] {
        if let (Some(idle), Some(loaded)) = (best(Load::None, AsyncSmp), best(load, AsyncSmp)) {
            let without_work = format!("{:.0}", loaded - work(points, load));
            let about = "async-smp: moderate work costs no more than none".into();
            let published = "1200, 1288".into();
            let ours = format!("{loaded:.0}, {idle:.0}");
            claims.push(Claim { about, load, published, ours, without_work, holds: loaded <= idle });
        }
    }
    claims
}

fn interrupts(transport: Transport, load: Load, series: &[&Point]) -> Vec<Claim> {
    let name = transport.name();
    let mut claims = Vec::new();
    let (first, last) = (series[0], series[series.len() - 1]);
    if first.totals.concurrency == 1 {
        let few = first.user_interrupts_at_least() <= 2.0;
        let falling = series.windows(2).all(|pair| pair[1].user_interrupts_at_least() <= pair[0].user_interrupts());
        let ours = format!("{:.2} to {:.3}", first.user_interrupts(), last.user_interrupts());
        claims.push(claim(format!("{name}: uintr/call <= 1 a side, falling"), load, ours, few && falling));
    }
    let at = |calls| series.iter().find(|point| point.totals.concurrency == calls).map(|point| point.user_interrupts());
    if let (Some(four), Some(eight), Some(sixteen)) = (at(4), at(8), at(16)) {
        let ours = format!("{sixteen:.3}, {eight:.3}, {four:.3}");
        let holds = four == 0.0 && eight == 0.0 && sixteen == 0.0 || sixteen < eight && eight < four;
        claims.push(claim(format!("{name}: uintr/call at 16 < 8 < 4"), load, ours, holds));
    }
    if OVERLOADS.contains(&load) {
        let full = series
            .iter()
            .filter(|point| point.totals.concurrency >= FULL)
            .map(|point| point.user_interrupts_at_least());
        if let Some(most) = full.max_by(f64::total_cmp) {
            claims.push(claim(format!("{name}: uintr/call 0 from {FULL} on"), load, format!("{most:.3}"), most == 0.0));
        }
    }
    claims
}

/// More work, fewer interrupts, at every number of calls in flight: said once, for the heaviest load measured.
fn calmer_with_work(points: &[Point], transport: Transport) -> Option<Claim> {
    let curves: Vec<(Load, Vec<&Point>)> = Load::ALL
        .into_iter()
        .map(|load| (load, series(points, load, transport)))
        .filter(|(_, series)| !series.is_empty())
        .collect();
    let heaviest = curves.last().filter(|_| curves.len() > 1)?.0;
    let pairs = curves.windows(2).flat_map(|pair| pair[0].1.iter().zip(&pair[1].1));
    let worse =
        pairs.clone().filter(|(light, heavy)| heavy.user_interrupts_at_least() > light.user_interrupts()).count();
    let ours = format!("{worse} of {} points more", pairs.count());
    Some(claim(format!("{}: uintr/call falls with the work", transport.name()), heaviest, ours, worse == 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipc::Totals;

    fn point(transport: Transport, load: Load, (concurrency, cycles, server_interrupts): (u32, u64, u64)) -> Point {
        let totals = Totals { concurrency, calls: 1, cycles, client_interrupts: 0, server_interrupts };
        Point { transport, load, totals }
    }

    fn verdict(points: &[Point], about: &str) -> Option<bool> {
        claims(points).into_iter().find(|claim| claim.about.contains(about)).map(|claim| claim.holds)
    }

    #[test]
    fn a_curve_that_rises_is_a_miss() {
        let series = |costs: [u64; 3]| {
            let points = [8, 16, 32].into_iter().zip(costs);
            points.map(|(calls, cost)| point(Transport::AsyncSmp, Load::Thirty, (calls, cost, 0))).collect::<Vec<_>>()
        };
        assert_eq!(verdict(&series([900, 500, 510]), "floor"), Some(true));
        assert_eq!(verdict(&series([900, 500, 510]), "flat"), Some(false));
        assert_eq!(verdict(&series([900, 500, 600]), "floor"), Some(false));
        assert_eq!(verdict(&series([900, 890, 910]), "flat"), Some(true));
    }

    #[test]
    fn interrupts_must_fall_with_calls_and_with_work() {
        let series = |load, counts: [u64; 3]| {
            let points = [4, 8, 16].into_iter().zip(counts);
            points.map(move |(calls, count)| point(Transport::AsyncSmpArmed, load, (calls, 1, count)))
        };
        let points = |light, heavy| series(Load::None, light).chain(series(Load::Thirty, heavy)).collect::<Vec<_>>();
        assert_eq!(verdict(&points([9, 8, 7], [0, 0, 0]), "16 < 8 < 4"), Some(true));
        assert_eq!(verdict(&points([9, 9, 7], [0, 0, 0]), "16 < 8 < 4"), Some(false));
        assert_eq!(verdict(&points([9, 8, 7], [2, 2, 0]), "0 from 8 on"), Some(false));
        assert_eq!(verdict(&points([9, 8, 7], [2, 1, 0]), "0 from 8 on"), Some(true), "the question cost one");
        assert_eq!(verdict(&points([9, 8, 7], [8, 0, 0]), "falls with the work"), Some(true));
        assert_eq!(verdict(&points([9, 8, 7], [11, 0, 0]), "falls with the work"), Some(false));
    }
}
