//! The calibration against the RTL itself, live: the same binaries on generated Rocket and on the soc, cycles side by side.
//!
//! `published/rocket.csv` stores what the RTL takes, so that `make calibrate` and its test need no simulator; here the stored
//! cycles are measured again. A point is right if both what is stored and ours are within its goal, ours also if it has a reason.
//! (Random replacement makes a few points move with the layout of the program.) What the RTL cannot show is left out: `switch`
//! (40 million cycles) and the NIC. The test programs of the instruction set (`isa`) must pass there, too.

mod simulator;

use std::collections::{BTreeMap, BTreeSet};

use images::Builder;

use crate::boot::{self, Boot};
use crate::calibrate::{self, Measured, Point};
use crate::error::Error;
use crate::jobs;
use crate::results::{self, Machine, Params, Published, Record, Summary};
use crate::table::{self, Colour, Table};
use crate::tour::{self, Output};
use simulator::{Configuration, Simulator};

/// A point with what the RTL takes now.
#[derive(Clone, Debug, PartialEq)]
pub struct Live {
    /// The stored value and ours.
    pub point: Point,
    /// The RTL's cycles.
    pub rtl: f64,
}

impl Live {
    /// Difference of ours to the RTL in percent.
    fn error(&self) -> f64 {
        calibrate::percent(self.point.ours, self.rtl)
    }

    fn within(&self) -> bool {
        self.error().abs() <= self.point.row.goal
    }

    /// What is wrong with the point, if anything is.
    pub fn verdict(&self) -> Result<(), String> {
        let Point { row, ours } = &self.point;
        let place = format!("{} (rl {}, wl {}): the RTL takes {}", row.name, row.rl, row.wl, self.rtl);
        if calibrate::percent(row.cycles, self.rtl).abs() > row.goal {
            return Err(format!("{place}, stored are {}", row.cycles));
        }
        if !self.within() && row.why.is_empty() {
            return Err(format!("{place}, ours {ours}: not within {} %", row.goal));
        }
        Ok(())
    }
}

/// Which RTL runs a program; none if it is too long for it.
fn configuration(program: &str) -> Option<Configuration> {
    match program {
        "rocket" => Some(Configuration::OneHart),
        "coherence" => Some(Configuration::FourHarts),
        _ => None,
    }
}

/// Measures the points of `measured` on the RTL too; none if something is not installed, which it says.
fn measure(builder: &mut Builder, measured: &[Point]) -> Result<Option<Vec<Live>>, Error> {
    let folder = builder.target().join("rtl");
    let verilog = match simulator::missing_tool().map_or_else(|| simulator::verilog(&folder), Err) {
        Ok(verilog) => verilog,
        Err(reason) => {
            eprintln!("SKIPPED: Rocket RTL: {reason}");
            return Ok(None);
        }
    };
    let on = |point: &Point| Some((point.row.machine(), configuration(&point.row.program)?));
    let machines: BTreeMap<_, _> = measured.iter().filter_map(on).collect();
    let configurations: BTreeSet<_> = machines.values().copied().collect();
    let simulator = |of: Configuration| Ok((of, Simulator::build(of, &verilog, &folder)?));
    let simulators: BTreeMap<_, _> = configurations.into_iter().map(simulator).collect::<Result<_, Error>>()?;
    // The test programs of the instruction set print what fails.
    let isa = Boot::bare("isa", 1, (1, 1), builder)?;
    simulators[&Configuration::OneHart].run(&isa)?;
    eprintln!("rtl: isa: every group passes");
    let mut boots = Vec::new();
    for (machine, configuration) in &machines {
        let (program, rl, wl) = machine;
        boots.push((machine, configuration, Boot::bare(program, 1, (*rl, *wl), builder)?));
    }
    eprintln!("rtl: {} runs, up to two minutes each", boots.len());
    let runs = jobs::run(&boots, jobs::workers(), |(machine, configuration, boot)| {
        let console = simulators[configuration].run(boot)?;
        eprintln!("rtl: {} on {} done", boot.label, configuration.name());
        let lines = boot::results(&console);
        calibrate::cycles(&boot.label, &lines).map(|cycles| ((*machine).clone(), cycles))
    })?;
    let live: BTreeMap<_, _> = runs.into_iter().collect();
    let found = |point: &Point| {
        let cycles = live.get(&point.row.machine())?;
        let rtl = cycles.get(&point.row.name).copied().ok_or_else(|| Error::Measurement {
            label: format!("Rocket RTL, {}", point.row.program),
            reason: format!("no point `{}`", point.row.name),
        });
        Some(rtl.map(|rtl| Live { point: point.clone(), rtl }))
    };
    measured.iter().filter_map(found).collect::<Result<_, _>>().map(Some)
}

fn records(points: &[Live]) -> Vec<Record> {
    let record = |Live { point, rtl }: &Live| {
        let row = &point.row;
        let params =
            Params::new().with("name", row.name.as_str()).with("rl", u64::from(row.rl)).with("wl", u64::from(row.wl));
        let published = Published { value: *rtl, source: "Rocket RTL, live".into() };
        Record::new("calibrate.rtl", params, "cycles", point.ours).beside(Some(published))
    };
    points.iter().map(record).collect()
}

fn table(points: &[Live]) -> Table {
    let columns = ["rl", "wl", "RTL", "ours", "error %", "goal %", "stored", ""];
    let mut table = Table::new("Timing model: cycles beside Rocket RTL, live", &[("", &["point"]), ("", &columns)]);
    for live in points {
        let Point { row, ours } = &live.point;
        table.row(vec![
            row.name.clone(),
            row.rl.to_string(),
            row.wl.to_string(),
            table::number(live.rtl),
            table::number(*ours),
            format!("{:+.1}", live.error()),
            table::number(row.goal),
            table::number(row.cycles),
            if live.within() { String::new() } else { "off".into() },
        ]);
    }
    let within = points.iter().filter(|live| live.within()).count();
    table.note(&format!("{within} of {} points are within their goals.", points.len()));
    table
}

/// Measures, writes `target/results/calibrate-rtl.json` and prints.
///
/// # Errors
/// A point is wrong ([`Live::verdict`]); a tool or a program fails. What is not installed is no error.
pub fn run(output: Output) -> Result<(), Error> {
    let mut builder = Builder::new()?;
    let Measured { points, images } = calibrate::measure(&mut builder)?;
    let Some(live) = measure(&mut builder, &points)? else { return Ok(()) };
    let machine = Machine { harts: 4, ..boot::machine() };
    let summary = Summary::new(tour::commit(), &images, machine, boot::SEED, records(&live));
    let text = match output {
        Output::Json => summary.to_json(),
        Output::Tables => format!("{}\n", table(&live).render(Colour::of_stdout())),
    };
    results::write_and_print(&builder, "calibrate-rtl", &summary, &text)?;
    let wrong: Vec<String> = live.iter().filter_map(|live| live.verdict().err()).collect();
    if wrong.is_empty() { Ok(()) } else { Err(Error::Calibration { wrong }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(rtl: f64, ours: f64) -> Live {
        let row = calibrate::row("rocket,x,1,1,20,5,RTL,");
        Live { point: Point { row, ours }, rtl }
    }

    #[test]
    fn the_rtl_must_take_what_is_stored() {
        assert_eq!(live(20.1, 21.0).verdict(), Ok(()));
        assert!(live(22.0, 22.0).verdict().is_err(), "another RTL, or another test bench");
        assert!(live(20.0, 22.0).verdict().is_err(), "a model that is off");
    }
}
