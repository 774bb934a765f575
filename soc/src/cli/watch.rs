//! What can be done with a machine whatever it came from: let it run, look at it, save it, report.

use super::cannot_write;
use crate::debug::{Debug, Off};
use crate::gdb::{DEFAULT_ADDRESS, GdbServer};
use crate::moment::Moment;
use crate::profile::Profiler;
use crate::symbols::Symbols;
use crate::terminal::Terminal;
use crate::time::SimTime;
use crate::trace::Tracer;
use crate::trouble::{Fault, Trouble, Watchman};
use crate::wire::link::FrameLog;
use crate::wire::loadgen::Report;
use crate::wire::{NetSpec, Network};
use crate::{End, Machine, Outcome};
use clap::Args;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Exit code after gdb's `kill`: as a shell reports a process ended by SIGKILL.
const KILLED: u8 = 137;

#[derive(Args)]
pub(super) struct Watch {
    /// Type at the serial port: standard input, raw if it is a terminal; Ctrl-A x ends. Simulated time keeps to the host's
    #[arg(short, long)]
    interactive: bool,
    /// Write all frames on the wire to a packet capture
    #[arg(long, value_name = "FILE")]
    pub(super) pcap: Option<PathBuf>,
    /// Stop after this many core cycles (100 million are one second)
    #[arg(long, value_name = "N")]
    pub(super) max_cycles: Option<u64>,
    /// Wait for gdb before the first instruction and obey it [default address: 127.0.0.1:1234]
    #[arg(long, value_name = "ADDR:PORT", num_args = 0..=1, require_equals = true, default_missing_value = DEFAULT_ADDRESS)]
    gdb: Option<String>,
    /// When the guest panics or is about to end with an error, wait for gdb there [default address: 127.0.0.1:1234]
    #[arg(long, value_name = "ADDR:PORT", num_args = 0..=1, require_equals = true, default_missing_value = DEFAULT_ADDRESS,
        conflicts_with_all = ["gdb", "trace", "profile", "snapshot"])]
    break_on_panic: Option<String>,
    /// Print what each hart did, to standard error
    #[arg(long)]
    stats: bool,
    /// Write what each hart did to a file, as JSON
    #[arg(long, value_name = "FILE")]
    stats_json: Option<PathBuf>,
    /// Write traps, system calls, user interrupts and frames to a file that Perfetto opens
    #[arg(long, value_name = "FILE", conflicts_with = "gdb")]
    trace: Option<PathBuf>,
    /// Trace these core cycles only
    #[arg(long, value_name = "FROM..TO", requires = "trace", value_parser = cycles)]
    trace_cycles: Option<Range<u64>>,
    /// Write the cycles and instructions of each function to a file, most cycles first
    #[arg(long, value_name = "FILE", conflicts_with_all = ["gdb", "trace"])]
    profile: Option<PathBuf>,
    /// Profile these core cycles only
    #[arg(long, value_name = "FROM..TO", requires = "profile", value_parser = cycles)]
    profile_cycles: Option<Range<u64>>,
    /// Print the SHA-256 of the final state, to standard error
    #[arg(long)]
    digest: bool,
    /// Save the machine at a core cycle, or when the console has printed a text; may be repeated
    #[arg(long, value_name = "FILE@CYCLE|TEXT", conflicts_with = "gdb", value_parser = snapshot)]
    snapshot: Vec<SnapshotAt>,
}

/// A snapshot to be made.
#[derive(Clone)]
struct SnapshotAt {
    path: PathBuf,
    moment: Moment,
}

impl Watch {
    /// The network with the packet capture that was asked for, and no other.
    pub(super) fn capture(&self, mut spec: NetSpec) -> Result<NetSpec, String> {
        if self.pcap.is_some() && spec.peer.is_none() {
            return Err("--pcap needs somebody at the far end of the wire: give --net as well".to_owned());
        }
        spec.pcap = self.pcap.clone();
        Ok(spec)
    }

    /// Has a network keep what will be wanted of it; gives the log of its wire, which is kept for a trace only.
    pub(super) fn prepare(&self, network: &mut Network) -> FrameLog {
        let frames = FrameLog::default();
        if let Some(link) = &mut network.link {
            if self.trace.is_some() {
                link.observe(&frames);
            }
            if !self.snapshot.is_empty() || self.gdb.is_some() || self.break_on_panic.is_some() {
                link.keep_calls();
            }
        }
        frames
    }

    /// Runs a loaded machine to its end and reports.
    pub(super) fn drive(&self, machine: &mut Machine, frames: FrameLog, symbols: &Symbols) -> Result<u8, String> {
        if self.interactive {
            let terminal = Terminal::open().map_err(|error| format!("--interactive: the terminal refuses: {error}"))?;
            machine.attach_keyboard(Box::new(terminal));
        }
        let console_symbols = symbols.clone();
        machine.set_console(move |bytes| print_console(&console_symbols, bytes));
        let outcome = match self.gdb.as_ref().or(self.break_on_panic.as_ref()) {
            None => match (&self.trace, &self.profile) {
                (Some(path), _) => self.run_traced(machine, frames, path)?,
                (None, Some(path)) => self.run_profiled(machine, symbols, path)?,
                (None, None) => self.run(machine, &mut Off)?,
            },
            Some(address) => match self.debug(machine, address, symbols)? {
                Some(outcome) => outcome,
                None => return Ok(KILLED),
            },
        };
        self.report(machine, &outcome, symbols);
        if let Some(path) = &self.stats_json {
            std::fs::write(path, format!("{:#}\n", outcome.statistics_json()))
                .map_err(|error| cannot_write(path, &error, "--stats-json"))?;
        }
        let refuted = machine.network_report().is_some_and(|report| !report.passed());
        Ok(if outcome.end == End::PeerDone && refuted { 1 } else { outcome.exit_code() })
    }

    fn run_traced(&self, machine: &mut Machine, frames: FrameLog, path: &Path) -> Result<Outcome, String> {
        let in_words = |error: std::io::Error| cannot_write(path, &error, "--trace");
        let file = std::fs::File::create(path).map_err(in_words)?;
        let Range { start, end } = self.trace_cycles.clone().unwrap_or(0..u64::MAX);
        let mut tracer = Tracer::new(Box::new(BufWriter::new(file)), machine.config().harts, frames, start, end);
        let outcome = self.run(machine, &mut tracer)?;
        tracer.finish(outcome.cycles).map_err(in_words)?;
        Ok(outcome)
    }

    fn run_profiled(&self, machine: &mut Machine, symbols: &Symbols, path: &Path) -> Result<Outcome, String> {
        let in_words = |error: std::io::Error| cannot_write(path, &error, "--profile");
        let file = std::fs::File::create(path).map_err(in_words)?;
        let window = self.profile_cycles.clone().unwrap_or(0..u64::MAX);
        let mut profiler = Profiler::new(machine.config().harts, window);
        let outcome = self.run(machine, &mut profiler)?;
        profiler.write(symbols, BufWriter::new(file)).map_err(in_words)?;
        Ok(outcome)
    }

    /// Runs as gdb wants, from the start or from the first trouble on; none, if gdb has killed the machine.
    fn debug(&self, machine: &mut Machine, address: &str, symbols: &Symbols) -> Result<Option<Outcome>, String> {
        if self.gdb.is_none() {
            let mut watchman = Watchman::new(symbols.panics());
            match machine.run_to_trouble(&mut watchman) {
                Ok(outcome) => return Ok(Some(outcome)),
                Err(trouble) => eprintln!("soc: {}", describe(trouble, watchman.fault, symbols)),
            }
        }
        serve_gdb(machine, address)
    }

    /// Runs under `observer`'s eyes to the end, and saves the machine where that was asked for.
    fn run<D: Debug>(&self, machine: &mut Machine, observer: &mut D) -> Result<Outcome, String> {
        let mut wanted: Vec<&SnapshotAt> = self.snapshot.iter().collect();
        while !wanted.is_empty() {
            let moments: Vec<Moment> = wanted.iter().map(|snapshot| snapshot.moment.clone()).collect();
            if let Some(outcome) = machine.run_until(observer, &moments) {
                for missed in wanted {
                    eprintln!("soc: {}: not written, the run ended before", missed.path.display());
                }
                return Ok(outcome);
            }
            let (due, later) = wanted.into_iter().partition(|snapshot| machine.is_past(&snapshot.moment));
            wanted = later;
            for SnapshotAt { path, .. } in due {
                let file = machine.snapshot().map_err(|error| error.to_string())?;
                std::fs::write(path, file).map_err(|error| cannot_write(path, &error, "--snapshot"))?;
            }
        }
        Ok(machine.run_observed(observer))
    }

    fn report(&self, machine: &Machine, outcome: &Outcome, symbols: &Symbols) {
        match outcome.end {
            End::IdleDeadlock => eprintln!("soc: all harts wait for an interrupt and nothing is left to raise one"),
            End::CycleLimit => eprintln!("soc: stopped at {} cycles (--max-cycles)", outcome.cycles),
            End::Exit(_) | End::Reset | End::PeerDone => {}
        }
        if matches!(outcome.end, End::IdleDeadlock | End::CycleLimit) {
            for (id, hart) in outcome.harts.iter().enumerate() {
                let state = match (hart.stuck, hart.waiting) {
                    (true, _) => "stopped: its trap handler cannot be fetched",
                    (_, true) => "waiting",
                    _ => "running",
                };
                let place = symbols.anywhere(hart.pc).unwrap_or_else(|| "??".to_owned());
                eprintln!("  hart {id}: {:?}-mode, {state}, pc {:#x} {place}", hart.privilege, hart.pc);
            }
        }
        if let Some(report) = machine.network_report() {
            print_network(&report);
        }
        if self.stats {
            eprint!("{}", outcome.statistics());
        }
        if self.digest {
            let hex: String = machine.digest().iter().map(|byte| format!("{byte:02x}")).collect();
            eprintln!("digest {hex}");
        }
    }
}

/// One line on what has happened.
fn describe(trouble: Trouble, fault: Option<Fault>, symbols: &Symbols) -> String {
    let place = |pc| symbols.anywhere(pc).unwrap_or_else(|| format!("{pc:#x}"));
    let end = match trouble {
        Trouble::Panic { hart, pc } => return format!("hart {hart} enters {}", place(pc)),
        Trouble::Ended(End::Exit(code)) => format!("the guest is about to end with code {code}"),
        Trouble::Ended(_) => "all harts wait and nothing is left to wake one".to_owned(),
    };
    match fault {
        Some(Fault { hart, pc, cause, value, clock }) => {
            let cause = crate::trace::names::trap(cause);
            format!("{end}; the last fault of a program: {cause} at {value:#x}, pc {pc:#x}, hart {hart}, cycle {clock}")
        }
        None => end,
    }
}

fn serve_gdb(machine: &mut Machine, address: &str) -> Result<Option<Outcome>, String> {
    let in_words = |error: crate::SocError| error.to_string();
    let server = GdbServer::listen(address).map_err(in_words)?;
    eprintln!("soc: waiting for gdb: target remote {}", server.address().map_err(in_words)?);
    server.serve(machine).map_err(in_words)
}

/// Reads `FILE@CYCLE` or `FILE@TEXT`.
fn snapshot(text: &str) -> Result<SnapshotAt, String> {
    let (path, moment) = text.rsplit_once('@').ok_or("expected FILE@CYCLE or FILE@TEXT")?;
    if path.is_empty() || moment.is_empty() {
        return Err("expected FILE@CYCLE or FILE@TEXT".to_owned());
    }
    Ok(SnapshotAt { path: PathBuf::from(path), moment: Moment::parse(moment) })
}

/// Reads `FROM..TO`.
fn cycles(text: &str) -> Result<Range<u64>, String> {
    let parts = text.split_once("..").and_then(|(from, to)| Some(from.trim().parse().ok()?..to.trim().parse().ok()?));
    parts
        .filter(|range: &Range<u64>| !range.is_empty())
        .ok_or_else(|| "expected FROM..TO in cycles, FROM below TO".to_owned())
}

/// Console bytes to standard output, backtraces symbolised. A closed standard output does not end the machine.
fn print_console(symbols: &Symbols, bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    let done = match std::str::from_utf8(bytes) {
        Ok(text) => out.write_all(symbols.expand(text).as_bytes()),
        Err(_) => out.write_all(bytes),
    };
    let _ = done.and_then(|()| out.flush());
}

fn print_network(report: &Report) {
    let micros = |time: SimTime| format!("{}.{:03} us", time.as_us(), time.as_ns() % 1000);
    for phase in &report.phases {
        eprintln!(
            "net: {} connections: {} requests/s, mean {}, p50 {}, p99 {}, max {}, {} requests, {} errors",
            phase.connections,
            phase.requests_per_second(),
            micros(phase.latency.mean),
            micros(phase.latency.p50),
            micros(phase.latency.p99),
            micros(phase.latency.max),
            phase.requests,
            phase.errors
        );
    }
    if report.guest_ready.is_none() {
        eprintln!("net: the guest never answered the load generator");
    } else if report.finished.is_none() {
        eprintln!("net: the load generator had not finished");
    }
}
