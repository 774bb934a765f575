//! What the firmware takes from the device tree: harts, CLINT, console, test finisher, RAM.
//!
//! The tree comes from outside, so it is validated as a whole by the parser first and every address found is checked here;
//! a block that is missing is `None` and the SBI calls that need it answer "not supported". Only the CLINT is required.

use dtoolkit::fdt::{Fdt, FdtNode};
use dtoolkit::standard::NodeStandard;
use dtoolkit::{Node, Property};

/// Harts that the firmware has stacks for; a hart with a greater id sleeps.
pub const MAX_HARTS: usize = 8;
/// Nesting of device tree nodes that is followed.
const MAX_DEPTH: usize = 8;

/// A physical address range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First byte.
    pub base: usize,
    /// Length in bytes.
    pub size: usize,
}

impl Range {
    /// Whether `len` bytes from `at` lie inside.
    pub fn holds(&self, at: usize, len: usize) -> bool {
        at >= self.base && at.checked_add(len).is_some_and(|end| end - self.base <= self.size)
    }
}

/// The console: registers `1 << shift` bytes apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UartPlace {
    /// Registers.
    pub registers: Range,
    /// log2 of the distance of two registers.
    pub shift: u32,
}

/// The machine as far as the firmware needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Board {
    /// One bit per hart id with an MMU, below [`MAX_HARTS`].
    pub harts: usize,
    /// Core-local interruptor (`sifive,clint0`, `riscv,clint0`).
    pub clint: Range,
    /// First `ns16550a`.
    pub uart: Option<UartPlace>,
    /// Test finisher (`sifive,test1`, `sifive,test0`).
    pub finisher: Option<Range>,
    /// First bank of the first memory node.
    pub memory: Option<Range>,
}

/// Why a device tree is not usable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoardError {
    /// Not a flattened device tree, or a damaged one.
    Malformed,
    /// No CLINT: no timer and no way to reach another hart.
    NoClint,
    /// No hart that could run S-mode code.
    NoHart,
}

impl Board {
    /// Reads the board from a flattened device tree.
    pub fn parse(tree: &[u8]) -> Result<Self, BoardError> {
        let tree = Fdt::new(tree).map_err(|_| BoardError::Malformed)?;
        let mut found = Found::default();
        found.visit(tree.root(), 0);
        let clint = found.clint.ok_or(BoardError::NoClint)?;
        if found.harts == 0 {
            return Err(BoardError::NoHart);
        }
        Ok(Self { harts: found.harts, clint, uart: found.uart, finisher: found.finisher, memory: found.memory })
    }
}

#[derive(Default)]
struct Found {
    harts: usize,
    clint: Option<Range>,
    uart: Option<UartPlace>,
    finisher: Option<Range>,
    memory: Option<Range>,
}

impl Found {
    fn visit(&mut self, node: FdtNode<'_>, depth: usize) {
        match device_type(&node) {
            Some("cpu") => self.add_hart(&node),
            Some("memory") => self.memory = self.memory.or_else(|| first_range(&node)),
            _ => {}
        }
        let is_any = |names: [&str; 2]| names.iter().any(|name| node.is_compatible(name));
        if is_any(["riscv,clint0", "sifive,clint0"]) {
            self.clint = self.clint.or_else(|| first_range(&node));
        } else if is_any(["sifive,test1", "sifive,test0"]) {
            self.finisher = self.finisher.or_else(|| first_range(&node));
        } else if node.is_compatible("ns16550a") {
            self.uart = self.uart.or_else(|| uart_place(&node));
        }
        if depth < MAX_DEPTH {
            for child in node.children() {
                self.visit(child, depth + 1);
            }
        }
    }

    fn add_hart(&mut self, node: &FdtNode<'_>) {
        let id = node.reg().ok().flatten().and_then(|mut regs| regs.next()).and_then(|reg| reg.address::<u64>().ok());
        if let Some(id) = id.filter(|&id| id < MAX_HARTS as u64)
            && node.property("mmu-type").is_some()
        {
            self.harts |= 1 << id;
        }
    }
}

fn device_type<'a>(node: &FdtNode<'a>) -> Option<&'a str> {
    node.properties()
        .find(|property| property.name() == "device_type")
        .and_then(|property| property.value_as::<&'a str>().ok())
}

fn first_range(node: &FdtNode<'_>) -> Option<Range> {
    let reg = node.reg().ok()??.next()?;
    let base = usize::try_from(reg.address::<u64>().ok()?).ok()?;
    let size = usize::try_from(reg.size::<u64>().ok()?).ok()?;
    base.checked_add(size)?;
    (size > 0).then_some(Range { base, size })
}

fn uart_place(node: &FdtNode<'_>) -> Option<UartPlace> {
    let registers = first_range(node)?;
    let shift = match node.property("reg-shift") {
        Some(property) => property.value_as::<u32>().ok()?,
        None => 0,
    };
    (shift <= 3 && registers.size >= 8 << shift).then_some(UartPlace { registers, shift })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// QEMU's virt board with two harts (`-machine virt,dumpdtb=`), without the padding behind its last block.
    const VIRT: &[u8] = include_bytes!("../tests/virt-2-harts.dtb");

    #[test]
    fn reads_the_virt_board() {
        let board = Board::parse(VIRT).expect("a good tree");
        assert_eq!(board.harts, 0b11);
        assert_eq!(board.clint, Range { base: 0x200_0000, size: 0x1_0000 });
        assert_eq!(board.uart.expect("it has one").registers.base, 0x1000_0000);
        assert_eq!(board.finisher.expect("it has one").base, 0x10_0000);
        assert_eq!(board.memory, Some(Range { base: 0x8000_0000, size: 128 << 20 }));
    }

    #[test]
    fn refuses_a_cut_tree() {
        assert_eq!(Board::parse(&VIRT[..64]), Err(BoardError::Malformed));
        assert_eq!(Board::parse(&[]), Err(BoardError::Malformed));
    }

    #[test]
    fn range_end_does_not_wrap() {
        let range = Range { base: 0x1000, size: 0x1000 };
        assert!(range.holds(0x1000, 0x1000));
        assert!(!range.holds(0x1001, 0x1000));
        assert!(!range.holds(0xfff, 1));
        assert!(!range.holds(0x1800, usize::MAX));
    }
}
