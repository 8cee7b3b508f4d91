//! An independent reader for PAY-55 to PAY-57 and PAY-61 to PAY-77: the two older machines.

use super::{In, Odd, payload, tensor};
use tvmspec::release::Layout;
use tvmspec::tensor::Sizing;

/// The sizes that bound the indices in instructions.
struct Tables {
    era: u32,
    constants: usize,
    functions: usize,
    primitives: usize,
}

/// Reads the code of the Relay VM.
pub fn relay(from: &mut In<'_>, odd: &mut Odd) -> Option<()> {
    if from.u64()? != 0xD225_DE2F_4214_151D {
        return None;
    }
    let version = from.text()?;
    let mut parts = version.split('.');
    let minor = parts.next().filter(|major| *major == "0").and(parts.next())?;
    // PAY-62: a number has digits only, but Rust's parser also accepts a sign.
    let era: u32 = minor.parse().ok().filter(|_| !minor.starts_with('+'))?;
    if !(6..=19).contains(&era) {
        return None;
    }
    if era >= 9 {
        let devices = from.vector(|from| {
            from.take(8)?;
            if era >= 14 { from.text().map(drop) } else { Some(()) }
        })?.len();
        usize::try_from(from.i32()?).ok().filter(|host| *host < devices)?;
    }
    let globals = from.vector(|from| from.text())?;
    let constants = from.vector(|from| {
        let tag = if era >= 9 { from.i32()? } else { 0 };
        match tag {
            0 => tensor::record(from, if era == 6 { Sizing::V0_4 } else { Sizing::V0_7 }, odd).map(drop),
            1 => from.text().map(drop),
            _ => None,
        }
    })?.len();
    if era >= 7 && from.words()?.len() != constants {
        return None;
    }
    let primitives = from.vector(|from| from.text())?.len();
    if era >= 8 {
        from.vector(|from| {
            from.u64()?;
            from.vector(|from| from.text().and(from.text()))
        })?;
    }
    let tables = Tables { era, constants, functions: globals.len(), primitives };
    from.vector(|from| function(from, &globals, &tables)).map(drop)
}

/// Reads a function by PAY-69, PAY-70 and PAY-74.
fn function(from: &mut In<'_>, globals: &[&str], tables: &Tables) -> Option<()> {
    let three = from.vector(|from| from.text())?;
    let [name, registers, count] = three.as_slice() else { return None };
    let number = |text: &str| text.parse::<u64>().ok().filter(|number| number.to_string() == text);
    let (registers, count) = (number(registers)?, number(count)?);
    let params = from.vector(|from| from.text())?;
    if !globals.contains(name) || tables.era >= 7 && from.words()?.len() != params.len() {
        return None;
    }
    for at in 0..count {
        let words = from.words()?;
        let [hash, opcode, fields @ ..] = words.as_slice() else { return None };
        let expected = fields.iter().fold(*opcode, |hash, field| {
            hash ^ field.wrapping_add(0x9e37_79b9).wrapping_add(hash << 6).wrapping_add(hash >> 2)
        });
        if expected != *hash {
            return None;
        }
        let (fixed, tail) = grammar(*opcode, tables.era)?;
        let fields: Vec<i64> = fields.iter().map(|field| field.cast_signed()).collect();
        // PAY-73: `#` holds the count of fields after the fixed ones.
        let more = match fixed.find('#') {
            Some(place) => usize::try_from(*fields.get(place)?).ok()?,
            None => 0,
        };
        if fields.len().checked_sub(fixed.len()) != Some(more) {
            return None;
        }
        for (place, field) in fields.iter().enumerate() {
            let below = |limit: u64| u64::try_from(*field).is_ok_and(|field| field < limit);
            let kept = match fixed.as_bytes().get(place).unwrap_or(&tail) {
                b's' if more > 0 => true,
                b'r' | b's' => below(registers),
                b'c' => below(tables.constants as u64),
                b'f' => below(tables.functions as u64),
                b'p' => below(tables.primitives as u64),
                b'j' => i128::from(at) + i128::from(*field) >= 0 && i128::from(at) + i128::from(*field) < i128::from(count),
                _ => true,
            };
            if !kept {
                return None;
            }
        }
    }
    Some(())
}

/// Returns the fixed fields of an instruction and the type of those after them, by PAY-72 and PAY-73.
///
/// Letters: `r` a register, `s` a size register, `c` a constant, `f` a function, `p` a primitive, `j` a jump, `n` a number, `#` a count.
fn grammar(opcode: u64, era: u32) -> Option<(&'static str, u8)> {
    let fixed = match opcode {
        0 | 13 => "rr",
        1 => "r",
        2 | 8 => return Some(("f#r", b'r')),
        3 => return Some(("r#r", b'r')),
        4 => return Some(("p#n", b'r')),
        5 if era == 6 => "rnnn#r",
        5 => "rrnnn#r",
        6 if era == 6 => "rrnnnr",
        6 => "rrrnnnr",
        7 => return Some(("n#r", b'r')),
        9 => "rnr",
        10 => "rrjj",
        11 if era >= 14 => "cnr",
        11 => "cr",
        12 => "j",
        14 => "nr",
        15 => "",
        16 if era >= 14 => "snnnnn#r",
        16 if era == 6 => "rrnnnr",
        16 => "rnnnnnr",
        17 if era >= 7 => "rr",
        18 if era >= 7 => "rrr",
        19 if era >= 7 => "rnnr",
        20 if era >= 9 => "r",
        _ => return None,
    };
    Some((fixed, b'n'))
}

/// Reads a StackVM file.
pub fn stackvm(from: &mut In<'_>, layout: Layout, odd: &mut Odd) -> Option<()> {
    from.vector(|from| {
        from.text()?;
        from.vector(|from| from.i32())?;
        for _ in ["texts", "functions", "names"] {
            from.vector(|from| from.text())?;
        }
        from.take(16)
    })?;
    from.text()?;
    from.vector(|from| {
        let kind = from.text().filter(|kind| *kind != "stackvm")?;
        from.0 = payload::any(from.0, kind, layout, odd)?;
        Some(())
    })
    .map(drop)
}
