//! ELF files for the tests of this crate.

use object::elf as e;
use object::write::elf::{FileHeader, ProgramHeader, Writer};

/// A loadable segment: virtual and physical address, content, bytes in memory, flags.
pub struct Load {
    pub virtual_address: u64,
    pub physical_address: u64,
    pub content: Vec<u8>,
    pub size: u64,
    pub flags: e::ProgramFlags,
}

/// A code segment at one address.
pub fn code(address: u64, content: Vec<u8>) -> Load {
    let size = content.len() as u64;
    Load { virtual_address: address, physical_address: address, content, size, flags: e::PF_R | e::PF_X }
}

/// A RISC-V executable.
pub fn elf(entry: u64, loads: &[Load]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Writer::new(object::Endianness::Little, true, &mut out);
    writer.reserve_file_header();
    writer.reserve_program_headers(loads.len() as u32);
    let offsets: Vec<u64> = loads.iter().map(|load| writer.reserve(load.content.len() as u64, 16)).collect();
    let header = FileHeader {
        os_abi: e::ELFOSABI_NONE,
        abi_version: 0,
        e_type: e::ET_EXEC,
        e_machine: e::EM_RISCV,
        e_entry: entry,
        e_flags: e::FileFlags(1),
    };
    writer.write_file_header(&header).unwrap();
    writer.write_align_program_headers();
    for (load, &offset) in loads.iter().zip(&offsets) {
        writer.write_program_header(&ProgramHeader {
            p_type: e::PT_LOAD,
            p_flags: load.flags,
            p_offset: offset,
            p_vaddr: load.virtual_address,
            p_paddr: load.physical_address,
            p_filesz: load.content.len() as u64,
            p_memsz: load.size,
            p_align: 4096,
        });
    }
    for (load, &offset) in loads.iter().zip(&offsets) {
        writer.pad_until(offset);
        writer.write(&load.content);
    }
    out
}
