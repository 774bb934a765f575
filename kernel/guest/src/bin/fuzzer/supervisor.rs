//! The supervisor: the root task's own capabilities, and what lasts from round to round.
//!
//! It moves into a small CSpace first, and lets go of all memory that it does not need: the kernel's checks look at every slot.

use abi::bootinfo::{BootInfo, slot};
use abi::label::{Label, Table};
use abi::message::{MessageInfo, REGISTERS};
use abi::object::{self, bits};
use abi::rights::Rights;
use userlib::cap::CPtr;
use userlib::{ipc_buffer, syscall};

use crate::alarm::{self, Alarm};
use crate::plan::{MAX_WORKERS, Plan};
use crate::worker::{PAGES, STACK, STATE, STRIDE, State};

/// Radix of the supervisor's CNode.
const RADIX: u64 = 8;
/// Guard that makes its addresses 64 bits long.
const GUARD: u64 = 64 - RADIX;
/// The CNode itself.
pub const NODE: u64 = 250;
/// RAM for what lasts.
const LASTING: u64 = 251;
/// RAM that the rounds are made of.
pub const ARENA: u64 = 252;
const ARENA_BITS: u8 = 19;
const LASTING_BITS: u8 = 19;
const PAGE: u64 = 1 << bits::PAGE_4K;
/// Where the supervisor sees the devices and the pages with the workers' state.
const DEVICES: u64 = 0x4000_0000;
const STATES: u64 = 0x4010_0000;
/// seL4's error for a mapping that lacks a page table.
const FAILED_LOOKUP: u64 = 6;
/// Frames keep instructions out with this attribute bit.
const EXECUTE_NEVER: u64 = 1;

/// The supervisor.
pub struct Supervisor {
    labels: Table,
    next_slot: u64,
    /// The workers' address space.
    pub space: u64,
    /// By worker: frame of its IPC buffer.
    pub buffers: [u64; MAX_WORKERS],
    /// Handler of the clock's interrupt, and the notification that it signals.
    handler: u64,
    notification: u64,
    /// The devices.
    pub alarm: Alarm,
}

unsafe extern "C" {
    /// First byte of the program, and the end of its code (lld).
    static __executable_start: u8;
    static etext: u8;
}

impl Supervisor {
    /// Sets everything up that lasts.
    pub fn new(info: &'static BootInfo, plan: &Plan) -> Self {
        let mut this = Self {
            labels: plan.labels,
            next_slot: info.untyped.start,
            space: 0,
            buffers: [0; MAX_WORKERS],
            handler: 0,
            notification: 0,
            // SAFETY: not used before `devices` has mapped them there.
            alarm: unsafe { Alarm::new(DEVICES, DEVICES + PAGE) },
        };
        let device = this.settle(info);
        this.devices(device);
        this.workers_space(info, plan);
        this
    }

    /// An invocation: words of the answer, or seL4's error code.
    pub fn invoke(&self, cptr: u64, label: Label, words: &[u64], caps: &[u64]) -> Result<[u64; REGISTERS], u64> {
        let number = label.number(self.labels).ok_or(0u64)?;
        caps.iter().enumerate().for_each(|(index, &cap)| ipc_buffer::set_cap(index, CPtr(cap)));
        for (index, &word) in words.iter().enumerate().skip(REGISTERS) {
            ipc_buffer::set_message_word(index, word);
        }
        let mut first = [0; REGISTERS];
        first.iter_mut().zip(words).for_each(|(register, &word)| *register = word);
        let reply = syscall::call(CPtr(cptr), MessageInfo::new(number, 0, caps.len(), words.len()), first);
        if reply.info.label() == 0 { Ok(reply.words) } else { Err(reply.info.label()) }
    }

    /// An invocation that must succeed.
    ///
    /// # Panics
    /// If it does not: what the workers did has reached the supervisor.
    pub fn ok(&self, cptr: u64, label: Label, words: &[u64], caps: &[u64]) -> [u64; REGISTERS] {
        match self.invoke(cptr, label, words, caps) {
            Ok(words) => words,
            Err(error) => panic!("{label:?} on {cptr}: error {error}"),
        }
    }

    /// A free slot.
    ///
    /// # Panics
    /// If there is none left.
    pub fn slot(&mut self) -> u64 {
        let slot = self.next_slot;
        assert!(slot < NODE, "the supervisor's CNode is full");
        self.next_slot += 1;
        slot
    }

    /// A new object in a slot of its own.
    pub fn make(&mut self, untyped: u64, kind: u64, size_bits: u64) -> u64 {
        let slot = self.slot();
        self.ok(untyped, Label::UntypedRetype, &[kind, size_bits, 0, 0, slot, 1], &[NODE]);
        slot
    }

    /// A copy with rights.
    fn copy(&mut self, source: u64, rights: Rights) -> u64 {
        let slot = self.slot();
        self.ok(NODE, Label::CNodeCopy, &[slot, 64, source, 64, rights.0], &[NODE]);
        slot
    }

    /// Moves into a small CSpace; gives the device untyped at physical address 0.
    fn settle(&mut self, info: &'static BootInfo) -> u64 {
        let untyped = |suits: &dyn Fn(u64, u8, bool) -> bool, skip: u64| {
            let count = (info.untyped.end - info.untyped.start) as usize;
            let list = info.untyped_list[..count].iter().zip(info.untyped.start..);
            let found = list.filter(|(desc, _)| suits(desc.paddr, desc.size_bits, desc.is_device != 0));
            found.map(|(_, slot)| slot).find(|&slot| slot != skip).expect("the machine has this memory")
        };
        let device = untyped(&|paddr, _, device| device && paddr == 0, 0);
        let lasting = untyped(&|_, size, device| !device && size >= LASTING_BITS, 0);
        let arena = untyped(&|_, size, device| !device && size >= ARENA_BITS, lasting);
        let old = info.empty.start;
        // From here on `old..` are slots of the CSpace that is left.
        let node = slot::CNODE;
        self.ok(lasting, Label::UntypedRetype, &[object::CNODE, RADIX, 0, 0, old, 1], &[node]);
        self.ok(old, Label::CNodeMint, &[NODE, RADIX, old, 64, Rights::ALL.0, GUARD], &[node]);
        for kept in [slot::TCB, slot::VSPACE] {
            self.ok(old, Label::CNodeCopy, &[kept, RADIX, kept, 64, Rights::ALL.0], &[node]);
        }
        let (device_slot, arena_slot) = (self.slot(), self.slot());
        let transfer = |to: u64, from: u64| {
            // Empty slots have nothing to move.
            let _ = self.invoke(old, Label::CNodeMove, &[to, RADIX, from, 64], &[node]);
        };
        (slot::VSPACE + 1..info.untyped.start).for_each(|kept| transfer(kept, kept));
        let small = old + 1;
        self.ok(arena, Label::UntypedRetype, &[object::UNTYPED, u64::from(ARENA_BITS), 0, 0, small, 1], &[node]);
        transfer(ARENA, small);
        transfer(LASTING, lasting);
        transfer(device_slot, device);
        transfer(arena_slot, arena);
        transfer(slot::CNODE, slot::CNODE);
        self.ok(slot::TCB, Label::TCBSetSpace, &[0, GUARD, 0], &[old, slot::VSPACE]);
        // The old CNode goes, with all that is still in it.
        self.ok(NODE, Label::CNodeDelete, &[slot::CNODE, 64], &[]);
        device_slot
    }

    /// Maps a frame, with the page tables that it needs.
    fn map(&mut self, frame: u64, space: u64, vaddr: u64, rights: Rights, attributes: u64) {
        loop {
            match self.invoke(frame, Label::RISCVPageMap, &[vaddr, rights.0, attributes], &[space]) {
                Ok(_) => return,
                Err(FAILED_LOOKUP) => {
                    let table = self.make(LASTING, object::PAGE_TABLE, 0);
                    self.ok(table, Label::RISCVPageTableMap, &[vaddr, 0], &[space]);
                }
                Err(error) => panic!("mapping {vaddr:#x}: error {error}"),
            }
        }
    }

    fn devices(&mut self, device: u64) {
        // The block starts at 0: skip what lies before the finisher.
        let before = u64::from(alarm::FINISHER.trailing_zeros());
        self.make(device, object::UNTYPED, before);
        for vaddr in [DEVICES, DEVICES + PAGE] {
            let frame = self.make(device, object::PAGE_4K, 0);
            self.map(frame, slot::VSPACE, vaddr, Rights::READ_WRITE, EXECUTE_NEVER);
        }
        self.notification = self.make(LASTING, object::NOTIFICATION, 0);
        self.handler = self.slot();
        self.ok(slot::IRQ_CONTROL, Label::IRQIssueIRQHandler, &[alarm::IRQ, self.handler, 64], &[NODE]);
        self.ok(self.handler, Label::IRQSetIRQHandler, &[], &[self.notification]);
    }

    /// An address space with the code of this program, read-only, and three pages for each worker.
    fn workers_space(&mut self, info: &'static BootInfo, plan: &Plan) {
        self.space = self.make(LASTING, object::PAGE_TABLE, 0);
        self.ok(slot::ASID_POOL, Label::RISCVASIDPoolAssign, &[], &[self.space]);
        let (start, end) = (&raw const __executable_start as u64, &raw const etext as u64);
        for (frame, vaddr) in (info.user_image_frames.start..).zip((start & !(PAGE - 1)..end).step_by(PAGE as usize)) {
            let copy = self.copy(frame, Rights::READ);
            self.map(copy, self.space, vaddr, Rights::READ, 0);
        }
        for worker in 0..plan.workers {
            let offset = worker as u64 * STRIDE;
            for page in [0, STATE, STACK] {
                let frame = self.make(LASTING, object::PAGE_4K, 0);
                if page == 0 {
                    self.buffers[worker] = frame;
                }
                if page == STATE {
                    let copy = self.copy(frame, Rights::READ_WRITE);
                    self.map(copy, slot::VSPACE, STATES + offset, Rights::READ_WRITE, EXECUTE_NEVER);
                }
                self.map(frame, self.space, PAGES + offset + page, Rights::READ_WRITE, EXECUTE_NEVER);
            }
        }
    }

    fn state(&self, worker: usize) -> *mut State {
        (STATES + worker as u64 * STRIDE) as *mut State
    }

    /// Sets the state of a worker that does not run.
    pub fn set_state(&self, worker: usize, state: State) {
        // SAFETY: mapped by `workers_space`; nobody else uses it now.
        unsafe { self.state(worker).write_volatile(state) }
    }

    /// Calls that a worker has made in this round.
    pub fn calls(&self, worker: usize) -> u64 {
        // SAFETY: mapped; the worker writes the word as a whole.
        unsafe { (&raw const (*self.state(worker)).calls).read_volatile() }
    }

    /// First slot of what a round makes.
    pub fn mark(&self) -> u64 {
        self.next_slot
    }

    /// Forgets the slots of a round.
    pub fn reset(&mut self, mark: u64) {
        self.next_slot = mark;
    }

    /// Sleeps while the workers work.
    pub fn sleep(&self, nanoseconds: u64) {
        self.alarm.set(nanoseconds);
        syscall::wait(CPtr(self.notification));
        self.alarm.clear();
        self.ok(self.handler, Label::IRQAckIRQ, &[], &[]);
    }
}
