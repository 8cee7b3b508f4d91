//! A proxy that is stopping accepts no peers, however long its sessions last.

use super::{ProxyOptions, Running, expect, hello};
use std::io::Read as _;
use std::net::TcpStream;
use std::time::{Duration, Instant};

#[test]
fn a_proxy_that_ends_leaves_no_one_in_its_backlog() {
    let proxy = Running::new(ProxyOptions::default());
    let mut server = proxy.peer("server:dev");
    let mut client = proxy.peer("client:dev -timeout=9");
    expect(&mut server, &hello("client:dev -timeout=9"));
    expect(&mut client, &hello("server:dev"));
    let address = proxy.handle.address();
    proxy.handle.stop();
    let begin = Instant::now();
    // The listener closes shortly after `stop`: a peer that connects before sees the end of its connection.
    while let Ok(mut late) = TcpStream::connect(address) {
        late.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let waits = matches!(late.read(&mut [0]), Err(error) if !is_end(&error));
        assert!(!waits, "a peer waits at a proxy that ends");
        assert!(begin.elapsed() < Duration::from_secs(10));
    }
    // The session continues.
    std::io::Write::write_all(&mut client, b"on").unwrap();
    expect(&mut server, b"on");
    drop((client, server));
}

/// Returns whether the connection is gone, not merely silent.
fn is_end(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{TimedOut, WouldBlock};
    !matches!(error.kind(), TimedOut | WouldBlock)
}
