//! Alarms: the heap of each core, and its timer, which is set to the first of them or earlier.

use super::survey::{Mark, Survey};
use crate::alarm::Alarm;
use crate::mem::Ref;
use crate::object::tcb::Tcb;
use crate::state::Kernel;

/// Checks the alarms of all threads, each against those next to it, and the timers.
pub fn check(k: &Kernel, survey: &Survey) {
    let mut next = k.threads;
    while let Some(thread) = next {
        check_alarm(k, survey, thread);
        next = k.get(thread).all_next;
    }
    for timer in &k.timers {
        if let Some(first) = timer.first {
            assert!(survey.has(first.word(), Mark::Thread), "the first alarm is of no thread");
            let alarm = &k.get(first).alarm;
            assert!(alarm.is_set() && alarm.parent.is_none(), "the first alarm is not the first");
            assert!(timer.armed <= alarm.at, "an alarm would be late");
        }
        assert!(timer.armed <= timer.tick, "the tick would be late");
    }
}

fn check_alarm(k: &Kernel, survey: &Survey, thread: Ref<Tcb>) {
    let alarm = &k.get(thread).alarm;
    if !alarm.is_set() {
        assert_eq!(*alarm, Alarm::default(), "an alarm is off and linked");
        return;
    }
    match alarm.parent {
        None => assert_eq!(k.timers[usize::from(alarm.core)].first, Some(thread), "an alarm is lost"),
        Some(parent) => {
            assert!(survey.has(parent.word(), Mark::Thread), "an alarm below no thread's");
            let above = &k.get(parent).alarm;
            assert!([above.left, above.right].contains(&Some(thread)), "an alarm is not where it says");
            assert!(above.at <= alarm.at, "alarms in a wrong order");
            assert_eq!(above.core, alarm.core, "an alarm among those of another core");
        }
    }
    let rank = |below: Option<Ref<Tcb>>| {
        below.map_or(0, |below| {
            assert!(survey.has(below.word(), Mark::Thread), "an alarm of no thread");
            assert_eq!(k.get(below).alarm.parent, Some(thread), "an alarm below two");
            k.get(below).alarm.rank
        })
    };
    let (left, right) = (rank(alarm.left), rank(alarm.right));
    assert!(left >= right && alarm.rank == right + 1, "rank of an alarm");
}
