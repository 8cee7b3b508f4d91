//! Statements.

use super::scalar::quoted;
use super::writer::{CName, CWriter, CodePlace};
use crate::rule::Violation;

/// Attributes that change nothing about what is computed.
const HINTS: &[&str] = &[
    "storage_alignment",
    "compute_scope",
    "realize_scope",
    "storage_scope",
];

impl CWriter<'_> {
    /// A statement and all that is in it. What a statement is for the rest of its block follows it without nesting.
    pub(super) fn statement(&mut self, at: usize) -> Result<(), Violation> {
        let mark = self.mark();
        let mut next = Some(at);
        let mut passed = 0_usize;
        while let Some(at) = next {
            self.visit(at)?;
            let inside = self.one(at)?;
            next = inside;
            if inside.is_some() {
                // The step is written once: a hundred assertions in a row are no depth.
                passed = passed.saturating_add(1);
                self.back(mark);
                self.step(&format!("body*{passed}"));
            }
        }
        self.back(mark);
        Ok(())
    }

    /// One statement; the one that is its body, where it has one that is in the same block.
    fn one(&mut self, at: usize) -> Result<Option<usize>, Violation> {
        match self.graph.key(at) {
            "SeqStmt" => {
                for (index, item) in self.required_list(at, "seq")?.iter().copied().enumerate() {
                    self.within(format!("seq[{index}]"), |writer| writer.statement(item))?;
                }
            }
            "Bind" | "LetStmt" => {
                let var = self.required(at, "var")?;
                let stated = self.required(at, "value")?;
                let form = self.within("var", |writer| writer.vector_type(var))?;
                if form.1 != 1 {
                    self.vector_binding(var, stated, form)?;
                    return Ok(self.graph.child(at, "body"));
                }
                let dtype = form.0;
                let value = match self.within("value", |writer| writer.packed_result(stated))? {
                    Some(answer) => answer,
                    None => self.operand(at, "value")?.text,
                };
                let name = self.declare(var);
                self.line(&format!("{} {name} = {value};", dtype.c_name()));
            }
            "AssertStmt" => self.assertion(at)?,
            "AttrStmt" => {
                let key = self.graph.text(at, "attr_key").unwrap_or_default();
                // TGT-84: in host code it is of what should be a kernel, and is rejected below.
                if key == "thread_extent" && self.place == CodePlace::Kernel {
                    self.thread(at)?;
                } else if !HINTS.contains(&key) && !key.starts_with("pragma_") {
                    return Err(self.unsupported(at, &format!(" `{key}`")));
                }
            }
            "DeclBuffer" => self.view(at)?,
            "AllocBuffer" | "Allocate" => self.storage(at)?,
            "For" => self.repetition(at)?,
            "While" => {
                let condition = self.required(at, "condition")?;
                let body = self.required(at, "body")?;
                self.braces("while (1)", |writer| {
                    let condition =
                        writer.within("condition", |writer| writer.expression(condition))?;
                    writer.line(&format!("if (!{}) break;", condition.text));
                    writer.within("body", |writer| writer.statement(body))
                })?;
                return Ok(None);
            }
            "IfThenElse" => self.branches(at)?,
            "BufferStore" | "Store" => {
                let value = self.required(at, "value")?;
                match self.within("value", |writer| writer.vector_type(value))? {
                    (_, 1) => {
                        let (place, dtype) = self.element(at)?;
                        let value = self.operand(at, "value")?.text;
                        let value = self.stored(&value, dtype);
                        self.line(&format!("{place} = {value};"));
                    }
                    form => self.vector_store(at, value, form)?,
                }
            }
            "Evaluate" => {
                let value = self.required(at, "value")?;
                match self.graph.key(value) {
                    "Call" => self.within("value", |writer| writer.call_statement(value))?,
                    // A statement that is none.
                    "IntImm" => {}
                    _ => {
                        return self.within("value", |writer| {
                            Err(writer.unsupported(value, " as a statement"))
                        });
                    }
                }
            }
            // Of the innermost loop, as in C.
            "Break" => self.line("break;"),
            "Continue" => self.line("continue;"),
            "Return" => {
                let value = self.operand(at, "value")?.text;
                self.line(&format!("return {value};"));
            }
            _ => return Err(self.unsupported(at, "")),
        }
        Ok(match self.graph.key(at) {
            "For" => None,
            _ => self.graph.child(at, "body"),
        })
    }

    /// TGT-88: what does not hold ends the call with an error.
    fn assertion(&mut self, at: usize) -> Result<(), Violation> {
        let CodePlace::Host(abi) = self.place else {
            return Err(self.unsupported(at, " in a kernel"));
        };
        let condition = self.operand(at, "condition")?.text;
        // Up to 0.23 a message; from 0.24 on a kind of error, and the parts of its message.
        let kind = match self.graph.child(at, "error_kind") {
            Some(kind) => quoted(self.within("error_kind", |writer| writer.literal(kind))?),
            // TGT-88: 0.21 raises a RuntimeError, whatever the message.
            None => "\"RuntimeError\"".to_owned(),
        };
        let message = self.graph.child(at, "message");
        let parts = match &message {
            Some(message) => std::slice::from_ref(message),
            None => self.required_list(at, "message_parts")?,
        };
        let mut texts = Vec::with_capacity(parts.len());
        for (index, part) in parts.iter().enumerate() {
            let step = match message {
                Some(_) => "message".to_owned(),
                None => format!("message_parts[{index}]"),
            };
            texts.push(quoted(self.within(step, |writer| writer.literal(*part))?));
        }
        self.braces(&format!("if (!{condition})"), |writer| {
            for line in abi.raise(&kind, &texts) {
                writer.line(&line);
            }
            writer.line("return -1;");
            Ok(())
        })
    }

    /// Another name for the memory of a buffer.
    fn view(&mut self, at: usize) -> Result<(), Violation> {
        let buffer = self.required(at, "buffer")?;
        let Some(data) = self.graph.child(at, "data") else {
            // Up to 0.26 the address is a variable that is there already: what the buffer has as `data`.
            return match self.graph.key(buffer) {
                "Var" => Err(self.malformed(at, "has no `data`")),
                _ => self.within("buffer", |writer| {
                    writer.required(buffer, "data").map(|_| ())
                }),
            };
        };
        if self.place == CodePlace::Kernel {
            // An address of OpenCL C has the space of what is there: the view is the variable that it is of.
            let source = match self.graph.list(data, "args") {
                [source] => *source,
                _ => data,
            };
            let Some(name) = self.names.get(&source).cloned() else {
                return self.within("data", |writer| {
                    Err(writer.unsupported(data, " as the address of a buffer"))
                });
            };
            self.names.insert(buffer, name);
            return Ok(());
        }
        let address = self.within("data", |writer| writer.expression(data))?.text;
        let name = self.declare(buffer);
        self.line(&format!("void* {name} = {address};"));
        Ok(())
    }

    /// Memory for as long as the block lasts.
    fn storage(&mut self, at: usize) -> Result<(), Violation> {
        let (var, form) = match self.graph.child(at, "buffer") {
            Some(buffer) if self.graph.key(buffer) == "Var" => {
                (buffer, self.required(buffer, "ty")?)
            }
            // Of 0.24 and 0.25: a description with the variable of its address.
            Some(buffer) => (self.required(buffer, "data")?, buffer),
            None => (self.required(at, "buffer_var")?, at),
        };
        let sizes = match self.graph.key(at) {
            "Allocate" => "extents",
            _ => "shape",
        };
        let extents = self.required_list(form, sizes)?;
        let mut count = 1_i64;
        for (index, extent) in extents.iter().enumerate() {
            let step = format!("{sizes}[{index}]");
            let extent = self.within(step, |writer| writer.constant(*extent))?;
            let all = extent
                .and_then(|extent| count.checked_mul(extent))
                // C has no array without elements.
                .filter(|all| *all > 0);
            count = all.ok_or_else(|| self.unsupported(at, " of a size that is not constant"))?;
        }
        let (dtype, lanes) = self.memory_type(form)?;
        let all = count.checked_mul(lanes.into());
        let count = all.ok_or_else(|| self.unsupported(at, " of a size that is not known"))?;
        let shared = self.scope(var, form).starts_with("shared");
        let name = self.declare(var);
        let space = if shared && self.place == CodePlace::Kernel {
            "__local "
        } else {
            ""
        };
        self.names.insert(
            var,
            CName {
                text: name.clone(),
                space,
            },
        );
        self.line(&format!("{space}{} {name}[{count}];", dtype.memory_name()));
        Ok(())
    }

    /// The storage scope of a buffer: of its type, or of the type of the variable of its address.
    pub(super) fn scope(&self, var: usize, form: usize) -> String {
        let typed = self
            .graph
            .child(var, "type_annotation")
            .or(self.graph.child(var, "ty"));
        let scope = self.graph.text(form, "storage_scope");
        let scope = scope.or_else(|| self.graph.text(typed?, "storage_scope"));
        scope.unwrap_or_default().to_owned()
    }

    /// A loop that is serial, parallel or unrolled (TGT-88): one round after the other, in order.
    fn repetition(&mut self, at: usize) -> Result<(), Violation> {
        // 0 serial, 1 parallel, 2 vectorised, 3 unrolled, 4 bound to a thread. One after the other is an order that parallel ones allow.
        if !matches!(self.graph.int(at, "kind"), Some(0 | 1 | 3)) {
            return Err(self.unsupported(at, " of this kind"));
        }
        let var = self.required(at, "loop_var")?;
        let body = self.required(at, "body")?;
        let dtype = self.within("loop_var", |writer| writer.dtype(var))?;
        let dtype = dtype.c_name();
        let first = self.once(at, "min", "first")?;
        let extent = self.once(at, "extent", "extent")?;
        // From 0.24 on a loop may have a step.
        let step = match self.graph.child(at, "step") {
            Some(_) => self.once(at, "step", "step")?,
            None => "1".to_owned(),
        };
        let name = self.declare(var);
        let end = if first == "0" {
            extent
        } else {
            format!("{first} + {extent}")
        };
        let head = format!("for ({dtype} {name} = {first}; {name} < {end}; {name} += {step})");
        self.braces(&head, |writer| {
            writer.within("body", |writer| writer.statement(body))
        })
    }

    /// TGT-88: what a loop begins with, how far it goes and by what step is known before its first round: a statement in it may change what they
    /// are computed of. C evaluates its condition in each round, so what is no literal has a variable of its own in front of the loop.
    fn once(&mut self, at: usize, field: &str, wish: &str) -> Result<String, Violation> {
        let operand = self.required(at, field)?;
        let literal = self.within(field, |writer| writer.constant(operand))?;
        let value = self.operand(at, field)?;
        if literal.is_some() {
            return Ok(value.text);
        }
        let name = self.fresh(wish);
        self.line(&format!(
            "{} {name} = {};",
            value.dtype.c_name(),
            value.text
        ));
        Ok(name)
    }

    /// A condition, with or without another branch.
    fn branches(&mut self, at: usize) -> Result<(), Violation> {
        let condition = self.operand(at, "condition")?.text;
        let yes = self.required(at, "then_case")?;
        self.braces(&format!("if ({condition})"), |writer| {
            writer.within("then_case", |writer| writer.statement(yes))
        })?;
        let Some(no) = self.graph.child(at, "else_case") else {
            return Ok(());
        };
        self.braces("else", |writer| {
            writer.within("else_case", |writer| writer.statement(no))
        })
    }

    /// The number of the thread that runs the kernel, along one axis.
    fn thread(&mut self, at: usize) -> Result<(), Violation> {
        let node = self.required(at, "node")?;
        self.within("node", |writer| writer.axis(node))
    }

    /// Declares the number of a block or of a thread in its block (TGT-85), as OpenCL C has it.
    fn axis(&mut self, node: usize) -> Result<(), Violation> {
        let tag = self.graph.text(node, "thread_tag");
        let tag = tag.ok_or_else(|| self.malformed(node, "has no `thread_tag`"))?;
        let function = match tag.split_once('.') {
            Some(("blockIdx", _)) => "get_group_id",
            Some(("threadIdx", _)) => "get_local_id",
            _ => return Err(self.unsupported(node, &format!(" of `{tag}`"))),
        };
        let axis = match tag.rsplit_once('.') {
            Some((_, "x")) => 0,
            Some((_, "y")) => 1,
            Some((_, "z")) => 2,
            _ => return Err(self.unsupported(node, &format!(" of `{tag}`"))),
        };
        let var = self.required(node, "var")?;
        // The same axis may be stated twice: both are the same number.
        let dtype = self.within("var", |writer| writer.dtype(var))?.c_name();
        let name = self.declare(var);
        self.line(&format!("{dtype} {name} = ({dtype}){function}({axis});"));
        Ok(())
    }
}
