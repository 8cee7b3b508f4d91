//! A proxy that ends lets no one in, however long its sessions last.

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
    // The listener closes a little behind `stop`: who came before that sees the end of the connection.
    while let Ok(mut late) = TcpStream::connect(address) {
        late.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let waits = matches!(late.read(&mut [0]), Err(error) if !is_end(&error));
        assert!(!waits, "a peer waits at a proxy that ends");
        assert!(begin.elapsed() < Duration::from_secs(10));
    }
    // The session goes on.
    std::io::Write::write_all(&mut client, b"on").unwrap();
    expect(&mut server, b"on");
    drop((client, server));
}

/// Whether the connection is gone, and not merely silent.
fn is_end(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{TimedOut, WouldBlock};
    !matches!(error.kind(), TimedOut | WouldBlock)
}
