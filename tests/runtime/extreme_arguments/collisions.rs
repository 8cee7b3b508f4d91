//! Names whose hashes collide.

use super::{Dice, builtin};
use tvmspec::object::Map;
use tvmspec::object::hash::any_hash;
use tvmspec::object::json_graph::{ffi, json};
use tvmspec::rule::Findings;
use tvmspec::value::{Any, index};

/// Returns keys of 16 bytes with the same hash. The hash is a polynomial over two words modulo the prime 2^31 - 1.
fn colliding(count: usize) -> Vec<String> {
    const BASE: u64 = 1_099_511_628_211;
    const MODULUS: u64 = 2_147_483_647;
    const LETTERS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut dice = Dice(1);
    let mut second = |shifted: u64| {
        (0..2_000).find_map(|_| {
            // The upper half is four letters or digits. 2^32 is 2 modulo the prime, so the lower half is the rest that gives a hash of 5.
            let upper = u32::from_le_bytes([(); 4].map(|()| LETTERS[dice.below(LETTERS.len())]));
            let sum = shifted.wrapping_add(u64::from(upper) << 32);
            let lower = u32::try_from((MODULUS + 5 - sum % MODULUS) % MODULUS).unwrap();
            let bytes = (u64::from(upper) << 32 | u64::from(lower)).to_le_bytes();
            let plain = bytes.iter().all(u8::is_ascii_alphanumeric);
            plain.then(|| String::from_utf8(bytes.to_vec()).unwrap())
        })
    };
    // Some first words have no second word that consists of letters and digits.
    let key = |number: usize| {
        let first = format!("{number:08}");
        let word = u64::from_le_bytes(first.as_bytes().try_into().unwrap());
        let second = second((word % MODULUS).wrapping_mul(BASE))?;
        Some(first + &second)
    };
    (0..).filter_map(key).take(count).collect()
}

#[test]
fn names_that_collide_are_rejected_before_they_cost_time() {
    let keys = colliding(400);
    let hashes: Vec<u64> = keys
        .iter()
        .map(|key| tvmspec::object::hash::hash_bytes(key.as_bytes()))
        .collect();
    assert!(
        hashes.iter().all(|hash| *hash == hashes[0]),
        "the keys do not collide"
    );
    let text = |count: usize| {
        let members: Vec<String> = keys[..count]
            .iter()
            .map(|key| format!("\"{key}\": 1"))
            .collect();
        format!("{{{}}}", members.join(", "))
    };
    let parse = builtin("ffi.json.Parse");
    let parsed = |count| parse.call([Any::from(text(count).as_str())]);
    assert_eq!(parsed(256).unwrap().type_index(), index::MAP);
    let error = parsed(257).unwrap_err();
    assert!(
        error.message().contains("share a chain"),
        "{}",
        error.message()
    );
    // A repeated name does not count again.
    let twice = text(256).replace('}', &format!(", \"{}\": 2}}", keys[0]));
    assert!(parse.call([Any::from(twice.as_str())]).is_ok());
    // The keys that a program itself chooses have no limit.
    let pairs = keys
        .iter()
        .map(|key| (Any::from(key.as_str()), Any::from(1)))
        .collect();
    assert_eq!(Map::from_pairs(pairs).unwrap().len(), 400);
}

/// Returns names with one home in a dense map of that shift, all with different hashes.
fn neighbours(count: usize, shift: u32) -> Vec<String> {
    let is_at_home = |name: &String| {
        let hash = any_hash(Any::from(name.as_str()).view()).unwrap();
        hash.wrapping_mul(11_400_714_819_323_198_485) >> shift == 3
    };
    let names = (0..).map(|number| format!("{number:x}"));
    names.filter(is_at_home).take(count).collect()
}

#[test]
fn both_readers_of_json_count_the_names_of_a_chain_alike() {
    let rejected = |names: &[&String]| {
        let members: Vec<String> = names
            .iter()
            // A name with other escapes is the same name.
            .enumerate()
            .map(|(at, name)| match at % 7 {
                0 => format!("\"\\u{:04x}{}\":{at}", name.as_bytes()[0], &name[1..]),
                _ => format!("\"{name}\":{at}"),
            })
            .collect();
        let text = format!("[0, {{\"x\":{{{}}}}}]", members.join(","));
        let values = json::parse(text.as_bytes()).map(drop).err();
        let checked = ffi::check(text.as_bytes(), &mut Findings::default())
            .err()
            .map(|fault| fault.violation);
        let checked = checked.filter(|broken| broken.rule().id() == "OBJ-39");
        if let (Some(values), Some(checked)) = (&values, &checked) {
            assert!(values.message().contains(checked.message()), "{values:?}");
        }
        let count = names.len();
        assert_eq!(values.is_some(), checked.is_some(), "{count}: {values:?}");
        checked.is_some()
    };
    let (same, near) = (colliding(300), neighbours(300, 64 - 11));
    let plain: Vec<String> = (0..1_000).map(|number| format!("plain{number}")).collect();
    let mut dice = Dice(9);
    let (mut yes, mut no) = (0, 0);
    for round in 0..120 {
        let chain = if round % 2 == 0 { &same } else { &near };
        let mut names: Vec<&String> = chain.iter().take(250 + dice.below(14)).collect();
        // From 512 to 1,023 pairs, a map has 2,048 slots. Only in such a map do the neighbours share a home.
        names.extend(plain.iter().take(dice.below(1_000)));
        let repeated = dice.below(30);
        names.extend_from_within(..repeated);
        for at in (1..names.len()).rev() {
            names.swap(at, dice.below(at + 1));
        }
        if rejected(&names) { yes += 1 } else { no += 1 }
    }
    assert!(yes > 20 && no > 20, "{yes} and {no}");
}
