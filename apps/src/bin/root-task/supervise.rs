//! After the start: lines, exits and faults of the programs, until the main ones have left.

use crate::channel;
use crate::failure::Result;
use crate::fault;
use crate::machine;
use crate::memory::Memory;
use crate::process::{self, OnFault};
use crate::system::System;
use userlib::MessageInfo;
use userlib::ipc_buffer;
use userlib::println;
use userlib::rt::console;
use userlib::supervisor::{ACCUSE, EXIT, PARK, PRINT, PRINT_MAX, SERVER_GONE};
use userlib::syscall::{self, Received};

/// How often a program may start before its faults end the machine.
const MOST_STARTS: u32 = 100;

impl System {
    /// Serves the programs for ever; the machine ends when it is time.
    pub fn supervise(mut self, mut memory: Memory) -> ! {
        loop {
            let message = self.supervisor.recv();
            if message.badge == channel::GONE {
                syscall::reply(MessageInfo::new(SERVER_GONE, 0, 0, 0), [0; 4]);
            }
            let Some((index, thread)) = process::of_badge(message.badge) else { continue };
            match message.info.label() {
                PRINT => print(&message),
                EXIT => self.exit(&mut memory, index, message.words[0] as i32),
                // Not answering keeps the thread blocked.
                PARK => {}
                ACCUSE => self.accuse(&mut memory, index, message.words[0]),
                _ => self.fault(&mut memory, index, thread, &message),
            }
        }
    }

    fn exit(&mut self, memory: &mut Memory, index: usize, code: i32) {
        let process = &mut self.processes[index];
        process.stop();
        process.exited = Some(code);
        if code != 0 {
            println!("root: {} left with code {code}", process.name);
        }
        self.end_if_done();
        self.bury(memory, index);
    }

    /// The program `accuser` says that the other end of a channel has broken the protocol.
    fn accuse(&mut self, memory: &mut Memory, accuser: usize, channel: u64) {
        let Some(link) = self.links.iter().find(|link| link.index == channel) else { return };
        let Some(index) = link.accused(accuser) else { return };
        let (process, accuser) = (&self.processes[index], &self.processes[accuser]);
        if process.exited.is_some() {
            return;
        }
        println!("fault: {} broke the protocol of channel {}, says {}", process.name, link.name, accuser.name);
        process.stop();
        self.after_fault(memory, index);
    }

    fn fault(&mut self, memory: &mut Memory, index: usize, thread: usize, message: &Received) {
        let process = &self.processes[index];
        process.stop();
        if process.exited.is_some() {
            return; // in its last rites: nothing more can be done for it
        }
        fault::report(memory, process, thread, message);
        self.after_fault(memory, index);
    }

    fn after_fault(&mut self, memory: &mut Memory, index: usize) {
        let process = &mut self.processes[index];
        match process.on_fault {
            OnFault::Stop => machine::end(1),
            OnFault::Continue => {
                process.exited = Some(0);
                println!("root: {} is stopped, the others go on", process.name);
                self.end_if_done();
                self.bury(memory, index);
            }
            OnFault::Restart => self.restart(memory, index),
        }
    }

    /// Tells the peers of a program that will never run again.
    fn bury(&self, memory: &mut Memory, index: usize) {
        self.close(memory, index);
        let diverted = self.links.iter().try_for_each(|link| link.divert(index, self.supervisor));
        self.complain(index, diverted.and_then(|()| self.processes[index].give_last_rites()));
    }

    /// Tells the peers of a program that has stopped: ends what it has promised them.
    fn close(&self, memory: &mut Memory, index: usize) {
        for link in &self.links {
            self.complain(index, link.bury(memory, index));
        }
        self.complain(index, self.processes[index].answer_saved(memory));
    }

    fn complain(&self, index: usize, result: Result<()>) {
        if let Err(failure) = result {
            println!("root: {}: closing a channel: {failure}", self.processes[index].name);
        }
    }

    /// Starts a stopped program from its beginning, in the memory and with the capabilities that it had.
    fn restart(&mut self, memory: &mut Memory, index: usize) {
        self.close(memory, index);
        let process = &mut self.processes[index];
        if process.starts == MOST_STARTS {
            println!("root: {} has faulted too often", process.name);
            machine::end(1)
        }
        if let Err(failure) = process.reset(memory).and_then(|()| process.start()) {
            println!("root: {} cannot start again: {failure}", process.name);
            machine::end(1)
        }
        process.starts += 1;
        println!("root: {} starts again", process.name);
    }

    /// Ends the machine if every main program has left: with the first code that is not 0, if there is one.
    fn end_if_done(&self) {
        let mut codes = self.processes.iter().filter(|process| process.main).map(|process| process.exited);
        if codes.clone().all(|code| code.is_some()) {
            let code = codes.find_map(|code| code.filter(|&code| code != 0)).unwrap_or(0);
            // The finisher takes 16 bits; a code that has none of them set is still a failure.
            let low = code as u32 & 0xFFFF;
            machine::end(if code != 0 && low == 0 { 1 } else { low });
        }
    }
}

/// Prints a piece of output. Its length is the program's word: it is cut to what the message holds.
fn print(message: &Received) {
    let words = message.info.length().saturating_sub(1);
    let size = (message.words[0] as usize).min(PRINT_MAX).min(words * 8);
    for index in 0..size {
        let word = index / 8 + 1;
        let word = message.words.get(word).copied().unwrap_or_else(|| ipc_buffer::message_word(word));
        console::write_byte((word >> (index % 8 * 8)) as u8);
    }
}
