//! Calls over an endpoint: as many threads as calls in flight, each in `Call`.
//!
//! The clock starts when every thread is warm, with the first thread that leaves the barrier, and stops with the last call
//! of the last thread. All threads run on one hart, so one counter serves all.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use bench_guest::null_call::{NULL, request, share};
use userlib::cap::Endpoint;
use userlib::syscall::yield_now;
use userlib::{Env, MessageInfo, time};

use crate::program::{Plan, check, report};

/// Threads that are warm.
static WARM: AtomicUsize = AtomicUsize::new(0);
/// Threads that have made their last call.
static FINISHED: AtomicUsize = AtomicUsize::new(0);
/// The counter when the first thread left the barrier; 0 before.
static START: AtomicU64 = AtomicU64::new(0);
/// The counter after the last call of all; 0 before.
static END: AtomicU64 = AtomicU64::new(0);

/// What thread `thread` does; thread 0 prints the totals.
///
/// # Panics
/// If the manifest does not give as many threads as calls in flight, or a reply is wrong.
pub fn run(env: &Env, plan: Plan, endpoint: Endpoint, thread: usize) {
    assert_eq!(env.threads(), plan.concurrency, "a call in flight over an endpoint needs a thread");
    let warmup = share(plan.warmup, plan.concurrency, thread);
    call(endpoint, thread, 0..warmup);
    WARM.fetch_add(1, Ordering::SeqCst);
    while WARM.load(Ordering::SeqCst) < plan.concurrency {
        yield_now();
    }
    // Only the first thread to get here finds the 0; the others leave what it wrote.
    let _ = START.compare_exchange(0, time::cycles(), Ordering::SeqCst, Ordering::SeqCst);
    call(endpoint, thread, warmup..warmup + share(plan.calls, plan.concurrency, thread));
    if FINISHED.fetch_add(1, Ordering::SeqCst) + 1 == plan.concurrency {
        END.store(time::cycles(), Ordering::SeqCst);
    }
    if thread == 0 {
        while END.load(Ordering::SeqCst) == 0 {
            yield_now();
        }
        report(plan, END.load(Ordering::SeqCst) - START.load(Ordering::SeqCst), [0, 0]);
    }
}

/// Makes the calls with these indices.
fn call(endpoint: Endpoint, thread: usize, indices: core::ops::Range<u64>) {
    for index in indices {
        let request = request(thread, index);
        let reply = endpoint.call(MessageInfo::new(NULL.into(), 0, 0, 1), [request, 0, 0, 0]);
        check(request, reply.words[0]);
    }
}
