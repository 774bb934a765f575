//! Speed of the machine on this host: instructions per second of both modes, beside QEMU's TCG on the same file.
//!
//! | workload | what |
//! |---|---|
//! | `core` | CoreMark-like: list, matrices, state machine, CRC; in the caches |
//! | `mem` | sieve, quicksort, pointer chase, hash table, copies |
//! | `switch` | two U-mode programs in two address spaces that call into a supervisor in turn, with and without `sfence.vma` |
//! | `ipc` | the kernel image: Call and ReplyRecv between two processes (not on QEMU: it is an image of our board) |
//!
//! `core` and `mem` run on 1 and 4 harts, a copy each; their rate is the sum. Rates are per second of processor time (QEMU's
//! threads added up), and of several runs the fastest counts, so that others on this host disturb little. Host times are of no use in a results file that must not change, so they have one of their own,
//! `host.json`; QEMU's rates use the instructions that our machine has counted for the same program, and its time is taken
//! beyond that of a program that ends at once.

use std::ffi::OsStr;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use images::Builder;
use soc::{End, Mode};

use crate::boot::{self, Boot};
use crate::cpu_time;
use crate::error::Error;
use crate::kernel;
use crate::results::{self, Machine, Params, Record, Summary};
use crate::table::{self, Colour, Table};
use crate::tour::{self, Output};

const QEMU: &str = "qemu-system-riscv64";
/// Longer than any workload takes on QEMU.
const QEMU_LIMIT: Duration = Duration::from_secs(60);

/// How thorough.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Runs of each point.
    pub runs: u32,
}

/// One point.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Name of the workload.
    pub workload: &'static str,
    /// Harts at work.
    pub harts: usize,
    /// Instructions of all harts.
    pub instructions: u64,
    /// Million instructions a second: fast, timed, QEMU's TCG.
    pub fast: f64,
    /// See `fast`.
    pub timed: f64,
    /// None if QEMU is not installed, or cannot run it.
    pub qemu: Option<f64>,
}

/// The fastest of `runs` runs, and the instructions of all harts.
fn best(boot: &Boot, mode: Mode, runs: u32) -> Result<(u64, Duration), Error> {
    let mut instructions = 0;
    let mut least = Duration::MAX;
    for _ in 0..runs {
        let mut machine = soc::Machine::new(soc::Config { mode, ..boot.config.clone() })?;
        machine.load_elf(&boot.image)?;
        let (start, busy) = (Instant::now(), cpu_time::of_this_thread());
        let outcome = machine.run();
        let time = cpu_time::of_this_thread().zip(busy).map_or(start.elapsed(), |(after, before)| after - before);
        least = least.min(time);
        if outcome.end != End::Exit(0) {
            return Err(Error::Guest { label: boot.label.clone(), end: format!("{:?}", outcome.end) });
        }
        instructions = outcome.harts.iter().map(|hart| hart.instructions).sum();
    }
    Ok((instructions, least))
}

fn mips(instructions: u64, time: Duration) -> f64 {
    instructions as f64 / time.as_secs_f64() / 1e6
}

/// True if QEMU can be started; says so if not.
fn qemu_is_there() -> bool {
    let found = Command::new(QEMU).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let there = found.is_ok_and(|status| status.success());
    if !there {
        eprintln!("SKIPPED: {QEMU} is not installed; its columns stay empty (Debian: qemu-system-misc)");
    }
    there
}

/// The fastest of `runs` runs of a bare program on QEMU's `virt` board; none if it fails there.
fn qemu(path: &OsStr, harts: usize, runs: u32) -> Option<Duration> {
    let mut least = Duration::MAX;
    for _ in 0..runs {
        let start = Instant::now();
        let mut child = Command::new(QEMU)
            .args(["-machine", "virt", "-accel", "tcg", "-m", "128M", "-bios", "none", "-display", "none"])
            .args(["-serial", "none", "-monitor", "none", "-smp", &harts.to_string(), "-kernel"])
            .arg(path)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        // A child that has ended and was not waited for still tells its times.
        let mut time = None;
        while start.elapsed() < QEMU_LIMIT {
            let Some(state) = cpu_time::of_child(&child) else { break };
            time = Some(state.time);
            if state.ended {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        if start.elapsed() >= QEMU_LIMIT {
            // It may have ended just now; then there is nothing to kill.
            let _ = child.kill();
        }
        if !child.wait().ok()?.success() {
            return None;
        }
        least = least.min(time.unwrap_or(start.elapsed()));
    }
    Some(least)
}

/// Measures every point, one after another, so that they do not disturb each other.
///
/// # Errors
/// A program does not compile or fails.
pub fn measure(builder: &mut Builder, spec: Spec) -> Result<Vec<Point>, Error> {
    let default = soc::Config::default();
    let latencies = (default.rl, default.wl);
    let with_qemu = qemu_is_there();
    let nothing = Boot::bare("nothing", 1, latencies, builder)?;
    let start = |harts| qemu(nothing.path.as_os_str(), harts, spec.runs);
    let mut points = Vec::new();
    for (workload, harts) in [("core", 1), ("core", 4), ("mem", 1), ("mem", 4), ("switch", 1)] {
        let boot = Boot::bare(workload, harts as u32, latencies, builder)?;
        let (instructions, fast) = best(&boot, Mode::Fast, spec.runs)?;
        let (timed_instructions, timed) = best(&boot, Mode::Timed, spec.runs)?;
        let qemu = if with_qemu { qemu(boot.path.as_os_str(), harts, spec.runs).zip(start(harts)) } else { None };
        points.push(Point {
            workload,
            harts,
            instructions,
            fast: mips(instructions, fast),
            timed: mips(timed_instructions, timed),
            qemu: qemu.map(|(all, start)| mips(instructions, all.saturating_sub(start).max(Duration::from_millis(1)))),
        });
    }
    let call = kernel::Measure::CallReply(kernel::Way::Fastpath, 0);
    let boot = kernel::Spec { measure: call, rounds: 65_536 }.boot(builder)?;
    let (instructions, fast) = best(&boot, Mode::Fast, spec.runs)?;
    let (timed_instructions, timed) = best(&boot, Mode::Timed, spec.runs)?;
    let (fast, timed) = (mips(instructions, fast), mips(timed_instructions, timed));
    points.push(Point { workload: "ipc", harts: 1, instructions, fast, timed, qemu: None });
    Ok(points)
}

/// The records of `points`: rates, and where QEMU ran the ratio to its rate.
pub fn records(points: &[Point]) -> Vec<Record> {
    let mut records = Vec::new();
    for point in points {
        for (mode, rate) in [("fast", Some(point.fast)), ("timed", Some(point.timed)), ("qemu-tcg", point.qemu)] {
            let params =
                || Params::new().with("mode", mode).with("harts", point.harts as u64).with("workload", point.workload);
            let Some(rate) = rate else { continue };
            records.push(Record::new("soc.mips", params(), "MIPS", rate));
            if let Some(qemu) = point.qemu.filter(|_| mode != "qemu-tcg") {
                records.push(Record::new("soc.mips_ratio", params().with("peer", "qemu-tcg"), "ratio", rate / qemu));
            }
        }
    }
    records
}

/// A row for each point.
pub fn table(points: &[Point]) -> Table {
    let columns = ["harts", "fast", "timed", "QEMU TCG", "fast:QEMU"];
    let mut table = Table::new(
        "Speed of the machine on this host: million instructions per second of processor time",
        &[("", &["workload"]), ("", &columns)],
    );
    for point in points {
        table.row(vec![
            point.workload.to_owned(),
            point.harts.to_string(),
            table::number(point.fast),
            table::number(point.timed),
            table::optional(point.qemu),
            table::ratio(Some(point.fast), point.qemu),
        ]);
    }
    table
}

/// Measures, writes `target/results/host.json` and prints.
///
/// # Errors
/// As [`measure`], and files that cannot be written.
pub fn run(spec: Spec, output: Output) -> Result<(), Error> {
    let mut builder = Builder::new()?;
    let points = measure(&mut builder, spec)?;
    let summary =
        Summary::new(tour::commit(), &[], Machine { harts: 4, ..boot::machine() }, boot::SEED, records(&points));
    let text = match output {
        Output::Json => summary.to_json(),
        Output::Tables => format!("{}\n", table(&points).render(Colour::of_stdout())),
    };
    results::write_and_print(&builder, "host", &summary, &text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_stand_where_qemu_ran() {
        let point =
            Point { workload: "core", harts: 1, instructions: 1, fast: 400.0, timed: 200.0, qemu: Some(2000.0) };
        let records = records(&[point.clone(), Point { qemu: None, ..point }]);
        let ratios: Vec<f64> =
            records.iter().filter(|record| record.id == "soc.mips_ratio").map(|record| record.value.0).collect();
        assert_eq!(ratios, [0.2, 0.1]);
        assert_eq!(records.len(), 7);
    }
}
