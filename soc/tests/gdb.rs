//! `soc run --gdb`: a scripted client speaks the remote serial protocol, and the real gdb where it is installed.

mod guest;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::Duration;

const ENTRY: u64 = 0x8000_0000;
/// A loop that stores its counter, then the end of the machine with code 42.
const PROGRAM: [u32; 13] = [
    0x0000_0297, // 00  auipc t0, 0
    0x1002_8293, // 04  addi  t0, t0, 0x100
    0x0000_0313, // 08  li    t1, 0
    0x0030_0393, // 0c  li    t2, 3
    0x0013_0313, // 10  addi  t1, t1, 1
    0x0062_b023, // 14  sd    t1, 0(t0)
    0xfe73_1ce3, // 18  bne   t1, t2, 10
    0x0010_0537, // 1c  lui   a0, 0x100
    0x002a_35b7, // 20  lui   a1, 0x2a3
    0x3335_8593, // 24  addi  a1, a1, 0x333
    0x00b5_2023, // 28  sw    a1, 0(a0)
    0x0000_006f, // 2c  j     2c
    0,
];
const COUNTER: u64 = ENTRY + 0x100;
const LOOP: u64 = ENTRY + 0x10;

/// PROGRAM as an executable.
fn program(name: &str) -> PathBuf {
    let code: Vec<u8> = PROGRAM.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut out = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    out.extend([2, 0, 243, 0, 1, 0, 0, 0]);
    out.extend(ENTRY.to_le_bytes());
    out.extend(64u64.to_le_bytes());
    out.extend([0; 12]);
    out.extend([64, 0, 56, 0, 1, 0, 64, 0, 0, 0, 0, 0]);
    out.extend([1, 0, 0, 0, 5, 0, 0, 0]);
    for word in [120, ENTRY, ENTRY, code.len() as u64, 0x200, 4] {
        out.extend(word.to_le_bytes());
    }
    out.extend(code);
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, out).expect("the target directory can be written");
    path
}

/// A machine that waits for gdb.
struct Served {
    child: Child,
    stderr: BufReader<ChildStderr>,
    address: String,
}

fn serve(elf: &Path, more: &[&str]) -> Served {
    let mut served = start(elf, &[&["--gdb=127.0.0.1:0"], more].concat());
    served.find_address();
    served
}

fn start(elf: &Path, more: &[&str]) -> Served {
    let mut child = Command::new(env!("CARGO_BIN_EXE_soc"))
        .args(["run", "--digest"])
        .args(more)
        .arg(elf)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command was built with this test");
    let stderr = BufReader::new(child.stderr.take().expect("it is piped"));
    Served { child, stderr, address: String::new() }
}

impl Served {
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stderr.read_line(&mut line).expect("the command speaks");
        line
    }

    fn find_address(&mut self) {
        self.address = self.line().trim().rsplit(' ').next().expect("a line has a last word").to_owned();
    }

    /// Exit code and the rest of standard error.
    fn end(mut self) -> (Option<i32>, String) {
        let mut text = String::new();
        self.stderr.read_to_string(&mut text).expect("standard error is text");
        (self.child.wait().expect("the child is ours").code(), text)
    }
}

fn plain(elf: &Path, more: &[&str]) -> (Option<i32>, String) {
    let run = Command::new(env!("CARGO_BIN_EXE_soc")).args(["run", "--digest"]).args(more).arg(elf).output();
    let Output { status, stderr, .. } = run.expect("the command was built with this test");
    (status.code(), String::from_utf8(stderr).expect("standard error is text"))
}

/// A client of the remote serial protocol.
struct Client(TcpStream);

impl Client {
    fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).expect("the machine listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout can be set");
        Self(stream)
    }

    fn send(&mut self, body: &str) {
        let sum = body.bytes().fold(0u8, u8::wrapping_add);
        write!(self.0, "${body}#{sum:02x}").expect("the machine reads");
    }

    fn receive(&mut self) -> String {
        let mut byte = || {
            let mut one = [0];
            self.0.read_exact(&mut one).expect("the machine answers");
            one[0]
        };
        while byte() != b'$' {}
        let mut body = Vec::new();
        loop {
            match byte() {
                b'#' => break,
                // Run-length encoding: the character before, (count - 29) more times.
                b'*' => {
                    let (count, last) = (byte() - 29, *body.last().expect("something to repeat"));
                    body.extend((0..count).map(|_| last));
                }
                other => body.push(other),
            }
        }
        byte();
        byte();
        self.0.write_all(b"+").expect("the machine reads");
        String::from_utf8(body).expect("answers to this client are text")
    }

    #[track_caller]
    fn ask(&mut self, body: &str) -> String {
        self.send(body);
        self.receive()
    }

    #[track_caller]
    fn expect(&mut self, body: &str, answer: &str) {
        let got = self.ask(body);
        assert!(got.starts_with(answer), "{body}: {got}");
    }

    fn register(&mut self, number: u64) -> u64 {
        let hex = self.ask(&format!("p{number:x}"));
        u64::from_str_radix(&hex, 16).unwrap_or_else(|_| panic!("register {number}: {hex}")).swap_bytes()
    }

    fn word(&mut self, address: u64) -> u64 {
        let hex = self.ask(&format!("m{address:x},8"));
        u64::from_str_radix(&hex, 16).unwrap_or_else(|_| panic!("memory {address:#x}: {hex}")).swap_bytes()
    }
}

#[test]
fn scripted_session() {
    let served = serve(&program("gdb-scripted.elf"), &["--harts", "2"]);
    let mut gdb = Client::connect(&served.address);
    gdb.ask("qSupported:swbreak+;hwbreak+;vContSupported+");
    gdb.expect("qfThreadInfo", "m01,02");
    gdb.expect("Hg1", "OK");
    assert_eq!((gdb.register(32), gdb.register(65 + 0xF14)), (ENTRY, 0), "pc, mhartid");
    assert_eq!(gdb.register(65 + 4096), 3, "machine mode");
    assert_eq!(gdb.word(ENTRY) as u32, PROGRAM[0]);
    // Step hart 0 alone: hart 1 stands still.
    gdb.expect("vCont;s:1", "T05");
    gdb.expect("Hg1", "OK");
    assert_eq!((gdb.register(32), gdb.register(5)), (ENTRY + 4, ENTRY));
    gdb.expect("Hg2", "OK");
    assert_eq!(gdb.register(32), ENTRY);
    // A breakpoint in the middle of a block, hit and passed.
    gdb.expect(&format!("Z0,{LOOP:x},4"), "OK");
    gdb.expect("vCont;c:1", "T05");
    gdb.expect("Hg1", "OK");
    assert_eq!((gdb.register(32), gdb.register(6)), (LOOP, 0));
    assert_eq!(gdb.word(LOOP) as u32, PROGRAM[4], "guest memory is not patched");
    gdb.expect("vCont;c:1", "T05");
    gdb.expect("Hg1", "OK");
    assert_eq!((gdb.register(32), gdb.register(6), gdb.word(COUNTER)), (LOOP, 1, 1));
    gdb.expect(&format!("z0,{LOOP:x},4"), "OK");
    // The next store is seen before its instruction, as gdb expects on RISC-V, and passed.
    gdb.expect(&format!("Z2,{COUNTER:x},8"), "OK");
    let stop = gdb.ask("vCont;c:1");
    assert!(stop.contains("watch:"), "{stop}");
    gdb.expect("Hg1", "OK");
    assert_eq!((gdb.register(32), gdb.register(6), gdb.word(COUNTER)), (LOOP + 4, 2, 1));
    gdb.expect("vCont;c:1", "T05");
    gdb.expect("Hg1", "OK");
    assert_eq!((gdb.register(32), gdb.register(6), gdb.word(COUNTER)), (LOOP + 4, 3, 2));
    gdb.expect(&format!("z2,{COUNTER:x},8"), "OK");
    // Outside RAM: refused, and no device is touched.
    gdb.expect("m10000000,1", "E");
    gdb.expect("D", "OK");
    assert_eq!(served.end().0, Some(42));
}

/// gdb that only watches changes nothing, also when it interrupts; and it learns the exit code.
#[test]
fn same_digest_under_gdb() {
    let elf = guest::program("contention");
    for mode in ["fast", "timed"] {
        let options = ["--harts", "4", "--mode", mode];
        let served = serve(&elf, &options);
        let mut gdb = Client::connect(&served.address);
        gdb.ask("qSupported:swbreak+;vContSupported+");
        gdb.send("vCont;c");
        // An interrupt before the end: the stop is SIGINT.
        std::thread::sleep(Duration::from_millis(5));
        gdb.0.write_all(&[3]).expect("the machine reads");
        let stop = gdb.receive();
        if stop.starts_with("T02") || stop.starts_with("S02") {
            let all = gdb.ask("g");
            assert!(all.len() >= 33 * 16, "{all}");
            gdb.expect("vCont;c", "W00");
        } else {
            assert_eq!(stop, "W00");
        }
        drop(gdb);
        assert_eq!(served.end(), plain(&elf, &options), "{mode}");
    }
}

#[test]
fn kill_and_lost_connections() {
    let elf = program("gdb-parted.elf");
    let served = serve(&elf, &[]);
    Client::connect(&served.address).send("vKill;1");
    assert_eq!(served.end().0, Some(137));
    let served = serve(&elf, &[]);
    drop(Client::connect(&served.address));
    assert_eq!(served.end().0, Some(42), "the machine runs on alone");
}

#[test]
fn floating_point_registers_and_a_watch_right_behind_a_step() {
    let served = serve(&program("gdb-steps.elf"), &[]);
    let mut gdb = Client::connect(&served.address);
    gdb.ask("qSupported:swbreak+;hwbreak+;vContSupported+");
    let description = gdb.ask("qXfer:features:read:target.xml:0,fff");
    assert!(description.contains("org.gnu.gdb.riscv.fpu") && description.contains("fs11"), "{description}");
    assert_eq!(gdb.register(33 + 10), 0, "fa0");
    gdb.expect(&format!("P{:x}=0100000000000000", 33 + 10), "E");
    // Onto the store, and the watch only then.
    for _ in 0..4 {
        gdb.expect("vCont;s:1", "T05");
    }
    // As gdb steps.
    gdb.expect(&format!("Z0,{:x},4", LOOP + 4), "OK");
    gdb.expect("vCont;c:1", "T05");
    gdb.expect(&format!("z0,{:x},4", LOOP + 4), "OK");
    assert_eq!((gdb.register(32), gdb.word(COUNTER)), (LOOP + 4, 0));
    gdb.expect(&format!("Z2,{COUNTER:x},8"), "OK");
    let stop = gdb.ask("vCont;c:1");
    assert!(stop.contains("watch:"), "{stop}");
    assert_eq!((gdb.register(32), gdb.word(COUNTER)), (LOOP + 4, 0), "the very next store is not missed");
    gdb.expect(&format!("z2,{COUNTER:x},8"), "OK");
    gdb.expect("vCont;c:1", "W2a");
    assert_eq!(served.end().0, Some(42));
}

/// `switch` runs two user programs at one address; a bound breakpoint stops one of them only.
#[test]
fn breakpoints_of_one_address_space() {
    const USER_AT: u64 = 0x1_0000;
    let served = serve(&guest::program("switch"), &["--max-cycles", "400000"]);
    let mut gdb = Client::connect(&served.address);
    gdb.ask("qSupported:swbreak+;hwbreak+;vContSupported+");
    let monitor = |gdb: &mut Client, command: &str| {
        gdb.send(&format!("qRcmd,{}", command.bytes().map(|byte| format!("{byte:02x}")).collect::<String>()));
        let mut text = Vec::new();
        loop {
            let answer = gdb.receive();
            let Some(hex) = answer.strip_prefix('O').filter(|rest| *rest != "K") else { break };
            text.extend(
                hex.as_bytes()
                    .chunks(2)
                    .map(|two| u8::from_str_radix(std::str::from_utf8(two).expect("hex"), 16).expect("hex")),
            );
        }
        String::from_utf8(text).expect("text")
    };
    const SATP: u64 = 65 + 0x180;
    gdb.expect(&format!("Z0,{USER_AT:x},4"), "OK");
    let mut spaces = Vec::new();
    while spaces.len() < 2 {
        gdb.expect("vCont;c:1", "T05");
        let space = gdb.register(SATP);
        if !spaces.contains(&space) {
            spaces.push(space);
        }
    }
    monitor(&mut gdb, &format!("bind {USER_AT:#x} {:#x}", spaces[1]));
    assert_eq!(monitor(&mut gdb, "binds"), format!("{USER_AT:#x} in {:#x}\n", spaces[1]));
    for _ in 0..4 {
        gdb.expect("vCont;c:1", "T05");
        assert_eq!((gdb.register(32), gdb.register(SATP)), (USER_AT, spaces[1]));
    }
    gdb.expect(&format!("z0,{USER_AT:x},4"), "OK");
    let help = monitor(&mut gdb, "help");
    assert!(help.contains("monitor bind ADDR SATP") && help.lines().count() >= 5, "{help}");
    // A cycle to stop at.
    monitor(&mut gdb, "until 300000");
    gdb.expect("vCont;c:1", "S05");
    let now = monitor(&mut gdb, "cycles");
    assert!(now.starts_with("3000"), "{now}");
    gdb.send("vKill;1");
    assert_eq!(served.end().0, Some(137));
}

#[test]
fn a_failing_guest_waits_for_gdb() {
    let elf = program("gdb-trouble.elf");
    let mut served = start(&elf, &["--break-on-panic=127.0.0.1:0"]);
    let told = served.line();
    assert_eq!(told, "soc: the guest is about to end with code 42\n");
    served.find_address();
    let mut gdb = Client::connect(&served.address);
    gdb.ask("qSupported:swbreak+;hwbreak+;vContSupported+");
    assert_eq!((gdb.register(32), gdb.register(6)), (ENTRY + 0x2c, 3), "the machine is as it was");
    gdb.expect("vCont;c:1", "W2a");
    assert_eq!(served.end().0, Some(42));
}

#[test]
fn real_gdb() {
    if Command::new("gdb-multiarch").arg("--version").output().is_err() {
        // Not by the print macros: the test runner hides those of a test that passes.
        let _ = writeln!(std::io::stderr(), "SKIPPED: gdb-multiarch is not installed; no session with the real gdb");
        return;
    }
    let elf = program("gdb-real.elf");
    let served = serve(&elf, &["--harts", "2"]);
    let script = [
        format!("target remote {}", served.address),
        "info threads".to_owned(),
        format!("break *{LOOP:#x}"),
        "continue".to_owned(),
        "printf \"at %#lx t1 %d priv %d hart %d\\n\", $pc, $t1, $priv, $mhartid".to_owned(),
        "delete".to_owned(),
        format!("watch *(long *){COUNTER:#x}"),
        "continue".to_owned(),
        "printf \"changed before %#lx\\n\", $pc".to_owned(),
        format!("printf \"counter %d\\n\", *(long *){COUNTER:#x}"),
        "stepi".to_owned(),
        "printf \"stepped to %#lx\\n\", $pc".to_owned(),
        // A watch set when the next instruction is the store.
        "delete".to_owned(),
        "stepi".to_owned(),
        format!("watch *(long *){COUNTER:#x}"),
        "continue".to_owned(),
        "printf \"again before %#lx\\n\", $pc".to_owned(),
        format!("printf \"then %d\\n\", *(long *){COUNTER:#x}"),
        "monitor cycles".to_owned(),
        "monitor stats".to_owned(),
        "delete".to_owned(),
        "continue".to_owned(),
    ];
    let mut gdb = Command::new("gdb-multiarch");
    gdb.args(["-nx", "-batch", "-ex", "set architecture riscv:rv64", "-ex", "set pagination off"]);
    gdb.args(script.iter().flat_map(|line| ["-ex", line]));
    let output = gdb.output().expect("it was just started");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    for wanted in [
        "hart 1: M-mode, running",
        "at 0x80000010 t1 0 priv 3 hart",
        "stepped to 0x80000010",
        "changed before 0x80000018",
        "counter 1",
        "again before 0x80000018",
        "then 2",
        " cycles, ",
        "user-interrupts 0",
        "exited with code 052",
    ] {
        assert!(text.contains(wanted), "{wanted}:\n{text}");
    }
    assert_eq!(served.end().0, Some(42));
}
