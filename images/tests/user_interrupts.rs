//! The duties of the kernel towards threads with user interrupts, on the machine (`docs/user-interrupts.md`).

mod system;

use images::{Builder, Options, RootServer};
use soc::{End, Mode};
use system::run;

#[test]
fn the_kernel_does_its_duties_by_user_interrupts() {
    let mut builder = Builder::new().unwrap_or_else(|error| panic!("{error}"));
    let options = Options { quiet: true, ..Options::default() };
    let program = builder.program("sel4-conformance", "user-interrupts", &options);
    let mut server = RootServer::new(program.unwrap_or_else(|error| panic!("{error}")));
    server.machine.harts = 2;
    let image = builder.build_root_server(&server, &options).unwrap_or_else(|error| panic!("{error}"));
    for mode in [Mode::Fast, Mode::Timed] {
        let (end, text) = run(&image, mode);
        let last = text.lines().last().unwrap_or_default();
        assert!(end == End::Exit(0) && last.ends_with(" rows, 0 failed"), "{mode:?} {end:?}\n{text}");
    }
}
