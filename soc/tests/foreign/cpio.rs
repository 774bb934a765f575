//! An initial RAM disk: a cpio archive in the "newc" format (Linux, Documentation/driver-api/early-userspace/buffer-format.rst).

/// The archive so far.
#[derive(Default)]
pub struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

impl Archive {
    pub fn directory(&mut self, name: &str) {
        self.entry(name, 0o040_755, &[]);
    }

    pub fn program(&mut self, name: &str, content: &[u8]) {
        self.entry(name, 0o100_755, content);
    }

    pub fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        let length = |bytes: usize| u32::try_from(bytes).expect("far below 4 GiB");
        // Inode, mode, owner, group, links, time, size, two device numbers of the file, two of the node, length of the name, sum.
        let (size, name_size) = (length(content.len()), length(name.len()) + 1);
        let fields = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name_size, 0];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08x}").bytes());
        }
        self.bytes.extend(name.bytes().chain([0]));
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}
