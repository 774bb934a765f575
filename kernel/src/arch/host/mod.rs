//! A machine for tests: an arena as physical memory, and a record of everything that the kernel asked of the hardware.

extern crate alloc;

use alloc::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ptr::NonNull;

use abi::config::MAX_NUM_NODES;

use super::sv39::{self, Pte};
use super::{Arch, FpuState, Interrupt, UserInterruptState};
use crate::mem::{Kva, Paddr, Ref};
use crate::object::tcb::Tcb;

/// Physical address of the arena.
pub const ARENA: Paddr = Paddr(0x8000_0000);
/// Length of a tick.
pub const TICK: u64 = 1000;
/// The most that any object needs.
const ALIGNMENT: usize = 8192;

/// What the kernel did to the hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the methods of `Arch` by name")]
pub enum Effect {
    CallCores(usize),
    StallCore(usize),
    EvictSpace(u16),
    FencePage(u16, u64),
    FenceSpace(u16),
    ReleaseFences,
    CodeChanged,
    EnableSource(usize),
    DisableSource(usize),
    CompleteSource(usize),
    SetTimer(u64),
    ResetReceiver(u16),
    PostReceiver(u16, u64),
    FenceSenders,
    UnloadUserInterrupts(u16),
    LoadUserInterrupts(u16),
    EnterFpu { load: bool },
    LeaveFpu,
}

/// The machine.
pub struct Host {
    memory: NonNull<u8>,
    layout: Layout,
    /// Cores.
    pub cores: usize,
    /// The core that executes the kernel now.
    pub core: usize,
    /// Address space of each core: root and ASID; `None` is the kernel's.
    pub spaces: [Option<(Paddr, u16)>; MAX_NUM_NODES],
    /// Idle cores that wait for a call or a thread; the test says when they begin to.
    pub waits: [bool; MAX_NUM_NODES],
    /// The thread that each has been handed.
    pub handed: [Option<Ref<Tcb>>; MAX_NUM_NODES],
    /// Interrupts that are pending, most urgent first.
    pub pending: VecDeque<Interrupt>,
    /// Fences on other cores are held back.
    pub holds_fences: bool,
    /// Another core waits for the lock.
    pub lock_is_wanted: bool,
    /// Receivers of the UINTC; 0: there is none.
    pub receivers: u16,
    /// Pending bits of each receiver.
    pub posted: Vec<u64>,
    /// Floating-point registers of the core that executes.
    pub fpu: FpuState,
    /// The time; an interrupt of the timer comes when its time has.
    pub now: u64,
    /// What the timer of each core is set to.
    pub timers: Vec<u64>,
    /// Advances by 10 with every look.
    pub clock: core::cell::Cell<u64>,
    /// What was printed.
    pub console: Vec<u8>,
    /// What was done, in order.
    pub effects: Vec<Effect>,
}

impl Host {
    /// A machine with `bytes` of RAM and one core.
    pub fn new(bytes: usize) -> Self {
        let layout = Layout::from_size_align(bytes, ALIGNMENT).expect("a small power of two");
        assert!(bytes > 0);
        // SAFETY: the size is not zero.
        let memory = unsafe { alloc_zeroed(layout) };
        let memory = NonNull::new(memory).unwrap_or_else(|| handle_alloc_error(layout));
        Self {
            memory,
            layout,
            cores: 1,
            core: 0,
            spaces: [None; MAX_NUM_NODES],
            waits: [false; MAX_NUM_NODES],
            handed: [None; MAX_NUM_NODES],
            pending: VecDeque::new(),
            holds_fences: false,
            lock_is_wanted: false,
            receivers: 0,
            posted: Vec::new(),
            fpu: FpuState::default(),
            now: 0,
            timers: alloc::vec![0; MAX_NUM_NODES],
            clock: core::cell::Cell::new(0),
            console: Vec::new(),
            effects: Vec::new(),
        }
    }

    /// Bytes of RAM.
    pub fn bytes(&self) -> usize {
        self.layout.size()
    }

    /// Gives the machine a UINTC.
    pub fn with_receivers(mut self, receivers: u16) -> Self {
        self.receivers = receivers;
        self.posted = alloc::vec![0; usize::from(receivers)];
        self
    }

    /// Address space of the core that executes.
    pub fn space(&self) -> Option<(Paddr, u16)> {
        self.spaces[self.core]
    }

    /// All RAM.
    pub fn memory(&self) -> &[u8] {
        // SAFETY: the whole allocation, which was zeroed; borrows of objects need the kernel, which `self` is part of.
        unsafe { core::slice::from_raw_parts(self.memory.as_ptr(), self.layout.size()) }
    }

    fn record(&mut self, effect: Effect) {
        self.effects.push(effect);
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout.
        unsafe { dealloc(self.memory.as_ptr(), self.layout) }
    }
}

impl Arch for Host {
    fn pointer(&self, address: Kva, bytes: usize) -> *mut u8 {
        let offset = address.paddr().0.wrapping_sub(ARENA.0) as usize;
        let inside = offset.checked_add(bytes).is_some_and(|end| end <= self.bytes());
        assert!(inside, "no memory at {address:?}");
        // SAFETY: inside the allocation.
        unsafe { self.memory.as_ptr().add(offset) }
    }

    fn cores(&self) -> usize {
        self.cores
    }
    fn core(&self) -> usize {
        self.core
    }
    fn call_cores(&mut self, mask: usize) {
        (0..self.cores).filter(|core| mask & 1 << core != 0).for_each(|core| self.waits[core] = false);
        self.record(Effect::CallCores(mask));
    }
    fn hand_over(&mut self, core: usize, thread: Ref<Tcb>) -> bool {
        let waits = core::mem::take(&mut self.waits[core]);
        if waits {
            self.handed[core] = Some(thread);
        }
        waits
    }
    fn handed(&self, core: usize) -> Option<Ref<Tcb>> {
        self.handed[core]
    }
    fn take_handed(&mut self) -> Option<Ref<Tcb>> {
        self.handed[self.core].take()
    }
    fn take_back(&mut self, core: usize) -> Option<Ref<Tcb>> {
        let thread = self.handed[core].take()?;
        // It is on its way, and finds a call.
        self.record(Effect::CallCores(1 << core));
        Some(thread)
    }
    fn claim(&self, _address: Kva) {}
    fn stall_core(&mut self, core: usize) {
        self.record(Effect::StallCore(core));
    }

    fn switch_space(&mut self, root: Paddr, asid: u16) {
        self.spaces[self.core] = Some((root, asid));
    }
    fn switch_to_kernel_space(&mut self) {
        self.spaces[self.core] = None;
    }
    fn evict_space(&mut self, asid: u16) {
        for space in &mut self.spaces {
            *space = space.filter(|&(_, current)| current != asid);
        }
        self.record(Effect::EvictSpace(asid));
    }
    fn fence_page(&mut self, asid: u16, vaddr: u64) {
        self.record(Effect::FencePage(asid, vaddr));
    }
    fn fence_space(&mut self, asid: u16) {
        self.record(Effect::FenceSpace(asid));
    }
    fn hold_fences(&mut self) {
        self.holds_fences = true;
    }
    fn owes_fences(&self) -> bool {
        // Other cores are everywhere.
        self.holds_fences
    }
    fn release_fences(&mut self) {
        if core::mem::take(&mut self.holds_fences) {
            self.record(Effect::ReleaseFences);
        }
    }
    fn kernel_half(&self) -> [Pte; sv39::ENTRIES / 2] {
        // Global gigapages, as riscv64 has them.
        core::array::from_fn(|index| Pte::kernel_device((index as u64) << 30))
    }
    fn code_changed(&mut self) {
        self.record(Effect::CodeChanged);
    }

    fn pending_interrupt(&mut self) -> Option<Interrupt> {
        let interrupt = self.pending.pop_front();
        if interrupt == Some(Interrupt::Timer) {
            self.now = self.now.max(self.timers[self.core]);
        }
        interrupt
    }
    fn preempts(&self) -> bool {
        self.pending.iter().any(|&interrupt| interrupt != Interrupt::Software)
    }
    fn lock_is_wanted(&self) -> bool {
        self.lock_is_wanted
    }
    fn enable_source(&mut self, source: usize) {
        self.record(Effect::EnableSource(source));
    }
    fn disable_source(&mut self, source: usize) {
        self.record(Effect::DisableSource(source));
    }
    fn complete_source(&mut self, source: usize) {
        self.record(Effect::CompleteSource(source));
    }
    fn now(&self) -> u64 {
        self.now
    }
    fn tick_length(&self) -> u64 {
        TICK
    }
    fn set_timer(&mut self, at: u64) {
        self.timers[self.core] = at;
        self.record(Effect::SetTimer(at));
    }

    fn cycles(&self) -> u64 {
        self.clock.set(self.clock.get() + 10);
        self.clock.get()
    }
    fn put_char(&mut self, byte: u8) {
        self.console.push(byte);
    }
    fn halt(&mut self) -> ! {
        panic!("halted")
    }

    fn has_fpu(&self) -> bool {
        true
    }
    fn enter_fpu(&mut self, state: &mut FpuState, load: bool) {
        if load {
            self.fpu.clone_from(state);
        }
        self.record(Effect::EnterFpu { load });
    }
    fn leave_fpu(&mut self, state: &mut FpuState) {
        state.clone_from(&self.fpu);
        self.record(Effect::LeaveFpu);
    }

    fn receivers(&self) -> u16 {
        self.receivers
    }
    fn reset_receiver(&mut self, receiver: u16) {
        self.posted[usize::from(receiver)] = 0;
        self.record(Effect::ResetReceiver(receiver));
    }
    fn post_receiver(&mut self, receiver: u16, bits: u64) {
        self.posted[usize::from(receiver)] |= bits;
        self.record(Effect::PostReceiver(receiver, bits));
    }
    fn take_receiver(&mut self, receiver: u16) -> u64 {
        core::mem::take(&mut self.posted[usize::from(receiver)])
    }
    fn receiver_pending(&mut self, receiver: u16) -> bool {
        self.posted[usize::from(receiver)] != 0
    }
    fn fence_senders(&mut self) {
        self.record(Effect::FenceSenders);
    }
    fn unload_user_interrupts(&mut self, state: &mut UserInterruptState) {
        self.record(Effect::UnloadUserInterrupts(state.receiver));
    }
    fn load_user_interrupts(&mut self, state: &mut UserInterruptState) {
        self.record(Effect::LoadUserInterrupts(state.receiver));
    }
}
