//! The running sessions of a server: their number, their processes, and how they end with the server.

use super::interrupt::{GRACE, signals};
use super::output;
use super::serve_directory::ServerDirectory;
use crate::lock::{lock, unpoisoned};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, kill_process_group, waitid,
    waitpid,
};
use signal_hook::consts::SIGINT;
use std::collections::BTreeSet;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::Builder;
use std::time::Duration;
use tempfile::TempDir;

/// The running sessions.
pub(super) struct RunningSessions {
    /// The directory for their files.
    directory: Mutex<ServerDirectory>,
    state: Mutex<RunningSessionsState>,
    changed: Condvar,
}

#[derive(Default)]
struct RunningSessionsState {
    /// The number of sessions, including those whose files are being removed.
    count: usize,
    /// The processes that were not waited for. Each is the leader of its group.
    leaders: BTreeSet<u32>,
    is_draining: bool,
}

impl RunningSessions {
    /// Creates an empty set of sessions.
    pub(super) fn new() -> io::Result<RunningSessions> {
        adopt_orphans();
        Ok(RunningSessions {
            directory: Mutex::new(ServerDirectory::new()?),
            state: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// Creates a directory for the files of a session, which only this user can read.
    pub(super) fn session_directory(&self) -> io::Result<TempDir> {
        lock(&self.directory).session()
    }

    /// Waits until there are fewer than `most` sessions.
    pub(super) fn await_slot(&self, most: usize) {
        let mut state = lock(&self.state);
        while state.count >= most {
            state = self.wait(state);
        }
    }

    /// Waits until the server drains and the last session has ended.
    fn await_last(&self) {
        let mut state = lock(&self.state);
        while !state.is_draining || state.count > 0 {
            state = self.wait(state);
        }
    }

    fn wait<'a>(
        &self,
        state: MutexGuard<'a, RunningSessionsState>,
    ) -> MutexGuard<'a, RunningSessionsState> {
        unpoisoned(self.changed.wait(state))
    }

    /// Returns the number of sessions.
    pub(super) fn count(&self) -> usize {
        lock(&self.state).count
    }

    /// Waits until a session begins or ends, or a signal arrives, but not longer than `most`.
    pub(super) fn pause(&self, most: Duration) {
        drop(self.changed.wait_timeout(lock(&self.state), most));
    }

    /// Returns whether no further session begins.
    pub(super) fn is_draining(&self) -> bool {
        lock(&self.state).is_draining
    }

    /// Starts a process in a new process group.
    pub(super) fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        let mut state = lock(&self.state);
        // Under the lock, so that a signal reaches every process, and no process starts after it.
        if state.is_draining {
            return Err(io::Error::other("the server ends"));
        }
        let child = command.process_group(0).spawn()?;
        state.leaders.insert(child.id());
        state.count += 1;
        self.changed.notify_all();
        Ok(child)
    }

    /// Waits for a process and kills the rest of its group.
    pub(super) fn end(&self, child: &mut Child) -> io::Result<ExitStatus> {
        if let Some(pid) = pid(child.id()) {
            // Waits without reaping the process. Until it is reaped, no other process gets its id or that of its group.
            while let Err(rustix::io::Errno::INTR) = waitid(
                WaitId::Pid(pid),
                WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
            ) {}
        }
        // Before the process is reaped. Afterwards its id may belong to another process, which a second signal would kill.
        lock(&self.state).leaders.remove(&child.id());
        kill_group(child.id());
        let status = child.wait();
        self.end_orphans();
        status
    }

    /// Kills orphaned processes of sessions that have ended and processes that left their groups. Their parents have ended, so that
    /// they are children of this process, and they are not sessions.
    fn end_orphans(&self) {
        // Each round finds the processes that became children of this process in the previous round. The number of rounds is limited,
        // because code that starts processes fast enough would keep this thread for ever.
        for _ in 0..100 {
            // Under the lock, so that every session that was started is among the leaders.
            let state = lock(&self.state);
            let orphans = own_children();
            let orphans = orphans.filter(|number| !state.leaders.contains(number));
            let orphans: Vec<Pid> = orphans.filter_map(pid).collect();
            drop(state);
            if orphans.is_empty() {
                return;
            }
            for orphan in orphans {
                let _ = kill_process(orphan, Signal::KILL);
                // Fails if another thread was faster.
                let _ = waitpid(Some(orphan), WaitOptions::empty());
            }
        }
    }

    pub(super) fn free_slot(&self) {
        lock(&self.state).count -= 1;
        self.changed.notify_all();
    }
}

/// Makes orphaned processes children of this process instead of the system's first process, so that leftovers of a session are found.
fn adopt_orphans() {
    // If the kernel does not support this, processes that leave their group continue to run.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// Returns the ids of the children of this process; none if the system does not list them.
fn own_children() -> impl Iterator<Item = u32> {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    let lists = threads
        .filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("children")).ok());
    lists.flat_map(|list| {
        let numbers = list.split_whitespace().map(str::parse);
        numbers.filter_map(Result::ok).collect::<Vec<u32>>()
    })
}

/// Converts a process id for the system; `None` for 0.
fn pid(number: u32) -> Option<Pid> {
    i32::try_from(number).ok().and_then(Pid::from_raw)
}

/// Kills a group by the id of its first process.
fn kill_group(leader: u32) {
    if let Some(group) = pid(leader) {
        // Fails only if the whole group has ended.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// Starts draining at the first signal: no further session begins, and the program ends with the last one. Ctrl-C waits for the
/// sessions until it is pressed again. SIGTERM and SIGHUP end them after [`GRACE`].
pub(super) fn drain_at_signal(running: Arc<RunningSessions>) -> io::Result<()> {
    let mut signals = signals()?;
    let own = running.clone();
    // Created before any signal, because later the system may not be able to create a thread.
    Builder::new().spawn(move || {
        own.await_last();
        lock(&own.directory).remove();
        std::process::exit(0);
    })?;
    Builder::new().spawn(move || {
        for signal in signals.forever() {
            let mut state = lock(&running.state);
            let is_second = std::mem::replace(&mut state.is_draining, true);
            let left = state.count;
            drop(state);
            running.changed.notify_all();
            if signal == SIGINT && !is_second {
                if left > 0 {
                    output::note(format_args!(
                        "waiting for {left} sessions; Ctrl-C again ends them"
                    ));
                }
                continue;
            }
            if !is_second {
                std::thread::sleep(GRACE);
            }
            lock(&running.state)
                .leaders
                .iter()
                .copied()
                .for_each(kill_group);
        }
    })?;
    Ok(())
}
