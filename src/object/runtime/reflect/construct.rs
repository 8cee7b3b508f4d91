//! Constructors derived from reflection, and types that a frontend defines (OBJ-15).

use super::builtin::{enum_index, kwargs};
use super::column;
use super::field_access::{OwnField, create, fields_of};
use super::storage::{allocate_record, copy_record};
use crate::function::{Error, ErrorKind, Function, Result};
use crate::rule::Kind;
use crate::value::header::{Header, ObjectRef};
use crate::value::types::{self, FieldInfo, TypeInfo, flag};
use crate::value::{Any, AnyView, Argument, cast, index};

/// Returns the description of a type.
fn info(type_index: i32) -> Result<&'static TypeInfo> {
    types::info(type_index).ok_or_else(|| {
        Error::new(
            ErrorKind::Runtime,
            format!("unknown type index {type_index}"),
        )
    })
}

/// The parameters of a constructor, `__ffi_init__` (OBJ-15). Computed once, when the constructor of a type is registered. A field that is
/// registered later is not a parameter.
struct InitParameters {
    /// Key of the type, for error messages.
    key: &'static str,
    /// The type itself.
    info: &'static TypeInfo,
    /// Fields of `info` and its ancestors, starting with the root's.
    fields: Vec<&'static FieldInfo>,
    /// Positions in `fields` that positional arguments fill. Fields without a default come first, and each group is in field order.
    positional: Vec<usize>,
}

impl InitParameters {
    /// Derives the parameters of a type's constructor from the flags of its fields.
    fn of(info: &'static TypeInfo) -> InitParameters {
        let fields: Vec<&'static FieldInfo> = info.all_fields().collect();
        // As in Python, parameters without a default precede those with one, because a derived type may add a field that needs a value.
        let (mut positional, mut optional): (Vec<usize>, Vec<usize>) = (0..fields.len())
            .filter(|&at| fields[at].flags & (flag::INIT_OFF | flag::KEYWORD_ONLY) == 0)
            .partition(|&at| fields[at].flags & flag::HAS_DEFAULT == 0);
        positional.append(&mut optional);
        InitParameters {
            key: info.key(),
            info,
            fields,
            positional,
        }
    }

    /// Returns the last field of that name that the constructor accepts. A field of a derived type hides that of an ancestor.
    fn named(&self, name: &str) -> Option<usize> {
        (0..self.fields.len()).rev().find(|&at| {
            self.fields[at].name() == name && self.fields[at].flags & flag::INIT_OFF == 0
        })
    }

    /// Returns an error of this constructor: a TypeError with OBJ-15, whose text begins with the type.
    fn reject(&self, message: impl std::fmt::Display) -> Error {
        let message = format!("{}.__ffi_init__() {message}", self.key);
        Error::of_violation(
            ErrorKind::Type,
            crate::object::OBJ_15.rejected(Kind::Type, message),
        )
    }

    /// Adds the name of the field to the error of a setter. Kind and backtrace stay, and the setter's error becomes the cause.
    fn at_field(&self, what: &str, field: &FieldInfo, error: Error) -> Error {
        // Upstream indents every line of the nested text.
        let inner = error.message().replace('\n', "\n  ");
        let message = format!(
            "{}.__ffi_init__() {what} '{}':\n  {inner}",
            self.key,
            field.name()
        );
        // Keeps the parts of the error: a frontend raises its own exception by kind, and shows the origin.
        let (kind, trace) = (error.kind().as_str().to_owned(), error.backtrace());
        Error::with_parts(
            kind.as_bytes(),
            message.as_bytes(),
            trace.as_bytes(),
            Some(error.into_object()),
            None,
        )
    }

    /// Sets the fields of a new object: first by position, then by name after the marker, and the rest to their defaults.
    fn bind(&self, object: &ObjectRef, args: &[AnyView<'_>]) -> Result<()> {
        let mut bound = vec![false; self.fields.len()];
        let set = |at: usize, value: AnyView<'_>, bound: &mut Vec<bool>| -> Result<()> {
            self.field_of(object, at)?
                .set(value)
                .map_err(|error| self.at_field("field", self.fields[at], error))?;
            bound[at] = true;
            Ok(())
        };
        // Compared by address: another object that is equal is not the marker, and a text could be an argument.
        let marker = args.iter().position(|arg| {
            arg.as_object()
                .is_some_and(|object| object.as_ptr() == kwargs().as_ptr())
        });
        let (positional, named) = match marker {
            Some(at) => (&args[..at], &args[at + 1..]),
            None => (args, &args[args.len()..]),
        };
        if positional.len() > self.positional.len() {
            return Err(self.reject(format_args!(
                "takes at most {} positional argument(s), but {} were given",
                self.positional.len(),
                positional.len()
            )));
        }
        for (&at, &value) in self.positional.iter().zip(positional) {
            set(at, value, &mut bound)?;
        }
        for pair in named.chunks(2) {
            let [name, value] = pair else {
                return Err(self.reject("KWARGS requires an even number of key-value arguments"));
            };
            let name = cast::<String>(*name)?;
            let Some(at) = self.named(&name) else {
                return Err(
                    self.reject(format_args!("got an unexpected keyword argument '{name}'"))
                );
            };
            // OBJ-15: a field with two values is an error, no matter how the first one was passed.
            if bound[at] {
                return Err(self.reject(format_args!("got multiple values for argument '{name}'")));
            }
            set(at, *value, &mut bound)?;
        }
        self.fill(object, &bound)
    }

    /// Returns field `at` of an object that was created for this constructor.
    fn field_of<'a>(&self, object: &'a ObjectRef, at: usize) -> Result<OwnField<'a>> {
        OwnField::find(object, self.info, |_| self.fields.get(at).copied())
            .ok_or_else(|| self.reject("made an object of another type"))
    }

    /// Sets the fields without an argument to their defaults. Fields that have no default and are not parameters stay unchanged.
    fn fill(&self, object: &ObjectRef, bound: &[bool]) -> Result<()> {
        for at in (0..self.fields.len()).filter(|&at| !bound[at]) {
            let field = self.fields[at];
            let filled = self
                .field_of(object, at)?
                .set_default()
                .map_err(|error| self.at_field("default for field", field, error))?;
            // OBJ-15: a field without a value is an error, unless the constructor has no parameter for it.
            if filled || field.flags & flag::INIT_OFF != 0 {
                continue;
            }
            let what = if field.flags & flag::KEYWORD_ONLY != 0 {
                "keyword-only argument"
            } else {
                "argument"
            };
            return Err(self.reject(format_args!("missing required {what}: '{}'", field.name())));
        }
        Ok(())
    }
}

/// Registers a constructor over the reflected fields of a type.
pub(crate) fn register_init(type_index: i32) -> Result<()> {
    let info = info(type_index)?;
    let parameters = InitParameters::of(info);
    // The object is created first, because its fields are set in place. An error drops it.
    let init = Function::from_packed(move |args| {
        let object = create(info)?;
        parameters.bind(&object, args)?;
        Ok(object.into())
    });
    set_attr(type_index, &column::INIT, init)
}

/// Sets an attribute of a type to a function.
fn set_attr(type_index: i32, attribute: &column::TypeAttribute, function: Function) -> Result<()> {
    types::set_attr(type_index, attribute.name(), function.into())
        .map_err(|broken| Error::new(ErrorKind::Runtime, broken.message()))
}

/// Registers the hooks of a type whose objects only reflection knows: constructor, empty object, copy.
pub(crate) fn register_frontend_type(type_index: i32, size: i64) -> Result<()> {
    // The size of an object is a C `int` in `TVMFFITypeMetadata`.
    let size = i32::try_from(size)
        .ok()
        .and_then(|size| usize::try_from(size).ok());
    let size = size.ok_or_else(|| {
        Error::new(
            ErrorKind::Value,
            "the size of an object is 0 to 2147483647 bytes",
        )
    })?;
    // Before any registration, so that a type that fails here can be registered again with another size.
    check_record(info(type_index)?, size)?;
    register_init(type_index)?;
    let make = Function::named(None, move || allocate_record(type_index, size));
    set_attr(type_index, &column::NEW, make)?;
    let copy = Function::named(None, move |source: ObjectRef| {
        copy_record(&source, type_index, size)
    });
    set_attr(type_index, &column::SHALLOW_COPY, copy)
}

/// Checks that zeroed memory of `size` bytes can be an object of a type. After success, no Rust type can be laid out under its key.
fn check_record(info: &'static TypeInfo, size: usize) -> Result<()> {
    let reject = |kind: ErrorKind<'_>, why: String| {
        let message = format!("Type `{}` cannot be a record: {why}", info.key());
        Err(Error::new(kind, message))
    };
    // A record is freed by `end_record`, so no ancestor may have memory that only a Rust type can free.
    for one in info.ancestors().iter().copied().chain([info]) {
        if !is_open(one) {
            let why = format!("objects of `{}` are laid out by this library", one.key());
            return reject(ErrorKind::Type, why);
        }
        let least = one.metadata().map_or(0, |metadata| metadata.total_size);
        if usize::try_from(least).is_ok_and(|least| least > size) {
            let why = format!("`{}` has {least} bytes, it has {size}", one.key());
            return reject(ErrorKind::Value, why);
        }
    }
    for field in info.all_fields() {
        // OBJ-15: upstream accepts such a field, and writes to it corrupt other memory.
        let end = field.offset.checked_add(field.size);
        let fits = end.and_then(|end| usize::try_from(end).ok());
        if field.offset < size_of::<Header>() as i64 || fits.is_none_or(|end| end > size) {
            let why = format!("field `{}` does not lie in its {size} bytes", field.name());
            return reject(ErrorKind::Value, why);
        }
    }
    Ok(())
}

/// Returns whether objects of a type may consist of zeroed memory. This is false if zeroed memory is not a valid state of its Rust type.
/// Members of enumerations are allowed.
fn is_open(info: &'static TypeInfo) -> bool {
    match info.type_index {
        // Only a header.
        index::OBJECT => true,
        // Types with a fixed index are Rust types here, and reflection knows few or none of their fields.
        own if own < index::DYNAMIC_BEGIN => false,
        // When zeroed, their number is 0 and their name is a cell with None. Python derives its enumerations from them.
        own if types::is_instance(own, enum_index()) => true,
        own => types::lay_out_elsewhere(own),
    }
}

/// Implements `ffi.MakeObjectFromPackedArgs`: type index or key, then names and values.
///
/// # Errors
///
/// * A TypeError without a type.
/// * An InternalError for an unknown key, and for arguments that are not pairs.
/// * A RuntimeError for an unknown index, and for a type that reflection cannot create.
/// * A TypeError with OBJ-15 for a field without a value and a default, and a TypeError for a name that is not a field.
/// * The errors of the creator of the type and of the setters of fields.
pub fn make_object(args: &[AnyView<'_>]) -> Result {
    let [first, pairs @ ..] = args else {
        return Err(Error::new(
            ErrorKind::Type,
            "a type index or key is missing",
        ));
    };
    let type_index = match i32::try_from_view(*first) {
        Some(type_index) => type_index,
        None => {
            let key = cast::<String>(*first)?;
            types::index_of(&key).ok_or_else(|| {
                Error::new(ErrorKind::Internal, format!("Cannot find type `{key}`"))
            })?
        }
    };
    if !pairs.len().is_multiple_of(2) {
        return Err(Error::new(
            ErrorKind::Internal,
            "names and values come in turn: an even number of arguments after the type",
        ));
    }
    let info = info(type_index)?;
    // Fields are set in place. If one fails, the object is dropped with the fields set so far.
    let object = create(info)?;
    // All names are read before the first field is set.
    let names: Result<Vec<String>> = pairs
        .iter()
        .step_by(2)
        .map(|&name| Ok(cast(name)?))
        .collect();
    let names = names?;
    let mut used = vec![false; names.len()];
    for field in fields_of(&object) {
        // OBJ-15: a repeated name is used once, so the second occurrence is reported as an unknown field.
        let found = (0..names.len()).find(|&at| !used[at] && names[at] == field.name());
        if let Some(at) = found {
            field.set(pairs[at * 2 + 1])?;
            used[at] = true;
        } else {
            let text = || {
                format!(
                    "Required field `{}` not set in type `{}`",
                    field.name(),
                    info.key()
                )
            };
            crate::object::OBJ_15
                .demand(Kind::Type, field.set_default()?, text)
                .map_err(|broken| Error::of_violation(ErrorKind::Type, broken))?;
        }
    }
    if let Some(at) = used.iter().position(|used| !used) {
        return Err(Error::new(
            ErrorKind::Type,
            format!("Type `{}` does not have field `{}`", info.key(), names[at]),
        ));
    }
    Ok(Any::from(object))
}
