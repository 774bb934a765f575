//! TCB_ReadRegisters, TCB_WriteRegisters, TCB_CopyRegisters.

use abi::ipc_buffer;
use abi::message::REGISTERS;
use abi::register::{COUNT, FRAME_COUNT, X};

use super::Tcb;
use crate::api::error::{Refusal, Stop};
use crate::api::invocation::{Answer, Invocation};
use crate::arch::register::PC;
use crate::mem::Ref;
use crate::state::Kernel;
use crate::{sched, thread};

/// TCB_ReadRegisters.
pub fn decode_read(k: &mut Kernel, call: &Invocation, tcb: Ref<Tcb>) -> Result<Answer, Stop> {
    call.need(2)?;
    let (flags, count) = (call.word(k, 0), call.word(k, 1));
    if !(1..=COUNT as u64).contains(&count) {
        return Err(Refusal::Range(1, COUNT as u64).into());
    }
    if tcb == call.caller {
        return Err(Refusal::IllegalOperation.into());
    }
    call.commit(k);
    if flags & 1 != 0 {
        thread::suspend(k, tcb);
    }
    if !call.call {
        return Ok(Answer::Empty);
    }
    let buffer = call.answer_buffer(k);
    let length = if buffer.is_some() { count as usize } else { (count as usize).min(REGISTERS) };
    let mut words = [0; REGISTERS];
    for (index, &register) in X.iter().enumerate().take(length) {
        let value = k.get(tcb).context.x[usize::from(register)];
        match (words.get_mut(index), buffer) {
            (Some(word), _) => *word = value,
            (None, Some(buffer)) => k.set_buffer_word(buffer, ipc_buffer::MESSAGE + index, value),
            (None, None) => {}
        }
    }
    Ok(Answer::Words(words, length))
}

/// TCB_WriteRegisters.
pub fn decode_write(k: &mut Kernel, call: &Invocation, tcb: Ref<Tcb>) -> Result<(), Stop> {
    call.need(2)?;
    let (flags, count) = (call.word(k, 0), call.word(k, 1));
    if count > (call.length - 2) as u64 {
        return Err(Refusal::Truncated.into());
    }
    if tcb == call.caller {
        return Err(Refusal::IllegalOperation.into());
    }
    call.commit(k);
    for (index, &register) in X.iter().enumerate().take(count as usize) {
        let value = call.word(k, 2 + index);
        k.get_mut(tcb).context.x[usize::from(register)] = value;
    }
    let object = k.get_mut(tcb);
    object.cancellation = 0;
    object.context.next_pc = object.context.x[PC];
    if flags & 1 != 0 {
        thread::resume(k, tcb);
    }
    Ok(())
}

/// TCB_CopyRegisters.
pub fn decode_copy(k: &mut Kernel, call: &Invocation, tcb: Ref<Tcb>) -> Result<(), Stop> {
    call.need(1)?;
    let source = k.cap(call.extra(0)?).object::<Tcb>().ok_or(Refusal::InvalidCapability(1))?;
    let flags = call.word(k, 0);
    call.commit(k);
    sched::stall(k, source);
    if flags & 1 != 0 {
        thread::suspend(k, source);
    }
    if flags & 2 != 0 {
        thread::resume(k, tcb);
    }
    k.get_mut(tcb).cancellation = 0;
    let (frame, integer) = X.split_at(FRAME_COUNT);
    if flags & 4 != 0 {
        copy(k, source, tcb, frame);
        let context = &mut k.get_mut(tcb).context;
        context.next_pc = context.x[PC];
    }
    if flags & 8 != 0 {
        copy(k, source, tcb, integer);
    }
    if tcb == k.current() {
        sched::reschedule_required(k);
    }
    Ok(())
}

fn copy(k: &mut Kernel, source: Ref<Tcb>, target: Ref<Tcb>, registers: &[u8]) {
    for &register in registers {
        let value = k.get(source).context.x[usize::from(register)];
        k.get_mut(target).context.x[usize::from(register)] = value;
    }
}
