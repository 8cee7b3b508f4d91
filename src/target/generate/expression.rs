//! Expressions.

use super::scalar::ScalarType;
use super::writer::{CName, CValue, CWriter, CodePlace, LANE};
use crate::rule::Violation;

impl CWriter<'_> {
    /// The type of an expression, or of a variable.
    pub(super) fn dtype(&self, at: usize) -> Result<ScalarType, Violation> {
        match self.vector_type(at)? {
            (dtype, lanes) if lanes == 1 || lanes == self.lanes => Ok(dtype),
            (_, lanes) => Err(self.unsupported(at, &format!(" of {lanes} lanes"))),
        }
    }

    /// An expression.
    pub(super) fn expression(&mut self, at: usize) -> Result<CValue, Violation> {
        self.visit(at)?;
        let dtype = self.dtype(at)?;
        let text = match self.graph.key(at) {
            "Var" => self.variable(at)?.text,
            "IntImm" => self.integer(at, dtype)?,
            "FloatImm" => {
                let value = self.graph.float(at, "value");
                dtype.fraction(value.ok_or_else(|| self.malformed(at, "has no `value`"))?)
            }
            // C++ makes no address of anything of a literal by itself.
            "StringImm" => format!("((void*){})", super::scalar::quoted(self.literal(at)?)),
            "Add" => self.computed(at, "+", dtype)?,
            "Sub" => self.computed(at, "-", dtype)?,
            "Mul" => self.computed(at, "*", dtype)?,
            // Both divide as C does, towards zero; `FloorDiv` and `FloorMod` are gone from what is lowered.
            "Div" => self.computed(at, "/", dtype)?,
            "Mod" => self.computed(at, "%", dtype)?,
            "BitwiseAnd" => self.computed(at, "&", dtype)?,
            "BitwiseOr" => self.computed(at, "|", dtype)?,
            "BitwiseXor" => self.computed(at, "^", dtype)?,
            "BitwiseNot" => {
                let a = self.operand(at, "a")?.text;
                self.complement(&a, dtype)
            }
            "LShift" | "RShift" => {
                let operator = if self.graph.key(at) == "LShift" {
                    "<<"
                } else {
                    ">>"
                };
                let amount = self.constant(self.required(at, "b")?)?;
                let a = self.operand(at, "a")?;
                let b = self.operand(at, "b")?.text;
                self.shift(&a, operator, (&b, amount), dtype)
            }
            // TGT-92: with NaN those of C are as IEEE 754 has them.
            "EQ" => self.binary(at, "==")?,
            "NE" => self.binary(at, "!=")?,
            "LT" => self.binary(at, "<")?,
            "LE" => self.binary(at, "<=")?,
            "GT" => self.binary(at, ">")?,
            "GE" => self.binary(at, ">=")?,
            "And" => self.binary(at, "&&")?,
            "Or" => self.binary(at, "||")?,
            "Not" => format!("(!{})", self.operand(at, "a")?.text),
            // Of two that cannot be compared, the second: the comparison fails.
            "Min" => self.extreme(at, "<")?,
            "Max" => self.extreme(at, ">")?,
            "Cast" => {
                let value = self.operand(at, "value")?;
                // By way of a `float` it would be rounded twice.
                if dtype.is_half() && value.dtype == ScalarType::Float(64) {
                    return Err(self.unsupported(at, " of float64 to 16 bits"));
                }
                self.converted(&value, dtype)
            }
            "Ramp" => self.ramp(at, dtype)?,
            "Broadcast" => self.same_for_all(at, "value")?,
            "Select" => {
                let names = ["condition", "true_value", "false_value"];
                self.choice(at, names)?
            }
            "Let" => return self.short_for(at),
            "BufferLoad" | "TensorLoad" | "Load" => {
                let (place, dtype) = self.element(at)?;
                self.loaded(place, dtype)
            }
            "Call" => return self.call(at, dtype),
            _ => return Err(self.unsupported(at, "")),
        };
        self.value(text, dtype)
    }

    /// The expression that a field names.
    pub(super) fn operand(&mut self, at: usize, name: &str) -> Result<CValue, Violation> {
        let operand = self.required(at, name)?;
        self.within(name, |writer| writer.expression(operand))
    }

    /// A literal of this type, with the suffix that C needs for its width.
    fn integer(&self, at: usize, dtype: ScalarType) -> Result<String, Violation> {
        let value = self.graph.number(at, "value");
        let value = value.ok_or_else(|| self.malformed(at, "has no `value`"))?;
        let text = match dtype {
            // An address that is a number is the null one.
            ScalarType::Handle if value == 0 => Some("NULL".to_owned()),
            ScalarType::Float(_) | ScalarType::BFloat => Some(dtype.fraction(0.0)),
            _ => dtype.integer(value),
        };
        text.ok_or_else(|| self.malformed(at, "has a number that its type has not"))
    }

    /// What a variable is in the text.
    fn variable(&self, at: usize) -> Result<CName, Violation> {
        let name = self.names.get(&at).cloned();
        name.ok_or_else(|| self.malformed(at, "is used where nothing defines it"))
    }

    /// A comparison or a logical operator: the result is 0 or 1 in C, and a truth value here.
    fn binary(&mut self, at: usize, operator: &str) -> Result<String, Violation> {
        let a = self.operand(at, "a")?.text;
        let b = self.operand(at, "b")?.text;
        Ok(format!("({a} {operator} {b})"))
    }

    /// A result of the type of its operands: C computes small ones as `int`.
    fn computed(
        &mut self,
        at: usize,
        operator: &str,
        dtype: ScalarType,
    ) -> Result<String, Violation> {
        match (operator, dtype) {
            // C has no rest of fractions.
            ("%", ScalarType::Float(64)) => self.function_of_two(at, "fmod"),
            ("%", ScalarType::Float(_) | ScalarType::BFloat) => {
                // OpenCL has one name for all widths.
                let name = match self.place {
                    CodePlace::Kernel => "fmod",
                    CodePlace::Host(_) => "fmodf",
                };
                let text = self.function_of_two(at, name)?;
                Ok(self.cut(text, dtype))
            }
            _ => {
                let a = self.operand(at, "a")?.text;
                let b = self.operand(at, "b")?.text;
                Ok(self.arithmetic(&a, operator, &b, dtype))
            }
        }
    }

    /// A function of C's library in the place of an operator.
    fn function_of_two(&mut self, at: usize, name: &str) -> Result<String, Violation> {
        let a = self.operand(at, "a")?.text;
        let b = self.operand(at, "b")?.text;
        Ok(format!("{}({a}, {b})", self.of_library(name)))
    }

    /// Each operand is written twice, so that the text of nested ones doubles with each level (TGT-89).
    fn extreme(&mut self, at: usize, operator: &str) -> Result<String, Violation> {
        let a = self.operand(at, "a")?.text;
        let b = self.operand(at, "b")?.text;
        Ok(format!("({a} {operator} {b} ? {a} : {b})"))
    }

    /// One of two values by a condition. C computes only the one that is chosen, so that a load behind a check of bounds is safe.
    fn choice(&mut self, at: usize, names: [&str; 3]) -> Result<String, Violation> {
        let [condition, yes, no] = names;
        let condition = self.operand(at, condition)?.text;
        let yes = self.operand(at, yes)?.text;
        let no = self.operand(at, no)?.text;
        Ok(format!("({condition} ? {yes} : {no})"))
    }

    /// `Let` in an expression: C declares nothing in there, so the variable is short for its value.
    fn short_for(&mut self, at: usize) -> Result<CValue, Violation> {
        let var = self.required(at, "var")?;
        let text = self.operand(at, "value")?.text;
        // The same variable may be bound around it, and has that value again behind the body.
        let outer = self.names.insert(var, CName { text, space: "" });
        let body = self.operand(at, "body");
        match outer {
            Some(outer) => self.names.insert(var, outer),
            None => self.names.remove(&var),
        };
        body
    }

    /// An element of a buffer, to be read or written, or the lane of it that is being written; and its type.
    pub(super) fn element(&mut self, at: usize) -> Result<(String, ScalarType), Violation> {
        if matches!(self.graph.key(at), "Load" | "Store") {
            return self.untyped_element(at);
        }
        // `source` from 0.27 on, `buffer` before.
        let mut names = ["source", "buffer"].into_iter();
        let buffer = names.find_map(|name| Some((name, self.graph.child(at, name)?)));
        let (field, buffer) = buffer.ok_or_else(|| self.malformed(at, "has no buffer"))?;
        if self.graph.child(at, "predicate").is_some() {
            return Err(self.unsupported(at, " with a predicate"));
        }
        let [index] = self.required_list(at, "indices")? else {
            return Err(self.unsupported(at, " with indices that are not flattened"));
        };
        let (base, form, offset) = self.within(field, |writer| writer.buffer(buffer))?;
        let step = "indices[0]";
        let place = self.place(at, &base, form, (*index, step), offset)?;
        Ok((place, form.0))
    }

    /// Up to 0.8 memory is the variable of its address, and each use of it states a type.
    fn untyped_element(&mut self, at: usize) -> Result<(String, ScalarType), Violation> {
        let var = self.required(at, "buffer_var")?;
        if let Some(predicate) = self.graph.child(at, "predicate")
            && !self.is_true(predicate)
        {
            return Err(self.unsupported(at, " with a predicate"));
        }
        let index = self.required(at, "index")?;
        let (dtype, lanes) = match self.graph.child(at, "value") {
            Some(value) => self.within("value", |writer| writer.vector_type(value))?,
            None => self.vector_type(at)?,
        };
        // An index that is no vector counts vectors: the pass that packs memory divided it.
        let counted = self.within("index", |writer| writer.vector_type(index))?;
        let lanes = match counted.1 {
            1 => lanes,
            _ => 1,
        };
        let base = self.within("buffer_var", |writer| writer.variable(var))?;
        let place = self.place(at, &base, (dtype, lanes), (index, "index"), 0)?;
        Ok((place, dtype))
    }

    /// Whether a predicate is true in every lane.
    fn is_true(&self, at: usize) -> bool {
        match self.graph.key(at) {
            "Broadcast" => {
                let value = self.graph.child(at, "value");
                value.is_some_and(|value| self.graph.int(value, "value") == Some(1))
            }
            _ => self.graph.int(at, "value") == Some(1),
        }
    }

    /// Where an element is: of memory with elements of `form`, which may be vectors.
    fn place(
        &mut self,
        at: usize,
        base: &CName,
        (dtype, lanes): (ScalarType, u16),
        (index, step): (usize, &str),
        offset: i64,
    ) -> Result<String, Violation> {
        let (_, counted) = self.within(step, |writer| writer.vector_type(index))?;
        // One of both has the lanes: a vector of vectors is in no lowered module.
        if lanes != 1 && (counted != 1 || lanes != self.lanes) {
            return Err(self.unsupported(at, " of vectors in vectors"));
        }
        let index = self.within(step, |writer| writer.expression(index))?.text;
        let index = match (offset, lanes) {
            (0, _) => index,
            (offset, _) => format!("((int64_t){index} + {offset})"),
        };
        // TGT-91: in 64 bits, since only what the module states itself has a type to wrap in.
        let index = match lanes {
            1 => index,
            lanes => format!("(int64_t){index} * {lanes} + {LANE}"),
        };
        Ok(format!(
            "(({}{}*){})[{index}]",
            base.space,
            dtype.memory_name(),
            base.text
        ))
    }

    /// A buffer: where it is, of what type its elements are with how many lanes, and the first of them.
    pub(super) fn buffer(
        &mut self,
        at: usize,
    ) -> Result<(CName, (ScalarType, u16), i64), Violation> {
        // From 0.27 on it is a variable with a type; before, a node with the variable of its address.
        let (form, var) = match self.graph.key(at) {
            "Var" => (self.required(at, "ty")?, at),
            _ => (at, self.required(at, "data")?),
        };
        let dtype = match form == at {
            true => self.memory_type(form)?,
            false => self.within("ty", |writer| writer.memory_type(form))?,
        };
        // A variable is an offset that a caller chooses: the entry function holds it to be the one that was compiled for.
        let offset = self.graph.child(form, "elem_offset");
        let offset = offset.filter(|offset| self.graph.key(*offset) != "Var");
        let offset = match offset {
            None => 0,
            Some(offset) => self.within("elem_offset", |writer| {
                let number = writer.constant(offset)?;
                number.ok_or_else(|| writer.unsupported(offset, " as an offset"))
            })?,
        };
        Ok((self.variable(var)?, dtype, offset))
    }

    /// What is in memory that this node describes.
    pub(super) fn memory_type(&self, form: usize) -> Result<(ScalarType, u16), Violation> {
        let named = match self.graph.child(form, "dtype") {
            Some(dtype) => self.graph.text(dtype, "dtype"),
            None => self.graph.text(form, "dtype"),
        };
        let named = named.ok_or_else(|| self.malformed(form, "has no type"))?;
        let dtype = ScalarType::of_lanes(named).filter(|(dtype, _)| *dtype != ScalarType::Void);
        dtype.ok_or_else(|| self.unsupported(form, &format!(" of type {named}")))
    }

    /// A value as one of another type.
    pub(super) fn converted(&mut self, value: &CValue, to: ScalarType) -> String {
        match to {
            // Of any number other than 0 the truth value is 1, and not what is left of it in a byte.
            ScalarType::Bool => format!("({} != 0)", value.text),
            // The other type of 16 bits has numbers that this one has not.
            to if to.is_half() => self.cut(format!("(float){}", value.text), to),
            _ => format!("(({}){})", to.c_name(), value.text),
        }
    }
}
