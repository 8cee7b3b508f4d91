//! Memory of an RPC connection.

use super::peak_of;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use tvmspec::release::Release;
use tvmspec::rpc::transport::Transport;
use tvmspec::rpc::{Protocol, Speaker};
use tvmspec::rule::Findings;

#[test]
fn a_length_alone_reserves_nothing() {
    let (mut one, other) = UnixStream::pair().expect("a pair");
    one.write_all(&(1_u64 << 29).to_le_bytes())
        .expect("written");
    drop(one);
    let spoken = Protocol::new(Release::of(27), Speaker::Client);
    let mut transport = Transport::new(other);
    let (peak, read) = peak_of(|| {
        let read = transport.read_packet(&spoken, &mut Findings::default());
        read.map(drop)
    });
    read.expect_err("cut");
    assert!(peak < 1 << 20, "{peak} bytes");
}
