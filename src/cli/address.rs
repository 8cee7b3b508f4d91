//! What an option of a server takes: the place of another, a key.

/// HOST:PORT, as it is: the host may be a name that is looked up later, an address, or an IPv6 address in brackets.
pub(super) fn host_port(text: &str) -> Result<String, String> {
    // From the right: an IPv6 address has colons of its own.
    let (host, port) = text
        .rsplit_once(':')
        .ok_or("it has no port: HOST:PORT is wanted")?;
    match port.parse::<u16>() {
        // Port 0 is any free one to a listener; nothing connects to it.
        Ok(1..) if !host.is_empty() => Ok(text.to_owned()),
        Ok(1..) => Err("it has no host: HOST:PORT is wanted".to_owned()),
        _ => Err(format!("`{port}` is not a port from 1 to 65535")),
    }
}

/// A key of a server.
pub(super) fn key(text: &str) -> Result<String, String> {
    if text.contains(char::is_whitespace) {
        Err("a key has no blanks: no client could name it".to_owned())
    } else {
        Ok(text.to_owned())
    }
}
