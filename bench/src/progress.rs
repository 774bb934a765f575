//! How far the work is: a bar with the remaining time on a terminal, plain lines elsewhere. Both go to standard error, so
//! that standard output holds results only.

use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const TEMPLATE: &str = "{bar:32.cyan} {pos:>3}/{len} points, {eta} left  {wide_msg}";

/// Counts measured points; threads share it.
#[derive(Debug)]
pub struct Progress {
    bar: Option<ProgressBar>,
    total: u64,
    done: AtomicU64,
}

impl Progress {
    /// Of `total` points, none is done.
    pub fn new(total: u64) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            // The template is a constant; a test parses it.
            let style = ProgressStyle::with_template(TEMPLATE).expect("the template is well formed");
            let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr())
                .with_style(style.progress_chars("━╸ "));
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Self { bar, total, done: AtomicU64::new(0) }
    }

    /// What is being done now, where points are long in coming (building).
    pub fn phase(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(text.to_owned()),
            None => eprintln!("{text}"),
        }
    }

    /// One more point, `text`, is measured.
    pub fn point(&self, text: &str) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        match &self.bar {
            Some(bar) => {
                bar.set_message(text.to_owned());
                bar.set_position(done);
            }
            None => eprintln!("[{done:>3}/{}] {text}", self.total),
        }
    }

    /// Everything is done, or given up: the bar goes, the lines stay.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_s_template_is_well_formed() {
        assert!(ProgressStyle::with_template(TEMPLATE).is_ok());
    }
}
