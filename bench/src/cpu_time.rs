//! Processor time, as Linux counts it: what a run takes whoever else uses the host. Elsewhere, and where it cannot be read, there
//! is none, and elapsed time must do.

use std::process::Child;
use std::time::Duration;

/// Length of a tick of `/proc/PID/stat` (`sysconf(_SC_CLK_TCK)`, 100 a second on every Linux).
const TICK: Duration = Duration::from_millis(10);

/// Of this thread so far, to the nanosecond.
pub fn of_this_thread() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

/// What is known of a child that has not been waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// It has ended.
    pub ended: bool,
    /// Of all its threads, in user and kernel mode.
    pub time: Duration,
}

/// Looks at `child`.
pub fn of_child(child: &Child) -> Option<State> {
    parse(&std::fs::read_to_string(format!("/proc/{}/stat", child.id())).ok()?)
}

/// Fields 3, 14 and 15 (proc_pid_stat(5)); the name in field 2 may hold blanks, so they are counted from its bracket.
fn parse(stat: &str) -> Option<State> {
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let ticks: u32 = fields.get(11)?.parse::<u32>().ok()? + fields.get(12)?.parse::<u32>().ok()?;
    Some(State { ended: *fields.first()? == "Z", time: TICK * ticks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_lines() {
        let line = "42 (a b) c) Z 1 2 3 4 5 6 7 8 9 10 150 25 0 0 20";
        assert_eq!(parse(line), Some(State { ended: true, time: Duration::from_millis(1750) }));
        assert_eq!(parse("42 (x) R"), None);
    }
}
