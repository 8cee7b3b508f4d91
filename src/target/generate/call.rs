//! Calls: of operators, of functions by name, of what a runtime offers.

use super::abi::Abi;
use super::scalar::{ScalarType, identifier, quoted};
use super::writer::{CValue, CWriter, CodePlace};
use crate::rule::Violation;

impl CWriter<'_> {
    /// A call that has a value.
    pub(super) fn call(&mut self, at: usize, dtype: ScalarType) -> Result<CValue, Violation> {
        let name = self.operator(at)?;
        let args = self.required_list(at, "args")?;
        // Operators of numbers first: what is written for them depends on types, and the same serves functions by name below.
        if let Some(text) = self.operator_of_numbers(at, &name, (args, 0), dtype)? {
            return self.value(text, dtype);
        }
        let text = match (name.as_str(), args) {
            ("if_then_else", [condition, yes, no]) => {
                let condition = self.argument(0, *condition)?.text;
                let yes = self.argument(1, *yes)?.text;
                let no = self.argument(2, *no)?.text;
                format!("({condition} ? {yes} : {no})")
            }
            ("isnullptr", [address]) => format!("({} == NULL)", self.argument(0, *address)?.text),
            // Hints for an optimiser: the value is that of the argument.
            ("likely" | "tvm_thread_invariant", [value]) => self.argument(0, *value)?.text,
            // An address as another address: C converts it by itself, and there are no bits to move.
            ("reinterpret", [address]) if dtype == ScalarType::Handle => {
                self.argument(0, *address)?.text
            }
            ("handle_add_byte_offset", [address, bytes]) => {
                let address = self.argument(0, *address)?.text;
                let bytes = self.argument(1, *bytes)?.text;
                format!("((void*)((char*){address} + {bytes}))")
            }
            ("reinterpret", [value]) => {
                let of = self.argument(0, *value)?;
                let text = self.reinterpreted(&of, dtype);
                text.ok_or_else(|| self.unsupported(at, " of another number of bits"))?
            }
            ("buffer_data", [buffer]) => {
                let buffer = self.within("args[0]", |writer| writer.buffer(*buffer))?;
                buffer.0.text
            }
            ("address_of", [load])
                if matches!(self.graph.key(*load), "BufferLoad" | "TensorLoad" | "Load") =>
            {
                let (element, _) = self.within("args[0]", |writer| writer.element(*load))?;
                format!("((void*)&{element})")
            }
            ("tvm_stack_alloca", [what, count]) => self.stack(at, *what, *count)?,
            ("tvm_struct_get", [record, index, kind]) => {
                let record = self.argument(0, *record)?.text;
                let index = self.argument(1, *index)?.text;
                self.within("args[2]", |writer| {
                    writer.field(*kind, dtype, &record, &index)
                })?
            }
            ("call_pure_extern" | "call_extern", [function, rest @ ..]) => {
                // TGT-88: a function called by name may be an operator after all (`call_pure_extern("exp", ..)`), and is written as that.
                let name = self.within("args[0]", |writer| writer.literal(*function))?;
                match self.operator_of_numbers(at, name, (rest, 1), dtype)? {
                    Some(text) => text,
                    None => {
                        let text = self.library(*function, name, (rest, 1))?;
                        self.cut(text, dtype)
                    }
                }
            }
            ("TVMBackendAllocWorkspace" | "TVMBackendFreeWorkspace", rest)
                // TGT-88: a kernel has no runtime to take workspace from.
                if self.place != CodePlace::Kernel =>
            {
                let arguments = self.arguments(0, rest)?;
                format!("{name}({arguments})")
            }
            _ => match self.operator_of_library(at, &name, args, dtype)? {
                Some(text) => text,
                None => {
                    let count = args.len();
                    return Err(
                        self.unsupported(at, &format!(" of `{name}` with {count} arguments"))
                    );
                }
            },
        };
        self.value(text, dtype)
    }

    /// A call as a statement.
    pub(super) fn call_statement(&mut self, at: usize) -> Result<(), Violation> {
        let name = self.operator(at)?;
        let args = self.required_list(at, "args")?;
        match (name.as_str(), args) {
            // A kernel of OpenCL C has no result.
            ("ret", [_]) | ("thread_return", []) if self.place == CodePlace::Kernel => {
                self.line("return;");
            }
            // TGT-88: 0 is success.
            ("thread_return", []) => self.line("return 0;"),
            ("break_loop", []) => self.line("break;"),
            ("continue_loop", []) => self.line("continue;"),
            ("ret", [value]) => {
                let value = self.argument(0, *value)?.text;
                self.line(&format!("return {value};"));
            }
            // What was called has left its message.
            ("tvm_throw_last_error", []) => self.line("return -1;"),
            ("tvm_storage_sync", [scope]) if self.place == CodePlace::Kernel => {
                match self.within("args[0]", |writer| writer.literal(*scope))? {
                    "shared" | "shared.dyn" => self.line("barrier(CLK_LOCAL_MEM_FENCE);"),
                    // All blocks of a grid, or the threads of a warp: OpenCL C 1.2 waits for neither.
                    other => return Err(self.unsupported(at, &format!(" of `{other}`"))),
                }
            }
            ("tvm_struct_set", [record, index, kind, value]) => {
                let record = self.argument(0, *record)?.text;
                let index = self.argument(1, *index)?.text;
                let value = self.argument(3, *value)?;
                let field = self.within("args[2]", |writer| {
                    writer.field(*kind, value.dtype, &record, &index)
                })?;
                let typed = match self.constant(*kind)? {
                    // C++ makes no address of numbers of one of anything by itself.
                    Some(2 | 3) => "(int64_t*)",
                    _ => "",
                };
                self.line(&format!("{field} = {typed}{};", value.text));
            }
            ("tvm_call_packed_lowered", [function, rest @ ..]) => {
                let call = self.packed(at, *function, rest, "NULL")?;
                self.line(&call);
            }
            _ => {
                let dtype = self.dtype(at)?;
                let text = self.call(at, dtype)?.text;
                self.line(&format!("(void){text};"));
            }
        }
        Ok(())
    }

    /// The name of what is called: an operator without the prefix of its release.
    fn operator(&mut self, at: usize) -> Result<String, Violation> {
        let op = self.required(at, "op")?;
        let name = match self.graph.key(op) {
            "Op" => self.graph.plain(op),
            _ => None,
        };
        let Some(name) = name else {
            return self.within("op", |writer| {
                Err(writer.unsupported(op, " as what is called"))
            });
        };
        // `tir.` up to 0.23, `tirx.` from 0.24 on. What has more parts is of one device.
        let plain = name.split_once('.').map_or(name, |(_, rest)| rest);
        Ok(plain.to_owned())
    }

    pub(super) fn argument(&mut self, index: usize, at: usize) -> Result<CValue, Violation> {
        self.within(format!("args[{index}]"), |writer| writer.expression(at))
    }

    fn arguments(&mut self, first: usize, args: &[usize]) -> Result<String, Violation> {
        let mut all = Vec::with_capacity(args.len());
        for (index, at) in args.iter().enumerate() {
            all.push(self.argument(index.saturating_add(first), *at)?.text);
        }
        Ok(all.join(", "))
    }

    /// The place of a field of a record (`tvm_struct_get`).
    fn field(
        &self,
        kind: usize,
        dtype: ScalarType,
        record: &str,
        index: &str,
    ) -> Result<String, Violation> {
        let place = self.place_of_field(kind, dtype, record, index)?;
        place.ok_or_else(|| self.unsupported(kind, " as a field of a record"))
    }

    /// `None` for a field that this ABI has not.
    fn place_of_field(
        &self,
        kind: usize,
        dtype: ScalarType,
        record: &str,
        index: &str,
    ) -> Result<Option<String>, Violation> {
        let (CodePlace::Host(abi), Some(kind)) = (self.place, self.constant(kind)?) else {
            return Ok(None);
        };
        let tensor = |field: &str| Some(format!("((DLTensor*){record})[{index}].{field}"));
        let member = abi.member(dtype);
        Ok(match (kind, abi) {
            (0, _) => Some(format!("((void*)&((DLTensor*){record})[{index}])")),
            (1, _) => tensor("data"),
            (2, _) => tensor("shape"),
            (3, _) => tensor("strides"),
            (4, _) => tensor("ndim"),
            (5, _) => tensor("dtype.code"),
            (6, _) => tensor("dtype.bits"),
            (7, _) => tensor("dtype.lanes"),
            (8, _) => tensor("byte_offset"),
            (9, _) => tensor("device.device_id"),
            (10, _) => tensor("device.device_type"),
            (12, Abi::Legacy) => member.map(|of| format!("((TVMValue*){record})[{index}].{of}")),
            (13, Abi::Ffi) => Some(format!("((TVMFFIAny*){record})[{index}].type_index")),
            (14, Abi::Ffi) => Some(format!("((TVMFFIAny*){record})[{index}].zero_padding")),
            (15, Abi::Ffi) => member.map(|of| format!("((TVMFFIAny*){record})[{index}].{of}")),
            (17, Abi::Ffi) => Some(format!("((int64_t*){record})[{index}]")),
            _ => None,
        })
    }

    /// Room for the arguments of calls, which lasts as long as the function.
    fn stack(&mut self, at: usize, what: usize, count: usize) -> Result<String, Violation> {
        let CodePlace::Host(abi) = self.place else {
            return Err(self.unsupported(at, " in a kernel"));
        };
        let what = self.within("args[0]", |writer| writer.literal(what))?;
        let count = self.within("args[1]", |writer| writer.constant(count))?;
        let count = count.filter(|count| (1..=1024).contains(count));
        let (Some(record), Some(count)) = (abi.record(what), count) else {
            return Err(self.unsupported(at, &format!(" of `{what}`")));
        };
        // C has no expression for memory that outlasts it: the room is a variable of its own, in front of the statement.
        let name = self.fresh("stack");
        self.line(&format!("{record} {name}[{count}];"));
        Ok(format!("((void*){name})"))
    }

    /// A call of a packed function of which the result is used: a kernel that returns whether it failed. `None` for any other expression.
    pub(super) fn packed_result(&mut self, at: usize) -> Result<Option<String>, Violation> {
        if self.graph.key(at) != "Call" || self.operator(at)? != "tvm_call_packed_lowered" {
            return Ok(None);
        }
        let CodePlace::Host(abi) = self.place else {
            return Ok(None);
        };
        let dtype = self.dtype(at)?;
        let (Some(member), [function, rest @ ..]) =
            (abi.member(dtype), self.required_list(at, "args")?)
        else {
            return Err(self.unsupported(at, " of this type"));
        };
        let name = self.fresh("answer");
        let call = self.packed(at, *function, rest, &format!("&{name}"))?;
        self.line(&format!("{} {name};", abi.value()));
        self.line(&call);
        Ok(Some(format!("({}){name}.{member}", dtype.c_name())))
    }

    /// A call of a packed function by its name: of a kernel, or of one in the registry. `answer` is where its result goes, `NULL` for
    /// nowhere.
    fn packed(
        &mut self,
        at: usize,
        function: usize,
        rest: &[usize],
        answer: &str,
    ) -> Result<String, Violation> {
        let name = self.within("args[0]", |writer| writer.literal(function))?;
        let CodePlace::Host(abi) = self.place else {
            return Err(self.unsupported(at, " of a packed function in a kernel"));
        };
        let rest = rest.get(..abi.stack_arguments());
        let rest = rest.ok_or_else(|| self.unsupported(at, " with other arguments"))?;
        let arguments = self.arguments(1, rest)?;
        let holder = match self.called.get(name) {
            Some(holder) => holder.clone(),
            None => {
                let holder = self.fresh(&format!("{}_packed", identifier(name)));
                self.called.insert(name.to_owned(), holder.clone());
                holder
            }
        };
        let name = quoted(name);
        Ok(format!(
            "if (call_packed({name}, &{holder}, {arguments}, {answer}) != 0) return -1;"
        ))
    }
}
