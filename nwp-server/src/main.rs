//! The network server as a program: its devices, its clients, its tasks.
//!
//! One thread, one executor. `drive` moves frames; as many `worker`s as requests can be in flight serve the clients.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod program {
    extern crate alloc;

    use alloc::string::{String, ToString};
    use alloc::vec::Vec;
    use core::cell::RefCell;
    use core::fmt;

    use drivers::axinic::{self, AxiNic, Coalesce};
    use drivers::nic::{Link, NicDriver};
    use drivers::virtio_net::VirtioNet;
    use drivers::{DmaRegion, Mmio};
    use libipc::executor::{Events, Timers};
    use libipc::port::{GuestClock, GuestPort};
    use libipc::{Executor, OpenError, Server};
    use nwp_server::config::{BadArgument, Config, DESCRIPTORS};
    use nwp_server::drive::{Clock, Interrupts, drive};
    use nwp_server::serve::worker;
    use nwp_server::{Nic, Stack};
    use smoltcp::wire::EthernetAddress;
    use userlib::env::{Device, Interrupt, Role, Transport};
    use userlib::{Env, println};

    userlib::program!(main);

    /// Why the server cannot start.
    enum Failure {
        Argument(BadArgument<'static>),
        Missing(&'static str),
        DmaAddress(userlib::cap::Error),
        Nic(String),
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

    impl Failure {
        fn nic(error: impl core::error::Error) -> Self {
            Self::Nic(error.to_string())
        }
    }

    fn main(env: &'static Env, _: usize) -> Result<(), Failure> {
        let dma = env.dma().ok_or(Failure::Missing("DMA memory"))?;
        let physical = dma.frame(0).physical_address().map_err(Failure::DmaAddress)?;
        // SAFETY: the environment says that the root task has mapped `dma.region` contiguously from the first frame's address, for this
        // program alone; it is used nowhere else.
        let region = unsafe { DmaRegion::new(dma.region.address, physical, dma.region.size) };
        if let Some(device) = env.device("virtio,device1") {
            return virtio(env, &device, region);
        }
        let engine = env.device("xlnx,axi-dma-1.00.a").ok_or(Failure::Missing("network interface"))?;
        let mac = env.device("xlnx,axi-ethernet-1.00.a").ok_or(Failure::Missing("network interface"))?;
        axi(env, &engine, &mac, region)
    }

    /// Serves with the AXI Ethernet of DMA engine and MAC.
    fn axi(env: &'static Env, engine: &Device, mac: &Device, mut region: DmaRegion) -> Result<(), Failure> {
        let config = configure(env, mac.property("local-mac-address").and_then(|bytes| bytes.try_into().ok()))?;
        let settings = axinic::Config {
            mac_address: config.mac.0,
            rx_descriptors: DESCRIPTORS,
            tx_descriptors: DESCRIPTORS,
            rx_interrupt: Coalesce::EACH,
        };
        let nic = AxiNic::new(window(engine), window(mac), &mut region, settings).map_err(Failure::nic)?;
        serve(env, &config, nic, region, engine.interrupts().collect())
    }

    /// Serves with a virtio network device.
    fn virtio(env: &'static Env, device: &Device, mut region: DmaRegion) -> Result<(), Failure> {
        let mut nic = VirtioNet::new(window(device), &mut region, DESCRIPTORS).map_err(Failure::nic)?;
        let config = configure(env, nic.mac_address())?;
        serve(env, &config, nic, region, device.interrupts().collect())
    }

    /// The arguments; `station` is the address that the device came with.
    fn configure(env: &'static Env, station: Option<[u8; 6]>) -> Result<Config, Failure> {
        Config::from_args(station.map(EthernetAddress), |key| env.arg(key)).map_err(Failure::Argument)
    }

    /// Serves the clients with the interface `nic`, whose interrupts are `interrupts`.
    fn serve(
        env: &'static Env,
        config: &Config,
        nic: impl NicDriver,
        mut region: DmaRegion,
        interrupts: Vec<Interrupt>,
    ) -> Result<(), Failure> {
        let base = GuestClock::from_env(env);
        let (clock, timers) = (Clock::new(&base), Timers::new(&base));
        let mut nic = Nic::new(nic, &mut region).ok_or(Failure::Missing("room in the DMA memory"))?;
        wait_for_link(env, &mut nic, &clock)?;
        let bits: Vec<u32> = interrupts.iter().map(|interrupt| interrupt.bit).collect();
        let pass_next = |index: usize| {
            // Fails only if the slot holds no handler, and then no interrupt came from it.
            let _ = interrupts[index].handler.ack();
        };
        // Sequence numbers start where the clock happens to be.
        let stack = RefCell::new(Stack::new(nic, config, userlib::time::cycles(), clock.now()));
        let port = GuestPort::from_env(env);
        let server = Server::from_env(env, &port).map_err(Failure::Channels)?;
        let events = Events::new();
        let workers = requests_in_flight(env);
        let executor = Executor::new(workers + 1);
        executor.attach(&server);
        executor.attach(&events);
        executor.attach(&timers);

        let interrupts = Interrupts { events: &events, bits: &bits, pass_next: &pass_next };
        let driver = async {
            let Err(error) = drive(&stack, interrupts, &timers, &clock).await;
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

    fn wait_for_link(env: &Env, nic: &mut Nic<impl NicDriver>, clock: &Clock<'_>) -> Result<(), Failure> {
        let deadline = clock.now() + smoltcp::time::Duration::from_secs(5);
        while clock.now() < deadline {
            match nic.link().map_err(Failure::nic)? {
                Link::Up(0) => println!("{}: link up", env.name()),
                Link::Up(megabits) => println!("{}: link up, {megabits} Mb/s", env.name()),
                Link::Down => continue,
            }
            return Ok(());
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
