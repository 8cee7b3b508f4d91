//! Memory of a machine: allocators, storage, and the tensors in it.

use super::{Fault, VM_30, VM_31, VM_33};
use crate::device::{ALIGNMENT, Device, DeviceApi, Dtype, Manager, Space, TensorRef, byte_size};
use crate::release::Release;
use crate::rule::Kind;
use crate::tensor::Packing;
use crate::value::header::{Header, Ref};
use crate::value::{Any, DLDataType, DLDevice, DLTensor, Object, index};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// How a machine takes memory of a device. The numbers are those of `vm_initialization`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AllocatorKind {
    /// Every storage is taken from the device and returned to it (1).
    Naive,
    /// Storage that is returned is kept for the next of the same size (2).
    #[default]
    Pooled,
}

impl AllocatorKind {
    /// The kind with this number (VM-30).
    pub(crate) fn of_number(number: i64) -> Option<AllocatorKind> {
        match number {
            1 => Some(AllocatorKind::Naive),
            2 => Some(AllocatorKind::Pooled),
            _ => None,
        }
    }
}

/// Pooled storage comes in whole pages (VM-32).
const PAGE: usize = 4096;

/// A device of a machine, with its allocator.
pub(super) struct Place {
    pub(super) device: Device,
    pub(super) api: &'static dyn DeviceApi,
    pub(super) allocator: Arc<Allocator>,
}

impl Place {
    pub(super) fn new(device: Device, kind: AllocatorKind) -> Result<Place, Fault> {
        let api = Manager::global().api(device.kind)?;
        let allocator = Arc::new(Allocator {
            device,
            api,
            pool: (kind == AllocatorKind::Pooled).then(Mutex::default),
        });
        let mut known = allocators();
        known.retain(|allocator| allocator.upgrade().is_some());
        known.push(Arc::downgrade(&allocator));
        Ok(Place {
            device,
            api,
            allocator,
        })
    }
}

/// Every allocator alive, for `vm.builtin.memory_manager.clear`.
fn allocators() -> std::sync::MutexGuard<'static, Vec<Weak<Allocator>>> {
    static ALL: Mutex<Vec<Weak<Allocator>>> = Mutex::new(Vec::new());
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns to the devices what pools keep and nothing uses.
pub(super) fn clear_pools() {
    for allocator in allocators().iter().filter_map(Weak::upgrade) {
        allocator.clear();
    }
}

/// Takes memory of one device and returns it. A machine has one of its own for each device, so memory goes back when
/// the last user of the machine's memory goes. (Released runtimes share one in the process and keep it until a caller clears
/// it.)
pub(super) struct Allocator {
    device: Device,
    api: &'static dyn DeviceApi,
    pool: Option<Mutex<HashMap<usize, Vec<Space>>>>,
}

impl Allocator {
    fn free_lists(&self) -> Option<std::sync::MutexGuard<'_, HashMap<usize, Vec<Space>>>> {
        let pool = self.pool.as_ref()?;
        Some(pool.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Memory of at least `nbytes` in the flat scope; how much it is.
    fn take(&self, nbytes: usize, hint: Dtype) -> Result<(Space, usize), Fault> {
        let Some(mut lists) = self.free_lists() else {
            return Ok((self.ask_device(nbytes, hint)?, nbytes));
        };
        let nbytes = nbytes.checked_next_multiple_of(PAGE).unwrap_or(usize::MAX);
        if let Some(space) = lists.get_mut(&nbytes).and_then(Vec::pop) {
            return Ok((space, nbytes));
        }
        drop(lists);
        match self.ask_device(nbytes, hint) {
            Ok(space) => Ok((space, nbytes)),
            Err(_) => {
                // The pool may hold enough of other sizes.
                self.clear();
                Ok((self.ask_device(nbytes, hint)?, nbytes))
            }
        }
    }

    fn ask_device(&self, nbytes: usize, hint: Dtype) -> Result<Space, Fault> {
        Ok(self.api.alloc(self.device, nbytes, ALIGNMENT, hint)?)
    }

    fn give(&self, space: Space, nbytes: usize, pooled: bool) {
        if pooled && let Some(mut lists) = self.free_lists() {
            lists.entry(nbytes).or_default().push(space);
            return;
        }
        // SAFETY: `take` got it from this device; `Storage`, which alone held it, is being dropped.
        let _ = unsafe { self.api.free(self.device, space) };
    }

    /// Gives what the pool keeps back to the device.
    fn clear(&self) {
        let Some(mut lists) = self.free_lists() else {
            return;
        };
        for space in lists.drain().flat_map(|(_, spaces)| spaces) {
            // SAFETY: `take` got it from this device; in the lists is only what `give` put there, and now it is in none.
            let _ = unsafe { self.api.free(self.device, space) };
        }
    }
}

impl Drop for Allocator {
    fn drop(&mut self) {
        self.clear();
    }
}

/// A piece of memory that tensors are cut from (`vm.Storage`). It goes back to its allocator with the last tensor.
#[repr(C)]
pub(crate) struct Storage {
    header: Header,
    space: Space,
    nbytes: usize,
    pooled: bool,
    device: Device,
    allocator: Arc<Allocator>,
}

// SAFETY: `#[repr(C)]` with the header first; the index is registered for this type alone.
unsafe impl Object for Storage {
    fn type_index() -> i32 {
        static INDEX: OnceLock<i32> = OnceLock::new();
        *INDEX.get_or_init(|| {
            crate::value::types::register("vm.Storage", index::OBJECT).unwrap_or(index::OBJECT)
        })
    }

    fn matches(type_index: i32) -> bool {
        type_index == Storage::type_index()
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        self.allocator.give(self.space, self.nbytes, self.pooled);
    }
}

unsafe extern "C-unwind" fn nothing(_: *mut Header, _: i32) {}

impl Storage {
    /// Memory for `shape` elements of `dtype` in `scope` (VM-31).
    pub(super) fn take(
        place: &Place,
        shape: &[i64],
        dtype: Dtype,
        scope: &str,
    ) -> Result<Ref<Storage>, Fault> {
        let nbytes = room(shape, dtype)?;
        let flat = matches!(scope, "" | "global");
        let (space, nbytes) = if flat {
            place.allocator.take(nbytes, dtype)?
        } else {
            let space = place
                .api
                .alloc_scoped(place.device, shape, dtype, Some(scope))?;
            (space, nbytes)
        };
        Ok(Ref::new(Storage {
            header: Header::new(index::OBJECT, nothing),
            space,
            nbytes,
            pooled: flat,
            device: place.device,
            allocator: Arc::clone(&place.allocator),
        }))
    }

    /// Whether its memory is the host's.
    pub(super) fn is_on_host(&self) -> bool {
        self.device.is_host()
    }

    /// A tensor that begins `offset` bytes into the storage and keeps it (VM-33).
    #[inline]
    pub(super) fn tensor(
        this: &Ref<Storage>,
        offset: i64,
        shape: &[i64],
        dtype: DLDataType,
    ) -> Result<Any, Fault> {
        let needed = byte_size(shape, Dtype::from(dtype), Release::LAST);
        let start = usize::try_from(offset).ok();
        let end = start
            .zip(needed)
            .and_then(|(start, needed)| start.checked_add(needed));
        let (Some(start), true) = (start, end.is_some_and(|end| end <= this.nbytes)) else {
            return Err(outside(offset, shape, dtype, this.nbytes));
        };
        // Where addresses mean something the offset goes into the address: compiled kernels want alignment there.
        let add = this.allocator.api.supports_pointer_arithmetic();
        let (data, byte_offset) = if add {
            (this.space.0.wrapping_byte_add(start), 0)
        } else {
            (this.space.0, start as u64)
        };
        let device = DLDevice::from(this.device);
        Ok(InStorage::value(
            this.clone(),
            DLTensor {
                data,
                device,
                ndim: shape.len() as i32,
                dtype,
                shape: std::ptr::null_mut(),
                strides: std::ptr::null_mut(),
                byte_offset,
            },
            shape,
        ))
    }
}

#[cold]
fn outside(offset: i64, shape: &[i64], dtype: DLDataType, nbytes: usize) -> Fault {
    let message = format!(
        "a tensor of shape {shape:?} and {} at byte {offset} does not lie inside its storage of {nbytes} bytes",
        Dtype::from(dtype)
    );
    VM_33.refused(Kind::Limit, message).into()
}

/// A tensor in storage: one block of memory, extents and strides included up to four of them.
#[repr(C)]
struct InStorage {
    header: Header,
    dl: DLTensor,
    _storage: Ref<Storage>,
    inline: [i64; 2 * INLINE],
    _more: Option<Box<[i64]>>,
}

const INLINE: usize = 4;
const _: () = assert!(std::mem::offset_of!(InStorage, dl) == 24);

// SAFETY: `#[repr(C)]` with the header first, and the description where every tensor has it.
unsafe impl Object for InStorage {
    fn type_index() -> i32 {
        index::TENSOR
    }

    fn matches(_: i32) -> bool {
        false
    }
}

impl InStorage {
    fn value(storage: Ref<Storage>, dl: DLTensor, shape: &[i64]) -> Any {
        let count = shape.len();
        let more = (count > INLINE).then(|| vec![0; 2 * count].into());
        let tensor = Ref::new(InStorage {
            header: Header::new(index::TENSOR, nothing),
            dl,
            _storage: storage,
            inline: [0; 2 * INLINE],
            _more: more,
        });
        // SAFETY: just made by `Ref::new`, and not shared yet: this reference is the only one.
        let own = unsafe { &mut *tensor.as_ptr() };
        let room: &mut [i64] = match &mut own._more {
            Some(more) => more,
            None => &mut own.inline,
        };
        let (dims, strides) = room.split_at_mut(count);
        dims.copy_from_slice(shape);
        let mut stride = 1i64;
        for (own, extent) in strides[..count].iter_mut().zip(shape).rev() {
            *own = stride;
            stride = stride.wrapping_mul(*extent);
        }
        // The object stays where it is, and so does its box.
        let first = room.as_mut_ptr();
        (own.dl.shape, own.dl.strides) = (first, first.wrapping_add(count));
        tensor.into()
    }
}

/// Bytes that any release may write to a tensor: compiled code of TVM up to 0.20 has whole bytes for each element, and that of 0.21
/// to 0.25 for each `uint1` (DEV-15).
fn room(shape: &[i64], dtype: Dtype) -> Result<usize, Fault> {
    let bytes = Packing::Each.bytes(dtype, shape);
    let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
    bytes.ok_or_else(|| {
        let message = format!("storage of shape {shape:?} has no size");
        VM_31.refused(Kind::Limit, message).into()
    })
}

/// A fresh tensor of its own on `place`, not from the pool: what lives as long as the machine.
pub(super) fn lasting(
    place: &Place,
    shape: &[i64],
    dtype: DLDataType,
    scope: &str,
) -> Result<Any, Fault> {
    let whole = room(shape, Dtype::from(dtype))?;
    let flat = matches!(scope, "" | "global");
    let space = if flat {
        place
            .api
            .alloc(place.device, whole, ALIGNMENT, Dtype::from(dtype))?
    } else {
        place
            .api
            .alloc_scoped(place.device, shape, Dtype::from(dtype), Some(scope))?
    };
    let storage = Ref::new(Storage {
        header: Header::new(index::OBJECT, nothing),
        space,
        nbytes: whole,
        pooled: false,
        device: place.device,
        allocator: Arc::clone(&place.allocator),
    });
    Storage::tensor(&storage, 0, shape, dtype)
}

/// Copies all elements, between any two devices that can, and waits for it.
///
/// # Safety
///
/// Both describe memory that is there for the call; their extents and strides are readable.
pub(super) unsafe fn copy(from: &DLTensor, to: &DLTensor) -> Result<(), Fault> {
    // SAFETY: the extents and strides of `from` are readable.
    let source = unsafe { reference(from) };
    // SAFETY: so are those of `to`.
    let target = unsafe { reference(to) };
    let busy = if source.device.kind == Device::CPU.kind {
        target.device
    } else {
        source.device
    };
    let api = Manager::global().api(busy.kind)?;
    let stream = api.current_stream(busy);
    // Either may be a tensor that another thread reads or fills.
    let _copying = crate::object::container::tensor::copying();
    // SAFETY: both describe memory that is there for the call, at the end of which the copy is done.
    unsafe { Manager::global().copy_tensor(&source, &target, stream) }?;
    Ok(api.sync(busy, stream)?)
}

/// # Safety
///
/// Extents and strides are readable for as long as the result is used.
unsafe fn reference(dl: &DLTensor) -> TensorRef<'_> {
    // SAFETY: the extents are readable.
    let shape = unsafe { dl.shape() };
    // SAFETY: so are the strides.
    let strides = unsafe { dl.strides() };
    TensorRef {
        data: Space(dl.data),
        device: dl.device.into(),
        dtype: Dtype::from(dl.dtype),
        shape,
        strides,
        byte_offset: dl.byte_offset,
    }
}

/// The kind with number `number`, or a violation of VM-30.
pub(super) fn allocator_kind(number: i64) -> Result<AllocatorKind, Fault> {
    let known = AllocatorKind::of_number(number);
    known.ok_or_else(|| {
        let message = format!("there is no allocator {number}: 1 is naive, 2 is pooled");
        VM_30.refused(Kind::Type, message).into()
    })
}
