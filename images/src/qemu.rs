//! The same images on a machine that is not ours: stock QEMU's `virt` board, which has no user interrupts and a virtio network.
//!
//! An image runs there with its own firmware (`-bios IMAGE`: all of it is one ELF file at the start of RAM) or, built without, under the
//! OpenSBI that QEMU brings (`-kernel IMAGE`). The console is standard output, and the test finisher's code is QEMU's exit code.
//!
//! Nothing here is deterministic: QEMU runs at the speed of the host, and its harts in any order. So the [`JOBS`] say what must come out,
//! and not when.

use crate::{Builder, Error, Image, Manifest, Options};
use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

/// QEMU's program.
pub const PROGRAM: &str = "qemu-system-riscv64";
/// A run that takes longer has failed; the longest takes two seconds on an idle host.
const PATIENCE: Duration = Duration::from_secs(60);
/// What the echo server does to each byte.
const REPLY_XOR: u8 = 0x5A;
/// Requests to the echo server, and bytes of each.
const REQUESTS: usize = 40;
const REQUEST_BYTES: usize = 700;

/// Who runs below the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Firmware {
    /// The image's own.
    Own,
    /// QEMU's OpenSBI.
    OpenSbi,
}

/// The network that the board has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// None.
    Absent,
    /// A virtio network device of this version of the transport, on QEMU's user-mode network.
    Virtio(u32),
}

/// What a run must show.
#[derive(Clone, Copy, Debug)]
enum Expect {
    /// The machine ends with code 0, and the console has all of these.
    Lines(&'static [&'static str]),
    /// The machine ends with this code.
    Code(i32),
    /// A client on the host gets right answers from the echo server.
    Echo,
}

/// A system and what must come of it.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// What is tried, in words.
    pub name: &'static str,
    manifest: &'static str,
    changes: &'static [(&'static str, &'static str)],
    firmware: Firmware,
    network: Network,
    expect: Expect,
}

/// Fewer calls than for a measurement: two harts that wait for each other are slow where the host has not two processors to spare.
const CALLS: (&str, &str) = ("program.ipc-client.args.calls", "\"256\"");
const ONE_HART: &[(&str, &str)] = &[CALLS];
const TWO_HARTS: &[(&str, &str)] = &[CALLS, ("machine.harts", "2"), ("program.ipc-server.hart", "1")];
const ANSWERS: &[&str] = &[
    "asker: endpoint: 100 of 100 answers right over an endpoint",
    "asker: rings: 100 of 100 answers right over rings",
];
const IN_TIME: &[&str] = &["20 calls ended at their deadlines", "20 calls were answered in time"];
const SYNC: &[(&str, &str)] = &[CALLS, ("channel.ipc.transport", "sync"), ("program.ipc-client.threads", "4")];
const NULL_CALLS: &[&str] = &["\"calls\":256"];

/// What runs there: each system on one hart and on several, under either firmware.
pub const JOBS: &[Job] = &[
    Job::new("hello, 1 hart", "hello", &[], Expect::Lines(&["hello: hello from hart 0, thread 0"])),
    Job { firmware: Firmware::OpenSbi, ..Job::new("hello under OpenSBI, 2 harts", "hello", HELLO_1, HELLO) },
    Job::new("a panic is exit code 1", "hello", PANIC, Expect::Code(1)),
    Job::new("rings and endpoint, 2 harts", "pair", &[], Expect::Lines(ANSWERS)),
    Job::new("emulated user interrupts, 2 harts", "vectors", ROUNDS, Expect::Lines(&["T1: ", "T19: 0x32 0x0  right"])),
    Job::new("deadlines, 2 harts", "deadline", &[], Expect::Lines(IN_TIME)),
    Job::new("null calls over rings, 1 hart", "ipc", ONE_HART, Expect::Lines(NULL_CALLS)),
    Job::new("null calls over rings, 2 harts", "ipc", TWO_HARTS, Expect::Lines(NULL_CALLS)),
    Job::new("null calls over an endpoint", "ipc", SYNC, Expect::Lines(NULL_CALLS)),
    Job { network: Network::Virtio(1), ..Job::new("echo, virtio 1, 1 hart", "echo", &[], Expect::Echo) },
    Job { network: Network::Virtio(2), ..Job::new("echo, virtio 2, 2 harts", "echo", ECHO_2, Expect::Echo) },
];
const ROUNDS: &[(&str, &str)] = &[("program.receiver.args.rounds", "\"50\"")];
const HELLO_1: &[(&str, &str)] = &[("machine.harts", "2"), ("program.hello.hart", "1")];
const HELLO: Expect = Expect::Lines(&["hello: hello from hart 1, thread 0"]);
const PANIC: &[(&str, &str)] = &[("program.hello.bin", "intruder"), ("program.hello.args.attempt", "panic")];
const ECHO_2: &[(&str, &str)] = &[("machine.harts", "2"), ("program.echo-server.hart", "1")];

/// Why a run is not what it should be.
#[derive(Debug)]
pub enum Failure {
    /// The image cannot be built.
    Image(Error),
    /// QEMU cannot be run, or the host's network fails.
    Host(std::io::Error),
    /// It went wrong: how, and the console.
    Wrong(String, String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Image(error) => error.fmt(f),
            Self::Host(error) => write!(f, "{PROGRAM}: {error}"),
            Self::Wrong(what, console) => write!(f, "{what}\n{console}"),
        }
    }
}

impl std::error::Error for Failure {}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Image(error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Host(error)
    }
}

/// The first line of what QEMU says of its version; `None` if it is not installed.
pub fn version() -> Option<String> {
    let output = Command::new(PROGRAM).arg("--version").output().ok()?;
    String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_owned)
}

impl Job {
    const fn new(
        name: &'static str,
        manifest: &'static str,
        changes: &'static [(&'static str, &'static str)],
        expect: Expect,
    ) -> Self {
        Self { name, manifest, changes, firmware: Firmware::Own, network: Network::Absent, expect }
    }

    /// Builds the image and runs it.
    ///
    /// # Errors
    /// If it cannot be built or run, or does not do what it must.
    pub fn run(&self, builder: &mut Builder) -> Result<(), Failure> {
        let mut manifest = Manifest::named(self.manifest)?;
        manifest.rename(&format!("qemu-{}", self.name.replace([' ', ','], "-")));
        self.changes.iter().try_for_each(|(key, value)| manifest.set(key, value))?;
        let without_firmware = self.firmware == Firmware::OpenSbi;
        let image = builder.build(&manifest, &Options { quiet: true, without_firmware, ..Options::default() })?;
        let port = free_port()?;
        let mut machine = Running::start(command(&image, self.firmware, self.network, port))?;
        match self.expect {
            Expect::Lines(lines) => {
                let status = machine.wait()?;
                let missing = lines.iter().find(|line| !machine.console.contains(**line));
                machine.check(status.success(), || format!("it ended with {status}"))?;
                machine.check(missing.is_none(), || format!("`{}` is missing", missing.unwrap_or(&"")))
            }
            Expect::Code(code) => {
                let status = machine.wait()?;
                machine.check(status.code() == Some(code), || format!("it ended with {status}, not with code {code}"))
            }
            Expect::Echo => {
                let answered = echo(port);
                machine.kill()?;
                let error = answered.err().map(|error| error.to_string());
                machine.check(error.is_none(), || format!("echo: {}", error.unwrap_or_default()))
            }
        }
    }
}

fn command(image: &Image, firmware: Firmware, network: Network, port: u16) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(["-M", "virt", "-display", "none", "-serial", "stdio", "-monitor", "none", "-no-reboot"]);
    command.args(["-smp", &image.machine.harts.to_string(), "-m", &format!("{}K", image.machine.memory.0 >> 10)]);
    match firmware {
        Firmware::Own => command.arg("-bios").arg(&image.path),
        Firmware::OpenSbi => command.args(["-bios", "default", "-kernel"]).arg(&image.path),
    };
    if let Network::Virtio(version) = network {
        let legacy = if version == 1 { "true" } else { "false" };
        command.args(["-global", &format!("virtio-mmio.force-legacy={legacy}")]);
        command.args(["-netdev", &format!("user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:{port}-:7")]);
        command.args(["-device", "virtio-net-device,netdev=net"]);
    }
    command
}

/// A port that nobody listens on now.
fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// QEMU at work.
struct Running {
    child: Child,
    output: Receiver<Vec<u8>>,
    console: String,
}

impl Running {
    fn start(mut command: Command) -> std::io::Result<Self> {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn()?;
        let (sender, output) = mpsc::channel();
        if let Some(mut pipe) = child.stdout.take() {
            thread::spawn(move || {
                let mut text = Vec::new();
                // What was read before an error is still worth showing.
                let _ = pipe.read_to_end(&mut text);
                let _ = sender.send(text);
            });
        }
        Ok(Self { child, output, console: String::new() })
    }

    /// Waits for the end, and takes the console.
    fn wait(&mut self) -> Result<ExitStatus, Failure> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait()? {
                self.take_console();
                return Ok(status);
            }
            if Instant::now() > deadline {
                self.kill()?;
                self.check(false, || format!("it has not ended after {} seconds", PATIENCE.as_secs()))?;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn kill(&mut self) -> std::io::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        self.take_console();
        Ok(())
    }

    fn take_console(&mut self) {
        self.console = String::from_utf8_lossy(&self.output.recv().unwrap_or_default()).replace('\r', "");
    }

    fn check(&self, good: bool, what: impl FnOnce() -> String) -> Result<(), Failure> {
        if good { Ok(()) } else { Err(Failure::Wrong(what(), self.console.clone())) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already, unless an error came between.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Talks to the echo server behind the forwarded port: every byte of every answer is checked.
fn echo(port: u16) -> std::io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    // The forwarder accepts before the guest listens; then it closes, or nothing is answered for long.
    let mut stream = loop {
        let tried = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).and_then(|mut stream| {
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(Duration::from_millis(300)))?;
            exchange(&mut stream, 0)?;
            stream.set_read_timeout(Some(Duration::from_secs(10)))?;
            Ok(stream)
        });
        match tried {
            Ok(stream) => break stream,
            Err(error) if error.kind() == ErrorKind::InvalidData || Instant::now() > deadline => return Err(error),
            Err(_) => thread::sleep(Duration::from_millis(20)),
        }
    };
    (1..REQUESTS).try_for_each(|number| exchange(&mut stream, number))
}

fn exchange(stream: &mut TcpStream, number: usize) -> std::io::Result<()> {
    let request: Vec<u8> = (0..REQUEST_BYTES).map(|place| (number * 31 + place) as u8).collect();
    stream.write_all(&request)?;
    let mut answer = vec![0; REQUEST_BYTES];
    stream.read_exact(&mut answer)?;
    let right = request.iter().zip(&answer).all(|(sent, got)| sent ^ REPLY_XOR == *got);
    if right { Ok(()) } else { Err(std::io::Error::new(ErrorKind::InvalidData, format!("answer {number} is wrong"))) }
}
