//! The manager: which API serves a device type.
//!
//! A device type has a name, and the registry has a function `device_api.<name>` that returns an API. The manager calls it once
//! and remembers the API, never a miss.

use crate::device::c_table::{self, DeviceTable};
use crate::device::device_type::{self, REMOTE, name_in};
use crate::device::error::{absent, out_of_memory, reject};
use crate::device::own;
use crate::device::{
    Attribute, AttributeValue, DEV_02, DEV_04, DEV_20, Device, DeviceApi, Dtype, Result, Space,
    Stream, TensorRef,
};
use crate::function::{Function, registry};
use crate::module::turns::Turns;
use crate::module::workspace::WorkspaceRequest;
use crate::release::Release;
use crate::rule::Kind;
use crate::value::{Any, SmallMap};
use std::ffi::c_void;
use std::sync::{OnceLock, PoisonError, RwLock};

/// Where a manager looks: the factory of a name, or nothing.
pub type Lookup = Box<dyn Fn(&str) -> Option<ApiFactory> + Send + Sync>;

/// Returns the API; called once.
pub type ApiFactory = Box<dyn FnOnce() -> Result<&'static dyn DeviceApi>>;

/// Finds the API of a device and remembers it.
pub struct Manager {
    /// What was found, by type; all remote types have one place (DEV-03).
    table: RwLock<SmallMap<i32, &'static dyn DeviceApi>>,
    /// Of types whose factory runs.
    turns: Turns<i32>,
    /// Where the factory of a name comes from.
    lookup: Lookup,
}

impl Manager {
    /// The manager of this process. It looks into the global registry.
    pub fn global() -> &'static Manager {
        static GLOBAL: OnceLock<Manager> = OnceLock::new();
        GLOBAL.get_or_init(|| Manager::with_lookup(Box::new(in_registry)))
    }

    /// A manager that looks elsewhere.
    pub fn with_lookup(lookup: Lookup) -> Manager {
        Manager {
            table: RwLock::new(SmallMap::new()),
            turns: Turns::new(),
            lookup,
        }
    }

    /// The API of device type `kind`, or why there is none (DEV-01 to DEV-06).
    ///
    /// # Errors
    ///
    /// DEV-04 when the type has a name and no API; as [`Manager::find`].
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

    /// The API of device type `kind` if there is one. That there is none is not remembered (DEV-05).
    ///
    /// # Errors
    ///
    /// DEV-06 for a number without a name; DEV-02 for a factory that looks up its own type; what the factory returns.
    pub fn find(&self, kind: i32) -> Result<Option<&'static dyn DeviceApi>> {
        // All remote types are one: the session is in the number, the API is not (DEV-03).
        let slot = kind.min(REMOTE);
        if let Some(api) = read(&self.table).find(&slot) {
            return Ok(Some(*api));
        }
        let name = name_of(kind)?;
        let Some(factory) = (self.lookup)(&format!("device_api.{name}")) else {
            return Ok(None);
        };
        // DEV-02: upstream waits for itself here, with the lock that its first call holds.
        let Some(_turn) = self.turns.take(&slot) else {
            let message = format!("the factory of `{name}` looks its own type up");
            return reject(DEV_02, Kind::Cycle, message);
        };
        // Another thread may have been faster: the factory is called once (DEV-02).
        let made = read(&self.table).find(&slot).copied();
        if let Some(api) = made {
            return Ok(Some(api));
        }
        // DEV-05: a factory that fails leaves nothing behind, and is called again.
        // No lock is held: a factory may look up the devices that its own is built on.
        let api = factory()?;
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        table.put(slot, api);
        Ok(Some(api))
    }

    /// Answers `runtime.GetDeviceAttr`: whether a device exists is answered for a backend that does not, with 0 (DEV-07).
    ///
    /// # Errors
    ///
    /// DEV-06 for a number without a name; DEV-04 for any question but [`Attribute::Exist`] about a type without an API; what
    /// the device answers.
    pub fn attribute(&self, device: Device, attribute: Attribute) -> Result<AttributeValue> {
        if attribute == Attribute::Exist {
            let Some(api) = self.find(device.kind)? else {
                return Ok(AttributeValue::Int(0));
            };
            return api.attribute(device, attribute);
        }
        self.api(device.kind)?.attribute(device, attribute)
    }

    /// Copies between tensors of this process: calls the device that is not the CPU (DEV-19), and rejects a copy between
    /// two types of devices (DEV-20).
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
        // DEV-19: the CPU cannot reach a device's memory, so that it copies only where both sides are its own.
        let source_decides = source.kind != Device::CPU.kind;
        let api = self.api(if source_decides {
            source.kind
        } else {
            target.kind
        })?;
        // SAFETY: both tensors describe memory that is there, and the side of the host stays until a sync.
        unsafe { api.copy_tensor(from, to, stream) }
    }

    /// Workspace as compiled code requests it: the hint is a type of one lane (DEV-34).
    pub(crate) fn workspace(&self, request: &WorkspaceRequest) -> Result<Space> {
        let device = Device::new(request.device_type, request.device_id);
        let hint = Dtype {
            code: request.hint.0 as u8,
            bits: request.hint.1 as u8,
            lanes: 1,
        };
        // The request has 64 bits on every machine; more than the address space is memory that is not there.
        let Ok(nbytes) = usize::try_from(request.bytes) else {
            return Err(out_of_memory(
                usize::MAX,
                format!("{} bytes of workspace", request.bytes),
            ));
        };
        self.api(device.kind)?.alloc_workspace(device, nbytes, hint)
    }

    /// What compiled code calls as `__tvm_set_device` (DEV-42).
    ///
    /// # Errors
    ///
    /// As [`Manager::api`]; what the device answers.
    pub fn set_device(&self, device: Device) -> Result<()> {
        self.api(device.kind)?.set_device(device)
    }
}

/// Whether compiled host code sets the device before it launches (DEV-43): not for the CPU, and up to 0.19 not for micro
/// devices.
#[cfg_attr(not(feature = "suite"), allow(dead_code))]
pub(crate) fn needs_set_device(kind: i32, release: Release) -> bool {
    let micro = match release.minor() {
        // DEV-43: also from 0.8 on, where 13 has no name.
        7..=10 => Some(13),
        11..=19 => Some(35),
        _ => None,
    };
    kind != Device::CPU.kind && Some(kind) != micro
}

/// The lock for reading. A thread that panicked with it left the table whole.
fn read<T>(lock: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

/// The name that the registry has a type under: `rpc` for every remote one (DEV-03), else that of DEV-01.
fn name_of(kind: i32) -> Result<&'static str> {
    if kind >= REMOTE {
        Ok("rpc")
    } else {
        name_in(kind, Release::LAST)
    }
}

/// The devices of type `kind` that exist, numbered from 0 without gaps (DEV-08), 64 at most, should a driver answer for ever.
///
/// The CPU answers for any number that it exists: only its first is returned.
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
/// What the registry function returns is the address of a [`DeviceTable`], so that C can call the device as well.
///
/// # Errors
///
/// None from the registry of this crate: this entry may override another (FUN-11).
///
/// # Safety
///
/// Executors, machines and compiled code use the device's memory from here on, and rely on its rules: a
/// space of `alloc` has the bytes and the alignment of the request (DEV-12, DEV-13), is part of no other (DEV-41)
/// and stays until `free`, and what was queued before that (DEV-46). The spaces of a type of device whose memory the host
/// reads (`cpu`, `cuda_host`, `rocm_host`, `cuda_managed`) are addresses.
///
/// ```compile_fail,E0133
/// # let api: &'static dyn tvmspec::device::DeviceApi = tvmspec::device::cpu::cpu();
/// tvmspec::device::manager::register("ext_dev", api);
/// ```
pub unsafe fn register(name: &str, api: &'static dyn DeviceApi) -> Result<()> {
    let details = registry::Details::default();
    let name = format!("device_api.{name}");
    // SAFETY: `factory` returns the address of a table that lives for ever.
    unsafe { registry::register_with(name.as_bytes(), factory(api), true, details) }
}

/// The function that returns the table of `api`.
pub(super) fn factory(api: &'static dyn DeviceApi) -> Function {
    let table = c_table::of_api(api);
    Function::from_packed(move |_| {
        let table = std::ptr::from_ref(table).cast_mut().cast::<c_void>();
        // SAFETY: callers of a device's factory take the pointer as a device table.
        Ok(unsafe { Any::handle(table) })
    })
}

/// [`register`] under a number of its own, which becomes known by `name` in this process.
///
/// # Errors
///
/// A number or name that is taken.
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
    // SAFETY: as for this function.
    unsafe { register(name, api) }
}

/// What the global registry has, or else what this build brings.
fn in_registry(name: &str) -> Option<ApiFactory> {
    let own = name.strip_prefix("device_api.").and_then(own::own);
    let Some(function) = registry::lookup(name) else {
        return own.map(|api| -> ApiFactory { Box::new(move || Ok(api)) });
    };
    let name = name.to_owned();
    Some(Box::new(move || {
        let no_table = |why: &str| absent(format!("{name}: {why}"));
        let made = function
            .call(&[])
            .map_err(|error| no_table(&error.to_string()))?;
        let pointer =
            <*mut c_void>::try_from(&made).map_err(|error| no_table(&error.to_string()))?;
        // SAFETY: a function of this name returns null, or the address of a table that lives for ever: `register_with`, the
        // only way to that name, asks for it.
        unsafe { c_table::to_api(pointer.cast::<DeviceTable>()) }
            // A C++ runtime beside us returns an object of its own, which is none of ours to call.
            .or(own)
            .ok_or_else(|| no_table("returned no device table"))
    }))
}

/// The stream functions of the registry, for a device of any type.
pub(crate) fn set_stream(device: Device, new: Stream) -> Result<()> {
    Manager::global().api(device.kind)?.set_stream(device, new)
}
