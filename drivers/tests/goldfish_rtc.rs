//! The alarm driver against the device model of `soc`.

use std::cell::RefCell;
use std::rc::Rc;

use drivers::Registers;
use drivers::goldfish_rtc::GoldfishRtc;
use soc::device::Device;
use soc::devices::rtc::Rtc;
use soc::testing::FakeContext;
use soc::time::SimTime;

struct Machine {
    rtc: Rtc,
    cx: FakeContext,
}

struct Window(Rc<RefCell<Machine>>);

impl Registers for Window {
    fn read(&mut self, offset: usize) -> u32 {
        let Machine { rtc, cx } = &mut *self.0.borrow_mut();
        rtc.read(cx, offset as u64, 4).unwrap() as u32
    }
    fn write(&mut self, offset: usize, value: u32) {
        let Machine { rtc, cx } = &mut *self.0.borrow_mut();
        rtc.write(cx, offset as u64, 4, value.into()).unwrap();
    }
}

#[test]
fn the_alarm_interrupts_once_when_the_time_is_up() {
    let machine = Rc::new(RefCell::new(Machine { rtc: Rtc::default(), cx: FakeContext::new(0) }));
    let pass = |span| {
        let Machine { rtc, cx } = &mut *machine.borrow_mut();
        cx.advance(rtc, span);
        cx.line(0)
    };
    let mut driver = GoldfishRtc::new(Window(machine.clone()));
    // Near the point where the low half of the time wraps, about every four seconds.
    pass(SimTime::from_us(4_000_000));
    let before = driver.now_ns();
    for turn in 0..5 {
        driver.set_alarm(1_000_000_000);
        assert!(!pass(SimTime::from_us(999_999)), "turn {turn}: too early");
        assert!(pass(SimTime::from_us(1)), "turn {turn}: too late");
        driver.acknowledge();
        assert!(!pass(SimTime::ZERO));
    }
    assert_eq!(driver.now_ns() - before, 5_000_000_000);
}
