//! Calibration of the timing model: the microbenchmarks of `soc/guest` beside cycles measured on generated Rocket RTL.
//!
//! The programs (`rocket`, `coherence`, `switch`) print one line per point; `published/rocket.csv` holds the RTL's cycles, the goal in
//! percent, and for a point that misses its goal the reason. [`Point::verdict`] holds both ways: a point without a reason
//! must be within its goal, and a reason must not outlive the deviation. `bench/tests/calibrate.rs` checks every point.
//! The second part is the NIC: every cell of the published transmit tables, see [`crate::nic`].

use std::collections::BTreeMap;
use std::sync::LazyLock;

use images::Builder;
use serde::Deserialize;

use crate::boot::{self, Boot};
use crate::error::Error;
use crate::jobs;
use crate::nic::{self, Software};
use crate::published::cells;
use crate::results::{self, Machine, Params, Published, Record, Summary};
use crate::table::{self, Colour, Table};
use crate::tour::{self, Output};

/// A published point.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Program of `soc/guest`.
    pub program: String,
    /// Its name for the point.
    pub name: String,
    /// Memory read latency, core cycles.
    pub rl: u32,
    /// Memory write latency, core cycles.
    pub wl: u32,
    /// What the RTL takes.
    pub cycles: f64,
    /// Percent within which we must be.
    pub goal: f64,
    /// Which RTL.
    pub source: String,
    /// Why we are not; empty if we are.
    pub why: String,
}

impl Row {
    /// The machine that measures it: program, harts, latencies.
    pub(crate) fn machine(&self) -> (String, u32, u32) {
        (self.program.clone(), self.rl, self.wl)
    }
}

/// The published points, in the order of the file.
static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let text = include_str!("../published/rocket.csv");
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).skip(1);
    lines.map(row).collect()
});

/// # Panics
/// If the row is malformed: the file is compiled in, and a test reads it.
pub(crate) fn row(line: &str) -> Row {
    let Ok([program, name, rl, wl, cycles, goal, source, why]) = <[String; 8]>::try_from(cells(line)) else {
        panic!("`{line}` has not eight cells")
    };
    let number = |cell: &str| cell.parse().unwrap_or_else(|_| panic!("`{cell}` in `{line}` is no number"));
    let latency = |cell: &str| cell.parse().unwrap_or_else(|_| panic!("`{cell}` in `{line}` is no latency"));
    Row { program, name, rl: latency(&rl), wl: latency(&wl), cycles: number(&cycles), goal: number(&goal), source, why }
}

/// A line of a program's output.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    point: String,
    cycles: u64,
    copies: u64,
}

/// One point, measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// What was published.
    pub row: Row,
    /// Our cycles.
    pub ours: f64,
}

/// Difference of `ours` to `reference` in percent; below one cycle, in hundredths of a cycle.
pub(crate) fn percent(ours: f64, reference: f64) -> f64 {
    (ours - reference) / reference.max(1.0) * 100.0
}

impl Point {
    /// Difference to the published value in percent.
    pub fn error(&self) -> f64 {
        percent(self.ours, self.row.cycles)
    }

    /// Within its goal.
    pub fn within(&self) -> bool {
        self.error().abs() <= self.row.goal
    }

    /// What is wrong with the point, if anything is.
    pub fn verdict(&self) -> Result<(), String> {
        let Row { name, rl, wl, cycles, goal, why, .. } = &self.row;
        let place = format!("{name} (rl {rl}, wl {wl}): ours {}, published {cycles}", self.ours);
        match (self.within(), why.is_empty()) {
            (false, true) => Err(format!("{place}: not within {goal} %")),
            (true, false) => Err(format!("{place}: within {goal} %, so the reason `{why}` must go")),
            _ => Ok(()),
        }
    }
}

/// What has been measured.
pub struct Measured {
    /// In the order of the file.
    pub points: Vec<Point>,
    /// The programs that ran, with their SHA-256.
    pub(crate) images: Vec<(String, [u8; 32])>,
}

/// The points that a program has printed, with the cycles of one copy.
///
/// # Errors
/// A line is no point.
pub(crate) fn cycles(label: &str, lines: &[String]) -> Result<BTreeMap<String, f64>, Error> {
    let point = |text: &String| {
        let fail = |reason| Error::Measurement { label: label.to_owned(), reason };
        let line: Line = serde_json::from_str(text).map_err(|error| fail(format!("{error} in `{text}`")))?;
        Ok((line.point, line.cycles as f64 / line.copies as f64))
    };
    lines.iter().map(point).collect()
}

/// Measures every published point.
///
/// # Errors
/// A program does not compile, fails, or does not print a point.
pub fn measure(builder: &mut Builder) -> Result<Measured, Error> {
    let mut machines: BTreeMap<(String, u32, u32), Vec<&Row>> = BTreeMap::new();
    for row in ROWS.iter() {
        machines.entry(row.machine()).or_default().push(row);
    }
    let mut boots = Vec::new();
    for (program, rl, wl) in machines.keys() {
        let harts = if program == "coherence" { 4 } else { 1 };
        boots.push(Boot::bare(program, harts, (*rl, *wl), builder)?);
    }
    let runs = jobs::run(&boots, jobs::workers(), boot::run)?;
    let mut measured = BTreeMap::new();
    for (run, machine) in runs.iter().zip(machines.keys()) {
        measured.insert(machine.clone(), cycles(&run.label, &run.results)?);
    }
    let point = |row: &Row| {
        let ours = measured.get(&row.machine()).and_then(|points| points.get(&row.name)).copied();
        let label = format!("calibration, {}", row.program);
        let ours = ours.ok_or_else(|| Error::Measurement { label, reason: format!("no point `{}`", row.name) })?;
        Ok(Point { row: row.clone(), ours })
    };
    let points = ROWS.iter().map(point).collect::<Result<_, Error>>()?;
    let mut images: Vec<_> = boots.iter().map(|boot| (boot.name.clone(), boot.digest())).collect();
    images.dedup();
    Ok(Measured { points, images })
}

/// The records of `points`.
pub fn records(points: &[Point]) -> Vec<Record> {
    let record = |Point { row, ours }: &Point| {
        let params = Params::new()
            .with("name", row.name.as_str())
            .with("tier", "A")
            .with("rl", u64::from(row.rl))
            .with("wl", u64::from(row.wl));
        let published = Published { value: row.cycles, source: row.source.clone() };
        Record::new("calibrate.point", params, "cycles", *ours).beside(Some(published))
    };
    points.iter().map(record).collect()
}

/// The records of the NIC's cells, in cycles of a packet.
fn nic_records(points: &[nic::Point]) -> Vec<Record> {
    let record = |point: &nic::Point| {
        let params = Params::new().with("name", point.name.as_str()).with("tier", "nic");
        Record::new("calibrate.point", params, "cycles", point.ours).beside(Some(point.published.clone()))
    };
    points.iter().map(record).collect()
}

/// How far the NIC's cells are off.
fn nic_verdict(points: &[nic::Point]) -> String {
    let within = |percent: f64| points.iter().filter(|point| point.error.abs() <= percent).count();
    let mean = points.iter().map(|point| point.error.abs()).sum::<f64>() / points.len() as f64;
    let count = points.len();
    format!("{} of {count} cells within 5 %, {} within 10 %; mean error {mean:.1} %.", within(5.0), within(10.0))
}

/// Every point, and how many are within their goals.
pub fn table(points: &[Point]) -> Table {
    let columns = ["rl", "wl", "ours", "published", "error %", "goal %", ""];
    let mut table = Table::new("Timing model: cycles beside Rocket RTL", &[("", &["point"]), ("", &columns)]);
    for point in points {
        let Point { row, ours } = point;
        table.row(vec![
            row.name.clone(),
            row.rl.to_string(),
            row.wl.to_string(),
            table::number(*ours),
            table::number(row.cycles),
            format!("{:+.1}", point.error()),
            table::number(row.goal),
            if point.within() { String::new() } else { "off".into() },
        ]);
    }
    let within = points.iter().filter(|point| point.within()).count();
    table.note(&format!("{within} of {} points are within their goals.", points.len()));
    for Point { row, .. } in points.iter().filter(|point| !point.within()) {
        let why = if row.why.is_empty() { "not explained" } else { &row.why };
        table.note(&format!("{} (rl {}, wl {}): {why}", row.name, row.rl, row.wl));
    }
    table
}

/// Measures, writes `target/results/calibrate.json` and prints.
///
/// # Errors
/// As [`measure`], and files that cannot be written.
pub fn run(output: Output) -> Result<(), Error> {
    let mut builder = Builder::new()?;
    let Measured { points, mut images } = measure(&mut builder)?;
    let nic = nic::measure(&mut builder)?;
    images.push(nic.image.clone());
    let machine = Machine { harts: 4, ..boot::machine() };
    let all = [records(&points), nic_records(&nic.points())].concat();
    let summary = Summary::new(tour::commit(), &images, machine, boot::SEED, all);
    let text = match output {
        Output::Json => summary.to_json(),
        Output::Tables => {
            let colour = Colour::of_stdout();
            let mut rates = nic.table(Software::Board);
            rates.note(&nic_verdict(&nic.points()));
            format!("{}\n{}\n", table(&points).render(colour), rates.render(colour))
        }
    };
    results::write_and_print(&builder, "calibrate", &summary, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(ours: f64, why: &str) -> Point {
        let row = row(&format!("rocket,x,1,1,20,5,RTL,{why}"));
        Point { row, ours }
    }

    #[test]
    fn a_point_is_within_its_goal_or_explained_but_not_both() {
        assert_eq!(point(21.0, "").verdict(), Ok(()));
        assert!(point(21.1, "").verdict().is_err());
        assert_eq!(point(18.0, "known").verdict(), Ok(()));
        assert!(point(19.0, "known").verdict().is_err());
    }

    #[test]
    fn rows_are_distinct() {
        let mut keys: Vec<_> = ROWS.iter().map(|row| (row.machine(), &row.name)).collect();
        keys.sort();
        assert!(keys.windows(2).all(|pair| pair[0] != pair[1]));
        assert!(keys.len() > 200);
    }
}
