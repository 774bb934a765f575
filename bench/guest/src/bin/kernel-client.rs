//! Measures one kernel operation, `measure`, and prints the cycles of `rounds` rounds after `warmup` rounds.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod program {
    use bench_guest::kernel::{Clock, Plan};
    use userlib::cap::{Attributes, CPtr, Endpoint, Rights, slot};
    use userlib::env::{Env, Transport};
    use userlib::{MessageInfo, println, syscall};

    userlib::program!(main);

    static SIGNALS: Clock = Clock::new();

    fn main(env: &'static Env, thread: usize) {
        let Some(Transport::Sync { endpoint }) = env.channel("calls").map(|channel| channel.transport) else {
            panic!("the manifest has no synchronous channel \"calls\"")
        };
        let plan = Plan::of(env);
        let measure = env.arg("measure").unwrap_or_default();
        let cycles = match (measure, thread) {
            ("call-reply", _) => call_reply(plan, endpoint),
            ("null-syscall", _) => null_system_call(plan),
            ("map-unmap", _) => map_unmap(plan, env),
            ("signal-higher", 0) => signal_higher(plan),
            ("signal-higher", _) => wait_for_signals(plan),
            ("signal-lower", _) => signal_lower(plan, endpoint),
            _ => panic!("measure = \"{measure}\" is unknown"),
        };
        println!("@{{\"measure\":\"{measure}\",\"rounds\":{},\"cycles\":{cycles}}}", plan.rounds);
    }

    /// Call, and ReplyRecv of the server.
    fn call_reply(plan: Plan, endpoint: Endpoint) -> u64 {
        let info = MessageInfo::new(0, 0, 0, plan.words);
        let mut sent = 0;
        let cycles = plan.time(|| {
            sent += 1;
            let reply = endpoint.call(info, [sent, 0, 0, 0]);
            if plan.words != 0 && reply.words[0] != sent {
                panic!("message {sent} came back as {}", reply.words[0]);
            }
        });
        assert_eq!(sent, plan.warmup + plan.rounds);
        cycles
    }

    /// NBSend on an empty slot: the kernel finds no capability and, unlike in a Call, raises no fault.
    fn null_system_call(plan: Plan) -> u64 {
        plan.time(|| syscall::nb_send(CPtr::NULL, MessageInfo::new(0, 0, 0, 0), [0; 4]))
    }

    /// Maps a frame of 2 MiB behind the DMA memory, through its own capability, and unmaps it.
    fn map_unmap(plan: Plan, env: &Env) -> u64 {
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
    fn signal_higher(plan: Plan) -> u64 {
        if slot::TCB.unbind_notification().and_then(|()| slot::TCB.set_priority(slot::TCB, 0)).is_err() {
            panic!("thread 0 cannot leave its doorbell and its priority");
        }
        for _ in 0..plan.warmup + plan.rounds {
            SIGNALS.start();
            slot::DOORBELL.signal();
        }
        SIGNALS.total()
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
    fn signal_lower(plan: Plan, endpoint: Endpoint) -> u64 {
        if slot::TCB.set_priority(slot::TCB, 0).is_err() {
            panic!("thread 0 cannot lower its priority");
        }
        let mut total = 0;
        for _ in 0..=plan.warmup + plan.rounds {
            syscall::yield_now();
            total = endpoint.call(MessageInfo::new(0, 0, 0, 0), [0; 4]).words[0];
        }
        total
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("kernel-client is a guest program; run it with `cargo run --release -p bench -- kernel`");
}
