//! `soc pair`: two machines back to back.

use super::read;
use super::run::ModeName;
use crate::image::MachineDefaults;
use crate::pair::Pair;
use crate::symbols::Symbols;
use crate::time::SimTime;
use crate::wire::NetSpec;
use crate::{Config, parse_bytes};
use clap::Args;
use std::io::Write;
use std::path::PathBuf;

/// How the lines of the two machines begin.
const NAMES: [&str; 2] = ["A", "B"];

#[derive(Args)]
#[command(after_help = "\
Each line of the console begins with the machine that prints it. The run ends when A ends, with its exit code; 124 at --max-cycles, 125 if both
wait and nothing is under way.")]
pub(super) struct Two {
    /// Image, or any RISC-V executable linked at 0x80000000, of the first machine
    #[arg(value_name = "A.elf")]
    first: PathBuf,
    /// Of the second machine
    #[arg(value_name = "B.elf")]
    second: PathBuf,
    /// NIC of both machines: axi, virtio or gem
    #[arg(long, value_name = "NIC", default_value = "axi")]
    nic: String,
    /// Delay of the cable in microseconds, at least 1
    #[arg(long, value_name = "US", default_value_t = 5)]
    delay: u64,
    /// How time passes
    #[arg(long, value_enum, default_value = "fast")]
    mode: ModeName,
    /// Number of harts of each machine [default: the image's, else 1]
    #[arg(long, value_name = "N")]
    harts: Option<usize>,
    /// RAM of each machine [default: the image's, else 128M]
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// Stop after this many core cycles
    #[arg(long, value_name = "N")]
    max_cycles: Option<u64>,
    /// Print what each hart did, to standard error
    #[arg(long)]
    stats: bool,
    /// Print the SHA-256 of the final states, to standard error
    #[arg(long)]
    digest: bool,
}

impl Two {
    /// Does it; gives the exit code.
    pub(super) fn go(&self) -> Result<u8, String> {
        let paths = [&self.first, &self.second];
        let files = [read(&self.first)?, read(&self.second)?];
        let in_file = |number: usize| move |error: crate::SocError| format!("{}: {error}", paths[number].display());
        let delay = SimTime::from_ps(self.delay.saturating_mul(SimTime::from_us(1).as_ps()));
        let configs = [self.config(&files[0], 0).map_err(in_file(0)), self.config(&files[1], 1).map_err(in_file(1))];
        let [first, second] = configs;
        let mut pair = Pair::new([first?, second?], delay).map_err(|error| error.to_string())?;
        for (number, machine) in pair.machines().iter_mut().enumerate() {
            machine.load_elf(&files[number]).map_err(in_file(number))?;
            let symbols = Symbols::of(&files[number]);
            let mut begun = false;
            machine.set_console(move |bytes| begun = print(NAMES[number], begun, &symbols, bytes));
        }
        let outcomes = pair.run();
        for (number, outcome) in outcomes.iter().enumerate() {
            if self.stats {
                eprint!("{}: {}", NAMES[number], outcome.statistics());
            }
            if self.digest {
                let digest = pair.machines()[number].digest();
                let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
                eprintln!("{}: digest {hex}", NAMES[number]);
            }
        }
        Ok(outcomes[0].exit_code())
    }

    fn config(&self, image: &[u8], number: u8) -> Result<Config, crate::SocError> {
        let (defaults, fallback) = (MachineDefaults::of(image)?, Config::default());
        let memory = self.memory.as_deref().map(parse_bytes).transpose()?;
        let net: NetSpec = format!("{},none", self.nic).parse().map_err(|_| crate::SocError::Network {
            reason: format!("\"{}\" is no NIC: axi, virtio or gem", self.nic),
        })?;
        let mut station = fallback.mac_address;
        station[5] += number;
        Ok(Config {
            harts: self.harts.or(defaults.harts).unwrap_or(fallback.harts),
            memory_bytes: memory.or(defaults.memory_bytes).unwrap_or(fallback.memory_bytes),
            mode: self.mode.into(),
            max_cycles: self.max_cycles,
            mac_address: station,
            net,
            ..fallback
        })
    }
}

/// Prints bytes of a console with its name at the start of each line. `begun`: a line has begun before; gives whether one has now.
fn print(name: &str, mut begun: bool, symbols: &Symbols, bytes: &[u8]) -> bool {
    let text = symbols.expand(&String::from_utf8_lossy(bytes));
    let mut shown = String::new();
    for part in text.split_inclusive('\n') {
        if !begun {
            shown.push_str(name);
            shown.push_str("| ");
        }
        shown.push_str(part);
        begun = !part.ends_with('\n');
    }
    // A closed standard output does not end the machines.
    let _ = std::io::stdout().lock().write_all(shown.as_bytes());
    begun
}
