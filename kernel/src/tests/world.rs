//! A small system to test in: a root task like the one that boot makes, and threads that do whatever the test tells them.
//!
//! Root CNode of 13 bits with guard size 51, one domain, the standard slots, then an untyped of 4 MiB (32), a device untyped of 64 KiB
//! (33). Tests ask for fresh slots from 64 on.

use std::cell::RefCell;

use abi::bootinfo::slot;
use abi::ipc_buffer;
use abi::label::{Label, Table};
use abi::message::MessageInfo;
use abi::rights::Rights;
use abi::{object, syscall};

use super::authority::Authority;
use crate::api::syscall::{handle_fault, handle_interrupt, handle_syscall};
use crate::arch::Interrupt;
use crate::arch::host::{ARENA, Effect, Host};
use crate::arch::register::{A0, A1, A2, A7, PC};
use crate::invariants::{self, Survey};
use crate::mem::{Buffer, Paddr, Ref};
use crate::object::cap::{Cap, CapObject, Cte, FrameSize, VmRights};
use crate::object::mdb::Mdb;
use crate::object::tcb::{Slot, Tcb, ThreadState};
use crate::object::vspace::{AsidPool, PageTable, asid};
use crate::state::{Config, Kernel, Next, OWN_OBJECTS_BITS};
use crate::{alarm, sched, thread};

/// Radix of the root CNode, as in the runs that the expected errors come from.
pub const ROOT_BITS: usize = 13;
/// Slot of the untyped.
pub const UNTYPED: u64 = 32;
/// Slot of the device untyped.
pub const DEVICE_UNTYPED: u64 = 33;
/// log2 of the bytes of the untyped.
pub const UNTYPED_BITS: usize = 22;
/// Physical address of the device untyped.
pub const DEVICE: u64 = 0x1000_0000;
const FIRST_SLOT: u64 = 64;
const RAM: usize = 8 << 20;
/// Where every thread executes its system calls.
pub const CODE: u64 = 0x1_0000;

/// The answer to a call, or what a receiver got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub badge: u64,
    pub label: u64,
    pub unwrapped: usize,
    pub extra_caps: usize,
    pub words: Vec<u64>,
}

/// A thread of the test: its TCB capability and its TCB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    pub slot: u64,
    pub tcb: Ref<Tcb>,
}

/// The system.
pub struct World {
    pub k: Kernel,
    pub root: Thread,
    next_slot: u64,
    /// Look at all of memory after each step; random tests that take many steps do it themselves.
    pub check: bool,
    /// The capabilities after the last step that was looked at.
    authority: Option<Authority>,
}

impl World {
    /// A system on one core, with the UP numbering.
    pub fn new() -> Self {
        Self::with(Host::new(RAM), Config { fastpath: false, ..Config::DEFAULT })
    }

    /// A machine for `with`.
    pub fn machine() -> Host {
        Host::new(RAM)
    }

    /// A system on `host`.
    pub fn with(host: Host, config: Config) -> Self {
        let mut k = Kernel::new(host);
        let mut next = ARENA.0;
        let mut take = |bits: usize| {
            let address = next.next_multiple_of(1 << bits);
            next = address + (1 << bits);
            address
        };
        let own = take(OWN_OBJECTS_BITS);
        // SAFETY: fresh zeroed memory of the arena.
        unsafe { k.start(config, Paddr(own).kva()) };
        fn fresh<T>(paddr: u64) -> Ref<T> {
            // SAFETY: each address is fresh zeroed memory of the arena, aligned and large enough.
            unsafe { Ref::assume(Paddr(paddr).kva()) }
        }
        let cnode: Ref<Cte> = fresh(take(ROOT_BITS + object::bits::SLOT));
        let tcb: Ref<Tcb> = fresh(take(object::bits::TCB));
        let vspace: Ref<PageTable> = fresh(take(object::bits::PAGE_TABLE));
        let pool: Ref<AsidPool> = fresh(take(object::bits::ASID_POOL));
        let buffer = take(object::bits::PAGE_4K);
        let untyped = take(UNTYPED_BITS);

        k.asid_pools[0] = Some(pool);
        asid::assign(&mut k, pool, 1, vspace);
        let cnode_cap = Cap::cnode(cnode, ROOT_BITS, 64 - ROOT_BITS as u64);
        let vspace_cap = Cap::page_table(vspace).mapped_at(1, 0);
        let buffer_cap = Cap::frame(Paddr(buffer).kva(), FrameSize::Page, VmRights::ReadWrite, false);
        for (index, cap) in [
            (slot::TCB, Cap::tcb(tcb)),
            (slot::CNODE, cnode_cap),
            (slot::VSPACE, vspace_cap),
            (slot::IRQ_CONTROL, Cap::irq_control()),
            (slot::ASID_CONTROL, Cap::asid_control()),
            (slot::ASID_POOL, Cap::asid_pool(pool, 0)),
            (slot::IPC_BUFFER_FRAME, buffer_cap),
            (slot::DOMAIN, Cap::domain()),
            (UNTYPED, Cap::untyped(Paddr(untyped).kva(), UNTYPED_BITS, false, 1 << UNTYPED_BITS)),
            (DEVICE_UNTYPED, Cap::untyped(Paddr(DEVICE).kva(), 16, true, 1 << 16)),
        ] {
            *k.get_mut(cnode_cap.slot(index as usize)) = Cte { cap, mdb: Mdb::ALONE };
        }
        for (target, source) in
            [(Slot::CSpace, slot::CNODE), (Slot::VSpace, slot::VSPACE), (Slot::Buffer, slot::IPC_BUFFER_FRAME)]
        {
            let source = cnode_cap.slot(source as usize);
            let cap = k.derive(source, k.cap(source)).expect("can be copied");
            k.insert(cap, source, tcb.slot(target));
        }
        thread::enlist(&mut k, tcb);
        thread::set_up_reply_master(&mut k, tcb);
        let slice = k.config.time_slice;
        let object = k.get_mut(tcb);
        (object.priority, object.mcp, object.state, object.time_slice) = (255, 255, ThreadState::Running, slice);
        object.buffer_address = 0x5000;
        object.context.x[PC] = CODE;
        object.context.next_pc = CODE;
        sched::switch_to(&mut k, tcb);
        (0..k.arch.cores).for_each(|core| {
            k.arch.core = core;
            alarm::start_core(&mut k);
        });
        k.arch.core = 0;
        k.arch.effects.clear();
        let root = Thread { slot: slot::TCB, tcb };
        Self { k, root, next_slot: FIRST_SLOT, check: true, authority: None }
    }

    // --- Looking ---

    /// Slot `index` of the root CNode.
    pub fn slot(&self, index: u64) -> Ref<Cte> {
        self.cnode().slot(index as usize)
    }
    /// The root CNode.
    pub fn cnode(&self) -> Cap {
        self.k.get(self.root.tcb).cap(Slot::CSpace)
    }
    /// The capability in slot `index`.
    pub fn cap(&self, index: u64) -> Cap {
        self.k.cap(self.slot(index))
    }
    /// The object that slot `index` names.
    pub fn object<T: CapObject>(&self, index: u64) -> Ref<T> {
        self.cap(index).object().expect("a capability of this type")
    }
    /// State of a thread.
    pub fn state(&self, thread: Thread) -> ThreadState {
        self.k.get(thread.tcb).state
    }
    /// A register of a thread.
    pub fn register(&self, thread: Thread, register: usize) -> u64 {
        self.k.get(thread.tcb).context.x[register]
    }
    /// Who runs; `None` if the core idles.
    pub fn running(&self) -> Option<Ref<Tcb>> {
        let current = self.k.current();
        (current != self.k.idle()).then_some(current)
    }
    /// Whether `thread` runs.
    pub fn runs(&self, thread: Thread) -> bool {
        self.running() == Some(thread.tcb)
    }
    /// What the hardware was asked to do since the last call of this.
    pub fn effects(&mut self) -> Vec<Effect> {
        core::mem::take(&mut self.k.arch.effects)
    }
    fn buffer(&self, tcb: Ref<Tcb>) -> Option<Buffer> {
        thread::buffer(&self.k, tcb, false)
    }
    /// Whether the running thread can send more than registers.
    pub fn has_buffer(&self) -> bool {
        self.running().is_some_and(|tcb| thread::buffer(&self.k, tcb, true).is_some())
    }
    /// Reads a word of a thread's IPC buffer.
    pub fn buffer_word(&self, thread: Thread, index: usize) -> u64 {
        self.k.buffer_word(self.buffer(thread.tcb).expect("it has a buffer"), index)
    }
    /// Writes a word of a thread's IPC buffer.
    pub fn set_buffer_word(&mut self, thread: Thread, index: usize, value: u64) {
        let buffer = self.buffer(thread.tcb).expect("it has a buffer");
        self.k.set_buffer_word(buffer, index, value);
    }
    /// What a thread that received has in its registers and buffer.
    pub fn message(&self, thread: Thread) -> Message {
        let x = &self.k.get(thread.tcb).context.x;
        let info = MessageInfo(x[A1]);
        let words = (0..info.length())
            .map(|index| if index < 4 { x[A2 + index] } else { self.buffer_word(thread, ipc_buffer::MESSAGE + index) });
        Message {
            badge: x[A0],
            label: info.label(),
            unwrapped: info.caps_unwrapped(),
            extra_caps: info.extra_caps(),
            words: words.collect(),
        }
    }

    // --- Doing ---

    fn after(&mut self, next: Next) {
        match next {
            Next::Run(thread) => assert_eq!(Some(thread), self.running()),
            Next::Idle => assert_eq!(None, self.running()),
        }
        if self.check {
            self.check_step();
        } else {
            self.authority = None;
        }
    }

    /// Checks all of the kernel's state, and that it gave nobody more than could be had after the step before.
    pub fn check_step(&mut self) {
        let now = check_invariants(&self.k);
        if let Some(before) = self.authority.replace(now) {
            before.check(&self.k, self.authority.as_ref().expect("just set"));
        }
    }

    /// Checks all of the kernel's state.
    pub fn check_invariants(&self) {
        check_invariants(&self.k);
    }

    /// The running thread makes a system call with what its registers hold.
    pub fn trap(&mut self, number: isize) {
        let current = self.running().expect("somebody runs");
        let context = &mut self.k.get_mut(current).context;
        context.x[A7] = number as u64;
        context.x[PC] = context.next_pc;
        context.next_pc += 4;
        let next = handle_syscall(&mut self.k);
        self.after(next);
    }

    /// The running thread makes a system call.
    pub fn syscall(&mut self, number: isize, cptr: u64, label: u64, words: &[u64], caps: &[u64]) {
        let current = self.running().expect("somebody runs");
        let buffer = self.buffer(current);
        for (index, &word) in words.iter().enumerate() {
            if index < 4 {
                self.k.get_mut(current).context.x[A2 + index] = word;
            } else {
                self.k.set_buffer_word(buffer.expect("a buffer"), ipc_buffer::MESSAGE + index, word);
            }
        }
        for (index, &cap) in caps.iter().enumerate() {
            self.k.set_buffer_word(buffer.expect("a buffer"), ipc_buffer::CAPS_OR_BADGES + index, cap);
        }
        let x = &mut self.k.get_mut(current).context.x;
        x[A0] = cptr;
        x[A1] = MessageInfo::new(label, 0, caps.len(), words.len()).0;
        self.trap(number);
    }

    /// The running thread faults.
    pub fn fault(&mut self, cause: u64, address: u64) {
        let current = self.running().expect("somebody runs");
        let context = &mut self.k.get_mut(current).context;
        context.x[PC] = context.next_pc;
        let next = handle_fault(&mut self.k, cause, address);
        self.after(next);
    }

    /// An interrupt comes.
    pub fn interrupt(&mut self, interrupt: Interrupt) {
        if let Some(current) = self.running() {
            let context = &mut self.k.get_mut(current).context;
            context.x[PC] = context.next_pc;
        }
        self.k.arch.pending.push_back(interrupt);
        let next = handle_interrupt(&mut self.k);
        self.after(next);
    }

    /// The running thread calls and must get its answer at once: the error code (0 is success) and the words.
    pub fn call(&mut self, cptr: u64, label: u64, words: &[u64], caps: &[u64]) -> (u64, Vec<u64>) {
        let caller = self.running().expect("somebody runs");
        self.syscall(syscall::CALL, cptr, label, words, caps);
        assert_eq!(self.running(), Some(caller), "the call was not answered");
        let message = self.message(Thread { slot: 0, tcb: caller });
        assert_eq!(message.badge, 0);
        (message.label, message.words)
    }

    /// An invocation of seL4 by name.
    pub fn invoke(&mut self, cptr: u64, label: Label, words: &[u64], caps: &[u64]) -> (u64, Vec<u64>) {
        let number = label.number(self.k.config.labels).expect("exists in this numbering");
        self.call(cptr, number, words, caps)
    }

    /// An invocation that must succeed.
    pub fn ok(&mut self, cptr: u64, label: Label, words: &[u64], caps: &[u64]) -> Vec<u64> {
        let (error, words) = self.invoke(cptr, label, words, caps);
        assert_eq!(error, 0, "{label:?} on {cptr}: {words:x?}");
        words
    }

    /// A fresh slot number.
    pub fn fresh(&mut self) -> u64 {
        self.next_slot += 1;
        self.next_slot - 1
    }

    /// Retypes the big untyped into a fresh slot.
    pub fn make(&mut self, kind: u64, size_bits: u64) -> u64 {
        self.make_from(UNTYPED, kind, size_bits)
    }

    /// Retypes `untyped` into a fresh slot.
    pub fn make_from(&mut self, untyped: u64, kind: u64, size_bits: u64) -> u64 {
        let target = self.fresh();
        self.ok(untyped, Label::UntypedRetype, &[kind, size_bits, 0, 0, target, 1], &[slot::CNODE]);
        target
    }

    /// Copies with rights.
    pub fn copy(&mut self, source: u64, rights: Rights) -> u64 {
        let target = self.fresh();
        self.ok(slot::CNODE, Label::CNodeCopy, &[target, 64, source, 64, rights.0], &[slot::CNODE]);
        target
    }

    /// Copies with rights and badge.
    pub fn mint(&mut self, source: u64, rights: Rights, badge: u64) -> u64 {
        let target = self.fresh();
        self.ok(slot::CNODE, Label::CNodeMint, &[target, 64, source, 64, rights.0, badge], &[slot::CNODE]);
        target
    }

    /// Deletes a slot.
    pub fn delete(&mut self, target: u64) {
        self.ok(slot::CNODE, Label::CNodeDelete, &[target, 64], &[]);
    }

    /// Revokes a slot.
    pub fn revoke(&mut self, target: u64) {
        self.ok(slot::CNODE, Label::CNodeRevoke, &[target, 64], &[]);
    }

    /// A configured thread that does not run yet, sharing CSpace and VSpace with the root task.
    pub fn thread(&mut self, priority: u64) -> Thread {
        let slot = self.make(object::TCB, 0);
        let buffer = self.make(object::PAGE_4K, 0);
        let guard = 64 - ROOT_BITS as u64;
        self.ok(slot, Label::TCBConfigure, &[0, guard, 0, 0x6000], &[slot::CNODE, slot::VSPACE, buffer]);
        self.ok(slot, Label::TCBSetSchedParams, &[255, priority], &[slot::TCB]);
        let tcb = self.object::<Tcb>(slot);
        let context = &mut self.k.get_mut(tcb).context;
        context.x[PC] = CODE;
        Thread { slot, tcb }
    }

    /// Makes `thread` runnable.
    pub fn resume(&mut self, thread: Thread) {
        self.ok(thread.slot, Label::TCBResume, &[], &[]);
    }

    /// A thread that runs up to its first receive on `cptr`, and waits there; then the caller of this runs again.
    pub fn receiver(&mut self, priority: u64, cptr: u64) -> Thread {
        let thread = self.thread(priority);
        self.resume(thread);
        self.run_as(thread, |w| w.syscall(syscall::RECV, cptr, 0, &[], &[]));
        thread
    }

    /// Lets `thread`, which is ready, do something, whoever runs now.
    pub fn run_as(&mut self, thread: Thread, work: impl FnOnce(&mut Self)) {
        let before = self.k.current();
        if before != thread.tcb {
            assert!(self.k.get(thread.tcb).queued, "not ready");
            sched::enqueue(&mut self.k, before);
            sched::switch_to(&mut self.k, thread.tcb);
            let tcb = self.k.get_mut(thread.tcb);
            if tcb.state == ThreadState::Restart {
                tcb.context.next_pc = tcb.context.x[PC];
                tcb.state = ThreadState::Running;
            }
        }
        work(self);
        if before != thread.tcb && self.k.current() != before && self.k.get(before).queued {
            let current = self.k.current();
            if self.k.get(current).is_runnable() {
                sched::enqueue(&mut self.k, current);
            }
            sched::switch_to(&mut self.k, before);
        }
    }
}

/// Checks all of a kernel's state.
pub fn check_invariants(k: &Kernel) -> Authority {
    std::thread_local! {
        static SURVEY: RefCell<Box<Survey>> = RefCell::new(Box::new(Survey::new()));
    }
    SURVEY.with(|survey| {
        let mut survey = survey.borrow_mut();
        invariants::check(k, &mut survey);
        Authority::of(k, &survey)
    })
}

/// A machine with `receivers` receivers.
pub fn with_receivers(receivers: u16) -> World {
    World::with(World::machine().with_receivers(receivers), Config { fastpath: false, ..Config::DEFAULT })
}

/// Several cores, SMP numbering. Core 0 runs the root task.
pub fn with_cores(cores: usize) -> World {
    let mut host = World::machine();
    host.cores = cores;
    World::with(host, Config { fastpath: false, labels: Table::Smp, ..Config::DEFAULT })
}
