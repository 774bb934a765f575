//! The fast path changes nothing but time: two worlds do the same random things, one with it and one without, and are equal after
//! every step in every word of memory, every queue and every decision.

use core::mem::offset_of;

use abi::bootinfo::slot;
use abi::extension::{SIGNAL_RECV, TCB_BIND_USER_INTERRUPT, WAIT_UNTIL};
use abi::label::Label::*;
use abi::message::MessageInfo;
use abi::object as ty;
use abi::rights::Rights;
use abi::syscall::{CALL, NB_RECV, NB_SEND, RECV, REPLY, REPLY_RECV, SEND, YIELD};
use proptest::prelude::*;
use proptest::sample::select;

use super::world::{Thread, UNTYPED, World, with_receivers};
use crate::api::fault::Fault;
use crate::api::syscall::{fast_syscall, handle_interrupt};
use crate::arch::host::ARENA;
use crate::arch::register::{A0, A1, A2, A6, A7, PC};
use crate::arch::{Arch, Interrupt};
use crate::object::notification::{self, Notification};
use crate::object::tcb::{Slot, Tcb, ThreadState};
use crate::state::Next;
use crate::{sched, special, thread};

/// A thread of the random world.
#[derive(Clone, Debug)]
struct Character {
    priority: u64,
    has_buffer: bool,
    has_space: bool,
}

/// What happens next.
#[derive(Clone, Debug)]
enum Step {
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
}

fn characters() -> impl Strategy<Value = Vec<Character>> {
    let priority = select(vec![10u64, 20, 30]);
    let character = (priority, prop::bool::weighted(0.9), prop::bool::weighted(0.9))
        .prop_map(|(priority, has_buffer, has_space)| Character { priority, has_buffer, has_space });
    prop::collection::vec(character, 2..5)
}

/// Capabilities that steps choose from: see `build`.
const CAPS: usize = 13;
/// The notifications among them; the first is bound to thread 0.
const NOTIFICATIONS: [usize; 4] = [6, 9, 10, 11];

fn step() -> impl Strategy<Value = Step> {
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
        1 => (0usize..4).prop_map(Step::Suspend),
        3 => (0usize..4).prop_map(Step::Resume),
        1 => (0u64..16).prop_map(Step::Signal),
        1 => (1u64..16).prop_map(Step::Post),
        1 => Just(Step::Fault),
        1 => Just(Step::Tick),
    ]
}

struct Pair {
    w: World,
    threads: Vec<Thread>,
    caps: [u64; CAPS],
    notification: u64,
    taken: usize,
}

/// `doorbell`: the notification of the first thread has a receiver.
fn build(characters: &[Character], doorbell: bool, fastpath: bool) -> Pair {
    let mut w = with_receivers(2);
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
    w.k.config.fastpath = fastpath;
    let quiet = w.make(ty::NOTIFICATION, 0);
    w.syscall(RECV, quiet, 0, &[], &[]);
    Pair { w, threads, caps, notification, taken: 0 }
}

impl Pair {
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
                thread::suspend(&mut self.w.k, thread.tcb);
                self.settle();
            }
            Step::Resume(index) => {
                let thread = self.threads[index % self.threads.len()];
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
        }
    }

    /// As `trap_as_is`, and counts how often the fast path was taken.
    fn count_fast(&mut self) {
        let k = &mut self.w.k;
        let current = k.current();
        k.get_mut(current).context.next_pc += 4;
        match fast_syscall(k) {
            Some(thread) => {
                self.taken += 1;
                special::switch(k, Some(thread));
            }
            None => {
                let _ = crate::api::syscall::slow_syscall(k);
            }
        }
    }

    /// Queues, decisions, address space, and the faults of all threads.
    fn state(&self) -> String {
        let k = &self.w.k;
        let faults = self.threads.iter().map(|thread| format!("{:?}", k.get(thread.tcb).fault)).collect::<String>();
        format!("{:?} {:?} {:?} {:?} {faults} {:?}", k.this(), k.queues[0], k.timers[0], k.arch.space, k.arch.posted)
    }

    /// All memory that is in use. Faults are blank: the padding of an enumeration is not part of its value.
    fn memory(&self) -> Vec<u8> {
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
        assert_eq!(next == Next::Idle, self.w.running().is_none());
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

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 48 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn fast_and_slow_are_equal(
        characters in characters(),
        doorbell in any::<bool>(),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut slow = build(&characters, doorbell, false);
        let mut fast = build(&characters, doorbell, true);
        for (index, step) in steps.iter().enumerate() {
            slow.step(step);
            fast.step(step);
            prop_assert_eq!(slow.state(), fast.state(), "step {}", index);
            let (slow_memory, fast_memory) = (slow.memory(), fast.memory());
            if let Some(place) = slow_memory.iter().zip(&fast_memory).position(|(a, b)| a != b) {
                prop_assert!(false, "step {index}: memory differs at {place:#x}");
            }
        }
        fast.w.check_invariants();
    }
}

/// A test that never leaves the slow path would prove nothing. A doorbell without pending bits does not keep a server from it.
#[test]
fn the_fast_path_is_taken() {
    for doorbell in [false, true] {
        let characters = vec![Character { priority: 20, has_buffer: true, has_space: true }; 2];
        let mut pair = build(&characters, doorbell, true);
        let info = MessageInfo::new(1, 0, 0, 2).0;
        let long = MessageInfo::new(1, 0, 0, 10).0;
        let reply = Step::Syscall { number: REPLY_RECV, cap: 0, other: 0, info };
        // The thread that was resumed last runs first. Let the one with the bound notification, which has not run yet, serve.
        pair.step(&Step::Syscall { number: YIELD, cap: 0, other: 0, info: 0 });
        let plain = [
            (RECV, 0, 0),
            (CALL, 1, info),
            (REPLY_RECV, 0, info),
            (CALL, 1, long),
            (REPLY_RECV, 0, long),
            (NB_SEND, 12, 0),
            (CALL, 1, info),
        ];
        for (taken, (number, cap, info)) in plain.into_iter().enumerate() {
            pair.step(&Step::Syscall { number, cap, other: 0, info });
            assert_eq!(pair.taken, taken + 1, "system call {number}");
        }
        assert_eq!(pair.w.running(), Some(pair.threads[0].tcb));
        // The bit comes first: the caller gets its reply, and the server goes on.
        pair.step(&Step::Post(4));
        pair.step(&reply);
        assert_eq!(pair.taken, plain.len() + usize::from(!doorbell));
        assert_eq!(pair.w.state(pair.threads[1]), ThreadState::Running);
        let server = if doorbell { ThreadState::Running } else { ThreadState::BlockedOnReceive };
        assert_eq!(pair.w.state(pair.threads[0]), server);
    }
}

/// Thread 0 waits on its doorbell, thread 1 on another notification; each wakes the other.
#[test]
fn the_fast_path_of_signal_recv_is_taken() {
    for doorbell in [false, true] {
        let mut pair = build(&vec![Character { priority: 20, has_buffer: true, has_space: true }; 2], doorbell, true);
        let mut run = |number, cap, other| pair.step(&Step::Syscall { number, cap, other, info: 0 });
        run(RECV, 11, 0);
        run(SIGNAL_RECV, 6, 11);
        run(SIGNAL_RECV, 11, 6);
        run(SIGNAL_RECV, 6, 11);
        assert_eq!(pair.taken, 3);
        assert_eq!(pair.w.state(pair.threads[0]), ThreadState::BlockedOnNotification);
    }
}

#[test]
fn signals_and_waits_are_plain() {
    let characters = [10, 20].map(|priority| Character { priority, has_buffer: true, has_space: true });
    let mut pair = build(&characters, false, true);
    let (worse, better) = (pair.threads[0], pair.threads[1]);
    let mut run = |number, cap, taken: usize| {
        pair.step(&Step::Syscall { number, cap, other: 0, info: 0 });
        assert_eq!(pair.taken, taken, "system call {number}");
    };
    // The notification is bound to the worse one; a signal without waiter stays.
    run(SEND, 6, 1);
    // Who is better waits for a message, and the worse one, which has not run yet, takes the signal.
    run(RECV, 5, 1);
    run(NB_RECV, 6, 2);
    run(NB_RECV, 6, 3);
    run(YIELD, 0, 4);
    assert_eq!(pair.w.running(), Some(worse.tcb));
    assert_eq!(pair.w.state(better), ThreadState::BlockedOnReceive);
}

/// A wait until a time takes the fast paths of waits without, once its alarm is set.
#[test]
fn the_fast_path_of_wait_until_is_taken() {
    let mut pair = build(&vec![Character { priority: 20, has_buffer: true, has_space: true }; 2], false, true);
    // `info` chooses the time: 500 ticks from now, then later ones.
    let mut run = |number, cap, other, info, taken: usize| {
        pair.step(&Step::Syscall { number, cap, other, info });
        assert_eq!(pair.taken, taken);
    };
    run(RECV, 11, 0, 0, 0);
    run(WAIT_UNTIL, 6, 11, 1, 0);
    run(WAIT_UNTIL, 11, 6, 1, 0);
    run(WAIT_UNTIL, 6, 11, 1, 1);
    run(WAIT_UNTIL, 11, 6, 2, 2);
    assert_eq!(pair.w.state(pair.threads[1]), ThreadState::BlockedOnNotification);
}
