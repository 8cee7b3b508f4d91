//! Conversion of the arguments of executors and factories, with their errors.

use super::executor::{ExecutorDevice, whole_byte_elements};
use crate::function;
use crate::graph::{GRF_42, GRF_43, GRF_44};
use crate::module::Module;
use crate::object::Tensor;
use crate::rule::Kind;
use crate::tensor::Device;
use crate::value::{AnyView, DLTensor, Str, cast, index};

/// Reads devices, each as one device value or as a pair of type and index.
pub(super) fn executor_devices(
    mut devices: &[AnyView<'_>],
) -> function::Result<Vec<ExecutorDevice>> {
    let mut found = Vec::new();
    while let [first, rest @ ..] = devices {
        let (kind, id);
        // GRF-49: a factory takes device values. GRF-43: `create` takes pairs of numbers since 0.5, of which the first is the
        // fallback (GRF-30).
        (kind, id, devices) = match rest {
            _ if first.type_index() == index::DEVICE => {
                let device = cast::<Device>(*first)?;
                (device.kind, device.id, rest)
            }
            [second, rest @ ..] => (i32::try_from(*first)?, i32::try_from(*second)?, rest),
            [] => {
                return Err(GRF_43
                    .rejected(Kind::Type, "devices come in pairs of type and index")
                    .into());
            }
        };
        found.push(ExecutorDevice::new(Device { kind, id })?);
    }
    Ok(found)
}

/// Returns the module in an argument: the library, or another executor.
pub(super) fn as_module(view: AnyView<'_>) -> function::Result<Module> {
    let object = view.as_object().cloned();
    object
        .and_then(|object| Module::from_object(object).ok())
        .ok_or_else(|| {
            GRF_43
                .rejected(
                    Kind::Type,
                    "the argument in the module's place is not a module",
                )
                .into()
        })
}

/// Returns an index. A negative one becomes an index that does not exist. Releases compare unsigned numbers, with the same effect
/// (GRF-32).
pub(super) fn position(view: AnyView<'_>) -> function::Result<usize> {
    Ok(usize::try_from(i64::try_from(view)?).unwrap_or(usize::MAX))
}

/// Returns a number that is not negative (GRF-42).
pub(super) fn count(view: AnyView<'_>) -> function::Result<usize> {
    let number = i64::try_from(view)?;
    match usize::try_from(number) {
        Ok(count) => Ok(count),
        Err(_) => Err(GRF_42
            .rejected(Kind::Type, format!("{number} is not a number of times"))
            .into()),
    }
}

/// Checks the number of arguments (GRF-44). Missing arguments get no default.
pub(super) fn check_argument_count(
    name: &str,
    least: usize,
    args: &[AnyView<'_>],
) -> function::Result<()> {
    let count = args.len();
    GRF_44.demand(Kind::Type, count >= least, || {
        format!("`{name}` needs {least} arguments at least, it got {count}")
    })?;
    Ok(())
}

/// Returns the bytes of a parameter file.
pub(super) fn as_bytes(view: AnyView<'_>) -> function::Result<Vec<u8>> {
    match cast::<Vec<u8>>(view) {
        Ok(bytes) => Ok(bytes),
        // Frontends up to 0.20 also pass parameter files as strings.
        Err(_) => Ok(cast::<Str>(view)?.as_bytes().to_vec()),
    }
}

/// Returns the description of a tensor argument, with whole bytes for each element (GRF-33).
pub(super) fn description<'a>(view: &'a AnyView<'_>) -> function::Result<&'a DLTensor> {
    // GRF-33: only a tensor object shows whether small elements may be packed. A borrowed description does not.
    if let Ok(tensor) = cast::<Tensor>(*view) {
        whole_byte_elements(&tensor)?;
    }
    let tensor = cast::<*mut DLTensor>(*view)?;
    // SAFETY: an argument of this type points to a description that lives as long as the view.
    Ok(unsafe { &*tensor })
}
