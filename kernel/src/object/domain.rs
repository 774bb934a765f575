//! The domain capability, in a kernel with one domain: everything is domain 0, and the schedule has one entry that lasts for ever.

use abi::config::NUM_DOMAINS;
use abi::label::Label;

use super::tcb::Tcb;
use crate::api::error::{Refusal, Stop};
use crate::api::invocation::{Answer, Invocation};
use crate::sched;
use crate::state::Kernel;

/// `CONFIG_NUM_DOMAIN_SCHEDULES` with one domain: an entry and the end marker.
const SCHEDULES: u64 = 2;
/// Durations have 56 bits.
const DURATION_BITS: u32 = 56;

/// Domain invocations.
pub fn decode(k: &mut Kernel, call: &Invocation) -> Result<Answer, Stop> {
    const _: () = assert!(NUM_DOMAINS == 1);
    match call.label(k) {
        Some(Label::DomainSetSet) => {
            call.need(1)?;
            if call.word(k, 0) >= NUM_DOMAINS as u64 {
                return Err(Refusal::InvalidArgument(0).into());
            }
            let tcb = k.cap(call.extra(0)?).object::<Tcb>().ok_or(Refusal::InvalidArgument(1))?;
            call.commit(k);
            // seL4 `setDomain`: out of the queue and in again at the head. A thread that runs on another core is in none.
            sched::stall(k, tcb);
            sched::dequeue(k, tcb);
            if k.get(tcb).is_runnable() {
                sched::enqueue(k, tcb);
            }
            if tcb == k.current() {
                sched::reschedule_required(k);
            }
        }
        Some(Label::DomainScheduleConfigure) => {
            call.need(3)?;
            let (index, domain, duration) = (call.word(k, 0), call.word(k, 1), call.word(k, 2));
            if index > SCHEDULES - 2 {
                return Err(Refusal::Range(0, SCHEDULES - 2).into());
            }
            if domain >= NUM_DOMAINS as u64 {
                return Err(Refusal::Range(0, NUM_DOMAINS as u64 - 1).into());
            }
            // Entry 0 is the start of the schedule, so it may not become the end marker.
            if duration >> DURATION_BITS != 0 || duration == 0 {
                return Err(Refusal::InvalidArgument(2).into());
            }
            call.commit(k);
        }
        Some(Label::DomainScheduleSetStart) => {
            call.need(1)?;
            let index = call.word(k, 0);
            if index >= SCHEDULES {
                return Err(Refusal::Range(0, SCHEDULES - 1).into());
            }
            if index == SCHEDULES - 1 {
                return Err(Refusal::InvalidArgument(0).into());
            }
            call.commit(k);
            sched::reschedule_required(k);
        }
        _ => return Err(Refusal::IllegalOperation.into()),
    }
    Ok(Answer::Empty)
}
