//! Manifests: what they may say, and reading them.
//!
//! A manifest is read in two steps. The text becomes the types below (unknown keys and wrong types are refused there), then
//! `check.rs` asks whether the system makes sense. Overrides change values between the two, so they are checked like the file.

use crate::check;
use crate::error::{Error, Result};
use crate::size::Size;
use abi::config;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use toml::de::DeTable;

/// A system: machine defaults, kernel configuration, programs and the channels between them. Programs and channels are numbered in
/// the order of their names.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// Defaults of the machine to run on.
    #[serde(default)]
    pub machine: Machine,
    /// Configuration of the kernel.
    #[serde(default)]
    pub kernel: Kernel,
    /// Protection domains by name.
    #[serde(default)]
    pub program: BTreeMap<String, Program>,
    /// Channels by name.
    #[serde(default)]
    pub channel: BTreeMap<String, Channel>,
}

/// `[machine]`.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Machine {
    /// Harts.
    pub harts: usize,
    /// RAM.
    pub memory: Size,
}

impl Default for Machine {
    fn default() -> Self {
        Self { harts: 1, memory: Size(128 << 20) }
    }
}

/// `[kernel]`.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Kernel {
    /// A kernel that checks its invariants at every exit, with debug assertions and overflow checks: slow, for tests.
    pub checked: bool,
    /// The IPC fast path.
    pub fastpath: bool,
    /// seL4's debug system calls (`KernelPrinting`, `KernelDebugBuild`); a root server without them prints nothing.
    pub printing: bool,
    /// seL4's benchmark system calls.
    pub benchmarks: bool,
    /// The benchmark system calls, and the account of who uses the harts (`track_utilisation`); no fast path then.
    pub utilisation: bool,
    /// The benchmark system calls, and a log of kernel entries (`track_kernel_entries`); no fast path then.
    pub entries: bool,
    /// Radix of the root CNode (`KernelRootCNodeSizeBits`); a system of programs gets more if it needs more.
    pub root_cnode_bits: u32,
    /// Milliseconds per timer tick.
    pub timer_tick: u32,
    /// Ticks per time slice.
    pub time_slice: u32,
}

impl Default for Kernel {
    fn default() -> Self {
        Self {
            checked: false,
            fastpath: config::FASTPATH,
            printing: config::PRINTING,
            benchmarks: config::BENCHMARKS,
            utilisation: false,
            entries: false,
            root_cnode_bits: config::ROOT_CNODE_SIZE_BITS,
            timer_tick: config::TIMER_TICK_MS,
            time_slice: config::TIME_SLICE,
        }
    }
}

/// `[program.NAME]`: one protection domain.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Program {
    /// Cargo package.
    pub package: String,
    /// Binary of that package.
    pub bin: String,
    /// 1 to 254; the root task runs at 255.
    pub priority: u64,
    /// Hart of all its threads.
    #[serde(default)]
    pub hart: usize,
    /// Equal threads of `main(env, thread)`.
    #[serde(default = "one")]
    pub threads: usize,
    /// Stack of each thread.
    #[serde(default = "default_stack")]
    pub stack: Size,
    /// Heap.
    #[serde(default = "default_heap")]
    pub heap: Size,
    /// Words for `env.arg(key)`.
    #[serde(default)]
    pub args: BTreeMap<String, String>,
    /// Devices by compatible string.
    #[serde(default)]
    pub devices: Vec<String>,
    /// Physically contiguous memory for devices.
    #[serde(default)]
    pub dma: Size,
    /// Empty slots: for saved reply capabilities, or whatever the program makes.
    #[serde(default)]
    pub reply_slots: Option<u64>,
    /// Memory that the program makes objects of.
    #[serde(default)]
    pub untyped: Size,
    /// Programs that it supervises: it has the TCB of their thread 0 and their CNode.
    #[serde(default)]
    pub supervises: Vec<String>,
    /// Programs whose address spaces it manages.
    #[serde(default)]
    pub spaces: Vec<String>,
    /// Thread 0 has a system-call ring.
    #[serde(default)]
    pub syscall_ring: bool,
    /// The machine ends when all of these have left. Default: the programs that serve nothing.
    #[serde(default)]
    pub main: Option<bool>,
    /// What a fault does.
    #[serde(default)]
    pub on_fault: OnFault,
}

/// What a fault of a program does to the system.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum OnFault {
    /// The machine ends with code 1.
    #[default]
    Stop,
    /// The program is stopped, the others go on.
    Continue,
    /// The program starts again from its beginning; the channels that it had are closed, and open again when both ends say so.
    Restart,
}

/// `[channel.NAME]`.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Channel {
    /// Who asks.
    pub client: String,
    /// Who answers.
    pub server: String,
    /// How messages travel.
    #[serde(default)]
    pub transport: Transport,
    /// Ring entries each way (async).
    #[serde(default = "default_entries")]
    pub entries: u64,
    /// Data buffers mapped in both programs.
    #[serde(default)]
    pub arena: Size,
    /// What becomes of an end that the other one accuses of breaking the protocol, besides that it is cut off (async).
    #[serde(default)]
    pub on_misbehaviour: OnMisbehaviour,
}

/// Whose word is enough to fault the other end of a channel.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum OnMisbehaviour {
    /// Nobody's: the channel is closed, and that is all.
    #[default]
    Close,
    /// The server's: its client is treated as if it had faulted.
    FaultClient,
    /// The client's: its server is treated as if it had faulted.
    FaultServer,
}

/// How messages of a channel travel.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// Shared rings, woken by user interrupts.
    #[default]
    Async,
    /// The server's endpoint.
    Sync,
}

fn one() -> usize {
    1
}

fn default_stack() -> Size {
    Size(64 << 10)
}

fn default_heap() -> Size {
    Size(1 << 20)
}

fn default_entries() -> u64 {
    128
}

/// A manifest file and what was changed after reading it.
#[derive(Clone, Debug)]
pub struct Manifest {
    name: String,
    path: PathBuf,
    text: String,
    table: toml::Table,
    changed: Vec<String>,
}

impl Manifest {
    /// The manifest `images/NAME.toml` of this tree.
    ///
    /// # Errors
    /// If there is none of this name, or as [`Manifest::load`].
    pub fn named(name: &str) -> Result<Self> {
        let path = directory().join(format!("{name}.toml"));
        if path.is_file() {
            Self::load(&path)
        } else {
            Err(Error::UnknownManifest { name: name.into(), known: names()?.join(", ") })
        }
    }

    /// Reads a manifest file.
    ///
    /// # Errors
    /// If the file cannot be read, is no TOML, or holds a key or a type that no manifest has.
    pub fn load(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).map_err(Error::io(path))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Self::parse(name, path, text)
    }

    /// A manifest from its text; `path` is what errors call it.
    ///
    /// # Errors
    /// As [`Manifest::load`].
    pub fn parse(name: String, path: &Path, text: String) -> Result<Self> {
        let at = |error: toml::de::Error| {
            let line = error.span().map(|span| format!(":{}", line_of(&text, span.start))).unwrap_or_default();
            let message = error.message().trim().replace('\n', "; ");
            Error::Manifest { place: format!("{}{line}", path.display()), message }
        };
        let table: toml::Table = toml::from_str(&text).map_err(at)?;
        toml::from_str::<System>(&text).map_err(at)?;
        Ok(Self { name, path: path.into(), text, table, changed: Vec::new() })
    }

    /// Name of the system: the file's name without its ending.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Gives the system another name, so that variants of one manifest have images of their own.
    pub fn rename(&mut self, name: &str) {
        self.name = name.into();
    }

    /// Sets one value: `set("program.client.hart", "1")`. A value that is a TOML number, boolean, string or array is taken as such,
    /// anything else as a string. Missing tables are made.
    ///
    /// # Errors
    /// If the path leads through something that is no table.
    pub fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let value = format!("value = {value}")
            .parse::<toml::Table>()
            .ok()
            .and_then(|mut table| table.remove("value"))
            .unwrap_or_else(|| toml::Value::String(value.into()));
        self.insert(key, value)
    }

    fn insert(&mut self, key: &str, value: toml::Value) -> Result<()> {
        let (tables, last) = key.rsplit_once('.').unwrap_or(("", key));
        let mut table = &mut self.table;
        for step in tables.split('.').filter(|step| !step.is_empty()) {
            table =
                table.entry(step).or_insert_with(|| toml::Value::Table(toml::Table::new())).as_table_mut().ok_or_else(
                    || Error::Manifest { place: key.into(), message: format!("`{step}` is a value, not a table") },
                )?;
        }
        table.insert(last.into(), value);
        self.changed.push(key.into());
        Ok(())
    }

    /// Copies a table: `copy("program.client", "program.client-2")`.
    ///
    /// # Errors
    /// If there is no table `from`, or the path `to` leads through something that is no table.
    pub fn copy(&mut self, from: &str, to: &str) -> Result<()> {
        let missing = || Error::Manifest { place: from.into(), message: "there is no such table".into() };
        let mut table = &self.table;
        for step in from.split('.') {
            table = table.get(step).and_then(toml::Value::as_table).ok_or_else(missing)?;
        }
        self.insert(to, toml::Value::Table(table.clone()))
    }

    /// The system that the manifest describes, checked.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place.
    pub fn system(&self) -> Result<System> {
        let system: System = self.table.clone().try_into().map_err(|error: toml::de::Error| Error::Manifest {
            place: format!("{} with {}", self.path.display(), self.changed.join(", ")),
            message: error.message().trim().replace('\n', "; "),
        })?;
        check::system(&system).map_err(|(key, message)| Error::Manifest { place: self.place(&key), message })?;
        Ok(system)
    }

    /// `file:line: key` of a dotted key, or of the nearest table around it.
    pub(crate) fn place(&self, key: &str) -> String {
        let file = self.path.display();
        if self.changed.iter().any(|changed| changed == key) {
            return format!("{key} (set by hand)");
        }
        let mut known = key;
        loop {
            if let Some(start) = start_of(&self.text, known) {
                return format!("{file}:{}: {key}", line_of(&self.text, start));
            }
            match known.rsplit_once('.') {
                Some((outer, _)) => known = outer,
                None => return format!("{file}: {key}"),
            }
        }
    }
}

/// Byte offset of a key in a TOML text that is known to parse.
fn start_of(text: &str, key: &str) -> Option<usize> {
    let document = DeTable::parse(text).ok()?;
    let mut table = document.get_ref();
    let mut start = None;
    for step in key.split('.') {
        let (name, value) = table.iter().find(|(name, _)| name.get_ref().as_ref() == step)?;
        start = Some(name.span().start);
        table = match value.get_ref().as_table() {
            Some(inner) => inner,
            None => return start,
        };
    }
    start
}

fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes().iter().take(offset).filter(|&&byte| byte == b'\n').count() + 1
}

/// The folder of the manifests.
pub fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Names of all manifests, sorted.
///
/// # Errors
/// If the folder cannot be read.
pub fn names() -> Result<Vec<String>> {
    let folder = directory();
    let mut names: Vec<String> = fs::read_dir(&folder)
        .map_err(Error::io(&folder))?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|file| file.strip_suffix(".toml").map(String::from))
        .filter(|name| name != "Cargo")
        .collect();
    names.sort();
    Ok(names)
}
