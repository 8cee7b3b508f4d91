//! Operations of the chapter vm.

use super::driver;
use crate::conformance::op::{self, Answer, Handler, Op, OpError};
use crate::release::Layout;
use crate::rule::Findings;
use crate::vm::Executable;
use crate::wire::Cursor;
use serde_json::Value;

/// The operations that a case of this chapter can use.
pub(crate) const OPS: &[Op] = &[
    Op {
        name: "vm.decode",
        help: "data: an executable as libraries of `layout` store it; its functions with their code, its constants, counts",
        run: Handler::Here(decode),
    },
    Op {
        name: "vm.run",
        help: "data: an executable of layout 0.22, or a library whose root is one; `devices`: arguments of vm_initialization ([1, 0, 2] if absent); `steps`: \
               lists of a name (a module function, a VM function, a builtin, `tensor` with type, extents and base64, or one that \
               begins with @, see spec/vm.md) and arguments, {\"ref\": n} being the result of step n; the results of all steps, as \
               they are after the last one; with `balance` also the objects that are alive after it",
        run: Handler::Driven(driver::run),
    },
];

/// Runs `vm.decode`: returns the executable as functions, constants and instructions (VM-01 to VM-05 check how they fit
/// together).
fn decode(args: &Value) -> Result<Answer, OpError> {
    let data = op::data(args)?;
    let layout = args.get("layout").and_then(Value::as_str).unwrap_or("0.22");
    let layout: Layout = layout.parse()?;
    let mut findings = Findings::default();
    let mut cursor = Cursor::new(&data);
    let executable = Executable::read(layout, &mut cursor, &mut findings)?;
    cursor.finish("the executable", &mut findings)?;
    Ok(Answer::new(executable.to_json(), findings))
}
