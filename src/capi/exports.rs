//! The C interface by name: what compiled libraries of any release expect from the process that loads them.

use crate::module::exports::{Export, provide};
use std::ffi::c_void;

/// Lets libraries that are loaded find these functions (MOD-05).
pub(crate) fn install() {
    // MOD-26: a program without `-rdynamic`, and `dlopen` with RTLD_LOCAL, hide them from the dynamic linker.
    provide(ALL);
}

macro_rules! exports {
    ($($module:ident $(:: $inner:ident)? { $($name:ident)* })*) => {
        $(use super::$module $(:: $inner)? ::{$($name),*};)*

        /// Every function, in the order of the rooms that they are in.
        static ALL: &[Export] = &[
            $($(Export::new(stringify!($name), $name as *const c_void)),*),*,
            #[cfg(feature = "extensions")]
            Export::new("TVMExtTypeFree", super::legacy::TVMExtTypeFree as *const c_void),
            #[cfg(feature = "extensions")]
            Export::new(
                "_ZN3tvm7runtime13ExtTypeVTable16RegisterInternalEiRKS1_",
                super::legacy::extension::register_extension_table as *const c_void,
            ),
            #[cfg(feature = "extensions")]
            Export::new(
                "_ZN3tvm7runtime13ExtTypeVTable3GetEi",
                super::legacy::extension::extension_table as *const c_void,
            ),
        ];
    };
}

exports! {
    backend {
        TVMBackendAllocWorkspace TVMBackendFreeWorkspace TVMBackendParallelBarrier
        TVMBackendParallelLaunch TVMBackendRegisterSystemLibSymbol TVMBackendRunOnce
    }
    half {
        __gnu_f2h_ieee __gnu_h2f_ieee
    }
    legacy {
        TVMAPISetLastError TVMAPISetLastPythonError TVMBackendGetFuncFromEnv
        TVMBackendRegisterEnvCAPI TVMByteArrayFree TVMCFuncSetReturn TVMCbArgToReturn
        TVMDropLastPythonError TVMFuncCall TVMFuncCreateFromCFunc TVMFuncFree TVMFuncGetGlobal
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
        TVMFFIGetCustomAllocator TVMFFIGetVersion TVMFFIHandleDeinitOnce TVMFFIHandleInitOnce
        TVMFFIObjectCreateOpaque TVMFFIObjectDecRef TVMFFIObjectIncRef TVMFFISetCustomAllocator
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

#[cfg(test)]
mod tests {
    use super::ALL;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// Names of the functions for compiled libraries that the Rust files in `folder` export.
    fn exported(folder: &Path, names: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                exported(&path, names);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let behind = text.split("#[unsafe(no_mangle)]\n").skip(1);
            let heads = behind.filter_map(|text| {
                let text = text.strip_prefix("pub(crate) ").unwrap_or(text);
                text.split_once('(')?.0.rsplit(' ').next()
            });
            names.extend(heads.map(str::to_owned));
            // Those of C++ are exported by another name than that of the function; tvm-ffi's are for programs that link to it.
            let named = text.split("#[unsafe(export_name = \"").skip(1);
            let named = named.filter_map(|text| Some(text.split_once('"')?.0));
            let named = named.filter(|name| name.starts_with("_ZN3tvm7runtime"));
            names.extend(named.map(str::to_owned));
        }
    }

    #[test]
    fn every_exported_function_is_in_the_table_once() {
        let mut names = BTreeSet::new();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/capi");
        exported(&folder, &mut names);
        // What this library offers beyond the interfaces of TVM is for programs.
        names.retain(|name| !name.starts_with("tvmspec_"));
        let table: BTreeSet<String> = ALL.iter().map(|export| export.name.to_owned()).collect();
        assert_eq!(table.len(), ALL.len());
        assert_eq!(table, names);
        assert!(names.len() > 100, "{}", names.len());
    }
}
