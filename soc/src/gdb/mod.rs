//! A gdb server: the machine behind gdb's remote serial protocol.
//!
//! [`GdbServer`] owns the socket and drives `gdbstub`'s state machine; [`arch`] says which registers there are; [`target`]
//! answers for the machine. Simulated time stands still whenever gdb has the machine stopped, also before it connects.

mod arch;
mod link;
mod target;

use crate::debug::{Halt, Stop};
use crate::outcome::{End, Outcome};
use crate::{Machine, SocError};
use gdbstub::common::Signal;
use gdbstub::conn::Connection;
use gdbstub::stub::state_machine::GdbStubStateMachine as State;
use gdbstub::stub::{DisconnectReason, GdbStub, MultiThreadStopReason};
use gdbstub::target::ext::breakpoints::WatchKind;
use link::Link;
use std::net::{SocketAddr, TcpListener};
use target::{Debuggee, tid};

/// Where gdb is waited for if nothing else is said.
pub const DEFAULT_ADDRESS: &str = "127.0.0.1:1234";

/// A socket on which one gdb is waited for.
pub struct GdbServer {
    listener: TcpListener,
}

impl GdbServer {
    /// Listens at `address`, HOST:PORT; port 0 takes a free one. Errors: [`SocError::Debugger`].
    pub fn listen(address: &str) -> Result<Self, SocError> {
        let refused =
            |error: std::io::Error| SocError::Debugger { reason: format!("cannot listen at {address}: {error}") };
        Ok(Self { listener: TcpListener::bind(address).map_err(refused)? })
    }

    /// The address listened at. Errors: [`SocError::Debugger`].
    pub fn address(&self) -> Result<SocketAddr, SocError> {
        self.listener.local_addr().map_err(lost)
    }

    /// Waits for gdb and runs `machine` as it says. After a detach, or when the connection is lost, the machine runs on
    /// without it. None: gdb killed the machine. Errors: [`SocError::Debugger`].
    pub fn serve(self, machine: &mut Machine) -> Result<Option<Outcome>, SocError> {
        let (stream, _) = self.listener.accept().map_err(lost)?;
        let link = Link::new(stream).map_err(lost)?;
        let mut debuggee = Debuggee::new(machine);
        let stub = GdbStub::new(link).run_state_machine(&mut debuggee).map_err(lost)?;
        let end = match converse(stub, &mut debuggee)? {
            Parted::Ended(end) => end,
            Parted::Killed => return Ok(None),
            Parted::Left => {
                debuggee.forget();
                run_to_end(&mut debuggee)
            }
        };
        Ok(Some(machine.outcome(end)))
    }
}

/// How a session came to its end.
enum Parted {
    Ended(End),
    Killed,
    Left,
}

fn lost(error: impl std::fmt::Display) -> SocError {
    SocError::Debugger { reason: error.to_string() }
}

fn run_to_end(debuggee: &mut Debuggee) -> End {
    loop {
        if let Halt::End(end) = debuggee.run() {
            return end;
        }
    }
}

fn converse<'a>(mut state: State<'a, Debuggee<'a>, Link>, debuggee: &mut Debuggee<'a>) -> Result<Parted, SocError> {
    let mut ended = None;
    loop {
        state = match state {
            State::Idle(mut idle) => match idle.borrow_conn().wait() {
                Some(byte) => idle.incoming_data(debuggee, byte).map_err(lost)?,
                None => return Ok(Parted::Left),
            },
            State::CtrlCInterrupt(stub) => {
                let reason = Some(MultiThreadStopReason::Signal(Signal::SIGINT));
                stub.interrupt_handled(debuggee, reason).map_err(lost)?
            }
            State::Running(mut running) => match running.borrow_conn().poll() {
                Err(_) => return Ok(Parted::Left),
                Ok(Some(byte)) => running.incoming_data(debuggee, byte).map_err(lost)?,
                Ok(None) => {
                    let halt = debuggee.run();
                    if let Halt::End(end) = halt {
                        ended = Some(end);
                    }
                    match stop_reason(debuggee, halt) {
                        Some(reason) => running.report_stop(debuggee, reason).map_err(lost)?,
                        None => running.into(),
                    }
                }
            },
            State::Disconnected(mut gone) => {
                // gdb may have gone without reading the last word.
                let _ = gone.borrow_conn().flush();
                return Ok(match (ended, gone.get_reason()) {
                    (Some(end), _) => Parted::Ended(end),
                    (None, DisconnectReason::Kill) => Parted::Killed,
                    (None, _) => Parted::Left,
                });
            }
        };
    }
}

/// What gdb is told; none if the machine just goes on.
fn stop_reason(debuggee: &Debuggee, halt: Halt) -> Option<MultiThreadStopReason<u64>> {
    Some(match halt {
        Halt::End(end) => MultiThreadStopReason::Exited(debuggee.exit_code(end)),
        Halt::Stop(Stop::Quantum) => return None,
        Halt::Stop(Stop::Moment) => MultiThreadStopReason::Signal(Signal::SIGTRAP),
        Halt::Stop(Stop::Breakpoint { hart }) => MultiThreadStopReason::SwBreak(tid(hart)),
        Halt::Stop(Stop::Stepped { hart }) => {
            MultiThreadStopReason::SignalWithThread { tid: tid(hart), signal: Signal::SIGTRAP }
        }
        Halt::Stop(Stop::Watchpoint { hart, watch }) => {
            let kind = match (watch.reads, watch.writes) {
                (true, true) => WatchKind::ReadWrite,
                (true, false) => WatchKind::Read,
                _ => WatchKind::Write,
            };
            MultiThreadStopReason::Watch { tid: tid(hart), kind, addr: watch.address }
        }
    })
}
