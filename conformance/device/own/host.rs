//! The host as a device, handles that are no addresses, and device modules as the module chapter has them.

use super::super::recorder::Recorder;
use super::super::tables::rejected;
use super::DEVICE;
use crate::conformance::behaviour::{Failure, Outcome, demand, expect};
use crate::conformance::golden::golden;
use crate::device::{
    Attribute, AttributeValue, DEV_12, DEV_54, Device, DeviceApi, Dtype, Stream, cpu, load,
    simulated::Simulated,
};
use crate::module::workspace::{self, WorkspaceRequest};
use crate::release::Layout;
use crate::rule::Kind;

/// `device/what-the-cpu-answers` (DEV-08). Where it does not hold: a scheduler that takes a made-up number of the host for a fact plans
/// for a machine that is not there.
pub(super) fn what_the_cpu_answers() -> Outcome {
    let cpu = cpu::cpu();
    for attribute in Attribute::ALL {
        let answer = cpu.attribute(Device::CPU, attribute)?;
        match attribute {
            Attribute::Exist => expect(answer, AttributeValue::Int(1), "exist")?,
            Attribute::TotalGlobalMemory => memory_is_that_of_the_system(answer)?,
            _ => expect(answer, AttributeValue::None, attribute.name())?,
        }
    }
    Ok(())
}

/// Compares with what the system says in a text; -1 where it says nothing is as good.
fn memory_is_that_of_the_system(answer: AttributeValue) -> Outcome {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let mut words = text.split_whitespace();
    let total = words.find(|word| *word == "MemTotal:").and(words.next());
    let Some(total) = total.and_then(|kib| kib.parse::<i64>().ok()) else {
        return Ok(());
    };
    let (least, most) = (total.saturating_mul(512), total.saturating_mul(2048));
    demand(
        matches!(answer, AttributeValue::Int(bytes) if (least..most).contains(&bytes)),
        || format!("total_global_memory is {answer:?}; the system has {total} KiB"),
    )
}

/// `device/an-alignment-that-is-none` (DEV-12). Where it does not hold: memory at an alignment that no allocator knows is aligned to
/// something else.
pub(super) fn no_such_alignment() -> Outcome {
    // DEV-12: above the alignment of a pointer, and no power of two.
    for alignment in [24, 63, 65] {
        let allocated = cpu::cpu().alloc(Device::CPU, 64, alignment, Dtype::UINT8);
        let what = format!("memory aligned to {alignment}");
        rejected(allocated, DEV_12, Kind::Unsupported, &what)?;
    }
    // DEV-12: up to the alignment of a pointer nothing is rejected, and 0 asks for none.
    for alignment in [0, 1] {
        let space = cpu::cpu().alloc(Device::CPU, 8, alignment, Dtype::UINT8)?;
        demand(!space.is_null(), || format!("null, aligned to {alignment}"))?;
        // SAFETY: allocated above, freed once.
        unsafe { cpu::cpu().free(Device::CPU, space) }?;
    }
    Ok(())
}

/// `device/who-pools-workspace` (DEV-08, DEV-22, DEV-24). Where it does not hold: a device that is wrong about itself is held to the
/// rules of another.
pub(super) fn who_pools() -> Outcome {
    let simulated = Simulated::new(1);
    let recorder = Recorder::new();
    let pools = [
        cpu::cpu().pools_workspace(),
        simulated.pools_workspace(),
        recorder.pools_workspace(),
    ];
    expect(pools, [true, true, false], "devices with a pool")?;
    let addresses = [
        cpu::cpu().supports_pointer_arithmetic(),
        simulated.supports_pointer_arithmetic(),
        recorder.supports_pointer_arithmetic(),
    ];
    expect(addresses, [true, false, false], "devices with addresses")?;
    let property = recorder.target_property(DEVICE, "thread_warp_size")?;
    expect(
        property,
        AttributeValue::None,
        "a property of a device without any",
    )?;
    recorder.set_stream(DEVICE, Stream::DEFAULT)?;
    expect(
        recorder.current_stream(DEVICE),
        Stream::DEFAULT,
        "the thread's stream",
    )
}

/// `device/workspace-of-compiled-code` (DEV-26, DEV-31). Where it does not hold: workspace that compiled code frees and that is not reused
/// grows with every call.
pub(super) fn workspace_of_compiled_code() -> Outcome {
    // What the registry brings serves workspace from then on.
    crate::install();
    let request = WorkspaceRequest {
        device_type: 1,
        device_id: 0,
        bytes: 5000,
        hint: (1, 8),
    };
    let cycle = || -> Result<usize, String> {
        let memory = workspace::alloc(request)?;
        // SAFETY: just allocated on this thread.
        unsafe { workspace::free((1, 0), memory.as_ptr()) }?;
        Ok(memory.addr().get())
    };
    // On a thread of its own, whose pool is empty (DEV-33): beside free blocks of its size the returned one need not come next (DEV-30).
    let both = std::thread::scope(|scope| scope.spawn(|| (cycle(), cycle())).join());
    let Ok((Ok(first), Ok(second))) = both else {
        return Failure::broken(format!("there is no workspace: {both:?}"));
    };
    expect(second, first, "the block of the second cycle")?;
    let nowhere = WorkspaceRequest {
        device_type: 127,
        ..request
    };
    demand(workspace::alloc(nowhere).is_err(), || {
        "a device without a name has workspace".into()
    })?;
    let foreign = std::ptr::without_provenance_mut(64);
    // SAFETY: the pool rejects what it never allocated.
    let freed = unsafe { workspace::free((1, 0), foreign) };
    demand(freed.is_err(), || "a foreign block is taken back".into())
}

/// `device/handles-are-no-addresses` (DEV-41). Where it does not hold: a handle that comes twice, or that one plus an offset also is,
/// leads to another tensor.
#[cfg(any(feature = "opencl", feature = "vulkan"))]
pub(super) fn handles_are_no_addresses() -> Outcome {
    use crate::device::backend::spaces::{Handles, SpaceTable};
    use crate::device::{DEV_41, Space};
    let handles = Handles::new("suite");
    let spaces: Vec<Space> = (0..3).map(|number| handles.insert(7, number)).collect();
    let find = |space| handles.find(Device::CPU, space);
    for (space, number) in spaces.iter().zip(0..) {
        expect(find(*space)?, (7, number), "device and memory of a handle")?;
    }
    let apart = spaces.windows(2).all(|pair| match pair {
        [one, other] => other.address().checked_sub(one.address()) == Some(64),
        _ => false,
    });
    demand(apart, || format!("{spaces:?} are not 64 apart"))?;
    let [first, .., last] = spaces.as_slice() else {
        return Failure::broken("three handles are not three");
    };
    let between = Space(first.0.wrapping_byte_add(1));
    rejected(
        find(between),
        DEV_41,
        Kind::Missing,
        "a handle and one byte",
    )?;
    let removed = handles.remove(Device::CPU, *first)?;
    expect(removed, (7, 0), "what is removed")?;
    let again = handles.remove(Device::CPU, *first);
    rejected(again, DEV_41, Kind::Missing, "removing it again")?;
    expect(find(*last)?, (7, 2), "another one")?;
    demand(!spaces.contains(&handles.insert(7, 4)), || {
        "a handle comes twice".into()
    })
}

/// `device/handles-are-no-addresses` (DEV-41). Where it does not hold: a handle that comes twice, or that one plus an offset also is,
/// leads to another tensor.
#[cfg(not(any(feature = "opencl", feature = "vulkan")))]
pub(super) fn handles_are_no_addresses() -> Outcome {
    Failure::skipped("this build has no device with such handles")
}

/// The OpenCL module of a library in memory.
#[cfg(feature = "opencl")]
fn opencl_module() -> Result<(crate::module::Module, &'static [u8]), Failure> {
    use crate::value::{Any, Bytes, cast};
    let bytes = golden("blob/opencl.bin");
    let bytes = bytes.ok_or_else(|| Failure::Broken("the golden is not there".into()))?;
    let missing = || Failure::Broken("the suite has no function of that name".into());
    let load = crate::conformance::module::own::function("memory").ok_or_else(missing)?;
    let symbol = Any::from("__tvm_ffi__library_bin");
    let blob = Any::from(Bytes::new(bytes));
    let library: crate::module::Module = cast(load.call(&[symbol.view(), blob.view()])?.view())?;
    let module = library.imports().into_iter().next();
    let module = module.ok_or_else(|| Failure::Broken("it imports nothing".into()))?;
    Ok((module, bytes))
}

/// A device module of a library in memory: what it saves, that an unknown kernel is nothing (DEV-56), and what a call with other arguments is
/// rejected for (DEV-53), where no driver has to be for any of it (DEV-54).
#[cfg(feature = "opencl")]
pub(super) fn module_of_a_library() -> Outcome {
    use crate::device::DEV_53;
    use crate::device::stream::set_current_device;
    use crate::function::take_broken;
    use crate::value::{Any, AnyView};
    let (module, blob) = opencl_module()?;
    // The payload is behind the kind; the library's own part of the blob is in front of it.
    let saved = module.save_to_bytes()?;
    expect(saved.as_slice(), &blob[0x5a..], "what it saves")?;
    let found = module.function("no_kernel", false)?;
    demand(found.is_none(), || "a kernel that is not there".into())?;
    let Some(kernel) = module.function("main_kernel", false)? else {
        return Failure::broken("the kernel is not there");
    };
    let (null, one, half) = (Any::none(), Any::from(1i64), Any::from(0.5));
    let text = Any::from("no argument");
    let call = |args: &[&Any]| {
        let args: Vec<AnyView<'_>> = args.iter().map(|any| any.view()).collect();
        // What an earlier call left on the thread: the rule that is compared below is that of this call.
        drop(take_broken());
        let failed = kernel.call(&args).err()?;
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
    // No system has so many devices: what is launched there fails, whether a driver is here or not.
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

/// Without OpenCL no module of the golden can be launched.
#[cfg(not(feature = "opencl"))]
pub(super) fn module_of_a_library() -> Outcome {
    Failure::skipped("this build launches no kernels of OpenCL")
}

/// Payloads of releases become modules with their kernels, before any driver is loaded; a kind that no build launches is rejected (DEV-54).
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
