//! By which release's rules a client writes: stated, or found out (RPC-84).

use super::super::{PackedValue, Packet, Progress, Protocol, RPC_23, RPC_28, RPC_84, Speaker};
use crate::release::Release;
use crate::rule::{Findings, Kind, Violation};
use crate::wire::Cursor;
use std::cmp::Ordering;

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

    /// The release by whose rules packets are read now.
    pub(super) fn release(&self) -> Release {
        self.release
    }

    /// Whether a bool has a code of its own. Bytes do not distinguish a client of 0.17, which does not know it, from one of 0.18.
    pub(super) fn has_bool(&self) -> bool {
        self.release.minor() >= 21 || (self.stated && self.release.minor() >= 18)
    }

    /// Whether an object that is none of the others has a handle (RPC-47). An older client that did not state its release fails by
    /// itself.
    pub(super) fn has_objects(&self) -> bool {
        !self.stated || self.release.minor() >= 16
    }

    /// Looks at a whole packet: where it fits one release better than the others, the client is of that one.
    pub(super) fn look_at(&mut self, bytes: &[u8]) {
        if self.known {
            return;
        }
        // RPC-84: a packet without arguments, or with a device alone, is the same in both encodings and shows nothing.
        let (ffi, legacy) = (EraFit::of(bytes, FFI), EraFit::of(bytes, LEGACY));
        let only = match ffi.cmp(&legacy) {
            _ if EraFit::of(bytes, FIRST) > ffi.max(legacy) => FIRST,
            Ordering::Greater => FFI,
            Ordering::Less => LEGACY,
            Ordering::Equal => return,
        };
        self.release = only;
        self.known = true;
    }
}

/// How well the bytes of a packet are what a client of a release writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum EraFit {
    /// It could not have written them.
    No,
    /// They are a packet of it that no client of TVM writes, or that has other arguments than its code.
    Odd,
    /// They are a packet of it.
    Well,
}

impl EraFit {
    /// Of the packet `bytes`, as a client of `release` would have written it.
    fn of(bytes: &[u8], release: Release) -> EraFit {
        let spoken = Protocol {
            largest: u64::MAX,
            ..Protocol::new(release, Speaker::Client)
        };
        let mut findings = Findings::default();
        match Packet::read(&mut Cursor::new(bytes), &spoken, &mut findings) {
            // RPC-49 and the like: bytes that are odd in one encoding are most often those of the other.
            Ok(Progress::Whole(packet)) if findings.is_empty() && is_usual(&packet) => EraFit::Well,
            Ok(Progress::Whole(_)) => EraFit::Odd,
            // RPC-82: a request that is answered with an exception, in this encoding.
            Err(broken) if matches!(broken.rule(), RPC_23 | RPC_28) => EraFit::Odd,
            _ => EraFit::No,
        }
    }
}

/// Whether all values of a packet are ones that clients of TVM write. RPC-84: the order of codes and values is all that tells
/// `[device, integer]` of one encoding from that of the other, so that the number of a device is read as a type, or as a code.
fn is_usual(packet: &Packet<'_>) -> bool {
    let (Packet::InitServer(_, args) | Packet::CallFunc(_, args) | Packet::SystemCall(_, args)) =
        packet
    else {
        return true;
    };
    args.iter().all(|value| match value {
        // RPC-43: an unsigned integer has a code up to 0.20, and clients write it as a signed one.
        PackedValue::Uint(_) => false,
        // RPC-86: the types of a server's own devices.
        PackedValue::Device(device) => (1..128).contains(&device.kind) && device.id >= 0,
        _ => true,
    })
}
