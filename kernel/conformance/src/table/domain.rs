//! The domain capability, with one domain and two entries of the schedule.

use crate::number::{Invocation::*, object as o, slot};
use crate::row::System;

const DOMAIN: u64 = slot::DOMAIN;

/// Runs the table.
pub fn run(s: &mut impl System) {
    let u = s.block();
    let (t, ep) = (s.make(u, o::TCB, 0), s.make(u, o::ENDPOINT, 0));
    let (set, configure, start) = (DomainSetSet, DomainScheduleConfigure, DomainScheduleSetStart);
    s.check(
        "Domain",
        &[
            ("Set, length 0", DOMAIN, set, &[], &[t], 7, &[]),
            ("Set 1", DOMAIN, set, &[1], &[t], 1, &[0]),
            ("Set 1, no extra cap", DOMAIN, set, &[1], &[], 1, &[0]),
            ("Set 2^32", DOMAIN, set, &[1 << 32], &[t], 1, &[0]),
            ("Set, no extra cap", DOMAIN, set, &[0], &[], 7, &[]),
            ("Set, cap = endpoint", DOMAIN, set, &[0], &[ep], 1, &[1]),
            ("Set 0", DOMAIN, set, &[0], &[t], 0, &[]),
            ("ScheduleConfigure, length 2", DOMAIN, configure, &[0, 0], &[], 7, &[]),
            ("ScheduleConfigure index 1", DOMAIN, configure, &[1, 1, 5], &[], 4, &[0, 0]),
            ("ScheduleConfigure domain 1", DOMAIN, configure, &[0, 1, 0], &[], 4, &[0, 0]),
            ("ScheduleConfigure duration 2^56", DOMAIN, configure, &[0, 0, 1 << 56], &[], 1, &[2]),
            ("ScheduleConfigure duration 0 at start", DOMAIN, configure, &[0, 0, 0], &[], 1, &[2]),
            ("ScheduleConfigure (0, 0, 5)", DOMAIN, configure, &[0, 0, 5], &[], 0, &[]),
            ("ScheduleSetStart, length 0", DOMAIN, start, &[], &[], 7, &[]),
            ("ScheduleSetStart 1", DOMAIN, start, &[1], &[], 1, &[0]),
            ("ScheduleSetStart 2", DOMAIN, start, &[2], &[], 4, &[0, 1]),
            ("ScheduleSetStart 0", DOMAIN, start, &[0], &[], 0, &[]),
        ],
    );
}
