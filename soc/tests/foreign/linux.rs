//! Debian's Linux for riscv64, unmodified, under OpenSBI: it boots to a shell, and its own drivers work with the virtio devices and
//! the Cadence GEM.
//!
//! The kernel, its modules and busybox are looked for in the directory that `SOC_LINUX` names, else where `make foreign` puts them.

use super::{OPENSBI, boot, shows, skip};
use crate::cpio::Archive;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Unpacked packages: a root with `boot`, `usr/bin/busybox` and `usr/lib/modules`.
struct Linux {
    kernel: PathBuf,
    modules: PathBuf,
    busybox: Vec<u8>,
    busybox_path: PathBuf,
}

impl Linux {
    fn find() -> Option<Self> {
        let usual = || Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("target").join("foreign/linux/root");
        let root = std::env::var_os("SOC_LINUX").map_or_else(usual, PathBuf::from);
        let entry = |directory: &str, prefix: &str| {
            let entries = fs::read_dir(root.join(directory)).ok()?;
            let mut names = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
            names.find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix)))
        };
        let found = entry("boot", "vmlinux-").zip(entry("usr/lib/modules", ""));
        let linux = found.and_then(|(kernel, modules)| {
            let busybox_path = root.join("usr/bin/busybox");
            Some(Self { kernel, modules, busybox: fs::read(&busybox_path).ok()?, busybox_path })
        });
        if linux.is_none() {
            skip(&format!("no Linux in {} (make foreign, or SOC_LINUX)", root.display()));
        }
        linux
    }

    /// The content of module `name`.
    fn module(&self, name: &str) -> Vec<u8> {
        fn search(directory: &Path, file: &str) -> Option<PathBuf> {
            let entries: Vec<PathBuf> =
                fs::read_dir(directory).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
            let here = entries.iter().find(|path| path.file_name().is_some_and(|name| name == file));
            here.cloned().or_else(|| entries.iter().filter(|path| path.is_dir()).find_map(|path| search(path, file)))
        }
        let found = search(&self.modules, &format!("{name}.ko.xz")).unwrap_or_else(|| panic!("no module {name}"));
        fs::read(found).expect("it was just found")
    }

    /// Boots with a RAM disk that loads `modules` and goes on with the shell script `then`; gives the console.
    fn run(&self, name: &str, modules: &[&str], then: &str, options: &[&str]) -> Option<String> {
        let mut archive = Archive::default();
        for directory in ["bin", "dev", "proc", "sys", "mod"] {
            archive.directory(directory);
        }
        archive.program("bin/busybox", &self.busybox);
        for module in modules {
            archive.program(&format!("mod/{module}.ko.xz"), &self.module(module));
        }
        let load: String = modules.iter().map(|module| format!("insmod /mod/{module}.ko.xz\n")).collect();
        let script = format!(
            "#!/bin/busybox sh\n/bin/busybox --install -s /bin\nmount -t devtmpfs none /dev\nmount -t proc none /proc\n\
             mount -t sysfs none /sys\n{load}{then}"
        );
        archive.program("init", script.as_bytes());
        let initrd = temporary(&format!("{name}.cpio"), &archive.finish());
        let kernel = self.kernel.to_str().expect("a plain name");
        let firmware = format!("{OPENSBI}/fw_dynamic.bin");
        let common = ["--firmware", &firmware, "--kernel", kernel, "--initrd", &initrd, "--memory", "256M"];
        boot(&[&common[..], &["--append", "console=ttyS0 quiet"], options].concat(), "6000000000")
    }
}

/// A file in the tests' own directory.
fn temporary(name: &str, content: &[u8]) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, content).expect("the target directory can be written");
    path.to_str().expect("the target directory has a plain name").to_owned()
}

#[test]
fn linux_on_two_harts_reaches_its_shell() {
    let Some(linux) = Linux::find() else { return };
    let typed = temporary("linux-typed.txt", b"echo $((6 * 7)) $(uname -m) $(nproc)\rpoweroff -f\r");
    // The shell is there after about 10 s.
    let options = ["--harts", "2", "--sstc", "on", "--input", &typed, "--input-at", "1500000000"];
    shows(linux.run("linux-shell", &[], "exec sh\n", &options), &["BusyBox v", "~ # ", "\n42 riscv64 2\r\n"]);
}

/// The load generator's pings, 10 of 10, end the run.
const PINGS: &str = "loadgen:proto=ping;requests=10;warmup=0;patience=100s";
const ANSWERED: &str = "10 requests, 0 errors";

#[test]
fn linux_drives_virtio() {
    let Some(linux) = Linux::find() else { return };
    let disk = temporary("linux-disk.img", &(0..128u32 << 10).flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>());
    let modules = ["virtio_mmio", "virtio_blk", "failover", "net_failover", "virtio_net"];
    let then = "cat /sys/block/vda/size\ndd if=/dev/vda bs=64k skip=7 count=1 | hexdump -n 8 -e '2/4 \"%x \" \"\\n\"'\n\
                echo written | dd of=/dev/vda bs=512 seek=1000 conv=fsync\n\
                ifconfig eth0 10.0.2.15 up\nwhile true; do sleep 1; done\n";
    let net = format!("virtio,{PINGS}");
    let console = linux.run("linux-virtio", &modules, then, &["--disk", &disk, "--net", &net]);
    if console.is_none() {
        return;
    }
    // 64 KiB are 16384 words.
    shows(console, &["\n1024\r\n", "\n1c000 1c001", ANSWERED]);
    let after = fs::read(&disk).expect("the run left it");
    assert_eq!(&after[512_000..512_008], b"written\n");
}

#[test]
fn linux_lives_on_a_virtio_disk() {
    let Some(linux) = Linux::find() else { return };
    // The root file system: busybox and mount points.
    let tree = Path::new(env!("CARGO_TARGET_TMPDIR")).join("linux-root");
    for directory in ["bin", "dev", "proc"] {
        fs::create_dir_all(tree.join(directory)).expect("the target directory can be written");
    }
    // Copied, not written: the copy is executable as the original is.
    fs::copy(&linux.busybox_path, tree.join("bin/busybox")).expect("the target directory can be written");
    let disk = temporary("linux-root.img", &[]);
    let tree = tree.to_str().expect("a plain name");
    let made = Command::new("mke2fs").args(["-q", "-F", "-t", "ext4", "-d", tree, &disk, "8M"]).status();
    if !made.is_ok_and(|status| status.success()) {
        return skip("no mke2fs (Debian package e2fsprogs)");
    }
    let modules = ["virtio_mmio", "virtio_blk", "crc32c_generic", "crc16", "mbcache", "jbd2", "ext4"];
    let then = "mkdir /root\nmount -t ext4 /dev/vda /root\nexec switch_root /root /bin/busybox sh -c '\
                /bin/busybox mount -t proc none /proc; /bin/busybox grep vda /proc/mounts\n\
                echo kept > /file; /bin/busybox sync; /bin/busybox mount -o remount,ro /; /bin/busybox poweroff -f'\n";
    let console = linux.run("linux-disk", &modules, then, &["--disk", &disk]);
    if console.is_none() {
        return;
    }
    shows(console, &["/dev/vda / ext4 rw"]);
    let read = Command::new("debugfs").args(["-R", "cat /file", &disk]).output();
    assert!(read.is_ok_and(|output| output.stdout == b"kept\n"), "what the guest wrote is in the file");
}

#[test]
fn linux_drives_the_gem() {
    let Some(linux) = Linux::find() else { return };
    let modules = ["libphy", "fixed_phy", "fwnode_mdio", "of_mdio", "phylink", "macb"];
    let then = "dmesg | grep Cadence\nifconfig eth0 10.0.2.15 up\nwhile true; do sleep 1; done\n";
    let console = linux.run("linux-gem", &modules, then, &["--net", &format!("gem,{PINGS}"), "--ad", "hw"]);
    shows(console, &["Cadence GEM rev 0x10070109 at 0x10090000", ANSWERED]);
}
