//! User interrupts by hardware and emulated by the kernel: a program sees the same (images/vectors.toml).

mod system;

use images::{Builder, Image, Manifest, Options};
use soc::{End, Isa, Mode};
use system::outcome_on;

/// Every case that must report, in this order.
const CASES: &str =
    "T1 T2 T3 T3b T4 T5 T7 T7 T7 T7 T6 T6 T8 T8b T11 T18b T18c T16 USCRATCH UEPC UCAUSE UTVAL USTATUS T19";

fn run(image: &Image, isa: Isa, mode: Mode) -> String {
    let (outcome, text) = outcome_on(image, mode, |config| {
        config.isa = isa;
        config.max_cycles = Some(1_000_000_000);
    });
    assert_eq!(outcome.end, End::Exit(0), "{isa:?} {mode:?}: {text}");
    let taken: u64 = outcome.harts.iter().map(|hart| hart.statistics.user_interrupts).sum();
    assert_eq!(taken != 0, isa.has_user_interrupts(), "{isa:?}: {taken} user interrupts in hardware");
    text
}

/// The lines of the cases.
fn cases(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.ends_with("right") || line.ends_with("WRONG")).collect()
}

#[test]
fn hardware_and_emulation_look_the_same_on_one_hart_and_on_two() {
    let mut builder = Builder::new().unwrap();
    // A doorbell that no other hart rings has user interrupts only beside devices; these two are not used.
    let one_hart = [
        ("machine.harts", "1"),
        ("program.sender.hart", "0"),
        ("program.sender.devices", "[\"ns16550a\"]"),
        ("program.receiver.devices", "[\"google,goldfish-rtc\"]"),
    ];
    for (name, changes) in [("vectors-2", &[][..]), ("vectors-1", &one_hart)] {
        let mut manifest = Manifest::named("vectors").unwrap();
        manifest.rename(name);
        changes.iter().for_each(|(key, value)| manifest.set(key, value).unwrap());
        let options = Options { quiet: true, ..Options::default() };
        let image = builder.build(&manifest, &options).unwrap_or_else(|error| panic!("{error}"));
        let mut texts = Vec::new();
        for isa in [Isa::Rv64imafdcn, Isa::Rv64imafdc] {
            for mode in [Mode::Fast, Mode::Timed] {
                texts.push(run(&image, isa, mode));
            }
        }
        for text in &texts {
            let seen: Vec<&str> = cases(text).iter().filter_map(|line| line.split([':', ' ']).next()).collect();
            assert_eq!(seen.join(" "), CASES, "{name}: {text}");
            assert!(!text.contains("WRONG"), "{name}: {text}");
            assert!(text.contains("fault: reader thread 0 raised exception 2, illegal instruction"), "{name}: {text}");
            assert_eq!(cases(text), cases(&texts[0]), "{name}");
        }
    }
}

#[test]
fn rings_need_no_hardware() {
    let image = images::build(&Manifest::named("pair").unwrap(), &Options { quiet: true, ..Options::default() });
    let text = run(&image.unwrap_or_else(|error| panic!("{error}")), Isa::Rv64imafdc, Mode::Fast);
    assert!(text.contains("asker: rings: 100 of 100 answers right over rings"), "{text}");
}
