//! A testee that runs, and the threads that serve its three pipes.

use super::Reply;
use super::family::Family;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// The longest line that is read from a testee. The longest right answer of the suite has less than a tenth of it.
pub(crate) const LONGEST_LINE: usize = 16 << 20;

/// How the reason begins when the fault is of the case that was answered.
pub(crate) const BEHIND: &str = "a line came behind the answer";

/// How much of stderr is kept.
const STDERR_TAIL: usize = 2000;

/// What came from stdout.
#[derive(Debug)]
pub(super) enum Heard {
    /// A line without its end, and whether more came together with it.
    Line { line: Vec<u8>, more: bool },
    /// The beginning of a line beyond [`LONGEST_LINE`]. Nothing is read behind it.
    TooLong,
    /// The stream has ended.
    End,
}

/// A testee that runs, and the channels to the threads that serve its pipes.
#[derive(Debug)]
pub(super) struct Process {
    /// The process with its descendants, which end with it.
    pub(super) family: Family,
    /// `None` when its stdin was closed.
    pub(super) to: Option<Sender<String>>,
    /// Lines of its stdout, one at a time.
    pub(super) from: Receiver<Heard>,
    /// The end of what it wrote to stderr.
    stderr: Arc<Mutex<Vec<u8>>>,
}

impl Process {
    /// Starts a process with three pipes and a thread for each.
    pub(super) fn spawn(words: &[OsString], memory: Option<u64>) -> Result<Process, String> {
        let mut command = command(words, memory);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut family = Family::spawn(&mut command)
            .map_err(|error| format!("cannot start {}: {error}", words[0].to_string_lossy()))?;
        let (to, outgoing) = channel();
        // Bounded, so that a testee that floods us fills its pipe and not our memory.
        let (incoming, from) = sync_channel(1);
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let tail = Arc::clone(&stderr);
        let child = family.child();
        let stdin = child.stdin.take().ok_or("no stdin")?;
        let stdout = child.stdout.take().ok_or("no stdout")?;
        let errors = child.stderr.take().ok_or("no stderr")?;
        // A thread for each pipe: a testee that writes before it has read all would otherwise wait for us while we wait for it.
        thread::spawn(move || write_lines(stdin, outgoing));
        thread::spawn(move || read_lines(stdout, |line| incoming.send(line).is_ok()));
        thread::spawn(move || keep_tail(errors, &tail));
        Ok(Process {
            family,
            to: Some(to),
            from,
            stderr,
        })
    }

    /// Hands a line to the writer; never waits for the testee.
    pub(super) fn send(&self, line: String) {
        // The writer may be gone because the testee is; the missing answer says so.
        let _ = self.to.as_ref().map(|to| to.send(line));
    }

    /// The next line, which must come alone, or why there is none. What comes with an answer came behind it, and is not of the
    /// case before.
    pub(super) fn receive(
        &mut self,
        timeout: Duration,
        is_answer: impl Fn(&[u8]) -> bool,
    ) -> Result<Vec<u8>, Reply> {
        match self.from.recv_timeout(timeout) {
            Ok(Heard::Line { line, more: false }) => Ok(line),
            Ok(Heard::Line { line, more: true }) => {
                let shown = crate::wire::show(&line);
                // Whether the first line answers decides whose fault the second is: a line too many of this case, or a late one of the last.
                let wrong = format!("more than one line; the first was `{shown}`");
                Err(Reply::ProtocolError(if is_answer(&line) {
                    format!("{BEHIND}: {wrong}")
                } else {
                    wrong
                }))
            }
            Ok(Heard::TooLong) => Err(too_long()),
            Err(RecvTimeoutError::Timeout) => Err(Reply::Hang(format!(
                "no answer in {} s",
                timeout.as_secs_f64()
            ))),
            Ok(Heard::End) | Err(RecvTimeoutError::Disconnected) => Err(self.death()),
        }
    }

    /// Empties the tail of stderr.
    pub(super) fn forget_stderr(&self) {
        if let Ok(mut tail) = self.stderr.lock() {
            tail.clear();
        }
    }

    /// The tail of its stderr, some of which may still be on its way.
    pub(super) fn stderr_text(&self) -> String {
        // The thread that reads stderr has no order with the one that reads stdout.
        thread::sleep(Duration::from_millis(5));
        match self.stderr.lock() {
            Ok(tail) => String::from_utf8_lossy(&tail).trim().to_owned(),
            Err(_) => String::new(),
        }
    }

    /// How it ended, after its stdout did.
    pub(super) fn death(&mut self) -> Reply {
        // Stdout ends a little before the process does.
        let status = self.family.ended(Duration::from_secs(2));
        let stderr = self.stderr_text();
        let how = match status {
            Some(status) => describe(status),
            None => "closed its stdout".to_owned(),
        };
        // A limit on address space lets an allocation fail; runtimes end with these words then.
        let out_of_memory = [
            "memory allocation of",
            "MemoryError",
            "bad_alloc",
            "out of memory",
        ];
        if killed(status) || out_of_memory.iter().any(|sign| stderr.contains(sign)) {
            return Reply::OutOfMemory(join(how, &stderr));
        }
        Reply::Crash(join(how, &stderr))
    }
}

/// The command, under a limit of address space in MiB where one is set.
fn command(words: &[OsString], memory: Option<u64>) -> Command {
    let mut words = words.iter();
    if let Some(mebibytes) = memory.filter(|_| cfg!(unix)) {
        // `exec` leaves no shell between us and the testee, so that its signals and its end are its own.
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!(
            "ulimit -v {}; exec \"$@\"",
            mebibytes.saturating_mul(1024)
        ));
        command.arg("sh").args(words);
        return command;
    }
    let mut command = Command::new(words.next().cloned().unwrap_or_default());
    command.args(words);
    command
}

/// Writes what comes, a line each, until the testee closes its stdin or we close ours.
fn write_lines(mut stdin: ChildStdin, lines: Receiver<String>) {
    for mut line in lines {
        line.push('\n');
        if stdin
            .write_all(line.as_bytes())
            .and_then(|()| stdin.flush())
            .is_err()
        {
            return;
        }
    }
}

/// Hands on every line, to the first that is too long or the end of the stream.
fn read_lines(stdout: ChildStdout, hand_on: impl Fn(Heard) -> bool) {
    let mut stdout = BufReader::new(stdout);
    loop {
        let mut line = Vec::new();
        // One more, so that the longest line that is allowed has room for its end.
        let most = LONGEST_LINE as u64 + 1;
        let read = stdout.by_ref().take(most).read_until(b'\n', &mut line);
        let ends = line.pop_if(|last| *last == b'\n').is_some();
        let heard = match read {
            Ok(1..) if !ends && line.len() > LONGEST_LINE => Heard::TooLong,
            Ok(1..) => Heard::Line {
                line,
                more: !stdout.buffer().is_empty(),
            },
            // An error of reading ends the stream as well: how the process ended says more.
            _ => Heard::End,
        };
        let last = !matches!(heard, Heard::Line { .. });
        if !hand_on(heard) || last {
            return;
        }
    }
}

/// Reads stderr to its end, so that a testee that writes much never waits, and keeps the last part.
fn keep_tail(mut stderr: ChildStderr, tail: &Mutex<Vec<u8>>) {
    let mut block = [0; 4096];
    while let Ok(length @ 1..) = stderr.read(&mut block) {
        let Ok(mut tail) = tail.lock() else {
            return;
        };
        tail.extend_from_slice(&block[..length]);
        let surplus = tail.len().saturating_sub(STDERR_TAIL);
        tail.drain(..surplus);
    }
}

/// How a process ended: by the name of a signal where one ended it.
#[cfg(unix)]
fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    let name = match status.signal() {
        Some(4) => "SIGILL",
        Some(6) => "SIGABRT",
        Some(7 | 10) => "SIGBUS",
        Some(8) => "SIGFPE",
        Some(9) => "SIGKILL",
        Some(11) => "SIGSEGV",
        Some(15) => "SIGTERM",
        _ => return format!("ended before it answered ({status})"),
    };
    format!("ended before it answered ({name})")
}

#[cfg(not(unix))]
fn describe(status: ExitStatus) -> String {
    format!("ended before it answered ({status})")
}

/// Only the system's out-of-memory killer sends SIGKILL to a testee that this program has not ended.
fn killed(status: Option<ExitStatus>) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt as _;
        status.and_then(|status| status.signal()) == Some(9)
    }
    #[cfg(not(unix))]
    {
        let _ = status;
        false
    }
}

/// How it ended, and what it wrote to stderr, where it wrote anything.
fn join(how: String, stderr: &str) -> String {
    if stderr.is_empty() {
        how
    } else {
        format!("{how}; stderr: {stderr}")
    }
}

/// The fault of a testee whose line does not end.
pub(super) fn too_long() -> Reply {
    Reply::ProtocolError(format!("a line of more than {} MiB", LONGEST_LINE >> 20))
}
