//! A testee in another process, over its standard streams.
//!
//! Three threads are between us and the process: one writes, one reads, one keeps the tail of stderr. So neither a
//! testee that does not read nor one that does not answer can hold us for longer than the timeout.
//!
//! One answer costs no more memory than `LONGEST_LINE` and what [`protocol`] makes of it; what a testee writes beside
//! its answers is charged to the case that it was working on ([`Adapter::stray`]).

use super::family::Family;
use super::{Adapter, Identity, Limits, Reply, protocol};
use serde_json::Value;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// The longest line that is read from a testee. The longest right answer of the suite has less than a tenth of it.
pub(crate) const LONGEST_LINE: usize = 16 << 20;
/// How much of stderr is kept.
const STDERR_TAIL: usize = 2000;
/// How long a testee has at the end, to write what it should not.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// An adapter to a command that speaks the exec protocol.
#[derive(Debug)]
pub struct Exec {
    /// The program and its arguments.
    words: Vec<OsString>,
    /// For each start and each request.
    limits: Limits,
    /// None before the first start, and after a loss.
    process: Option<Process>,
    /// The hash that every start says hello with.
    suite: String,
    /// How often it was started; more than once after a loss.
    starts: u64,
    /// Whether it may answer with a part of a value: our own adapters may, others would choose what is compared.
    shows_parts: bool,
    /// Since the last start; kept when the process is lost, so that the runner can ask after a loss.
    requests: u64,
}

impl Exec {
    /// A command line, split at spaces; single and double quotes keep spaces together.
    ///
    /// # Errors
    ///
    /// When it is empty or a quote is not closed.
    pub fn command(line: &str, limits: Limits) -> Result<Exec, String> {
        let words = split(line)?;
        if words.is_empty() {
            return Err("exec: needs a command, such as exec:\"python3 testee.py\"".to_owned());
        }
        Ok(Exec::new(
            words.into_iter().map(OsString::from).collect(),
            limits,
        ))
    }

    /// The command with its arguments.
    pub fn new(words: Vec<OsString>, limits: Limits) -> Exec {
        Exec {
            words,
            limits,
            process: None,
            suite: String::new(),
            starts: 0,
            shows_parts: false,
            requests: 0,
        }
    }

    /// Our own binary with its arguments, serving a foreign library.
    pub fn worker(words: Vec<OsString>, limits: Limits) -> Exec {
        Exec {
            shows_parts: true,
            ..Exec::new(words, limits)
        }
    }

    /// Starts the process and says hello. A process that does not answer as it should is ended again.
    fn start(&mut self) -> Result<Identity, String> {
        let process = Process::spawn(&self.words, self.limits.memory)?;
        self.starts += 1;
        self.requests = 0;
        let process = self.process.insert(process);
        process.send(protocol::hello(&self.suite));
        let answer = process.receive(self.limits.timeout, |_| false);
        let identity = match answer {
            Ok(line) => protocol::parse_hello(&line),
            Err(Reply::ProtocolError(wrong)) => Err(format!("no answer to hello: {wrong}")),
            // A worker says on stderr what it could not load.
            Err(Reply::Crash(how)) => Err(match how.split_once("; stderr: error: ") {
                Some((_, stderr)) if self.shows_parts => stderr.to_owned(),
                _ => format!("no answer to hello: {how}"),
            }),
            Err(reply) => Err(format!("no answer to hello: {reply:?}")),
        };
        identity.inspect_err(|_| self.process = None)
    }
}

impl Adapter for Exec {
    fn hello(&mut self, suite: &str) -> Result<Identity, String> {
        suite.clone_into(&mut self.suite);
        self.start()
    }

    fn call(&mut self, op: &str, args: &Value) -> Reply {
        if self.process.is_none()
            && let Err(error) = self.start()
        {
            return Reply::Crash(format!("cannot be started again: {error}"));
        }
        let Some(process) = &mut self.process else {
            return Reply::Crash("is not running".to_owned());
        };
        self.requests += 1;
        // What is on stderr so far belongs to earlier cases.
        process.forget_stderr();
        // From 1 on after every start: 0 is the hello.
        let id = self.requests;
        process.send(protocol::request(id, op, args));
        let is_answer =
            |line: &[u8]| !matches!(protocol::parse_reply(id, line), Reply::ProtocolError(_));
        let reply = match process.receive(self.limits.timeout, is_answer) {
            Ok(line) => match protocol::parse_reply(id, &line) {
                // Views are between this program and its workers: the protocol for others has no such answer.
                Reply::Seen { .. } if !self.shows_parts => Reply::ProtocolError(
                    "there is not exactly one of ok, reject, unsupported".to_owned(),
                ),
                reply => reply,
            },
            Err(reply) => reply,
        };
        // After anything but an answer its state is unknown.
        if !matches!(
            reply,
            Reply::Ok { .. } | Reply::Seen { .. } | Reply::Reject(_) | Reply::Unsupported(_)
        ) {
            self.process = None;
        }
        reply
    }

    fn stray(&mut self) -> Option<Reply> {
        let process = self.process.as_mut()?;
        let reply = match process.from.try_recv() {
            Err(TryRecvError::Empty) => return None,
            // It ended after an answer and before the next request: the answer was good, the end is not.
            Err(TryRecvError::Disconnected) | Ok(Heard::End) => process.death(),
            Ok(Heard::Line { line, .. }) => after_its_answer(&line),
            Ok(Heard::TooLong) => too_long(),
        };
        self.process = None;
        Some(reply)
    }

    fn finish(&mut self) -> Option<Reply> {
        let mut process = self.process.take()?;
        // Its stdin ends, and so should it. Only what it writes now is wrong, not how it ends.
        process.to = None;
        match process.from.recv_timeout(LAST_WORDS) {
            Ok(Heard::Line { line, .. }) => Some(after_its_answer(&line)),
            Ok(Heard::TooLong) => Some(too_long()),
            Ok(Heard::End) | Err(_) => None,
        }
    }

    fn stderr(&mut self) -> Option<String> {
        let stderr = self.process.as_ref()?.stderr_text();
        (!stderr.is_empty()).then_some(stderr)
    }

    fn since_restart(&self) -> Option<u64> {
        (self.starts > 1).then_some(self.requests)
    }

    fn was_alone(&self) -> bool {
        self.requests <= 1
    }

    fn restart(&mut self) {
        self.process = None;
    }
}

/// How the reason begins when the fault is of the case that was answered.
pub(crate) const BEHIND: &str = "a line came behind the answer";

/// The fault of a testee that wrote one more line.
fn after_its_answer(line: &[u8]) -> Reply {
    let shown = crate::wire::show(line);
    Reply::ProtocolError(format!("{BEHIND}: `{shown}`"))
}

/// The fault of a testee whose line does not end.
fn too_long() -> Reply {
    Reply::ProtocolError(format!("a line of more than {} MiB", LONGEST_LINE >> 20))
}

/// What came from stdout.
#[derive(Debug)]
enum Heard {
    /// A line without its end, and whether more came together with it.
    Line { line: Vec<u8>, more: bool },
    /// The beginning of a line beyond [`LONGEST_LINE`]. Nothing is read behind it.
    TooLong,
    /// The stream has ended.
    End,
}

/// A testee that runs, and the channels to the threads that serve its pipes.
#[derive(Debug)]
struct Process {
    /// The process with its descendants, which end with it.
    family: Family,
    /// `None` when its stdin was closed.
    to: Option<Sender<String>>,
    /// Lines of its stdout, one at a time.
    from: Receiver<Heard>,
    /// The end of what it wrote to stderr.
    stderr: Arc<Mutex<Vec<u8>>>,
}

impl Process {
    /// Starts a process with three pipes and a thread for each.
    fn spawn(words: &[OsString], memory: Option<u64>) -> Result<Process, String> {
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
    fn send(&self, line: String) {
        // The writer may be gone because the testee is; the missing answer says so.
        let _ = self.to.as_ref().map(|to| to.send(line));
    }

    /// The next line, which must come alone, or why there is none. What comes with an answer came behind it, and is not of the
    /// case before.
    fn receive(
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
                Err(Reply::ProtocolError(match is_answer(&line) {
                    true => format!("{BEHIND}: {wrong}"),
                    false => wrong,
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
    fn forget_stderr(&self) {
        if let Ok(mut tail) = self.stderr.lock() {
            tail.clear();
        }
    }

    /// The tail of its stderr, some of which may still be on its way.
    fn stderr_text(&self) -> String {
        // The thread that reads stderr has no order with the one that reads stdout.
        thread::sleep(Duration::from_millis(5));
        match self.stderr.lock() {
            Ok(tail) => String::from_utf8_lossy(&tail).trim().to_owned(),
            Err(_) => String::new(),
        }
    }

    /// How it ended, after its stdout did.
    fn death(&mut self) -> Reply {
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

/// The words of a command line. Quotes keep spaces; nothing else of a shell is known.
fn split(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for letter in line.chars() {
        match (letter, quote) {
            ('\'' | '"', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (letter, Some(open)) if letter == open => quote = None,
            (letter, None) if letter.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    match quote {
        Some(quote) => Err(format!("the quote {quote} in `{line}` is not closed")),
        None => Ok(words),
    }
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn quotes_keep_words_together() {
        let words = split("python3 'my testee.py' --flag=\"a b\" ''").unwrap();
        assert_eq!(words, ["python3", "my testee.py", "--flag=a b", ""]);
        assert!(split("'open").is_err());
    }
}
