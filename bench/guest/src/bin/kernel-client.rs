//! Measures one kernel operation, `measure`, and prints the cycles of `rounds` rounds after `warmup` rounds.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod program {
    use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    use bench_guest::alarm::Alarm;
    use bench_guest::kernel::{Clock, Cost, Plan};
    use userlib::cap::{Attributes, CPtr, Endpoint, Rights, slot};
    use userlib::env::{Env, Transport};
    use userlib::{MessageInfo, println, syscall, time};

    userlib::program!(main);

    static SIGNALS: Clock = Clock::new();

    fn main(env: &'static Env, thread: usize) {
        let Some(Transport::Sync { endpoint }) = env.channel("calls").map(|channel| channel.transport) else {
            panic!("the manifest has no synchronous channel \"calls\"")
        };
        let plan = Plan::of(env);
        let measure = env.arg("measure").unwrap_or_default();
        let cost = match (measure, thread) {
            ("call-reply", _) => call_reply(plan, endpoint),
            ("null-syscall", _) => null_system_call(plan),
            ("yield", _) => plan.time(syscall::yield_now),
            ("irq-to-user", 0) => interrupt(plan, Alarm::of(env)),
            ("irq-to-user", _) => wait_for_interrupts(plan, Alarm::of(env)),
            ("irq-latency", 0) => long_operations(env),
            ("irq-latency", _) => interrupt_long_operations(plan, Alarm::of(env)),
            ("map-unmap", _) => map_unmap(plan, env),
            ("signal-higher", 0) => signal_higher(plan),
            ("signal-higher", _) => wait_for_signals(plan),
            ("signal-lower", _) => signal_lower(plan, endpoint),
            _ => panic!("measure = \"{measure}\" is unknown"),
        };
        println!(
            "@{{\"measure\":\"{measure}\",\"rounds\":{},\"cycles\":{},\"instructions\":{}}}",
            plan.rounds, cost.cycles, cost.instructions
        );
    }

    /// Call, and ReplyRecv of the server.
    fn call_reply(plan: Plan, endpoint: Endpoint) -> Cost {
        let info = MessageInfo::new(0, 0, 0, plan.words);
        let mut sent = 0;
        let cost = plan.time(|| {
            sent += 1;
            let reply = endpoint.call(info, [sent, 0, 0, 0]);
            if plan.words != 0 && reply.words[0] != sent {
                panic!("message {sent} came back as {}", reply.words[0]);
            }
        });
        assert_eq!(sent, plan.warmup + plan.rounds);
        cost
    }

    /// NBSend on an empty slot: the kernel finds no capability and, unlike in a Call, raises no fault.
    fn null_system_call(plan: Plan) -> Cost {
        plan.time(|| syscall::nb_send(CPtr::NULL, MessageInfo::new(0, 0, 0, 0), [0; 4]))
    }

    /// Maps a frame of 2 MiB behind the DMA memory, through its own capability, and unmaps it.
    fn map_unmap(plan: Plan, env: &Env) -> Cost {
        let Some(memory) = env.dma() else { panic!("the manifest gives no dma") };
        let frame = memory.frame(0);
        let address = (memory.region.address + memory.region.size) as u64;
        plan.time(|| {
            let mapped = frame.map(slot::VSPACE, address, Rights::READ_WRITE, Attributes::ExecuteNever);
            if let Err(error) = mapped.and_then(|()| frame.unmap()) {
                panic!("a frame cannot be mapped and unmapped: {error}");
            }
        })
    }

    /// Signals thread 1 from the lowest priority: it runs at once and stops the clock.
    fn signal_higher(plan: Plan) -> Cost {
        step_back();
        for _ in 0..plan.warmup + plan.rounds {
            SIGNALS.start();
            slot::DOORBELL.signal();
        }
        SIGNALS.total()
    }

    /// Thread 0 leaves its doorbell to thread 1, and lets it run whenever that can.
    fn step_back() {
        if slot::TCB.unbind_notification().and_then(|()| slot::TCB.set_priority(slot::TCB, 0)).is_err() {
            panic!("thread 0 cannot leave its doorbell and its priority");
        }
    }

    /// Interrupts thread 1 from the lowest priority, by a write to the device: it runs at once and stops the clock.
    fn interrupt(plan: Plan, alarm: Alarm) -> Cost {
        step_back();
        for round in 0..plan.warmup + plan.rounds {
            SIGNALS.start();
            alarm.ring();
            // The interrupt takes its way through the PLIC: the next round must not start before it comes.
            while SIGNALS.stops() <= round {}
        }
        SIGNALS.total()
    }

    fn wait_for_interrupts(plan: Plan, alarm: Alarm) -> ! {
        // As in `wait_for_signals`.
        syscall::yield_now();
        for round in 0.. {
            slot::DOORBELL.wait();
            SIGNALS.stop(round >= plan.warmup);
            alarm.take_back();
        }
        unreachable!("thread 0 ends the program")
    }

    /// Nanoseconds of a core cycle: the board's core clock is 100 MHz.
    const NS_PER_CYCLE: u64 = 10;
    /// The longest time between an interrupt and the thread that waits for it, in cycles.
    static LONGEST: AtomicU64 = AtomicU64::new(0);
    static DONE: AtomicBool = AtomicBool::new(false);

    /// Keeps the kernel in operations that take long, from the lowest priority: copies of a capability fill all free slots, and are
    /// revoked. Ends when thread 1 has measured enough.
    fn long_operations(env: &Env) -> Cost {
        step_back();
        let slots = env.reply_slots();
        let at = |index| slot::CNODE.slot(slots.first + index);
        let fill_and_revoke = || {
            at(0).mint(slot::CNODE.slot(slot::DOORBELL.0.0), Rights::READ_WRITE, 1 << 5)?;
            (1..slots.count).try_for_each(|index| at(index).copy(at(0), Rights::READ_WRITE))?;
            at(0).revoke()?;
            at(0).delete()
        };
        while !DONE.load(Ordering::Relaxed) {
            if let Err(error) = fill_and_revoke() {
                panic!("capabilities cannot be copied and revoked: {error}");
            }
        }
        Cost { cycles: LONGEST.load(Ordering::Relaxed), instructions: 0 }
    }

    /// Sets the alarm to times that differ from one to the next by no round number, and looks how late it is heard.
    fn interrupt_long_operations(plan: Plan, alarm: Alarm) -> ! {
        const STEP_NS: u64 = 12_345_670;
        const SPAN_NS: u64 = 2_000_000;
        syscall::yield_now();
        for round in 0..plan.rounds {
            let (before, now, after) = (time::cycles(), alarm.now(), time::cycles());
            let delay = SPAN_NS + round * STEP_NS % SPAN_NS;
            alarm.ring_at(now + delay);
            slot::DOORBELL.wait();
            let due = before.midpoint(after) + delay / NS_PER_CYCLE;
            LONGEST.fetch_max(time::cycles().saturating_sub(due), Ordering::Relaxed);
            alarm.take_back();
        }
        DONE.store(true, Ordering::Relaxed);
        loop {
            slot::DOORBELL.wait();
        }
    }

    fn wait_for_signals(plan: Plan) -> ! {
        // The doorbell is bound to thread 0 until that unbinds it.
        syscall::yield_now();
        for round in 0.. {
            slot::DOORBELL.wait();
            SIGNALS.stop(round >= plan.warmup);
        }
        unreachable!("thread 0 ends the program")
    }

    /// Tells the server, time and again, that its thread 0 waits: it has run when this thread, of the same priority, has yielded.
    fn signal_lower(plan: Plan, endpoint: Endpoint) -> Cost {
        if slot::TCB.set_priority(slot::TCB, 0).is_err() {
            panic!("thread 0 cannot lower its priority");
        }
        let mut total = Cost::default();
        for _ in 0..=plan.warmup + plan.rounds {
            syscall::yield_now();
            let [cycles, instructions, ..] = endpoint.call(MessageInfo::new(0, 0, 0, 0), [0; 4]).words;
            total = Cost { cycles, instructions };
        }
        total
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("kernel-client is a guest program; run it with `cargo run --release -p bench -- kernel`");
}
