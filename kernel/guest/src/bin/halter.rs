//! Makes the one debug system call that this machine does not have. seL4 prints and halts there; a kernel with debug assertions panics,
//! which is how the report of a panic is tested. `spin = "yes"`: stays in user mode, to be seen in that report.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod program {
    use kernel_guest::trap::system_call;
    use userlib::{Env, println, syscall};

    userlib::program!(main);

    fn main(env: &'static Env, _: usize) {
        if env.arg("spin").is_some() {
            println!("{}: spinning", env.name());
            loop {
                core::hint::spin_loop();
            }
        }
        (0..100).for_each(|_| syscall::yield_now());
        println!("{}: asking for DebugSendIPI", env.name());
        system_call([0, 0, 0, 0, 0, 0, 0, abi::syscall::DEBUG_SEND_IPI as u64], 0xFEED, 1);
        println!("{}: nothing happened", env.name());
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("halter is a guest program; run it with `cargo run -p images -- run halter`");
}
