//! Execution of one block: one large match over decoded instructions.
//!
//! Fast paths are here (registers, RAM through the functional TLB); everything rare is in [`access`] (memory slow paths),
//! [`float`] (F and D) and [`system`] (CSRs, traps, user interrupts). The block's own static cost is added when it ends, so inside it the time
//! of an instruction is `hart.clock` plus the instruction's `cost`.

mod access;
mod float;
mod system;

use super::insn::Insn;
use super::{Exception, Hart};
use crate::bus::Bus;
use crate::hart::insn::Op;
use crate::timing::{Indirect, Timing, Touch, wait_for};
use access::amo;

/// How a block ended. `hart.pc`, `clock` and `instructions` are up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Into the next instruction.
    Next,
    /// Through a direct jump or a taken branch.
    Taken,
    /// Through `jalr`.
    Indirect,
    /// After an instruction that may have changed privilege, translation or interrupts.
    System,
    /// After a CSR access that has changed none of them.
    Plain,
    /// `hart.exception` is to be taken at `hart.pc`.
    Exception,
    /// A device access must wait until this hart is the one furthest behind.
    Again,
}

/// Why a slow path did not complete its instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// `hart.exception` is set.
    Exception,
    /// As [`Flow::Again`].
    Again,
}

const SIGN_W: fn(u64) -> u64 = |value| value as i32 as u64;

/// Runs `insns`, which start at the pc of `hart`, number `id`.
#[inline(always)]
pub(crate) fn execute<T: Timing>(hart: &mut Hart, id: usize, bus: &mut Bus, timing: &mut T, insns: &[Insn]) -> Flow {
    let pc = hart.pc;
    'insns: for insn in insns {
        macro_rules! rs1 {
            () => {
                hart.x[insn.rs1 as usize]
            };
        }
        macro_rules! rs2 {
            () => {
                hart.x[insn.rs2 as usize]
            };
        }
        macro_rules! imm {
            () => {
                insn.imm as i64 as u64
            };
        }
        macro_rules! set {
            ($value:expr) => {{
                let value = $value;
                hart.x[insn.rd as usize] = value;
            }};
        }
        macro_rules! here {
            () => {
                pc.wrapping_add(u64::from(insn.offset))
            };
        }
        // Ends the block behind this instruction.
        macro_rules! finish {
            ($target:expr, $flow:expr) => {{
                hart.pc = $target;
                hart.clock += u64::from(insn.cost);
                hart.instructions += u64::from(insn.index);
                return $flow;
            }};
        }
        // Ends the block before this instruction.
        macro_rules! stop {
            ($stop:expr) => {{
                hart.pc = here!();
                hart.instructions += u64::from(insn.index) - 1;
                match $stop {
                    Stop::Exception => {
                        hart.clock += u64::from(insn.cost);
                        return Flow::Exception;
                    }
                    Stop::Again => {
                        hart.clock += u64::from(insn.cost) - 1;
                        return Flow::Again;
                    }
                }
            }};
        }
        macro_rules! extra {
            ($cycles:expr) => {
                if T::TIMED {
                    let cycles = $cycles;
                    hart.clock += cycles;
                }
            };
        }
        // A result that takes so many cycles to its first use.
        macro_rules! late {
            ($latency:expr) => {
                extra!(wait_for($latency, insn.ahead))
            };
        }
        // In timed mode all conditional branches meet behind the match, where the predictor is asked.
        macro_rules! branch {
            ($label:lifetime, $condition:expr) => {{
                let taken = $condition;
                if T::TIMED {
                    break $label taken;
                }
                if taken {
                    finish!(here!().wrapping_add(imm!()), Flow::Taken)
                }
                finish!(here!().wrapping_add(u64::from(insn.len)), Flow::Next)
            }};
        }
        macro_rules! load {
            ($type:ty, $bytes:literal, $extend:expr) => {{
                let va = rs1!().wrapping_add(imm!());
                if let Some(offset) = hart.tlb.load.hit::<$bytes>(va, hart.data_context) {
                    if T::TIMED {
                        hart.clock += access::cost(hart, id, bus, timing, va, offset, Touch::Read);
                    }
                    let value = <$type>::from_le_bytes(bus.ram.read(offset));
                    set!($extend(value));
                } else {
                    match access::load_slow(hart, bus, timing, insn, va, $bytes) {
                        Ok(value) => set!($extend(value as $type)),
                        Err(stop) => stop!(stop),
                    }
                    if bus.attention() {
                        finish!(here!().wrapping_add(u64::from(insn.len)), Flow::System);
                    }
                }
            }};
        }
        macro_rules! store {
            ($type:ty, $bytes:literal) => {{
                let va = rs1!().wrapping_add(imm!());
                let value = rs2!() as $type;
                if let Some(offset) = hart.tlb.store.hit::<$bytes>(va, hart.data_context) {
                    if T::TIMED {
                        let touch = if insn.ahead.is_store() { Touch::WriteRun } else { Touch::Write };
                        hart.clock += access::cost(hart, id, bus, timing, va, offset, touch);
                    }
                    bus.ram.write(offset, value.to_le_bytes());
                    if bus.ram.reserved() != 0 {
                        bus.ram.break_reservations(offset, Some(hart.id));
                    }
                } else {
                    if let Err(stop) = access::store_slow(hart, bus, timing, insn, va, $bytes, u64::from(value)) {
                        stop!(stop);
                    }
                    if bus.attention() {
                        finish!(here!().wrapping_add(u64::from(insn.len)), Flow::System);
                    }
                }
            }};
        }
        macro_rules! try_system {
            ($result:expr) => {{
                if let Err(stop) = $result {
                    stop!(stop);
                }
            }};
        }
        // Atomics: `$old` names the old value inside the closure-like body.
        macro_rules! amo {
            ($bytes:literal, $type:ty, $function:expr) => {{
                let f: fn($type, $type) -> $type = $function;
                match amo::<T, $bytes>(hart, bus, timing, insn, |old, new| f(old as $type, new as $type) as u64) {
                    Ok(old) => set!(if $bytes == 4 { SIGN_W(old) } else { old }),
                    Err(stop) => stop!(stop),
                }
                if bus.attention() {
                    finish!(here!().wrapping_add(u64::from(insn.len)), Flow::System);
                }
            }};
        }

        let taken = 'branch: {
            match insn.op {
                Op::Nop => {}
                Op::Li => set!(imm!()),
                Op::Mv => set!(rs1!()),
                Op::Auipc => set!(here!().wrapping_add(imm!())),
                Op::Addi => set!(rs1!().wrapping_add(imm!())),
                Op::Slti => set!(u64::from((rs1!() as i64) < insn.imm as i64)),
                Op::Sltiu => set!(u64::from(rs1!() < imm!())),
                Op::Xori => set!(rs1!() ^ imm!()),
                Op::Ori => set!(rs1!() | imm!()),
                Op::Andi => set!(rs1!() & imm!()),
                Op::Slli => set!(rs1!() << (insn.imm & 63)),
                Op::Srli => set!(rs1!() >> (insn.imm & 63)),
                Op::Srai => set!((rs1!() as i64 >> (insn.imm & 63)) as u64),
                Op::Addiw => set!(SIGN_W(rs1!().wrapping_add(imm!()))),
                Op::Slliw => set!(SIGN_W(rs1!() << (insn.imm & 31))),
                Op::Srliw => set!(SIGN_W(u64::from(rs1!() as u32 >> (insn.imm & 31)))),
                Op::Sraiw => set!((rs1!() as i32 >> (insn.imm & 31)) as u64),

                Op::Add => set!(rs1!().wrapping_add(rs2!())),
                Op::Sub => set!(rs1!().wrapping_sub(rs2!())),
                Op::Sll => set!(rs1!() << (rs2!() & 63)),
                Op::Slt => set!(u64::from((rs1!() as i64) < rs2!() as i64)),
                Op::Sltu => set!(u64::from(rs1!() < rs2!())),
                Op::Xor => set!(rs1!() ^ rs2!()),
                Op::Srl => set!(rs1!() >> (rs2!() & 63)),
                Op::Sra => set!((rs1!() as i64 >> (rs2!() & 63)) as u64),
                Op::Or => set!(rs1!() | rs2!()),
                Op::And => set!(rs1!() & rs2!()),
                Op::Addw => set!(SIGN_W(rs1!().wrapping_add(rs2!()))),
                Op::Subw => set!(SIGN_W(rs1!().wrapping_sub(rs2!()))),
                Op::Sllw => set!(SIGN_W(rs1!() << (rs2!() & 31))),
                Op::Srlw => set!(SIGN_W(u64::from(rs1!() as u32 >> (rs2!() & 31)))),
                Op::Sraw => set!((rs1!() as i32 >> (rs2!() & 31)) as u64),

                Op::Mul => {
                    late!(timing.mul(rs1!(), false, false));
                    set!(rs1!().wrapping_mul(rs2!()));
                }
                Op::Mulh => {
                    late!(timing.mul(rs1!(), true, false));
                    set!(((i128::from(rs1!() as i64) * i128::from(rs2!() as i64)) >> 64) as u64);
                }
                Op::Mulhsu => {
                    late!(timing.mul(rs1!(), true, false));
                    set!((i128::from(rs1!() as i64).wrapping_mul(rs2!() as i128) >> 64) as u64);
                }
                Op::Mulhu => {
                    late!(timing.mul(rs1!(), true, false));
                    set!(((u128::from(rs1!()) * u128::from(rs2!())) >> 64) as u64);
                }
                Op::Div => {
                    let (a, b) = (rs1!() as i64, rs2!() as i64);
                    late!(timing.div(a as u64, b as u64, true, false));
                    set!(if b == 0 { u64::MAX } else { a.wrapping_div(b) as u64 });
                }
                Op::Divu => {
                    let (a, b) = (rs1!(), rs2!());
                    late!(timing.div(a, b, false, false));
                    set!(a.checked_div(b).unwrap_or(u64::MAX));
                }
                Op::Rem => {
                    let (a, b) = (rs1!() as i64, rs2!() as i64);
                    late!(timing.div(a as u64, b as u64, true, true));
                    set!(if b == 0 { a as u64 } else { a.wrapping_rem(b) as u64 });
                }
                Op::Remu => {
                    let (a, b) = (rs1!(), rs2!());
                    late!(timing.div(a, b, false, true));
                    set!(a.checked_rem(b).unwrap_or(a));
                }
                Op::Mulw => {
                    late!(timing.mul(rs1!(), false, true));
                    set!(SIGN_W(rs1!().wrapping_mul(rs2!())));
                }
                Op::Divw => {
                    let (a, b) = (rs1!() as i32, rs2!() as i32);
                    late!(timing.div(a as u64, b as u64, true, false));
                    set!(if b == 0 { u64::MAX } else { a.wrapping_div(b) as u64 });
                }
                Op::Divuw => {
                    let (a, b) = (rs1!() as u32, rs2!() as u32);
                    late!(timing.div(u64::from(a), u64::from(b), false, false));
                    set!(SIGN_W(u64::from(a.checked_div(b).unwrap_or(u32::MAX))));
                }
                Op::Remw => {
                    let (a, b) = (rs1!() as i32, rs2!() as i32);
                    late!(timing.div(a as u64, b as u64, true, true));
                    set!(if b == 0 { a as u64 } else { a.wrapping_rem(b) as u64 });
                }
                Op::Remuw => {
                    let (a, b) = (rs1!() as u32, rs2!() as u32);
                    late!(timing.div(u64::from(a), u64::from(b), false, true));
                    set!(SIGN_W(u64::from(a.checked_rem(b).unwrap_or(a))));
                }

                Op::Lb => load!(u8, 1, |value: u8| value as i8 as u64),
                Op::Lh => load!(u16, 2, |value: u16| value as i16 as u64),
                Op::Lw => load!(u32, 4, |value: u32| value as i32 as u64),
                Op::Ld => load!(u64, 8, |value: u64| value),
                Op::Lbu => load!(u8, 1, u64::from),
                Op::Lhu => load!(u16, 2, u64::from),
                Op::Lwu => load!(u32, 4, u64::from),
                Op::Sb => store!(u8, 1),
                Op::Sh => store!(u16, 2),
                Op::Sw => store!(u32, 4),
                Op::Sd => store!(u64, 8),

                Op::Flw | Op::Fld | Op::Fsw | Op::Fsd => {
                    try_system!(float::access(hart, bus, timing, insn, here!()));
                    if bus.attention() {
                        finish!(here!().wrapping_add(u64::from(insn.len)), Flow::System);
                    }
                }
                Op::Float => try_system!(float::calculate(hart, insn)),

                Op::LrW => match access::load_reserved::<T, 4>(hart, bus, timing, insn) {
                    Ok(value) => set!(SIGN_W(value)),
                    Err(stop) => stop!(stop),
                },
                Op::LrD => match access::load_reserved::<T, 8>(hart, bus, timing, insn) {
                    Ok(value) => set!(value),
                    Err(stop) => stop!(stop),
                },
                Op::ScW | Op::ScD => {
                    let result = if insn.op == Op::ScW {
                        access::store_conditional::<T, 4>(hart, bus, timing, insn)
                    } else {
                        access::store_conditional::<T, 8>(hart, bus, timing, insn)
                    };
                    match result {
                        Ok(stored) => {
                            set!(u64::from(!stored));
                            // In timed mode harts are ordered at every block anyway.
                            hart.yields |= !stored && !T::TIMED;
                        }
                        Err(stop) => stop!(stop),
                    }
                    if bus.attention() || hart.yields {
                        finish!(here!().wrapping_add(u64::from(insn.len)), Flow::System);
                    }
                }
                Op::AmoswapW => amo!(4, u32, |_, new| new),
                Op::AmoaddW => amo!(4, u32, u32::wrapping_add),
                Op::AmoxorW => amo!(4, u32, |old, new| old ^ new),
                Op::AmoandW => amo!(4, u32, |old, new| old & new),
                Op::AmoorW => amo!(4, u32, |old, new| old | new),
                Op::AmominW => amo!(4, i32, Ord::min),
                Op::AmomaxW => amo!(4, i32, Ord::max),
                Op::AmominuW => amo!(4, u32, Ord::min),
                Op::AmomaxuW => amo!(4, u32, Ord::max),
                Op::AmoswapD => amo!(8, u64, |_, new| new),
                Op::AmoaddD => amo!(8, u64, u64::wrapping_add),
                Op::AmoxorD => amo!(8, u64, |old, new| old ^ new),
                Op::AmoandD => amo!(8, u64, |old, new| old & new),
                Op::AmoorD => amo!(8, u64, |old, new| old | new),
                Op::AmominD => amo!(8, i64, Ord::min),
                Op::AmomaxD => amo!(8, i64, Ord::max),
                Op::AmominuD => amo!(8, u64, Ord::min),
                Op::AmomaxuD => amo!(8, u64, Ord::max),

                Op::Fence => extra!(timing.fence(hart.id, hart.clock + u64::from(insn.cost))),
                Op::Pause => {
                    hart.yields = true;
                    finish!(here!().wrapping_add(4), Flow::System);
                }
                Op::FenceI => {
                    extra!(timing.fence_i(hart.id));
                    finish!(here!().wrapping_add(4), Flow::System);
                }

                Op::Jal => {
                    let target = here!().wrapping_add(imm!());
                    let link = here!().wrapping_add(u64::from(insn.len));
                    extra!(timing.jump(id, here!(), target, matches!(insn.rd, 1 | 5).then_some(link)));
                    set!(link);
                    finish!(target, Flow::Taken);
                }
                Op::Jalr => {
                    let target = rs1!().wrapping_add(imm!()) & !1;
                    let link = here!().wrapping_add(u64::from(insn.len));
                    if T::TIMED {
                        let kind = match (insn.rd, insn.rs1) {
                            (1 | 5, _) => Indirect::Call,
                            (_, 1 | 5) => Indirect::Return,
                            _ => Indirect::Jump,
                        };
                        hart.clock += timing.indirect(id, here!(), target, kind, link, insn.index == 1);
                    }
                    set!(link);
                    finish!(target, Flow::Indirect);
                }
                Op::Beq => branch!('branch, rs1!() == rs2!()),
                Op::Bne => branch!('branch, rs1!() != rs2!()),
                Op::Blt => branch!('branch, (rs1!() as i64) < rs2!() as i64),
                Op::Bge => branch!('branch, rs1!() as i64 >= rs2!() as i64),
                Op::Bltu => branch!('branch, rs1!() < rs2!()),
                Op::Bgeu => branch!('branch, rs1!() >= rs2!()),

                Op::Csr => {
                    let plain = match system::csr(hart, bus, timing, insn) {
                        Ok(plain) => plain,
                        Err(stop) => stop!(stop),
                    };
                    finish!(here!().wrapping_add(4), if plain { Flow::Plain } else { Flow::System });
                }
                Op::Ecall => {
                    hart.exception = Exception { cause: 8 + hart.privilege as u64, tval: 0 };
                    stop!(Stop::Exception);
                }
                Op::Ebreak => {
                    hart.exception = Exception { cause: 3, tval: here!() };
                    stop!(Stop::Exception);
                }
                Op::Uret | Op::Sret | Op::Mret => {
                    try_system!(system::trap_return(hart, bus, timing, insn));
                    let target = hart.pc;
                    finish!(target, Flow::System);
                }
                Op::Wfi => {
                    try_system!(system::wait(hart, bus, insn));
                    finish!(here!().wrapping_add(4), Flow::System);
                }
                Op::SfenceVma => {
                    try_system!(system::fence_translation(hart, timing, insn));
                    finish!(here!().wrapping_add(4), Flow::System);
                }
                Op::UipiSend | Op::UipiRead | Op::UipiWrite | Op::UipiActivate | Op::UipiDeactivate => {
                    try_system!(system::user_interrupt(hart, bus, timing, insn));
                    finish!(here!().wrapping_add(4), Flow::System);
                }
                Op::Illegal => {
                    hart.exception = system::illegal(insn);
                    stop!(Stop::Exception);
                }
                Op::End => finish!(here!(), Flow::Next),
            }
            continue 'insns;
        };
        let target = here!().wrapping_add(imm!());
        extra!(timing.branch(id, here!(), target, taken));
        if taken {
            finish!(target, Flow::Taken)
        } else {
            finish!(here!().wrapping_add(u64::from(insn.len)), Flow::Next)
        }
    }
    // Every block ends in one of the operations that return above.
    Flow::Next
}
