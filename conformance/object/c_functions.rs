//! The C functions of tvm-ffi that a step of `object.script` can call, with their signatures.

use super::c_arguments::*;
use super::c_results::*;
use super::no_result::NoResult;
use super::probe::Alive;
use crate::conformance::runtime::c_call::c_functions;
use crate::conformance::runtime::ffi::api::FfiApi;
use crate::conformance::runtime::ffi::owned::OwnedValue;
use crate::conformance::runtime::ffi::{Reply, unsupported};
use serde_json::Value;

c_functions! { CFrame<'_>, Result<OwnedValue, NoResult>:
    "TVMFFIAnyViewToOwnedAny": unsafe extern "C" fn(ViewArgument, CellPlace) -> CodeResult,
    "TVMFFIBacktrace": unsafe extern "C" fn(TextArgument, i32, TextArgument, i32) -> LineResult,
    "TVMFFIBigIntFromByteArray": unsafe extern "C" fn(BytesArgument, CellPlace) -> CodeResult,
    "TVMFFIBytesFromByteArray": unsafe extern "C" fn(BytesArgument, CellPlace) -> CodeResult,
    "TVMFFIDataTypeFromString": unsafe extern "C" fn(BytesArgument, DtypePlace) -> CodeResult,
    "TVMFFIDataTypeToString": unsafe extern "C" fn(DtypeArgument, CellPlace) -> CodeResult,
    "TVMFFIEnvCheckSignals": unsafe extern "C" fn() -> CodeResult,
    "TVMFFIEnvGetDLPackManagedTensorAllocator": unsafe extern "C" fn() -> AllocatorResult,
    "TVMFFIEnvGetStream": unsafe extern "C" fn(i32, i32) -> AddressResult,
    "TVMFFIEnvModRegisterSystemLibSymbol": unsafe extern "C" fn(TextArgument, AddressArgument) -> CodeResult,
    "TVMFFIEnvRegisterCAPI": unsafe extern "C" fn(TextArgument, AddressArgument) -> CodeResult,
    "TVMFFIEnvSetDLPackManagedTensorAllocator": unsafe extern "C" fn(AllocatorArgument, i32, AllocatorPlace) -> CodeResult,
    "TVMFFIEnvSetStream": unsafe extern "C" fn(i32, i32, AddressArgument, AddressPlace) -> CodeResult,
    "TVMFFIEnvTensorAlloc": unsafe extern "C" fn(DescriptionArgument, HandlePlace) -> CodeResult,
    "TVMFFIErrorCreate": unsafe extern "C" fn(BytesArgument, BytesArgument, BytesArgument, HandlePlace) -> CodeResult,
    "TVMFFIErrorCreateWithCauseAndExtraContext":
        unsafe extern "C" fn(BytesArgument, BytesArgument, BytesArgument, HandleArgument, HandleArgument, HandlePlace) -> CodeResult,
    "TVMFFIErrorMoveFromRaised": unsafe extern "C" fn(HandlePlace) -> (),
    "TVMFFIErrorSetRaised": unsafe extern "C" fn(HandleArgument) -> (),
    "TVMFFIErrorSetRaisedFromCStr": unsafe extern "C" fn(TextArgument, TextArgument) -> (),
    "TVMFFIErrorSetRaisedFromCStrParts": unsafe extern "C" fn(TextArgument, TextsArgument, i32) -> (),
    "TVMFFIFunctionCall": unsafe extern "C" fn(HandleArgument, ViewsArgument, i32, CellPlace) -> CodeResult,
    "TVMFFIFunctionCreate": unsafe extern "C" fn(AddressArgument, CallbackArgument, FinishArgument, HandlePlace) -> CodeResult,
    "TVMFFIFunctionGetGlobal": unsafe extern "C" fn(BytesArgument, HandlePlace) -> CodeResult,
    "TVMFFIFunctionSetGlobal": unsafe extern "C" fn(BytesArgument, HandleArgument, i32) -> CodeResult,
    "TVMFFIGetCustomAllocator": unsafe extern "C" fn() -> CustomAllocatorResult,
    "TVMFFIGetTypeAttrColumn": unsafe extern "C" fn(BytesArgument) -> PresenceResult,
    "TVMFFIGetTypeInfo": unsafe extern "C" fn(i32) -> TypeResult,
    "TVMFFIGetVersion": unsafe extern "C" fn(VersionPlace) -> (),
    "TVMFFIHandleDeinitOnce": unsafe extern "C" fn(OnceArgument, EndArgument) -> CodeResult,
    "TVMFFIHandleInitOnce": unsafe extern "C" fn(OnceArgument, InitArgument) -> CodeResult,
    "TVMFFIObjectCreateOpaque": unsafe extern "C" fn(AddressArgument, i32, FinishArgument, HandlePlace) -> CodeResult,
    "TVMFFIObjectDecRef": unsafe extern "C" fn(HandleArgument) -> CodeResult,
    "TVMFFIObjectIncRef": unsafe extern "C" fn(HandleArgument) -> CodeResult,
    "TVMFFISetCustomAllocator": unsafe extern "C" fn(CustomAllocatorArgument) -> CodeResult,
    "TVMFFIStringFromByteArray": unsafe extern "C" fn(BytesArgument, CellPlace) -> CodeResult,
    "TVMFFITensorCreateUnsafeView": unsafe extern "C" fn(HandleArgument, DescriptionArgument, HandlePlace) -> CodeResult,
    "TVMFFITensorToDLPack": unsafe extern "C" fn(HandleArgument, ManagedPlace) -> CodeResult,
    "TVMFFITensorToDLPackVersioned": unsafe extern "C" fn(HandleArgument, VersionedPlace) -> CodeResult,
    "TVMFFITypeGetOrAllocIndex": unsafe extern "C" fn(BytesArgument, i32, i32, i32, i32, i32) -> IndexResult,
    "TVMFFITypeKeyToIndex": unsafe extern "C" fn(BytesArgument, NumberPlace) -> CodeResult,
    "TVMFFITypeRegisterAttr": unsafe extern "C" fn(TypeArgument, BytesArgument, ViewArgument) -> CodeResult,
    "TVMFFITypeRegisterField": unsafe extern "C" fn(TypeArgument, FieldArgument) -> CodeResult,
    "TVMFFITypeRegisterMethod": unsafe extern "C" fn(TypeArgument, MethodArgument) -> CodeResult,
}

/// Calls the C function `name` of the runtime. `value_of` makes the value of a form in the case.
///
/// A code other than 0 is also an answer: `{"code": -1, "raises": kind}`. The kind is null if the error slot of the thread is empty. The
/// answer also has `"wrote"` if the function changed its output argument although it failed.
pub(super) fn call(
    api: &'static FfiApi,
    name: &str,
    forms: &[Value],
    value_of: &dyn Fn(&Value) -> Result<OwnedValue, Reply>,
    alive: &Alive,
) -> Result<OwnedValue, NoResult> {
    // The functions with `Raised` in their names are about the content of the error slot.
    if !name.contains("Raised") {
        drop(api.take_raised());
    }
    let missing = || unsupported(format!("this runtime has no `{name}`"));
    let address = api.runtime.symbol(name).ok_or_else(missing)?;
    let mut frame = CFrame::new(api, forms, value_of, alive);
    // SAFETY: this is the address of the C function of that name. A case passes arguments that the header allows, or null where a rule
    // defines it.
    let answer = unsafe { called(name, address, &mut frame) };
    answer.ok_or_else(|| unsupported(format!("the suite does not call `{name}`")))??
}
