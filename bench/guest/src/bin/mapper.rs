//! Maps and unmaps pages of its own: by a system call each (`way = "trap"`), or by `depth` coroutines whose invocations go through the
//! system-call ring (`way = "ring"`). Prints the cycles of `rounds` pairs after `warmup` pairs.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod program {
    use core::cell::Cell;

    use libipc::Executor;
    use libipc::port::GuestPort;
    use libipc::syscall_ring::SyscallRing;
    use userlib::cap::{Attributes, CPtr, Code, Error, Frame, ObjectType, PageTable, Request, Result, Rights, slot};
    use userlib::env::Env;
    use userlib::{println, time};

    userlib::program!(main);

    /// Behind everything that the image builder maps, under one page table.
    const WINDOW: u64 = 0x7F00_0000;
    const PAGE: u64 = 4096;

    fn frame(env: &Env, page: u64) -> Frame {
        Frame(CPtr(env.reply_slots().first + page))
    }

    fn to_map(env: &Env, page: u64) -> Request<3, 1> {
        frame(env, page).to_map(slot::VSPACE, WINDOW + page * PAGE, Rights::READ_WRITE, Attributes::ExecuteNever)
    }

    /// Makes `count` frames, and the page tables above the window.
    fn make_pages(env: &Env, count: u64) -> Result<()> {
        let Some(memory) = env.untyped() else { panic!("the manifest gives no untyped memory") };
        let mut next = env.reply_slots().first;
        memory.untyped.retype(ObjectType::Frame, slot::CNODE.slot(next), count)?;
        next += count;
        while let Err(error) = to_map(env, 0).call() {
            let Error { code: Code::FailedLookup, .. } = error else { return Err(error) };
            memory.untyped.retype(ObjectType::PageTable, slot::CNODE.slot(next), 1)?;
            PageTable(CPtr(next)).map(slot::VSPACE, WINDOW)?;
            next += 1;
        }
        frame(env, 0).unmap()
    }

    fn main(env: &'static Env, _: usize) {
        let depth: u64 = env.arg_or("depth", 1);
        let (warmup, rounds) = (env.arg_or("warmup", 256), env.arg_or("rounds", 1024));
        if let Err(error) = make_pages(env, depth) {
            panic!("cannot make pages: {error}");
        }
        let cycles = match env.arg("way") {
            Some("trap") => by_traps(env, depth, warmup, rounds),
            Some("ring") => by_ring(env, depth, warmup, rounds),
            way => panic!("way = {way:?} is unknown"),
        };
        println!("@{{\"depth\":{depth},\"rounds\":{rounds},\"cycles\":{cycles}}}");
    }

    fn by_traps(env: &Env, depth: u64, warmup: u64, rounds: u64) -> u64 {
        let pair = |round: u64| {
            let page = round % depth;
            if let Err(error) = to_map(env, page).call().and_then(|_| frame(env, page).unmap()) {
                panic!("a page cannot be mapped and unmapped: {error}");
            }
        };
        (0..warmup).for_each(pair);
        let start = time::cycles();
        (0..rounds).for_each(pair);
        time::cycles() - start
    }

    fn by_ring(env: &Env, depth: u64, warmup: u64, rounds: u64) -> u64 {
        let port = GuestPort::from_env(env);
        let Some(ring) = SyscallRing::from_env(env) else { panic!("the manifest gives no system-call ring") };
        let (left, start) = (Cell::new(warmup + rounds), Cell::new(0));
        let executor = Executor::new(depth as usize);
        executor.attach(&ring);
        for page in 0..depth {
            let (ring, left, start) = (&ring, &left, &start);
            let task = async move {
                while left.get() > 0 {
                    if left.get() == rounds {
                        start.set(time::cycles());
                    }
                    left.set(left.get() - 1);
                    if let Err(error) = ring.invoke(to_map(env, page)).await {
                        panic!("a page cannot be mapped: {error}");
                    }
                    if let Err(error) = ring.invoke(frame(env, page).to_unmap()).await {
                        panic!("a page cannot be unmapped: {error}");
                    }
                }
            };
            if executor.spawn(task).is_err() {
                unreachable!("the executor has a place for each task");
            }
        }
        executor.run(&port);
        time::cycles() - start.get()
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("mapper is a guest program; run it with `cargo run --release -p bench -- ipc`");
}
