//! A run of the harness: the images of all points, the machines, then tables, records and figures.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use images::Builder;

use crate::boot::{self, Boot};
use crate::error::Error;
use crate::progress::Progress;
use crate::results::{self, Machine, Record, Summary};
use crate::table::Colour;
use crate::{capture, fairness, ipc, jobs, kernel, socket, syscall, wake};

/// What goes to standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Tables, for people.
    Tables,
    /// The results file.
    Json,
}

/// What a run does.
#[derive(Clone, Debug)]
pub struct Options {
    /// Name of the results file, without its ending.
    pub name: &'static str,
    /// Kernel operations.
    pub kernel: Vec<kernel::Spec>,
    /// The null call.
    pub ipc: Option<ipc::Sweep>,
    /// Sockets.
    pub socket: Option<socket::Sweep>,
    /// Where to write the packets.
    pub pcap: Option<PathBuf>,
    /// What goes to standard output.
    pub output: Output,
    /// A short run, which leaves the results of a full one alone.
    pub quick: bool,
    /// Draw the figures of the tree.
    pub figures: bool,
}

impl Options {
    /// Nothing to measure yet.
    pub fn new(name: &'static str, output: Output) -> Self {
        Self { name, kernel: Vec::new(), ipc: None, socket: None, pcap: None, output, quick: false, figures: false }
    }
}

/// What has been measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Kernel operations.
    pub kernel: Vec<kernel::Point>,
    /// The null call.
    pub ipc: Vec<ipc::Point>,
    /// Wakes.
    pub wakes: Vec<wake::Point>,
    /// Async system calls.
    pub syscalls: Vec<syscall::Point>,
    /// Shares of a server's time.
    pub fairness: Vec<fairness::Point>,
    /// Sockets.
    pub socket: Vec<socket::Point>,
    /// The images that ran, in the order of the points, with their SHA-256.
    pub images: Vec<(String, [u8; 32])>,
    /// The packets of the machines with a network.
    captures: Vec<Vec<u8>>,
}

impl Measured {
    /// All records, in the order of the experiments.
    pub fn records(&self) -> Vec<Record> {
        let Self { kernel, ipc, wakes, syscalls, fairness, socket, .. } = self;
        let records = [kernel::records(kernel), ipc::records(ipc), wake::records(wakes)].concat();
        [records, syscall::records(syscalls), fairness::records(fairness), socket::records(socket)].concat()
    }
}

/// A boot and what it measures.
enum Job {
    Kernel(kernel::Spec, Boot),
    Ipc(ipc::Spec, Boot),
    Wake(wake::Spec, Boot),
    Syscall(syscall::Spec, Boot),
    Fairness(fairness::Spec, Boot),
    Socket(socket::Spec, Boot),
}

impl Job {
    fn boot(&self) -> &Boot {
        match self {
            Self::Kernel(_, boot)
            | Self::Ipc(_, boot)
            | Self::Wake(_, boot)
            | Self::Syscall(_, boot)
            | Self::Fairness(_, boot)
            | Self::Socket(_, boot) => boot,
        }
    }

    /// The points that it measures, in words.
    fn labels(&self) -> Vec<String> {
        match self {
            Self::Socket(spec, boot) => spec.labels(&boot.label),
            _ => vec![self.boot().label.clone()],
        }
    }
}

/// Measures everything that `options` asks for, and writes and prints it.
///
/// # Errors
/// The first failure, with what the guest said.
pub fn run(options: &Options) -> Result<(), Error> {
    if let Some(path) = &options.pcap {
        // Before minutes of work, not after them.
        results::write_file(path, &[])?;
    }
    let measured = measure(&options.kernel, options.ipc.as_ref(), options.socket.as_ref(), options.pcap.is_some())?;
    let summary = summary(&measured);
    let prefix = if options.quick { "quick-" } else { "" };
    let folder = Builder::new()?.target().join("results");
    results::make_folder(&folder)?;
    let results = folder.join(format!("{prefix}{}.json", options.name));
    results::write_file(&results, summary.to_json().as_bytes())?;
    if let Some(path) = &options.pcap {
        results::write_file(path, &capture::join(&measured.captures))?;
    }
    let mut written = vec![results];
    written.extend(options.pcap.clone());
    if options.figures {
        written.extend(draw(&measured)?);
    }
    let text = match options.output {
        Output::Json => summary.to_json(),
        Output::Tables => tables(&measured, &written),
    };
    // A closed pipe (`| head`) is nobody's mistake, and the results are in their files.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(())
}

/// Boots a machine for every point of the sweeps.
///
/// # Errors
/// The first failure, with what the guest said.
pub fn measure(
    kernel: &[kernel::Spec],
    ipc: Option<&ipc::Sweep>,
    socket: Option<&socket::Sweep>,
    captured: bool,
) -> Result<Measured, Error> {
    let socket = socket.map(socket::Sweep::specs).unwrap_or_default();
    let calls =
        ipc.map_or(0, |sweep| sweep.specs().len() + sweep.wakes.len() + sweep.syscalls.len() + sweep.fairness.len());
    let points = kernel.len() + calls + socket.iter().map(socket::Spec::points).sum::<usize>();
    let progress = Progress::new(points as u64);
    let result = measure_specs(kernel, ipc, socket, captured, &progress);
    progress.finish();
    result
}

/// Builds the images, then runs the machines on all processors of the host. The long jobs, sockets and fairness, start first.
fn measure_specs(
    kernel: &[kernel::Spec],
    sweep: Option<&ipc::Sweep>,
    socket: Vec<socket::Spec>,
    captured: bool,
    progress: &Progress,
) -> Result<Measured, Error> {
    let ipc = sweep.map(ipc::Sweep::specs).unwrap_or_default();
    let wakes = sweep.map_or(&[][..], |sweep| &sweep.wakes);
    let syscalls = sweep.map_or(&[][..], |sweep| &sweep.syscalls);
    let fairness = sweep.map_or(&[][..], |sweep| &sweep.fairness);
    let mut builder = Builder::new()?;
    let manifests = socket.iter().map(socket::Spec::manifest).chain(ipc.iter().map(ipc::Spec::manifest));
    let manifests = manifests.chain(kernel.iter().map(kernel::Spec::manifest));
    let manifests = manifests.chain(wakes.iter().map(wake::Spec::manifest));
    let manifests = manifests.chain(syscalls.iter().map(syscall::Spec::manifest));
    for manifest in manifests.chain(fairness.iter().map(fairness::Spec::manifest)) {
        builder.check(&manifest?)?;
    }
    progress.phase("building the images");
    let mut jobs = Vec::new();
    for spec in socket {
        let boot = spec.boot(captured, &mut builder)?;
        jobs.push(Job::Socket(spec, boot));
    }
    for &spec in fairness {
        let boot = spec.boot(&mut builder)?;
        jobs.push(Job::Fairness(spec, boot));
    }
    for &spec in kernel {
        let boot = spec.boot(&mut builder)?;
        jobs.push(Job::Kernel(spec, boot));
    }
    for spec in ipc {
        let boot = spec.boot(&mut builder)?;
        jobs.push(Job::Ipc(spec, boot));
    }
    for &spec in wakes {
        let boot = spec.boot(&mut builder)?;
        jobs.push(Job::Wake(spec, boot));
    }
    for &spec in syscalls {
        let boot = spec.boot(&mut builder)?;
        jobs.push(Job::Syscall(spec, boot));
    }
    progress.phase("measuring");
    let runs = jobs::run(&jobs, jobs::workers(), |job| {
        let run = boot::run(job.boot());
        job.labels().iter().for_each(|label| progress.point(label));
        run
    })?;
    let mut measured = Measured::default();
    let image = |boot: &Boot| (boot.name.clone(), boot.digest());
    for (job, run) in jobs.iter().zip(&runs) {
        match job {
            Job::Kernel(spec, boot) => {
                measured.kernel.push(spec.point(run)?);
                measured.images.push(image(boot));
            }
            Job::Ipc(spec, boot) => {
                measured.ipc.push(spec.point(run)?);
                measured.images.push(image(boot));
            }
            Job::Wake(spec, boot) => {
                measured.wakes.push(spec.point(run)?);
                measured.images.push(image(boot));
            }
            Job::Syscall(spec, boot) => {
                measured.syscalls.push(spec.point(run)?);
                measured.images.push(image(boot));
            }
            Job::Fairness(spec, boot) => {
                measured.fairness.push(spec.point(run)?);
                measured.images.push(image(boot));
            }
            Job::Socket(..) => {}
        }
    }
    for (job, run) in jobs.iter().zip(runs) {
        if let Job::Socket(spec, boot) = job {
            measured.socket.extend(spec.points_of(&run)?);
            measured.images.push(image(boot));
            measured.captures.extend(run.capture);
        }
    }
    Ok(measured)
}

/// The results file of `measured`.
pub fn summary(measured: &Measured) -> Summary {
    let harts = measured.kernel.iter().map(|point| point.measure.harts());
    let harts = harts.chain(measured.ipc.iter().map(|point| point.transport.harts()));
    let harts = harts.chain(measured.wakes.iter().map(|_| 2));
    let harts = harts.chain(measured.syscalls.iter().map(|point| point.form.harts()));
    let harts = harts.chain(measured.fairness.iter().map(fairness::Point::harts));
    let harts = harts.chain(measured.socket.iter().map(|point| point.harts)).max().unwrap_or(1);
    let machine = Machine { harts: harts.into(), ..boot::machine() };
    Summary::new(commit(), &measured.images, machine, boot::SEED, measured.records())
}

/// The commit of the tree, with a `+` if files that it tracks have changed. The figures do not count: a run writes them.
pub(crate) fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").current_dir(tree()).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "HEAD"]) else { return "unknown".into() };
    let changes = git(&["status", "--porcelain", "--untracked-files=no", "--", ".", ":!images/figures"]);
    let mark = if changes.is_some_and(|changes| changes.is_empty()) { "" } else { "+" };
    commit + mark
}

/// Draws the figures of the tree; returns their files.
fn draw(measured: &Measured) -> Result<Vec<PathBuf>, Error> {
    let folder = tree().join("images/figures");
    results::make_folder(&folder)?;
    let charts = ipc::charts(&measured.ipc).into_iter().chain(socket::charts(&measured.socket));
    let mut files = Vec::new();
    for (name, chart) in charts {
        let file = folder.join(name).with_extension("svg");
        results::write_file(&file, chart.svg()?.as_bytes())?;
        files.push(file);
    }
    Ok(files)
}

/// What a person is shown.
fn tables(measured: &Measured, written: &[PathBuf]) -> String {
    let colour = Colour::of_stdout();
    let mut text = String::new();
    if !measured.kernel.is_empty() {
        text += &format!("{}\n", kernel::table(&measured.kernel).render(colour));
    }
    if !measured.wakes.is_empty() {
        text += &format!("{}\n", wake::table(&measured.wakes).render(colour));
    }
    if !measured.syscalls.is_empty() {
        text += &format!("{}\n", syscall::table(&measured.syscalls).render(colour));
    }
    for table in ipc::tables(&measured.ipc) {
        text += &format!("{}\n", table.render(colour));
    }
    if !measured.fairness.is_empty() {
        text += &format!("{}\n", fairness::table(&measured.fairness).render(colour));
    }
    if !measured.socket.is_empty() {
        text += &format!("{}\n", socket::table(&measured.socket).render(colour));
    }
    for file in written {
        text += &format!("wrote {}\n", file.strip_prefix(tree()).unwrap_or(file).display());
    }
    text
}

/// The root of the source tree.
fn tree() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package lies in the tree")
}
