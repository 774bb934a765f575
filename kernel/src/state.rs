//! Every global of the kernel, in one place: what all cores share, and what each core has of its own.
//!
//! There is one `Kernel`, and who holds the big lock holds it: it is the token of mem.rs.

use abi::config::{MAX_NUM_NODES, MAX_PLIC_IRQ, NUM_PRIORITIES, TIME_SLICE};
use abi::label::Table;

use crate::alarm::Timer;
use crate::arch::{Arch, Context, Current};
#[cfg(debug_assertions)]
use crate::invariants::Journal;
use crate::log::Log;
use crate::mem::{Kva, Ref};
use crate::object::cap::Cte;
use crate::object::irq::IrqState;
use crate::object::tcb::{Tcb, ThreadState};
use crate::object::user_interrupt::Receiver;
use crate::object::vspace::AsidPool;
use crate::utilisation::Account;

/// ASID pools (`seL4_NumASIDPoolsBits` = 7).
pub const ASID_POOLS: usize = 128;
/// Interrupt numbers that can exist: PLIC sources from 1, two for other cores, the timer.
pub const IRQS: usize = MAX_PLIC_IRQ as usize + 4;
/// Receivers that the kernel keeps account of (UINTC: 512).
pub const RECEIVERS: usize = 512;

/// What the boot header says.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Numbering of the invocations.
    pub labels: Table,
    /// IPC fast path on.
    pub fastpath: bool,
    /// Debug system calls exist.
    pub printing: bool,
    /// Benchmark system calls exist.
    pub benchmarks: bool,
    /// Who uses the cores is tracked (utilisation.rs).
    pub utilisation: bool,
    /// Kernel entries are logged (log.rs).
    pub entries: bool,
    /// Ticks per time slice.
    pub time_slice: u32,
}

impl Config {
    /// seL4's defaults: UP numbering, debug calls, fast path.
    pub const DEFAULT: Self = Self {
        labels: Table::Up,
        fastpath: true,
        printing: true,
        benchmarks: false,
        utilisation: false,
        entries: false,
        time_slice: TIME_SLICE,
    };
}

/// What the kernel does with its core when it leaves (section "decision" of sched.rs).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The current thread continues.
    Resume,
    /// The best ready thread runs.
    ChooseNew,
    /// This thread runs, if it is good enough.
    Candidate(Ref<Tcb>),
}

/// Head and tail of a queue of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadyQueue {
    /// Runs first.
    pub head: Option<Ref<Tcb>>,
    /// Runs last.
    pub tail: Option<Ref<Tcb>>,
}

/// What a core has of its own; its ready queues are in [`Kernel::queues`]. Its size is a power of two, so that finding it is a shift.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Core {
    /// The thread that runs, or that entered the kernel.
    pub current: Option<Ref<Tcb>>,
    /// Runs when nobody else does.
    pub idle: Option<Ref<Tcb>>,
    /// Decision so far.
    pub action: Action,
    /// Whose user-interrupt state is in the core's registers.
    pub loaded: Option<Ref<Tcb>>,
    /// Whose values the floating-point registers hold, whether they are on or not.
    pub fpu: Option<Ref<Tcb>>,
    /// The floating-point unit is on, for the current thread.
    pub fpu_on: bool,
    /// The core holds special registers of the current thread (special.rs).
    pub special: bool,
    /// Whose system-call ring it works off, when it has nothing more urgent to do (syscall_ring/handover.rs).
    pub ring: Option<Ref<Tcb>>,
    /// Cores to interrupt on the way out (bit = core).
    pub reschedule: usize,
    /// Bit *w* is set when `ready_words[w]` is not 0.
    pub ready_summary: u64,
    /// A bit for each queue that is not empty, the best priority first ([`ready_bit`]).
    pub ready_words: [u64; NUM_PRIORITIES / 64],
}

/// Word and bit of a priority in `ready_words`. The best one is the lowest bit of the lowest word: without Zbb the lowest set bit is
/// found by a multiplication, the highest only by a search.
#[inline(always)]
pub const fn ready_bit(priority: u8) -> (usize, u32) {
    const _: () = assert!(NUM_PRIORITIES == 256);
    let rank = !priority;
    ((rank / 64) as usize, (rank % 64) as u32)
}

const _: () = assert!(size_of::<Core>() == 128);

impl Core {
    const fn new() -> Self {
        Self {
            current: None,
            idle: None,
            action: Action::Resume,
            loaded: None,
            fpu: None,
            fpu_on: false,
            special: false,
            ring: None,
            reschedule: 0,
            ready_summary: 0,
            ready_words: [0; NUM_PRIORITIES / 64],
        }
    }

    /// Whether a thread of this priority is ready.
    pub const fn is_ready(&self, priority: u8) -> bool {
        let (word, bit) = ready_bit(priority);
        self.ready_words[word] >> bit & 1 != 0
    }
}

/// The kernel: all its globals, and the token that opens kernel objects. What the fast path reads comes first.
#[repr(C)]
pub struct Kernel {
    /// The architecture.
    pub arch: Current,
    /// Configuration of this image.
    pub config: Config,
    /// Per core.
    pub cores: [Core; MAX_NUM_NODES],
    /// ASID pools by number.
    pub asid_pools: [Option<Ref<AsidPool>>; ASID_POOLS],
    /// Ready threads by core and priority.
    pub queues: [[ReadyQueue; NUM_PRIORITIES]; MAX_NUM_NODES],
    /// State of each interrupt.
    pub irqs: [IrqState; IRQS],
    /// Slots with the notification of each interrupt; the kernel's own object.
    pub irq_slots: Option<Ref<Cte>>,
    /// First in the list of all threads but the idle ones, newest first.
    pub threads: Option<Ref<Tcb>>,
    /// The timer of each core.
    pub timers: [Timer; MAX_NUM_NODES],
    /// The log of kernel entries.
    pub log: Log,
    /// Who used each core.
    pub accounts: [Account; MAX_NUM_NODES],
    /// Cancellations of badged sends so far (endpoint.rs).
    pub cancellations: u64,
    /// Work units since the last look at pending interrupts.
    pub work_units: usize,
    /// Receivers of user interrupts by number.
    pub receivers: [Receiver; RECEIVERS],
    /// What has been opened for change.
    #[cfg(debug_assertions)]
    pub journal: Journal,
}

/// log2 of the bytes that the kernel needs for objects of its own: interrupt slots (4 KiB) and an idle thread per core (2 KiB each).
pub const OWN_OBJECTS_BITS: usize = 15;
const IRQ_SLOTS_BYTES: u64 = 4096;
const _: () = assert!(IRQS * size_of::<Cte>() <= IRQ_SLOTS_BYTES as usize);
const _: () = assert!(IRQ_SLOTS_BYTES as usize + MAX_NUM_NODES * size_of::<Tcb>() <= 1 << OWN_OBJECTS_BITS);

/// What runs next on this core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Next {
    /// A thread.
    Run(Ref<Tcb>),
    /// Nobody: wait for an interrupt.
    Idle,
}

impl Next {
    /// The thread, if there is one.
    #[inline(always)]
    pub const fn thread(self) -> Option<Ref<Tcb>> {
        match self {
            Self::Run(thread) => Some(thread),
            Self::Idle => None,
        }
    }
}

impl Kernel {
    /// A kernel without objects, good as the value of a static. `start` comes next.
    pub const fn new(arch: Current) -> Self {
        Self {
            arch,
            cores: [const { Core::new() }; MAX_NUM_NODES],
            config: Config::DEFAULT,
            queues: [[ReadyQueue { head: None, tail: None }; NUM_PRIORITIES]; MAX_NUM_NODES],
            irqs: [IrqState::Inactive; IRQS],
            irq_slots: None,
            asid_pools: [None; ASID_POOLS],
            threads: None,
            timers: [Timer::NEW; MAX_NUM_NODES],
            log: Log::NEW,
            accounts: [Account::NEW; MAX_NUM_NODES],
            cancellations: 0,
            work_units: 0,
            receivers: [const { Receiver::FREE }; RECEIVERS],
            #[cfg(debug_assertions)]
            journal: Journal::new(),
        }
    }

    /// Gives the kernel its configuration and the memory for its own objects. Every core idles then.
    ///
    /// # Safety
    /// `1 << OWN_OBJECTS_BITS` zeroed bytes of RAM lie at `objects`, 4 KiB aligned, for the kernel alone, for ever.
    pub unsafe fn start(&mut self, config: Config, objects: Kva) {
        self.config = config;
        // SAFETY: the caller gave the memory; a zeroed Cte is an empty slot.
        self.irq_slots = Some(unsafe { Ref::assume(objects) });
        for core in 0..self.arch.cores() {
            let address = objects.offset(IRQ_SLOTS_BYTES + (core * size_of::<Tcb>()) as u64);
            // SAFETY: the caller gave the memory; a zeroed Tcb is an inactive thread.
            let idle: Ref<Tcb> = unsafe { Ref::assume(address) };
            let tcb = self.get_mut(idle);
            tcb.state = ThreadState::Idle;
            tcb.core = core as u8;
            self.cores[core].idle = Some(idle);
            self.cores[core].current = Some(idle);
        }
        self.reserve_kernel_irqs();
    }

    /// The core that executes the kernel.
    #[inline(always)]
    pub fn core(&self) -> usize {
        self.arch.core()
    }

    /// This core's own state.
    #[inline(always)]
    pub fn this(&self) -> &Core {
        &self.cores[self.core() % MAX_NUM_NODES]
    }

    /// This core's own state.
    #[inline(always)]
    pub fn this_mut(&mut self) -> &mut Core {
        let core = self.core() % MAX_NUM_NODES;
        &mut self.cores[core]
    }

    /// The thread that entered the kernel on this core.
    ///
    /// # Panics
    /// Before `start`.
    #[inline(always)]
    pub fn current(&self) -> Ref<Tcb> {
        self.this().current.expect("set by start")
    }

    /// The idle thread of this core.
    ///
    /// # Panics
    /// Before `start`.
    #[inline(always)]
    pub fn idle(&self) -> Ref<Tcb> {
        self.this().idle.expect("set by start")
    }

    /// Where the registers of this core's thread are saved; `None` while it idles.
    pub fn current_context(&mut self) -> Option<*mut Context> {
        let current = self.current();
        (current != self.idle()).then(|| &raw mut self.get_mut(current).context)
    }
}
