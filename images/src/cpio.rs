//! The boot archive: CPIO in the "newc" form, as seL4's tools use it.

/// Magic of a newc header.
const MAGIC: &[u8] = b"070701";
/// Name of the member that ends an archive.
const TRAILER: &str = "TRAILER!!!";
/// A regular file, readable by all.
const MODE: u32 = 0o100_444;

/// An archive of `members`, name and content. Times and owners are zero, so equal members give equal bytes.
pub fn archive<'a>(members: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Vec<u8> {
    let mut out = Vec::new();
    for (number, (name, content)) in (1..).zip(members) {
        member(&mut out, number, MODE, name, content);
    }
    member(&mut out, 0, 0, TRAILER, &[]);
    out
}

fn member(out: &mut Vec<u8>, number: u32, mode: u32, name: &str, content: &[u8]) {
    out.extend(MAGIC);
    // ino mode uid gid nlink mtime filesize devmajor devminor rdevmajor rdevminor namesize check
    let (links, name_size) = (1, name.len() as u32 + 1);
    for field in [number, mode, 0, 0, links, 0, content.len() as u32, 0, 0, 0, 0, name_size, 0] {
        out.extend(format!("{field:08X}").bytes());
    }
    out.extend(name.bytes());
    out.push(0);
    align(out);
    out.extend(content);
    align(out);
}

fn align(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reader_of_the_root_task_finds_every_member() {
        let members: [(&str, &[u8]); 3] = [("system.dtb", b"abc"), ("a.elf", b""), ("a.env.dtb", &[7; 4097])];
        let archive = archive(members);
        let read: Vec<_> = cpio_reader::iter_files(&archive).map(|entry| (entry.name(), entry.file())).collect();
        assert_eq!(read, members);
        assert_eq!(archive.len() % 4, 0);
    }
}
