//! The machine as `gdbstub` sees it: harts are threads, hart id + 1 is the thread id.
//!
//! Memory is what the selected hart would see at its privilege and `satp`, without permissions and without effects; only RAM
//! can be read, since a register of a device may change by being read.

use super::arch::{General, Register, Riscv};
use crate::Machine;
use crate::debug::{Debugger, Halt, Watch};
use crate::memory::PAGE_BYTES;
use crate::outcome::End;
use gdbstub::common::{Signal, Tid};
use gdbstub::target::ext::base::BaseOps;
use gdbstub::target::ext::base::multithread::{
    MultiThreadBase, MultiThreadResume, MultiThreadResumeOps, MultiThreadSchedulerLocking,
    MultiThreadSchedulerLockingOps, MultiThreadSingleStep, MultiThreadSingleStepOps,
};
use gdbstub::target::ext::base::single_register_access::{SingleRegisterAccess, SingleRegisterAccessOps};
use gdbstub::target::ext::breakpoints::{
    Breakpoints, BreakpointsOps, HwBreakpoint, HwBreakpointOps, HwWatchpoint, HwWatchpointOps, SwBreakpoint,
    SwBreakpointOps, WatchKind,
};
use gdbstub::target::ext::monitor_cmd::{ConsoleOutput, MonitorCmd, MonitorCmdOps, outputln};
use gdbstub::target::ext::thread_extra_info::{ThreadExtraInfo, ThreadExtraInfoOps};
use gdbstub::target::{Target, TargetError, TargetResult};
use std::convert::Infallible;
use std::num::NonZeroUsize;

/// Answer to an access outside RAM (`EFAULT`).
const FAULT: u8 = 14;

/// What `monitor help` tells.
const MONITOR: &str = "\
monitor cycles           simulated time
monitor stats            what each hart did
monitor snapshot FILE    saves the machine; soc restore FILE goes on from there
monitor until CYCLE      the next continue stops at this core cycle at the latest
monitor bind ADDR SATP   break- and watchpoints at ADDR count in the address space of SATP only; any for all
monitor binds            what is bound";

/// The thread id of a hart.
pub(super) fn tid(hart: usize) -> Tid {
    NonZeroUsize::MIN.saturating_add(hart)
}

pub(super) struct Debuggee<'a> {
    machine: &'a mut Machine,
    debugger: Debugger,
    /// Hart that the last resume names to go on, if it names one.
    continued: Option<usize>,
}

impl<'a> Debuggee<'a> {
    pub fn new(machine: &'a mut Machine) -> Self {
        Self { machine, debugger: Debugger::default(), continued: None }
    }

    pub fn run(&mut self) -> Halt {
        self.machine.run_debugged(&mut self.debugger)
    }

    /// gdb is gone, and its wishes with it.
    pub fn forget(&mut self) {
        self.debugger = Debugger::default();
    }

    pub fn exit_code(&self, end: End) -> u8 {
        self.machine.outcome(end).exit_code()
    }

    fn hart(&mut self, tid: Tid) -> Result<usize, TargetError<Infallible>> {
        let hart = tid.get() - 1;
        if hart < self.machine.harts().len() { Ok(hart) } else { Err(TargetError::NonFatal) }
    }

    fn save(&self, path: &str, out: &mut ConsoleOutput<'_>) {
        let saved = self.machine.snapshot().map_err(|error| error.to_string());
        let written = saved.and_then(|file| std::fs::write(path, file).map_err(|error| format!("{path}: {error}")));
        match written {
            Ok(()) => outputln!(out, "{path} written"),
            Err(reason) => outputln!(out, "{reason}"),
        }
    }

    /// RAM offset and length of the part of `len` bytes at `va` that lies in the first page.
    fn part(&mut self, hart: usize, va: u64, len: usize) -> Option<(u64, usize)> {
        let (harts, bus) = self.machine.harts_and_bus();
        let offset = harts[hart].look(&bus.ram, va)?;
        Some((offset, len.min((PAGE_BYTES - va % PAGE_BYTES) as usize)))
    }
}

impl Target for Debuggee<'_> {
    type Arch = Riscv;
    type Error = Infallible;

    fn base_ops(&mut self) -> BaseOps<'_, Riscv, Infallible> {
        BaseOps::MultiThread(self)
    }
    fn support_breakpoints(&mut self) -> Option<BreakpointsOps<'_, Self>> {
        Some(self)
    }
    fn support_monitor_cmd(&mut self) -> Option<MonitorCmdOps<'_, Self>> {
        Some(self)
    }
}

impl MultiThreadBase for Debuggee<'_> {
    fn read_registers(&mut self, registers: &mut General, tid: Tid) -> TargetResult<(), Self> {
        let hart = self.hart(tid)?;
        let hart = &self.machine.harts()[hart];
        registers.x.copy_from_slice(&hart.x[..32]);
        registers.pc = hart.pc;
        Ok(())
    }

    fn write_registers(&mut self, registers: &General, tid: Tid) -> TargetResult<(), Self> {
        let hart = self.hart(tid)?;
        self.machine.move_hart(hart, registers.pc);
        self.machine.harts()[hart].x[1..32].copy_from_slice(&registers.x[1..]);
        Ok(())
    }

    fn support_single_register_access(&mut self) -> Option<SingleRegisterAccessOps<'_, Tid, Self>> {
        Some(self)
    }

    fn read_addrs(&mut self, start: u64, data: &mut [u8], tid: Tid) -> TargetResult<usize, Self> {
        let hart = self.hart(tid)?;
        let mut done = 0;
        while done < data.len() {
            let at = start.wrapping_add(done as u64);
            let Some((offset, len)) = self.part(hart, at, data.len() - done) else { break };
            let Some(bytes) = self.machine.bus().ram.get(offset, len) else { break };
            data[done..done + len].copy_from_slice(bytes);
            done += len;
        }
        if done == 0 && !data.is_empty() { Err(TargetError::Errno(FAULT)) } else { Ok(done) }
    }

    fn write_addrs(&mut self, start: u64, data: &[u8], tid: Tid) -> TargetResult<(), Self> {
        let hart = self.hart(tid)?;
        let mut done = 0;
        while done < data.len() {
            let at = start.wrapping_add(done as u64);
            let (offset, len) = self.part(hart, at, data.len() - done).ok_or(TargetError::Errno(FAULT))?;
            if !self.machine.overwrite(offset, &data[done..done + len]) {
                return Err(TargetError::Errno(FAULT));
            }
            done += len;
        }
        Ok(())
    }

    fn list_active_threads(&mut self, register: &mut dyn FnMut(Tid)) -> Result<(), Infallible> {
        (0..self.machine.harts().len()).for_each(|hart| register(tid(hart)));
        Ok(())
    }

    fn support_resume(&mut self) -> Option<MultiThreadResumeOps<'_, Self>> {
        Some(self)
    }

    fn support_thread_extra_info(&mut self) -> Option<ThreadExtraInfoOps<'_, Self>> {
        Some(self)
    }
}

impl SingleRegisterAccess<Tid> for Debuggee<'_> {
    fn read_register(&mut self, tid: Tid, register: Register, buf: &mut [u8]) -> TargetResult<usize, Self> {
        let hart = self.hart(tid)?;
        let (harts, bus) = self.machine.harts_and_bus();
        let hart = &harts[hart];
        let value = match register {
            Register::X(number) => Some(hart.x[number]),
            Register::Pc => Some(hart.pc),
            Register::F(number) => Some(hart.f[number]),
            Register::Csr(number) => hart.csr_now(number, &bus.lines),
            Register::Privilege => Some(hart.privilege as u64),
        };
        let bytes = value.ok_or(TargetError::NonFatal)?.to_le_bytes();
        buf.get_mut(..bytes.len()).ok_or(TargetError::NonFatal)?.copy_from_slice(&bytes);
        Ok(bytes.len())
    }

    fn write_register(&mut self, tid: Tid, register: Register, value: &[u8]) -> TargetResult<(), Self> {
        let hart = self.hart(tid)?;
        let value = u64::from_le_bytes(value.try_into().map_err(|_| TargetError::NonFatal)?);
        match register {
            Register::X(0) => {}
            Register::X(number) => self.machine.harts()[hart].x[number] = value,
            Register::Pc => self.machine.move_hart(hart, value),
            // As an instruction would: none writes them while they are off.
            Register::F(number) if self.machine.harts()[hart].csrs.has_float() => {
                let hart = &mut self.machine.harts()[hart];
                hart.f[number] = value;
                hart.csrs.float_written();
            }
            // The rest is for looking only: a write has effects that belong to an instruction.
            Register::F(_) | Register::Csr(_) | Register::Privilege => return Err(TargetError::NonFatal),
        }
        Ok(())
    }
}

impl MultiThreadResume for Debuggee<'_> {
    fn resume(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
    fn clear_resume_actions(&mut self) -> Result<(), Infallible> {
        self.debugger.clear_resume();
        self.continued = None;
        Ok(())
    }
    fn set_resume_action_continue(&mut self, tid: Tid, _signal: Option<Signal>) -> Result<(), Infallible> {
        self.continued = Some(tid.get() - 1);
        Ok(())
    }
    fn support_single_step(&mut self) -> Option<MultiThreadSingleStepOps<'_, Self>> {
        Some(self)
    }
    fn support_scheduler_locking(&mut self) -> Option<MultiThreadSchedulerLockingOps<'_, Self>> {
        Some(self)
    }
}

impl MultiThreadSingleStep for Debuggee<'_> {
    fn set_resume_action_step(&mut self, tid: Tid, _signal: Option<Signal>) -> Result<(), Infallible> {
        self.debugger.step = Some(tid.get() - 1);
        Ok(())
    }
}

impl MultiThreadSchedulerLocking for Debuggee<'_> {
    fn set_resume_action_scheduler_lock(&mut self) -> Result<(), Infallible> {
        let named = self.debugger.step.or(self.continued);
        self.debugger.lock = named.filter(|&hart| hart < self.machine.harts().len());
        Ok(())
    }
}

impl ThreadExtraInfo for Debuggee<'_> {
    fn thread_extra_info(&self, tid: Tid, buf: &mut [u8]) -> Result<usize, Infallible> {
        let text = self.machine.hart_state(tid.get() - 1).unwrap_or_default();
        let len = text.len().min(buf.len());
        buf[..len].copy_from_slice(&text.as_bytes()[..len]);
        Ok(len)
    }
}

impl Breakpoints for Debuggee<'_> {
    fn support_sw_breakpoint(&mut self) -> Option<SwBreakpointOps<'_, Self>> {
        Some(self)
    }
    fn support_hw_breakpoint(&mut self) -> Option<HwBreakpointOps<'_, Self>> {
        Some(self)
    }
    fn support_hw_watchpoint(&mut self) -> Option<HwWatchpointOps<'_, Self>> {
        Some(self)
    }
}

impl SwBreakpoint for Debuggee<'_> {
    fn add_sw_breakpoint(&mut self, address: u64, _kind: usize) -> TargetResult<bool, Self> {
        self.debugger.breakpoints.insert(address);
        Ok(true)
    }
    fn remove_sw_breakpoint(&mut self, address: u64, _kind: usize) -> TargetResult<bool, Self> {
        Ok(self.debugger.breakpoints.remove(&address))
    }
}

impl HwBreakpoint for Debuggee<'_> {
    fn add_hw_breakpoint(&mut self, address: u64, kind: usize) -> TargetResult<bool, Self> {
        self.add_sw_breakpoint(address, kind)
    }
    fn remove_hw_breakpoint(&mut self, address: u64, kind: usize) -> TargetResult<bool, Self> {
        self.remove_sw_breakpoint(address, kind)
    }
}

/// Decimal, or hexadecimal with 0x.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn watch(address: u64, bytes: u64, kind: WatchKind) -> Watch {
    Watch { address, bytes, reads: kind != WatchKind::Write, writes: kind != WatchKind::Read }
}

impl HwWatchpoint for Debuggee<'_> {
    fn add_hw_watchpoint(&mut self, address: u64, len: u64, kind: WatchKind) -> TargetResult<bool, Self> {
        self.debugger.watches.push(watch(address, len, kind));
        Ok(true)
    }
    fn remove_hw_watchpoint(&mut self, address: u64, len: u64, kind: WatchKind) -> TargetResult<bool, Self> {
        let gone = watch(address, len, kind);
        let found = self.debugger.watches.iter().position(|watch| *watch == gone);
        Ok(found.map(|at| self.debugger.watches.remove(at)).is_some())
    }
}

impl MonitorCmd for Debuggee<'_> {
    fn handle_monitor_cmd(&mut self, command: &[u8], mut out: ConsoleOutput<'_>) -> Result<(), Infallible> {
        // The end is only a label here: figures are of now.
        let outcome = self.machine.outcome(End::CycleLimit);
        match command {
            b"cycles" => outputln!(out, "{} cycles, {} ns", outcome.cycles, outcome.time.as_ns()),
            b"stats" => outputln!(out, "{}", outcome.statistics().trim_end()),
            b"binds" => {
                for (address, satp) in &self.debugger.spaces {
                    outputln!(out, "{address:#x} in {satp:#x}");
                }
            }
            _ => {
                let text = String::from_utf8_lossy(command);
                let words: Vec<&str> = text.split_whitespace().collect();
                match (words.as_slice(), text.strip_prefix("snapshot ")) {
                    (_, Some(path)) => self.save(path.trim(), &mut out),
                    (["until", cycle], _) => match number(cycle) {
                        Some(cycle) => self.debugger.until = Some(cycle),
                        None => outputln!(out, "{cycle} is no cycle"),
                    },
                    (["bind", address, space], _) => match (number(address), number(space)) {
                        (Some(address), Some(satp)) => drop(self.debugger.spaces.insert(address, satp)),
                        (Some(address), None) if *space == "any" => drop(self.debugger.spaces.remove(&address)),
                        _ => outputln!(out, "{address} or {space} is no number"),
                    },
                    _ => outputln!(out, "{MONITOR}"),
                }
            }
        }
        Ok(())
    }
}
