//! By which release's rules a client writes: stated, or found out (RPC-84).

use super::super::{Packet, Progress, Protocol, RPC_84, Speaker};
use crate::release::Release;
use crate::rule::{Findings, Kind, Violation};
use crate::wire::Cursor;

/// How the client speaks, as far as that is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Era {
    /// Whose rules hold, for as long as nothing else is known.
    release: Release,
    known: bool,
    stated: bool,
    largest: u64,
}

/// One release of each way to write a packet. The version of 0.7 is another; from 0.8 on it is the same, and only arguments show which it
/// is (RPC-23).
const FFI: Release = Release::of(27);
const LEGACY: Release = Release::of(20);
const FIRST: Release = Release::of(7);

impl Era {
    /// Of the clients of `stated`, or of any.
    ///
    /// # Errors
    ///
    /// RPC-84 of kind unsupported up to 0.6.
    pub(super) fn new(stated: Option<Release>, largest: u64) -> Result<Era, Violation> {
        let release = stated.unwrap_or(Release::LAST);
        RPC_84.demand(Kind::Unsupported, release.minor() >= 7, || {
            format!("clients of {release} have another protocol, which is not served")
        })?;
        Ok(Era {
            release,
            known: stated.is_some(),
            stated: stated.is_some(),
            largest,
        })
    }

    /// How the client writes.
    pub(super) fn read(&self) -> Protocol {
        Protocol {
            largest: self.largest,
            ..Protocol::new(self.release, Speaker::Client)
        }
    }

    /// How the client wants to be written to.
    pub(super) fn write(&self) -> Protocol {
        Protocol::new(self.release, Speaker::Server)
    }

    /// Whether it was stated or found out.
    pub(super) fn is_known(&self) -> bool {
        self.known
    }

    /// The release.
    pub(super) fn release(&self) -> Release {
        self.release
    }

    /// Whether a bool has a code of its own. Bytes do not tell a client of 0.17, which does not know it, from one of 0.18.
    pub(super) fn has_bool(&self) -> bool {
        self.release.minor() >= 21 || (self.stated && self.release.minor() >= 18)
    }

    /// Whether an object that is none of the others has a handle (RPC-47). An older client that did not state its release fails by
    /// itself.
    pub(super) fn has_objects(&self) -> bool {
        !self.stated || self.release.minor() >= 16
    }

    /// Looks at a whole packet: where only one release reads it, the client is of that one.
    pub(super) fn look_at(&mut self, bytes: &[u8]) {
        if self.known {
            return;
        }
        // RPC-84: a packet without arguments, or with a device alone, is the same in both encodings and shows nothing.
        let only = match (reads(bytes, FFI), reads(bytes, LEGACY)) {
            (true, false) => FFI,
            (false, true) => LEGACY,
            (false, false) if reads(bytes, FIRST) => FIRST,
            _ => return,
        };
        self.release = only;
        self.known = true;
    }
}

/// Whether a client of `release` could have written the packet.
fn reads(bytes: &[u8], release: Release) -> bool {
    let spoken = Protocol {
        largest: u64::MAX,
        ..Protocol::new(release, Speaker::Client)
    };
    let mut findings = Findings::default();
    let read = Packet::read(&mut Cursor::new(bytes), &spoken, &mut findings);
    // RPC-49 and the like: bytes that are odd in one encoding are most often those of the other.
    matches!(read, Ok(Progress::Whole(_))) && findings.is_empty()
}
