//! An independent reader for TEN-20 to TEN-45.

use super::{In, Odd};
use tvmspec::tensor::Sizing;

fn odd(odd: &mut Odd, kept: bool, id: &str) {
    if !kept {
        odd.insert(id.into());
    }
}

/// Checks TEN-33.
fn has_meaning(code: u8, bits: u8) -> bool {
    match code {
        0 | 1 | 129..=255 => true,
        2 => [16, 32, 64].contains(&bits),
        3 => [32, 64].contains(&bits),
        4 => bits == 16,
        5 => [32, 64, 128].contains(&bits),
        6 => [1, 8].contains(&bits),
        8 => [4, 8].contains(&bits),
        7 | 9..=14 => bits == 8,
        15 | 16 => bits == 6,
        17 => bits == 4,
        _ => false,
    }
}

/// Reads one record. Returns its shape and the count of its data bytes.
pub fn record(from: &mut In<'_>, sizing: Sizing, found: &mut Odd) -> Option<(Vec<i64>, u64)> {
    if from.u64()? != 0xDD5E_40F0_96B4_A13F {
        return None;
    }
    odd(found, from.u64()? == 0, "TEN-22");
    let (kind, id) = (from.i32()?, from.i32()?);
    if kind != 1 && sizing != Sizing::V0_2 {
        return None;
    }
    odd(found, id == 0, "TEN-24");
    let ndim = u64::try_from(from.i32()?).ok()?;
    let (code, bits, lanes) = (from.u8()?, from.u8()?, from.u16()?);
    if bits == 0 || lanes == 0 || ndim > from.0.len() as u64 {
        return None;
    }
    odd(found, has_meaning(code, bits), "TEN-33");
    odd(found, lanes == 1 || sizing == Sizing::V0_2, "TEN-34");
    let shape: Vec<i64> = (0..ndim).map(|_| from.i64().filter(|extent| *extent >= 0)).collect::<Option<_>>()?;
    let (bits, all) = (u128::from(bits), u128::from(bits) * u128::from(lanes));
    let element = match sizing {
        Sizing::V0_2 => all.div_ceil(8),
        Sizing::V0_4 => bits / 8,
        Sizing::V0_7 => bits.div_ceil(8),
    };
    let product = |unit: u128| match shape.contains(&0) {
        true => Some(0),
        false => shape.iter().try_fold(unit, |all, extent| all.checked_mul(extent.unsigned_abs().into())),
    };
    // TEN-27, then TEN-29 to TEN-31.
    let size = product(element).filter(|size| *size <= i64::MAX as u128)?;
    let stored = u128::try_from(from.i64()?).ok()?;
    if stored != size {
        return None;
    }
    let whole = product(all).is_some_and(|bits| bits.div_ceil(8) <= stored);
    odd(found, whole, "TEN-35");
    from.take(stored as u64)?;
    Some((shape, stored as u64))
}

/// Reads the dimensions of a record without checks.
pub fn dimensions(from: &mut In<'_>) -> Option<Vec<i64>> {
    from.take(24)?;
    let ndim = u64::try_from(from.i32()?).ok()?;
    from.take(4)?;
    (0..ndim.min(64)).map(|_| from.i64()).collect()
}

/// Reads a parameter file, and returns the names.
pub fn params<'a>(from: &mut In<'a>, sizing: Sizing, found: &mut Odd) -> Option<Vec<&'a str>> {
    if from.u64()? != 0xF7E5_8D4F_0504_9CB7 {
        return None;
    }
    odd(found, from.u64()? == 0, "TEN-42");
    let names = from.vector(|from| from.text())?;
    let twice = (0..names.len()).any(|at| names[..at].contains(&names[at]));
    odd(found, !twice, "TEN-44");
    if from.u64()? != names.len() as u64 {
        return None;
    }
    for _ in &names {
        record(from, sizing, found)?;
    }
    Some(names)
}

/// Returns the newest family with matching sizes, by TEN-45.
pub fn detected(bytes: &[u8]) -> Option<Sizing> {
    let newest_first = [Sizing::V0_7, Sizing::V0_4, Sizing::V0_2];
    newest_first.into_iter().find(|sizing| params(&mut In(bytes), *sizing, &mut Odd::new()).is_some())
}
