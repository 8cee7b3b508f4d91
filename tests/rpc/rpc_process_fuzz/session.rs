//! One random session with a server, over a socket.

use crate::support::rpc_maker::{Maker, lock};
use std::io::{ErrorKind, Read, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tvmspec::release::Release;
use tvmspec::rpc::Hello;
use tvmspec::wire::Writer;

/// The kind of input in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    Hello,
    Packets,
    Changed,
    Cut,
    OtherEra,
}

impl Input {
    pub(crate) const ALL: [Input; 5] = [
        Input::Hello,
        Input::Packets,
        Input::Changed,
        Input::Cut,
        Input::OtherEra,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Input::Hello => "hello that is invalid, has another key, or has options",
            Input::Packets => "whole packets, arguments at random",
            Input::Changed => "one of four packets with bytes changed",
            Input::Cut => "whole packets, the last one cut off",
            Input::OtherEra => "packets of the other encoding",
        }
    }
}

/// The end of a session, as its client sees it and the server reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Every request has a result, or the hello its code; then the server closes after the client.
    Answered,
    /// Like `Answered`, with exceptions among the results, or one as the last packet.
    Exception,
    /// The server closes before the client, without an exception; or its process reports a failure.
    Closed,
    /// The process of the session ends by a signal.
    Crashed,
    /// Neither an answer nor an end comes in time.
    Hung,
    /// The server no longer serves clients.
    Gone,
}

impl End {
    pub(crate) const ALL: [(End, &'static str); 6] = [
        (End::Answered, "answered"),
        (End::Exception, "exception"),
        (End::Closed, "closed"),
        (End::Crashed, "crash"),
        (End::Hung, "hang"),
        (End::Gone, "server gone"),
    ];
}

/// The client's observations of a session.
#[derive(Default)]
pub(crate) struct Tally {
    /// The hello was answered, with success or with another code.
    pub(crate) has_begun: bool,
    pub(crate) has_code: bool,
    /// The server was the first to close.
    pub(crate) is_early: bool,
    pub(crate) is_late: bool,
    pub(crate) exceptions: usize,
    pub(crate) last_is_exception: bool,
}

/// Plays one session over a socket with a server of `release`.
pub(crate) fn play(
    stream: TcpStream,
    input: Input,
    maker: &mut Maker,
    release: Release,
    patience: Duration,
) -> Tally {
    stream.set_nodelay(true).expect("a socket");
    stream.set_read_timeout(Some(patience)).expect("a socket");
    stream.set_write_timeout(Some(patience)).expect("a socket");
    let mut seen = Tally::default();
    let mut own = &stream;
    let hello = match input {
        Input::Hello => maker.hello(),
        _ => {
            let mut out = Writer::new();
            let key = "client:".into();
            Hello { key }.write(&mut out).expect("a hello");
            out.into_bytes()
        }
    };
    // A server may close before the last byte.
    let _ = own.write_all(&hello);
    if input == Input::Hello {
        let _ = own.shutdown(Shutdown::Write);
    }
    match begins(own) {
        Ok(has_begun) => (seen.has_begun, seen.has_code) = (has_begun, true),
        Err(error) => seen.is_late = is_late(error.kind()),
    }
    if !seen.has_begun || input == Input::Hello {
        seen.is_late |= drain(own);
        return seen;
    }
    let (first, second) = (stream.try_clone(), stream.try_clone());
    let (first, second) = (first.expect("a twin"), second.expect("a twin"));
    let gone = Arc::new(AtomicBool::new(false));
    let (heard, over) = (maker.heard.clone(), gone.clone());
    let listener = thread::spawn(move || {
        heard.listen(first, release);
        let is_late = drain(&second);
        over.store(true, Ordering::SeqCst);
        is_late
    });
    let mut bytes = maker.begin();
    let count = 1 + maker.chance.below(40);
    for number in 1..=count {
        let mut packet = maker.bytes();
        if number == count && input == Input::Cut {
            let most = packet.len().max(1);
            packet.truncate(maker.chance.below(most));
        }
        bytes.extend(packet);
        // Several packets are written at once, as by a client that does not wait.
        let at_once = maker.chance.below(3) == 0 && number < count;
        if !at_once {
            let before = lock(&maker.heard.state).answers;
            if own.write_all(&std::mem::take(&mut bytes)).is_err() {
                break;
            }
            // Waits for the handles in the answer; not every packet has an answer.
            let waits = maker.heard.changed.wait_timeout_while(
                lock(&maker.heard.state),
                Duration::from_millis(20),
                |state| state.answers == before && !state.is_over,
            );
            drop(waits);
        }
    }
    seen.is_early = gone.load(Ordering::SeqCst);
    let _ = own.shutdown(Shutdown::Write);
    seen.is_late |= listener.join().expect("the client reads");
    let state = lock(&maker.heard.state);
    (seen.exceptions, seen.last_is_exception) = (state.exceptions, state.last_is_exception);
    seen
}

/// Reads the answer to a hello. Returns whether it is success.
fn begins(mut stream: &TcpStream) -> std::io::Result<bool> {
    let mut word = [0; 4];
    stream.read_exact(&mut word)?;
    if i32::from_le_bytes(word) != Hello::MAGIC {
        return Ok(false);
    }
    stream.read_exact(&mut word)?;
    let mut key = vec![0; i32::from_le_bytes(word).clamp(0, 4096) as usize];
    stream.read_exact(&mut key)?;
    Ok(true)
}

/// Reads to the end. Returns true if the end does not come in time.
fn drain(mut stream: &TcpStream) -> bool {
    let mut piece = [0; 65536];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return is_late(error.kind()),
        }
    }
}

fn is_late(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
