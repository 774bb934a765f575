//! The kernel on the machine: programs of `kernel/guest` that test it from inside.

mod system;

use images::Manifest;
use soc::{End, Mode};
use system::{assert_lines, build, run};

#[test]
fn floating_point_registers_stay_with_their_thread() {
    let image = build(&Manifest::named("floats").unwrap());
    for mode in [Mode::Fast, Mode::Timed] {
        let (end, text) = run(&image, mode);
        for line in ["left: 0 registers changed in 3 threads", "right: 0 registers changed in 2 threads"] {
            assert_lines(&text, &[line]);
        }
        assert_eq!(end, End::Exit(0), "{text}");
    }
}

#[test]
fn a_thread_without_the_unit_faults() {
    let mut manifest = Manifest::named("floats").unwrap();
    manifest.rename("floats-disabled");
    manifest.set("program.left.args.attempt", "disabled").unwrap();
    manifest.set("program.left.threads", "1").unwrap();
    let (end, text) = run(&build(&manifest), Mode::Fast);
    let expected = ["left: flags Ok(1)", "fault: left thread 0 raised exception 2, illegal instruction"];
    assert_lines(&text, &expected);
    assert_eq!(end, End::Exit(1), "{text}");
}
