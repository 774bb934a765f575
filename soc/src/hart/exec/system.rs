//! CSR accesses, trap returns, `wfi`, `sfence.vma` and the user-interrupt instructions.

use super::Stop;
use crate::board::RAM_BASE;
use crate::bus::Bus;
use crate::devices::uintc::RECEIVERS;
use crate::hart::csr::{ENABLE, status};
use crate::hart::insn::{Insn, Op};
use crate::hart::pmp::Access;
use crate::hart::{Exception, Hart};
use crate::outcome::Privilege;
use crate::timing::{Timing, Touch};

const ILLEGAL: u64 = 2;

/// Illegal-instruction exception; `tval` is the instruction.
pub(super) fn illegal(insn: &Insn) -> Exception {
    Exception { cause: ILLEGAL, tval: u64::from(insn.imm as u32) }
}

fn refuse(hart: &mut Hart, insn: &Insn) -> Stop {
    hart.exception = illegal(insn);
    Stop::Exception
}

/// `csrrw` and its relatives. True if nothing but registers has changed: privilege, translation and interrupts are as before.
pub(super) fn csr<T: Timing>(hart: &mut Hart, bus: &mut Bus, timing: &mut T, insn: &Insn) -> Result<bool, Stop> {
    let raw = insn.imm as u32;
    let (number, funct3) = (raw >> 20, raw >> 12 & 7);
    let operand = if funct3 & 4 != 0 { u64::from(insn.rs1) } else { hart.x[insn.rs1 as usize] };
    let writes = funct3 & 3 == 1 || insn.rs1 != 0;
    let modified = |base: u64| match funct3 & 3 {
        1 => operand,
        2 => base | operand,
        _ => base & !operand,
    };
    if hart.privilege as u32 >= number >> 8 & 3
        && let Some((register, writable)) = hart.csrs.trap_register(number)
    {
        let old = *register;
        if writes {
            *register = modified(old) & writable;
            if T::TIMED {
                hart.clock += timing.csr_write(number);
            }
        }
        hart.x[insn.rd as usize] = old;
        return Ok(true);
    }
    other_csr(hart, bus, timing, insn, writes, modified)
}

/// [`csr`] for registers that others depend on, or that are no plain storage.
#[inline(never)]
fn other_csr<T: Timing>(
    hart: &mut Hart,
    bus: &mut Bus,
    timing: &mut T,
    insn: &Insn,
    writes: bool,
    modified: impl Fn(u64) -> u64,
) -> Result<bool, Stop> {
    /// What contexts depend on.
    const CONTEXT: u64 = status::MPRV | status::MPP | status::SUM | status::MXR;
    let number = insn.imm as u32 >> 20;
    let around = hart.surroundings(
        bus.lines.of(hart.id),
        hart.clock + u64::from(insn.cost),
        hart.instructions + u64::from(insn.index) - 1,
    );
    let Some(old) = hart.csrs.read(number, hart.privilege, writes, &around) else {
        return Err(refuse(hart, insn));
    };
    if writes {
        let new = modified(hart.csrs.modify_base(number, old));
        let mstatus = hart.csrs.mstatus;
        hart.csrs.write(number, new, &around);
        match number {
            0x100 | 0x300 if (mstatus ^ hart.csrs.mstatus) & CONTEXT == 0 => {}
            0x100 | 0x180 | 0x300 => hart.update_contexts(),
            0x3A0..=0x3BF => hart.pmp_changed(),
            0x14D | 0x30A => bus.set_supervisor_timer(hart.id, hart.csrs.supervisor_compare(), around.cycles),
            _ => {}
        }
        if T::TIMED {
            hart.clock += timing.csr_write(number);
        }
    }
    hart.x[insn.rd as usize] = old;
    Ok(!writes)
}

/// `uret sret mret`.
pub(super) fn trap_return<T: Timing>(hart: &mut Hart, bus: &mut Bus, timing: &mut T, insn: &Insn) -> Result<(), Stop> {
    let legal = match insn.op {
        Op::Uret => hart.privilege == Privilege::U && hart.csrs.isa.has_user_interrupts(),
        Op::Sret => match hart.privilege {
            Privilege::U => false,
            Privilege::S => hart.csrs.mstatus & status::TSR == 0,
            Privilege::M => true,
        },
        _ => hart.privilege == Privilege::M,
    };
    if !legal {
        return Err(refuse(hart, insn));
    }
    match insn.op {
        Op::Uret => hart.return_from_user(&mut bus.ram),
        Op::Sret => hart.return_from_supervisor(&mut bus.ram),
        _ => hart.return_from_machine(&mut bus.ram),
    }
    if T::TIMED {
        hart.clock += timing.trap_return(hart.id);
    }
    Ok(())
}

/// `wfi`: illegal in U, and in S with `mstatus.TW`.
pub(super) fn wait(hart: &mut Hart, bus: &Bus, insn: &Insn) -> Result<(), Stop> {
    let legal = match hart.privilege {
        Privilege::U => false,
        Privilege::S => hart.csrs.mstatus & status::TW == 0,
        Privilege::M => true,
    };
    if !legal {
        return Err(refuse(hart, insn));
    }
    hart.yields = true;
    hart.waiting = !hart.wakes(bus.lines.of(hart.id));
    Ok(())
}

/// `sfence.vma`. The functional TLB is coherent with the page tables, so only the timing model has something to forget.
pub(super) fn fence_translation<T: Timing>(hart: &mut Hart, timing: &mut T, insn: &Insn) -> Result<(), Stop> {
    let legal = match hart.privilege {
        Privilege::U => false,
        Privilege::S => hart.csrs.mstatus & status::TVM == 0,
        Privilege::M => true,
    };
    if !legal {
        return Err(refuse(hart, insn));
    }
    if T::TIMED {
        let va = (insn.rs1 != 0).then_some(hart.x[insn.rs1 as usize]);
        hart.clock += timing.sfence(hart.id, va, insn.rs2 != 0);
    }
    Ok(())
}

/// The five `uipi` instructions; on a hart that has them they never trap, whatever their operands.
pub(super) fn user_interrupt<T: Timing>(
    hart: &mut Hart,
    bus: &mut Bus,
    timing: &mut T,
    insn: &Insn,
) -> Result<(), Stop> {
    if !hart.csrs.isa.has_user_interrupts() {
        return Err(refuse(hart, insn));
    }
    let now = hart.clock + u64::from(insn.cost);
    let operand = hart.x[insn.rs1 as usize];
    if insn.op == Op::UipiSend {
        if let Some((receiver, vector)) = sender_entry(hart, bus, timing, operand) {
            hart.statistics.uipi_sent += 1;
            hart.uipi_sent_to = receiver as u64;
            bus.uintc_act(|uintc| uintc.post(receiver, 1 << vector));
            if T::TIMED {
                hart.clock += timing.uipi(hart.id, now, false);
            }
        }
        return Ok(());
    }
    let receiver = (hart.csrs.suirs & 0xFFFF) as usize;
    if hart.csrs.suirs & ENABLE == 0 || receiver >= RECEIVERS {
        hart.x[insn.rd as usize] = 0;
        return Ok(());
    }
    let mut read = 0;
    bus.uintc_act(|uintc| match insn.op {
        Op::UipiRead => read = uintc.take(receiver),
        Op::UipiWrite => uintc.post(receiver, operand),
        Op::UipiActivate => uintc.set_active(receiver, true),
        _ => uintc.set_active(receiver, false),
    });
    hart.x[insn.rd as usize] = read;
    if T::TIMED {
        hart.clock += timing.uipi(hart.id, now, insn.op == Op::UipiRead);
    }
    Ok(())
}

/// Steps 1 to 4 of `uipi.send`: the receiver and vector that sender-table entry `index` names, if the send has an effect.
fn sender_entry<T: Timing>(hart: &mut Hart, bus: &mut Bus, timing: &mut T, index: u64) -> Option<(usize, u64)> {
    const ENTRIES_PER_PAGE: u64 = 512;
    let table = hart.csrs.suist;
    let pages = table >> 44 & 0xFFF;
    if table & ENABLE == 0 || index >= pages * ENTRIES_PER_PAGE {
        return None;
    }
    let at = ((table & ((1 << 44) - 1)) << 12).checked_add(index * 8)?;
    if !hart.csrs.pmp.check(at, 8, Access::Load, Privilege::S).allowed {
        return None;
    }
    let offset = at.wrapping_sub(RAM_BASE);
    let entry = u64::from_le_bytes(bus.ram.get(offset, 8)?.try_into().ok()?);
    if T::TIMED {
        hart.clock += timing.data(hart.id, hart.clock, at, Touch::Read);
    }
    let (valid, vector, receiver) = (entry & 1 != 0, entry >> 16 & 0xFFFF, (entry >> 48) as usize);
    (valid && vector < 64 && receiver < RECEIVERS).then_some((receiver, vector))
}
