//! An independent reader for PAY-81 to PAY-97 and VM-01 to VM-05.

use super::{In, Odd, tensor};
use tvmspec::release::Layout;
use tvmspec::tensor::Sizing;

const VOID: i64 = 1 << 54;
const MACHINE: i64 = VOID + 1;

struct Function {
    kind: i32,
    start: i64,
    end: i64,
    arguments: i64,
    registers: i64,
    names: usize,
}

/// Reads an executable in `layout`, and checks the payload and vm chapters.
pub fn read(from: &mut In<'_>, layout: Layout, odd: &mut Odd) -> Option<()> {
    stored(from, layout, odd, true)
}

/// Reads an executable in `layout`, and checks only the payload chapter.
pub fn code_of(from: &mut In<'_>, layout: Layout, odd: &mut Odd) -> Option<()> {
    stored(from, layout, odd, false)?;
    Some(())
}

fn stored(from: &mut In<'_>, layout: Layout, odd: &mut Odd, runs: bool) -> Option<()> {
    if layout >= Layout::V0_22 {
        return code(from, layout, odd, runs);
    }
    let mut window = In(from.bytes()?);
    code(&mut window, layout, odd, runs)?;
    if !window.0.is_empty() {
        odd.insert("WIRE-08".into());
    }
    Some(())
}

fn code(from: &mut In<'_>, layout: Layout, odd: &mut Odd, runs: bool) -> Option<()> {
    let scoped = match from.u64()? {
        0xD225_DE2F_4214_151D => false,
        0xD225_DE2F_4214_151E if layout >= Layout::V0_22 => true,
        _ => return None,
    };
    if from.text()? != "0.14" {
        return None;
    }
    let mut called = Vec::new();
    let functions = from.vector(|from| {
        let kind = from.i32().filter(|kind| (0..=2).contains(kind))?;
        let name = from.text()?.to_owned();
        if called.contains(&name) {
            odd.insert("PAY-95".into());
        }
        called.push(name);
        let (start, end, arguments, registers) = (from.i64()?, from.i64()?, from.i64()?, from.i64()?);
        let names = from.vector(|from| from.text())?.len();
        Some(Function { kind, start, end, arguments, registers, names })
    })?;
    let scopes = match scoped {
        true => from.vector(|from| Some((from.i64()?, from.text()?)))?,
        false => Vec::new(),
    };
    let [tensor, dtype, shape, text, int, float] = match layout {
        Layout::V0_2 | Layout::V0_7 => [0, 1, 2, 3, 4, 5],
        Layout::V0_21 => [72, 5, 71, 65, 1, 3],
        _ => [70, 5, 69, 65, 1, 3],
    };
    let constants = from.vector(|from| {
        let tag = from.i32()?;
        match tag {
            _ if tag == tensor => tensor::record(from, Sizing::V0_7, odd).map(drop),
            _ if tag == dtype => from.take(4).map(drop),
            _ if tag == shape => from.vector(|from| from.i64()).map(drop),
            _ if tag == text => from.text().map(drop),
            _ if tag == int || tag == float => from.take(8).map(drop),
            _ => None,
        }
    })?;
    let mut seen = Vec::new();
    for (constant, _) in scopes {
        let inside = usize::try_from(constant).is_ok_and(|constant| constant < constants.len());
        if !inside || seen.contains(&constant) {
            return None;
        }
        seen.push(constant);
    }
    let (offsets, words) = (from.words()?, from.words()?);
    let words: Vec<i64> = words.into_iter().map(u64::cast_signed).collect();
    check(&functions, constants.len(), &instructions(&offsets, &words)?, words.len(), runs)
}

/// Splits the code into instructions by PAY-88, PAY-89 and PAY-96. Each has an opcode and the words after it.
fn instructions(offsets: &[u64], words: &[i64]) -> Option<Vec<Vec<i64>>> {
    let (mut all, mut at) = (Vec::new(), 0_usize);
    for offset in offsets {
        if *offset != at as u64 {
            return None;
        }
        let length = match words.get(at)? {
            1 => usize::try_from(*words.get(at + 3)?).ok().filter(|count| *count <= words.len())? + 4,
            2 | 3 => 2,
            4 => 3,
            _ => return None,
        };
        let one = words.get(at..at + length)?.to_vec();
        if one[0] == 1 && one[4..].iter().any(|word| word.cast_unsigned() >> 56 > 3) {
            return None;
        }
        all.push(one);
        at += length;
    }
    (at == words.len()).then_some(all)
}

/// Checks every index and jump that the machine follows. Checks VM-01 to VM-05 only if `runs` is set.
fn check(functions: &[Function], constants: usize, code: &[Vec<i64>], words: usize, runs: bool) -> Option<()> {
    let hold = |kept: bool| kept.then_some(());
    let mut owner = vec![false; code.len()];
    for function in functions {
        let Function { kind, start, end, arguments, registers, names } = *function;
        hold(0 <= start && start <= end && end <= code.len() as i64)?;
        if kind != 1 {
            continue;
        }
        for owned in &mut owner[start as usize..end as usize] {
            hold(!std::mem::replace(owned, true))?;
        }
        hold(0 <= arguments && arguments <= registers)?;
        hold(registers <= 65_536.max(words as i64))?;
        hold(!runs || names == 0 || names as i64 == arguments)?;
        // VM-01.
        hold(!runs || start < end && matches!(code[end as usize - 1][0], 2 | 3))?;
        let plain = |register: i64| 0 <= register && register < registers;
        let special = |register: i64| !runs && (register == VOID || register == MACHINE);
        for at in start..end {
            let jump = |by: i64| at.checked_add(by).is_some_and(|to| start <= to && to < end);
            match code[at as usize].as_slice() {
                [1, destination, callee, _, operands @ ..] => {
                    hold(plain(*destination) || *destination == VOID)?;
                    let callee = functions.get(usize::try_from(*callee).ok()?)?;
                    hold(!runs || callee.kind == 0 || callee.arguments == operands.len() as i64)?;
                    for word in operands {
                        let value = word << 8 >> 8;
                        hold(match word.cast_unsigned() >> 56 {
                            0 => plain(value) || value == VOID || value == MACHINE,
                            2 => usize::try_from(value).is_ok_and(|value| value < constants),
                            3 => usize::try_from(value).is_ok_and(|value| value < functions.len()),
                            _ => true,
                        })?;
                    }
                }
                [2, register] => hold(plain(*register) || *register == VOID || special(*register))?,
                [3, by] => hold(jump(*by))?,
                [4, register, by] => {
                    let kept = plain(*register) || special(*register);
                    hold(kept && jump(1) && jump(*by) && (!runs || *by > 1))?;
                }
                _ => return None,
            }
        }
    }
    Some(())
}
