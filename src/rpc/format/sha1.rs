//! SHA-1 of a short text (RFC 3174): what an upgrade to WebSocket is answered with (RPC-75). It protects nothing there, and nothing
//! else uses it.

/// The digest of `message`, 20 bytes.
pub(super) fn sha1(message: &[u8]) -> [u8; 20] {
    let mut padded = message.to_vec();
    padded.push(0x80);
    // RFC 3174: the length, eight bytes, ends the last block.
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    let bits = (message.len() as u64).wrapping_mul(8);
    padded.extend(bits.to_be_bytes());
    let mut state = [
        0x6745_2301_u32,
        0xefcd_ab89,
        0x98ba_dcfe,
        0x1032_5476,
        0xc3d2_e1f0,
    ];
    for block in padded.chunks_exact(64) {
        state = mixed(state, block);
    }
    let mut digest = [0; 20];
    let words = state.iter().flat_map(|word| word.to_be_bytes());
    for (to, byte) in digest.iter_mut().zip(words) {
        *to = byte;
    }
    digest
}

/// The state behind one block of 64 bytes.
fn mixed(state: [u32; 5], block: &[u8]) -> [u32; 5] {
    // The last sixteen words, oldest first: all that the next one is made of.
    let mut recent: Vec<u32> = block
        .chunks_exact(4)
        .filter_map(|word| word.try_into().ok().map(u32::from_be_bytes))
        .collect();
    let [mut a, mut b, mut c, mut d, mut e] = state;
    for round in 0..80_u32 {
        let word = recent.first().copied().unwrap_or_default();
        let (mix, constant) = match round {
            0..20 => ((b & c) | (!b & d), 0x5a82_7999),
            20..40 => (b ^ c ^ d, 0x6ed9_eba1),
            40..60 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
            _ => (b ^ c ^ d, 0xca62_c1d6_u32),
        };
        let next = a
            .rotate_left(5)
            .wrapping_add(mix)
            .wrapping_add(e)
            .wrapping_add(constant)
            .wrapping_add(word);
        (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
        let before = |back: usize| recent.get(16_usize.wrapping_sub(back)).copied();
        let back = [3, 8, 14, 16].into_iter().filter_map(before);
        let word = back.fold(0, |mixed, word| mixed ^ word).rotate_left(1);
        recent.remove(0);
        recent.push(word);
    }
    let [a0, b0, c0, d0, e0] = state;
    [
        a0.wrapping_add(a),
        b0.wrapping_add(b),
        c0.wrapping_add(c),
        d0.wrapping_add(d),
        e0.wrapping_add(e),
    ]
}
