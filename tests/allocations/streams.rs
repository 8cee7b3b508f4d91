//! Memory of streaming readers and writers: a connection in proportion to its largest message, a target to its text.

use super::peak_of;
use tvmspec::rpc::Connection;
use tvmspec::target::readings_by_release;

const CLIENT: &[u8] = include_bytes!("../../golden/rpc/full-0.27.client.bin");
const SERVER: &[u8] = include_bytes!("../../golden/rpc/full-0.27.server.bin");

/// Returns the peak memory of reading the connection and of writing it as JSON. `tail` replaces the client's last packet.
fn decoded(tail: &[u8]) -> usize {
    // The shutdown packet has 12 bytes.
    let mut client = CLIENT[..CLIENT.len() - 12].to_vec();
    client.extend(tail);
    let (peak, ()) = peak_of(|| {
        let read = Connection::read(&client, SERVER, None);
        assert_eq!(read.client.broken, None);
        serde_json::to_writer(std::io::sink(), &read).unwrap();
    });
    peak
}

/// Creates a call of function 7 with `count` integer arguments.
fn call(count: usize) -> Vec<u8> {
    let mut body = vec![3, 0, 0, 0];
    body.extend(7_u64.to_le_bytes());
    body.extend((count as i32).to_le_bytes());
    body.extend([1, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0].repeat(count));
    [&(body.len() as u64).to_le_bytes(), &body[..]].concat()
}

#[test]
fn a_connection_is_decoded_in_the_memory_of_its_largest_message() {
    let (some, many) = (decoded(&[0; 8 * 1000]), decoded(&[0; 8 * 40_000]));
    assert!(many <= some + 1024, "{some} and {many} bytes");
    let (some, many) = (call(10).repeat(100), call(10).repeat(4000));
    let (some, many) = (decoded(&some), decoded(&many));
    assert!(many <= some + 1024, "{some} and {many} bytes");
    let large = call(100_000);
    let peak = decoded(&large);
    assert!(peak < 10 * large.len(), "{peak} bytes for {}", large.len());
}

#[test]
fn what_releases_make_of_a_target_is_not_in_memory_for_all_of_them() {
    let features: Vec<String> = (0..20_000).map(|at| format!("+a{at}")).collect();
    let text = format!("llvm -mattr={}", features.join(","));
    let (peak, rows) = peak_of(|| readings_by_release(&text).rows().count());
    assert!(rows > 3);
    assert!(peak < 40 * text.len(), "{peak} bytes for {}", text.len());
}
