//! The sessions of a server that run: how many, their processes, and how they end with the server.

use super::interrupt::{GRACE, signals};
use super::output;
use super::serve_directory::ServerDirectory;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, kill_process_group, waitid,
    waitpid,
};
use signal_hook::consts::SIGINT;
use std::collections::BTreeSet;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;
use tempfile::TempDir;

/// The sessions that run.
pub(super) struct RunningSessions {
    /// Where their files are.
    directory: Mutex<ServerDirectory>,
    state: Mutex<RunningSessionsState>,
    changed: Condvar,
}

#[derive(Default)]
struct RunningSessionsState {
    /// How many there are, those included whose files are being removed.
    count: usize,
    /// The processes, each the first of its group, that were not waited for.
    leaders: BTreeSet<u32>,
    is_draining: bool,
}

impl RunningSessions {
    /// None yet.
    pub(super) fn new() -> io::Result<RunningSessions> {
        adopt_orphans();
        Ok(RunningSessions {
            directory: Mutex::new(ServerDirectory::new()?),
            state: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// The state, locked. A thread that panicked has left it whole.
    fn lock(&self) -> MutexGuard<'_, RunningSessionsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A directory for the files of a session, readable by this user alone.
    pub(super) fn session_directory(&self) -> io::Result<TempDir> {
        self.directory().session()
    }

    /// Where their files are, locked. A thread that panicked has left it whole.
    fn directory(&self) -> MutexGuard<'_, ServerDirectory> {
        self.directory
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there are fewer than `most`.
    pub(super) fn await_slot(&self, most: usize) {
        let mut state = self.lock();
        while state.count >= most {
            state = self.wait(state);
        }
    }

    /// Waits until the server drains and the last one is over.
    fn await_last(&self) {
        let mut state = self.lock();
        while !state.is_draining || state.count > 0 {
            state = self.wait(state);
        }
    }

    fn wait<'a>(
        &self,
        state: MutexGuard<'a, RunningSessionsState>,
    ) -> MutexGuard<'a, RunningSessionsState> {
        let woken = self.changed.wait(state);
        woken.unwrap_or_else(PoisonError::into_inner)
    }

    /// How many sessions there are.
    pub(super) fn count(&self) -> usize {
        self.lock().count
    }

    /// Waits for a session to begin or end, or for a signal, and not longer than `most`.
    pub(super) fn pause(&self, most: Duration) {
        drop(self.changed.wait_timeout(self.lock(), most));
    }

    /// Whether no session begins any more.
    pub(super) fn is_draining(&self) -> bool {
        self.lock().is_draining
    }

    /// Starts a process in a group of its own.
    pub(super) fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        let mut state = self.lock();
        // Under the lock: a signal finds every process that there is, and none begins behind it.
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
            // Looks without waiting for it: until then its number, and that of its group, goes to no other process.
            while let Err(rustix::io::Errno::INTR) = waitid(
                WaitId::Pid(pid),
                WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
            ) {}
        }
        // Before the wait: behind it the number may be that of another process, which a second signal would kill.
        self.lock().leaders.remove(&child.id());
        kill_group(child.id());
        let status = child.wait();
        self.end_orphans();
        status
    }

    /// Kills what sessions that are over have started and what left their groups: its parents are gone, so that it is a child of this
    /// process, and no session.
    fn end_orphans(&self) {
        // Each round finds what the round before has made a child of this process.
        // Bounded: what starts processes faster than they end would keep this thread for ever.
        for _ in 0..100 {
            // Under the lock: every session that was started is among them.
            let state = self.lock();
            let orphans = own_children();
            let orphans = orphans.filter(|number| !state.leaders.contains(number));
            let orphans: Vec<Pid> = orphans.filter_map(pid).collect();
            drop(state);
            if orphans.is_empty() {
                return;
            }
            for orphan in orphans {
                let _ = kill_process(orphan, Signal::KILL);
                // Fails where another thread was faster.
                let _ = waitpid(Some(orphan), WaitOptions::empty());
            }
        }
    }

    pub(super) fn free_slot(&self) {
        self.lock().count -= 1;
        self.changed.notify_all();
    }
}

/// Processes whose parents are gone become children of this one, and not of the system's first: what a session leaves behind is found.
fn adopt_orphans() {
    // Where the kernel has no such thing, what leaves its group goes on.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// The children of this process, by their numbers; nothing where the system does not list them.
fn own_children() -> impl Iterator<Item = u32> {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    let lists = threads
        .filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("children")).ok());
    lists.flat_map(|list| {
        let numbers = list.split_whitespace().map(str::parse);
        numbers.filter_map(Result::ok).collect::<Vec<u32>>()
    })
}

/// The number of a process as the system takes it; none for 0.
fn pid(number: u32) -> Option<Pid> {
    i32::try_from(number).ok().and_then(Pid::from_raw)
}

/// Kills a group by the number of its first process.
fn kill_group(leader: u32) {
    if let Some(group) = pid(leader) {
        // Fails only when all of it is gone.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// At the first signal no session begins any more, and the program ends with the last one. Ctrl-C waits for the sessions, until it comes
/// again; SIGTERM and SIGHUP end them after [`GRACE`].
pub(super) fn drain_at_signal(running: Arc<RunningSessions>) -> io::Result<()> {
    let mut signals = signals()?;
    let own = running.clone();
    // Before there is a signal: by then the system may have no thread left.
    Builder::new().spawn(move || {
        own.await_last();
        own.directory().remove();
        std::process::exit(0);
    })?;
    Builder::new().spawn(move || {
        for signal in signals.forever() {
            let mut state = running.lock();
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
            running.lock().leaders.iter().copied().for_each(kill_group);
        }
    })?;
    Ok(())
}
