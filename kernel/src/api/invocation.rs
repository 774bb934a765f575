//! A request on a kernel object as decode sees it: who calls, what is invoked, and its arguments; and what it answers.

use abi::error::LookupFailure;
use abi::label::Label;
use abi::message::MessageInfo;

use super::error::{Refusal, Stop};
use super::message;
use crate::mem::{Buffer, Ref};
use crate::object::cap::{Cap, Cte, Kind};
use crate::object::tcb::{Tcb, ThreadState};
use crate::object::{cnode, domain, irq, notification, sender_table, tcb, untyped, vspace};
use crate::state::Kernel;
use crate::thread::{self, ExtraCaps};

/// Where a request comes from, and so where its message words are.
#[derive(Clone, Copy, Debug)]
pub enum Origin<'a> {
    /// A system call of the caller: its registers, then this IPC buffer.
    Trap(Option<Buffer>),
    /// An entry of the caller's ring, copied out of it (syscall_ring.rs). It has no IPC buffer for an answer.
    Ring(&'a [u64]),
}

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct Invocation<'a> {
    /// Who calls.
    pub caller: Ref<Tcb>,
    /// Slot of the invoked capability.
    pub slot: Ref<Cte>,
    /// The invoked capability.
    pub cap: Cap,
    /// Label as the caller numbers it.
    pub label: u64,
    /// Message words.
    pub length: usize,
    /// Where the words are.
    pub origin: Origin<'a>,
    /// Slots of the extra capabilities.
    pub extra: ExtraCaps,
    /// Whether an answer is wanted.
    pub call: bool,
}

/// What a request that was carried out answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Label 0, length 0.
    Empty,
    /// These words, so many of them. What goes beyond four has been written to the buffer.
    Words([u64; 4], usize),
}

impl Answer {
    /// One word.
    pub const fn word(word: u64) -> Self {
        Self::Words([word, 0, 0, 0], 1)
    }
}

impl Invocation<'_> {
    /// Truncated, unless there are `words` message words.
    pub fn need(&self, words: usize) -> Result<(), Refusal> {
        if self.length >= words { Ok(()) } else { Err(Refusal::Truncated) }
    }

    /// Slot of extra capability `index`; Truncated if it was not sent.
    pub fn extra(&self, index: usize) -> Result<Ref<Cte>, Refusal> {
        self.extra[index].ok_or(Refusal::Truncated)
    }

    /// Message word `index`.
    pub fn word(&self, k: &Kernel, index: usize) -> u64 {
        match self.origin {
            Origin::Trap(buffer) => message::word(k, self.caller, buffer, index),
            Origin::Ring(words) => words.get(index).copied().unwrap_or(0),
        }
    }

    /// Where words of an answer go that are more than registers hold.
    pub fn answer_buffer(&self, k: &Kernel) -> Option<Buffer> {
        match self.origin {
            Origin::Trap(_) => thread::buffer(k, self.caller, true),
            Origin::Ring(_) => None,
        }
    }

    /// The cancellation of badged sends that the request has begun, if it was preempted (endpoint.rs).
    pub fn cancellation<'k>(&self, k: &'k mut Kernel) -> &'k mut u64 {
        let caller = k.get_mut(self.caller);
        match self.origin {
            Origin::Trap(_) => &mut caller.cancellation,
            Origin::Ring(_) => &mut caller.ring.cancellation,
        }
    }

    /// What the label means on this kernel.
    pub fn label(&self, k: &Kernel) -> Option<Label> {
        Label::from_number(self.label, k.config.labels)
    }

    /// The line between checks and effects: what follows is not refused any more. Until it ends, the caller would execute its system
    /// call again; an entry of a ring stays where it is, whatever its thread does.
    pub fn commit(&self, k: &mut Kernel) {
        if matches!(self.origin, Origin::Trap(_)) {
            thread::set_state(k, self.caller, ThreadState::Restart);
        }
    }

    /// A slot argument: `depth` bits of `index` in `root`.
    pub fn slot_argument(
        &self,
        k: &Kernel,
        source: bool,
        root: Cap,
        index: u64,
        depth: u64,
    ) -> Result<Ref<Cte>, Refusal> {
        crate::cspace::lookup_argument(k, source, root, index, depth)
    }

    /// The capability in a source slot; FailedLookup if it is empty.
    pub fn source_cap(&self, k: &Kernel, source: bool, slot: Ref<Cte>, depth: u64) -> Result<Cap, Refusal> {
        let cap = k.cap(slot);
        if cap.is_null() {
            return Err(Refusal::FailedLookup(source, LookupFailure::MissingCapability { bits_left: depth }));
        }
        Ok(cap)
    }
}

/// Decodes and carries out a request on a kernel object.
pub fn decode(k: &mut Kernel, call: &Invocation) -> Result<Answer, Stop> {
    match call.cap.kind() {
        Kind::Untyped => untyped::decode(k, call),
        Kind::CNode => cnode::decode(k, call),
        Kind::Tcb => tcb::decode(k, call),
        Kind::IrqControl => irq::decode_control(k, call),
        Kind::IrqHandler => irq::decode_handler(k, call),
        Kind::Domain => domain::decode(k, call),
        Kind::Frame => vspace::frame::decode(k, call),
        Kind::PageTable => vspace::table::decode(k, call),
        Kind::AsidControl => vspace::asid::decode_control(k, call),
        Kind::AsidPool => vspace::asid::decode_pool(k, call),
        Kind::SenderTable => sender_table::decode(k, call),
        Kind::Notification => notification::decode(k, call),
        // Endpoint and reply are dispatched before.
        Kind::Null | Kind::Zombie | Kind::SenderEntry | Kind::Endpoint | Kind::Reply => {
            Err(Refusal::InvalidCapability(0).into())
        }
    }
}

/// Writes the answer of a system call into the caller's registers.
pub fn answer(k: &mut Kernel, caller: Ref<Tcb>, label: u64, words: &[u64], length: usize) {
    let buffer = thread::buffer(k, caller, true);
    message::set_message(k, caller, buffer, 0, label, words);
    if length > words.len() {
        use crate::arch::register::A1;
        k.get_mut(caller).context.x[A1] = MessageInfo::new(label, 0, 0, length).0;
    }
}
