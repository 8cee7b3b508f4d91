//! Typed functions: a Rust function or closure whose parameters are [`Parameter`]s becomes a packed function.

use super::parameter::{BorrowCondition, CallResult, Param, Parameter};
use super::{FUN_08, FUN_09, Result};
use crate::value::{Any, AnyView, Schema, index, types};
use std::ops::RangeInclusive;

/// A Rust callable with parameters `P` (a tuple of [`Parameter`]s).
///
/// ```
/// use tvmspec::function::{Function, Typed, TypedFn};
///
/// /// A function, and its types as messages write them.
/// fn described<P: 'static, F: TypedFn<P>>(name: &'static str, body: F) -> (Function, String) {
///     let types: Typed = F::SIGNATURE.typed();
///     (Function::named(Some(name), body), types.text(Some(name)))
/// }
///
/// let (add, text) = described("add", |a: i64, b: i64| a + b);
/// assert_eq!(text, "add(0: int, 1: int) -> int");
/// assert_eq!(i64::try_from(&add.call((40i64, 2i64))?)?, 42);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait TypedFn<P>: Send + Sync + 'static {
    /// Converts the arguments, calls the function, and converts the result. `name` is for messages.
    ///
    /// # Errors
    ///
    /// Returns FUN-08 for a wrong number of arguments, FUN-09 for the first argument that does not convert, and the error that the callable
    /// returns.
    fn invoke(&self, name: Option<&'static str>, args: &[AnyView<'_>]) -> Result;

    /// Types of the parameters and of the result.
    const SIGNATURE: Signature;

    /// Returns the full form of [`TypedFn::SIGNATURE`].
    fn signature() -> Typed {
        Self::SIGNATURE.typed()
    }
}

/// The types of a function, in a form that exists at compile time.
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    /// The description of each parameter.
    params: &'static [&'static Param],
    /// Returns the schema of the result.
    result: fn() -> Schema,
    /// The type that the first parameter is borrowed as, such as the list in a method of lists.
    first: Option<i32>,
    /// True if another parameter is borrowed as one type, or by a function.
    checks_each: bool,
}

/// Types of values that live only for the call. A range, so that one comparison decides.
const FLEETING: RangeInclusive<i32> = index::RAW_STR..=index::RVALUE_REF;

impl Signature {
    /// Prepares the fields that `is_ready` checks, at compile time.
    const fn new(params: &'static [&'static Param], result: fn() -> Schema) -> Signature {
        let mut first = None;
        let mut checks_each = false;
        let mut at = 0;
        // A manual loop: iterators do not work in a `const`.
        while at < params.len() {
            match &params[at].borrowed {
                None => {}
                Some(borrowed) => match borrowed.condition {
                    BorrowCondition::Owned => {}
                    BorrowCondition::Type(wanted) if at == 0 => first = Some(wanted),
                    BorrowCondition::Type(_) | BorrowCondition::Fit(_) => checks_each = true,
                },
            }
            at += 1;
        }
        Signature {
            params,
            result,
            first,
            checks_each,
        }
    }

    /// Returns the types with their names.
    pub fn typed(&self) -> Typed {
        Typed {
            params: self.params.iter().map(|param| (param.schema)()).collect(),
            result: (self.result)(),
        }
    }

    /// Returns whether [`Signature::call_converted`] has any effect. It has one if a parameter is borrowed, or if one of several arguments
    /// could be taken before another is rejected.
    pub(super) const fn may_convert(&self) -> bool {
        match self.params {
            [] => false,
            [param] => param.borrowed.is_some(),
            _ => true,
        }
    }

    /// Calls `body` with `args`. Arguments that are borrowed, but have another type, are converted first. The object of an r-value
    /// reference is taken only if all other arguments are correct.
    #[inline]
    pub(super) fn call_converted(
        &self,
        name: Option<&'static str>,
        args: &[AnyView<'_>],
        body: impl Fn(&[AnyView<'_>]) -> Result,
    ) -> Result {
        if self.is_ready(args) {
            return body(args);
        }
        self.convert_and_call(name, args, &body)
    }

    /// Returns whether all of `args` can be borrowed or read unchanged. The body checks their number.
    #[inline]
    pub(super) fn is_ready(&self, args: &[AnyView<'_>]) -> bool {
        let mut kinds = args.iter().map(AnyView::type_index);
        let other = |wanted| args.first().is_some_and(|arg| arg.type_index() != wanted);
        let checks_each = self.checks_each
            || self.first.is_some_and(other)
            || kinds.any(|kind| FLEETING.contains(&kind));
        !checks_each || self.is_each_ready(args)
    }

    /// Checks [`Signature::is_ready`] parameter by parameter.
    #[inline(never)]
    fn is_each_ready(&self, args: &[AnyView<'_>]) -> bool {
        let mut pairs = self.params.iter().zip(args);
        pairs.all(|(param, arg)| {
            // VAL-09: to read an r-value reference empties its slot. That must not happen before the other arguments are known to convert.
            arg.type_index() != index::RVALUE_REF && param.needed_conversion(*arg).is_none()
        })
    }

    /// Does the work of [`Signature::call_converted`] if an argument is converted or rejected. One copy for all functions.
    #[cold]
    #[inline(never)]
    pub(super) fn convert_and_call(
        &self,
        name: Option<&'static str>,
        args: &[AnyView<'_>],
        body: &dyn Fn(&[AnyView<'_>]) -> Result,
    ) -> Result {
        if let Some(at) = self.mismatch(args) {
            return rejected(name, args, self, at);
        }
        let owned = self.converted(args);
        let views = owned.iter().zip(args);
        let views: Vec<AnyView<'_>> = views
            .map(|(own, arg)| own.as_ref().map_or(*arg, Any::view))
            .collect();
        body(&views)
    }

    /// Returns the first wrong argument, if an r-value reference must not be touched before it is found. If their number is wrong, returns
    /// a position past the end, and [`rejected`] reports the number.
    fn mismatch(&self, args: &[AnyView<'_>]) -> Option<usize> {
        // FUN-08: the number is checked before any argument.
        if args.len() != self.params.len() {
            return Some(args.len());
        }
        // FUN-09: without an r-value reference, reading moves no value, and the body finds the first argument that does not convert.
        if !args.iter().any(|arg| arg.type_index() == index::RVALUE_REF) {
            return None;
        }
        let mut pairs = self.params.iter().zip(args);
        pairs.position(|(param, arg)| !param.accepts(*arg))
    }

    /// Returns the arguments that must become owned values before they are borrowed, and `None` for those that are borrowed unchanged.
    fn converted(&self, args: &[AnyView<'_>]) -> Vec<Option<Any>> {
        let mut params = self.params.iter();
        args.iter()
            .map(|arg| (params.next()?.needed_conversion(*arg)?.convert)(*arg))
            .collect()
    }
}

/// The types of a function.
#[derive(Clone, Debug)]
pub struct Typed {
    /// One schema for each parameter.
    pub params: Vec<Schema>,
    /// The schema of the result.
    pub result: Schema,
}

impl Typed {
    /// Returns the signature as in messages: `name(0: int, 1: str) -> float`.
    pub fn text(&self, name: Option<&str>) -> String {
        let params: Vec<String> = self
            .params
            .iter()
            .enumerate()
            .map(|(at, param)| format!("{at}: {}", param.text()))
            .collect();
        // As in C++ messages. In metadata, C++ uses `None` too.
        let result = match self.result.name {
            "None" => "void".to_owned(),
            _ => self.result.text(),
        };
        let name = name.unwrap_or_default();
        format!("{name}({}) -> {result}", params.join(", "))
    }
}

/// Returns the metadata of a function with known types: JSON text whose `type_schema` is JSON text again.
pub(crate) fn signature_json(typed: &Typed) -> String {
    let params: Vec<String> = typed.params.iter().map(Schema::json).collect();
    // FUN-09: the schema is JSON text inside JSON text, so its quotes are escaped again.
    let inner = format!(
        "{{\"type\":\"ffi.Function\",\"named_args\":{{\"return\":[{}],\"params\":[{}]}}}}",
        typed.result.json(),
        params.join(",")
    );
    format!(
        "{{\"type_schema\":\"{}\"}}",
        inner.replace('\\', "\\\\").replace('"', "\\\"")
    )
}

/// Returns the error for `args`: their number is wrong, or argument `at` does not convert. All functions share this copy, because there
/// are many of them, and errors are rare. Its parameters begin like those of its callers, so that no registers move.
#[cold]
#[inline(never)]
fn rejected(name: Option<&str>, args: &[AnyView<'_>], signature: &Signature, at: usize) -> Result {
    let signature = signature.typed();
    let called = signature.text(name);
    // FUN-08 has precedence over FUN-09, because positions have no meaning if the number is wrong.
    let (rule, text) = match (signature.params.get(at), args.get(at)) {
        (Some(wanted), Some(actual)) if args.len() == signature.params.len() => (
            FUN_09,
            format!(
                "Mismatched type on argument #{at} when calling: `{called}`. Expected `{}` but got `{}`",
                wanted.text(),
                types::key_of(actual.type_index())
            ),
        ),
        _ => (
            FUN_08,
            format!(
                "Mismatched number of arguments when calling: `{called}`. Expected {} but got {} arguments",
                signature.params.len(),
                args.len()
            ),
        ),
    };
    // Through `demand`, so that a rule that is switched off rejects nothing. The call then returns None without running the body.
    rule.demand(crate::rule::Kind::Type, false, || text)?;
    Ok(Any::none())
}

macro_rules! typed {
    ($count:literal $($param:ident $at:tt)*) => {
        impl<Body, Out, $($param),*> TypedFn<($($param,)*)> for Body
        where
            // The first bound tells the compiler the parameters, the second how the body is called.
            Body: Fn($($param),*) -> Out
                + for<'a> Fn($(<$param as Parameter>::At<'a>),*) -> Out
                + Send
                + Sync
                + 'static,
            Out: CallResult,
            $($param: Parameter,)*
        {
            const SIGNATURE: Signature =
                Signature::new(&[$(<$param as Parameter>::PARAM),*], Out::schema);

            #[inline]
            fn invoke(&self, name: Option<&'static str>, args: &[AnyView<'_>]) -> Result {
                let signature = const { &<Body as TypedFn<($($param,)*)>>::SIGNATURE };
                let [$($param,)*] = args else {
                    return rejected(name, args, signature, 0);
                };
                $(
                    let Some($param) = <$param as Parameter>::read($param) else {
                        return rejected(name, args, signature, $at);
                    };
                )*
                self($($param),*).into_result()
            }
        }
    };
}

#[allow(
    non_snake_case,
    reason = "an argument has the name of its type parameter"
)]
mod arities {
    use super::*;

    typed!(0);
    typed!(1 A 0);
    typed!(2 A 0 B 1);
    typed!(3 A 0 B 1 C 2);
    typed!(4 A 0 B 1 C 2 D 3);
    typed!(5 A 0 B 1 C 2 D 3 E 4);
    typed!(6 A 0 B 1 C 2 D 3 E 4 F 5);
    typed!(7 A 0 B 1 C 2 D 3 E 4 F 5 G 6);
    typed!(8 A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7);
}
