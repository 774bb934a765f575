//! A program that disturbs those that it supervises, at random times, in every way that a system may: it moves them to other harts, stops them
//! for a while, revokes what was derived from their peer's doorbell (the sender-table entry by which `uipi.send` reaches it), takes that doorbell
//! away for a while, and kills them. Whatever they do for each other must not suffer from it.
//!
//! What it takes it gives back, and rings: who was to be woken meanwhile was not, as its peer could not. That is the one thing that a supervisor
//! owes which takes a doorbell away.
//!
//! Arguments: `acts`, what it does, from `move stop revoke take kill`; `seed`; `pause`, microseconds between two acts at most; `peer`, the slot of the peer's doorbell in the supervised programs; `harts`,
//! where it moves them, from 0; `deaths`, how often it kills at most, `mortal`, whom, and `rest`,
//! microseconds for which it leaves the killed one alive, to start again.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
extern crate alloc;

#[cfg(target_os = "none")]
mod program {
    use abi::register;
    use alloc::vec::Vec;
    use apps::random::Random;
    use core::cell::Cell;
    use libipc::Executor;
    use libipc::executor::Timers;
    use libipc::port::{GuestClock, GuestPort};
    use userlib::cap::{CPtr, Error, Notification, Rights, Slot, slot};
    use userlib::env::Supervised;
    use userlib::{Env, println, time};

    userlib::program!(main);

    /// Acts between two lines about them.
    const REPORT: u64 = 64;

    /// What it does, in the order in which it counts.
    const ACTS: [&str; 5] = ["move", "stop", "revoke", "take", "kill"];

    struct Disturber<'a> {
        random: Random,
        timers: &'a Timers<'a>,
        /// Ticks.
        pause: u64,
        peer: u64,
        harts: u64,
        deaths: u64,
        mortal: &'static str,
        /// Ticks.
        rest: u64,
        /// When it may kill again.
        next_death: Cell<u64>,
        /// What it may do.
        acts: Vec<&'static str>,
        /// How often it did what.
        counts: [Cell<u64>; ACTS.len()],
    }

    fn main(env: &'static Env, _: usize) {
        let port = GuestPort::from_env(env);
        let clock = GuestClock::from_env(env);
        let timers = Timers::new(&clock);
        let targets: Vec<Supervised> = env.supervised().collect();
        let disturber = Disturber {
            // The schedule has its part in it, so that each schedule is disturbed in a way of its own.
            random: Random::new(env.arg_or("seed", 1) ^ time::cycles()),
            timers: &timers,
            pause: timers.ticks(env.arg_or("pause", 500)),
            peer: env.arg_or("peer", 16),
            harts: env.arg_or("harts", 1),
            deaths: env.arg_or("deaths", 0),
            mortal: env.arg("mortal").unwrap_or(""),
            rest: timers.ticks(env.arg_or("rest", 10_000)),
            next_death: Cell::new(0),
            acts: env.arg("acts").unwrap_or("move stop revoke take kill").split(' ').collect(),
            counts: Default::default(),
        };
        let executor = Executor::new(1);
        executor.attach(&timers);
        let disturb = async {
            for target in &targets {
                disturber.keep(target).expect("the doorbell is there");
            }
            for act in 1u64.. {
                disturber.sleep().await;
                let target = &targets[disturber.random.below(targets.len() as u64) as usize];
                if let Err(error) = disturber.act(target).await {
                    panic!("{}: {error}", target.name);
                }
                if act.is_multiple_of(REPORT) {
                    let [moves, stops, revocations, takings, deaths] = disturber.counts.each_ref().map(Cell::get);
                    println!(
                        "{}: {moves} moves, {stops} stops, {revocations} revocations, {takings} takings, {deaths} deaths",
                        env.name()
                    );
                }
            }
        };
        if executor.spawn(disturb).is_err() {
            unreachable!("the executor has a place for one task");
        }
        executor.run(&port);
    }

    impl Disturber<'_> {
        async fn sleep(&self) {
            self.timers.sleep(self.random.below(self.pause) + 1).await;
        }

        /// Makes a copy of the target's doorbell capability, to ring with.
        fn keep(&self, target: &Supervised) -> Result<(), Error> {
            kept(target).copy(target.cnode.slot(self.peer), Rights::ALL)
        }

        async fn act(&self, target: &Supervised) -> Result<(), Error> {
            let doorbell = target.cnode.slot(self.peer);
            let act = self.acts[self.random.below(self.acts.len() as u64) as usize];
            match act {
                "move" => target.tcb.set_affinity(self.random.below(self.harts))?,
                "stop" => {
                    target.tcb.suspend()?;
                    self.sleep().await;
                    target.tcb.resume()?;
                }
                "revoke" => {
                    // The own copy goes with the rest.
                    doorbell.revoke()?;
                    self.keep(target)?;
                }
                "take" => {
                    let taken = slot::CNODE.slot(target.spare + 1);
                    taken.take(doorbell)?;
                    self.sleep().await;
                    doorbell.take(taken)?;
                    Notification(CPtr(target.spare)).signal();
                }
                "kill" => {
                    let may = self.counts[4].get() < self.deaths && self.timers.now() >= self.next_death.get();
                    if target.name != self.mortal || !may {
                        return Ok(());
                    }
                    self.next_death.set(self.timers.now() + self.rest);
                    // It goes on at an address where nothing is.
                    let mut context = target.tcb.read_registers(true)?;
                    context.0[register::PC] = 0;
                    target.tcb.write_registers(&context, true)?;
                }
                other => panic!("there is no act \"{other}\""),
            }
            for (name, counter) in ACTS.iter().zip(&self.counts) {
                counter.set(counter.get() + u64::from(*name == act));
            }
            Ok(())
        }
    }

    fn kept(target: &Supervised) -> Slot {
        slot::CNODE.slot(target.spare)
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("disturber is a guest program; run it with `cargo run -p images -- run disturb`");
}
