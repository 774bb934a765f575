//! Names of what happens: causes of traps as the privileged specification has them, and of system calls as seL4's guests and SBI
//! have them. A number without a name is shown as a number.

/// Exceptions, by cause.
const EXCEPTIONS: [&str; 16] = [
    "fetch misaligned",
    "fetch access fault",
    "illegal instruction",
    "breakpoint",
    "load misaligned",
    "load access fault",
    "store misaligned",
    "store access fault",
    "call from U",
    "call from S",
    "",
    "call from M",
    "fetch page fault",
    "load page fault",
    "",
    "store page fault",
];
/// Interrupts, by cause.
const INTERRUPTS: [&str; 12] = [
    "user software interrupt",
    "supervisor software interrupt",
    "",
    "machine software interrupt",
    "user timer interrupt",
    "supervisor timer interrupt",
    "",
    "machine timer interrupt",
    "user external interrupt",
    "supervisor external interrupt",
    "",
    "machine external interrupt",
];
/// seL4's system calls (non-MCS), from -1 downwards.
const SYSTEM_CALLS: [&str; 8] = ["Call", "ReplyRecv", "Send", "NBSend", "Recv", "Reply", "Yield", "NBRecv"];
/// SBI's extensions.
const SBI: [(u64, &str); 8] = [
    (0x10, "SBI base"),
    (0x5449_4D45, "SBI timer"),
    (0x73_5049, "SBI IPI"),
    (0x5246_4E43, "SBI remote fence"),
    (0x48_534D, "SBI hart state"),
    (0x5352_5354, "SBI reset"),
    (0x50_4D55, "SBI counters"),
    (0x4442_434E, "SBI console"),
];

/// The trap with this cause (interrupt flag in bit 63).
pub(crate) fn trap(cause: u64) -> String {
    let (names, code) = if cause >> 63 != 0 { (&INTERRUPTS[..], cause << 1 >> 1) } else { (&EXCEPTIONS[..], cause) };
    match names.get(code as usize) {
        Some(name) if !name.is_empty() => (*name).to_owned(),
        _ => format!("cause {cause:#x}"),
    }
}

/// The system call that a program makes with this `a7`.
pub(super) fn system_call(number: u64) -> String {
    let index = (number as i64).wrapping_neg().wrapping_sub(1);
    match usize::try_from(index).ok().and_then(|index| SYSTEM_CALLS.get(index)) {
        Some(name) => (*name).to_owned(),
        None => format!("call {}", number as i64),
    }
}

/// The call of the firmware with this `a7`.
pub(super) fn firmware_call(extension: u64) -> String {
    match SBI.iter().find(|(number, _)| *number == extension) {
        Some((_, name)) => (*name).to_owned(),
        None => format!("SBI {extension:#x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_names_or_stay_numbers() {
        assert_eq!(trap(8), "call from U");
        assert_eq!(trap(1 << 63 | 5), "supervisor timer interrupt");
        assert_eq!((trap(10), trap(99)), ("cause 0xa".into(), "cause 0x63".into()));
        assert_eq!(system_call(-1i64 as u64), "Call");
        assert_eq!(system_call(-8i64 as u64), "NBRecv");
        assert_eq!((system_call(-12i64 as u64), system_call(64)), ("call -12".into(), "call 64".into()));
        assert_eq!(system_call(i64::MIN as u64), format!("call {}", i64::MIN));
        assert_eq!((firmware_call(0x5449_4D45), firmware_call(1)), ("SBI timer".into(), "SBI 0x1".into()));
    }
}
