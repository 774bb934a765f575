//! Reply capabilities: the right, once, to answer a thread that waits after a Call or a fault.

use super::cap::Cte;
use super::delete;
use super::tcb::{Tcb, ThreadState};
use crate::api::fault::{self, Fault};
use crate::mem::Ref;
use crate::state::Kernel;
use crate::{sched, thread};

/// Answers `caller` with the message of `sender`; the capability in `slot` is used up (seL4 `doReplyTransfer`).
pub fn transfer(k: &mut Kernel, sender: Ref<Tcb>, caller: Ref<Tcb>, slot: Ref<Cte>, grant: bool) {
    debug_assert!(k.get(caller).state == ThreadState::BlockedOnReply);
    let fault = k.get(caller).fault;
    if fault == Fault::None {
        thread::transfer(k, sender, None, 0, grant, caller);
        delete::delete_one(k, slot);
        thread::set_state(k, caller, ThreadState::Running);
        sched::possible_switch_to(k, caller);
        return;
    }
    delete::delete_one(k, slot);
    let restarts = fault::apply_reply(k, caller, fault, sender);
    k.get_mut(caller).fault = Fault::None;
    if restarts {
        thread::set_state(k, caller, ThreadState::Restart);
        sched::possible_switch_to(k, caller);
    } else {
        thread::set_state(k, caller, ThreadState::Inactive);
    }
}
