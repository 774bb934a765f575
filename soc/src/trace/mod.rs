//! `--trace`: what the harts and the wire did, on one time line.
//!
//! ```text
//!   hart 0   [space 3 ··][Call ··········][space 5 ···][user interrupt][space 5]    `wfi` inside the kernel's slice
//!                              ├ SBI IPI ┤             ▲
//!   hart 1   [space 7 ······][uipi][space 7 ········]      │ arrows: from `uipi` to the handler that it started, and from a
//!                                                      sender's system call to the receiver that goes on ([`messages`])
//!   wire     [118 bytes]  [118 bytes]
//! ```
//!
//! The tracer is a [`Debug`] that never stops anything: it looks at a hart before each of its blocks and writes down what has
//! changed since the last look. So a traced run has the cycles and the digest of a plain one.
//!
//! A hart's slices: one for the time in a program, named by its address space (numbered as they appear; Rocket has no ASIDs); one
//! for each stay in the kernel, named by what led there; inside it those of the firmware. Programs are not told apart by more than
//! their address space: names of processes are the guest's own business.

mod messages;
pub(crate) mod names;
mod perfetto;

use std::collections::HashMap;
use std::io;

use serde_json::json;

use crate::bus::Bus;
use crate::debug::{Debug, Stop};
use crate::hart::Hart;
use crate::hart::exec::Flow;
use crate::outcome::Privilege;
use crate::wire::link::{Direction, FrameLog};
use messages::Messages;
use perfetto::{Arguments, Group, Trace, Track};

/// Cause of an environment call from U-mode.
const SYSTEM_CALL: u64 = 8;

/// How deep a slice lies: a program, its handler of user interrupts, the kernel, the firmware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Program,
    Handler,
    Kernel,
    Firmware,
}

/// What was seen of a hart at the last look.
#[derive(Default)]
struct Seen {
    privilege: Option<Privilege>,
    traps: u64,
    user_interrupts: u64,
    sends: u64,
    idle: u64,
    root: u64,
    open: Vec<Level>,
}

/// Writes what happens between two cycles.
pub(crate) struct Tracer {
    trace: Trace,
    from: u64,
    to: u64,
    harts: Vec<Seen>,
    frames: FrameLog,
    /// `uipi` that no handler has answered, by receiver: hart and cycle.
    under_way: HashMap<u64, Vec<(usize, u64)>>,
    messages: Messages,
    arrows: u64,
    /// Address spaces in the order of their first appearance, by `satp`.
    spaces: HashMap<u64, usize>,
}

impl Tracer {
    /// A tracer of `harts` harts and of the frames in `frames`, for the cycles `from` to `to`.
    pub fn new(out: Box<dyn io::Write>, harts: usize, frames: FrameLog, from: u64, to: u64) -> Self {
        let mut trace = Trace::new(out);
        for number in 0..harts {
            trace.name(Track { group: Group::Harts, number }, "harts", &format!("hart {number}"));
        }
        for direction in [Direction::FromNic, Direction::ToNic] {
            let name = if direction == Direction::FromNic { "sent" } else { "received" };
            trace.name(wire(direction), "wire", name);
        }
        let harts = (0..harts).map(|_| Seen::default()).collect();
        Self {
            trace,
            from,
            to,
            harts,
            frames,
            under_way: HashMap::new(),
            messages: Messages::default(),
            arrows: 0,
            spaces: HashMap::new(),
        }
    }

    /// Ends the slices that are open at `cycle`, and the file. Errors: of writing.
    pub fn finish(mut self, cycle: u64) -> io::Result<()> {
        self.write_frames();
        for number in 0..self.harts.len() {
            self.close(number, Level::Program, cycle.min(self.to));
        }
        self.trace.finish()
    }

    fn write_frames(&mut self) {
        for frame in self.frames.drain() {
            let name = format!("{} bytes", frame.bytes);
            self.trace.slice(wire(frame.direction), frame.start.as_ps(), frame.end.as_ps(), &name, Arguments::new());
        }
    }

    fn look(&mut self, hart: &Hart) {
        let (id, now) = (hart.id, hart.clock);
        let track = Track { group: Group::Harts, number: id };
        let statistics = &hart.statistics;
        let seen = &mut self.harts[id];

        let sends = core::mem::replace(&mut seen.sends, statistics.uipi_sent);
        let idle = core::mem::replace(&mut seen.idle, statistics.idle_cycles);
        if idle < statistics.idle_cycles && !seen.open.is_empty() {
            let cycles = statistics.idle_cycles - idle;
            let ps = |cycle: u64| crate::board::at_cycle(cycle).as_ps();
            self.trace.slice(track, ps(now.saturating_sub(cycles)), ps(now), "wfi", Arguments::new());
        }
        let traps = statistics.exceptions + statistics.interrupts;
        let trapped = core::mem::replace(&mut seen.traps, traps) != traps;
        let interrupts = core::mem::replace(&mut seen.user_interrupts, statistics.user_interrupts);
        let handler = interrupts != statistics.user_interrupts;
        let before = seen.privilege.replace(hart.privilege);
        let moved = before != Some(hart.privilege);
        // The kernel changes the address space on the way out; a look at every block would see it earlier.
        let root = core::mem::replace(&mut seen.root, hart.csrs.satp);
        let back = hart.csrs.mstatus & crate::hart::csr::status::UIE != 0 && seen.open.last() == Some(&Level::Handler);

        if sends < statistics.uipi_sent {
            self.sent(track, now, hart.uipi_sent_to);
        }
        let receiver = hart.csrs.suirs & 0xFFFF;
        match hart.privilege {
            Privilege::U if handler => {
                self.open_to(id, Level::Handler, now, "user interrupt", Arguments::new());
                for from in self.under_way.remove(&receiver).unwrap_or_default() {
                    self.arrow("uipi", from, (id, now));
                }
            }
            Privilege::U if moved || trapped || root != hart.csrs.satp => {
                let next = self.spaces.len() + 1;
                let name = format!("space {}", self.spaces.entry(hart.csrs.satp).or_insert(next));
                self.open_to(id, Level::Program, now, &name, Arguments::new());
                if let Some(sent) = self.messages.resumed(hart) {
                    self.arrow("message", (sent.hart, sent.cycle), (id, now));
                }
            }
            Privilege::U if back => self.close(id, Level::Handler, now),
            Privilege::S if trapped || moved && before < Some(Privilege::S) => {
                let (name, args) = kernel_entry(hart);
                self.close(id, Level::Program, now);
                self.open_to(id, Level::Kernel, now, &name, args);
                if hart.csrs.scause == SYSTEM_CALL {
                    self.messages.called(hart);
                }
            }
            Privilege::S if moved => {
                self.close(id, Level::Firmware, now);
                if self.harts[id].open.is_empty() {
                    self.open_to(id, Level::Kernel, now, "kernel", Arguments::new());
                }
            }
            Privilege::M if trapped || moved => {
                if before == Some(Privilege::U) {
                    self.close(id, Level::Program, now);
                }
                let name = match hart.csrs.mcause {
                    9 => names::firmware_call(hart.x[17]),
                    cause if trapped => names::trap(cause),
                    _ => "firmware".to_owned(),
                };
                self.open_to(id, Level::Firmware, now, &name, Arguments::new());
            }
            _ => {}
        }
    }

    fn sent(&mut self, track: Track, now: u64, receiver: u64) {
        let mut args = Arguments::new();
        args.insert("receiver".into(), json!(receiver));
        self.trace.instant(track, now, "uipi", args);
        self.under_way.entry(receiver).or_default().push((track.number, now));
    }

    /// An arrow between two slices of harts. It is written when both its ends are known, so that none hangs in the air.
    fn arrow(&mut self, name: &str, from: (usize, u64), to: (usize, u64)) {
        let track = |number| Track { group: Group::Harts, number };
        self.arrows += 1;
        self.trace.arrow_from(track(from.0), from.1, name, self.arrows);
        self.trace.arrow_to(track(to.0), to.1, name, self.arrows);
    }

    /// Begins a slice at `level`, inside those that lie less deep.
    fn open_to(&mut self, hart: usize, level: Level, now: u64, name: &str, args: Arguments) {
        self.close(hart, level, now);
        self.trace.begin(Track { group: Group::Harts, number: hart }, now, name, args);
        self.harts[hart].open.push(level);
    }

    /// Ends the slices at `level` and deeper.
    fn close(&mut self, hart: usize, level: Level, now: u64) {
        while self.harts[hart].open.pop_if(|open| *open >= level).is_some() {
            self.trace.end(Track { group: Group::Harts, number: hart }, now);
        }
    }
}

/// Name and arguments of the kernel's slice: what led there, for a system call with its capability and message.
fn kernel_entry(hart: &Hart) -> (String, Arguments) {
    let mut args = Arguments::new();
    let name = match hart.csrs.scause {
        SYSTEM_CALL => {
            args.insert("capability".into(), json!(hart.x[10]));
            args.insert("label".into(), json!(hart.x[11] >> 12));
            args.insert("length".into(), json!(hart.x[11] & 0x7F));
            names::system_call(hart.x[17])
        }
        cause => {
            if cause >> 63 == 0 {
                args.insert("address".into(), json!(format!("{:#x}", hart.csrs.stval)));
            }
            names::trap(cause)
        }
    };
    args.insert("pc".into(), json!(format!("{:#x}", hart.csrs.sepc)));
    (name, args)
}

fn wire(direction: Direction) -> Track {
    Track { group: Group::Wire, number: direction as usize }
}

impl Debug for Tracer {
    const ACTIVE: bool = true;

    fn before(&mut self, hart: &Hart, _bus: &Bus) -> Result<u64, Stop> {
        if (self.from..self.to).contains(&hart.clock) {
            self.look(hart);
        } else if hart.clock >= self.to {
            self.close(hart.id, Level::Program, self.to);
        }
        Ok(u64::MAX)
    }

    fn after(&mut self, _hart: &Hart, _flow: Flow) {}

    fn between(&mut self, _now: u64, _bus: &Bus) -> Option<Stop> {
        self.write_frames();
        None
    }

    fn only(&self) -> Option<usize> {
        None
    }
}
