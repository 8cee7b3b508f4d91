//! Texts about sessions in the log of a server, as far as tests search for them.

/// The end of the line for a session that begins.
pub(crate) const BEGINS: &str = ": begins";

/// The text for a session whose process did not end by itself.
pub(crate) const PROCESS_ENDED: &str = "the process ended";
