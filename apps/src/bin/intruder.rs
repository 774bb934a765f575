//! A program that tries what it has no right to. Each attempt must be refused by the kernel or fault.
//!
//! Argument `attempt`:
//!
//! | attempt | what | expected |
//! |---|---|---|
//! | `read`, `write`, `execute` | the address `address`, at which another program has memory | VM fault |
//! | `receive` | receives on slot `slot`, where another program has its endpoint | capability fault |
//! | `call` | calls slot `slot` | refused: invalid capability |
//! | `priority` | raises its own priority | refused: out of range |
//! | `overwrite` | writes its own code | VM fault |
//! | `overflow` | calls itself until its stack is used up | VM fault |
//! | `receiver` | reads which receiver of user interrupts its hart has (`suirs`) | illegal instruction |
//! | `panic` | panics | fault after the message |
//!
//! It prints what it is about to do, and what was refused. Getting through is a failure: exit code 1.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod program {
    use userlib::cap::{CPtr, Code, Endpoint, Error, slot};
    use userlib::{Env, MessageInfo, println, syscall};

    userlib::program!(main);

    fn main(env: &'static Env, _: usize) -> i32 {
        let name = env.name();
        let attempt = env.arg("attempt").unwrap_or_default();
        let address = number(env, "address") as usize;
        let target = CPtr(number(env, "slot"));
        println!("{name}: trying to {attempt}");
        match attempt {
            "read" => {
                // SAFETY: none; this read is to fault, and the word is not used.
                let word = unsafe { (address as *const u64).read_volatile() };
                println!("{name}: read {word:#x}");
            }
            // SAFETY: none; this write is to fault.
            "write" => unsafe { (address as *mut u64).write_volatile(0x1BAD) },
            // SAFETY: none; the address is memory that can be read, and the first fetch is to fault.
            "execute" => unsafe {
                (address as *const u64).read_volatile();
                core::mem::transmute::<usize, fn()>(address)()
            },
            // SAFETY: none; code is mapped without the right to write.
            "overwrite" => unsafe { (main as *const () as *mut u8).write_volatile(0) },
            "overflow" => println!("{name}: {} bytes deep", sink(1)),
            "receive" => drop(syscall::recv(target)),
            "call" => {
                let reply = Endpoint(target).call(MessageInfo::new(1, 0, 0, 0), [0; 4]);
                if Code::from_label(reply.info.label()) == Some(Code::InvalidCapability) {
                    println!("{name}: refused: invalid capability");
                    return 0;
                }
            }
            "priority" => match slot::TCB.set_priority(slot::TCB, 255) {
                Err(Error { code: Code::RangeError, .. }) => {
                    println!("{name}: refused: out of range");
                    return 0;
                }
                other => println!("{name}: {other:?}"),
            },
            // SAFETY: none; the register is the kernel's, and reading it is to fault.
            "receiver" => unsafe { core::arch::asm!("csrr {}, 0x1b1", out(reg) _) },
            "panic" => panic!("as asked"),
            _ => println!("{name}: it does not know how"),
        }
        println!("{name}: got through");
        1
    }

    /// Uses 64 bytes more of the stack at each depth, touching them all.
    fn sink(depth: u64) -> u64 {
        let room = core::hint::black_box([depth; 8]);
        if depth == 1 << 20 { depth } else { sink(depth + 1) + room[7] }
    }

    fn number(env: &Env, key: &str) -> u64 {
        let word = env.arg(key).unwrap_or("0");
        u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap_or(0)
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("intruder is a guest program; run it with `cargo run -p images -- run isolation`");
}
