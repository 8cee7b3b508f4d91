//! What a proxy reads in a hello: which side it is, and the key that both sides share.

use super::super::RPC_70;
use super::hello::Hello;
use super::protocol::Speaker;
use crate::rule::{Kind, Violation};

impl Hello<'_> {
    /// Which side of a session wrote the hello to a proxy: a server where it begins with `server:`, otherwise a client (RPC-70).
    pub fn role(&self) -> Speaker {
        if self.key.starts_with("server:") {
            Speaker::Server
        } else {
            Speaker::Client
        }
    }

    /// The key by which a proxy finds the other side: [`Hello::match_key`], which is not empty there.
    ///
    /// # Errors
    ///
    /// RPC-70 for an empty key.
    pub fn pair_key(&self) -> Result<&str, Violation> {
        let key = self.match_key();
        // RPC-70: upstream's proxies raise an exception on it, and leave the connection open without an answer.
        RPC_70.demand(Kind::Malformed, !key.is_empty(), || {
            format!("`{}` has no key to match", self.key)
        })?;
        Ok(key)
    }
}
