//! Typed functions: any Rust function or closure whose parameters are [`Argument`]s becomes a packed function.

use super::{Error, FUN_08, FUN_09, Result};
use crate::value::{Any, AnyView, Argument, Schema};

/// What a typed function may return: a value, or a `Result` of one.
pub trait Outcome {
    /// Its name in metadata.
    fn schema() -> Schema;

    /// Turns it into the result of a call.
    fn outcome(self) -> Result;
}

impl<T: Into<Any> + Named> Outcome for T {
    fn schema() -> Schema {
        T::named()
    }

    #[inline]
    fn outcome(self) -> Result {
        Ok(self.into())
    }
}

impl<T: Into<Any> + Named, E: Into<Error>> Outcome for std::result::Result<T, E> {
    fn schema() -> Schema {
        T::named()
    }

    #[inline]
    fn outcome(self) -> Result {
        self.map(Into::into).map_err(Into::into)
    }
}

/// Result types with a name.
pub trait Named {
    /// The name in metadata.
    fn named() -> Schema;
}

impl<T: Argument> Named for T {
    fn named() -> Schema {
        T::schema()
    }
}

impl Named for &str {
    fn named() -> Schema {
        Schema::plain("ffi.String")
    }
}

/// A Rust callable with parameters `P` (a tuple of [`Argument`]s).
pub trait TypedFn<P>: Send + Sync + 'static {
    /// Converts the arguments, calls, converts the result. `name` is for messages.
    fn invoke(&self, name: Option<&'static str>, args: &[AnyView<'_>]) -> Result;

    /// Types of the parameters and of the result.
    const SIGNATURE: Signature;

    /// [`TypedFn::SIGNATURE`], spelled out.
    fn signature() -> Typed {
        Self::SIGNATURE.typed()
    }
}

/// The types of a function, before anybody asks for their names.
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    params: &'static [fn() -> Schema],
    result: fn() -> Schema,
}

impl Signature {
    /// The types, with their names.
    pub fn typed(&self) -> Typed {
        Typed {
            params: self.params.iter().map(|schema| schema()).collect(),
            result: (self.result)(),
        }
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
        format!(
            "{}({}) -> {}",
            name.unwrap_or_default(),
            params.join(", "),
            self.result.text()
        )
    }
}

/// The metadata of a function of known types: JSON text whose `type_schema` is JSON text again.
pub fn signature_json(typed: &Typed) -> String {
    let params: Vec<String> = typed.params.iter().map(Schema::json).collect();
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

// What goes wrong is said in one place for all functions: there are many of them, and errors are rare.

#[cold]
#[inline(never)]
fn wrong_count(signature: &Signature, name: Option<&str>, given: usize) -> Error {
    let signature = signature.typed();
    FUN_08
        .refused(
            crate::rule::Kind::Type,
            format!(
                "Mismatched number of arguments when calling: `{}`. Expected {} but got {given} arguments",
                signature.text(name),
                signature.params.len()
            ),
        )
        .into()
}

#[cold]
#[inline(never)]
fn wrong_type(
    signature: &Signature,
    name: Option<&str>,
    at: usize,
    describe: fn(AnyView<'_>) -> String,
    given: AnyView<'_>,
) -> Error {
    let signature = signature.typed();
    let wanted = signature.params.get(at).map(Schema::text);
    FUN_09
        .refused(
            crate::rule::Kind::Type,
            format!(
                "Mismatched type on argument #{at} when calling: `{}`. Expected `{}` but got `{}`",
                signature.text(name),
                wanted.unwrap_or_default(),
                describe(given)
            ),
        )
        .into()
}

macro_rules! typed {
    ($count:literal $($param:ident $at:tt)*) => {
        impl<Body, Out, $($param),*> TypedFn<($($param,)*)> for Body
        where
            Body: Fn($($param),*) -> Out + Send + Sync + 'static,
            Out: Outcome,
            $($param: Argument,)*
        {
            const SIGNATURE: Signature = Signature {
                params: &[$(<$param as Argument>::schema),*],
                result: Out::schema,
            };

            #[inline]
            fn invoke(&self, name: Option<&'static str>, args: &[AnyView<'_>]) -> Result {
                let signature = const { &<Body as TypedFn<($($param,)*)>>::SIGNATURE };
                let [$($param,)*] = args else {
                    return Err(wrong_count(signature, name, args.len()));
                };
                self($(
                    match <$param as Argument>::try_from_view(*$param) {
                        Some(value) => value,
                        None => {
                            let describe = <$param as Argument>::describe;
                            return Err(wrong_type(signature, name, $at, describe, *$param));
                        }
                    }
                ),*).outcome()
            }
        }
    };
}

#[allow(non_snake_case)]
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
