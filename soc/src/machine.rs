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

mod snapshot;

pub(crate) use snapshot::SavedMachine;

use crate::board::{self, CYCLE, RAM_BASE};
use crate::boot::{Guest, Plan};
use crate::bus::{Bus, NEVER};
use crate::config::{Config, Mode};
use crate::debug::{Debug, Debugger, Halt, Off, Stop};
use crate::device::{Device, Exit};
use crate::devices::uart::Keyboard;
use crate::devices::virtio::{EmptySlot, VirtioMmio};
use crate::devices::{axi_nic::AxiNic, finisher::Finisher, gem::Gem, rtc::Rtc};
use crate::disk::Disk;
use crate::elf::{self, Executable, Segment};
use crate::error::SocError;
use crate::hart::block::{Block, BlockCache, Edge, Found, NONE, STRADDLING, Way};
use crate::hart::exec::{Flow, execute};
use crate::hart::{Build, Exception, Hart};
use crate::moment::{Moment, Until};
use crate::order::{Key, Order};
use crate::outcome::{End, HartReport, Outcome};
use crate::time::SimTime;
use crate::timing::rocket::Rocket;
use crate::timing::{Functional, Path, Timing};
use crate::trouble::{Trouble, Watchman};
use crate::wire::loadgen::{Report, ReportHandle};
use crate::wire::{Network, Nic};
use serde::{Deserialize, Serialize};
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
    network_report: Option<ReportHandle>,
}

/// What a run works on, apart from the timing model.
struct Core {
    harts: Vec<Hart>,
    bus: Bus,
    blocks: BlockCache,
    schedule: Schedule,
    max_cycles: u64,
    /// A debugger wrote to memory.
    overwritten: bool,
    /// The turn that a debugger interrupted.
    interrupted: Option<Turn>,
}

/// One hart's turn, between two of its blocks.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Turn {
    hart: usize,
    until: u64,
    /// None: at the start of the turn. Else a block has been executed, and ended with a taken branch or jump or not.
    transferred: Option<bool>,
}

/// Variation of the interleaving.
struct Schedule {
    slack: u64,
    random: Option<SplitMix>,
}

impl Machine {
    /// Builds a machine in reset with empty RAM. Errors: as [`Config::check`], [`SocError::Disk`] and
    /// [`SocError::Network`].
    pub fn new(config: Config) -> Result<Self, SocError> {
        config.check()?;
        let network = network(&config)?;
        Self::with_network(config, network)
    }

    /// The same with a network of the caller's own instead of `config.net`'s, whose NIC it is plugged into. Errors: as
    /// [`Config::check`], and [`SocError::Disk`].
    pub fn with_network(config: Config, network: Network) -> Result<Self, SocError> {
        config.check()?;
        let timed = config.mode == Mode::Timed;
        let mut bus = Bus::new(config.memory_bytes, config.harts, config.user_interrupts);
        bus.ram.log_dma = timed;
        bus.timed = timed;
        if !config.isa.has_user_interrupts() {
            bus.remove_uintc();
        }
        bus.attach(board::FINISHER, &[], Path::Control, Box::new(Finisher));
        bus.attach(board::RTC, &[board::RTC_IRQ], Path::Control, Box::new(Rtc::default()));
        let lines = [board::AXI_DMA_MM2S_IRQ, board::AXI_DMA_S2MM_IRQ, board::AXI_ETHERNET_IRQ];
        let mut virtio: [Box<dyn Device>; board::VIRTIO_SLOTS] = std::array::from_fn(|_| Box::new(EmptySlot) as _);
        for (slot, disk) in virtio.iter_mut().zip(&config.disks) {
            *slot = Box::new(VirtioMmio::block(Disk::open(disk)?));
        }
        match config.net.nic {
            Nic::Axi => drop(bus.attach(board::AXI_NIC, &lines, Path::Axi, Box::new(AxiNic::new(network.link)))),
            Nic::Gem => drop(bus.attach(board::GEM, &[board::GEM_IRQ], Path::Axi, Box::new(Gem::new(network.link)))),
            Nic::Virtio => {
                virtio[board::VIRTIO_NET_SLOT] = Box::new(VirtioMmio::network(network.link, config.mac_address))
            }
        }
        for (slot, device) in virtio.into_iter().enumerate() {
            bus.attach(board::virtio(slot), &[board::virtio_irq(slot)], Path::Axi, device);
        }
        let device_tree = board::device_tree(&config, None);
        let core = Core {
            harts: Vec::new(),
            blocks: BlockCache::new(config.memory_bytes, timed),
            bus,
            schedule: Schedule {
                slack: if timed { 0 } else { FAST_SLACK },
                random: (config.schedule_seed != 0).then_some(SplitMix(config.schedule_seed)),
            },
            max_cycles: config.max_cycles.unwrap_or(u64::MAX),
            overwritten: false,
            interrupted: None,
        };
        let engine = if timed {
            Engine::Timed(Box::new(Rocket::new(config.harts, config.rl, config.wl)))
        } else {
            Engine::Fast(Functional)
        };
        Ok(Self { config, device_tree, engine, core, network_report: network.report })
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
        self.store(&segments, device_tree);
        if let Some(at) = executable.symbol("tohost") {
            self.core.bus.watch_to_host(at, executable.symbol("fromhost"));
        }
        self.reset(executable.entry(), device_tree, 0);
        Ok(())
    }

    /// Loads firmware and what it starts as `boot.rs` places them and resets all harts: M-mode at the firmware's entry,
    /// a0 = hart id, a1 = device tree, a2 = information for OpenSBI's `fw_dynamic`.
    ///
    /// Errors: a file's faults, or it does not fit. Nothing is changed then.
    pub fn load_guest(&mut self, guest: &Guest) -> Result<(), SocError> {
        // Where the RAM disk lies depends on the size of the tree that names it.
        let draft = board::device_tree(&self.config, guest.initrd.map(|_| (0, 0)));
        let plan = Plan::new(guest, self.config.memory_bytes, draft.len() as u64)?;
        self.device_tree = board::device_tree(&self.config, plan.initrd);
        self.store(&plan.segments, plan.device_tree);
        self.core.bus.ram.store_coherent(plan.dynamic - RAM_BASE, &plan.dynamic_information());
        self.reset(plan.entry, plan.device_tree, plan.dynamic);
        Ok(())
    }

    /// Copies checked segments and the device tree to RAM.
    fn store(&mut self, segments: &[Segment], device_tree: u64) {
        let ram = &mut self.core.bus.ram;
        for segment in segments {
            let offset = segment.address - RAM_BASE;
            ram.store_coherent(offset, segment.bytes);
            let zeros = vec![0; (segment.size - segment.bytes.len() as u64) as usize];
            ram.store_coherent(offset + segment.bytes.len() as u64, &zeros);
        }
        ram.store_coherent(device_tree - RAM_BASE, &self.device_tree);
    }

    fn reset(&mut self, entry: u64, device_tree: u64, information: u64) {
        let hart = |id| {
            let mut hart = Hart::new(id, entry, device_tree, Build::of(&self.config));
            hart.x[12] = information;
            hart.csrs.isa = self.config.isa;
            hart
        };
        self.core.harts = (0..self.config.harts).map(hart).collect();
    }

    /// Where console bytes go: whole lines as far as possible. Without a sink they are dropped.
    pub fn set_console(&mut self, sink: impl FnMut(&[u8]) + 'static) {
        self.core.bus.console.set_sink(Box::new(sink));
    }

    /// A byte typed at the console, received by the UART at `time` from power-on.
    pub fn type_byte(&mut self, time: SimTime, byte: u8) {
        self.core.bus.type_byte(time, byte);
    }

    /// Lets somebody type at the console while the machine runs. Such a run is as deterministic as its typist.
    pub fn attach_keyboard(&mut self, keyboard: Box<dyn Keyboard>) {
        self.core.bus.attach_keyboard(keyboard);
    }

    /// Runs until the guest ends the machine, nothing can happen any more, or the limit is reached. Can be called again after
    /// a limit or a deadlock (which then ends at once, unless something was typed).
    pub fn run(&mut self) -> Outcome {
        self.run_observed(&mut Off)
    }

    /// Runs as [`Machine::run`], and lets `observer`, which stops nothing, see it.
    pub(crate) fn run_observed<D: Debug>(&mut self, observer: &mut D) -> Outcome {
        loop {
            if let Halt::End(end) = self.advance(observer) {
                self.core.bus.console.flush();
                return self.outcome(end);
            }
        }
    }

    /// Runs as [`Machine::run_observed`], but not beyond the first of `moments`: none, if the run has come there.
    pub(crate) fn run_until<D: Debug>(&mut self, observer: &mut D, moments: &[Moment]) -> Option<Outcome> {
        for moment in moments {
            if let Moment::Text(text) = moment {
                self.core.bus.console.expect(text);
            }
        }
        loop {
            match self.advance(&mut Until { observer, moments }) {
                Halt::Stop(Stop::Moment) => return None,
                Halt::Stop(_) => {}
                Halt::End(end) => {
                    self.core.bus.console.flush();
                    return Some(self.outcome(end));
                }
            }
        }
    }

    /// Runs as [`Machine::run`], but only to the first block at which the hart whose turn it is, the one furthest behind, has reached `cycle`:
    /// none, if the run has come there. How it goes on does not depend on where it stopped.
    pub fn run_to(&mut self, cycle: u64) -> Option<Outcome> {
        self.run_until(&mut Off, &[Moment::Cycle(cycle)])
    }

    /// True if `moment` has come.
    pub(crate) fn is_past(&self, moment: &Moment) -> bool {
        let turn = self.core.interrupted.map(|turn| self.core.harts[turn.hart].clock);
        moment.has_come(turn.unwrap_or_else(|| self.core.reached()), &self.core.bus)
    }

    /// Runs until `watchman` finds the guest in trouble. If it was going to end with an error, the next run begins with that end. The end, if it
    /// ends well.
    pub(crate) fn run_to_trouble(&mut self, watchman: &mut Watchman) -> Result<Outcome, Trouble> {
        loop {
            let halt = self.advance(watchman);
            self.core.bus.console.flush();
            match halt {
                Halt::Stop(Stop::Breakpoint { hart }) => {
                    return Err(Trouble::Panic { hart, pc: self.core.harts[hart].pc });
                }
                Halt::Stop(_) => {}
                Halt::End(end @ End::Exit(code)) if code != 0 => {
                    self.core.bus.stop = Some(Exit::Code(code));
                    return Err(Trouble::Ended(end));
                }
                Halt::End(End::IdleDeadlock) => return Err(Trouble::Ended(End::IdleDeadlock)),
                Halt::End(end) => return Ok(self.outcome(end)),
            }
        }
    }

    /// Runs as [`Machine::run`], under `debugger`'s eyes, until the end or until it wants to be asked.
    pub(crate) fn run_debugged(&mut self, debugger: &mut Debugger) -> Halt {
        let halt = self.advance(debugger);
        self.core.bus.console.flush();
        halt
    }

    fn advance<D: Debug>(&mut self, debug: &mut D) -> Halt {
        match &mut self.engine {
            Engine::Fast(timing) => self.core.run(timing, debug),
            Engine::Timed(timing) => self.core.run(timing.as_mut(), debug),
        }
    }

    /// No hart runs, and nothing will happen but that the NIC asks for what comes over the wire.
    pub(crate) fn only_listens(&self) -> bool {
        self.core.harts.iter().all(|hart| hart.waiting) && self.core.bus.pending_events() <= 1
    }

    /// The harts, for a debugger.
    pub(crate) fn harts(&mut self) -> &mut [Hart] {
        &mut self.core.harts
    }

    /// The bus, for a debugger.
    pub(crate) fn bus(&mut self) -> &mut Bus {
        &mut self.core.bus
    }

    /// Both.
    pub(crate) fn harts_and_bus(&mut self) -> (&mut [Hart], &mut Bus) {
        (&mut self.core.harts, &mut self.core.bus)
    }

    /// Lets a debugger move hart `id` to `pc`.
    pub(crate) fn move_hart(&mut self, id: usize, pc: u64) {
        let hart = &mut self.core.harts[id];
        if hart.pc != pc {
            hart.pc = pc;
            // The block executed last no longer says what comes next.
            hart.way = Way::UNKNOWN;
            if let Some(turn) = &mut self.core.interrupted
                && turn.hart == id
            {
                turn.transferred = Some(true);
            }
        }
    }

    /// Lets a debugger write to RAM. False if it does not fit.
    pub(crate) fn overwrite(&mut self, offset: u64, bytes: &[u8]) -> bool {
        self.core.overwritten = true;
        self.core.bus.ram.store_coherent(offset, bytes)
    }

    /// Privilege and state of hart `id` in words; none if there is no such hart.
    pub(crate) fn hart_state(&self, id: usize) -> Option<String> {
        let hart = self.core.harts.get(id)?;
        let state = if hart.waiting { "waiting" } else { "running" };
        Some(format!("hart {id}: {:?}-mode, {state}", hart.privilege))
    }

    pub(crate) fn outcome(&self, end: End) -> Outcome {
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
        Outcome { end, time: board::at_cycle(cycles), cycles, harts }
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

/// The network that a configuration names.
fn network(config: &Config) -> Result<Network, SocError> {
    config.net.clone().build().map_err(|error| SocError::Network { reason: error.to_string() })
}

impl Core {
    /// Simulated time in cycles: that of the running hart furthest behind, or of the latest event if none runs.
    fn now(&self) -> u64 {
        let running = self.harts.iter().filter(|hart| !hart.waiting).map(|hart| hart.clock).min();
        running.unwrap_or_else(|| self.harts.iter().map(|hart| hart.clock).max().unwrap_or(0))
    }

    /// How far the machine has come, in cycles: as [`Core::now`], but while no hart runs, events move it.
    fn reached(&self) -> u64 {
        let idle = self.harts.iter().all(|hart| hart.waiting);
        if idle { self.now().max(self.bus.latest().as_ps() / CYCLE.as_ps()) } else { self.now() }
    }

    fn run<T: Timing, D: Debug>(&mut self, timing: &mut T, debug: &mut D) -> Halt {
        let mut interrupted = self.interrupted.take();
        if core::mem::take(&mut self.overwritten) {
            self.settle(timing);
        }
        // Of a turn that may not go on nothing is left to finish.
        interrupted = interrupted.filter(|turn| debug.only().is_none_or(|only| only == turn.hart));
        let mut order = Order::of(&self.harts);
        loop {
            let (mut turn, mut second, limit) = match interrupted.take() {
                Some(turn) => (turn, Key::NOBODY, 0),
                None => match self.next_turn(timing, debug, &mut order) {
                    Ok(found) => found,
                    Err(halt) => return halt,
                },
            };
            // Turn after turn, as long as nothing changes but clocks.
            loop {
                let first = match self.slice(timing, debug, turn) {
                    Ok(Some(clock)) => order.set(turn.hart, clock),
                    Ok(None) => {
                        self.after_effects(timing, turn.hart);
                        order = Order::of(&self.harts);
                        break;
                    }
                    Err((transferred, stop)) => {
                        self.interrupted = Some(Turn { transferred: Some(transferred), ..turn });
                        return Halt::Stop(stop);
                    }
                };
                // Nearly always it is now the turn of the second.
                let next = if first < second {
                    first
                } else {
                    let next = second;
                    second = order.first_but(next);
                    next
                };
                let Some(hart) = next.hart().filter(|_| !D::ACTIVE && next.clock() < limit) else { break };
                turn = self.turn_of(hart, second.clock(), limit);
            }
        }
    }

    /// Lets events happen until a hart may run; gives its turn, the hart behind it, and the cycle of the next event or of the
    /// end of the run. Error: the run ends or stops here.
    fn next_turn<T: Timing, D: Debug>(
        &mut self,
        timing: &mut T,
        debug: &mut D,
        order: &mut Order,
    ) -> Result<(Turn, Key, u64), Halt> {
        loop {
            if D::ACTIVE
                && let Some(stop) = debug.between(self.reached(), &self.bus)
            {
                return Err(Halt::Stop(stop));
            }
            if let Some(exit) = self.bus.stop.take() {
                return Err(Halt::End(match exit {
                    Exit::Code(code) => End::Exit(code),
                    Exit::Reset => End::Reset,
                    Exit::PeerDone => End::PeerDone,
                }));
            }
            let event = self.bus.next_event_cycle();
            let (first, second) = order.first_two();
            // A hart in `wfi` cannot run alone: then the others run too.
            let only = if D::ACTIVE { debug.only().filter(|&id| !self.harts[id].waiting) } else { None };
            match only.or(first.hart()) {
                Some(hart) => {
                    let clock = self.harts[hart].clock;
                    if clock >= self.max_cycles {
                        return Err(Halt::End(End::CycleLimit));
                    }
                    if clock < event {
                        let behind = if only.is_some() { NEVER } else { second.clock() };
                        let limit = event.min(self.max_cycles);
                        self.bus.stirred = false;
                        return Ok((self.turn_of(hart, behind, limit), second, limit));
                    }
                }
                None if event == NEVER => return Err(Halt::End(End::IdleDeadlock)),
                None if event > self.max_cycles => return Err(Halt::End(End::CycleLimit)),
                None => {}
            }
            self.events(timing, event);
            *order = Order::of(&self.harts);
        }
    }

    /// A turn of hart `hart`, which ends when its clock reaches `limit`, or that of the hart behind it and the slack.
    #[inline(always)]
    fn turn_of(&mut self, hart: usize, second: u64, limit: u64) -> Turn {
        let until = second.saturating_add(self.schedule.slack()).min(limit);
        self.bus.order_limit = until;
        Turn { hart, until, transferred: None }
    }

    /// What a turn of hart `hart` did to others happened at its own time.
    #[cold]
    fn after_effects<T: Timing>(&mut self, timing: &mut T, hart: usize) {
        if self.bus.ram.attention {
            self.settle(timing);
        }
        if self.bus.lines.changed() {
            self.wake_at(timing, self.harts[hart].clock);
        }
    }

    fn events<T: Timing>(&mut self, timing: &mut T, cycle: u64) {
        self.bus.run_events(board::at_cycle(cycle));
        self.settle(timing);
        self.wake_at(timing, cycle);
    }

    /// Applies what stores and devices left behind for decoded blocks and caches.
    fn settle<T: Timing>(&mut self, timing: &mut T) {
        self.bus.ram.attention = false;
        while let Some(page) = self.bus.ram.stale_code.pop() {
            self.blocks.drop_page(page);
            for hart in &mut self.harts {
                hart.way = Way::UNKNOWN;
            }
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
            hart.csrs.latch(self.bus.lines.take_latched(hart.id));
            if hart.waiting && !hart.stuck && hart.wakes(self.bus.lines.of(hart.id)) {
                hart.waiting = false;
                hart.woken = true;
                let wake = now.max(hart.clock) + timing.wake();
                hart.statistics.idle_cycles += wake - hart.clock;
                hart.clock = wake;
            }
        }
    }

    /// Runs a hart block by block until its clock reaches `until`, or until something needs the run loop. Gives its clock if that
    /// is all that has changed for others. Error: the debugger interrupts, and whether the block before ended with a transfer.
    #[inline(always)]
    fn slice<T: Timing, D: Debug>(
        &mut self,
        timing: &mut T,
        debug: &mut D,
        turn: Turn,
    ) -> Result<Option<u64>, (bool, Stop)> {
        let Turn { hart: id, until, transferred } = turn;
        let Self { harts, bus, blocks, .. } = self;
        let hart = &mut harts[id];
        hart.sync_translations(&bus.ram);
        let woken = core::mem::take(&mut hart.woken);
        if transferred.is_none() && hart.take_interrupt(&mut bus.ram, bus.lines.of(id)) {
            hart.clock += if T::TIMED { timing.interrupt(id, woken) } else { 1 };
        }
        let mut transferred = transferred.unwrap_or(false);
        let mut way = hart.way;
        loop {
            let bytes = if D::ACTIVE {
                debug.before(hart, bus).map_err(|stop| {
                    hart.way = way;
                    (transferred, stop)
                })?
            } else {
                u64::MAX
            };
            let found = if way.next != NONE { Ok(way.next) } else { lookup(hart, bus, blocks, way.edge) };
            way = Way::UNKNOWN;
            let flow = match found {
                Ok(index) => {
                    let block = blocks.block(index);
                    if T::TIMED {
                        // An instruction across two pages counts as transferred to.
                        hart.clock += enter_block(hart, id, bus, timing, block, transferred || index == STRADDLING);
                    }
                    let piece;
                    let (insns, whole) = if D::ACTIVE && bytes < block.bytes {
                        piece = block.piece(bytes);
                        (&*piece, false)
                    } else {
                        (&*block.insns, true)
                    };
                    let flow = execute(hart, id, bus, timing, insns);
                    if matches!(flow, Flow::Next | Flow::Taken | Flow::Plain) && whole {
                        way = blocks.way(index, flow == Flow::Taken);
                    }
                    flow
                }
                Err(exception) => {
                    hart.fetch_fault(exception);
                    Flow::Exception
                }
            };
            if D::ACTIVE {
                debug.after(hart, flow);
            }
            transferred = matches!(flow, Flow::Taken | Flow::Indirect);
            match flow {
                Flow::Next | Flow::Taken | Flow::Indirect => {}
                Flow::Plain => {
                    if bus.attention() {
                        break;
                    }
                }
                Flow::System => {
                    if hart.waiting || hart.yields {
                        hart.yields = false;
                        break;
                    }
                    if bus.attention() {
                        break;
                    }
                    if hart.take_interrupt(&mut bus.ram, bus.lines.of(id)) && T::TIMED {
                        hart.clock += timing.interrupt(id, false);
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
        hart.way = way;
        let quiet = !bus.stirred && !bus.ram.attention && !hart.waiting;
        Ok(quiet.then_some(hart.clock))
    }
}

/// Finds the block at `hart.pc`, and links it to the block executed before, left by `edge`, if both lie in one page.
#[inline(always)]
fn lookup(hart: &mut Hart, bus: &mut Bus, blocks: &mut BlockCache, edge: Edge) -> Result<u32, Exception> {
    let offset = hart.translate_fetch(&mut bus.ram, hart.pc)?;
    let Found::Block(index) = blocks.lookup(&mut bus.ram, offset) else { return straddle(hart, bus, blocks, offset) };
    hart.sync_translations(&bus.ram);
    blocks.link(edge, index);
    Ok(index)
}

/// The block of the one instruction at `hart.pc`, RAM offset `low`, whose second half lies in the next page.
#[cold]
fn straddle(hart: &mut Hart, bus: &mut Bus, blocks: &mut BlockCache, low: u64) -> Result<u32, Exception> {
    let high = hart.translate_fetch(&mut bus.ram, hart.pc.wrapping_add(2))?;
    let half = |offset| u32::from(u16::from_le_bytes(bus.ram.read(offset)));
    blocks.straddle(half(low) | half(high) << 16, low);
    Ok(STRADDLING)
}

/// Fetch cost of a block of `hart`, number `id`, in timed mode.
#[inline(always)]
fn enter_block<T: Timing>(
    hart: &mut Hart,
    id: usize,
    bus: &mut Bus,
    timing: &mut T,
    block: &Block,
    transferred: bool,
) -> u64 {
    let mut cycles = 0;
    if hart.fetch_space.root.is_some() && timing.fetch_misses(id, hart.pc) {
        let walk = hart.walk_for_timing(&mut bus.ram, hart.pc, crate::hart::pmp::Access::Fetch);
        cycles += walk.map_or(0, |walk| timing.refill(id, hart.clock, hart.pc, &walk, true));
    }
    cycles + timing.block(id, hart.clock + cycles, block, transferred)
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
#[derive(Clone, Serialize, Deserialize)]
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
