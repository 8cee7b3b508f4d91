//! A testee's process, with all that it starts: none of them outlives the testee.
//!
//! | what                                      | how it ends                                                             |
//! |-------------------------------------------|-------------------------------------------------------------------------|
//! | the testee and its children               | it has a process group of its own (Unix), which is killed               |
//! | a child that left the group: a daemon     | [`adopt`] makes us its parent (Linux); what descends from us is killed  |
//! | all of them when this program is signalled | [`end_on_signals`] kills them, and lets the run report what it has        |
//!
//! A group is killed before its first process is waited for: only then may the system give its number to others.

use std::io;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

/// A running testee. Dropping it ends it, and whatever it has started.
#[derive(Debug)]
pub(super) struct Family {
    /// The first process of the group.
    child: Child,
}

impl Family {
    /// Starts a command as a family of its own.
    pub(super) fn spawn(command: &mut Command) -> io::Result<Family> {
        let child = system::spawn(command)?;
        Ok(Family { child })
    }

    /// The testee itself, for its pipes.
    pub(super) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// How the testee ended, if it does so by itself within `patience`.
    pub(super) fn ended(&mut self, patience: Duration) -> Option<ExitStatus> {
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
        // Fails only when it was waited for already.
        let _ = system::end(&mut self.child);
    }
}

/// From now on orphans below this process become its children, and are killed with the testee that left them. For a
/// program all of whose children are testees, as `tvmspec check` is. Only Linux has this; elsewhere nothing happens.
pub fn adopt() {
    system::adopt();
}

/// At the first SIGINT, SIGTERM or SIGHUP calls `end` with its number, and ends the testees: a run that waits for one goes on, and no other is
/// started. SIGQUIT, and a signal that comes a second later or more, ends this program at once. A signal that is ignored now stays ignored.
///
/// The second is for testees, which may signal twice before they are killed, and for the report.
///
/// # Errors
///
/// When the system takes no handler.
pub fn end_on_signals(end: impl Fn(i32) + Send + 'static) -> io::Result<()> {
    system::end_on_signals(end)
}

/// Returns the name of a signal, such as `SIGTERM`.
pub fn signal_name(signal: i32) -> &'static str {
    system::signal_name(signal).unwrap_or("a signal")
}

/// Whether this process ignores a signal, as SIGHUP under `nohup`; false where the system does not show it.
#[cfg(unix)]
pub fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // Bit 0 is signal 1.
    mask.is_some_and(|mask| (mask >> (signal - 1)) & 1 == 1)
}

/// Ends this process with its parent, which is a suite that was killed without a chance to end its workers (Linux).
pub fn end_with_parent() {
    system::end_with_parent();
}

#[cfg(unix)]
mod system {
    use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions};
    use rustix::process::{kill_process, kill_process_group, waitid, waitpid};
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;
    pub(super) use signal_hook::low_level::signal_name;
    use std::collections::BTreeSet;
    use std::os::unix::process::CommandExt as _;
    use std::process::{Child, Command, ExitStatus};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Mutex, MutexGuard, PoisonError};
    use std::time::{Duration, Instant};
    use std::{io, thread};

    /// The testees that run. The thread that starts or ends one holds the lock, and so does a signal that ends all: nothing is started
    /// behind its back.
    static RUNNING: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

    /// Whether this program ends, so that no testee is started any more.
    static ENDS: AtomicBool = AtomicBool::new(false);

    /// Whether orphans become our children.
    static ADOPTS: AtomicBool = AtomicBool::new(false);

    /// The list, locked. A thread that panicked has left it whole.
    fn running() -> MutexGuard<'static, BTreeSet<u32>> {
        RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a process as the system takes it; none for 0.
    fn pid(number: u32) -> Option<Pid> {
        i32::try_from(number).ok().and_then(Pid::from_raw)
    }

    /// Starts a command in a process group of its own, and lists it.
    pub(super) fn spawn(command: &mut Command) -> io::Result<Child> {
        let mut running = running();
        // Under the lock: a signal cannot come between the start and the list.
        if ENDS.load(Ordering::SeqCst) {
            return Err(io::Error::other("the run ends"));
        }
        let child = command.process_group(0).spawn()?;
        running.insert(child.id());
        Ok(child)
    }

    /// Looks without waiting for it: until then its number, and that of its group, goes to no other process.
    pub(super) fn has_ended(child: &mut Child) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        match pid(child.id()).map(|pid| waitid(WaitId::Pid(pid), options)) {
            Some(Ok(ended)) => ended.is_some(),
            // It was waited for already.
            _ => true,
        }
    }

    /// Kills a testee with its group, waits for it, and kills what has left the group.
    pub(super) fn end(child: &mut Child) -> io::Result<ExitStatus> {
        let mut running = running();
        // Where it is not there any more its number may be that of others.
        if running.remove(&child.id()) {
            kill_group(child.id());
            // Fails only when it is gone already.
            let _ = child.kill();
        }
        let status = child.wait();
        sweep(&running);
        status
    }

    /// Kills a group by the number of its first process.
    fn kill_group(leader: u32) {
        if let Some(group) = pid(leader) {
            // Fails only when all of it is gone.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    /// See [`super::adopt`].
    pub(super) fn adopt() {
        #[cfg(target_os = "linux")]
        {
            let own = rustix::process::getpid();
            let adopts = rustix::process::set_child_subreaper(Some(own)).is_ok();
            ADOPTS.store(adopts, Ordering::SeqCst);
        }
    }

    /// See [`super::end_with_parent`].
    pub(super) fn end_with_parent() {
        #[cfg(target_os = "linux")]
        {
            // A kernel without it leaves what other systems have: stdin ends, and the worker with it.
            let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
        }
    }

    /// Kills what descends from this process and not from a testee that still runs. What was killed may have started
    /// another in the meantime, and orphans that come to us are waited for: so until there are none.
    fn sweep(running: &BTreeSet<u32>) {
        if !ADOPTS.load(Ordering::SeqCst) {
            return;
        }
        // What cannot be killed (a process of another user, one that hangs in a driver) does not hold us.
        let deadline = Instant::now() + Duration::from_secs(2);
        loop {
            let left = descendants(running);
            for pid in left.iter().filter_map(|number| pid(*number)) {
                // Fails when it is gone, or is no child of ours (yet).
                let _ = kill_process(pid, Signal::KILL);
                let _ = waitpid(Some(pid), WaitOptions::NOHANG);
            }
            if left.is_empty() || Instant::now() >= deadline {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Every process below this one, without those in `spared` and what is below them.
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

    /// The fourth field of `/proc/<pid>/stat`. The second is a name in parentheses, with any letter in it.
    fn parent_of(number: u32) -> Option<u32> {
        let text = std::fs::read(format!("/proc/{number}/stat")).ok()?;
        let behind = text.iter().rposition(|byte| *byte == b')')? + 1;
        let rest = std::str::from_utf8(text.get(behind..)?).ok()?;
        rest.split_ascii_whitespace().nth(1)?.parse().ok()
    }

    /// See [`super::end_on_signals`]. A thread waits for the signals, since a handler could take no lock.
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
                    // First: what the run sees of the end of its testees is not their fault.
                    end(signal);
                    end_all();
                }
            }
        });
        Ok(())
    }

    /// Kills the testees and what they have started. None is started any more.
    fn end_all() {
        ENDS.store(true, Ordering::SeqCst);
        // A thread that holds it for longer waits for a process that cannot be killed.
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
            sweep(&running);
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
        // Fails only when it is gone already.
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
