//! Transmit rate of the AXI NIC: frame sizes, ways of waiting, interrupt thresholds.
//!
//! Repeats the benchmark of the ATS-INTC project's network driver (`published/axinic.csv` names it) with the program `nic` of
//! `soc/guest`, in two forms. With the durations that the board's software was measured to have, the machine's DMA, MAC and wire are
//! held against every published cell (part of `make calibrate`). With our driver as it is, the rates are our own
//! (`nic.json`); small frames go out more than twice as fast, because the driver costs less.
//!
//! The DMA's cost per packet and per byte were fitted to these tables once (`soc/src/devices/axi_dma/timing.rs`), two numbers for
//! 242 rates; the durations of software were mostly measured apart from them.
//!
//! A published rate is truncated, so a cell stands for the interval of times `[8n / (v + 0.001), 8n / v]` nanoseconds, and the
//! error is the distance to it.

use images::Builder;
use serde::Deserialize;

use crate::boot::{self, Boot};
use crate::error::Error;
use crate::published::Figures;
use crate::results::{self, Params, Published, Record, Summary};
use crate::table::{Colour, Table};
use crate::tour::{self, Output};

/// Whose software costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Software {
    /// As long as on the published board.
    Board,
    /// The driver as it is.
    Ours,
}

/// How completion is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Reading the status register.
    Poll,
    /// By interrupt.
    Interrupt,
    /// By a task that is polled.
    Future,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Self::Poll => "poll",
            Self::Interrupt => "interrupt",
            Self::Future => "future",
        }
    }
}

/// One measured cell, as the guest prints it. Cycles are of all packets together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Whose costs.
    pub software: Software,
    /// How completion is waited for.
    pub mode: Mode,
    /// Frames of a batch, and completions per interrupt.
    pub threshold: u64,
    /// Ethernet header and payload.
    pub frame_bytes: u64,
    packets: u64,
    submit: u64,
    wait: u64,
    recycle: u64,
    cycles: u64,
}

/// Nanoseconds of a core cycle.
const CYCLE_NS: f64 = 10.0;

impl Cell {
    /// Time of a packet.
    fn ns(&self) -> f64 {
        self.cycles as f64 * CYCLE_NS / self.packets as f64
    }

    /// Gb/s of frame bytes.
    pub fn rate(&self) -> f64 {
        8.0 * self.frame_bytes as f64 / self.ns()
    }

    /// Cycles of a packet without the benchmark's loop.
    fn packet(&self) -> f64 {
        (self.submit + self.wait + self.recycle) as f64 / self.packets as f64
    }

    /// The published rate.
    fn published(&self, figures: &Figures) -> Option<Published> {
        figures.get(&[self.mode.name(), &self.threshold.to_string(), &self.frame_bytes.to_string()])
    }

    /// Percent between our time and the interval of the published rate.
    fn error(&self, published: f64) -> f64 {
        let bits = 8.0 * self.frame_bytes as f64;
        let (least, most) = (bits / (published + 0.001), bits / published);
        let ours = self.ns();
        if ours < least { (ours / least - 1.0) * 100.0 } else { (ours / most - 1.0).max(0.0) * 100.0 }
    }
}

/// Every cell with both softwares, and the program that ran with its digest.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// In the order of the program.
    pub cells: Vec<Cell>,
    /// The program, with its SHA-256.
    pub image: (String, [u8; 32]),
}

/// A published cell beside ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// What it is, in words.
    pub name: String,
    /// Cycles of a packet.
    pub ours: f64,
    /// The published cycles; of a rate, the middle of its interval.
    pub published: Published,
    /// Percent, as the head of this file says.
    pub error: f64,
}

/// Runs the benchmark.
///
/// # Errors
/// The program does not compile or fails.
pub fn measure(builder: &mut Builder) -> Result<Measured, Error> {
    let default = soc::Config::default();
    let boot = Boot::bare("nic", 1, (default.rl, default.wl), builder)?.with_sink();
    let run = boot::run(&boot)?;
    let cell = |text: &String| {
        let fail = |error| Error::Measurement { label: run.label.clone(), reason: format!("{error} in `{text}`") };
        serde_json::from_str(text).map_err(fail)
    };
    let cells = run.results.iter().map(cell).collect::<Result<_, _>>()?;
    Ok(Measured { cells, image: (boot.name.clone(), boot.digest()) })
}

fn figures() -> Figures {
    Figures::parse(include_str!("../published/axinic.csv"))
}

impl Measured {
    fn of(&self, software: Software) -> impl Iterator<Item = &Cell> {
        self.cells.iter().filter(move |cell| cell.software == software)
    }

    /// Every published cell, measured with the board's software costs.
    pub fn points(&self) -> Vec<Point> {
        let figures = figures();
        let mut points = Vec::new();
        for cell in self.of(Software::Board) {
            let Some(rate) = cell.published(&figures) else { continue };
            let cycles = 8.0 * cell.frame_bytes as f64 / (rate.value + 0.0005) / CYCLE_NS;
            points.push(Point {
                name: format!("axi tx, {}, threshold {}, {} bytes", cell.mode.name(), cell.threshold, cell.frame_bytes),
                ours: cell.ns() / CYCLE_NS,
                error: cell.error(rate.value),
                published: Published { value: cycles, source: rate.source },
            });
        }
        for cell in self.of(Software::Board).filter(|cell| cell.threshold == 1) {
            let Some(published) = figures.get(&["packet", cell.mode.name(), &cell.frame_bytes.to_string()]) else {
                continue;
            };
            points.push(Point {
                name: format!("axi tx, {}, one packet, {} bytes", cell.mode.name(), cell.frame_bytes),
                ours: cell.packet(),
                error: (cell.packet() / published.value - 1.0) * 100.0,
                published,
            });
        }
        points
    }

    /// The records of our own driver.
    pub fn records(&self) -> Vec<Record> {
        let figures = figures();
        let record = |cell: &Cell| {
            let params = Params::new()
                .with("nic", "axi")
                .with("mode", cell.mode.name())
                .with("threshold", cell.threshold)
                .with("frame_bytes", cell.frame_bytes);
            Record::new("nic.tx.rate", params, "Gb/s", cell.rate()).beside(cell.published(&figures))
        };
        self.of(Software::Ours).map(record).collect()
    }

    /// Rates by frame size: a row of ours and one of the published rates for each.
    pub fn table(&self, software: Software) -> Table {
        let figures = figures();
        let title = match software {
            Software::Board => "AXI NIC, transmit, Gb/s: our DMA, MAC and wire under the board's software",
            Software::Ours => "AXI NIC, transmit, Gb/s: our driver",
        };
        let thresholds = ["1", "2", "3", "4", "5"];
        let groups: [(&str, &[&str]); 4] = [
            ("", &["frame bytes"]),
            ("poll", &["1"]),
            ("interrupt, threshold", &thresholds),
            ("future, threshold", &thresholds),
        ];
        let mut table = Table::new(title, &groups);
        let mut sizes: Vec<u64> = self.of(software).map(|cell| cell.frame_bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        for size in sizes {
            // Modes and thresholds in the order of the columns.
            let cells: Vec<&Cell> = self.of(software).filter(|cell| cell.frame_bytes == size).collect();
            let row = |first: String, text: &dyn Fn(&Cell) -> String| {
                let rest = cells.iter().map(|cell| text(cell));
                std::iter::once(first).chain(rest).collect::<Vec<_>>()
            };
            table.row(row(size.to_string(), &|cell| format!("{:.3}", cell.rate())));
            let published =
                |cell: &Cell| cell.published(&figures).map_or_else(String::new, |rate| format!("{:.3}", rate.value));
            table.published(row("published".into(), &published));
        }
        table
    }
}

/// Measures our driver, writes `target/results/nic.json` and prints.
///
/// # Errors
/// As [`measure`], and files that cannot be written.
pub fn run(output: Output) -> Result<(), Error> {
    let mut builder = Builder::new()?;
    let measured = measure(&mut builder)?;
    let images = [measured.image.clone()];
    let summary = Summary::new(tour::commit(), &images, boot::machine(), boot::SEED, measured.records());
    let text = match output {
        Output::Json => summary.to_json(),
        Output::Tables => format!("{}\n", measured.table(Software::Ours).render(Colour::of_stdout())),
    };
    results::write_and_print(&builder, "nic", &summary, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(frame_bytes: u64, cycles: u64) -> Cell {
        let (software, mode) = (Software::Board, Mode::Poll);
        Cell { software, mode, threshold: 1, frame_bytes, packets: 1, submit: 0, wait: 0, recycle: 0, cycles }
    }

    #[test]
    fn a_truncated_rate_is_an_interval() {
        // 0.029 Gb/s at 60 bytes: 16.00 to 16.55 us.
        assert_eq!(cell(60, 1600).error(0.029), 0.0);
        assert_eq!(cell(60, 1655).error(0.029), 0.0);
        assert!((cell(60, 1821).error(0.029) - 10.0).abs() < 0.1);
        assert!((cell(60, 1440).error(0.029) + 10.0).abs() < 0.1);
    }

    #[test]
    fn every_published_cell_is_there() {
        let figures = figures();
        let frames =
            [60, 64, 128, 256, 512, 1000, 1024, 1514, 2000, 2048, 3000, 16_128].map(|bytes: u64| bytes.to_string());
        for frame in &frames {
            assert!(figures.get(&["poll", "1", frame]).is_some());
            for threshold in ["1", "2", "3", "4", "5"] {
                assert!(figures.get(&["interrupt", threshold, frame]).is_some());
                assert!(figures.get(&["future", threshold, frame]).is_some());
            }
            assert!(figures.get(&["packet", "poll", frame]).is_some());
        }
    }
}
