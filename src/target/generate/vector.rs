//! Vectors: a statement with lanes is a loop of each lane in turn.
//!
//! A vector of C is no part of the language, and one of OpenCL has 2, 3, 4, 8 or 16 lanes alone: what is written here has none. All lanes of
//! a value are computed before the first is stored, since the store may be to what a later lane reads.

use super::scalar::ScalarType;
use super::writer::{CName, CWriter, LANE};
use crate::rule::Violation;

impl CWriter<'_> {
    /// The type of each lane of an expression or of a variable, and how many it has.
    pub(super) fn vector_type(&self, at: usize) -> Result<(ScalarType, u16), Violation> {
        // Up to 0.26 an expression states its dtype, from 0.27 on its type.
        let stated = self.graph.text(at, "dtype");
        let named = match self.graph.child(at, "ty") {
            // A text is the address of its first byte: what a packed function is called with.
            Some(at) if matches!(self.graph.key(at), "PointerType" | "StringType") => {
                Some("handle")
            }
            Some(ty) => match (self.graph.text(ty, "dtype").or(stated), self.graph.key(ty)) {
                (None, "PrimType") => None,
                // It has a type, and that is none of numbers.
                (None, _) => {
                    let ty = self.graph.type_key(ty);
                    return Err(self.unsupported(at, &format!(" of type {ty}")));
                }
                (named, _) => named,
            },
            None => stated,
        };
        let named = named.ok_or_else(|| self.malformed(at, "has no type"))?;
        ScalarType::of_lanes(named)
            .ok_or_else(|| self.unsupported(at, &format!(" of type {named}")))
    }

    /// A lane of an expression, in a variable of its own: its name, with the lane as index.
    fn lanes_of(
        &mut self,
        at: usize,
        step: &str,
        name: &str,
        (dtype, lanes): (ScalarType, u16),
    ) -> Result<(), Violation> {
        self.line(&format!("{} {name}[{lanes}];", dtype.c_name()));
        self.each_lane(lanes, |writer| {
            let value = writer.within(step, |writer| writer.expression(at))?;
            writer.line(&format!("{name}[{LANE}] = {};", value.text));
            Ok(())
        })
    }

    /// A loop of the lanes. Vectors are none inside of others: a statement is one of so many lanes, or of none.
    fn each_lane(
        &mut self,
        lanes: u16,
        body: impl FnOnce(&mut Self) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        let head = format!("for (int32_t {LANE} = 0; {LANE} < {lanes}; {LANE} += 1)");
        self.lanes = lanes;
        let done = self.braces(&head, body);
        self.lanes = 1;
        done
    }

    /// A store of a vector.
    pub(super) fn vector_store(
        &mut self,
        at: usize,
        value: usize,
        form: (ScalarType, u16),
    ) -> Result<(), Violation> {
        let name = self.fresh("lanes");
        self.braces("", |writer| {
            writer.lanes_of(value, "value", &name, form)?;
            writer.each_lane(form.1, |writer| {
                let (place, dtype) = writer.element(at)?;
                let value = writer.stored(&format!("{name}[{LANE}]"), dtype);
                writer.line(&format!("{place} = {value};"));
                Ok(())
            })
        })
    }

    /// A variable that is a vector.
    pub(super) fn vector_binding(
        &mut self,
        var: usize,
        value: usize,
        form: (ScalarType, u16),
    ) -> Result<(), Violation> {
        // Named before its value is written, and known behind it: the value has no use of it.
        let wish = self.graph.text(var, "name").unwrap_or("v").to_owned();
        let name = self.fresh(&wish);
        self.lanes_of(value, "value", &name, form)?;
        let text = format!("{name}[{LANE}]");
        self.names.insert(var, CName { text, space: "" });
        Ok(())
    }

    /// A lane of `Ramp`: so many steps from its first.
    pub(super) fn ramp(&mut self, at: usize, dtype: ScalarType) -> Result<String, Violation> {
        let base = self.same_for_all(at, "base")?;
        let stride = self.same_for_all(at, "stride")?;
        let steps = self.arithmetic(&stride, "*", LANE, dtype);
        Ok(self.arithmetic(&base, "+", &steps, dtype))
    }

    /// An operand that is no vector, and is the same in every lane.
    pub(super) fn same_for_all(&mut self, at: usize, name: &str) -> Result<String, Violation> {
        let operand = self.required(at, name)?;
        self.within(name, |writer| match writer.vector_type(operand)? {
            (_, 1) => Ok(()),
            _ => Err(writer.unsupported(operand, " as a lane")),
        })?;
        Ok(self.operand(at, name)?.text)
    }
}
