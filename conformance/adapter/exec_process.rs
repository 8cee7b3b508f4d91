//! A running testee, and the threads that serve its three pipes.

use super::Reply;
use super::family::Family;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// The longest line that is read from a testee. The longest correct answer of the suite has less than a tenth of it.
pub(crate) const LONGEST_LINE: usize = 16 << 20;

/// The beginning of the reason if the fault belongs to the case that was answered.
pub(crate) const BEHIND: &str = "a line follows the answer";

/// The number of bytes of stderr that are kept.
const STDERR_TAIL: usize = 2000;

/// An event on stdout.
#[derive(Debug)]
pub(super) enum Heard {
    /// A line without its line break, and whether more output came together with it.
    Line { line: Vec<u8>, more: bool },
    /// The beginning of a line that exceeds [`LONGEST_LINE`]. Nothing after it is read.
    TooLong,
    /// The end of the stream.
    End,
}

/// A running testee, and the channels to the threads that serve its pipes.
#[derive(Debug)]
pub(super) struct Process {
    /// The process with its descendants, which end with it.
    pub(super) family: Family,
    /// The channel to the writer; `None` after stdin was closed.
    pub(super) to: Option<Sender<String>>,
    /// The lines of its stdout, one at a time.
    pub(super) from: Receiver<Heard>,
    /// The tail of its stderr.
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
        // The channel is bounded, so that a testee with too much output fills its pipe and not this program's memory.
        let (incoming, from) = sync_channel(1);
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let tail = Arc::clone(&stderr);
        let child = family.child();
        let stdin = child.stdin.take().ok_or("no stdin")?;
        let stdout = child.stdout.take().ok_or("no stdout")?;
        let errors = child.stderr.take().ok_or("no stderr")?;
        // One thread per pipe. Otherwise a testee that writes before it has read everything would deadlock with this program.
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

    /// Passes a line to the writer; never waits for the testee.
    pub(super) fn send(&self, line: String) {
        // The writer may have ended with the testee. The missing answer reports that.
        let _ = self.to.as_ref().map(|to| to.send(line));
    }

    /// Returns the next line, which must come alone, or the reason why no line came. Output that comes together with an answer
    /// belongs to this case and not to the previous one.
    pub(super) fn receive(
        &mut self,
        timeout: Duration,
        is_answer: impl Fn(&[u8]) -> bool,
    ) -> Result<Vec<u8>, Reply> {
        match self.from.recv_timeout(timeout) {
            Ok(Heard::Line { line, more: false }) => Ok(line),
            Ok(Heard::Line { line, more: true }) => {
                let shown = crate::wire::show(&line);
                // If the first line is the answer, the second is a surplus line of this case. Otherwise it is a late one of the
                // previous case.
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
            Ok(Heard::End) | Err(RecvTimeoutError::Disconnected) => Err(self.exit_reply()),
        }
    }

    /// Clears the tail of stderr.
    pub(super) fn forget_stderr(&self) {
        if let Ok(mut tail) = self.stderr.lock() {
            tail.clear();
        }
    }

    /// Returns the tail of stderr, some of which may not have arrived yet.
    pub(super) fn stderr_text(&self) -> String {
        // The threads that read stderr and stdout are not synchronized.
        thread::sleep(Duration::from_millis(5));
        match self.stderr.lock() {
            Ok(tail) => String::from_utf8_lossy(&tail).trim().to_owned(),
            Err(_) => String::new(),
        }
    }

    /// Returns the way the process ended, after its stdout was closed.
    pub(super) fn exit_reply(&mut self) -> Reply {
        // Stdout is closed shortly before the process ends.
        let status = self.family.wait_for_exit(Duration::from_secs(2));
        let stderr = self.stderr_text();
        let how = match status {
            Some(status) => describe(status),
            None => "closed its stdout".to_owned(),
        };
        // With limited address space an allocation fails, and runtimes end with one of these messages.
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

/// Creates the command, with a limit of address space in MiB if one is set.
fn command(words: &[OsString], memory: Option<u64>) -> Command {
    let mut words = words.iter();
    if let Some(mebibytes) = memory.filter(|_| cfg!(unix)) {
        // `exec` replaces the shell, so that signals and the exit status are those of the testee.
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

/// Writes every line, until the testee closes its stdin or this program closes the channel.
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

/// Passes on every line, until one is too long or the stream ends.
fn read_lines(stdout: ChildStdout, hand_on: impl Fn(Heard) -> bool) {
    let mut stdout = BufReader::new(stdout);
    loop {
        let mut line = Vec::new();
        // One byte more, so that the longest allowed line has room for its line break.
        let most = LONGEST_LINE as u64 + 1;
        let read = stdout.by_ref().take(most).read_until(b'\n', &mut line);
        let ends = line.pop_if(|last| *last == b'\n').is_some();
        let heard = match read {
            Ok(1..) if !ends && line.len() > LONGEST_LINE => Heard::TooLong,
            Ok(1..) => Heard::Line {
                line,
                more: !stdout.buffer().is_empty(),
            },
            // A read error also ends the stream, because the exit status of the process says more.
            _ => Heard::End,
        };
        let last = !matches!(heard, Heard::Line { .. });
        if !hand_on(heard) || last {
            return;
        }
    }
}

/// Reads stderr to its end, so that a testee with much output never blocks, and keeps the last part.
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

/// Describes the end of a process: by the name of the signal if one ended it.
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

/// Returns whether a process got SIGKILL. If this program has not ended it, only the system's out-of-memory killer sends this
/// signal.
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

/// Joins the way the process ended with its stderr, if there is any.
fn join(how: String, stderr: &str) -> String {
    if stderr.is_empty() {
        how
    } else {
        format!("{how}; stderr: {stderr}")
    }
}

/// Returns the protocol error of a testee with an endless line.
pub(super) fn too_long() -> Reply {
    Reply::ProtocolError(format!("a line of more than {} MiB", LONGEST_LINE >> 20))
}
