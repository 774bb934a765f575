//! Untyped memory: the only source of objects.
//!
//! The capability keeps the offset of the first free byte. Memory from there on is zero, except in a block that boot or a copy has
//! marked full. When a block has no children left, all of it is free again: it is zeroed first, from the top down in chunks, with the
//! offset following, so that a preempted Retype goes on where it stopped.

use abi::config::{RESET_CHUNK_BITS, RETYPE_FAN_OUT_LIMIT};
use abi::error::LookupFailure;
use abi::extension::{SENDER_TABLE, SENDER_TABLE_BITS};
use abi::label::Label;
use abi::object::{self, bits};

use super::cap::{Cap, Cte, FrameSize, Kind, VmRights};
use super::tcb::Tcb;
use crate::api::error::{Preempted, Refusal, Stop};
use crate::api::invocation::{Answer, Invocation};
use crate::mem::{Kva, Ref};
use crate::state::Kernel;
use crate::thread;

/// What Retype makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Untyped(usize),
    Tcb,
    Endpoint,
    Notification,
    CNode(usize),
    Frame(FrameSize),
    PageTable,
    SenderTable,
}

impl Type {
    fn from_number(number: u64, size_bits: u64) -> Option<Self> {
        Some(match number {
            object::UNTYPED => Self::Untyped(size_bits as usize),
            object::TCB => Self::Tcb,
            object::ENDPOINT => Self::Endpoint,
            object::NOTIFICATION => Self::Notification,
            object::CNODE => Self::CNode(size_bits as usize),
            object::GIGA_PAGE => Self::Frame(FrameSize::Giga),
            object::PAGE_4K => Self::Frame(FrameSize::Page),
            object::MEGA_PAGE => Self::Frame(FrameSize::Mega),
            object::PAGE_TABLE => Self::PageTable,
            SENDER_TABLE => Self::SenderTable,
            _ => return None,
        })
    }

    /// log2 of its bytes; `size_bits` has been checked to be below 64.
    fn bits(self) -> usize {
        match self {
            Self::Untyped(size) => size,
            Self::Tcb => bits::TCB,
            Self::Endpoint => bits::ENDPOINT,
            Self::Notification => bits::NOTIFICATION,
            Self::CNode(radix) => radix + bits::SLOT,
            Self::Frame(size) => size.bits(),
            Self::PageTable => bits::PAGE_TABLE,
            Self::SenderTable => SENDER_TABLE_BITS,
        }
    }
}

/// Checked arguments of Retype.
#[derive(Clone, Copy, Debug)]
struct Retype {
    kind: Type,
    /// First destination slot, and the CNode it is in.
    node: Cap,
    offset: usize,
    count: usize,
    device: bool,
    /// Whose core and domain a new thread gets.
    creator: Ref<Tcb>,
}

/// Untyped_Retype (seL4 `decodeUntypedInvocation`).
pub fn decode(k: &mut Kernel, call: &Invocation) -> Result<Answer, Stop> {
    if call.label(k) != Some(Label::UntypedRetype) {
        return Err(Refusal::IllegalOperation.into());
    }
    call.need(6)?;
    let root = k.cap(call.extra(0)?);
    let size_bits = call.word(k, 1);
    let kind = Type::from_number(call.word(k, 0), size_bits).ok_or(Refusal::InvalidArgument(0))?;
    if size_bits >= u64::from(u64::BITS) || kind.bits() > bits::MAX_UNTYPED {
        return Err(Refusal::Range(0, bits::MAX_UNTYPED as u64).into());
    }
    if matches!(kind, Type::CNode(0)) || matches!(kind, Type::Untyped(size) if size < bits::MIN_UNTYPED) {
        return Err(Refusal::InvalidArgument(1).into());
    }
    let depth = call.word(k, 3);
    let node = if depth == 0 { root } else { k.cap(call.slot_argument(k, false, root, call.word(k, 2), depth)?) };
    if !node.is(Kind::CNode) {
        let failure = LookupFailure::MissingCapability { bits_left: depth };
        return Err(Refusal::FailedLookup(false, failure).into());
    }
    let (slots, offset, count) = (1 << node.radix(), call.word(k, 4), call.word(k, 5));
    if offset >= slots {
        return Err(Refusal::Range(0, slots - 1).into());
    }
    if !(1..=RETYPE_FAN_OUT_LIMIT).contains(&count) {
        return Err(Refusal::Range(1, RETYPE_FAN_OUT_LIMIT).into());
    }
    if count > slots - offset {
        return Err(Refusal::Range(1, slots - offset).into());
    }
    let (offset, count) = (offset as usize, count as usize);
    for index in offset..offset + count {
        k.ensure_empty(node.slot(index))?;
    }
    let has_children = k.first_child(call.slot).is_some();
    let free = if has_children { call.cap.untyped_free() } else { 0 };
    let left = (1 << call.cap.untyped_bits()) - free;
    if left >> kind.bits() < count as u64 {
        return Err(Refusal::NotEnoughMemory(left).into());
    }
    let device = call.cap.is_device();
    if device && !matches!(kind, Type::Frame(_) | Type::Untyped(_)) {
        return Err(Refusal::InvalidArgument(1).into());
    }
    call.commit(k);
    invoke(k, call.slot, has_children, Retype { kind, node, offset, count, device, creator: call.caller })?;
    Ok(Answer::Empty)
}

fn invoke(k: &mut Kernel, slot: Ref<Cte>, has_children: bool, retype: Retype) -> Result<(), Preempted> {
    if !has_children {
        reset(k, slot)?;
    }
    let block = k.cap(slot);
    let size = 1u64 << retype.kind.bits();
    let first = block.untyped_free().next_multiple_of(size);
    let end = first + size * retype.count as u64;
    k.get_mut(slot).cap = block.with_untyped_free(end);
    for index in 0..retype.count {
        let address = block.address().offset(first + size * index as u64);
        let cap = create(k, &retype, address);
        k.insert_new(cap, slot, retype.node.slot(retype.offset + index));
    }
    Ok(())
}

/// Makes a block without children all free and zero (seL4 `resetUntypedCap`).
fn reset(k: &mut Kernel, slot: Ref<Cte>) -> Result<(), Preempted> {
    let block = k.cap(slot);
    let mut used = block.untyped_free();
    if used == 0 {
        return Ok(());
    }
    if block.is_device() {
        k.get_mut(slot).cap = block.with_untyped_free(0);
        return Ok(());
    }
    let chunk = 1u64 << block.untyped_bits().min(RESET_CHUNK_BITS);
    while used != 0 {
        used = (used - 1) & !(chunk - 1);
        // SAFETY: inside the block, which has no children.
        unsafe { k.zero(block.address().offset(used), chunk as usize) };
        k.get_mut(slot).cap = block.with_untyped_free(used);
        k.preemption_point()?;
    }
    Ok(())
}

/// The capability to a new object in zeroed memory.
fn create(k: &mut Kernel, retype: &Retype, address: Kva) -> Cap {
    let device = retype.device;
    // SAFETY of every `assume` here: Retype hands out each byte once, zeroed, aligned to the object's size; a zeroed object of each
    // of these types is valid.
    match retype.kind {
        Type::Untyped(size) => Cap::untyped(address, size, device, 0),
        Type::Frame(size) => Cap::frame(address, size, VmRights::ReadWrite, device),
        Type::Endpoint => {
            // SAFETY: above.
            Cap::endpoint(unsafe { Ref::assume(address) }, abi::rights::Rights::ALL, 0)
        }
        Type::Notification => {
            // SAFETY: above.
            Cap::notification(unsafe { Ref::assume(address) }, abi::rights::Rights::READ_WRITE, 0)
        }
        Type::CNode(radix) => {
            // SAFETY: above.
            Cap::cnode(unsafe { Ref::assume(address) }, radix, 0)
        }
        Type::PageTable => {
            // SAFETY: above.
            Cap::page_table(unsafe { Ref::assume(address) })
        }
        Type::SenderTable => {
            // SAFETY: above.
            Cap::sender_table(unsafe { Ref::assume(address) })
        }
        Type::Tcb => {
            // SAFETY: above.
            let tcb: Ref<Tcb> = unsafe { Ref::assume(address) };
            let creator = k.get(retype.creator);
            let (slice, core, domain) = (k.config.time_slice, creator.core, creator.domain);
            let object = k.get_mut(tcb);
            object.time_slice = slice;
            object.core = core;
            object.domain = domain;
            thread::enlist(k, tcb);
            Cap::tcb(tcb)
        }
    }
}
