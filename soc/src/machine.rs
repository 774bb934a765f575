//! The machine: harts, bus and time put together, and the loop that runs them.
//!
//! ```text
//!             ┌───────────────────────────────────────────────────────────────┐
//!   run loop  │ events due? run them · a hart left to run? the one furthest   │
//!             │ behind · nobody? jump to the next event, or idle deadlock      │
//!             └──────────────┬────────────────────────────────────────────────┘
//!                            │ slice(hart, until)
//!             apply what others changed (translations, decoded pages, lines) · take an interrupt ·
//!             block after block until the clock passes `until` or something needs attention
//! ```
//!
//! There is one host thread. Order: the hart with the smallest (clock, id) runs until its clock passes that of the next
//! one plus a slack: 0 in timed mode, so that harts are ordered at every block; some hundred cycles in fast mode.

use crate::board::{self, CYCLE, RAM_BASE};
use crate::bus::Bus;
use crate::config::{Config, Mode};
use crate::device::Exit;
use crate::devices::{axi_nic::AxiNic, clint::Clint, finisher::Finisher, rtc::Rtc, uart::Uart};
use crate::elf::{self, Executable};
use crate::error::SocError;
use crate::hart::block::{Block, BlockCache, Found, NONE};
use crate::hart::exec::{Flow, execute};
use crate::hart::{Exception, Hart};
use crate::outcome::{End, HartReport, Outcome};
use crate::time::SimTime;
use crate::timing::rocket::Rocket;
use crate::timing::{Functional, Path, Timing};
use crate::wire::Network;
use crate::wire::loadgen::{Report, ReportHandle};
use sha2::{Digest, Sha256};

/// Cycles that a hart of a fast machine may run ahead of the next one.
const FAST_SLACK: u64 = 512;
/// The device tree lies at the end of RAM, on this boundary.
const DEVICE_TREE_ALIGN: u64 = 4096;

enum Engine {
    Fast(Functional),
    Timed(Box<Rocket>),
}

/// A virtual SoC.
pub struct Machine {
    config: Config,
    device_tree: Vec<u8>,
    engine: Engine,
    core: Core,
    uart: usize,
    network_report: Option<ReportHandle>,
}

/// What a run works on, apart from the timing model.
struct Core {
    harts: Vec<Hart>,
    bus: Bus,
    blocks: BlockCache,
    schedule: Schedule,
    max_cycles: u64,
}

/// Variation of the interleaving.
struct Schedule {
    slack: u64,
    random: Option<SplitMix>,
}

impl Machine {
    /// Builds a machine in reset with empty RAM. Errors: as [`Config::check`], and [`SocError::Network`].
    pub fn new(config: Config) -> Result<Self, SocError> {
        config.check()?;
        let network = config.net.clone().build().map_err(|error| SocError::Network { reason: error.to_string() })?;
        Self::with_network(config, network)
    }

    /// The same with a network of the caller's own instead of `config.net`. Errors: as [`Config::check`].
    pub fn with_network(config: Config, network: Network) -> Result<Self, SocError> {
        config.check()?;
        let timed = config.mode == Mode::Timed;
        let mut bus = Bus::new(config.memory_bytes, config.harts);
        bus.ram.log_dma = timed;
        bus.attach(board::CLINT, &[], Path::Control, Box::new(Clint::new(config.harts)));
        bus.attach(board::FINISHER, &[], Path::Control, Box::new(Finisher));
        bus.attach(board::RTC, &[board::RTC_IRQ], Path::Control, Box::new(Rtc::default()));
        let uart = bus.attach(board::UART, &[board::UART_IRQ], Path::Axi, Box::new(Uart::default()));
        let lines = [board::AXI_DMA_MM2S_IRQ, board::AXI_DMA_S2MM_IRQ, board::AXI_ETHERNET_IRQ];
        bus.attach(board::AXI_NIC, &lines, Path::Axi, Box::new(AxiNic::new(network.link)));
        let device_tree = board::device_tree(&config);
        let core = Core {
            harts: Vec::new(),
            blocks: BlockCache::new(config.memory_bytes, timed),
            bus,
            schedule: Schedule {
                slack: if timed { 0 } else { FAST_SLACK },
                random: (config.schedule_seed != 0).then_some(SplitMix(config.schedule_seed)),
            },
            max_cycles: config.max_cycles.unwrap_or(u64::MAX),
        };
        let engine = if timed {
            Engine::Timed(Box::new(Rocket::new(config.harts, config.rl, config.wl)))
        } else {
            Engine::Fast(Functional)
        };
        Ok(Self { config, device_tree, engine, core, uart, network_report: network.report })
    }

    /// The configuration that the machine was built from.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The flattened device tree that the guest sees.
    pub fn device_tree(&self) -> &[u8] {
        &self.device_tree
    }

    /// Loads an executable at its physical addresses, puts the device tree at the end of RAM and resets all harts: M-mode at
    /// the ELF's entry, a0 = hart id, a1 = device tree. A symbol `tohost` is watched.
    ///
    /// Errors: the file's faults, or it does not fit. Nothing is changed then.
    pub fn load_elf(&mut self, file: &[u8]) -> Result<(), SocError> {
        let executable = Executable::parse(file)?;
        let segments = executable.segments()?;
        let image_end = elf::check_fit(&segments, self.config.memory_bytes)?;
        let ram_end = RAM_BASE + self.config.memory_bytes;
        let device_tree = (ram_end - self.device_tree.len() as u64) & !(DEVICE_TREE_ALIGN - 1);
        if device_tree < image_end {
            return Err(SocError::NoRoomForDeviceTree);
        }
        let ram = &mut self.core.bus.ram;
        for segment in &segments {
            let offset = segment.address - RAM_BASE;
            ram.store_coherent(offset, segment.bytes);
            let zeros = vec![0; (segment.size - segment.bytes.len() as u64) as usize];
            ram.store_coherent(offset + segment.bytes.len() as u64, &zeros);
        }
        ram.store_coherent(device_tree - RAM_BASE, &self.device_tree);
        if let Some(at) = executable.symbol("tohost") {
            self.core.bus.watch_to_host(at);
        }
        let entry = executable.entry();
        self.core.harts =
            (0..self.config.harts).map(|id| Hart::new(id, entry, device_tree, self.config.accessed_dirty)).collect();
        Ok(())
    }

    /// Where console bytes go: whole lines as far as possible. Without a sink they are dropped.
    pub fn set_console(&mut self, sink: impl FnMut(&[u8]) + 'static) {
        self.core.bus.console.set_sink(Box::new(sink));
    }

    /// A byte typed at the console, received by the UART at `time` from power-on.
    pub fn type_byte(&mut self, time: SimTime, byte: u8) {
        self.core.bus.inject(self.uart, time, u64::from(byte));
    }

    /// Runs until the guest ends the machine, nothing can happen any more, or the limit is reached. Can be called again after
    /// a limit or a deadlock (which then ends at once, unless something was typed).
    pub fn run(&mut self) -> Outcome {
        let end = match &mut self.engine {
            Engine::Fast(timing) => self.core.run(timing),
            Engine::Timed(timing) => self.core.run(timing.as_mut()),
        };
        self.core.bus.console.flush();
        self.outcome(end)
    }

    fn outcome(&self, end: End) -> Outcome {
        let cycles = self.core.now();
        let harts = self
            .core
            .harts
            .iter()
            .map(|hart| {
                let mut statistics = hart.statistics;
                if let Engine::Timed(timing) = &self.engine {
                    timing.count(hart.id, &mut statistics);
                }
                HartReport {
                    pc: hart.pc,
                    privilege: hart.privilege,
                    waiting: hart.waiting,
                    stuck: hart.stuck,
                    cycles: hart.clock,
                    instructions: hart.instructions,
                    statistics,
                }
            })
            .collect();
        Outcome { end, time: SimTime::from_ps(cycles * CYCLE.as_ps()), cycles, harts }
    }

    /// What the load generator at the far end of the wire has measured; none without one.
    pub fn network_report(&self) -> Option<Report> {
        self.network_report.as_ref().map(ReportHandle::report)
    }

    /// `len` bytes of RAM at physical address `at`, or none if they are not all RAM.
    pub fn memory(&self, at: u64, len: usize) -> Option<&[u8]> {
        self.core.bus.ram.get(at.wrapping_sub(RAM_BASE), len)
    }

    /// SHA-256 over registers, clocks, RAM and console output: equal digests mean equal runs.
    pub fn digest(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        for hart in &self.core.harts {
            for register in hart.x[..32].iter().chain(&hart.f) {
                hash.update(register.to_le_bytes());
            }
            for word in [hart.pc, hart.clock, hart.instructions, hart.privilege as u64, u64::from(hart.waiting)] {
                hash.update(word.to_le_bytes());
            }
            hash.update(format!("{:?}", hart.csrs));
        }
        hash.update(self.core.bus.console.digest().to_le_bytes());
        hash.update(self.core.bus.ram.bytes());
        hash.finalize().into()
    }
}

impl Core {
    /// Simulated time in cycles: that of the running hart furthest behind, or of the latest event if none runs.
    fn now(&self) -> u64 {
        let running = self.harts.iter().filter(|hart| !hart.waiting).map(|hart| hart.clock).min();
        running.unwrap_or_else(|| self.harts.iter().map(|hart| hart.clock).max().unwrap_or(0))
    }

    fn run<T: Timing>(&mut self, timing: &mut T) -> End {
        loop {
            if let Some(exit) = self.bus.stop.take() {
                return match exit {
                    Exit::Code(code) => End::Exit(code),
                    Exit::Reset => End::Reset,
                    Exit::PeerDone => End::PeerDone,
                };
            }
            let event = self.bus.next_event().map(|time| time.as_ps().div_ceil(CYCLE.as_ps()));
            let Some((first, second)) = self.order() else {
                let Some(event) = event else { return End::IdleDeadlock };
                if event > self.max_cycles {
                    return End::CycleLimit;
                }
                self.events(timing, event);
                continue;
            };
            let clock = self.harts[first].clock;
            if clock >= self.max_cycles {
                return End::CycleLimit;
            }
            if let Some(event) = event
                && event <= clock
            {
                self.events(timing, event);
                continue;
            }
            let slack = self.schedule.slack();
            let until = second.saturating_add(slack).min(event.unwrap_or(u64::MAX)).min(self.max_cycles);
            self.bus.order_limit = until;
            self.slice(timing, first, until);
            // What this hart did to others happened at its own time.
            let now = self.harts[first].clock;
            if self.bus.lines.changed() {
                self.wake_at(timing, now);
            }
        }
    }

    /// The running hart furthest behind, and the clock of the next one.
    fn order(&self) -> Option<(usize, u64)> {
        let mut best: Option<usize> = None;
        let mut second = u64::MAX;
        for (id, hart) in self.harts.iter().enumerate().filter(|(_, hart)| !hart.waiting) {
            match best {
                Some(first) if self.harts[first].clock <= hart.clock => second = second.min(hart.clock),
                Some(first) => {
                    second = second.min(self.harts[first].clock);
                    best = Some(id);
                }
                None => best = Some(id),
            }
        }
        best.map(|first| (first, second))
    }

    fn events<T: Timing>(&mut self, timing: &mut T, cycle: u64) {
        self.bus.run_events(SimTime::from_ps(cycle * CYCLE.as_ps()));
        self.settle(timing);
        self.wake_at(timing, cycle);
    }

    /// Applies what stores and devices left behind for decoded blocks and caches.
    fn settle<T: Timing>(&mut self, timing: &mut T) {
        self.bus.ram.attention = false;
        while let Some(page) = self.bus.ram.stale_code.pop() {
            self.blocks.drop_page(page);
        }
        if T::TIMED {
            for (offset, len) in self.bus.ram.dma_log.drain(..) {
                timing.dma_write(offset + RAM_BASE, len);
            }
        }
    }

    /// Ends `wfi` on all harts whose lines say so, at cycle `now`.
    fn wake_at<T: Timing>(&mut self, timing: &mut T, now: u64) {
        self.bus.lines.clear_changed();
        for hart in &mut self.harts {
            if hart.waiting && !hart.stuck && hart.wakes(self.bus.lines.of(hart.id)) {
                hart.waiting = false;
                let wake = now.max(hart.clock) + timing.wake();
                hart.statistics.idle_cycles += wake - hart.clock;
                hart.clock = wake;
            }
        }
    }

    /// Runs hart `id` block by block until its clock reaches `until`, or until something needs the run loop.
    fn slice<T: Timing>(&mut self, timing: &mut T, id: usize, until: u64) {
        let Self { harts, bus, blocks, .. } = self;
        let hart = &mut harts[id];
        hart.sync_translations(&bus.ram);
        if hart.take_interrupt(&mut bus.ram, bus.lines.of(id)) {
            hart.clock += if T::TIMED { timing.interrupt(id) } else { 1 };
        }
        let mut current = NONE;
        let mut flow = Flow::System;
        loop {
            let chained = match (flow, current) {
                (_, NONE) => NONE,
                (Flow::Next, index) => blocks.block(index).next,
                (Flow::Taken, index) => blocks.block(index).taken,
                _ => NONE,
            };
            let found = if chained != NONE { Ok(chained) } else { lookup(hart, bus, blocks, flow, current) };
            match found {
                Ok(NONE) => {
                    current = NONE;
                    flow = straddle(hart, bus, blocks, timing);
                }
                Ok(index) => {
                    current = index;
                    let block = blocks.block(index);
                    if T::TIMED {
                        hart.clock += enter_block(hart, bus, timing, block, flow);
                    }
                    flow = execute(hart, bus, timing, &block.insns);
                }
                Err(exception) => {
                    current = NONE;
                    hart.fetch_fault(exception);
                    flow = Flow::Exception;
                }
            }
            match flow {
                Flow::Next | Flow::Taken | Flow::Indirect => {}
                Flow::System => {
                    if hart.waiting || hart.yields {
                        hart.yields = false;
                        break;
                    }
                    if bus.attention() {
                        break;
                    }
                    if hart.take_interrupt(&mut bus.ram, bus.lines.of(id)) && T::TIMED {
                        hart.clock += timing.interrupt(id);
                    }
                }
                Flow::Exception => {
                    let exception = hart.exception;
                    hart.take_exception(&mut bus.ram, exception);
                    if T::TIMED {
                        hart.clock += timing.exception(id);
                    }
                    if hart.stuck {
                        break;
                    }
                }
                Flow::Again => break,
            }
            if hart.clock >= until {
                break;
            }
        }
        if bus.ram.attention {
            self.settle(timing);
        }
    }
}

/// Finds the block at `hart.pc` and links it to `from` if both lie in one page; [`NONE`]: the instruction crosses into the next page.
fn lookup(hart: &mut Hart, bus: &mut Bus, blocks: &mut BlockCache, flow: Flow, from: u32) -> Result<u32, Exception> {
    let offset = hart.translate_fetch(&mut bus.ram, hart.pc)?;
    let Found::Block(index) = blocks.lookup(&mut bus.ram, offset) else { return Ok(NONE) };
    hart.sync_translations(&bus.ram);
    if from != NONE && matches!(flow, Flow::Next | Flow::Taken) {
        let taken = flow == Flow::Taken;
        // The successor lies in this page for every mapping of it, or for none.
        if blocks.block(from).stays_in_page(taken) {
            blocks.link(from, index, taken);
        }
    }
    Ok(index)
}

/// Runs the one instruction at `hart.pc`, whose second half lies in the next page.
fn straddle<T: Timing>(hart: &mut Hart, bus: &mut Bus, blocks: &mut BlockCache, timing: &mut T) -> Flow {
    let pc = hart.pc;
    let halves = hart.translate_fetch(&mut bus.ram, pc).and_then(|low| {
        let high = hart.translate_fetch(&mut bus.ram, pc.wrapping_add(2))?;
        Ok((low, high))
    });
    match halves {
        Ok((low, high)) => {
            let half = |offset| u32::from(u16::from_le_bytes(bus.ram.read(offset)));
            let block = blocks.straddling(half(low) | half(high) << 16, low);
            if T::TIMED {
                hart.clock += enter_block(hart, bus, timing, &block, Flow::Indirect);
            }
            execute(hart, bus, timing, &block.insns)
        }
        Err(exception) => {
            hart.fetch_fault(exception);
            Flow::Exception
        }
    }
}

/// Fetch cost of a block in timed mode.
#[inline(always)]
fn enter_block<T: Timing>(hart: &mut Hart, bus: &mut Bus, timing: &mut T, block: &Block, flow: Flow) -> u64 {
    let mut cycles = 0;
    if hart.fetch_space.root.is_some() && timing.fetch_misses(hart.id, hart.pc) {
        let walk = hart.walk_for_timing(&mut bus.ram, hart.pc, crate::hart::pmp::Access::Fetch);
        cycles += walk.map_or(0, |walk| timing.refill(hart.id, hart.clock, hart.pc, &walk, true));
    }
    cycles + timing.block(hart.id, block, matches!(flow, Flow::Taken | Flow::Indirect))
}

impl Schedule {
    /// How far the next slice may run ahead.
    #[inline]
    fn slack(&mut self) -> u64 {
        match &mut self.random {
            None => self.slack,
            // Within a few tens of cycles hardware arbitration could have gone either way.
            Some(random) => self.slack / 2 + random.next() % (self.slack + 24),
        }
    }
}

/// The SplitMix64 generator (Steele, Lea, Flood 2014).
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }
}
