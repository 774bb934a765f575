//! Two worlds of random threads to which the same happens, step by step, on one core or several.

use core::mem::offset_of;

use abi::bootinfo::slot;
use abi::extension::{SIGNAL_RECV, TCB_BIND_USER_INTERRUPT, WAIT_UNTIL};
use abi::label::Label::*;
use abi::label::Table;
use abi::message::MessageInfo;
use abi::object as ty;
use abi::rights::Rights;
use abi::syscall::{CALL, NB_RECV, NB_SEND, RECV, REPLY, REPLY_RECV, SEND, YIELD};
use proptest::prelude::*;
use proptest::sample::select;

use super::world::{Thread, UNTYPED, World};
use crate::api::fault::Fault;
use crate::api::syscall::{fast_syscall, handle_interrupt, handle_wake};
use crate::arch::host::{ARENA, Effect};
use crate::arch::register::{A0, A1, A2, A6, A7, PC};
use crate::arch::{Arch, Interrupt};
use crate::object::notification::{self, Notification};
use crate::object::tcb::{Slot, Tcb};
use crate::state::{Action, Config};
use crate::{sched, special, thread};

/// A thread of the random world.
#[derive(Clone, Debug)]
pub struct Character {
    pub priority: u64,
    pub core: u64,
    pub has_buffer: bool,
    pub has_space: bool,
}

impl Character {
    /// One of that priority on core 0 that lacks nothing.
    pub const fn plain(priority: u64) -> Self {
        Self { priority, core: 0, has_buffer: true, has_space: true }
    }
}

/// What happens next.
#[derive(Clone, Debug)]
pub enum Step {
    /// The running thread makes a system call on capability `cap` of the world's list; SignalRecv and WaitUntil signal `other`.
    Syscall {
        number: isize,
        cap: usize,
        other: usize,
        info: u64,
    },
    /// A thread is suspended or resumed, from outside.
    Suspend(usize),
    Resume(usize),
    /// A notification is signalled from outside.
    Signal(u64),
    /// A user interrupt is sent to the doorbell, if it is one.
    Post(u64),
    /// The running thread faults.
    Fault,
    /// A timer tick.
    Tick,
    /// The core idles and waits for a call or a thread.
    Wait,
    /// The core learns of its call, or of the thread that it was handed.
    Come,
}

/// Two to four threads for each of so many cores, on any of them.
pub fn characters(cores: u64) -> impl Strategy<Value = Vec<Character>> {
    let priority = select(vec![10u64, 20, 30]);
    let character = (priority, 0..cores, prop::bool::weighted(0.9), prop::bool::weighted(0.9))
        .prop_map(|(priority, core, has_buffer, has_space)| Character { priority, core, has_buffer, has_space });
    let cores = cores as usize;
    prop::collection::vec(character, 2 * cores..4 * cores + 1)
}

/// Capabilities that steps choose from: see `build`.
const CAPS: usize = 13;
/// The notifications among them; the first is bound to thread 0.
const NOTIFICATIONS: [usize; 4] = [6, 9, 10, 11];

/// Something that happens on a core.
pub fn step() -> impl Strategy<Value = Step> {
    let length = prop_oneof![6 => 0usize..6, 1 => select(vec![10usize, 119, 120])];
    let info = prop_oneof![
        8 => (0u64..1 << 20, length).prop_map(|(label, length)| MessageInfo::new(label, 0, 0, length).0),
        1 => any::<u64>(),
    ];
    let likely = (select(vec![CALL, REPLY_RECV, RECV]), 0usize..3);
    let notification = || select(NOTIFICATIONS.to_vec());
    let any_call = select(vec![CALL, REPLY_RECV, SEND, NB_SEND, RECV, NB_RECV, REPLY, YIELD, SIGNAL_RECV, WAIT_UNTIL]);
    prop_oneof![
        10 => (likely, info.clone()).prop_map(|((number, cap), info)| Step::Syscall { number, cap, other: 0, info }),
        6 => (select(vec![SIGNAL_RECV, SIGNAL_RECV, RECV, WAIT_UNTIL, WAIT_UNTIL]), notification(), notification(), info.clone())
            .prop_map(|(number, cap, other, info)| Step::Syscall { number, cap, other, info }),
        6 => (any_call, 0usize..CAPS, 0usize..CAPS, info)
            .prop_map(|(number, cap, other, info)| Step::Syscall { number, cap, other, info }),
        1 => (0usize..8).prop_map(Step::Suspend),
        3 => (0usize..8).prop_map(Step::Resume),
        1 => (0u64..16).prop_map(Step::Signal),
        1 => (1u64..16).prop_map(Step::Post),
        1 => Just(Step::Fault),
        1 => Just(Step::Tick),
        6 => Just(Step::Wait),
        2 => Just(Step::Come),
    ]
}

/// One of the worlds.
pub struct Play {
    pub w: World,
    pub threads: Vec<Thread>,
    caps: [u64; CAPS],
    notification: u64,
    /// Calls of cores that have not come yet (bit = core).
    called: usize,
    /// Whether idle cores wait for threads to be handed to them.
    hands_over: bool,
    /// How often the fast path was taken, and a thread handed over.
    pub taken: usize,
    pub handed: usize,
}

/// What the worlds of a pair differ in.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub fastpath: bool,
    pub hands_over: bool,
}

/// A world with a thread for each character, of which the one with the number 0 is bound to a notification. `doorbell`: that has a
/// receiver. No other thread runs or is ready.
pub fn build(characters: &[Character], cores: usize, doorbell: bool, kind: Kind) -> Play {
    let mut host = World::machine().with_receivers(2);
    host.cores = cores;
    let labels = if cores > 1 { Table::Smp } else { Table::Up };
    let mut w = World::with(host, Config { fastpath: false, labels, ..Config::DEFAULT });
    w.check = false;
    let endpoint = w.make(ty::ENDPOINT, 0);
    let second = w.make(ty::ENDPOINT, 0);
    let notification = w.make(ty::NOTIFICATION, 0);
    let mut caps = [
        endpoint,
        w.mint(endpoint, Rights::ALL, 7),
        w.mint(endpoint, Rights(0b1011), 8),
        w.copy(endpoint, Rights::WRITE),
        w.copy(endpoint, Rights::READ),
        second,
        notification,
        slot::VSPACE,
        1 << 40,
        w.make(ty::NOTIFICATION, 0),
        0,
        0,
        0,
    ];
    caps[10] = w.mint(caps[9], Rights::ALL, 9);
    caps[11] = w.make(ty::NOTIFICATION, 0);
    let mut threads = Vec::new();
    for (index, character) in characters.iter().enumerate() {
        let thread = w.thread(character.priority);
        if !character.has_buffer {
            w.ok(thread.slot, TCBSetIPCBuffer, &[0], &[0]);
        }
        if !character.has_space {
            let tables = w.make(ty::PAGE_TABLE, 0);
            w.ok(slot::ASID_POOL, RISCVASIDPoolAssign, &[], &[tables]);
            w.ok(thread.slot, TCBSetSpace, &[second, 51, 0], &[slot::CNODE, tables]);
            // The last capability to the root is the thread's own: take its ASID away behind its back.
            w.forget_asid(tables);
        } else {
            w.ok(thread.slot, TCBSetSpace, &[second, 51, 0], &[slot::CNODE, slot::VSPACE]);
        }
        if character.core != 0 {
            w.ok(thread.slot, TCBSetAffinity, &[character.core], &[]);
        }
        if index == 0 {
            w.ok(thread.slot, TCBBindNotification, &[], &[notification]);
            if doorbell {
                assert_eq!(w.call(thread.slot, TCB_BIND_USER_INTERRUPT, &[], &[notification]).0, 0);
            }
        }
        w.resume(thread);
        threads.push(thread);
    }
    // The root task gets out of the way.
    w.k.config.fastpath = kind.fastpath;
    let quiet = w.make(ty::NOTIFICATION, 0);
    w.syscall(RECV, quiet, 0, &[], &[]);
    let hands_over = kind.hands_over;
    let mut play = Play { w, threads, caps, notification, called: 0, hands_over, taken: 0, handed: 0 };
    play.note_calls();
    play.all_come();
    play
}

impl Play {
    /// Something happens on `core`.
    pub fn step_on(&mut self, core: usize, step: &Step) {
        self.w.k.arch.core = core;
        if self.w.k.this().action != Action::Resume {
            // Another core has stopped this one, which waited for the lock.
            self.settle();
        }
        if self.w.running().is_none() && !matches!(step, Step::Wait) {
            // It does something: then it does not wait, and has taken what it was asked for.
            self.come();
            self.w.k.arch.waits[core] = false;
        }
        self.step(step);
        self.note_calls();
    }

    /// Every core learns of what it was asked for.
    pub fn all_come(&mut self) {
        while let Some(core) = (0..self.w.k.arch.cores()).find(|&core| self.is_asked(core)) {
            self.step_on(core, &Step::Come);
        }
    }

    fn is_asked(&self, core: usize) -> bool {
        self.called & 1 << core != 0 || self.w.k.arch.handed(core).is_some()
    }

    fn note_calls(&mut self) {
        for effect in self.w.effects() {
            if let Effect::CallCores(mask) = effect {
                self.called |= mask;
            }
        }
    }

    fn come(&mut self) {
        let core = self.w.k.core();
        if !self.is_asked(core) {
            return;
        }
        let idles = self.w.running().is_none();
        if self.w.k.arch.handed(core).is_some() {
            self.handed += 1;
        } else {
            self.called &= !(1 << core);
            self.w.k.arch.pending.push_back(Interrupt::Software);
        }
        let _ = if idles { handle_wake(&mut self.w.k) } else { handle_interrupt(&mut self.w.k) };
        self.w.k.arch.waits[core] = false;
    }

    fn step(&mut self, step: &Step) {
        let running = self.w.running();
        match *step {
            Step::Syscall { number, cap, other, info } => {
                let Some(current) = running else { return };
                let (cptr, other, now) = (self.caps[cap], self.caps[other], self.w.k.arch.now);
                let context = &mut self.w.k.get_mut(current).context;
                context.x[A0] = cptr;
                context.x[A1] = info;
                context.x[A6] = other;
                (0..4)
                    .for_each(|index| context.x[A2 + index] = context.x[A2 + index].wrapping_mul(3) + 1 + index as u64);
                if number == WAIT_UNTIL {
                    context.x[A2] = now + info % 4 * 500;
                }
                context.x[A7] = number as u64;
                context.x[PC] = context.next_pc;
                if self.w.k.config.fastpath {
                    self.count_fast();
                } else {
                    self.w.trap_as_is();
                }
            }
            Step::Suspend(index) => {
                let thread = self.threads[index % self.threads.len()];
                sched::stall(&mut self.w.k, thread.tcb);
                thread::suspend(&mut self.w.k, thread.tcb);
                self.settle();
            }
            Step::Resume(index) => {
                let thread = self.threads[index % self.threads.len()];
                sched::stall(&mut self.w.k, thread.tcb);
                thread::resume(&mut self.w.k, thread.tcb);
                self.settle();
            }
            Step::Signal(badge) => {
                let object = self.w.object(self.notification);
                notification::signal(&mut self.w.k, object, badge);
                self.settle();
            }
            Step::Post(bits) => {
                let receiver = self.w.k.get(self.w.object::<Notification>(self.notification)).receiver();
                if receiver != 0 {
                    self.w.k.arch.post_receiver(receiver, bits);
                }
            }
            Step::Fault => {
                if running.is_some() {
                    self.w.fault(13, 0x7000);
                }
            }
            Step::Tick => {
                self.w.k.arch.pending.push_back(Interrupt::Timer);
                let _ = handle_interrupt(&mut self.w.k);
            }
            Step::Wait => {
                let core = self.w.k.core();
                let waits = running.is_none() && !self.is_asked(core);
                self.w.k.arch.waits[core] = waits && self.hands_over;
            }
            Step::Come => self.come(),
        }
    }

    /// As `trap_as_is`, and counts how often the fast path was taken.
    fn count_fast(&mut self) {
        let k = &mut self.w.k;
        let current = k.current();
        k.get_mut(current).context.next_pc += 4;
        match fast_syscall(k) {
            Some(next) => {
                self.taken += 1;
                special::switch(k, next.thread());
            }
            None => {
                let _ = crate::api::syscall::slow_syscall(k);
            }
        }
    }

    /// Cores, queues, decisions, address spaces, and the faults of all threads.
    pub fn state(&self) -> String {
        let k = &self.w.k;
        let faults = self.threads.iter().map(|thread| format!("{:?}", k.get(thread.tcb).fault)).collect::<String>();
        let queues = k.queues.iter().flatten().enumerate().filter(|(_, queue)| queue.head.is_some());
        let queues = queues.map(|queue| format!("{queue:?}")).collect::<String>();
        let cores = &k.cores[..k.arch.cores()];
        format!(
            "{cores:?} {queues} {:?} {:?} {faults} {:?} {:?}",
            k.timers, k.arch.spaces, k.arch.posted, k.arch.handed
        )
    }

    /// All memory that is in use. Faults are blank: the padding of an enumeration is not part of its value.
    pub fn memory(&self) -> Vec<u8> {
        let untyped = self.w.cap(UNTYPED);
        let offset = |paddr: u64| (paddr - ARENA.0) as usize;
        let (start, used) = (offset(untyped.paddr().0), untyped.untyped_free() as usize);
        let all = self.w.k.arch.memory();
        let mut memory = all[start..start + used].to_vec();
        for thread in &self.threads {
            let fault = offset(thread.tcb.kva().paddr().0) - start + offset_of!(Tcb, fault);
            memory[fault..fault + size_of::<Fault>()].fill(0);
        }
        // What boot made: the kernel's own objects and those of the root task.
        memory.extend_from_slice(&all[..offset(self.w.k.get(self.w.root.tcb).cap(Slot::Buffer).paddr().0) + 4096]);
        memory
    }

    fn settle(&mut self) {
        let next = sched::leave(&mut self.w.k);
        assert_eq!(next.thread(), self.w.running());
    }
}

impl World {
    /// Makes the ASID of the address space in `slot` lead nowhere, as when its pool is deleted.
    fn forget_asid(&mut self, slot: u64) {
        let asid = usize::from(self.cap(slot).mapped_asid());
        let pool = self.k.asid_pools[0].expect("the first pool");
        self.k.get_mut(pool).0[asid] = None;
    }

    /// The system call that the registers of the running thread hold.
    fn trap_as_is(&mut self) {
        let current = self.k.current();
        self.k.get_mut(current).context.next_pc += 4;
        let _ = crate::api::syscall::slow_syscall(&mut self.k);
    }
}
