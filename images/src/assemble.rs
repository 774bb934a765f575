//! The image: firmware, kernel, root task and boot archive laid out in physical memory, as one ELF file (docs/architecture.md,
//! section 3).

use crate::blob::Blob;
use crate::error::{Error, Result};
use crate::manifest::{Kernel, Machine};
use crate::plan::PAGE;
use crate::program::Program;
use crate::size::Size;
use abi::image::{self, offset};
use abi::label::Table;
use object::elf as e;
use object::write::elf::{FileHeader, ProgramHeader, SectionHeader, Writer};

/// Start of RAM, where the firmware is.
const RAM: u64 = 0x8000_0000;
/// The root task starts at a multiple of this.
const ROOT_ALIGN: u64 = 2 << 20;
/// Slots that boot fills beside those of the image: fixed ones, page tables, device tree, untypeds.
const BOOT_SLOTS: u64 = 512;
/// Where the root task finds its archive: address and size (64 bits each).
const BOOT_ARCHIVE: &str = "WAKELINE_BOOT_ARCHIVE";
/// `e_flags`: compressed instructions, soft-float ABI (RISC-V ELF psABI).
const RISCV_FLAGS: u32 = 1;

/// What goes into an image.
pub struct Parts<'a> {
    /// M-mode firmware; without it the image is for a machine that brings its own.
    pub firmware: Option<&'a Blob>,
    /// The kernel.
    pub kernel: &'a Blob,
    /// The root task.
    pub root: &'a Program,
    /// The boot archive; none for root tasks that know no Wakeline.
    pub archive: Option<&'a [u8]>,
    /// Kernel configuration of the manifest.
    pub config: &'a Kernel,
    /// Numbering of the invocations.
    pub labels: Table,
    /// Slots that the root task needs.
    pub root_slots: u64,
    /// Machine defaults.
    pub machine: &'a Machine,
    /// Bytes that the programs will need beyond the image.
    pub program_memory: u64,
    /// Unstripped ELF files by name, for symbols.
    pub symbols: Vec<(&'a str, &'a [u8])>,
}

/// A loadable piece of the image.
struct Load {
    address: u64,
    content: Vec<u8>,
    size: u64,
}

/// Lays out and writes the image.
///
/// # Errors
/// If firmware, kernel or root task are not what they should be, or do not fit into the memory of the machine.
pub fn assemble(parts: &Parts) -> Result<Vec<u8>> {
    let mut loads = Vec::new();
    if let Some(firmware) = parts.firmware {
        let room = image::KERNEL_PADDR - RAM;
        fits(firmware.start == RAM && firmware.size <= room, || {
            format!("{}: the firmware must be at {RAM:#x} and have at most {}", firmware.path.display(), Size(room))
        })?;
        loads.push(Load { address: firmware.start, content: firmware.content.clone(), size: firmware.size });
    }
    let kernel_size = check_kernel(parts.kernel)?;
    let root_start = (image::KERNEL_PADDR + kernel_size).next_multiple_of(ROOT_ALIGN);
    let root = root_memory(parts.root, parts.archive)?;
    let root_end = root_start + root.len() as u64;
    let used = root_end - RAM;
    let memory = parts.machine.memory;
    fits(used < memory.0, || {
        format!("the image needs {} of memory, but machine.memory is {memory}", Size(used.next_multiple_of(1 << 20)))
    })?;
    let needed = used + parts.program_memory + (4 << 20);
    fits(needed <= memory.0, || {
        format!(
            "the system needs about {} of memory, but machine.memory is {memory}; make heaps and arenas smaller or the memory larger",
            Size(needed.next_multiple_of(1 << 20))
        )
    })?;

    let mut kernel = parts.kernel.content.clone();
    let flag = |set, flag| if set { flag } else { 0 };
    let flags = flag(parts.config.fastpath, image::FLAG_FASTPATH)
        | flag(parts.config.printing, image::FLAG_PRINTING)
        | flag(parts.config.benchmarks, image::FLAG_BENCHMARKS)
        | flag(parts.config.utilisation, image::FLAG_UTILISATION)
        | flag(parts.config.entries, image::FLAG_ENTRIES);
    let root_cnode_bits = root_cnode_bits(parts, root.len() as u64 / PAGE)?;
    let mut put = |at: usize, bytes: &[u8]| kernel[at..at + bytes.len()].copy_from_slice(bytes);
    put(offset::FLAGS, &flags.to_le_bytes());
    put(offset::ROOT_START, &root_start.to_le_bytes());
    put(offset::ROOT_END, &root_end.to_le_bytes());
    put(offset::ROOT_PV_OFFSET, &root_start.wrapping_sub(parts.root.start()).to_le_bytes());
    put(offset::ROOT_ENTRY, &parts.root.entry.to_le_bytes());
    put(offset::LABEL_TABLE, &(parts.labels as u32).to_le_bytes());
    put(offset::ROOT_CNODE_BITS, &root_cnode_bits.to_le_bytes());
    put(offset::TIMER_TICK_MS, &parts.config.timer_tick.to_le_bytes());
    put(offset::TIME_SLICE, &parts.config.time_slice.to_le_bytes());
    // A UP kernel runs on one hart (`CONFIG_MAX_NUM_NODES` = 1), an SMP kernel on all that there are.
    let max_nodes = u32::from(parts.labels == Table::Up);
    put(offset::MAX_NODES, &max_nodes.to_le_bytes());
    loads.push(Load { address: image::KERNEL_PADDR, content: kernel, size: kernel_size });
    loads.push(Load { address: root_start, size: root.len() as u64, content: root });
    Ok(write(&loads, parts))
}

/// Radix of the root CNode. A root task of ours has as many slots as its plan needs; a foreign one is told what it asked for.
fn root_cnode_bits(parts: &Parts, image_pages: u64) -> Result<u32> {
    let asked = parts.config.root_cnode_bits;
    let needed = (parts.root_slots + image_pages + BOOT_SLOTS).next_power_of_two().ilog2();
    fits(parts.archive.is_some() || needed <= asked, || {
        format!("the root task needs a root CNode of {needed} bits, but it shall have {asked} (--root-cnode-bits)")
    })?;
    Ok(needed.max(asked))
}

/// Checks the boot header; returns the kernel's size in memory.
fn check_kernel(kernel: &Blob) -> Result<u64> {
    let refuse = |reason: &str| Error::Elf { path: kernel.path.clone(), reason: reason.into() };
    let header = kernel.content.get(..offset::SIZE).ok_or_else(|| refuse("it has no boot header"))?;
    let word = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
    if kernel.start != image::KERNEL_PADDR {
        return Err(refuse("the kernel is not at its physical address"));
    }
    if word(offset::MAGIC) != image::MAGIC || word(offset::VERSION) as u32 != image::VERSION {
        return Err(refuse("it has no boot header of this version"));
    }
    Ok(word(offset::KERNEL_SIZE).max(kernel.size).next_multiple_of(PAGE))
}

/// The root task's memory with the archive behind it, whole pages.
fn root_memory(root: &Program, archive: Option<&[u8]>) -> Result<Vec<u8>> {
    let mut memory = root.memory();
    memory.resize(memory.len().next_multiple_of(PAGE as usize), 0);
    if let Some(archive) = archive {
        let address = root.start() + memory.len() as u64;
        let place = (root.symbol(BOOT_ARCHIVE)? - root.start()) as usize;
        memory[place..place + 8].copy_from_slice(&address.to_le_bytes());
        memory[place + 8..place + 16].copy_from_slice(&(archive.len() as u64).to_le_bytes());
        memory.extend(archive);
        memory.resize(memory.len().next_multiple_of(PAGE as usize), 0);
    }
    Ok(memory)
}

/// Writes the ELF file: loadable pieces, then sections that only tools on the host read.
fn write(loads: &[Load], parts: &Parts) -> Vec<u8> {
    let machine = format!("harts = {}\nmemory = \"{}\"\n", parts.machine.harts, parts.machine.memory);
    let mut sections = vec![(String::from(".wakeline.machine"), machine.as_bytes())];
    sections.extend(parts.symbols.iter().map(|(name, bytes)| (format!(".wakeline.elf.{name}"), *bytes)));

    let mut out = Vec::new();
    let mut writer = Writer::new(object::Endianness::Little, true, &mut out);
    writer.reserve_file_header();
    writer.reserve_program_headers(loads.len() as u32);
    let load_offsets: Vec<u64> = loads.iter().map(|load| writer.reserve(load.content.len() as u64, PAGE)).collect();
    let section_offsets: Vec<u64> = sections.iter().map(|(_, bytes)| writer.reserve(bytes.len() as u64, 8)).collect();
    writer.reserve_null_section_index();
    let names: Vec<_> = sections
        .iter()
        .map(|(name, _)| {
            writer.reserve_section_index();
            writer.add_section_name(name.as_bytes())
        })
        .collect();
    writer.reserve_shstrtab_section_index();
    // These fail only where a count or an offset does not fit its field: an image has about ten sections and fits in memory.
    writer.reserve_shstrtab().expect("a short string table");
    writer.reserve_section_headers();

    let entry = loads.first().map_or(0, |load| load.address);
    let header = FileHeader {
        os_abi: e::ELFOSABI_NONE,
        abi_version: 0,
        e_type: e::ET_EXEC,
        e_machine: e::EM_RISCV,
        e_entry: entry,
        e_flags: e::FileFlags(RISCV_FLAGS),
    };
    writer.write_file_header(&header).expect("few sections");
    writer.write_align_program_headers();
    for (load, &at) in loads.iter().zip(&load_offsets) {
        writer.write_program_header(&ProgramHeader {
            p_type: e::PT_LOAD,
            p_flags: e::PF_R | e::PF_W | e::PF_X,
            p_offset: at,
            p_vaddr: load.address,
            p_paddr: load.address,
            p_filesz: load.content.len() as u64,
            p_memsz: load.size,
            p_align: PAGE,
        });
    }
    for (load, &at) in loads.iter().zip(&load_offsets) {
        writer.pad_until(at);
        writer.write(&load.content);
    }
    for ((_, bytes), &at) in sections.iter().zip(&section_offsets) {
        writer.pad_until(at);
        writer.write(bytes);
    }
    writer.write_shstrtab();
    writer.write_null_section_header();
    for (((_, bytes), &at), name) in sections.iter().zip(&section_offsets).zip(names) {
        writer.write_section_header(&SectionHeader {
            sh_name: writer.section_name_offset(Some(name)),
            sh_type: e::SHT_PROGBITS,
            sh_flags: Default::default(),
            sh_addr: 0,
            sh_offset: at,
            sh_size: bytes.len() as u64,
            sh_link: 0,
            sh_info: 0,
            sh_addralign: 8,
            sh_entsize: 0,
        });
    }
    writer.write_shstrtab_section_header();
    out
}

fn fits(condition: bool, message: impl FnOnce() -> String) -> Result<()> {
    if condition { Ok(()) } else { Err(Error::DoesNotFit(message())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Load as Segment, code, elf as sample};
    use object::{Object, ObjectSection, ObjectSegment};
    use std::path::Path;

    /// A kernel of one page: a boot header that says it needs 3 MiB.
    fn kernel() -> Blob {
        let mut content = vec![0x13; 4096];
        content[offset::MAGIC..][..8].copy_from_slice(&image::MAGIC.to_le_bytes());
        content[offset::VERSION..][..4].copy_from_slice(&image::VERSION.to_le_bytes());
        content[offset::KERNEL_SIZE..][..8].copy_from_slice(&(3u64 << 20).to_le_bytes());
        let load = Segment { physical_address: image::KERNEL_PADDR, ..code(image::KERNEL_VADDR, content) };
        blob("kernel", &sample(image::KERNEL_VADDR, &[load]))
    }

    fn blob(name: &str, elf: &[u8]) -> Blob {
        Blob::parse(Path::new(name), elf.to_vec()).unwrap()
    }

    fn root() -> Program {
        let data = Segment { size: 8192, flags: e::PF_R | e::PF_W, ..code(0x1_2000, vec![5; 16]) };
        Program::parse(Path::new("root"), sample(0x1_0010, &[code(0x1_0000, vec![9; 64]), data])).unwrap()
    }

    /// What the tests change.
    struct Given {
        firmware: Blob,
        kernel: Blob,
        config: Kernel,
        labels: Table,
        machine: Machine,
        program_memory: u64,
    }

    fn image_of(change: impl FnOnce(&mut Given)) -> Result<Vec<u8>> {
        let mut given = Given {
            firmware: blob("firmware", &sample(RAM, &[code(RAM, vec![3; 100])])),
            kernel: kernel(),
            config: Kernel { root_cnode_bits: 15, ..Kernel::default() },
            labels: Table::Smp,
            machine: Machine { harts: 2, memory: Size(64 << 20) },
            program_memory: 0,
        };
        change(&mut given);
        assemble(&Parts {
            firmware: Some(&given.firmware),
            kernel: &given.kernel,
            root: &root(),
            archive: None,
            config: &given.config,
            labels: given.labels,
            root_slots: 20_000,
            machine: &given.machine,
            program_memory: given.program_memory,
            symbols: vec![("kernel", &given.kernel.elf)],
        })
    }

    #[test]
    fn pieces_lie_where_the_header_says() {
        let image = image_of(|_| ()).unwrap();
        let file = object::File::parse(&*image).unwrap();
        let at: Vec<_> = file.segments().map(|segment| (segment.address(), segment.size())).collect();
        // The kernel ends at 0x8050_0000, so the root task is at the next 2 MiB boundary; it has four pages.
        assert_eq!(at, [(RAM, 100), (0x8020_0000, 3 << 20), (0x8060_0000, 0x4000)]);

        let kernel = file.segments().nth(1).unwrap().data().unwrap();
        let word = |at: usize| u64::from_le_bytes(kernel[at..at + 8].try_into().unwrap());
        assert_eq!((word(offset::ROOT_START), word(offset::ROOT_END)), (0x8060_0000, 0x8060_4000));
        assert_eq!((word(offset::ROOT_PV_OFFSET), word(offset::ROOT_ENTRY)), (0x8060_0000 - 0x1_0000, 0x1_0010));
        let flags = word(offset::VERSION) >> 32;
        assert_eq!(flags as u32, image::FLAG_FASTPATH | image::FLAG_PRINTING);
        assert_eq!(word(offset::LABEL_TABLE), 1 | 15 << 32);

        let root = file.segments().nth(2).unwrap().data().unwrap();
        assert_eq!((root[63], root[64], root[0x2000], root[0x2010]), (9, 0, 5, 0));
        let machine = file.section_by_name(".wakeline.machine").unwrap().data().unwrap();
        assert_eq!(machine, b"harts = 2\nmemory = \"64M\"\n");
        assert!(file.section_by_name(".wakeline.elf.kernel").is_some());
    }

    #[test]
    fn the_header_says_how_the_kernel_is_configured() {
        let header = |change: fn(&mut Given)| {
            let image = image_of(change).unwrap();
            let file = object::File::parse(&*image).unwrap();
            let kernel = file.segments().nth(1).unwrap().data().unwrap();
            let half = |at: usize| u32::from_le_bytes(kernel[at..at + 4].try_into().unwrap());
            let (labels, bits) = (half(offset::LABEL_TABLE), half(offset::ROOT_CNODE_BITS));
            let times = (half(offset::TIMER_TICK_MS), half(offset::TIME_SLICE));
            (half(offset::FLAGS), labels, bits, times, half(offset::MAX_NODES))
        };
        let all = |given: &mut Given| {
            given.config = Kernel {
                checked: true,
                fastpath: false,
                printing: false,
                benchmarks: true,
                utilisation: false,
                entries: false,
                root_cnode_bits: 17,
                timer_tick: 1000,
                time_slice: 500,
            };
            given.labels = Table::Up;
        };
        assert_eq!(header(all), (image::FLAG_BENCHMARKS, 0, 17, (1000, 500), 1));
        let plain = image::FLAG_FASTPATH | image::FLAG_PRINTING;
        assert_eq!(header(|_| ()), (plain, 1, 15, (2, 5), 0));
    }

    #[test]
    fn equal_parts_give_equal_bytes() {
        assert_eq!(image_of(|_| ()).unwrap(), image_of(|_| ()).unwrap());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let said = |result: Result<Vec<u8>>| result.unwrap_err().to_string();
        let small = said(image_of(|given| given.machine.memory = Size(6 << 20)));
        assert_eq!(small, "the image needs 7M of memory, but machine.memory is 6M");
        let much = said(image_of(|given| given.program_memory = 60 << 20));
        assert!(much.starts_with("the system needs about 71M of memory, but machine.memory is 64M"), "{much}");
        let slots = said(image_of(|given| given.config.root_cnode_bits = 13));
        assert!(slots.starts_with("the root task needs a root CNode of 15 bits, but it shall have 13"), "{slots}");
        let large = blob("firmware", &sample(RAM, &[Segment { size: 3 << 20, ..code(RAM, vec![0; 4]) }]));
        assert!(said(image_of(|given| given.firmware = large)).contains("at most 2M"));
        let bare = blob("kernel", &sample(image::KERNEL_PADDR, &[code(image::KERNEL_PADDR, vec![0; 4096])]));
        assert!(said(image_of(|given| given.kernel = bare)).contains("no boot header of this version"));
    }
}
