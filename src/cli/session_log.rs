//! What the log of a server says of a session, as far as tests look for it.

/// Of a session that begins, at the end of the line.
pub(crate) const BEGINS: &str = ": begins";

/// Of a session whose process has not ended by itself.
pub(crate) const PROCESS_ENDED: &str = "the process ended";
