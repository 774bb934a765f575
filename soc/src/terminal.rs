//! Typing at the machine's serial port: standard input, byte by byte, and simulated time held to the host's.
//!
//! On a terminal, keys come raw and unechoed, so that Ctrl-C reaches the guest; Ctrl-A is the escape: then `x` ends the machine, `a` or
//! Ctrl-A types a Ctrl-A, `h` tells. The terminal is set back when the [`Terminal`] goes. A pipe's bytes are passed on as they are.
//!
//! What is typed and when is not part of a configuration: such a run is not deterministic.

use crate::devices::uart::{Keyboard, Typed};
use crate::time::SimTime;
use crate::wire::pace::Pace;
use std::io::{self, IsTerminal, Read, Write};
use std::sync::mpsc::{Receiver, TryRecvError, channel};

/// Exit code after Ctrl-A x: as a shell reports a process ended by an interrupt.
pub const QUIT: u32 = 130;
const CTRL_A: u8 = 1;
const HELP: &str = "\r\nsoc: Ctrl-A x ends the machine, Ctrl-A a types a Ctrl-A, Ctrl-A h tells this\r\n";

/// Standard input as a keyboard.
pub struct Terminal {
    bytes: Receiver<Vec<u8>>,
    escape: Option<Escape>,
    pace: Pace,
    _raw: Option<RawMode>,
}

impl Terminal {
    /// Takes standard input over. Error: the terminal cannot be set to raw mode.
    pub fn open() -> io::Result<Self> {
        let is_terminal = io::stdin().is_terminal();
        let raw = if is_terminal { Some(RawMode::enter()?) } else { None };
        let (sender, bytes) = channel();
        // The only thread beside the machine's; it waits in `read` and ends with the process.
        std::thread::spawn(move || {
            let mut buffer = [0; 256];
            while let Ok(count @ 1..) = io::stdin().lock().read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Ok(Self { bytes, escape: is_terminal.then(Escape::default), pace: Pace::default(), _raw: raw })
    }
}

impl Keyboard for Terminal {
    fn poll(&mut self, now: SimTime) -> Typed {
        loop {
            match self.bytes.try_recv() {
                Ok(bytes) => {
                    let Some(escape) = &mut self.escape else { return Typed::Bytes(bytes) };
                    return escape.filter(&bytes);
                }
                Err(TryRecvError::Disconnected) => return Typed::Closed,
                Err(TryRecvError::Empty) if self.pace.brake(now) => {}
                Err(TryRecvError::Empty) => return Typed::Bytes(Vec::new()),
            }
        }
    }
}

/// What Ctrl-A does.
#[derive(Default)]
struct Escape {
    armed: bool,
}

impl Escape {
    fn filter(&mut self, bytes: &[u8]) -> Typed {
        let mut out = Vec::new();
        for &byte in bytes {
            match (core::mem::take(&mut self.armed), byte) {
                (false, CTRL_A) => self.armed = true,
                (false, _) => out.push(byte),
                (true, b'x' | b'X') => return Typed::Quit(QUIT),
                (true, b'a' | CTRL_A) => out.push(CTRL_A),
                (true, _) => {
                    let _ = io::stderr().write_all(HELP.as_bytes());
                }
            }
        }
        Typed::Bytes(out)
    }
}

/// Raw input of the terminal at standard input, until dropped.
#[cfg(unix)]
struct RawMode {
    before: rustix::termios::Termios,
}

#[cfg(unix)]
impl RawMode {
    fn enter() -> io::Result<Self> {
        use rustix::termios::{OptionalActions, OutputModes, tcgetattr, tcsetattr};
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        // Output stays cooked: a guest's bare line feed begins a new line.
        raw.output_modes |= OutputModes::OPOST | OutputModes::ONLCR;
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        Ok(Self { before })
    }
}

#[cfg(unix)]
impl Drop for RawMode {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        let _ = rustix::termios::tcsetattr(io::stdin(), rustix::termios::OptionalActions::Now, &self.before);
    }
}

/// Other hosts: lines as they are typed.
#[cfg(not(unix))]
struct RawMode;

#[cfg(not(unix))]
impl RawMode {
    fn enter() -> io::Result<Self> {
        Ok(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ctrl_a_is_the_escape() {
        let mut escape = Escape::default();
        assert_eq!(escape.filter(b"ab\x03\x01"), Typed::Bytes(b"ab\x03".to_vec()));
        assert_eq!(escape.filter(b"ac\x01\x01d"), Typed::Bytes(b"\x01c\x01d".to_vec()), "across two reads");
        assert_eq!(escape.filter(b"x\x01hy"), Typed::Bytes(b"xy".to_vec()));
        assert_eq!(escape.filter(b"z\x01xq"), Typed::Quit(QUIT));
    }
}
