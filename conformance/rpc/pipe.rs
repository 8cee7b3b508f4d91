//! An in-process connection: each end reads the bytes that the other one writes.

use crate::lock::{lock, unpoisoned};
use crate::rpc::transport::RpcStream;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// One end. It closes both directions on drop.
pub(super) struct PipeEnd {
    incoming: Arc<OneWay>,
    outgoing: Arc<OneWay>,
    limit: Mutex<Option<Duration>>,
}

/// Bytes that were written but not yet read.
#[derive(Default)]
struct OneWay {
    waiting: Mutex<PipeBuffer>,
    changed: Condvar,
}

#[derive(Default)]
struct PipeBuffer {
    bytes: VecDeque<u8>,
    is_closed: bool,
}

/// Creates both ends.
pub(super) fn open_pipe() -> (PipeEnd, PipeEnd) {
    let (one, other) = (Arc::new(OneWay::default()), Arc::new(OneWay::default()));
    let end = |incoming: &Arc<OneWay>, outgoing: &Arc<OneWay>| PipeEnd {
        incoming: Arc::clone(incoming),
        outgoing: Arc::clone(outgoing),
        limit: Mutex::new(None),
    };
    (end(&one, &other), end(&other, &one))
}

impl OneWay {
    /// Closes one direction: its bytes are still read, followed by the end.
    fn close(&self) {
        lock(&self.waiting).is_closed = true;
        self.changed.notify_all();
    }
}

impl PipeEnd {
    /// Returns a second writer for the outgoing direction.
    pub(super) fn writer(&self) -> PipeWriter {
        PipeWriter(Arc::clone(&self.outgoing))
    }
}

/// A second writer to the outgoing direction of an end.
pub(super) struct PipeWriter(Arc<OneWay>);

impl PipeWriter {
    /// Writes bytes. Returns false if the other end is gone.
    pub(super) fn write(&self, bytes: &[u8]) -> bool {
        let mut waiting = lock(&self.0.waiting);
        if waiting.is_closed {
            return false;
        }
        waiting.bytes.extend(bytes);
        self.0.changed.notify_all();
        true
    }

    /// Closes the direction for writing.
    pub(super) fn close(&self) {
        self.0.close();
    }
}

// Like a socket: a read waits for the first byte and takes all bytes that have arrived. A limit ends the wait with an error, and no bytes mean the
// end.
impl Read for PipeEnd {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let limit = *lock(&self.limit);
        // Computed once: a wake-up without bytes must not restart the time.
        let deadline = limit.map(|limit| Instant::now() + limit);
        let mut waiting = lock(&self.incoming.waiting);
        while waiting.bytes.is_empty() && !waiting.is_closed {
            waiting = match deadline {
                None => unpoisoned(self.incoming.changed.wait(waiting)),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                    unpoisoned(self.incoming.changed.wait_timeout(waiting, left)).0
                }
            };
        }
        waiting.bytes.read(buffer)
    }
}

impl Write for PipeEnd {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.writer().write(bytes) {
            Ok(bytes.len())
        } else {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl RpcStream for PipeEnd {
    fn set_limit(&self, limit: Option<Duration>) -> io::Result<()> {
        *lock(&self.limit) = limit;
        Ok(())
    }
}

impl Drop for PipeEnd {
    fn drop(&mut self) {
        self.incoming.close();
        self.outgoing.close();
    }
}
