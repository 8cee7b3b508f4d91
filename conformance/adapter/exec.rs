//! A testee in another process, over its standard streams.
//!
//! Three threads are between this program and the process: one writes, one reads, and one keeps the tail of stderr. A testee that
//! does not read or does not answer therefore cannot block this program beyond the timeout.
//!
//! One answer needs no more memory than its longest line (16 MiB) and the values that [`protocol`] parses from it. Output other
//! than answers is charged to the case that the testee was working on ([`Adapter::stray`]).

use super::exec_process::{BEHIND, Heard, Process, too_long};
use super::{Adapter, Identity, Limits, Reply, protocol};
use crate::release::ParseError;
use serde_json::Value;
use std::ffi::OsString;
use std::sync::mpsc::TryRecvError;
use std::time::Duration;

/// The time that a testee has at the end for output that it must not write.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// An adapter to a command that speaks the exec protocol.
#[derive(Debug)]
pub struct Exec {
    /// The program and its arguments.
    words: Vec<OsString>,
    /// The limits of each start and each request.
    limits: Limits,
    /// The process; `None` before the first start, and after a loss.
    process: Option<Process>,
    /// The hash of the suite that every start sends in hello.
    suite: String,
    /// The number of starts; more than one after a loss.
    starts: u64,
    /// True if an answer may be a part of a value. Only for workers of this crate; other testees could choose the compared
    /// part.
    shows_parts: bool,
    /// The number of requests since the last start. It is kept after a loss, so that the runner can ask for it.
    requests: u64,
}

impl Exec {
    /// Creates the adapter from a command line, which is split at spaces. Single and double quotes keep spaces together.
    ///
    /// # Errors
    ///
    /// The command line is empty, or a quote is not closed.
    pub fn command(line: &str, limits: Limits) -> Result<Exec, ParseError> {
        let words = split(line)?;
        if words.is_empty() {
            return Err(ParseError::new(
                "exec: needs a command, such as exec:\"python3 testee.py\"",
            ));
        }
        Ok(Exec::new(
            words.into_iter().map(OsString::from).collect(),
            limits,
        ))
    }

    /// Creates the adapter from the command with its arguments.
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

    /// Creates the adapter for this program's own binary, which serves a foreign library.
    pub fn worker(words: Vec<OsString>, limits: Limits) -> Exec {
        Exec {
            shows_parts: true,
            ..Exec::new(words, limits)
        }
    }

    /// Starts the process and says hello. A process with a wrong answer is ended.
    ///
    /// Requests are counted from here, because a verdict may depend on earlier requests.
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
            // A worker reports load errors on stderr.
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
        // The output on stderr so far belongs to earlier cases.
        process.forget_stderr();
        // Ids count from 1 after every start, because 0 is the hello.
        let id = self.requests;
        process.send(protocol::request(id, op, args));
        let is_answer =
            |line: &[u8]| !matches!(protocol::parse_reply(id, line), Reply::ProtocolError(_));
        let reply = match process.receive(self.limits.timeout, is_answer) {
            Ok(line) => match protocol::parse_reply(id, &line) {
                // Only this program and its workers use views; the protocol for others has no such answer.
                Reply::Shown { .. } if !self.shows_parts => Reply::ProtocolError(
                    "there is not exactly one of ok, reject, unsupported".to_owned(),
                ),
                reply => reply,
            },
            Err(reply) => reply,
        };
        // After any other reply the state of the process is unknown.
        if !matches!(
            reply,
            Reply::Ok { .. } | Reply::Shown { .. } | Reply::Reject(_) | Reply::Unsupported(_)
        ) {
            self.process = None;
        }
        reply
    }

    fn stray(&mut self) -> Option<Reply> {
        let process = self.process.as_mut()?;
        let reply = match process.from.try_recv() {
            Err(TryRecvError::Empty) => return None,
            // It ended after an answer and before the next request, so the answer is valid but the end is not.
            Err(TryRecvError::Disconnected) | Ok(Heard::End) => process.exit_reply(),
            Ok(Heard::Line { line, .. }) => after_its_answer(&line),
            Ok(Heard::TooLong) => too_long(),
        };
        self.process = None;
        Some(reply)
    }

    fn finish(&mut self) -> Option<Reply> {
        let mut process = self.process.take()?;
        // Its stdin is closed, so it should end. Only output is an error here, not the way it ends.
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

/// Returns the protocol error of a testee that wrote another line.
fn after_its_answer(line: &[u8]) -> Reply {
    let shown = crate::wire::show(line);
    Reply::ProtocolError(format!("{BEHIND}: `{shown}`"))
}

/// Splits a command line into words. Quotes keep spaces; no other shell syntax is supported.
fn split(line: &str) -> Result<Vec<String>, ParseError> {
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
        Some(quote) => Err(ParseError::new(format!(
            "the quote {quote} in `{line}` is not closed"
        ))),
        None => Ok(words),
    }
}
