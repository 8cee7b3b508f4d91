//! The C interface by name: the functions that compiled libraries of any release expect from the process that loads them.

use crate::module::exports::{Export, provide};
use std::ffi::c_void;

/// Makes these functions available to libraries that are loaded (MOD-05).
pub(crate) fn install() {
    // MOD-26: without `-rdynamic`, or with `dlopen` and RTLD_LOCAL, the dynamic linker does not see them.
    provide(ALL);
}

macro_rules! exports {
    ($($module:ident $(:: $inner:ident)? { $($name:ident)* })*) => {
        $(use super::$module $(:: $inner)? ::{$($name),*};)*

        /// All functions, in the order of their modules.
        static ALL: &[Export] = &[
            $($(Export::new(stringify!($name), $name as *const c_void)),*),*,
            Export::new(
                "_ZN3tvm7runtime13ExtTypeVTable16RegisterInternalEiRKS1_",
                super::legacy::extension::register_extension_table as *const c_void,
            ),
            Export::new(
                "_ZN3tvm7runtime13ExtTypeVTable3GetEi",
                super::legacy::extension::extension_table as *const c_void,
            ),
        ];
    };
}

exports! {
    backend {
        TVMBackendAllocWorkspace TVMBackendAnyListMoveFromPackedReturn TVMBackendAnyListResetItem
        TVMBackendAnyListSetPackedArg TVMBackendFreeWorkspace TVMBackendParallelBarrier
        TVMBackendParallelLaunch TVMBackendRegisterSystemLibSymbol TVMBackendRunOnce
        TVMBackendSetDevice
    }
    float16 {
        __gnu_f2h_ieee __gnu_h2f_ieee __truncdfhf2
    }
    legacy {
        TVMAPISetLastError TVMAPISetLastPythonError TVMBackendGetFuncFromEnv
        TVMBackendRegisterEnvCAPI TVMByteArrayFree TVMCFuncSetReturn TVMCbArgToReturn
        TVMDropLastPythonError TVMExtTypeFree TVMFuncCall TVMFuncCreateFromCFunc TVMFuncFree TVMFuncGetGlobal
        TVMFuncListGlobalNames TVMFuncRegisterGlobal TVMFuncRemoveGlobal TVMGetLastBacktrace
        TVMGetLastError TVMGetLastPythonError TVMModFree TVMModGetFunction TVMModImport
        TVMModLoadFromFile TVMObjectDerivedFrom TVMObjectFree TVMObjectGetTypeIndex
        TVMObjectRetain TVMObjectTypeIndex2Key TVMObjectTypeKey2Index TVMThrowLastError
        TVMArrayAlloc TVMArrayCopyFromBytes TVMArrayCopyFromTo TVMArrayCopyToBytes TVMArrayFree
        TVMArrayFromDLPack TVMArrayToDLPack TVMDLManagedTensorCallDeleter
        TVMDeviceAllocDataSpace TVMDeviceAllocDataSpaceWithScope TVMDeviceCopyDataFromTo
        TVMDeviceFreeDataSpace TVMSetStream TVMStreamCreate TVMStreamFree
        TVMStreamStreamSynchronize TVMSynchronize
    }
    ffi::allocator {
        TVMFFIGetCustomAllocator TVMFFISetCustomAllocator
    }
    ffi::backtrace {
        TVMFFIBacktrace
    }
    ffi::env {
        TVMFFIEnvCheckSignals TVMFFIEnvGetDLPackManagedTensorAllocator TVMFFIEnvGetStream
        TVMFFIEnvRegisterCAPI TVMFFIEnvSetDLPackManagedTensorAllocator TVMFFIEnvSetStream
        TVMFFIEnvTensorAlloc
    }
    ffi::error {
        TVMFFIErrorCreate TVMFFIErrorCreateWithCauseAndExtraContext TVMFFIErrorMoveFromRaised
        TVMFFIErrorSetRaised TVMFFIErrorSetRaisedFromCStr TVMFFIErrorSetRaisedFromCStrParts
    }
    ffi::function {
        TVMFFIFunctionCall TVMFFIFunctionCreate TVMFFIFunctionGetGlobal TVMFFIFunctionSetGlobal
        TVMFFIFunctionSetGlobalFromMethodInfo
    }
    ffi::module {
        TVMFFIEnvModLookupFromImports TVMFFIEnvModRegisterContextSymbol
        TVMFFIEnvModRegisterSystemLibSymbol
    }
    ffi::object {
        TVMFFIGetVersion TVMFFIHandleDeinitOnce TVMFFIHandleInitOnce TVMFFIObjectCreateOpaque
        TVMFFIObjectDecRef TVMFFIObjectIncRef
    }
    ffi::tensor {
        TVMFFITensorCreateUnsafeView TVMFFITensorFromDLPack TVMFFITensorFromDLPackVersioned
        TVMFFITensorToDLPack TVMFFITensorToDLPackVersioned
    }
    ffi::types {
        TVMFFIGetTypeAttrColumn TVMFFIGetTypeInfo TVMFFITypeGetOrAllocIndex TVMFFITypeKeyToIndex
        TVMFFITypeRegisterAttr TVMFFITypeRegisterField TVMFFITypeRegisterMetadata
        TVMFFITypeRegisterMethod
    }
    ffi::value {
        TVMFFIAnyViewToOwnedAny TVMFFIBigIntFromByteArray TVMFFIBigIntGetContentByteArray
        TVMFFIBytesFromByteArray TVMFFIDataTypeFromString TVMFFIDataTypeToString
        TVMFFIStringFromByteArray
    }
}
