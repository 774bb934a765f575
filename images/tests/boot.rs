//! Systems that boot on the soc: what they print, how they end, and that they do so twice in the same way.

mod system;

use images::{Builder, Manifest, Options, RootServer};
use soc::{End, Mode};
use system::{assert_lines, build, run};

#[test]
fn hello_is_printed_and_the_machine_ends() {
    let manifest = Manifest::named("hello").unwrap();
    let image = build(&manifest);
    let (end, text) = run(&image, Mode::Fast);
    assert_lines(&text, &["hello: hello from hart 0, thread 0"]);
    assert_eq!(end, End::Exit(0), "{text}");
    assert_eq!(image.bytes, build(&manifest).bytes, "two builds of one manifest differ");
    let timed = run(&image, Mode::Timed);
    assert_eq!(timed, run(&image, Mode::Timed), "two runs of one image differ");
    assert_lines(&timed.1, &["hello: hello from hart 0, thread 0"]);
}

#[test]
fn every_thread_runs_main() {
    let mut manifest = Manifest::named("hello").unwrap();
    manifest.rename("hello-threads");
    manifest.set("machine.harts", "2").unwrap();
    manifest.set("program.hello.hart", "1").unwrap();
    manifest.set("program.hello.threads", "3").unwrap();
    let (end, text) = run(&build(&manifest), Mode::Fast);
    assert_lines(&text, &["from hart 1, thread 0"]);
    assert_eq!(end, End::Exit(0), "{text}");
}

#[test]
fn servers_answer_over_rings_and_over_an_endpoint() {
    let image = build(&Manifest::named("pair").unwrap());
    for mode in [Mode::Fast, Mode::Timed] {
        let (end, text) = run(&image, mode);
        let expected = [
            "asker: endpoint: 100 of 100 answers right over an endpoint",
            "asker: rings: 100 of 100 answers right over rings",
        ];
        assert_lines(&text, &expected);
        assert_eq!(end, End::Exit(0), "{text}");
    }
}

#[test]
fn an_intruder_is_stopped_and_the_server_goes_on() {
    let (end, text) = run(&build(&Manifest::named("isolation").unwrap()), Mode::Fast);
    let served = "asker: sums: 10 of 10 answers right over an endpoint";
    for refused in [
        "fault: reader thread 0 read address 0x60200000",
        "fault: writer thread 0 wrote address 0x60200000",
        "fault: jumper thread 0 executed address 0x1402000",
        "fault: sinker thread 0 wrote address 0x13f",
        "fault: patcher thread 0 wrote address 0x1",
        "fault: listener thread 0 received from capability 0x6",
        "caller: refused: invalid capability",
        "climber: refused: out of range",
    ] {
        assert_lines(&text, &[refused, served]);
    }
    assert!(!text.contains("got through"), "{text}");
    assert_eq!(end, End::Exit(0), "{text}");
}

#[test]
fn a_panic_ends_the_machine_with_names_and_registers() {
    let mut manifest = Manifest::named("hello").unwrap();
    manifest.rename("panic");
    manifest.set("program.hello.bin", "intruder").unwrap();
    manifest.set("program.hello.args.attempt", "panic").unwrap();
    let (end, text) = run(&build(&manifest), Mode::Fast);
    let expected = [
        "hello: trying to panic",
        "hello panicked at apps/src/bin/intruder.rs:",
        "as asked",
        "fault: hello thread 0 raised exception 2, illegal instruction",
        " pc ",
        " tp ",
        "#0 0x",
        "intruder::program::main",
    ];
    assert_lines(&text.replace(": as asked", "\nas asked"), &expected);
    assert_eq!(end, End::Exit(1), "{text}");
}

#[test]
fn a_fault_ends_the_machine_unless_the_manifest_forgives_it() {
    let mut manifest = Manifest::named("isolation").unwrap();
    manifest.rename("isolation-stop");
    manifest.set("program.reader.on-fault", "stop").unwrap();
    let (end, text) = run(&build(&manifest), Mode::Fast);
    assert_lines(&text, &["fault: reader thread 0 read address 0x60200000"]);
    assert_eq!(end, End::Exit(1), "{text}");
    assert!(!text.contains("answers right"), "{text}");
}

/// The server dies every 150 requests with calls in flight: these end with an error, and its client goes on with the next one.
#[test]
fn a_client_goes_on_with_a_restarted_server() {
    for harts in ["1", "2"] {
        let mut manifest = Manifest::named("restart").unwrap();
        manifest.rename(&format!("restart-{harts}"));
        manifest.set("machine.harts", harts).unwrap();
        manifest.set("program.mortal.hart", if harts == "1" { "0" } else { "1" }).unwrap();
        let (end, text) = run(&build(&manifest), Mode::Fast);
        let died = ["mortal panicked at", "as asked, after 150 requests", "root: mortal starts again"];
        let expected = [&died[..], &died, &died, &died, &died, &["survivor: 800 answers right, "]].concat();
        assert_lines(&text.replace(": as asked", "\nas asked"), &expected);
        assert!(!text.contains(" 0 calls lost"), "{text}");
        assert_eq!(end, End::Exit(0), "{text}");
    }
}

/// Over an endpoint a caller waits in the kernel: the root task, or the next life of the server, must answer for the one that died.
#[test]
fn a_caller_does_not_wait_for_a_dead_server() {
    for harts in ["1", "2"] {
        let mut manifest = Manifest::named("restart").unwrap();
        manifest.rename(&format!("restart-sync-{harts}"));
        manifest.set("channel.sums.transport", "sync").unwrap();
        manifest.set("machine.harts", harts).unwrap();
        manifest.set("program.mortal.hart", if harts == "1" { "0" } else { "1" }).unwrap();
        let (end, text) = run(&build(&manifest), Mode::Fast);
        assert_lines(&text, &["root: mortal starts again", "survivor: 800 answers right, 5 calls lost"]);
        assert_eq!(end, End::Exit(0), "{text}");

        manifest.rename(&format!("gone-sync-{harts}"));
        manifest.set("program.mortal.on-fault", "continue").unwrap();
        manifest.set("program.survivor.args.losses", "\"20\"").unwrap();
        let (end, text) = run(&build(&manifest), Mode::Fast);
        assert_lines(&text, &["root: mortal is stopped", "survivor: 149 answers right, 20 calls lost"]);
        assert_eq!(end, End::Exit(0), "{text}");
    }
}

#[test]
fn a_client_that_breaks_the_protocol_is_faulted_if_the_manifest_says_so() {
    let mut manifest = Manifest::named("vandal").unwrap();
    manifest.rename("vandal-faulted");
    manifest.set("channel.ruins.on-misbehaviour", "fault-client").unwrap();
    manifest.set("program.vandal.on-fault", "continue").unwrap();
    manifest.set("program.asker.args.calls", "\"1000\"").unwrap();
    let (end, text) = run(&build(&manifest), Mode::Fast);
    let accused = "fault: vandal broke the protocol of channel ruins, says adder";
    assert_lines(&text, &[accused, "root: vandal is stopped, the others go on"]);
    assert_lines(&text, &["asker: sums: 1000 of 1000 answers right"]);
    assert_eq!(end, End::Exit(0), "{text}");
}

#[test]
fn a_device_that_the_machine_lacks_is_named() {
    let mut manifest = Manifest::named("hello").unwrap();
    manifest.rename("hello-device");
    manifest.set("program.hello.devices", "[\"acme,rocket\"]").unwrap();
    let (end, text) = run(&build(&manifest), Mode::Fast);
    assert_lines(&text, &["root: cannot build the system: hello: this machine has no free `acme,rocket`"]);
    assert_eq!(end, End::Exit(1), "{text}");
}

#[test]
fn a_hart_that_the_machine_lacks_is_named() {
    let mut image = build(&Manifest::named("pair").unwrap());
    image.machine.harts = 1;
    let (end, text) = run(&image, Mode::Fast);
    assert_lines(&text, &["root: cannot build the system: adder-rings: hart 1 does not exist, the kernel runs on 1"]);
    assert_eq!(end, End::Exit(1), "{text}");
}

#[test]
fn memory_that_does_not_suffice_is_named() {
    let mut manifest = Manifest::named("hello").unwrap();
    manifest.rename("hello-memory");
    manifest.set("program.hello.heap", "16M").unwrap();
    let mut image = build(&manifest);
    image.machine.memory = images::Size(16 << 20);
    let (end, text) = run(&image, Mode::Fast);
    assert_lines(&text, &["root: cannot build the system: hello: no untyped memory of 2^21 bytes is left"]);
    assert_eq!(end, End::Exit(1), "{text}");
}

#[test]
fn an_image_may_hold_any_root_task() {
    let mut builder = Builder::new().unwrap();
    let options = Options { quiet: true, ..Options::default() };
    builder.build(&Manifest::named("hello").unwrap(), &options).unwrap();
    let root = builder.target().join("guest/riscv64imac-unknown-none-elf/release/root");
    let out = Some(builder.target().join("images/bare-root.elf"));
    let options = Options { out, quiet: true, ..Options::default() };
    let image = builder.build_root_server(&RootServer::new(root), &options).unwrap();
    // Our own root task without an archive: it runs, and says what it misses.
    let (end, text) = run(&image, Mode::Fast);
    assert_lines(&text, &["root: cannot build the system: the boot archive has no usable system.dtb"]);
    assert_eq!(end, End::Exit(1), "{text}");
}
