//! The await tree of an executor: which task waits on what, and for how long.
//!
//! Nothing is recorded for it when a task waits. Whoever can be waited for keeps the wakers of those who wait ([`Link::waits`]), and a waker
//! is the address of its task's bit: so the tree is put together when somebody asks. Only the times need a record, and that is kept when
//! asked for ([`Executor::record`](crate::Executor::record)).

use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;
use core::cell::RefCell;
use core::fmt;

use crate::executor::pool::{Pool, TaskState};
use crate::executor::{Link, Wait};

/// Looks at the tasks of an executor that may be gone.
#[derive(Clone)]
pub struct Observer<'a> {
    pool: Weak<Pool<'a>>,
    links: Weak<RefCell<Vec<&'a dyn Link>>>,
}

impl<'a> Observer<'a> {
    pub(crate) fn new(pool: &Rc<Pool<'a>>, links: &Rc<RefCell<Vec<&'a dyn Link>>>) -> Self {
        Self { pool: Rc::downgrade(pool), links: Rc::downgrade(links) }
    }

    /// All tasks as they are now, at `now` of the clock by which times are recorded; without the one that asks.
    pub fn tree(&self, now: u64) -> Tree {
        let (Some(pool), Some(links)) = (self.pool.upgrade(), self.links.upgrade()) else {
            return Tree { now, tasks: Vec::new() };
        };
        let mut tasks: Vec<Branch> = pool.tasks().map(|task| Branch { task, waits: Vec::new() }).collect();
        for link in links.borrow().iter() {
            link.waits(&mut |wait, waker| {
                let index = pool.task_of(waker);
                if let Some(branch) = tasks.iter_mut().find(|branch| Some(branch.task.index) == index) {
                    branch.waits.push(wait);
                }
            });
        }
        Tree { now, tasks }
    }
}

struct Branch {
    task: TaskState,
    waits: Vec<Wait>,
}

/// What the tasks of an executor wait for; printed, a line for each task.
///
/// ```text
/// task 64 "worker" level 1: waits for a request, 1250 ticks
/// ```
///
/// A task that awaits through a combinator with wakers of its own (`join_all`, `FuturesUnordered`) shows as waiting for something unknown.
pub struct Tree {
    now: u64,
    tasks: Vec<Branch>,
}

impl Tree {
    /// Tasks that are not done, without the one that asked.
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether there is no other task.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// What the tasks of this name wait for.
    pub fn waits(&self, name: &str) -> Vec<Wait> {
        self.tasks.iter().filter(|branch| branch.task.name == name).flat_map(|branch| branch.waits.clone()).collect()
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Branch { task: TaskState { index, level, name, ready, polled }, waits } in &self.tasks {
            write!(f, "task {index} \"{name}\" level {level}: ")?;
            match (ready, waits.as_slice()) {
                (true, _) => f.write_str("ready")?,
                (false, []) => f.write_str("waits for something unknown")?,
                (false, [first, rest @ ..]) => {
                    write!(f, "waits for {first}")?;
                    rest.iter().try_for_each(|wait| write!(f, " or {wait}"))?;
                }
            }
            match polled {
                Some(polled) => writeln!(f, ", {} ticks", self.now.saturating_sub(*polled))?,
                None => writeln!(f)?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reply { cookie } => write!(f, "the reply to call {cookie:#x}"),
            Self::Credit => f.write_str("a credit"),
            Self::Kernel { line } => write!(f, "the kernel, line {line}"),
            Self::Server => f.write_str("a server"),
            Self::Request => f.write_str("a request"),
            Self::Cancellation { channel } => write!(f, "a cancellation on channel {channel}"),
            Self::Window { channel } => write!(f, "a grant on channel {channel}"),
            Self::Time { at } => write!(f, "tick {at}"),
            Self::Event { bit } => write!(f, "doorbell bit {bit}"),
        }
    }
}
