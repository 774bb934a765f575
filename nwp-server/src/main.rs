//! The network server as a program: its devices, its clients, its tasks.
//!
//! One thread, one executor. `drive` moves frames; as many `worker`s as requests can be in flight serve the clients.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod program {
    extern crate alloc;

    use alloc::vec::Vec;
    use core::cell::RefCell;
    use core::fmt;

    use drivers::axinic::{self, Coalesce, Link};
    use drivers::goldfish_rtc::GoldfishRtc;
    use drivers::{AxiNic, DmaRegion, Mmio};
    use libipc::executor::Events;
    use libipc::port::GuestPort;
    use libipc::{Executor, OpenError, Server};
    use nwp_server::config::{BadArgument, Config, DESCRIPTORS};
    use nwp_server::drive::{Clock, Interrupts, NoAlarm, drive};
    use nwp_server::serve::worker;
    use nwp_server::{Nic, Stack};
    use smoltcp::wire::EthernetAddress;
    use userlib::env::{Device, Role, Transport};
    use userlib::{Env, println};

    userlib::program!(main);

    /// Why the server cannot start.
    enum Failure {
        Argument(BadArgument<'static>),
        Missing(&'static str),
        DmaAddress(userlib::cap::Error),
        Nic(axinic::Error),
        NoLink,
        Channels(OpenError),
    }

    impl fmt::Display for Failure {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match self {
                Self::Argument(argument) => argument.fmt(f),
                Self::Missing(what) => write!(f, "the manifest grants no {what}"),
                Self::DmaAddress(error) => write!(f, "physical address of the DMA memory: {error}"),
                Self::Nic(error) => write!(f, "network interface: {error}"),
                Self::NoLink => f.write_str("no link within five seconds"),
                Self::Channels(error) => error.fmt(f),
            }
        }
    }

    fn main(env: &'static Env, _: usize) -> Result<(), Failure> {
        let clock = Clock::new(env.timebase_hz(), userlib::time::ticks);
        let engine = env.device("xlnx,axi-dma-1.00.a").ok_or(Failure::Missing("xlnx,axi-dma-1.00.a"))?;
        let mac = env.device("xlnx,axi-ethernet-1.00.a").ok_or(Failure::Missing("xlnx,axi-ethernet-1.00.a"))?;
        let station = mac.property("local-mac-address").and_then(|bytes| bytes.try_into().ok()).map(EthernetAddress);
        let config = Config::from_args(station, |key| env.arg(key)).map_err(Failure::Argument)?;
        let nic = open_nic(env, &config, &engine, &mac, &clock)?;
        let rtc = env.device("google,goldfish-rtc");
        let mut interrupts: Vec<_> = engine.interrupts().collect();
        let device = interrupts.len();
        interrupts.extend(rtc.iter().flat_map(Device::interrupts));

        let bits: Vec<u32> = interrupts.iter().map(|interrupt| interrupt.bit).collect();
        let pass_next = |index: usize| {
            // Fails only if the slot holds no handler, and then no interrupt came from it.
            let _ = interrupts[index].handler.ack();
        };
        // Sequence numbers start where the clock happens to be.
        let stack = RefCell::new(Stack::new(nic, &config, userlib::time::cycles(), clock.now()));
        let port = GuestPort::from_env(env);
        let server = Server::from_env(env, &port).map_err(Failure::Channels)?;
        let events = Events::new();
        let workers = requests_in_flight(env);
        let executor = Executor::new(workers + 1);
        executor.attach(&server);
        executor.attach(&events);

        let interrupts = Interrupts { events: &events, bits: &bits, device, pass_next: &pass_next };
        let driver = async {
            let Err(error) = match &rtc {
                Some(rtc) => drive(&stack, interrupts, GoldfishRtc::new(window(rtc)), &clock).await,
                None => drive(&stack, interrupts, NoAlarm, &clock).await,
            };
            panic!("network interface: {error}");
        };
        executor.spawn(driver).expect("the pool was made for all of them");
        for _ in 0..workers {
            executor.spawn(worker(&server, &stack)).expect("the pool was made for all of them");
        }
        println!("{}: {} on {}", env.name(), config.address, config.mac);
        executor.run(&port);
        Ok(())
    }

    /// The registers of a device of this program; to be called once for each.
    fn window(device: &Device) -> Mmio {
        // SAFETY: the environment says that these are the registers of the device, mapped for this program alone; each window is
        // made once.
        unsafe { Mmio::new(device.registers.address, device.registers.size) }
    }

    /// Starts the NIC and waits for its link.
    fn open_nic(
        env: &Env,
        config: &Config,
        engine: &Device,
        mac: &Device,
        clock: &Clock,
    ) -> Result<Nic<Mmio>, Failure> {
        let dma = env.dma().ok_or(Failure::Missing("DMA memory"))?;
        let physical = dma.frame(0).physical_address().map_err(Failure::DmaAddress)?;
        // SAFETY: the environment says that the root task has mapped `dma.region` contiguously from the first frame's address, for this
        // program alone; it is used nowhere else.
        let mut region = unsafe { DmaRegion::new(dma.region.address, physical, dma.region.size) };
        let settings = axinic::Config {
            mac_address: config.mac.0,
            rx_descriptors: DESCRIPTORS,
            tx_descriptors: DESCRIPTORS,
            rx_interrupt: Coalesce::EACH,
        };
        let nic = AxiNic::new(window(engine), window(mac), &mut region, settings).map_err(Failure::Nic)?;
        let mut nic = Nic::new(nic, &mut region).map_err(Failure::Nic)?;
        let deadline = clock.now() + smoltcp::time::Duration::from_secs(5);
        while clock.now() < deadline {
            if let Link::Up(megabits) = nic.link().map_err(Failure::Nic)? {
                println!("{}: link up, {megabits} Mb/s", env.name());
                return Ok(nic);
            }
        }
        Err(Failure::NoLink)
    }

    /// How many requests all clients together can have in flight: ring entries, and callers over the endpoint that wait for a reply
    /// or are being received.
    fn requests_in_flight(env: &Env) -> usize {
        let rings =
            env.channels().filter(|channel| channel.role == Role::Server).map(|channel| match channel.transport {
                Transport::Async { entries, .. } => entries,
                Transport::Sync { .. } => 0,
            });
        rings.sum::<usize>() + env.reply_slots().count as usize + 1
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("nwp-server is a guest program; run it with `cargo run -p images -- run net`");
}
