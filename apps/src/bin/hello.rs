//! The smallest program: one line on the console.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod program {
    use userlib::{Env, println};

    userlib::program!(main);

    fn main(env: &'static Env, thread: usize) {
        let greeting = env.arg("greeting").unwrap_or("hello");
        println!("{}: {greeting} from hart {}, thread {thread}", env.name(), env.hart());
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("hello is a guest program; run it with `cargo run -p images -- run hello`");
}
