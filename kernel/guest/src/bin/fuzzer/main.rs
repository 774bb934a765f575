//! The system-call fuzzer: a root task whose worker threads make random system calls, on a kernel that checks its invariants.
//!
//! Workers have a CSpace of their own with capabilities of every type, made anew every round out of one block of memory (`round.rs`),
//! and an address space of their own with nothing in it but the code and a page or two each. So they may do to each other whatever
//! the kernel lets them do, and one revocation by the supervisor ends it. The supervisor has the best priority, and an alarm wakes it
//! (`supervisor.rs`): it sees whether calls are still being made, and starts the next round when they are not.
//!
//! Everything follows from the seed, the number of harts and the machine's schedule seed (`soc run --schedule-seed`): the same three
//! give the same run. Arguments are words of `/chosen/bootargs` (`soc run --append`): `seed=N`, `calls=N`, `labels=up`.
//! A kernel panic shows the seed in t5 (x30) and the worker's call in t6 (x31).

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod alarm;
#[cfg(target_os = "none")]
mod plan;
#[cfg(target_os = "none")]
mod random;
#[cfg(target_os = "none")]
mod request;
#[cfg(target_os = "none")]
mod round;
#[cfg(target_os = "none")]
mod supervisor;
#[cfg(target_os = "none")]
mod worker;

#[cfg(target_os = "none")]
userlib::root_task!(fuzz, stack = 16 << 10, heap = 4096);

#[cfg(target_os = "none")]
fn fuzz(info: &'static userlib::BootInfo) -> ! {
    let plan = plan::Plan::read(info);
    let mut supervisor = supervisor::Supervisor::new(info, &plan);
    let (mut calls, mut rounds) = (0, 0);
    while calls < plan.calls {
        calls += round::run(&mut supervisor, &plan, rounds);
        rounds += 1;
    }
    userlib::println!("fuzzer: {calls} calls in {rounds} rounds, seed {}, {} harts", plan.seed, plan.harts);
    supervisor.alarm.end_machine()
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("fuzzer is a root task; run it with `make fuzz-kernel`");
}
