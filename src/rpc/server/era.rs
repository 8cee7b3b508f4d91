//! The release whose rules a client follows: stated, or detected from its packets (RPC-84).

use super::super::{PackedValue, Packet, Progress, Protocol, RPC_23, RPC_28, RPC_84, Speaker};
use crate::release::Release;
use crate::rule::{Findings, Kind, Violation};
use crate::wire::Cursor;
use std::cmp::Ordering;

/// The client's protocol, as far as it was stated or detected.
#[derive(Clone, Copy, Debug)]
pub(super) struct Era {
    /// Release whose rules apply until another one is detected.
    release: Release,
    known: bool,
    stated: bool,
    largest: u64,
}

/// One release for each way to encode a packet. The version string of 0.7 differs; from 0.8 on it is the same, and only arguments show the
/// era (RPC-23).
const FFI: Release = Release::of(27);
const LEGACY: Release = Release::of(20);
const FIRST: Release = Release::of(7);

impl Era {
    /// Creates the era of clients of `stated`, or of any client.
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

    /// Returns the protocol in which the client writes.
    pub(super) fn read(&self) -> Protocol {
        Protocol {
            largest: self.largest,
            ..Protocol::new(self.release, Speaker::Client)
        }
    }

    /// Returns the protocol in which the server answers.
    pub(super) fn write(&self) -> Protocol {
        Protocol::new(self.release, Speaker::Server)
    }

    /// Returns whether the release was stated or detected.
    pub(super) fn is_known(&self) -> bool {
        self.known
    }

    /// Returns the release by whose rules packets are read now.
    pub(super) fn release(&self) -> Release {
        self.release
    }

    /// Returns whether a bool has its own code. The bytes do not show whether the client is of 0.17, which does not know the code, or
    /// of 0.18.
    pub(super) fn has_bool(&self) -> bool {
        self.release.minor() >= 21 || (self.stated && self.release.minor() >= 18)
    }

    /// Returns whether an object of another type has a handle (RPC-47). An older client that did not state its release rejects it
    /// itself.
    pub(super) fn has_objects(&self) -> bool {
        !self.stated || self.release.minor() >= 16
    }

    /// Examines a whole packet, and adopts the release that it fits better than the others.
    pub(super) fn look_at(&mut self, bytes: &[u8]) {
        if self.known {
            return;
        }
        // RPC-84: a packet without arguments, or with only a device, is the same in both encodings and does not show the encoding.
        let (ffi, legacy) = (EraFit::rate(bytes, FFI), EraFit::rate(bytes, LEGACY));
        let only = match ffi.cmp(&legacy) {
            _ if EraFit::rate(bytes, FIRST) > ffi.max(legacy) => FIRST,
            Ordering::Greater => FFI,
            Ordering::Less => LEGACY,
            Ordering::Equal => return,
        };
        self.release = only;
        self.known = true;
    }
}

/// The degree to which a packet fits a client of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum EraFit {
    /// Such a client could not have written the bytes.
    No,
    /// The bytes are a valid packet that no client of TVM writes, or whose arguments do not fit its code.
    Odd,
    /// The bytes are a usual packet.
    Well,
}

impl EraFit {
    /// Rates the packet `bytes` as one of a client of `release`.
    fn rate(bytes: &[u8], release: Release) -> EraFit {
        let spoken = Protocol {
            largest: u64::MAX,
            ..Protocol::new(release, Speaker::Client)
        };
        let mut findings = Findings::default();
        match Packet::read(&mut Cursor::new(bytes), &spoken, &mut findings) {
            // RPC-49 and similar rules: bytes that are odd in one encoding are most often valid in the other.
            Ok(Progress::Whole(packet)) if findings.is_empty() && is_usual(&packet) => EraFit::Well,
            Ok(Progress::Whole(_)) => EraFit::Odd,
            // RPC-82: in this encoding, the request is answered with an exception.
            Err(broken) if matches!(broken.rule(), RPC_23 | RPC_28) => EraFit::Odd,
            _ => EraFit::No,
        }
    }
}

/// Returns whether clients of TVM write all values of a packet. RPC-84: only the order of codes and values distinguishes `[device,
/// integer]` in the two encodings. In the wrong encoding, the device's number is read as its type or as a code.
fn is_usual(packet: &Packet<'_>) -> bool {
    let (Packet::InitServer(_, args) | Packet::CallFunc(_, args) | Packet::SystemCall(_, args)) =
        packet
    else {
        return true;
    };
    args.iter().all(|value| match value {
        // RPC-43: an unsigned integer has a code up to 0.20, but clients write it as a signed one.
        PackedValue::Uint(_) => false,
        // RPC-86: device types of a server's own devices.
        PackedValue::Device(device) => (1..128).contains(&device.kind) && device.id >= 0,
        _ => true,
    })
}
