//! Memory slow paths: misaligned addresses, translation, devices, watched pages; and the atomics.

use super::Stop;
use crate::board::RAM_BASE;
use crate::bus::Bus;
use crate::config::Misaligned;
use crate::hart::insn::Insn;
use crate::hart::pmp::Access;
use crate::hart::{Exception, Hart};
use crate::memory::PAGE_BYTES;
use crate::timing::{Timing, Touch};

const LOAD_MISALIGNED: u64 = 4;
const LOAD_FAULT: u64 = 5;
const STORE_MISALIGNED: u64 = 6;
const STORE_FAULT: u64 = 7;

/// Extra cycles of an access of `hart`, number `id`, to RAM offset `offset`.
#[inline(always)]
pub(super) fn cost<T: Timing>(
    hart: &mut Hart,
    id: usize,
    bus: &mut Bus,
    timing: &mut T,
    va: u64,
    offset: u64,
    touch: Touch,
) -> u64 {
    let now = hart.clock;
    let mut cycles = 0;
    if hart.data_space.root.is_some() && timing.data_misses(id, va) {
        cycles += refill(hart, bus, timing, va, touch);
    }
    cycles + timing.data(id, now + cycles, offset + RAM_BASE, touch)
}

#[cold]
#[inline(never)]
fn refill<T: Timing>(hart: &mut Hart, bus: &mut Bus, timing: &mut T, va: u64, touch: Touch) -> u64 {
    let access = match touch {
        Touch::Read | Touch::Reserve => Access::Load,
        Touch::Write | Touch::WriteRun => Access::Store,
    };
    hart.walk_for_timing(&mut bus.ram, va, access)
        .map_or(0, |walk| timing.refill(hart.id, hart.clock, va, &walk, false))
}

fn raise(hart: &mut Hart, cause: u64, tval: u64) -> Stop {
    hart.exception = Exception { cause, tval };
    Stop::Exception
}

/// Physical address of a data access, after the checks that come before any effect.
fn physical(hart: &mut Hart, bus: &mut Bus, va: u64, bytes: u64, access: Access) -> Result<(u64, bool), Stop> {
    if !va.is_multiple_of(bytes) {
        let cause = if access == Access::Load { LOAD_MISALIGNED } else { STORE_MISALIGNED };
        return Err(raise(hart, cause, va));
    }
    match hart.translate(&mut bus.ram, va, bytes, access) {
        Ok(found) => Ok((found.physical, found.whole_page)),
        Err(exception) => {
            hart.exception = exception;
            Err(Stop::Exception)
        }
    }
}

/// Devices are accessed in order of simulated time: a hart that is ahead of another one first lets that one catch up.
fn in_order<T: Timing>(hart: &Hart, bus: &Bus, insn: &Insn) -> Result<u64, Stop> {
    let now = hart.clock + u64::from(insn.cost);
    if T::TIMED && insn.index > 1 && now > bus.order_limit {
        return Err(Stop::Again);
    }
    Ok(now)
}

/// A misaligned access that the hart does itself: offsets in RAM and lengths of its one or two pieces, each in one page.
///
/// Both are translated before anything is touched. Devices take no misaligned accesses: an access fault.
fn pieces(hart: &mut Hart, bus: &mut Bus, va: u64, bytes: u8, access: Access) -> Result<[(u64, u64, u64); 2], Stop> {
    let first = (PAGE_BYTES - va % PAGE_BYTES).min(bytes.into());
    let mut pieces = [(va, first, 0), (va.wrapping_add(first), u64::from(bytes) - first, 0)];
    for (at, length, offset) in pieces.iter_mut().filter(|(_, length, _)| *length > 0) {
        let found = hart.translate(&mut bus.ram, *at, *length, access).map_err(|exception| {
            hart.exception = exception;
            Stop::Exception
        })?;
        *offset = found.physical.wrapping_sub(RAM_BASE);
        if offset.checked_add(*length).is_none_or(|end| end > bus.ram.size()) {
            let cause = if access == Access::Load { LOAD_FAULT } else { STORE_FAULT };
            return Err(raise(hart, cause, *at));
        }
    }
    Ok(pieces)
}

/// A misaligned load from RAM.
fn load_misaligned<T: Timing>(hart: &mut Hart, bus: &mut Bus, timing: &mut T, va: u64, bytes: u8) -> Result<u64, Stop> {
    let (mut value, mut shift) = (0, 0);
    for (at, length, offset) in pieces(hart, bus, va, bytes, Access::Load)?.into_iter().filter(|piece| piece.1 > 0) {
        if T::TIMED {
            hart.clock += cost(hart, hart.id, bus, timing, at, offset, Touch::Read);
        }
        for byte in offset..offset + length {
            value |= u64::from(bus.ram.read::<1>(byte)[0]) << shift;
            shift += 8;
        }
    }
    Ok(value)
}

/// A misaligned store to RAM.
fn store_misaligned<T: Timing>(
    hart: &mut Hart,
    bus: &mut Bus,
    timing: &mut T,
    va: u64,
    bytes: u8,
    mut value: u64,
) -> Result<(), Stop> {
    for (at, length, offset) in pieces(hart, bus, va, bytes, Access::Store)?.into_iter().filter(|piece| piece.1 > 0) {
        if T::TIMED {
            hart.clock += cost(hart, hart.id, bus, timing, at, offset, Touch::Write);
        }
        for byte in offset..offset + length {
            bus.ram.note_store(byte, Some(hart.id));
            bus.ram.write(byte, [value as u8]);
            value >>= 8;
        }
    }
    Ok(())
}

/// A load that missed the TLB array.
#[cold]
#[inline(never)]
pub(super) fn load_slow<T: Timing>(
    hart: &mut Hart,
    bus: &mut Bus,
    timing: &mut T,
    insn: &Insn,
    va: u64,
    bytes: u8,
) -> Result<u64, Stop> {
    if hart.build.misaligned == Misaligned::Hardware && !va.is_multiple_of(bytes.into()) {
        return load_misaligned(hart, bus, timing, va, bytes);
    }
    let (at, whole_page) = physical(hart, bus, va, u64::from(bytes), Access::Load)?;
    let offset = at.wrapping_sub(RAM_BASE);
    if offset < bus.ram.size() {
        if whole_page {
            hart.tlb.load.fill(va, hart.data_context, offset);
        }
        if T::TIMED {
            hart.clock += cost(hart, hart.id, bus, timing, va, offset, Touch::Read);
        }
        return Ok(match bytes {
            1 => u64::from(bus.ram.read::<1>(offset)[0]),
            2 => u64::from(u16::from_le_bytes(bus.ram.read(offset))),
            4 => u64::from(u32::from_le_bytes(bus.ram.read(offset))),
            _ => u64::from_le_bytes(bus.ram.read(offset)),
        });
    }
    let now = in_order::<T>(hart, bus, insn)?;
    hart.statistics.device_accesses += 1;
    match bus.read(at, bytes, now) {
        Ok((value, path, latency)) => {
            if T::TIMED {
                hart.clock += timing.device_read(hart.id, now, path, latency, insn.ahead);
            }
            Ok(value)
        }
        Err(_) => Err(raise(hart, LOAD_FAULT, va)),
    }
}

/// A store that missed the TLB array.
#[cold]
#[inline(never)]
pub(super) fn store_slow<T: Timing>(
    hart: &mut Hart,
    bus: &mut Bus,
    timing: &mut T,
    insn: &Insn,
    va: u64,
    bytes: u8,
    value: u64,
) -> Result<(), Stop> {
    if hart.build.misaligned == Misaligned::Hardware && !va.is_multiple_of(bytes.into()) {
        return store_misaligned(hart, bus, timing, va, bytes, value);
    }
    let (at, whole_page) = physical(hart, bus, va, u64::from(bytes), Access::Store)?;
    let offset = at.wrapping_sub(RAM_BASE);
    if offset < bus.ram.size() {
        if T::TIMED {
            let touch = if insn.ahead.is_store() { Touch::WriteRun } else { Touch::Write };
            hart.clock += cost(hart, hart.id, bus, timing, va, offset, touch);
        }
        prepare_write(hart, bus, va, offset, whole_page);
        match bytes {
            1 => bus.ram.write(offset, (value as u8).to_le_bytes()),
            2 => bus.ram.write(offset, (value as u16).to_le_bytes()),
            4 => bus.ram.write(offset, (value as u32).to_le_bytes()),
            _ => bus.ram.write(offset, value.to_le_bytes()),
        }
        bus.check_to_host(offset, bytes, hart.clock + u64::from(insn.cost));
        return Ok(());
    }
    let now = in_order::<T>(hart, bus, insn)?;
    hart.statistics.device_accesses += 1;
    match bus.write(at, bytes, value, now) {
        Ok((path, latency)) => {
            if T::TIMED {
                hart.clock += timing.device_write(hart.id, now, path, latency);
            }
            Ok(())
        }
        Err(_) => Err(raise(hart, STORE_FAULT, va)),
    }
}

/// Bookkeeping before a slow write; the page enters the write TLB if nothing derived from it is held anywhere.
fn prepare_write(hart: &mut Hart, bus: &mut Bus, va: u64, offset: u64, whole_page: bool) {
    bus.ram.note_store(offset, Some(hart.id));
    if whole_page && !bus.ram.is_watched(offset) && !bus.is_to_host_page(offset) {
        bus.ram.mark_write_cached(offset);
        hart.tlb.store.fill(va, hart.data_context, offset);
    }
}

/// RAM offset for an atomic on the address in rs1; atomics on devices are refused with `fault`.
fn atomic_target<T: Timing, const BYTES: u64>(
    hart: &mut Hart,
    bus: &mut Bus,
    timing: &mut T,
    insn: &Insn,
    access: Access,
) -> Result<u64, Stop> {
    let va = hart.x[insn.rs1 as usize];
    let load = access == Access::Load;
    let array = if load { &hart.tlb.load } else { &hart.tlb.store };
    let (offset, fast) = match array.hit::<BYTES>(va, hart.data_context) {
        Some(offset) => (offset, true),
        None => {
            let (at, whole_page) = physical(hart, bus, va, BYTES, access)?;
            let offset = at.wrapping_sub(RAM_BASE);
            if offset >= bus.ram.size() {
                return Err(raise(hart, if load { LOAD_FAULT } else { STORE_FAULT }, va));
            }
            if load && whole_page {
                hart.tlb.load.fill(va, hart.data_context, offset);
            } else if !load {
                prepare_write(hart, bus, va, offset, whole_page);
            }
            (offset, false)
        }
    };
    if T::TIMED {
        hart.clock += cost(hart, hart.id, bus, timing, va, offset, if load { Touch::Reserve } else { Touch::Write });
    }
    if fast && !load && bus.ram.reserved() != 0 {
        bus.ram.break_reservations(offset, Some(hart.id));
    }
    Ok(offset)
}

/// A read-modify-write; gives the old value, zero-extended.
#[inline]
pub(super) fn amo<T: Timing, const BYTES: u64>(
    hart: &mut Hart,
    bus: &mut Bus,
    timing: &mut T,
    insn: &Insn,
    f: impl Fn(u64, u64) -> u64,
) -> Result<u64, Stop> {
    let offset = atomic_target::<T, BYTES>(hart, bus, timing, insn, Access::Store)?;
    let operand = hart.x[insn.rs2 as usize];
    let old = if BYTES == 4 {
        let old = u64::from(u32::from_le_bytes(bus.ram.read(offset)));
        bus.ram.write(offset, (f(old, operand) as u32).to_le_bytes());
        old
    } else {
        let old = u64::from_le_bytes(bus.ram.read(offset));
        bus.ram.write(offset, f(old, operand).to_le_bytes());
        old
    };
    Ok(old)
}

/// `lr`.
pub(super) fn load_reserved<T: Timing, const BYTES: u64>(
    hart: &mut Hart,
    bus: &mut Bus,
    timing: &mut T,
    insn: &Insn,
) -> Result<u64, Stop> {
    let offset = atomic_target::<T, BYTES>(hart, bus, timing, insn, Access::Load)?;
    bus.ram.reserve(hart.id, offset);
    Ok(if BYTES == 4 {
        u64::from(u32::from_le_bytes(bus.ram.read(offset)))
    } else {
        u64::from_le_bytes(bus.ram.read(offset))
    })
}

/// `sc`: true if it stored.
pub(super) fn store_conditional<T: Timing, const BYTES: u64>(
    hart: &mut Hart,
    bus: &mut Bus,
    timing: &mut T,
    insn: &Insn,
) -> Result<bool, Stop> {
    let va = hart.x[insn.rs1 as usize];
    let (at, _) = physical(hart, bus, va, BYTES, Access::Store)?;
    let offset = at.wrapping_sub(RAM_BASE);
    if offset >= bus.ram.size() {
        return Err(raise(hart, STORE_FAULT, va));
    }
    if !bus.ram.take_reservation(hart.id, offset) {
        return Ok(false);
    }
    let offset = atomic_target::<T, BYTES>(hart, bus, timing, insn, Access::Store)?;
    let value = hart.x[insn.rs2 as usize];
    if BYTES == 4 {
        bus.ram.write(offset, (value as u32).to_le_bytes());
    } else {
        bus.ram.write(offset, value.to_le_bytes());
    }
    Ok(true)
}
