//! Parsers for options of servers: the address of a peer, a key.

/// Parses HOST:PORT and returns it unchanged. The host may be a name that is resolved later, an address, or an IPv6 address in
/// brackets.
pub(super) fn host_port(text: &str) -> Result<String, String> {
    // Split at the last colon, because an IPv6 address contains colons.
    let (host, port) = text
        .rsplit_once(':')
        .ok_or("it has no port: HOST:PORT is wanted")?;
    match port.parse::<u16>() {
        // To a listener, port 0 means any free port. It is no port to connect to.
        Ok(1..) if !host.is_empty() => Ok(text.to_owned()),
        Ok(1..) => Err("it has no host: HOST:PORT is wanted".to_owned()),
        _ => Err(format!("`{port}` is not a port from 1 to 65535")),
    }
}

/// Parses the key of a server.
pub(super) fn key(text: &str) -> Result<String, String> {
    if text.contains(char::is_whitespace) {
        Err("a key has no blanks: no client could name it".to_owned())
    } else {
        Ok(text.to_owned())
    }
}
