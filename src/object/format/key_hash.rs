//! The hash of texts and the slot of a key in a map, without values. Both are part of the ABI (OBJ-01, OBJ-07).
//!
//! The format readers use it to count how many keys of a file share a chain (OBJ-39), also in builds without values.

/// Maximum number of keys in one chain of a map whose keys come from a file or a text (OBJ-39). By chance, a chain in a map with a
/// million keys stays below a tenth of it.
pub(crate) const UNTRUSTED_CHAIN: u64 = 256;
/// The type index of a string, no matter how it is stored.
const TEXT: u64 = 65;
/// 2^64 divided by the golden ratio, made odd. The multiplication spreads similar hashes far apart in the upper bits.
const GOLDEN: u64 = 11_400_714_819_323_198_485;

/// Mixes `value` into `key` (OBJ-01) with wrapping 64-bit arithmetic. Not symmetric: the order of values counts.
#[inline]
pub(crate) const fn combine(key: u64, value: u64) -> u64 {
    key ^ (value
        .wrapping_add(0x9e37_79b9)
        .wrapping_add(key << 6)
        .wrapping_add(key >> 2))
}

/// Hashes bytes: a polynomial over little-endian words, with the last word padded with zeros (OBJ-01).
#[inline]
// With the feature `runtime` this is public as `hash::hash_bytes`.
#[cfg_attr(not(feature = "runtime"), allow(unreachable_pub))]
pub fn hash_bytes(bytes: &[u8]) -> u64 {
    // The prime of the 64-bit FNV hash, and 2^31 - 1, also a prime: a result has 31 bits.
    const BASE: u64 = 1_099_511_628_211;
    const MODULUS: u64 = 2_147_483_647;
    let mut hash = 0u64;
    let mut words = bytes.chunks_exact(8);
    for word in words.by_ref() {
        let mut eight = [0; 8];
        eight.copy_from_slice(word);
        // OBJ-01: as upstream, the product wraps in 64 bits before the remainder is taken.
        hash = hash
            .wrapping_mul(BASE)
            .wrapping_add(u64::from_le_bytes(eight))
            % MODULUS;
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        let word = match bytes.last_chunk::<8>() {
            // One load of the last eight bytes. The shift drops those already hashed, and fills the top with zeros.
            Some(last) => {
                u64::from_le_bytes(*last) >> 64usize.wrapping_sub(rest.len().wrapping_mul(8))
            }
            // The text has fewer than eight bytes, so no whole word can be loaded.
            None => rest
                .iter()
                .rev()
                .fold(0, |word, byte| word << 8 | u64::from(*byte)),
        };
        hash = hash.wrapping_mul(BASE).wrapping_add(word) % MODULUS;
    }
    hash
}

/// Hashes a text as a map key. Always uses the tag of a heap string, even for a text stored in the cell (OBJ-01).
pub(crate) fn hash_text(bytes: &[u8]) -> u64 {
    combine(TEXT, hash_bytes(bytes))
}

/// Returns the slots and the shift of a dense map for `count` pairs (at least 1). The slots are the next power of two above `count`,
/// doubled if the map would be more than half full. The shift leaves as many bits of a product as the slots need (OBJ-07).
pub(crate) fn table_size(count: u64) -> (u64, u32) {
    let shift = count.leading_zeros();
    let slots = 1u64 << u64::BITS.wrapping_sub(shift);
    // A map that is created with all its pairs has at least twice as many slots (spec/object.md, memory of a container).
    if slots < count.wrapping_mul(2) {
        (slots << 1, shift.wrapping_sub(1))
    } else {
        (slots, shift)
    }
}

/// Returns the slot where the chain of `hash` begins (OBJ-07): the upper bits of the product, which depend on all bits of the hash.
#[inline]
pub(crate) fn home(hash: u64, shift: u32) -> u64 {
    // A dense map has at least two slots, so the shift is below 64.
    GOLDEN.wrapping_mul(hash) >> shift
}
