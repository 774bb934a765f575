//! The duties of the kernel towards threads with user interrupts, on the machine (`docs/user-interrupts.md`).

mod system;

use images::{Builder, Image, Options, RootServer};
use soc::{Config, End, Isa, Mode, UserInterrupts};
use system::run_on;

fn image(name: &str) -> Image {
    let mut builder = Builder::new().unwrap_or_else(|error| panic!("{error}"));
    let out = Some(builder.target().join(format!("images/{name}.elf")));
    let options = Options { quiet: true, out, ..Options::default() };
    let program = builder.program("sel4-conformance", "user-interrupts", &options);
    let mut server = RootServer::new(program.unwrap_or_else(|error| panic!("{error}")));
    server.machine.harts = 2;
    builder.build_root_server(&server, &options).unwrap_or_else(|error| panic!("{error}"))
}

fn check(image: &Image, mode: Mode, change: impl FnOnce(&mut Config)) {
    let (end, text) = run_on(image, mode, change);
    let last = text.lines().last().unwrap_or_default();
    assert!(end == End::Exit(0) && last.ends_with(" rows, 0 failed"), "{mode:?} {end:?}\n{text}");
}

#[test]
fn the_kernel_does_its_duties_by_user_interrupts() {
    let image = image("user-interrupts");
    check(&image, Mode::Fast, |_| ());
    check(&image, Mode::Timed, |_| ());
}

#[test]
fn also_where_the_interrupt_is_a_latch() {
    let image = image("user-interrupts-latch");
    check(&image, Mode::Fast, |config| config.user_interrupts = UserInterrupts::Latch);
    check(&image, Mode::Timed, |config| config.user_interrupts = UserInterrupts::Latch);
}

#[test]
fn also_where_the_kernel_emulates_them() {
    check(&image("user-interrupts-emulated"), Mode::Fast, |config| config.isa = Isa::Rv64imafdc);
}
