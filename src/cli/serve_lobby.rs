//! Clients before they have a session. Each first writes its hello. Those with a key of the server then wait in the order of their
//! hellos. Neither step needs a process, and nobody waits for a peer that writes nothing.

use super::output;
use crate::lock::{lock, unpoisoned};
use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use tvmspec::release::Release;
use tvmspec::rpc::handshake::{Handshake, Handshakes};
use tvmspec::rpc::{Hello, HelloAnswer, threads};
use tvmspec::wire::Writer;

/// The maximal number of clients that wait for a session. Others stay in the system's queue and are not accepted.
const MOST: usize = 250;

/// The text in the log between a connection without a session and the reason.
pub(super) const NOT_STARTED: &str = ": not started: ";

/// The stack size of a thread that reads a hello, in bytes.
const STACK: usize = 256 << 10;

/// A client with a key of the server.
pub(super) struct WaitingClient {
    /// The number of its connection, which is also that of its session.
    pub(super) number: u64,
    pub(super) stream: TcpStream,
    pub(super) peer: SocketAddr,
    /// Its hello, with options.
    pub(super) hello: Hello<'static>,
}

/// The clients that wait for a session.
#[derive(Default)]
pub(super) struct Lobby {
    waiting: Mutex<VecDeque<WaitingClient>>,
    changed: Condvar,
}

impl Lobby {
    /// Accepts connections until the process ends, and admits those whose hello has a key that `is_own` accepts.
    pub(super) fn fill(
        self: &Arc<Lobby>,
        listener: &TcpListener,
        is_own: &Arc<dyn Fn(&str) -> bool + Send + Sync>,
    ) {
        let handshakes = Arc::new(Handshakes::default());
        for number in 1.. {
            let (stream, peer) = loop {
                self.wait_for_capacity();
                match handshakes.accept(listener) {
                    Ok(accepted) => break accepted,
                    Err(error) => output::note(format_args!("accept: {error}")),
                }
            };
            let stream = Arc::new(stream);
            let handshake = handshakes.begin(&stream, peer);
            let (lobby, is_own) = (self.clone(), is_own.clone());
            let refuse = move |why: &str| {
                output::note(format_args!(
                    "session {number} from {peer}{NOT_STARTED}{why}"
                ));
            };
            // If no thread can be created now, the next client may succeed.
            let begun = threads::spawn(STACK, move || match greet(stream, handshake, &*is_own) {
                Ok((stream, hello)) => lobby.push(WaitingClient {
                    number,
                    stream,
                    peer,
                    hello,
                }),
                Err(why) => refuse(&why),
            });
            if let Err(error) = begun {
                refuse(&error.to_string());
            }
        }
    }

    /// Waits for a client, and returns the one that has waited longest.
    pub(super) fn next(&self) -> WaitingClient {
        let mut waiting = lock(&self.waiting);
        loop {
            if let Some(client) = waiting.pop_front() {
                self.changed.notify_all();
                return client;
            }
            waiting = self.wait(waiting);
        }
    }

    fn push(&self, client: WaitingClient) {
        lock(&self.waiting).push_back(client);
        self.changed.notify_all();
    }

    fn wait_for_capacity(&self) {
        let mut waiting = lock(&self.waiting);
        while waiting.len() >= MOST {
            waiting = self.wait(waiting);
        }
    }

    fn wait<'a>(
        &self,
        waiting: MutexGuard<'a, VecDeque<WaitingClient>>,
    ) -> MutexGuard<'a, VecDeque<WaitingClient>> {
        unpoisoned(self.changed.wait(waiting))
    }
}

impl WaitingClient {
    /// Returns whether the client has closed its connection and all its bytes were read.
    pub(super) fn is_gone(&self) -> io::Result<bool> {
        self.stream.set_nonblocking(true)?;
        let looked = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false)?;
        match looked {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            looked => Ok(looked? == 0),
        }
    }
}

/// Reads a hello, and rejects a client with another key.
fn greet(
    stream: Arc<TcpStream>,
    handshake: Handshake,
    is_own: &dyn Fn(&str) -> bool,
) -> Result<(TcpStream, Hello<'static>), String> {
    let hello = handshake.read_hello(&stream)?;
    // RPC-05: checked before the answer, unlike in Python's servers, which answer first and then fail.
    hello.timeout().map_err(|broken| broken.to_string())?;
    // RPC-80: the whole first word is compared, so that `server:` is not a client.
    let first = hello.key.split_whitespace().next().unwrap_or_default();
    if !first.strip_prefix("client:").is_some_and(is_own) {
        // A client that has left needs no answer.
        let _ = write_answer(&stream, &HelloAnswer::Mismatch);
        return Err(format!("`{}` has another key", hello.key.escape_debug()));
    }
    handshake.end(&stream)?;
    let stream = Arc::into_inner(stream).ok_or("it gave way to others")?;
    Ok((stream, hello))
}

/// Writes an answer. It is short enough for the empty send buffer of the system, so that writing does not block.
pub(super) fn write_answer(mut stream: &TcpStream, answer: &HelloAnswer<'_>) -> io::Result<()> {
    let mut out = Writer::new();
    let written = answer.write(Release::LAST, &mut out);
    written.map_err(io::Error::other)?;
    stream.write_all(&out.into_bytes())
}
