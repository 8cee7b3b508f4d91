//! The parts of a hello that a proxy reads: the side that wrote it, and the key that both sides share.

use super::super::RPC_70;
use super::hello::Hello;
use super::protocol::Speaker;
use crate::rule::{Kind, Violation};

impl Hello<'_> {
    /// Returns the side that wrote the hello to a proxy: a server if it begins with `server:`, otherwise a client (RPC-70).
    pub fn role(&self) -> Speaker {
        if self.key.starts_with("server:") {
            Speaker::Server
        } else {
            Speaker::Client
        }
    }

    /// Returns the key by which a proxy finds the other side: [`Hello::match_key`], which must not be empty here.
    ///
    /// # Errors
    ///
    /// Returns RPC-70 for an empty key.
    pub fn pair_key(&self) -> Result<&str, Violation> {
        let key = self.match_key();
        // RPC-70: upstream's proxies raise an exception for it, and leave the connection open without an answer.
        RPC_70.demand(Kind::Malformed, !key.is_empty(), || {
            format!("`{}` has no key to match", self.key)
        })?;
        Ok(key)
    }
}
