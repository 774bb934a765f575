//! Debug and benchmark system calls, and the report of a thread that faults without a handler.

use core::fmt::{self, Write};

use abi::error::Error;
use abi::message::MAX_LENGTH;
use abi::{ipc_buffer, syscall};

use super::fault::Fault;
use crate::arch::register::{A0, PC};
use crate::arch::{Arch, Current};
use crate::mem::Ref;
use crate::object::tcb::{NAME_BYTES, Tcb};
use crate::state::{Kernel, Next};
use crate::{cspace, log, thread, utilisation};

/// `core::fmt` on the kernel's console.
struct Console<'a>(&'a mut Current);

impl Write for Console<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().for_each(|byte| self.0.put_char(byte));
        Ok(())
    }
}

/// Prints on the kernel's console.
pub fn print(k: &mut Kernel, text: fmt::Arguments<'_>) {
    // The console takes every byte.
    let _ = Console(&mut k.arch).write_fmt(text);
}

/// The name of a thread, as far as it goes.
pub struct Name(pub [u8; NAME_BYTES]);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().take_while(|&&byte| byte != 0).try_for_each(|&byte| f.write_char(char::from(byte)))
    }
}

/// A debug or benchmark system call that this kernel has; `None` if it is unknown. The scheduler does not run.
pub fn handle(k: &mut Kernel, number: isize) -> Option<Next> {
    let current = k.current();
    let argument = k.get(current).context.x[A0];
    match number {
        syscall::DEBUG_PUT_CHAR if k.config.printing => k.arch.put_char(argument as u8),
        syscall::DEBUG_DUMP_SCHEDULER if k.config.printing => dump(k),
        syscall::DEBUG_HALT if k.config.printing => k.arch.halt(),
        syscall::DEBUG_CAP_IDENTIFY if k.config.printing => {
            let kind = cspace::lookup_slot(k, current, argument).map_or(0, |slot| k.cap(slot).kind() as u64);
            k.get_mut(current).context.x[A0] = kind;
        }
        syscall::DEBUG_SNAPSHOT if k.config.printing => super::snapshot::print_all(k),
        syscall::DEBUG_NAME_THREAD if k.config.printing => name_thread(k, current, argument),
        syscall::DEBUG_SEND_IPI if k.config.printing && k.config.labels == abi::label::Table::Smp => {
            // A build with debug assertions shows here how the kernel panics.
            debug_assert!(false, "debug call: this machine has no DebugSendIPI");
            print(k, format_args!("debug call: this machine has no DebugSendIPI, halting\n"));
            k.arch.halt()
        }
        syscall::DEBUG_GET_THREAD_AFFINITY if k.config.printing && k.config.labels == abi::label::Table::Smp => {
            let thread = thread_argument(k, current, argument);
            let core = k.get(thread).core;
            k.get_mut(current).context.x[A0] = u64::from(core);
        }
        syscall::BENCHMARK_FLUSH_CACHES | syscall::BENCHMARK_NULL_SYSCALL if k.config.benchmarks => {}
        syscall::BENCHMARK_RESET_LOG | syscall::BENCHMARK_FINALIZE_LOG if k.config.benchmarks => {
            let answer = match number {
                _ if !k.config.entries => 0,
                syscall::BENCHMARK_RESET_LOG if log::reset(k) => 0,
                syscall::BENCHMARK_RESET_LOG => Error::IllegalOperation as u64,
                _ => log::count(k),
            };
            k.get_mut(current).context.x[A0] = answer;
            match number {
                _ if !k.config.utilisation => {}
                syscall::BENCHMARK_RESET_LOG => utilisation::begin(k),
                _ => utilisation::end(k),
            }
        }
        syscall::BENCHMARK_SET_LOG_BUFFER if k.config.entries => {
            let answer = if log::set_frame(k, argument) { 0 } else { Error::IllegalOperation as u64 };
            k.get_mut(current).context.x[A0] = answer;
        }
        _ if k.config.utilisation => return handle_utilisation(k, number),
        _ => return None,
    }
    Some(Next::Run(current))
}

/// The calls of kernels that track utilisation.
fn handle_utilisation(k: &mut Kernel, number: isize) -> Option<Next> {
    let current = k.current();
    let thread =
        cspace::lookup_slot(k, current, k.get(current).context.x[A0]).ok().and_then(|slot| k.cap(slot).object());
    match (number, thread) {
        (syscall::BENCHMARK_GET_THREAD_UTILISATION, Some(thread)) => {
            let words = utilisation::report(k, thread);
            if let Some(buffer) = thread::buffer(k, current, true) {
                for (index, &word) in words.iter().enumerate() {
                    k.set_buffer_word(buffer, ipc_buffer::MESSAGE + index, word);
                }
            }
        }
        (syscall::BENCHMARK_RESET_THREAD_UTILISATION, Some(thread)) => utilisation::reset(k, thread),
        // No thread: nothing to say.
        (syscall::BENCHMARK_GET_THREAD_UTILISATION | syscall::BENCHMARK_RESET_THREAD_UTILISATION, None) => {}
        (syscall::BENCHMARK_DUMP_ALL_THREADS_UTILISATION, _) if k.config.printing => dump_utilisation(k),
        (syscall::BENCHMARK_RESET_ALL_THREADS_UTILISATION, _) if k.config.printing => {
            let mut next = k.threads;
            while let Some(thread) = next {
                utilisation::reset(k, thread);
                next = k.get(thread).all_next;
            }
        }
        _ => return None,
    }
    Some(Next::Run(current))
}

/// One line for each thread.
fn dump_utilisation(k: &mut Kernel) {
    let mut next = k.threads;
    while let Some(thread) = next {
        let [cycles, schedules, kernel_cycles, entries, ..] = utilisation::report(k, thread);
        let name = Name(k.get(thread).name);
        print(
            k,
            format_args!(
                "'{name}': {cycles} cycles, {schedules} schedules, {kernel_cycles} in the kernel, {entries} entries\n"
            ),
        );
        next = k.get(thread).all_next;
    }
}

/// The thread of a debug call; anything else ends the machine, as in seL4.
fn thread_argument(k: &mut Kernel, caller: Ref<Tcb>, cptr: u64) -> Ref<Tcb> {
    match cspace::lookup_slot(k, caller, cptr).ok().and_then(|slot| k.cap(slot).object()) {
        Some(thread) => thread,
        None => {
            print(k, format_args!("debug call: capability {cptr:#x} is no thread, halting\n"));
            k.arch.halt()
        }
    }
}

fn name_thread(k: &mut Kernel, caller: Ref<Tcb>, cptr: u64) {
    let named = thread_argument(k, caller, cptr);
    let Some(buffer) = thread::buffer(k, caller, false) else {
        print(k, format_args!("debug name: no IPC buffer, halting\n"));
        k.arch.halt()
    };
    let mut name = [0; NAME_BYTES];
    let words = (0..MAX_LENGTH).map(|index| k.buffer_word(buffer, ipc_buffer::MESSAGE + index));
    let length = words.flat_map(u64::to_le_bytes).enumerate().find_map(|(index, byte)| {
        if let Some(place) = name.get_mut(index) {
            *place = byte;
        }
        (byte == 0).then_some(index)
    });
    if length.is_none() {
        print(k, format_args!("debug name: it has no end, halting\n"));
        k.arch.halt()
    }
    name[NAME_BYTES - 1] = 0;
    k.get_mut(named).name = name;
}

fn dump(k: &mut Kernel) {
    for core in 0..k.arch.cores() {
        let state = &k.cores[core];
        let current = state.current.map(|thread| Name(k.get(thread).name));
        let text = current.unwrap_or(Name([0; NAME_BYTES]));
        let ready: [bool; 256] = core::array::from_fn(|priority| state.is_ready(priority as u8));
        print(k, format_args!("core {core}: runs '{text}'\n"));
        for priority in (0..=255u8).rev().filter(|&p| ready[usize::from(p)]) {
            let mut next = k.queues[core][usize::from(priority)].head;
            while let Some(thread) = next {
                let tcb = k.get(thread);
                let (name, state, pc) = (Name(tcb.name), tcb.state, tcb.context.x[PC]);
                next = tcb.ready_next;
                print(k, format_args!("  priority {priority}: '{name}' {state:?} pc {pc:#x}\n"));
            }
        }
    }
}

/// Says on the console why a thread stops for good.
pub fn report_double_fault(k: &mut Kernel, thread: Ref<Tcb>, fault: Fault) {
    if k.config.printing {
        let tcb = k.get(thread);
        let (name, pc) = (Name(tcb.name), tcb.context.x[PC]);
        print(k, format_args!("kernel: thread '{name}' stops, fault without handler: {fault:?} pc {pc:#x}\n"));
    }
}
