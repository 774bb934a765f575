//! The instructions of F and D: loads and stores, and arithmetic over [`crate::hart::float`].

use super::{Stop, access as memory, system};
use crate::bus::Bus;
use crate::hart::float::instruction::{File, destination, format, function, is_fused, operands, rm};
use crate::hart::float::{self, DOUBLE, Format, Integer, Order, Rounding, SINGLE};
use crate::hart::insn::{Insn, Op};
use crate::hart::{Exception, Hart};
use crate::timing::{Timing, Touch};

/// `flw fld fsw fsd` at `pc`.
#[inline(never)]
pub(super) fn access<T: Timing>(
    hart: &mut Hart,
    bus: &mut Bus,
    timing: &mut T,
    insn: &Insn,
    pc: u64,
) -> Result<(), Stop> {
    if !hart.csrs.has_float() {
        return Err(off(hart, bus, insn, pc));
    }
    let va = hart.x[insn.rs1 as usize].wrapping_add(insn.imm as i64 as u64);
    match insn.op {
        Op::Flw => {
            let value = load::<T, 4>(hart, bus, timing, insn, va)?;
            set(hart, insn.rd, float::boxed(value));
        }
        Op::Fld => {
            let value = load::<T, 8>(hart, bus, timing, insn, va)?;
            set(hart, insn.rd, value);
        }
        // A store takes the lower half as it is, boxed or not.
        Op::Fsw => store::<T, 4>(hart, bus, timing, insn, va)?,
        _ => store::<T, 8>(hart, bus, timing, insn, va)?,
    }
    Ok(())
}

#[inline(always)]
fn load<T: Timing, const BYTES: usize>(
    hart: &mut Hart,
    bus: &mut Bus,
    timing: &mut T,
    insn: &Insn,
    va: u64,
) -> Result<u64, Stop> {
    let hit = if BYTES == 4 {
        hart.tlb.load.hit::<4>(va, hart.data_context)
    } else {
        hart.tlb.load.hit::<8>(va, hart.data_context)
    };
    let Some(offset) = hit else {
        return memory::load_slow(hart, bus, timing, insn, va, BYTES as u8);
    };
    if T::TIMED {
        hart.clock += memory::cost(hart, hart.id, bus, timing, va, offset, Touch::Read);
    }
    Ok(if BYTES == 4 {
        u64::from(u32::from_le_bytes(bus.ram.read(offset)))
    } else {
        u64::from_le_bytes(bus.ram.read(offset))
    })
}

#[inline(always)]
fn store<T: Timing, const BYTES: usize>(
    hart: &mut Hart,
    bus: &mut Bus,
    timing: &mut T,
    insn: &Insn,
    va: u64,
) -> Result<(), Stop> {
    let value = hart.f[usize::from(insn.rs2)];
    let hit = if BYTES == 4 {
        hart.tlb.store.hit::<4>(va, hart.data_context)
    } else {
        hart.tlb.store.hit::<8>(va, hart.data_context)
    };
    let Some(offset) = hit else {
        return memory::store_slow(hart, bus, timing, insn, va, BYTES as u8, value);
    };
    if T::TIMED {
        hart.clock += memory::cost(hart, hart.id, bus, timing, va, offset, Touch::Write);
    }
    if BYTES == 4 {
        bus.ram.write(offset, (value as u32).to_le_bytes());
    } else {
        bus.ram.write(offset, value.to_le_bytes());
    }
    if bus.ram.reserved() != 0 {
        bus.ram.break_reservations(offset, Some(hart.id));
    }
    Ok(())
}

fn set(hart: &mut Hart, register: u8, value: u64) {
    hart.f[usize::from(register & 31)] = value;
    hart.csrs.float_written();
}

/// The illegal-instruction exception of a load or store, whose decoded form does not hold the instruction.
#[cold]
fn off(hart: &mut Hart, bus: &mut Bus, insn: &Insn, pc: u64) -> Stop {
    let mut raw = 0;
    for at in (0..u64::from(insn.len)).step_by(2) {
        // Its block was fetched from there, so this cannot fail; if it did, this fault would be the one to report.
        match hart.translate_fetch(&mut bus.ram, pc.wrapping_add(at)) {
            Ok(offset) => raw |= u32::from(u16::from_le_bytes(bus.ram.read(offset))) << (8 * at),
            Err(exception) => {
                hart.exception = exception;
                return Stop::Exception;
            }
        }
    }
    hart.exception = Exception { tval: raw.into(), ..system::illegal(insn) };
    Stop::Exception
}

/// Everything that decodes to [`Op::Float`].
#[inline(never)]
pub(super) fn calculate(hart: &mut Hart, insn: &Insn) -> Result<(), Stop> {
    let raw = insn.imm as u32;
    // A function selector in the place of the rounding mode is a valid mode, too.
    let mode = Rounding::of(if rm(raw) == 7 { hart.csrs.frm } else { rm(raw) });
    let (Some(format), Some(mode), true) = (format(raw), mode, hart.csrs.has_float()) else {
        hart.exception = system::illegal(insn);
        return Err(Stop::Exception);
    };
    let source = operands(raw).map(|operand| match operand {
        Some((File::Integer, register)) => hart.x[usize::from(register)],
        Some((File::Float, register)) => hart.f[usize::from(register)],
        None => 0,
    });
    let mut flags = 0;
    let result = if is_fused(raw) {
        fused(format, raw, source, mode, &mut flags)
    } else {
        evaluate(format, raw, source, mode, &mut flags)
    };
    if destination(raw) == File::Integer {
        hart.x[usize::from(insn.rd)] = result;
    } else {
        set(hart, insn.rd, if format == SINGLE { float::boxed(result) } else { result });
    }
    if flags != 0 {
        hart.csrs.fflags |= flags;
        hart.csrs.float_written();
    }
    Ok(())
}

/// A register as an operand of `format`.
fn value(format: Format, register: u64) -> u64 {
    if format == SINGLE { float::unboxed(register) } else { register }
}

fn fused(format: Format, raw: u32, source: [u64; 3], mode: Rounding, flags: &mut u8) -> u64 {
    let [a, b, c] = source.map(|register| value(format, register));
    let sign = format.sign_bit();
    // fmadd, fmsub, fnmsub, fnmadd: the negations are of operands, so that NaNs and rounding come out right.
    let (a, c) = match raw >> 2 & 3 {
        0 => (a, c),
        1 => (a, c ^ sign),
        2 => (a ^ sign, c),
        _ => (a ^ sign, c ^ sign),
    };
    float::multiply_add(format, a, b, c, mode, flags)
}

fn evaluate(format: Format, raw: u32, source: [u64; 3], mode: Rounding, flags: &mut u8) -> u64 {
    let (a, b) = (value(format, source[0]), value(format, source[1]));
    let sign = format.sign_bit();
    let selector = rm(raw);
    let integer = Integer::of((raw >> 20 & 3) as u8);
    match raw >> 27 {
        function::ADD => float::add(format, a, b, mode, flags),
        function::SUBTRACT => float::add(format, a, b ^ sign, mode, flags),
        function::MULTIPLY => float::multiply(format, a, b, mode, flags),
        function::DIVIDE => float::divide(format, a, b, mode, flags),
        function::SQUARE_ROOT => float::square_root(format, a, mode, flags),
        function::INJECT_SIGN => {
            let injected = match selector {
                0 => b,
                1 => !b,
                _ => a ^ b,
            };
            a & !sign | injected & sign
        }
        function::MINIMUM_MAXIMUM if selector == 0 => float::minimum(format, a, b, flags),
        function::MINIMUM_MAXIMUM => float::maximum(format, a, b, flags),
        function::CONVERT_FORMAT => {
            let from = if format == SINGLE { DOUBLE } else { SINGLE };
            float::convert(from, format, value(from, source[0]), mode, flags)
        }
        function::COMPARE => {
            let order = match selector {
                0 => Order::LessOrEqual,
                1 => Order::Less,
                _ => Order::Equal,
            };
            float::compare(format, a, b, order, flags).into()
        }
        function::TO_INTEGER => float::to_integer(format, a, integer, mode, flags),
        function::FROM_INTEGER => float::from_integer(format, source[0], integer, mode, flags),
        function::MOVE_TO_INTEGER_OR_CLASSIFY if selector == 1 => float::classify(format, a),
        // Moves take the bits as they are, boxed or not.
        function::MOVE_TO_INTEGER_OR_CLASSIFY if format == SINGLE => source[0] as i32 as u64,
        function::MOVE_FROM_INTEGER if format == SINGLE => source[0] & 0xFFFF_FFFF,
        _ => source[0],
    }
}
