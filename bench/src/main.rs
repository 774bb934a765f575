//! The `bench` command: parameters in, tables or JSON out. Exit codes: 0 measured, 1 a run failed, 2 impossible parameters.

use std::path::PathBuf;
use std::process::ExitCode;

use bench::error::Error;
use bench::tour::{self, Options, Output};
use bench::{calibrate, fairness, host, ipc, kernel, nic, rtl, socket};
use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};

/// Runs the experiments on the virtual SoC and puts the published figures beside ours.
#[derive(Debug, Parser)]
#[command(name = "bench", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Every experiment; writes target/results/summary.json and the figures in images/figures/.
    Tour {
        /// Capture the packets of all machines, one after another.
        #[arg(long, value_name = "FILE")]
        pcap: Option<PathBuf>,
        #[command(flatten)]
        common: Common,
    },
    /// The null call; writes target/results/ipc.json.
    Ipc {
        /// Transports to measure [default: all].
        #[arg(long, value_delimiter = ',', value_enum)]
        transport: Vec<ipc::Transport>,
        /// Calls in flight (over an endpoint each is a thread, and more than 64 are left out) [default: powers of two from 1 to 512].
        #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=512))]
        concurrency: Vec<u32>,
        /// What the server does for each request [default: all].
        #[arg(long, value_delimiter = ',', value_enum)]
        load: Vec<ipc::Load>,
        /// Calls to time at each point; long calls are fewer.
        #[arg(long, value_parser = clap::value_parser!(u64).range(1..=100_000))]
        calls: Option<u64>,
        #[command(flatten)]
        common: Common,
    },
    /// Shares of a server's time beside a flooding client, which `ipc` measures too; writes target/results/fairness.json.
    Fairness {
        #[command(flatten)]
        common: Common,
    },
    /// Kernel operations; writes target/results/kernel.json.
    Kernel {
        #[command(flatten)]
        common: Common,
    },
    /// The timing model beside Rocket RTL, the NIC beside its board; writes target/results/calibrate.json.
    Calibrate {
        /// Run the programs on the RTL too (needs Verilator and pip); writes target/results/calibrate-rtl.json.
        #[arg(long)]
        rtl: bool,
        /// Print the records as JSON instead of tables.
        #[arg(long)]
        json: bool,
    },
    /// Speed of the machine on this host, beside QEMU; writes target/results/host.json.
    Soc {
        /// Runs of each point; the fastest counts.
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100), default_value_t = 3)]
        runs: u32,
        /// Print the records as JSON instead of tables.
        #[arg(long)]
        json: bool,
    },
    /// Transmit rate of the NIC driver; writes target/results/nic.json.
    Nic {
        /// Print the records as JSON instead of tables.
        #[arg(long)]
        json: bool,
    },
    /// Sockets; writes target/results/net.json.
    Net {
        /// How the server program reaches the network server.
        #[arg(long, value_delimiter = ',', value_enum, default_values_t = socket::Transport::ALL)]
        transport: Vec<socket::Transport>,
        /// Harts that the two share.
        #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=2), default_values_t = [1, 2])]
        harts: Vec<u32>,
        /// Connections open at a time.
        #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=256), default_values_t = socket::CONNECTIONS)]
        connections: Vec<u32>,
        /// Requests to time at each point, for each connection.
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
        requests: Option<u32>,
        /// Capture the packets of all machines, one after another.
        #[arg(long, value_name = "FILE")]
        pcap: Option<PathBuf>,
        #[command(flatten)]
        common: Common,
    },
}

/// What every command takes.
#[derive(Debug, Args)]
struct Common {
    /// Print the records as JSON instead of tables.
    #[arg(long)]
    json: bool,
    /// Fewer calls and requests: the shapes in seconds. Writes no figures, and quick-*.json instead of the results.
    #[arg(long)]
    quick: bool,
}

impl Command {
    fn run(self) -> Result<(), Error> {
        let options = |name, common: &Common| Options { quick: common.quick, ..Options::new(name, output(common)) };
        let options = match self {
            Self::Calibrate { rtl, json } => {
                let output = if json { Output::Json } else { Output::Tables };
                return if rtl { rtl::run(output) } else { calibrate::run(output) };
            }
            Self::Soc { runs, json } => {
                return host::run(host::Spec { runs }, if json { Output::Json } else { Output::Tables });
            }
            Self::Nic { json } => return nic::run(if json { Output::Json } else { Output::Tables }),
            Self::Tour { pcap, common } => Options {
                ipc: Some(ipc::Sweep::new(common.quick)),
                socket: Some(socket::Sweep::new(common.quick)),
                pcap,
                figures: !common.quick,
                ..options("summary", &common)
            },
            Self::Ipc { transport, concurrency, load, calls, common } => {
                let default = ipc::Sweep::full(common.quick);
                let whole = transport.is_empty() && load.is_empty();
                let sweep = ipc::Sweep {
                    transports: given_or(transport, default.transports),
                    armed: if whole { default.armed } else { Vec::new() },
                    syscalls: if whole { default.syscalls } else { Vec::new() },
                    fairness: if whole { default.fairness } else { Vec::new() },
                    concurrencies: given_or(concurrency, default.concurrencies),
                    loads: given_or(load, default.loads),
                    calls: calls.unwrap_or(default.calls),
                    ..default
                };
                Options { ipc: Some(sweep), ..options("ipc", &common) }
            }
            Self::Fairness { common } => {
                let fairness = fairness::Spec::all(common.quick);
                let sweep = ipc::Sweep { concurrencies: Vec::new(), fairness, ..ipc::Sweep::new(common.quick) };
                Options { ipc: Some(sweep), ..options("fairness", &common) }
            }
            Self::Kernel { common } => {
                Options { kernel: kernel::Spec::all(common.quick), ..options("kernel", &common) }
            }
            Self::Net { transport, harts, connections, requests, pcap, common } => {
                let default = socket::Sweep::new(common.quick);
                let requests = requests.unwrap_or(default.requests);
                let sweep = socket::Sweep { transports: transport, harts, connections, requests, ..default };
                Options { socket: Some(sweep), pcap, ..options("net", &common) }
            }
        };
        tour::run(&options)
    }
}

fn given_or<T>(given: Vec<T>, default: Vec<T>) -> Vec<T> {
    if given.is_empty() { default } else { given }
}

fn output(common: &Common) -> Output {
    if common.json { Output::Json } else { Output::Tables }
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    match cli.command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

/// Help goes out as it is; a mistake becomes one line.
fn refuse(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        print!("{}", error.render());
        return ExitCode::SUCCESS;
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        eprint!("{}", error.render());
        return ExitCode::from(2);
    }
    let text = error.to_string();
    let lines =
        text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let message: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    eprintln!("{}", message.join(" "));
    ExitCode::from(2)
}
