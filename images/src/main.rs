//! `images`: list, check, build and run the systems of this tree.

use abi::label::Table;
use clap::{Parser, Subcommand};
use images::{Builder, Error, Image, Manifest, Options, RootServer, Size};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// Turns manifests into bootable images.
#[derive(Parser)]
#[command(name = "images", version)]
struct Command {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List the manifests
    List,
    /// Check a manifest without building
    Check(System),
    /// Build an image: of a manifest, or around a seL4 root server that knows nothing of manifests
    Build {
        /// Name of a manifest in images/, or path of one
        #[arg(required_unless_present = "root_server")]
        manifest: Option<String>,
        /// Change a value of the manifest, such as program.client.hart=1 (repeatable)
        #[arg(long, value_name = "KEY=VALUE", requires = "manifest")]
        set: Vec<String>,
        #[command(flatten)]
        server: Server,
        #[command(flatten)]
        output: Output,
    },
    /// Build an image and run it on the soc; exits with the guest's code
    Run {
        #[command(flatten)]
        system: System,
        /// Options of `soc run`, after `--`
        #[arg(last = true)]
        soc: Vec<OsString>,
    },
    /// Build the systems that run on stock QEMU's virt board, run each there and check what comes out
    Qemu,
}

#[derive(clap::Args)]
struct System {
    /// Name of a manifest in images/, or path of one
    manifest: String,
    /// Change a value of the manifest, such as program.client.hart=1 (repeatable)
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

/// A root server and the configuration that it was built for; the defaults are those of seL4's build system.
#[derive(clap::Args)]
struct Server {
    /// The root server: an ELF file linked against libsel4
    #[arg(long, value_name = "FILE.elf", conflicts_with = "manifest")]
    root_server: Option<PathBuf>,
    /// It was built for one core (KernelMaxNumNodes = 1)
    #[arg(long, conflicts_with = "manifest")]
    up: bool,
    /// KernelRootCNodeSizeBits [default: 12]
    #[arg(long, value_name = "N", conflicts_with = "manifest")]
    root_cnode_bits: Option<u32>,
    /// KernelTimerTickMS [default: 2]
    #[arg(long, value_name = "MS", conflicts_with = "manifest")]
    timer_tick: Option<u32>,
    /// KernelTimeSlice, ticks [default: 5]
    #[arg(long, value_name = "TICKS", conflicts_with = "manifest")]
    time_slice: Option<u32>,
    /// No debug system calls (KernelPrinting and KernelDebugBuild off)
    #[arg(long, conflicts_with = "manifest")]
    no_printing: bool,
    /// Benchmark system calls (KernelBenchmarks)
    #[arg(long, conflicts_with = "manifest")]
    benchmarks: bool,
    /// KernelBenchmarks = track_utilisation; no IPC fast path then
    #[arg(long, conflicts_with = "manifest")]
    track_utilisation: bool,
    /// KernelBenchmarks = track_kernel_entries; no IPC fast path then
    #[arg(long, conflicts_with = "manifest")]
    track_kernel_entries: bool,
    /// A kernel that checks its invariants at every exit: slow, for tests
    #[arg(long, conflicts_with = "manifest")]
    checked: bool,
    /// No IPC fast path (KernelFastpath off)
    #[arg(long, conflicts_with = "manifest")]
    no_fastpath: bool,
    /// Harts of the machine [default: 1]
    #[arg(long, value_name = "N", conflicts_with = "manifest")]
    harts: Option<usize>,
    /// RAM of the machine [default: 128M]
    #[arg(long, value_name = "SIZE", conflicts_with = "manifest")]
    memory: Option<Size>,
}

impl Server {
    fn configure(&self, file: &Path) -> RootServer {
        let mut server = RootServer::new(file.into());
        let (kernel, machine) = (&mut server.kernel, &mut server.machine);
        kernel.root_cnode_bits = self.root_cnode_bits.unwrap_or(kernel.root_cnode_bits);
        kernel.timer_tick = self.timer_tick.unwrap_or(kernel.timer_tick);
        kernel.time_slice = self.time_slice.unwrap_or(kernel.time_slice);
        kernel.printing &= !self.no_printing;
        kernel.checked |= self.checked;
        kernel.utilisation |= self.track_utilisation;
        kernel.entries |= self.track_kernel_entries;
        kernel.fastpath &= !self.no_fastpath;
        kernel.benchmarks |= self.benchmarks;
        machine.harts = self.harts.unwrap_or(machine.harts);
        machine.memory = self.memory.unwrap_or(machine.memory);
        if self.up {
            server.labels = Table::Up;
        }
        server
    }
}

#[derive(clap::Args, Default)]
struct Output {
    /// Where to write the image [default: target/images/NAME.elf]
    #[arg(long)]
    out: Option<PathBuf>,
    /// Leave the firmware out, for machines that bring their own (stock QEMU)
    #[arg(long)]
    without_firmware: bool,
}

impl Output {
    fn options(&self) -> Options<'_> {
        Options {
            out: self.out.clone(),
            without_firmware: self.without_firmware,
            progress: &|step| eprintln!("{step}"),
            ..Options::default()
        }
    }
}

impl System {
    fn load(&self) -> Result<Manifest, Error> {
        let mut manifest = match self.manifest.ends_with(".toml") {
            true => Manifest::load(self.manifest.as_ref())?,
            false => Manifest::named(&self.manifest)?,
        };
        for change in &self.set {
            let (key, value) = change.split_once('=').ok_or_else(|| Error::Manifest {
                place: format!("--set {change}"),
                message: "write KEY=VALUE".into(),
            })?;
            manifest.set(key, value)?;
        }
        Ok(manifest)
    }
}

fn main() -> ExitCode {
    match perform(&Command::parse().action) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn perform(action: &Action) -> Result<ExitCode, Error> {
    match action {
        Action::List => images::manifest::names()?.iter().for_each(|name| println!("{name}")),
        Action::Check(system) => {
            Builder::new()?.check(&system.load()?)?;
            println!("{} is good", system.manifest);
        }
        Action::Build { manifest, set, server, output } => report(&match (&server.root_server, manifest) {
            (Some(file), _) => Builder::new()?.build_root_server(&server.configure(file), &output.options())?,
            (None, manifest) => {
                let manifest = manifest.clone().unwrap_or_default();
                images::build(&System { manifest, set: set.clone() }.load()?, &output.options())?
            }
        }),
        Action::Qemu => return run_on_qemu(),
        Action::Run { system, soc } => {
            let image = images::build(&system.load()?, &Output::default().options())?;
            let words = ["soc".into(), "run".into(), image.path.into_os_string()];
            return Ok(soc::cli::perform(words.into_iter().chain(soc.iter().cloned())));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs all that runs on QEMU; a line for each.
fn run_on_qemu() -> Result<ExitCode, Error> {
    let Some(version) = images::qemu::version() else {
        eprintln!(
            "error: {} is not installed (Debian package qemu-system-misc or qemu-system-riscv)",
            images::qemu::PROGRAM
        );
        return Ok(ExitCode::from(2));
    };
    println!("{version}, machine virt");
    let mut builder = Builder::new()?;
    let mut failed = false;
    for job in images::qemu::JOBS {
        let start = Instant::now();
        match job.run(&mut builder) {
            Ok(()) => println!("{:<40} right ({:.1} s with its build)", job.name, start.elapsed().as_secs_f32()),
            Err(failure) => {
                failed = true;
                println!("{:<40} WRONG: {failure}", job.name);
            }
        }
    }
    Ok(ExitCode::from(u8::from(failed)))
}

fn report(image: &Image) {
    println!("{} ({} bytes)", image.path.display(), image.bytes.len());
}
