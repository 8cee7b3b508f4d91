//! One random session with a server, over a socket.

use crate::support::rpc_maker::{Maker, lock};
use std::io::{ErrorKind, Read, Write as _};
use std::net::{Shutdown, TcpStream};
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
}

/// Plays one session over a socket with a server of `release`. Returns whether an answer or the end does not come in time.
pub(crate) fn play(
    stream: TcpStream,
    input: Input,
    maker: &mut Maker,
    release: Release,
    patience: Duration,
) -> bool {
    stream.set_nodelay(true).expect("a socket");
    stream.set_read_timeout(Some(patience)).expect("a socket");
    stream.set_write_timeout(Some(patience)).expect("a socket");
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
    let begun = begins(own);
    if input == Input::Hello || !matches!(begun, Ok(true)) {
        let late = begun.is_err_and(|error| is_late(error.kind()));
        return drain(own) || late;
    }
    let (first, second) = (stream.try_clone(), stream.try_clone());
    let (first, second) = (first.expect("a duplicate"), second.expect("a duplicate"));
    let heard = maker.heard.clone();
    let listener = thread::spawn(move || {
        heard.listen(first, release);
        drain(&second)
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
    let _ = own.shutdown(Shutdown::Write);
    listener.join().expect("the client reads")
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
