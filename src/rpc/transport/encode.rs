//! Encoding of a packet into the slices of one vectored write.

use super::super::{Packet, Protocol};
use crate::rule::Violation;
use crate::wire::Writer;
use std::borrow::Cow;

/// Size in bytes from which content is not copied into the buffer of the packet's head. Below it, one copy costs less than a second slice.
pub(super) const LARGE: usize = 16 << 10;

/// Encodes a packet as its head and its content, which is borrowed if it is large.
pub(super) fn encoded<'a>(
    packet: &'a Packet<'_>,
    spoken: &Protocol,
) -> Result<(Vec<u8>, &'a [u8]), Violation> {
    let (head, content): (Packet<'_>, &[u8]) = match packet {
        Packet::CopyAck(content) if content.len() >= LARGE => {
            (Packet::CopyAck(Cow::Borrowed(&[])), content)
        }
        Packet::CopyToRemote(to, content) if content.len() >= LARGE && spoken.is_block() => (
            Packet::CopyToRemote(to.clone(), Cow::Borrowed(&[])),
            content,
        ),
        _ => {
            let mut out = Writer::new();
            packet.write(spoken, &mut out)?;
            return Ok((out.into_bytes(), &[]));
        }
    };
    let mut out = Writer::new();
    head.write(spoken, &mut out)?;
    let mut bytes = out.into_bytes();
    let length = content.len() as u64;
    // RPC-25: the number of bytes is the last field before the bytes themselves.
    if let (Packet::CopyToRemote(..), Some(number)) = (&head, bytes.last_chunk_mut::<8>()) {
        *number = length.to_le_bytes();
    }
    // RPC-10: the length also counts the borrowed content. Up to 0.6 there is no length.
    let behind = (bytes.len() as u64).saturating_sub(8);
    if let Some(number) = bytes.first_chunk_mut::<8>().filter(|_| spoken.is_framed()) {
        *number = behind.saturating_add(length).to_le_bytes();
    }
    Ok((bytes, content))
}
