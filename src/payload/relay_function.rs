//! A function of Relay VM code: three strings, parameters, instructions.
//!
//! | field | bytes | releases | rule |
//! |---|---|---|---|
//! | info | vector of three strings: name, registers and instructions in decimal | | PAY-69, PAY-74 |
//! | params | vector of strings | | PAY-70 |
//! | param devices | vector of i64, one for each parameter | 0.7 .. | PAY-70 |
//! | code | the instructions, without a count of their own | | PAY-71 .. PAY-77 |

use super::name_set::NameSet;
use super::relay_code::{RelayFrame, RelayInstruction};
use super::strings::{names, write_names};
use super::{PAY_69, PAY_70, PAY_74, Text};
use crate::rule::{Kind, Violation};
use crate::wire::{Cursor, Writer};

/// One function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayFunction<'a> {
    /// Its name, one of the globals.
    pub name: Text<'a>,
    /// How many registers its frame has.
    pub registers: u64,
    /// Names of the parameters.
    pub params: Vec<Text<'a>>,
    /// Device of each parameter, as for constants. Empty in 0.6.
    pub param_devices: Vec<i64>,
    /// Its instructions.
    pub code: Vec<RelayInstruction>,
}

impl<'a> RelayFunction<'a> {
    /// Reads a function and its code (PAY-69 to PAY-74), and holds the code to the tables of `frame`.
    pub(super) fn read(
        cursor: &mut Cursor<'a>,
        globals: &NameSet<'_>,
        frame: &mut RelayFrame,
    ) -> Result<RelayFunction<'a>, Violation> {
        // PAY-69: the header is one vector of strings upstream, numbers included; no other count is taken.
        let info = cursor.read("info", |cursor| cursor.count(8, "info"))?;
        info.require(
            PAY_69,
            |count| *count == 3,
            |count| format!("a function starts with 3 strings, here are {count}"),
        )?;
        // PAY-74: the index of a function is where its name is among the globals, and not where the function does.
        let name = cursor.str("name", PAY_69)?.require_as(
            Kind::Missing,
            PAY_74,
            |name| globals.has(name),
            |name| format!("function `{name}` is not one of the globals"),
        )?;
        // PAY-69: no limit: a frame is made when the function is called, and every register is held to it (PAY-75).
        let registers = read_decimal(cursor, "registers")?;
        let instructions = read_decimal(cursor, "instructions")?;
        let params = names(cursor, "params", PAY_70)?;
        let param_devices = read_param_devices(cursor, frame.era, params.len())?;
        frame.registers = registers;
        frame.instructions = instructions;
        // Not reserved: the number is a text, and every instruction is met by its own bytes or found truncated.
        let mut code = Vec::new();
        for index in 0..instructions {
            code.push(cursor.within("code", index, |cursor| {
                RelayInstruction::read(cursor, frame, index)
            })?);
        }
        Ok(RelayFunction {
            name: name.into(),
            registers,
            params,
            param_devices,
            code,
        })
    }

    /// The inverse of [`RelayFunction::read`], as release 0.`era` writes it; each hash is computed (PAY-71).
    pub(super) fn write(&self, era: u8, out: &mut Writer) {
        out.count(3);
        out.str(&self.name);
        // PAY-69: three strings, because the header of a function is one vector of them.
        out.str(&self.registers.to_string());
        out.str(&self.code.len().to_string());
        write_names(&self.params, out);
        if era >= 7 {
            out.vector(&self.param_devices, |out, device| out.i64(*device));
        }
        for instruction in &self.code {
            out.count(instruction.fields.len().saturating_add(2));
            // PAY-71: computed anew, so that an edit of the fields is no broken instruction.
            out.u64(instruction.hash());
            out.i64(instruction.opcode);
            instruction.fields.iter().for_each(|field| out.i64(*field));
        }
    }
}

/// PAY-69: a number as decimal text, in the only way that writes back the same.
fn read_decimal(cursor: &mut Cursor<'_>, field: &str) -> Result<u64, Violation> {
    let digits = cursor.str(field, PAY_69)?;
    // PAY-69: `parse` accepts `+3` and `03`; the comparison below does not.
    let number = digits.parse::<u64>().ok();
    // PAY-69: released readers use `stoll`, which takes blanks, signs and whatever follows the digits.
    let number = number.filter(|number| number.to_string() == *digits);
    number.ok_or_else(|| {
        let message = format!("`{}` is not a decimal number", digits.escape_debug());
        digits.broken(PAY_69, Kind::Malformed, message)
    })
}

/// PAY-70: one device per parameter.
/// None in code of 0.6, which has no such vector.
fn read_param_devices(
    cursor: &mut Cursor<'_>,
    era: u8,
    params: usize,
) -> Result<Vec<i64>, Violation> {
    if era < 7 {
        return Ok(Vec::new());
    }
    let field = "param_devices";
    let devices = cursor.read(field, |cursor| {
        cursor.vector(8, field, |cursor| Ok(*cursor.i64(field, PAY_70)?))
    })?;
    devices.require(
        PAY_70,
        |devices| devices.len() == params,
        |devices| format!("{params} parameters and devices for {}", devices.len()),
    )
}
