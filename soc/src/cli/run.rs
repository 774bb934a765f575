//! `soc run`: a machine out of an image, a bare program, or firmware and a kernel.

use super::watch::Watch;
use super::{cannot_write, read};
use crate::board::CYCLE;
use crate::boot::Guest;
use crate::config::{AccessedDirty, Isa, Misaligned, UserInterrupts};
use crate::disk::DiskSpec;
use crate::elf::Executable;
use crate::image::MachineDefaults;
use crate::symbols::Symbols;
use crate::time::SimTime;
use crate::wire::link::FrameLog;
use crate::wire::nat::Forward;
use crate::wire::spec::PeerSpec;
use crate::wire::{NatConfig, NetSpec};
use crate::{Config, Machine, Mode, parse_bytes};
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};

/// One byte with start and stop bit at 115200 baud.
const INPUT_BYTE: SimTime = SimTime::from_ns(86_806);

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum ModeName {
    /// One instruction per cycle, as quickly as the host can
    Fast,
    /// The Rocket cost model, cycle by cycle
    Timed,
}

impl From<ModeName> for Mode {
    fn from(name: ModeName) -> Self {
        match name {
            ModeName::Fast => Self::Fast,
            ModeName::Timed => Self::Timed,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum AccessedDirtyName {
    /// Software sets the bits after a page fault (as Rocket)
    Trap,
    /// The page table walker sets them
    Hw,
}

#[derive(Clone, Copy, ValueEnum)]
enum IsaName {
    /// With user interrupts and their controller
    Rv64imafdcn,
    /// Without: as a stock RISC-V machine
    Rv64imafdc,
}

#[derive(Clone, Copy, ValueEnum)]
enum MisalignedName {
    /// An exception (as Rocket)
    Trap,
    /// The hart does it, in RAM
    Hw,
}

#[derive(Clone, Copy, ValueEnum)]
enum UserInterruptsName {
    /// A level: there while something is pending
    Level,
    /// A latch that software must clear; to test handlers with
    Latch,
}

#[derive(Clone, Copy, ValueEnum)]
enum Switch {
    On,
    Off,
}

#[derive(Args)]
#[command(after_help = "\
Exit code: that of the guest; 2 for a refused input, 124 at --max-cycles, 125 if all harts wait and nothing can wake them.

Networks (--net): none; sink; echo; loopback; loadgen:connections=1,2,4;requests=200; and, at the host's pace:
nat:forward=tcp:8080:80,udp:5353:53; dgram:local=127.0.0.1:7001;remote=127.0.0.1:7002; tap:name=tap0. Any but none takes
;rate=1G;delay=5us;loss=0.01;damage=0.001;reorder=0.01;duplicate=0.01;link-seed=7. In front of any stands, with a comma, the NIC that the board
has: axi (the default), virtio or gem.")]
pub(super) struct Run {
    /// Image (or any RISC-V executable linked at 0x80000000)
    #[arg(value_name = "IMAGE.elf", required_unless_present_any = ["bare", "firmware", "kernel", "dump_dtb"])]
    image: Option<PathBuf>,
    /// Bare-metal program: all harts start in M-mode; `tohost` ends the run
    #[arg(long, value_name = "PROG.elf", conflicts_with = "image")]
    bare: Option<PathBuf>,
    /// Firmware, ELF or raw (at 0x80000000): starts in M-mode on all harts
    #[arg(long, value_name = "FILE", conflicts_with_all = ["image", "bare"])]
    firmware: Option<PathBuf>,
    /// Kernel that the firmware starts, ELF or raw (at 0x80200000)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["image", "bare"])]
    kernel: Option<PathBuf>,
    /// Initial RAM disk, placed high in RAM and named in the device tree
    #[arg(long, value_name = "FILE", requires = "kernel")]
    initrd: Option<PathBuf>,
    /// After the run, write memory from begin_signature to end_signature, one 32-bit word a line
    #[arg(long, value_name = "FILE", requires = "bare")]
    signature: Option<PathBuf>,
    /// What the serial port receives: bytes of this file, 115200 baud, from --input-at on
    #[arg(long, value_name = "FILE", conflicts_with = "interactive")]
    input: Option<PathBuf>,
    /// Core cycle of the first byte of --input
    #[arg(long, value_name = "CYCLE", default_value_t = 0, requires = "input")]
    input_at: u64,
    /// Who sets the accessed and dirty bits of page table entries
    #[arg(long, value_enum, default_value = "trap")]
    ad: AccessedDirtyName,
    /// Extensions of the harts
    #[arg(long, value_enum, default_value = "rv64imafdcn")]
    isa: IsaName,
    /// What a load or store at an address that is no multiple of its size does
    #[arg(long, value_enum, default_value = "trap")]
    misaligned: MisalignedName,
    /// The Sstc extension (stimecmp)
    #[arg(long, value_enum, default_value = "off")]
    sstc: Switch,
    /// How the UINTC interrupts a hart
    #[arg(long, value_enum, default_value = "level")]
    uintc: UserInterruptsName,
    /// How time passes
    #[arg(long, value_enum, default_value = "fast")]
    mode: ModeName,
    /// Number of harts, 1 to 8 [default: the image's, else 1]
    #[arg(long, value_name = "N")]
    harts: Option<usize>,
    /// RAM, for example 128M or 1G [default: the image's, else 128M]
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// The NIC, and what is at the far end of its Ethernet cable
    #[arg(long, value_name = "[NIC,]SPEC", default_value = "none")]
    net: String,
    /// A port of the host's 127.0.0.1 that leads to a port of the guest; may be repeated; implies --net nat
    #[arg(long, value_name = "tcp|udp:HOST:GUEST")]
    forward: Vec<Forward>,
    /// A tap device of the host at the far end of the cable; implies --net tap
    #[arg(long, value_name = "NAME", conflicts_with = "forward")]
    tap: Option<String>,
    /// A file as virtio disk, with ,ro for reading only; may be given up to 7 times
    #[arg(long, value_name = "FILE[,ro]")]
    disk: Vec<DiskSpec>,
    /// Vary the interleaving of harts; 0 is the plain order
    #[arg(long, value_name = "N", default_value_t = 0)]
    schedule_seed: u64,
    /// Memory read latency in cycles (timed mode)
    #[arg(long, value_name = "CYCLES", default_value_t = Config::default().rl)]
    rl: u32,
    /// Memory write latency in cycles (timed mode)
    #[arg(long, value_name = "CYCLES", default_value_t = Config::default().wl)]
    wl: u32,
    /// Kernel arguments for the device tree
    #[arg(long, value_name = "TEXT", default_value = "")]
    append: String,
    /// Write the machine's device tree; without an image, only that
    #[arg(long, value_name = "FILE")]
    dump_dtb: Option<PathBuf>,
    #[command(flatten)]
    watch: Watch,
}

impl Run {
    /// Does it; gives the exit code.
    pub(super) fn go(&self) -> Result<u8, String> {
        if let Some(firmware) = &self.firmware {
            return self.boot(firmware);
        }
        if self.kernel.is_some() {
            return Err(
                "--kernel needs a --firmware that starts it: give OpenSBI's fw_dynamic.bin (Debian package opensbi)"
                    .to_owned(),
            );
        }
        let Some(path) = self.image.as_ref().or(self.bare.as_ref()) else {
            let (machine, _) = self.machine(&MachineDefaults::default())?;
            self.dump_device_tree(&machine)?;
            return Ok(0);
        };
        let shown = path.display();
        let in_file = |error: crate::SocError| format!("{shown}: {error}");
        let file = read(path)?;
        let defaults = MachineDefaults::of(&file).map_err(in_file)?;
        let (mut machine, frames) = self.machine(&defaults)?;
        machine.load_elf(&file).map_err(in_file)?;
        let signature = self.signature_range(&file)?;
        let code = self.start(&mut machine, frames, &Symbols::of(&file))?;
        self.write_signature(&machine, signature)?;
        Ok(code)
    }

    /// Runs firmware and what it starts.
    fn boot(&self, firmware: &Path) -> Result<u8, String> {
        let firmware_file = read(firmware)?;
        let kernel = self.kernel.as_deref().map(read).transpose()?;
        let initrd = self.initrd.as_deref().map(read).transpose()?;
        let (mut machine, frames) = self.machine(&MachineDefaults::default())?;
        let guest = Guest { firmware: &firmware_file, kernel: kernel.as_deref(), initrd: initrd.as_deref() };
        machine.load_guest(&guest).map_err(|error| format!("{}: {error}", firmware.display()))?;
        // Raw files have no symbols; the kernel's are worth more than the firmware's.
        self.start(&mut machine, frames, &Symbols::of(kernel.as_deref().unwrap_or(&firmware_file)))
    }

    /// Runs a loaded machine to its end and reports.
    fn start(&self, machine: &mut Machine, frames: FrameLog, symbols: &Symbols) -> Result<u8, String> {
        self.dump_device_tree(machine)?;
        if let Some(path) = &self.input {
            let first = SimTime::from_ps(self.input_at.saturating_mul(CYCLE.as_ps()));
            for (index, byte) in (0..).zip(read(path)?) {
                machine.type_byte(SimTime::from_ps(first.as_ps().saturating_add(index * INPUT_BYTE.as_ps())), byte);
            }
        }
        self.watch.drive(machine, frames, symbols)
    }

    /// Start and length of what `--signature` writes.
    fn signature_range(&self, file: &[u8]) -> Result<Option<(u64, usize)>, String> {
        if self.signature.is_none() {
            return Ok(None);
        }
        let executable = Executable::parse(file).map_err(|error| error.to_string())?;
        let range = executable.symbol("begin_signature").zip(executable.symbol("end_signature"));
        let length = range.and_then(|(start, end)| Some((start, usize::try_from(end.checked_sub(start)?).ok()?)));
        length.map(Some).ok_or_else(|| "--signature: no symbols begin_signature and end_signature in order".to_owned())
    }

    fn write_signature(&self, machine: &Machine, range: Option<(u64, usize)>) -> Result<(), String> {
        let Some((path, (start, length))) = self.signature.as_ref().zip(range) else { return Ok(()) };
        let bytes = machine.memory(start, length).ok_or("--signature: the range lies outside RAM")?;
        let mut text = String::new();
        for word in bytes.chunks(4) {
            let digits: String = word.iter().rev().map(|byte| format!("{byte:02x}")).collect();
            text.push_str(&digits);
            text.push('\n');
        }
        std::fs::write(path, text).map_err(|error| cannot_write(path, &error, "--signature"))
    }

    /// The machine, and the log of its wire, which is kept for a trace only.
    fn machine(&self, defaults: &MachineDefaults) -> Result<(Machine, FrameLog), String> {
        let fallback = Config::default();
        let memory =
            self.memory.as_deref().map(parse_bytes).transpose().map_err(|error| format!("--memory: {error}"))?;
        let config = Config {
            harts: self.harts.or(defaults.harts).unwrap_or(fallback.harts),
            memory_bytes: memory.or(defaults.memory_bytes).unwrap_or(fallback.memory_bytes),
            mode: self.mode.into(),
            schedule_seed: self.schedule_seed,
            rl: self.rl,
            wl: self.wl,
            max_cycles: self.watch.max_cycles,
            isa: match self.isa {
                IsaName::Rv64imafdcn => Isa::Rv64imafdcn,
                IsaName::Rv64imafdc => Isa::Rv64imafdc,
            },
            accessed_dirty: match self.ad {
                AccessedDirtyName::Trap => AccessedDirty::Trap,
                AccessedDirtyName::Hw => AccessedDirty::Hardware,
            },
            misaligned: match self.misaligned {
                MisalignedName::Trap => Misaligned::Trap,
                MisalignedName::Hw => Misaligned::Hardware,
            },
            sstc: matches!(self.sstc, Switch::On),
            user_interrupts: match self.uintc {
                UserInterruptsName::Level => UserInterrupts::Level,
                UserInterruptsName::Latch => UserInterrupts::Latch,
            },
            bootargs: self.append.clone(),
            net: self.network()?,
            mac_address: fallback.mac_address,
            disks: self.disk.clone(),
        };
        let mut network = config.net.clone().build().map_err(|error| format!("--net: {error}"))?;
        let frames = self.watch.prepare(&mut network);
        let machine = Machine::with_network(config, network).map_err(|error| error.to_string())?;
        Ok((machine, frames))
    }

    fn network(&self) -> Result<NetSpec, String> {
        let mut spec: NetSpec = self.net.parse().map_err(|error| format!("--net: {error}"))?;
        for forward in &self.forward {
            match spec.peer.get_or_insert_with(|| PeerSpec::Nat(NatConfig::default())) {
                PeerSpec::Nat(nat) => nat.forwards.push(*forward),
                _ => return Err("--forward goes with --net nat and no other".to_owned()),
            }
        }
        if let Some(name) = &self.tap {
            if spec.peer.is_some() {
                return Err("--tap goes with no other --net".to_owned());
            }
            spec.peer = Some(PeerSpec::Tap(Some(name.clone())));
        }
        if self.watch.pcap.is_some() { self.watch.capture(spec) } else { Ok(spec) }
    }

    fn dump_device_tree(&self, machine: &Machine) -> Result<(), String> {
        let Some(path) = &self.dump_dtb else { return Ok(()) };
        std::fs::write(path, machine.device_tree()).map_err(|error| cannot_write(path, &error, "--dump-dtb"))
    }
}
