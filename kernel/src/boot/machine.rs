//! What the kernel takes from the device tree: harts, memory, interrupt controllers, time base.
//!
//! The tree is the firmware's word about the machine, but it is still input: the parser validates its structure, and every
//! number is checked here before the kernel builds an address from it. What is missing but optional (PLIC, UINTC) is `None`.

use abi::config::MAX_NUM_NODES;
use dtoolkit::fdt::{Fdt, FdtNode};
use dtoolkit::standard::NodeStandard;
use dtoolkit::{Node, Property};
use uintr::uintc::{COMPATIBLE as UINTC_COMPATIBLE, RECEIVER_BYTES};

use super::regions::{Range, RangeList};

/// Nesting of nodes that is followed.
const MAX_DEPTH: usize = 8;
/// Cause number of the supervisor external interrupt: the PLIC contexts of S-mode say 9.
const SUPERVISOR_EXTERNAL: u32 = 9;

/// Harts in the order of their cores: core 0 is the one that booted, then ascending hart ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Harts {
    ids: [u16; MAX_NUM_NODES],
    count: usize,
}

impl Harts {
    /// Hart ids by core number.
    pub fn ids(&self) -> &[u16] {
        &self.ids[..self.count]
    }
}

/// A PLIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlicPlace {
    /// Registers.
    pub registers: Range,
    /// S-mode context of each core; meaningful for the cores of [`Harts`].
    pub contexts: [u16; MAX_NUM_NODES],
}

/// A UINTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UintcPlace {
    /// Registers.
    pub registers: Range,
    /// Receivers.
    pub receivers: u16,
}

/// The machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Harts to run on.
    pub harts: Harts,
    /// Ticks of the time base per second.
    pub timebase_frequency: u64,
    /// RAM.
    pub memory: RangeList,
    /// RAM that is not ours to use.
    pub reserved: RangeList,
    /// CLINT, so that its page is not handed out.
    pub clint: Option<Range>,
    /// External interrupts.
    pub plic: Option<PlicPlace>,
    /// User interrupts in hardware: `None` also if a hart lacks the N extension.
    pub uintc: Option<UintcPlace>,
    /// Every hart has F and D.
    pub fpu: bool,
}

/// Why the device tree is not usable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MachineError {
    /// Not a flattened device tree, or a damaged one.
    Malformed,
    /// The hart that runs this code is not among the CPUs.
    NoBootHart,
    /// No memory node with a size.
    NoMemory,
    /// No `timebase-frequency`.
    NoTimebase,
    /// More memory banks or reserved ranges than the kernel keeps.
    TooManyRanges,
}

impl Machine {
    /// Reads the machine from `tree`, for a kernel that booted on `boot_hart` and uses at most `max_harts` harts.
    pub fn parse(tree: &[u8], boot_hart: u16, max_harts: usize) -> Result<Self, MachineError> {
        let tree = Fdt::new(tree).map_err(|_| MachineError::Malformed)?;
        let mut survey = Survey::default();
        survey.visit(tree.root(), 0);
        if survey.overflow {
            return Err(MachineError::TooManyRanges);
        }
        for reservation in tree.memory_reservations() {
            survey.reserve(Range::from_size(reservation.address(), reservation.size()));
        }
        if let Some(nodes) = tree.find_node("/reserved-memory") {
            for node in nodes.children() {
                ranges(&node).for_each(|range| survey.reserve(Some(range)));
            }
        }
        if survey.overflow {
            return Err(MachineError::TooManyRanges);
        }
        if survey.memory.is_empty() {
            return Err(MachineError::NoMemory);
        }
        let harts = survey.select(boot_hart, max_harts.min(MAX_NUM_NODES))?;
        let plic = tree_plic(tree, &survey, &harts);
        let uintc = survey.uintc.filter(|_| survey.all_have_n(&harts));
        Ok(Self {
            harts,
            timebase_frequency: survey.timebase.filter(|&f| f > 0).ok_or(MachineError::NoTimebase)?,
            memory: survey.memory,
            reserved: survey.reserved,
            clint: survey.clint,
            plic,
            uintc,
            fpu: !survey.no_fpu,
        })
    }
}

/// A CPU node: hart id, the phandle of its interrupt controller, and whether the hart has user interrupts (N extension).
#[derive(Clone, Copy, Default)]
struct Cpu {
    hart: u16,
    interrupt_controller: u32,
    has_n: bool,
}

/// More CPU nodes than we run on are looked at, since the boot hart may be any of them.
const MAX_CPUS: usize = 32;

#[derive(Default)]
struct Survey {
    cpus: [Cpu; MAX_CPUS],
    cpu_count: usize,
    timebase: Option<u64>,
    memory: RangeList,
    reserved: RangeList,
    clint: Option<Range>,
    uintc: Option<UintcPlace>,
    /// Some hart has no floating point.
    no_fpu: bool,
    overflow: bool,
}

impl Survey {
    fn visit(&mut self, node: FdtNode<'_>, depth: usize) {
        match text(&node, "device_type") {
            Some("cpu") => self.add_cpu(&node),
            Some("memory") => {
                for range in ranges(&node) {
                    self.overflow |= !self.memory.insert(range);
                }
            }
            _ => {}
        }
        if let Some(frequency) = word(&node, "timebase-frequency") {
            self.timebase = self.timebase.or(Some(u64::from(frequency)));
        }
        if node.is_compatible("riscv,clint0") || node.is_compatible("sifive,clint0") {
            self.clint = self.clint.or_else(|| ranges(&node).next());
        } else if node.is_compatible(UINTC_COMPATIBLE) {
            self.uintc = self.uintc.or_else(|| uintc_place(&node));
        }
        if depth < MAX_DEPTH {
            node.children().for_each(|child| self.visit(child, depth + 1));
        }
    }

    fn add_cpu(&mut self, node: &FdtNode<'_>) {
        let hart = node
            .reg()
            .ok()
            .flatten()
            .and_then(|mut regs| regs.next())
            .and_then(|reg| reg.address::<u64>().ok())
            .and_then(|id| u16::try_from(id).ok());
        let interrupt_controller = node
            .children()
            .find(|child| child.is_compatible("riscv,cpu-intc"))
            .and_then(|child| word(&child, "phandle"));
        let usable = node.property("mmu-type").is_some() && text(node, "status").is_none_or(|status| status == "okay");
        if let (Some(hart), true, true) = (hart, usable, self.cpu_count < MAX_CPUS) {
            let interrupt_controller = interrupt_controller.unwrap_or(0);
            self.cpus[self.cpu_count] = Cpu { hart, interrupt_controller, has_n: has_extension(node, b'n') };
            self.cpu_count += 1;
            self.no_fpu |= !has_extension(node, b'd');
        }
    }

    fn all_have_n(&self, harts: &Harts) -> bool {
        let cpus = &self.cpus[..self.cpu_count];
        harts.ids().iter().all(|&hart| cpus.iter().any(|cpu| cpu.hart == hart && cpu.has_n))
    }

    fn reserve(&mut self, range: Option<Range>) {
        if let Some(range) = range {
            self.overflow |= !self.reserved.insert(range);
        }
    }

    fn select(&self, boot_hart: u16, max: usize) -> Result<Harts, MachineError> {
        let cpus = &self.cpus[..self.cpu_count];
        if !cpus.iter().any(|cpu| cpu.hart == boot_hart) {
            return Err(MachineError::NoBootHart);
        }
        let mut harts = Harts { ids: [boot_hart; MAX_NUM_NODES], count: 1 };
        let mut last = None;
        while harts.count < max {
            let next = cpus
                .iter()
                .map(|cpu| cpu.hart)
                .filter(|&hart| hart != boot_hart && last.is_none_or(|last| hart > last))
                // The remote calls of the kernel pass harts in one word.
                .filter(|&hart| u32::from(hart) < usize::BITS)
                .min();
            let Some(hart) = next else { break };
            harts.ids[harts.count] = hart;
            harts.count += 1;
            last = Some(hart);
        }
        Ok(harts)
    }
}

/// Whether the instruction set of a CPU has an extension of one letter: by the list of extensions, or by the older string
/// (`rv64imafdc_zicsr`), whose single letters end before the first longer name, which starts with z, s or x or after `_`.
fn has_extension(cpu: &FdtNode<'_>, letter: u8) -> bool {
    match cpu.property("riscv,isa-extensions") {
        Some(extensions) => extensions.value().split(|&byte| byte == 0).any(|name| name == [letter]),
        None => text(cpu, "riscv,isa").is_some_and(|isa| names_letter(isa, letter)),
    }
}

fn names_letter(isa: &str, letter: u8) -> bool {
    let letters = isa.strip_prefix("rv64").unwrap_or_default().bytes();
    let mut letters = letters.take_while(|letter| !matches!(letter, b'_' | b'z' | b's' | b'x'));
    // G stands for IMAFD.
    letters.any(|found| found == letter || found == b'g' && b"imafd".contains(&letter))
}

fn tree_plic(tree: Fdt<'_>, survey: &Survey, harts: &Harts) -> Option<PlicPlace> {
    find(tree.root(), 0, &mut |node| {
        if node.is_compatible("riscv,plic0") || node.is_compatible("sifive,plic-1.0.0") {
            plic_place(node, survey, harts)
        } else {
            None
        }
    })
}

/// The *i*-th pair of `interrupts-extended` is context *i*: (interrupt controller of a hart, cause).
fn plic_place(node: &FdtNode<'_>, survey: &Survey, harts: &Harts) -> Option<PlicPlace> {
    /// Threshold and claim of context *i* (PLIC specification 1.0, memory map).
    const CONTEXT: u64 = 0x20_0000;
    const CONTEXT_STRIDE: u64 = 0x1000;
    let registers = ranges(node).next()?;
    let pairs = node.property("interrupts-extended")?;
    let mut contexts = [0; MAX_NUM_NODES];
    for (core, &hart) in harts.ids().iter().enumerate() {
        let controller = survey.cpus[..survey.cpu_count].iter().find(|cpu| cpu.hart == hart)?.interrupt_controller;
        let context = pairs
            .value()
            .chunks_exact(8)
            .position(|pair| pair[..4] == controller.to_be_bytes() && pair[4..] == SUPERVISOR_EXTERNAL.to_be_bytes())?;
        contexts[core] = u16::try_from(context).ok()?;
        if CONTEXT + CONTEXT_STRIDE * (u64::from(contexts[core]) + 1) > registers.len() {
            return None;
        }
    }
    Some(PlicPlace { registers, contexts })
}

fn find<T>(node: FdtNode<'_>, depth: usize, test: &mut impl FnMut(&FdtNode<'_>) -> Option<T>) -> Option<T> {
    if let Some(found) = test(&node) {
        return Some(found);
    }
    if depth == MAX_DEPTH {
        return None;
    }
    node.children().find_map(|child| find(child, depth + 1, test))
}

fn uintc_place(node: &FdtNode<'_>) -> Option<UintcPlace> {
    let registers = ranges(node).next()?;
    let receivers = registers.len() / RECEIVER_BYTES as u64;
    Some(UintcPlace { registers, receivers: u16::try_from(receivers).ok()? })
}

fn text<'a>(node: &FdtNode<'a>, name: &str) -> Option<&'a str> {
    node.properties().find(|property| property.name() == name)?.value_as::<&'a str>().ok()
}

fn word(node: &FdtNode<'_>, name: &str) -> Option<u32> {
    node.property(name)?.value_as::<u32>().ok()
}

/// The non-empty ranges of `reg` that do not wrap.
fn ranges<'a>(node: &FdtNode<'a>) -> impl Iterator<Item = Range> + 'a {
    node.reg()
        .ok()
        .flatten()
        .into_iter()
        .flatten()
        .filter_map(|reg| Range::from_size(reg.address::<u64>().ok()?, reg.size::<u64>().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// QEMU's virt board with four harts (`-machine virt,dumpdtb=`), without the padding behind its last block.
    const VIRT: &[u8] = include_bytes!("virt-4-harts.dtb");

    #[test]
    fn reads_the_virt_board() {
        let machine = Machine::parse(VIRT, 0, 8).expect("a good tree");
        assert_eq!(machine.harts.ids(), [0, 1, 2, 3]);
        assert_eq!(machine.timebase_frequency, 10_000_000);
        assert!(machine.memory.iter().eq([Range::new(0x8000_0000, 0x8800_0000)]));
        assert_eq!(machine.clint, Some(Range::new(0x200_0000, 0x201_0000)));
        let plic = machine.plic.expect("it has one");
        assert_eq!(plic.registers.start, 0xC00_0000);
        assert_eq!(plic.contexts[..4], [1, 3, 5, 7]);
        assert_eq!(machine.uintc, None);
        assert!(machine.fpu);
    }

    #[test]
    fn core_0_is_the_hart_that_booted() {
        let machine = Machine::parse(VIRT, 2, 3).expect("a good tree");
        assert_eq!(machine.harts.ids(), [2, 0, 1]);
        assert_eq!(machine.plic.expect("it has one").contexts[..3], [5, 1, 3]);
    }

    #[test]
    fn extensions_of_one_letter() {
        assert!(names_letter("rv64imafdcn_zicsr_zifencei", b'n'));
        assert!(!names_letter("rv64imafdch_zicsr_zifencei_zihintpause_svinval", b'n'));
        assert!(!names_letter("rv64imafdcsun", b'n'), "n after s is part of a longer name");
        assert!(names_letter("rv64gc", b'd') && !names_letter("rv64gc", b'n'));
        assert!(!names_letter("rv32imn", b'n') && !names_letter("", b'n'));
    }

    #[test]
    fn the_uintc_is_where_the_tree_says() {
        // QEMU's tree with other names of the same length: its test device, 4 KiB at 0x10_0000, and harts with N in place of H.
        let replace = |tree: &mut [u8], old: &[u8], new: &[u8]| {
            assert_eq!(old.len(), new.len());
            let places: Vec<usize> = (0..tree.len() - old.len()).filter(|&at| tree[at..].starts_with(old)).collect();
            assert!(!places.is_empty(), "the tree has it");
            places.iter().for_each(|&at| tree[at..at + new.len()].copy_from_slice(new));
        };
        let mut tree = VIRT.to_vec();
        replace(&mut tree, b"sifive,test0", UINTC_COMPATIBLE.as_bytes());
        assert_eq!(Machine::parse(&tree, 0, 8).expect("a good tree").uintc, None, "harts without N");
        replace(&mut tree, b"rv64imafdch", b"rv64imafdcn");
        let machine = Machine::parse(&tree, 0, 8).expect("a good tree");
        let registers = Range::new(0x10_0000, 0x10_1000);
        assert_eq!(machine.uintc, Some(UintcPlace { registers, receivers: 128 }));
    }

    #[test]
    fn refuses_what_it_cannot_use() {
        assert_eq!(Machine::parse(VIRT, 4, 8), Err(MachineError::NoBootHart));
        assert_eq!(Machine::parse(&VIRT[..100], 0, 8), Err(MachineError::Malformed));
    }
}
