//! Device modules of payloads and libraries, without a driver.

use super::super::tables::rejected;
#[cfg(feature = "opencl")]
use crate::conformance::behaviour::demand;
use crate::conformance::behaviour::{Failure, Outcome, expect};
use crate::conformance::golden::golden;
#[cfg(feature = "opencl")]
use crate::device::Device;
use crate::device::{DEV_54, load};
use crate::release::Layout;
use crate::rule::Kind;

/// Returns the OpenCL module of a library in memory.
#[cfg(feature = "opencl")]
fn opencl_module() -> Result<(crate::module::Module, &'static [u8]), Failure> {
    use crate::value::{Any, Bytes, cast};
    let bytes = golden("blob/opencl.bin");
    let bytes = bytes.ok_or_else(|| Failure::Broken("the golden is not there".into()))?;
    let missing = || Failure::Broken("the suite has no function of that name".into());
    let load =
        crate::conformance::module::rust_interface::function("memory").ok_or_else(missing)?;
    let symbol = Any::from("__tvm_ffi__library_bin");
    let blob = Any::from(Bytes::new(bytes));
    let library: crate::module::Module =
        cast(load.call_packed(&[symbol.view(), blob.view()])?.view())?;
    let module = library.imports().into_iter().next();
    let module = module.ok_or_else(|| Failure::Broken("it imports nothing".into()))?;
    Ok((module, bytes))
}

/// Runs `device/module-of-a-library`. Checks that the module saves its payload, that an unknown kernel is not found (DEV-56), and
/// that a call with wrong arguments is rejected (DEV-53). None of this needs a driver (DEV-54).
#[cfg(feature = "opencl")]
pub(super) fn module_of_a_library() -> Outcome {
    use crate::device::DEV_53;
    use crate::device::stream::set_current_device;
    use crate::function::take_broken;
    use crate::value::{Any, AnyView};
    let (module, blob) = opencl_module()?;
    // The blob contains the library's own part, then the kind, then the payload.
    let saved = module.save_to_bytes()?;
    expect(saved.as_slice(), &blob[0x5a..], "the saved bytes")?;
    let found = module.function("no_kernel", false)?;
    demand(found.is_none(), || "a kernel that is not there".into())?;
    let Some(kernel) = module.function("main_kernel", false)? else {
        return Failure::broken("the kernel is not there");
    };
    let (null, one, half) = (Any::none(), Any::from(1i64), Any::from(0.5));
    let text = Any::from("no argument");
    let call = |args: &[&Any]| {
        let args: Vec<AnyView<'_>> = args.iter().map(|any| any.view()).collect();
        // An earlier call may have left a rule on the thread, and the rule that is compared below must come from this call.
        drop(take_broken());
        let failed = kernel.call_packed(&args).err()?;
        let rule = take_broken().map(|broken| broken.rule().id());
        Some((failed.kind().as_str().to_owned(), rule, failed.to_string()))
    };
    let counted =
        |count| format!("takes 2 arguments and 2 launch parameters, the call has {count} values");
    for (args, part) in [
        (vec![&null, &null, &one], counted(3)),
        (vec![&null, &null, &one, &one, &one], counted(5)),
        (vec![&one, &null, &one, &one], "Int(1)".into()),
        (vec![&half, &null, &one, &one], "Float(0.5)".into()),
        (
            vec![&text, &null, &one, &one],
            "argument of a kernel".into(),
        ),
    ] {
        let (kind, rule, text) = call(&args).unwrap_or_default();
        let named = (kind.as_str(), rule);
        expect(named, ("TypeError", Some(DEV_53.id())), &text)?;
        demand(text.contains(&part), || format!("`{text}` has no `{part}`"))?;
    }
    // No system has so many devices, so the launch fails with and without a driver.
    let text = std::thread::scope(|scope| {
        let launched = scope.spawn(|| {
            set_current_device(Device::opencl(1000));
            call(&[&null, &null, &one, &one])
        });
        launched.join()
    });
    let Ok(Some((kind, _, text))) = text else {
        return Failure::broken("a launch on device 1000 does not fail");
    };
    demand(kind != "TypeError", || {
        format!("four values of its types: `{text}`")
    })
}

/// Skips the program, because this build cannot launch the golden's OpenCL module.
#[cfg(not(feature = "opencl"))]
pub(super) fn module_of_a_library() -> Outcome {
    Failure::skipped("this build launches no kernels of OpenCL")
}

/// Runs `device/modules-of-payloads`: payloads of releases become modules with their kernels, before any driver is loaded. A kind
/// that no build launches is rejected (DEV-54).
pub(super) fn modules_of_payloads() -> Outcome {
    let read = |kind: &str, file: &str| {
        let bytes = golden(file).unwrap_or_default();
        load::from_payload(kind, Layout::V0_22, bytes)
    };
    let metal = read("metal", "payload/metal-0.27.bin");
    let what = "a module of kind `metal`";
    rejected(metal, DEV_54, Kind::Unsupported, what)?;
    let kernels = ["add_one", "scalars"];
    let built = ["opencl", "cuda"].map(|kind| load::KINDS.contains(&kind).then_some(kind));
    if built == [None; 2] {
        return Failure::skipped("this build reads no modules of OpenCL or CUDA");
    }
    for kind in built.into_iter().flatten() {
        let module = read(kind, &format!("device/{kind}-0.27.payload"))?;
        expect(module.kind(), kind, "the kind")?;
        for name in kernels {
            let Some(kernel) = module.kernel(name) else {
                return Failure::broken(format!("{kind} has no kernel `{name}`"));
            };
            let own = kernel.info().arg_types.len();
            expect(kernel.arity(), own + 2, name)?;
        }
        expect(module.names().next(), Some(kernels[0]), "the first kernel")?;
    }
    Ok(())
}
