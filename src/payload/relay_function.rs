//! A function of Relay VM code: three strings, parameters, instructions.
//!
//! | field | bytes | releases | rule |
//! |---|---|---|---|
//! | info | vector of three strings: name, registers and instructions in decimal | | PAY-69, PAY-74 |
//! | params | vector of strings | | PAY-70 |
//! | param devices | vector of i64, one for each parameter | 0.7 .. | PAY-70 |
//! | code | the instructions, without a separate count | | PAY-71 .. PAY-77 |

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
    /// Number of registers in its frame.
    pub registers: u64,
    /// Names of the parameters.
    pub params: Vec<Text<'a>>,
    /// Device of each parameter, in the form of constants' devices. Empty in 0.6.
    pub param_devices: Vec<i64>,
    /// Its instructions.
    pub code: Vec<RelayInstruction>,
}

impl<'a> RelayFunction<'a> {
    /// Reads a function and its code (PAY-69 to PAY-74), and checks the code against the tables of `frame`.
    pub(super) fn read(
        cursor: &mut Cursor<'a>,
        globals: &NameSet<'_>,
        frame: &mut RelayFrame,
    ) -> Result<RelayFunction<'a>, Violation> {
        // PAY-69: upstream the header is one vector of strings, numbers included, so the count must be 3.
        let info = cursor.read("info", |cursor| cursor.count(8, "info"))?;
        info.require(
            PAY_69,
            |count| *count == 3,
            |count| format!("a function: expected 3 strings at its start, found {count}"),
        )?;
        // PAY-74: the index of a function is the position of its name among the globals, not the position of the function.
        let name = cursor.str("name", PAY_69)?.require_as(
            Kind::Missing,
            PAY_74,
            |name| globals.has(name),
            |name| format!("function `{name}` is not one of the globals"),
        )?;
        // PAY-69: there is no limit here, because a frame is created only when the function is called, and every register is checked
        // against the number (PAY-75).
        let registers = read_decimal(cursor, "registers")?;
        let instructions = read_decimal(cursor, "instructions")?;
        let params = names(cursor, "params", PAY_70)?;
        let param_devices = read_param_devices(cursor, frame.era, params.len())?;
        frame.registers = registers;
        frame.instructions = instructions;
        // No memory is reserved, because the number is text. Every instruction is read from its own bytes or found truncated.
        let mut code = Vec::new();
        for index in 0..instructions {
            code.push(cursor.read_within("code", index, |cursor| {
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

    /// Writes a function as release 0.`era` does: the inverse of [`RelayFunction::read`]. Each hash is computed (PAY-71).
    pub(super) fn write(&self, era: u8, out: &mut Writer) {
        out.count(3);
        out.str(&self.name);
        // PAY-69: numbers are also strings, because the header of a function is one vector of strings.
        out.str(&self.registers.to_string());
        out.str(&self.code.len().to_string());
        write_names(&self.params, out);
        if era >= 7 {
            out.vector(&self.param_devices, |out, device| out.i64(*device));
        }
        for instruction in &self.code {
            out.count(instruction.fields.len().saturating_add(2));
            // PAY-71: the hash is computed, so that an edited field does not break the instruction.
            out.u64(instruction.hash());
            out.i64(instruction.opcode);
            instruction.fields.iter().for_each(|field| out.i64(*field));
        }
    }
}

/// Reads a number as decimal text, only in the form that would be written back (PAY-69).
fn read_decimal(cursor: &mut Cursor<'_>, field: &str) -> Result<u64, Violation> {
    let digits = cursor.str(field, PAY_69)?;
    // PAY-69: `parse` accepts `+3` and `03`; the comparison below does not.
    let number = digits.parse::<u64>().ok();
    // PAY-69: released readers use `stoll`, which accepts blanks, signs and any text after the digits.
    let number = number.filter(|number| number.to_string() == *digits);
    number.ok_or_else(|| {
        let message = format!("`{}` is not a decimal number", digits.escape_debug());
        digits.broken(PAY_69, Kind::Malformed, message)
    })
}

/// Reads one device for each parameter (PAY-70); empty in code of 0.6, which has no such vector.
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
        |devices| {
            format!(
                "expected a device for each of {params} parameters, found {} devices",
                devices.len()
            )
        },
    )
}
