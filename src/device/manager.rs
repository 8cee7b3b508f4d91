//! The manager, which finds the API of a device type.
//!
//! A device type has a name, and the registry function `device_api.<name>` returns an API. The manager calls this function once and
//! remembers the API. It never remembers a failed lookup.

use crate::device::built_in;
use crate::device::c_table::{self, DeviceTable};
use crate::device::device_type::{self, REMOTE, name_in};
use crate::device::error::{missing_driver, out_of_memory, reject};
use crate::device::{
    Attribute, AttributeValue, DEV_02, DEV_04, DEV_20, Device, DeviceApi, Dtype, Result, Space,
    Stream, TensorRef,
};
use crate::function::{Function, registry};
use crate::module::keyed_lock::KeyedLock;
use crate::module::workspace::WorkspaceRequest;
use crate::release::Release;
use crate::rule::Kind;
use crate::value::{Any, SmallMap};
use std::ffi::c_void;
use std::sync::{OnceLock, PoisonError, RwLock};

/// A function that finds the factory of a name; `None` if no factory is registered.
pub type Lookup = Box<dyn Fn(&str) -> Option<ApiFactory> + Send + Sync>;

/// A function that returns the API. It is called once.
pub type ApiFactory = Box<dyn FnOnce() -> Result<&'static dyn DeviceApi>>;

/// Finds the API of a device and remembers it.
pub struct Manager {
    /// The APIs that were found, by type. All remote types share one entry (DEV-03).
    table: RwLock<SmallMap<i32, &'static dyn DeviceApi>>,
    /// The types whose factory is running.
    turns: KeyedLock<i32>,
    /// The source of factories.
    lookup: Lookup,
}

debug_fields!(Manager: );

impl Manager {
    /// Returns the manager of this process, which searches the global registry.
    pub fn global() -> &'static Manager {
        static GLOBAL: OnceLock<Manager> = OnceLock::new();
        GLOBAL.get_or_init(|| Manager::with_lookup(Box::new(in_registry)))
    }

    /// Creates a manager with another source of factories.
    pub fn with_lookup(lookup: Lookup) -> Manager {
        Manager {
            table: RwLock::new(SmallMap::new()),
            turns: KeyedLock::new(),
            lookup,
        }
    }

    /// Returns the API of device type `kind` (DEV-01 to DEV-06).
    ///
    /// # Errors
    ///
    /// Returns DEV-04 if the type has a name but no API; otherwise as [`Manager::find`].
    pub fn api(&self, kind: i32) -> Result<&'static dyn DeviceApi> {
        match self.find(kind)? {
            Some(api) => Ok(api),
            None => {
                let name = name_of(kind)?;
                reject(
                    DEV_04,
                    Kind::Missing,
                    format!("Device API {name} is not enabled."),
                )
            }
        }
    }

    /// Returns the API of device type `kind`. Returns `None` for a missing API, which is not cached (DEV-05).
    ///
    /// # Errors
    ///
    /// Returns DEV-06 for a number without a name; DEV-02 for a factory that looks up its own type; the factory's error.
    pub fn find(&self, kind: i32) -> Result<Option<&'static dyn DeviceApi>> {
        // DEV-03: all remote types share one API, because the session is part of the number.
        let slot = kind.min(REMOTE);
        if let Some(api) = read(&self.table).find(&slot) {
            return Ok(Some(*api));
        }
        let name = name_of(kind)?;
        let Some(factory) = (self.lookup)(&format!("device_api.{name}")) else {
            return Ok(None);
        };
        // DEV-02: upstream waits for its own lock here, because its first call holds it.
        let Some(_turn) = self.turns.take(&slot) else {
            let message = format!("the factory of `{name}` looks its own type up");
            return reject(DEV_02, Kind::Cycle, message);
        };
        // DEV-02: the factory is called once, and another thread may have called it in the meantime.
        let made = read(&self.table).find(&slot).copied();
        if let Some(api) = made {
            return Ok(Some(api));
        }
        // DEV-05: a factory that fails leaves no entry, and is called again. The table is not locked during the call, because a factory
        // may look up other devices that its device uses.
        let api = factory()?;
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        table.put(slot, api);
        Ok(Some(api))
    }

    /// Implements `runtime.GetDeviceAttr`. For a missing backend, [`Attribute::Exist`] is answered with 0 (DEV-07).
    ///
    /// # Errors
    ///
    /// Returns DEV-06 for a number without a name; DEV-04 for any attribute except [`Attribute::Exist`] of a type without an API; the
    /// device's error.
    pub fn attribute(&self, device: Device, attribute: Attribute) -> Result<AttributeValue> {
        if attribute == Attribute::Exist {
            let Some(api) = self.find(device.kind)? else {
                return Ok(AttributeValue::Int(0));
            };
            return api.attribute(device, attribute);
        }
        self.api(device.kind)?.attribute(device, attribute)
    }

    /// Copies between tensors of this process. The device that is not the CPU makes the copy (DEV-19). A copy between two types of
    /// devices is rejected (DEV-20).
    ///
    /// # Safety
    ///
    /// As for [`DeviceApi::copy`].
    pub(crate) unsafe fn copy_tensor(
        &self,
        from: &TensorRef<'_>,
        to: &TensorRef<'_>,
        stream: Stream,
    ) -> Result<()> {
        let (source, target) = (from.device, to.device);
        let meet = source.kind == target.kind || source.is_host() || target.is_host();
        DEV_20.demand(Kind::Unsupported, meet, || {
            format!(
                "Can not copy across different device types directly. From device type: {} to device type: {}",
                source.kind, target.kind
            )
        })?;
        // DEV-19: the CPU cannot reach a device's memory, so it copies only if both sides are its own.
        let source_decides = source.kind != Device::CPU.kind;
        let api = self.api(if source_decides {
            source.kind
        } else {
            target.kind
        })?;
        // SAFETY: both tensors describe valid memory, and the host side stays until a sync.
        unsafe { api.copy_tensor(from, to, stream) }
    }

    /// Allocates workspace as compiled code requests it. The hint is a type of one lane (DEV-34).
    pub(crate) fn workspace(&self, request: &WorkspaceRequest) -> Result<Space> {
        let device = Device::new(request.device_type, request.device_id);
        let hint = Dtype {
            code: request.hint.0 as u8,
            bits: request.hint.1 as u8,
            lanes: 1,
        };
        // The request has 64 bits on every machine. More than the address space counts as exhausted memory.
        let Ok(nbytes) = usize::try_from(request.bytes) else {
            return Err(out_of_memory(
                usize::MAX,
                format!("{} bytes of workspace", request.bytes),
            ));
        };
        self.api(device.kind)?.alloc_workspace(device, nbytes, hint)
    }

    /// Implements `__tvm_set_device`, which compiled code calls (DEV-42).
    ///
    /// # Errors
    ///
    /// As [`Manager::api`]; the device's error.
    pub fn set_device(&self, device: Device) -> Result<()> {
        self.api(device.kind)?.set_device(device)
    }
}

/// Returns whether compiled host code sets the device before a launch (DEV-43). It does so except for the CPU and, up to 0.19, for
/// micro devices.
#[cfg_attr(not(feature = "suite"), allow(dead_code))]
pub(crate) fn needs_set_device(kind: i32, release: Release) -> bool {
    let micro = match release.minor() {
        // DEV-43: this also holds from 0.8 on, where 13 has no name.
        7..=10 => Some(13),
        11..=19 => Some(35),
        _ => None,
    };
    kind != Device::CPU.kind && Some(kind) != micro
}

/// Locks for reading. A poisoned lock is accepted, because no panic can leave the table inconsistent.
fn read<T>(lock: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the registry name of a type: `rpc` for every remote type (DEV-03), otherwise the name of DEV-01.
fn name_of(kind: i32) -> Result<&'static str> {
    if kind >= REMOTE {
        Ok("rpc")
    } else {
        name_in(kind, Release::LAST)
    }
}

/// Returns the existing devices of type `kind`, numbered from 0 without gaps (DEV-08). It stops at 64, in case a driver never says
/// no.
///
/// The CPU claims that every number exists, so only its first device is returned.
pub fn existing_devices(api: &dyn DeviceApi, kind: i32) -> impl Iterator<Item = Device> {
    let most = if kind % REMOTE == Device::CPU.kind {
        1
    } else {
        64
    };
    let exists =
        |device: &Device| api.attribute(*device, Attribute::Exist) == Ok(AttributeValue::Int(1));
    (0..most)
        .map(move |id| Device::new(kind, id))
        .take_while(exists)
}

/// Registers `api` as `device_api.<name>`, for this crate and for all readers of the global registry (DEV-01).
///
/// The registry function returns the address of a [`DeviceTable`], so that C can also call the device.
///
/// # Errors
///
/// The registry of this crate never fails: this entry may override another (FUN-11).
///
/// # Safety
///
/// Executors, machines and compiled code use the device's memory from here on, and rely on its rules. A space of `alloc` has the
/// bytes and the alignment of the request (DEV-12, DEV-13) and overlaps no other space (DEV-41). It remains valid until `free`, and
/// for work that was queued before `free` (DEV-46). If the host reads the memory of the device type, its spaces are addresses.
/// These types are `cpu`, `cuda_host`, `rocm_host` and `cuda_managed`.
///
/// ```compile_fail,E0133
/// # let api: &'static dyn tvmspec::device::DeviceApi = tvmspec::device::cpu::cpu();
/// tvmspec::device::manager::register("ext_dev", api);
/// ```
pub unsafe fn register(name: &str, api: &'static dyn DeviceApi) -> Result<()> {
    let details = registry::Details::default();
    let name = format!("device_api.{name}");
    // SAFETY: `factory` returns the address of a table that is never freed.
    unsafe { registry::register_with(name.as_bytes(), factory(api), true, details) }
}

/// Returns the function that returns the table of `api`.
pub(super) fn factory(api: &'static dyn DeviceApi) -> Function {
    let table = c_table::of_api(api);
    Function::from_packed(move |_| {
        let table = std::ptr::from_ref(table).cast_mut().cast::<c_void>();
        // SAFETY: callers of a device's factory use the pointer as a device table.
        Ok(unsafe { Any::handle(table) })
    })
}

/// Registers `api` as [`register`] does, with a new number, which gets the name `name` in this process.
///
/// # Errors
///
/// Returns DEV-06 if the number or the name is taken.
///
/// # Safety
///
/// As for [`register`].
pub unsafe fn register_number(
    kind: i32,
    name: &'static str,
    api: &'static dyn DeviceApi,
) -> Result<()> {
    device_type::add(kind, name)?;
    // SAFETY: the caller keeps the requirements of this function, which are the same.
    unsafe { register(name, api) }
}

/// Returns the factory of the global registry, or else that of this build.
fn in_registry(name: &str) -> Option<ApiFactory> {
    let own = name
        .strip_prefix("device_api.")
        .and_then(built_in::find_built_in);
    let Some(function) = registry::lookup(name) else {
        return own.map(|api| -> ApiFactory { Box::new(move || Ok(api)) });
    };
    let name = name.to_owned();
    Some(Box::new(move || {
        let no_table = |why: &str| missing_driver(format!("{name}: {why}"));
        let made = function
            .call_packed(&[])
            .map_err(|error| no_table(&error.to_string()))?;
        let pointer =
            <*mut c_void>::try_from(&made).map_err(|error| no_table(&error.to_string()))?;
        // SAFETY: a function of this name returns null, or the address of a table that is never freed: `register_with`, the only
        // way to that name, asks for it.
        unsafe { c_table::to_api(pointer.cast::<DeviceTable>()) }
            // A C++ runtime in the same process returns its own object, which this crate cannot call.
            .or(own)
            .ok_or_else(|| no_table("returned no device table"))
    }))
}

/// Implements the stream functions of the registry, for a device of any type.
pub(crate) fn set_stream(device: Device, new: Stream) -> Result<()> {
    Manager::global().api(device.kind)?.set_stream(device, new)
}
