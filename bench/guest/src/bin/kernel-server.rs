//! The other side of the kernel experiment: it answers calls, or holds the threads of a signal to a lower priority.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod program {
    use bench_guest::kernel::{Clock, Plan};
    use userlib::cap::{Endpoint, slot};
    use userlib::env::{Env, Transport};
    use userlib::{MessageInfo, syscall};

    userlib::program!(main);

    static SIGNALS: Clock = Clock::new();

    fn main(env: &'static Env, thread: usize) {
        let Some(Transport::Sync { endpoint }) = env.channel("calls").map(|channel| channel.transport) else {
            panic!("the manifest has no synchronous channel \"calls\"")
        };
        let plan = Plan::of(env);
        match (env.arg("measure"), thread) {
            (Some("signal-lower"), 0) => wait_for_signals(),
            (Some("signal-lower"), _) => signal(plan, endpoint),
            (Some("yield"), _) => loop {
                syscall::yield_now();
            },
            _ => answer(plan, endpoint),
        }
    }

    /// Answers calls with messages of the same length for ever.
    fn answer(plan: Plan, endpoint: Endpoint) -> ! {
        let info = MessageInfo::new(0, 0, 0, plan.words);
        let mut message = endpoint.recv();
        loop {
            message = endpoint.reply_recv(info, message.words);
        }
    }

    /// Waits at the lowest priority.
    fn wait_for_signals() -> ! {
        if slot::TCB.unbind_notification().and_then(|()| slot::TCB.set_priority(slot::TCB, 0)).is_err() {
            panic!("thread 0 cannot leave its doorbell and its priority");
        }
        loop {
            slot::DOORBELL.wait();
        }
    }

    /// Signals thread 0 once for each call: the client, of the lowest priority too, calls when thread 0 waits again.
    ///
    /// A reply is the total so far.
    fn signal(plan: Plan, endpoint: Endpoint) -> ! {
        endpoint.recv();
        for round in 0.. {
            SIGNALS.start();
            slot::DOORBELL.signal();
            SIGNALS.stop((plan.warmup..plan.warmup + plan.rounds).contains(&round));
            let total = SIGNALS.total();
            endpoint.reply_recv(MessageInfo::new(0, 0, 0, 2), [total.cycles, total.instructions, 0, 0]);
        }
        unreachable!("the client leaves before the counter ends")
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("kernel-server is a guest program; run it with `cargo run --release -p bench -- kernel`");
}
