//! What a client shows inside of the tunnel (RPC-111).

use super::super::RPC_111;
use super::options::TlsSource;
use crate::function::{Error, ErrorKind, Result};
use crate::rule::Kind;
use std::io::{self, Read, Write};
use subtle::ConstantTimeEq;

/// The longest token, in bytes.
pub(super) const LONGEST: usize = 4096;

/// A secret that both ends know.
pub(super) struct Token {
    /// The token, and zeros up to the longest: any two are compared in one time, whatever their lengths.
    padded: [u8; LONGEST],
    length: usize,
}

impl Token {
    /// Of `source`, without what is blank around it: editors end a file with an end of line.
    pub(super) fn open(source: &TlsSource) -> Result<Token> {
        let content = source.read()?;
        Token::new(content.trim_ascii()).ok_or_else(|| {
            let text = format!(
                "{} has no token: it is empty, or has more than {LONGEST} bytes",
                source.name()
            );
            Error::new(ErrorKind::Value, text)
        })
    }

    /// A token of 1 to 4,096 bytes (RPC-111), padded to one length: a comparison then takes one time.
    fn new(bytes: &[u8]) -> Option<Token> {
        let mut padded = [0; LONGEST];
        padded.get_mut(..bytes.len())?.copy_from_slice(bytes);
        (!bytes.is_empty()).then_some(Token {
            padded,
            length: bytes.len(),
        })
    }

    /// Writes it: four bytes of length, little-endian, and the bytes.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let bytes = self.padded.get(..self.length).unwrap_or_default();
        // At most LONGEST.
        let length = (self.length as u32).to_le_bytes();
        out.write_all(&[&length, bytes].concat())
    }

    /// Reads what a client shows, and whether it is this.
    pub(super) fn read_same(&self, input: &mut impl Read) -> io::Result<bool> {
        let mut length = [0; 4];
        input.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length) as usize;
        let mut shown = [0; LONGEST];
        let room = shown
            .get_mut(..length)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no token is that long"))?;
        input.read_exact(room)?;
        // RPC-111: a comparison that ends at the first byte that differs shows by its time how many were right.
        let same = self.padded.ct_eq(&shown) & (self.length as u64).ct_eq(&(length as u64));
        Ok(bool::from(same))
    }
}

/// RPC-111, of a client that showed another token.
pub(super) fn demand(same: bool) -> Result<()> {
    RPC_111.demand(Kind::Unsupported, same, || {
        "the client shows another token".to_owned()
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a client that shows `shown` is the one of `own`.
    fn same(own: &str, shown: &str) -> bool {
        let [own, shown] = [own, shown].map(|text| Token::new(text.as_bytes()).expect("a token"));
        let mut bytes = Vec::new();
        shown.write(&mut bytes).expect("memory");
        own.read_same(&mut &bytes[..]).expect("a token")
    }

    #[test]
    fn rpc_111_a_token_is_the_whole_of_it() {
        assert!(same("secret", "secret"));
        for other in ["secre", "secrets", "Secret", "x", "secret\0"] {
            assert!(!same("secret", other) && !same(other, "secret"), "{other}");
        }
    }

    #[test]
    fn a_token_has_at_least_one_byte_and_at_most_4096() {
        let open = |content: &[u8]| Token::open(&TlsSource::Content(content.to_vec()));
        assert_eq!(open(b" a b\r\n").expect("a token").length, 3);
        assert_eq!(open(&[b'x'; LONGEST]).expect("a token").length, LONGEST);
        assert!(open(b"\n").is_err() && open(&[b'x'; LONGEST + 1]).is_err());
        let own = Token::new(b"x").expect("a token");
        let error = own.read_same(&mut &[1, 16, 0, 0][..]).expect_err("4097");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        let error = own
            .read_same(&mut &[2, 0, 0, 0, b'x'][..])
            .expect_err("cut");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
