//! Message registers: the first four in a2..a5, the others in the IPC buffer; and the slot for a received capability.

use abi::ipc_buffer;
use abi::message::{MessageInfo, REGISTERS};

use crate::arch::register::{A0, A1, A2};
use crate::cspace;
use crate::mem::{Buffer, Ref};
use crate::object::cap::Cte;
use crate::object::tcb::Tcb;
use crate::state::Kernel;

/// Message word `index` of a thread. Beyond the registers it needs a buffer, or is 0.
pub fn word(k: &Kernel, thread: Ref<Tcb>, buffer: Option<Buffer>, index: usize) -> u64 {
    if index < REGISTERS {
        k.get(thread).context.x[A2 + index]
    } else {
        buffer.map_or(0, |buffer| k.buffer_word(buffer, ipc_buffer::MESSAGE + index))
    }
}

/// Sets message word `index` of a thread; gives whether it arrived.
pub fn set_word(k: &mut Kernel, thread: Ref<Tcb>, buffer: Option<Buffer>, index: usize, value: u64) -> bool {
    if index < REGISTERS {
        k.get_mut(thread).context.x[A2 + index] = value;
        return true;
    }
    if let Some(buffer) = buffer {
        k.set_buffer_word(buffer, ipc_buffer::MESSAGE + index, value);
    }
    buffer.is_some()
}

/// Writes a whole message of the kernel; what does not fit into the registers is lost without a buffer.
pub fn set_message(k: &mut Kernel, thread: Ref<Tcb>, buffer: Option<Buffer>, badge: u64, label: u64, words: &[u64]) {
    let sent =
        words.iter().enumerate().take_while(|&(index, &value)| set_word(k, thread, buffer, index, value)).count();
    let context = &mut k.get_mut(thread).context;
    context.x[A0] = badge;
    context.x[A1] = MessageInfo::new(label, 0, 0, sent).0;
}

/// The empty slot that a receiver has prepared for a capability; any obstacle means that there is none (seL4 `getReceiveSlots`).
pub fn receive_slot(k: &Kernel, receiver: Ref<Tcb>, buffer: Buffer) -> Option<Ref<Cte>> {
    let root = cspace::lookup_slot(k, receiver, k.buffer_word(buffer, ipc_buffer::RECEIVE_CNODE)).ok()?;
    let index = k.buffer_word(buffer, ipc_buffer::RECEIVE_INDEX);
    let depth = k.buffer_word(buffer, ipc_buffer::RECEIVE_DEPTH);
    let slot = cspace::lookup_argument(k, false, k.cap(root), index, depth).ok()?;
    k.cap(slot).is_null().then_some(slot)
}
