//! Work for several threads whose results do not depend on them.
//!
//! Each job boots a machine of its own, and a machine is deterministic; so jobs may run at the same time, as long as their
//! results come back in the order in which the jobs were listed.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs `work` on every job with `workers` threads, and returns the results in the order of the jobs.
///
/// After the first error no further job is started; of several errors the one of the earliest job is returned.
///
/// # Errors
/// What `work` returned.
pub fn run<J: Sync, T: Send, E: Send>(
    jobs: &[J],
    workers: NonZeroUsize,
    work: impl Fn(&J) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<Result<T, E>>>> = Mutex::new(jobs.iter().map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..workers.get().min(jobs.len()) {
            scope.spawn(|| {
                while let Some((index, job)) = take(jobs, &next) {
                    let result = work(job);
                    if result.is_err() {
                        next.store(jobs.len(), Ordering::Relaxed);
                    }
                    // A thread that panics ends the scope with its panic, so nobody reads a poisoned list.
                    results.lock().expect("no job panicked")[index] = Some(result);
                }
            });
        }
    });
    // Jobs are started in order, so everything before the earliest error has a result.
    results.into_inner().expect("no job panicked").into_iter().map_while(|result| result).collect()
}

/// The next job that nobody has taken.
fn take<'a, J>(jobs: &'a [J], next: &AtomicUsize) -> Option<(usize, &'a J)> {
    let index =
        next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |index| (index < jobs.len()).then_some(index + 1));
    index.ok().map(|index| (index, &jobs[index]))
}

/// As many threads as the host has processors.
pub fn workers() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workers(count: usize) -> NonZeroUsize {
        NonZeroUsize::new(count).unwrap()
    }

    #[test]
    fn results_keep_the_order_of_the_jobs() {
        let jobs: Vec<u64> = (0..64).collect();
        let slow_first = |job: &u64| {
            std::thread::sleep(std::time::Duration::from_micros(64 - job));
            Ok::<u64, ()>(job * 2)
        };
        let expected: Vec<u64> = jobs.iter().map(|job| job * 2).collect();
        for count in [1, 2, 7, 100] {
            assert_eq!(run(&jobs, workers(count), slow_first), Ok(expected.clone()));
        }
        assert_eq!(run(&[], workers(2), slow_first), Ok(vec![]));
    }

    #[test]
    fn the_first_error_stops_the_work() {
        let jobs: Vec<u64> = (0..1000).collect();
        let started = AtomicUsize::new(0);
        let result = run(&jobs, workers(2), |job| {
            started.fetch_add(1, Ordering::Relaxed);
            if *job >= 3 { Err(*job) } else { Ok(()) }
        });
        assert_eq!(result, Err(3));
        assert!(started.into_inner() < 1000);
    }
}
