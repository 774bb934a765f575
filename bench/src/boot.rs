//! A boot: an image, the machine it runs on, and what comes out of it.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use images::{Builder, Manifest};
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};
use soc::End;
use soc::symbols::Symbols;
use soc::wire::loadgen::{LoadGenConfig, Report};
use soc::wire::spec::{NetSpec, PeerSpec};

use crate::error::Error;
use crate::results::Machine;

/// The schedule seed of every figure: the plain order of harts.
pub const SEED: u64 = 0;

/// A run that takes longer than this, in simulated time, hangs.
const TIME_LIMIT_S: u64 = 100;
/// Core clock of the board.
const CLOCK_HZ: u64 = 100_000_000;

/// The cost model that the figures hold for, with one hart.
pub fn machine() -> Machine {
    let config = soc::Config::default();
    Machine { clock_hz: CLOCK_HZ, harts: 1, rl: config.rl.into(), wl: config.wl.into() }
}

/// A machine that has not been started.
#[derive(Debug)]
pub struct Boot {
    /// What it is for, in words.
    pub label: String,
    /// Name of the image.
    pub name: String,
    pub(crate) path: PathBuf,
    pub(crate) image: Vec<u8>,
    pub(crate) config: soc::Config,
}

/// What a machine has left.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// What it was for, in words.
    pub label: String,
    /// The JSON objects that the guest has printed.
    pub results: Vec<String>,
    /// What the load generator has seen, if there was one.
    pub report: Option<Report>,
    /// The packets, if they were asked for.
    pub capture: Option<Vec<u8>>,
}

impl Run {
    /// The one total that the guest has printed.
    ///
    /// # Errors
    /// If the guest has printed none or several, one that cannot be read, or one that is not what was `asked` for.
    pub fn total<T: DeserializeOwned>(&self, asked: impl FnOnce(&T) -> bool) -> Result<T, Error> {
        let fail = |reason: String| Error::Measurement { label: self.label.clone(), reason };
        let [line] = self.results.as_slice() else {
            return Err(fail(format!("the guest printed {} results, not one", self.results.len())));
        };
        let total = serde_json::from_str(line).map_err(|error| fail(format!("{error} in `{line}`")))?;
        if asked(&total) { Ok(total) } else { Err(fail(format!("the guest measured something else: {line}"))) }
    }
}

impl Boot {
    /// Builds the image of `manifest`.
    ///
    /// # Errors
    /// If it cannot be built.
    pub fn new(label: String, manifest: &Manifest, harts: u32, builder: &mut Builder) -> Result<Self, Error> {
        let options = images::Options { quiet: true, ..images::Options::default() };
        let image = builder.build(manifest, &options)?;
        let config = soc::Config {
            harts: harts as usize,
            memory_bytes: image.machine.memory.0,
            mode: soc::Mode::Timed,
            schedule_seed: SEED,
            max_cycles: Some(TIME_LIMIT_S * CLOCK_HZ),
            ..soc::Config::default()
        };
        Ok(Self { label, name: manifest.name().to_owned(), path: image.path, image: image.bytes, config })
    }

    /// A bare program of `soc/guest`, in M-mode from its first instruction, on a machine with these memory latencies (RL, WL).
    ///
    /// # Errors
    /// If it does not compile, or its file cannot be read.
    pub fn bare(program: &str, harts: u32, (rl, wl): (u32, u32), builder: &mut Builder) -> Result<Self, Error> {
        let path = builder.bare("soc-guest", program)?;
        let image = std::fs::read(&path).map_err(|source| Error::Program { path: path.clone(), source })?;
        let config = soc::Config {
            harts: harts as usize,
            mode: soc::Mode::Timed,
            schedule_seed: SEED,
            rl,
            wl,
            max_cycles: Some(TIME_LIMIT_S * CLOCK_HZ),
            ..soc::Config::default()
        };
        Ok(Self { label: format!("{program}, rl {rl}, wl {wl}"), name: program.to_owned(), path, image, config })
    }

    /// The same with a cable to a station that takes every frame.
    #[must_use]
    pub fn with_sink(mut self) -> Self {
        self.config.net = NetSpec { peer: Some(PeerSpec::Sink), ..NetSpec::default() };
        self
    }

    /// The same with a load generator on the wire; `captured` keeps the packets.
    ///
    /// # Errors
    /// If the load generator refuses `load`.
    pub fn with_load(mut self, load: LoadGenConfig, captured: bool) -> Result<Self, Error> {
        load.check()?;
        let pcap = captured.then(|| self.path.with_extension("pcap"));
        self.config.net = NetSpec { peer: Some(PeerSpec::LoadGen(load)), pcap, ..NetSpec::default() };
        Ok(self)
    }

    /// SHA-256 of the image.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(&self.image).into()
    }
}

/// Runs the machine to its end.
///
/// # Errors
/// If the machine cannot be made, or the guest does not end with success; its console goes to standard error then.
pub fn run(boot: &Boot) -> Result<Run, Error> {
    let console = Console::default();
    let mut machine = soc::Machine::new(boot.config.clone())?;
    machine.load_elf(&boot.image)?;
    machine.set_console(console.clone().sink());
    let outcome = machine.run();
    if let Some(end) = failure(outcome.end) {
        eprint!("{}", Symbols::of(&boot.image).expand(&console.text()));
        return Err(Error::Guest { label: boot.label.clone(), end });
    }
    Ok(Run {
        label: boot.label.clone(),
        results: console.results(),
        report: machine.network_report(),
        capture: boot.config.net.pcap.as_deref().map(take).transpose()?,
    })
}

/// Reads a file and removes it.
fn take(path: &Path) -> Result<Vec<u8>, Error> {
    let read = || {
        let bytes = std::fs::read(path)?;
        std::fs::remove_file(path)?;
        Ok(bytes)
    };
    read().map_err(|source| Error::Capture { path: path.to_owned(), source })
}

/// What is wrong with this end, if anything is.
fn failure(end: End) -> Option<String> {
    match end {
        End::Exit(0) | End::PeerDone => None,
        End::Exit(code) => Some(format!("the guest ended with code {code}")),
        End::Reset => Some("the guest asked for a reset".into()),
        End::IdleDeadlock => Some("all harts wait, and nothing can wake them".into()),
        End::CycleLimit => Some(format!("no end after {TIME_LIMIT_S} s of simulated time")),
    }
}

/// What a guest prints. Clones share the bytes.
#[derive(Clone, Debug, Default)]
struct Console(Rc<RefCell<Vec<u8>>>);

impl Console {
    fn sink(self) -> impl FnMut(&[u8]) + 'static {
        move |bytes| self.0.borrow_mut().extend_from_slice(bytes)
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.borrow()).into_owned()
    }

    fn results(&self) -> Vec<String> {
        results(&self.text())
    }
}

/// The JSON objects of a console: lines that start with `@`.
pub(crate) fn results(console: &str) -> Vec<String> {
    console.lines().filter_map(|line| line.strip_prefix('@')).map(|line| line.trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_told_from_talk() {
        let console = Console::default();
        let mut sink = console.clone().sink();
        sink(b"booting\r\n@{\"a\":1}\r\nuser@host @{}\n");
        sink(b"@{\"b\"");
        sink(b":2}\n");
        assert_eq!(console.results(), [r#"{"a":1}"#, r#"{"b":2}"#]);
    }
}
