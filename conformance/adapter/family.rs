//! The process of a testee with its descendants, none of which outlive the testee.
//!
//! | process                                   | how it is ended                                                         |
//! |-------------------------------------------|-------------------------------------------------------------------------|
//! | the testee and its children               | they have their own process group (Unix), which is killed               |
//! | a child that left the group: a daemon     | [`adopt`] makes this process its parent (Linux), which kills its descendants |
//! | all of them when this program is signalled | [`end_on_signals`] kills them, and lets the run write its report         |
//!
//! A group is killed before its first process is waited for, because after that the system may reuse its number.

use std::io;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

/// A running testee. Dropping it ends it with everything that it has started.
#[derive(Debug)]
pub(super) struct Family {
    /// The first process of the group.
    child: Child,
}

impl Family {
    /// Starts a command in a new process group.
    pub(super) fn spawn(command: &mut Command) -> io::Result<Family> {
        let child = system::spawn(command)?;
        Ok(Family { child })
    }

    /// Returns the testee's own process, for its pipes.
    pub(super) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Returns the exit status of the testee, if it ends by itself within `patience`.
    pub(super) fn wait_for_exit(&mut self, patience: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + patience;
        while !system::has_ended(&mut self.child) {
            if Instant::now() >= deadline {
                return None;
            }
            thread::sleep(Duration::from_millis(2));
        }
        system::end(&mut self.child).ok()
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        // This fails only if the process was already waited for.
        let _ = system::end(&mut self.child);
    }
}

/// Makes orphans below this process its children, so that they are killed with the testee that left them. This is for a program
/// whose only children are testees, as `tvmspec check` is. Only Linux supports it; elsewhere this does nothing.
pub fn adopt() {
    system::adopt();
}

/// Handles the first SIGINT, SIGTERM or SIGHUP: calls `end` with its number, and ends the testees. A run that waits for one
/// continues, and no other testee is started. SIGQUIT ends this program at once, and so does a signal at least one second later. A
/// signal that is ignored now stays ignored.
///
/// The delay of one second is for testees, which may signal twice before they are killed, and for the report.
///
/// # Errors
///
/// The system does not accept the handler.
pub fn end_on_signals(end: impl Fn(i32) + Send + 'static) -> io::Result<()> {
    system::end_on_signals(end)
}

/// Returns the name of a signal, such as `SIGTERM`.
pub fn signal_name(signal: i32) -> &'static str {
    system::signal_name(signal).unwrap_or("a signal")
}

/// Returns whether this process ignores a signal, as SIGHUP under `nohup`; false if the system cannot tell.
#[cfg(unix)]
pub fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // Bit 0 stands for signal 1.
    mask.is_some_and(|mask| (mask >> (signal - 1)) & 1 == 1)
}

/// Ends this process together with its parent: a suite that is killed has no chance to end its workers (Linux).
pub fn end_with_parent() {
    system::end_with_parent();
}

#[cfg(unix)]
mod system {
    use crate::lock::lock;
    use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions};
    use rustix::process::{kill_process, kill_process_group, waitid, waitpid};
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;
    pub(super) use signal_hook::low_level::signal_name;
    use std::collections::BTreeSet;
    use std::os::unix::process::CommandExt as _;
    use std::process::{Child, Command, ExitStatus};
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};
    use std::{io, thread};

    /// The running testees. The lock is held to start or end one, and by a signal that ends all of them, so that no testee is
    /// missed.
    static RUNNING: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

    /// Set while this program ends, so that no more testees are started.
    static ENDS: AtomicBool = AtomicBool::new(false);

    /// Set if orphans become children of this process.
    static ADOPTS: AtomicBool = AtomicBool::new(false);

    /// Converts the number of a process; `None` for 0.
    fn pid(number: u32) -> Option<Pid> {
        i32::try_from(number).ok().and_then(Pid::from_raw)
    }

    /// Starts a command in a new process group, and adds it to the list.
    pub(super) fn spawn(command: &mut Command) -> io::Result<Child> {
        let mut running = lock(&RUNNING);
        // The lock is held, so that a signal cannot come between the start and the insertion.
        if ENDS.load(Ordering::SeqCst) {
            return Err(io::Error::other("the run ends"));
        }
        let child = command.process_group(0).spawn()?;
        running.insert(child.id());
        Ok(child)
    }

    /// Returns whether the process has ended, without waiting for it: until then its number, and that of its group, is not reused.
    pub(super) fn has_ended(child: &mut Child) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        match pid(child.id()).map(|pid| waitid(WaitId::Pid(pid), options)) {
            Some(Ok(ended)) => ended.is_some(),
            // The process was already waited for.
            _ => true,
        }
    }

    /// Kills a testee with its group, waits for it, and kills its descendants that have left the group.
    pub(super) fn end(child: &mut Child) -> io::Result<ExitStatus> {
        let mut running = lock(&RUNNING);
        // If it is not in the list, its number may already belong to another process.
        if running.remove(&child.id()) {
            kill_group(child.id());
            // This fails only if the process has already ended.
            let _ = child.kill();
        }
        let status = child.wait();
        kill_orphans(&running);
        status
    }

    /// Kills a group by the number of its first process.
    fn kill_group(leader: u32) {
        if let Some(group) = pid(leader) {
            // This fails only if all processes of the group have ended.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    /// Implements [`super::adopt`].
    pub(super) fn adopt() {
        #[cfg(target_os = "linux")]
        {
            let own = rustix::process::getpid();
            let adopts = rustix::process::set_child_subreaper(Some(own)).is_ok();
            ADOPTS.store(adopts, Ordering::SeqCst);
        }
    }

    /// Implements [`super::end_with_parent`].
    pub(super) fn end_with_parent() {
        #[cfg(target_os = "linux")]
        {
            // A kernel without this feature behaves like other systems: the worker ends because its stdin is closed.
            let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
        }
    }

    /// Kills the descendants of this process, except those of testees that still run. A killed process may have started another one
    /// in the meantime, and new orphans are waited for. The loop therefore runs until no descendant is left.
    fn kill_orphans(running: &BTreeSet<u32>) {
        if !ADOPTS.load(Ordering::SeqCst) {
            return;
        }
        // A process that cannot be killed (of another user, or blocked in a driver) must not block this program.
        let deadline = Instant::now() + Duration::from_secs(2);
        loop {
            let left = descendants(running);
            for pid in left.iter().filter_map(|number| pid(*number)) {
                // This fails if the process has ended, or is not a child of this process (yet).
                let _ = kill_process(pid, Signal::KILL);
                let _ = waitpid(Some(pid), WaitOptions::NOHANG);
            }
            if left.is_empty() || Instant::now() >= deadline {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Returns every process below this one, except those in `spared` and their descendants.
    fn descendants(spared: &BTreeSet<u32>) -> Vec<u32> {
        let pairs: Vec<(u32, u32)> = std::fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter_map(|number: u32| Some((number, parent_of(number)?)))
            .collect();
        let mut found = Vec::new();
        let mut open = vec![std::process::id()];
        while let Some(parent) = open.pop() {
            let children = pairs.iter().filter(|(_, of)| *of == parent);
            for (child, _) in children.filter(|(child, _)| !spared.contains(child)) {
                found.push(*child);
                open.push(*child);
            }
        }
        found
    }

    /// Returns the fourth field of `/proc/<pid>/stat`. The second field is a name in parentheses, which may contain any character.
    fn parent_of(number: u32) -> Option<u32> {
        let text = std::fs::read(format!("/proc/{number}/stat")).ok()?;
        let behind = text.iter().rposition(|byte| *byte == b')')? + 1;
        let rest = std::str::from_utf8(text.get(behind..)?).ok()?;
        rest.split_ascii_whitespace().nth(1)?.parse().ok()
    }

    /// Implements [`super::end_on_signals`]. A thread waits for the signals, because a signal handler must not take a lock.
    pub(super) fn end_on_signals(end: impl Fn(i32) + Send + 'static) -> io::Result<()> {
        let all = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];
        let ours = all.into_iter().filter(|signal| !super::is_ignored(*signal));
        let mut signals = Signals::new(ours)?;
        thread::spawn(move || {
            let mut first: Option<Instant> = None;
            for signal in signals.forever() {
                let is_late = first.is_some_and(|first| first.elapsed() >= Duration::from_secs(1));
                if signal == SIGQUIT || is_late {
                    end_all();
                    let _ = emulate_default_handler(signal);
                } else if first.is_none() {
                    first = Some(Instant::now());
                    // First, so that the run does not blame its testees for their end.
                    end(signal);
                    end_all();
                }
            }
        });
        Ok(())
    }

    /// Kills the testees and their descendants. No more are started.
    fn end_all() {
        ENDS.store(true, Ordering::SeqCst);
        // A thread that holds the lock longer waits for a process that cannot be killed.
        let running = (0..100).find_map(|_| {
            let held = RUNNING.try_lock().ok();
            held.or_else(|| {
                thread::sleep(Duration::from_millis(10));
                None
            })
        });
        if let Some(mut running) = running {
            for leader in std::mem::take(&mut *running) {
                kill_group(leader);
            }
            kill_orphans(&running);
        }
    }
}

#[cfg(not(unix))]
mod system {
    use std::io;
    use std::process::{Child, Command, ExitStatus};

    pub(super) fn spawn(command: &mut Command) -> io::Result<Child> {
        command.spawn()
    }

    pub(super) fn has_ended(child: &mut Child) -> bool {
        !matches!(child.try_wait(), Ok(None))
    }

    pub(super) fn end(child: &mut Child) -> io::Result<ExitStatus> {
        // This fails only if the process has already ended.
        let _ = child.kill();
        child.wait()
    }

    pub(super) fn adopt() {}

    pub(super) fn signal_name(_: i32) -> Option<&'static str> {
        None
    }

    pub(super) fn end_with_parent() {}

    pub(super) fn end_on_signals(end: impl Fn(i32) + Send + 'static) -> io::Result<()> {
        drop(end);
        Ok(())
    }
}
