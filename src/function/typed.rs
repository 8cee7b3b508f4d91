//! Typed functions: any Rust function or closure whose parameters are [`Parameter`]s becomes a packed function.

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
/// assert_eq!(i64::try_from(&add.call(&[40i64.into(), 2i64.into()])?)?, 42);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait TypedFn<P>: Send + Sync + 'static {
    /// Converts the arguments, calls, converts the result. `name` is for messages.
    ///
    /// # Errors
    ///
    /// FUN-08 for another number of arguments, FUN-09 for the first argument that does not convert, and the error that the
    /// callable returns.
    fn invoke(&self, name: Option<&'static str>, args: &[AnyView<'_>]) -> Result;

    /// Types of the parameters and of the result.
    const SIGNATURE: Signature;

    /// [`TypedFn::SIGNATURE`], spelled out.
    fn signature() -> Typed {
        Self::SIGNATURE.typed()
    }
}

/// The types of a function, before their names are needed.
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    /// What is known of each parameter.
    params: &'static [&'static Param],
    /// Makes the schema of the result.
    result: fn() -> Schema,
    /// The type that the first parameter is borrowed as, such as the list of a method of lists.
    first: Option<i32>,
    /// Whether another parameter is borrowed as one type, or by a function.
    checks_each: bool,
}

/// What lives for the call alone, so that one comparison decides.
const FLEETING: RangeInclusive<i32> = index::RAW_STR..=index::RVALUE_REF;

impl Signature {
    /// Sorts the parameters into what `is_ready` looks at, when the function is compiled.
    const fn new(params: &'static [&'static Param], result: fn() -> Schema) -> Signature {
        let mut first = None;
        let mut checks_each = false;
        let mut at = 0;
        // A loop by hand: this runs in a `const`, where iterators do not.
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

    /// The types, with their names.
    pub fn typed(&self) -> Typed {
        Typed {
            params: self.params.iter().map(|param| (param.schema)()).collect(),
            result: (self.result)(),
        }
    }

    /// Whether [`Signature::settle`] has anything to do: some parameter is borrowed, or something may be taken for one of
    /// several before another is rejected.
    pub(super) const fn settles(&self) -> bool {
        match self.params {
            [] => false,
            [param] => param.borrowed.is_some(),
            _ => true,
        }
    }

    /// Calls `body` with `args`, of which those to borrow that are of another type are converted before. What an r-value
    /// reference leads to is taken only when nothing is wrong with the others.
    #[inline]
    pub(super) fn settle(
        &self,
        name: Option<&'static str>,
        args: &[AnyView<'_>],
        body: impl Fn(&[AnyView<'_>]) -> Result,
    ) -> Result {
        if self.is_ready(args) {
            return body(args);
        }
        self.settle_slowly(name, args, &body)
    }

    /// Whether all of `args` are borrowed, or read, as they are. How many there are is for the body to check.
    #[inline]
    pub(super) fn is_ready(&self, args: &[AnyView<'_>]) -> bool {
        let mut kinds = args.iter().map(AnyView::type_index);
        let other = |wanted| args.first().is_some_and(|arg| arg.type_index() != wanted);
        let checks_each = self.checks_each
            || self.first.is_some_and(other)
            || kinds.any(|kind| FLEETING.contains(&kind));
        !checks_each || self.is_each_ready(args)
    }

    /// [`Signature::is_ready`], parameter by parameter.
    #[inline(never)]
    fn is_each_ready(&self, args: &[AnyView<'_>]) -> bool {
        let mut pairs = self.params.iter().zip(args);
        pairs.all(|(param, arg)| {
            // VAL-09: to read an r-value reference empties its slot, which must not happen before the other arguments are known to convert.
            arg.type_index() != index::RVALUE_REF && param.converts(*arg).is_none()
        })
    }

    /// [`Signature::settle`] where something is converted, or rejected. Once for all functions.
    #[cold]
    #[inline(never)]
    pub(super) fn settle_slowly(
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

    /// The first argument that is not what it should be, where one that may not be touched before is among them; none of
    /// them where their number is wrong, which [`rejected`] states instead.
    fn mismatch(&self, args: &[AnyView<'_>]) -> Option<usize> {
        // FUN-08: the number is wrong before any argument is.
        if args.len() != self.params.len() {
            return Some(args.len());
        }
        // FUN-09: without an r-value reference reading takes nothing, and the body finds the first that does not convert.
        if !args.iter().any(|arg| arg.type_index() == index::RVALUE_REF) {
            return None;
        }
        let mut pairs = self.params.iter().zip(args);
        pairs.position(|(param, arg)| !param.accepts(*arg))
    }

    /// The arguments that have to be values of their own before they are borrowed; none where one is borrowed as it is.
    fn converted(&self, args: &[AnyView<'_>]) -> Vec<Option<Any>> {
        let mut params = self.params.iter();
        args.iter()
            .map(|arg| (params.next()?.converts(*arg)?.convert)(*arg))
            .collect()
    }
}

/// The types of a function.
#[derive(Clone, Debug)]
pub struct Typed {
    /// One per parameter.
    pub params: Vec<Schema>,
    /// Of the result.
    pub result: Schema,
}

impl Typed {
    /// As messages write it: `name(0: int, 1: str) -> float`.
    pub fn text(&self, name: Option<&str>) -> String {
        let params: Vec<String> = self
            .params
            .iter()
            .enumerate()
            .map(|(at, param)| format!("{at}: {}", param.text()))
            .collect();
        // As C++ calls it; in metadata it is `None` there too.
        let result = match self.result.name {
            "None" => "void".to_owned(),
            _ => self.result.text(),
        };
        let name = name.unwrap_or_default();
        format!("{name}({}) -> {result}", params.join(", "))
    }
}

/// The metadata of a function of known types: JSON text whose `type_schema` is JSON text again.
pub(crate) fn signature_json(typed: &Typed) -> String {
    let params: Vec<String> = typed.params.iter().map(Schema::json).collect();
    // FUN-09: the schema is JSON text inside JSON text, so its quotes are escaped once more.
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

/// What is wrong with `args`: how many there are, or that `at` does not convert. Built in one place for all functions:
/// there are many of them, and errors are rare. The parameters begin as those of its callers do, which move none for it.
#[cold]
#[inline(never)]
fn rejected(name: Option<&str>, args: &[AnyView<'_>], signature: &Signature, at: usize) -> Result {
    let signature = signature.typed();
    let called = signature.text(name);
    // FUN-08 before FUN-09: where the number is wrong, positions mean nothing.
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
    // By `demand`, so that a rule that is switched off rejects nothing: the call returns None then, and the body is not run.
    rule.demand(crate::rule::Kind::Type, false, || text)?;
    Ok(Any::none())
}

macro_rules! typed {
    ($count:literal $($param:ident $at:tt)*) => {
        impl<Body, Out, $($param),*> TypedFn<($($param,)*)> for Body
        where
            // The first tells the compiler what the parameters are, the second is how it is called.
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
