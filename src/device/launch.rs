//! The meaning of a kernel call: the arguments of the kernel, the arguments of its launch, and how both are passed to a driver.
//!
//! A call passes the kernel's own arguments in the order of their types. One integer for each launch tag that takes an argument
//! follows. The bytes of dynamic shared memory come last, if the kernel uses any.

use crate::device::error::reject;
use crate::device::{DEV_47, DEV_48, DEV_49, DEV_51, DEV_53, Dtype, Result};
use crate::rule::Kind;
use std::ffi::c_void;

/// An argument of a kernel, before it is packed. Kernels take only integers, floats and handles (DEV-53).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arg {
    /// An integer of any width, or a bool.
    Int(i64),
    /// A float of any width.
    Float(f64),
    /// Memory of the device, or another pointer.
    Handle(*mut c_void),
}

// SAFETY: a handle is a number: only a kernel that is launched, which is `unsafe`, dereferences it.
unsafe impl Send for Arg {}
// SAFETY: a handle is a number: only a kernel that is launched, which is `unsafe`, dereferences it.
unsafe impl Sync for Arg {}

/// The sizes and options of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WorkSizes {
    /// The blocks per axis.
    pub(crate) grid: [usize; 3],
    /// The threads of a block per axis.
    pub(crate) block: [usize; 3],
    /// The blocks of a cluster per axis (0.25 on).
    pub(crate) cluster: [usize; 3],
    /// The bytes of dynamic shared memory.
    pub(crate) shared: usize,
    /// True if all blocks run at once and may wait for each other.
    pub(crate) cooperative: bool,
    /// True if the kernel may start before the previous one has ended.
    pub(crate) programmatic: bool,
    /// The number of axes in use: the highest axis with a tag, at least one.
    pub(crate) dimensions: u32,
}

impl WorkSizes {
    /// Returns the blocks per axis for drivers with 32-bit extents. A larger extent becomes one that the driver rejects.
    #[cfg(any(feature = "cuda", feature = "hip", feature = "vulkan"))]
    pub(crate) fn grid_u32(&self) -> [u32; 3] {
        self.grid.map(extent_u32)
    }

    /// Returns the threads per axis, as [`WorkSizes::grid_u32`] does.
    #[cfg(any(feature = "cuda", feature = "hip"))]
    pub(crate) fn block_u32(&self) -> [u32; 3] {
        self.block.map(extent_u32)
    }

    /// Returns the bytes of dynamic shared memory, as [`WorkSizes::grid_u32`] does.
    #[cfg(any(feature = "cuda", feature = "hip"))]
    pub(crate) fn shared_u32(&self) -> u32 {
        extent_u32(self.shared)
    }
}

/// Returns `extent`, or the largest 32-bit number if `extent` is too large. The driver then rejects it, as upstream (DEV-47).
#[cfg(any(feature = "cuda", feature = "hip", feature = "vulkan"))]
fn extent_u32(extent: usize) -> u32 {
    u32::try_from(extent).unwrap_or(u32::MAX)
}

/// The meaning of a launch tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tag {
    /// `blockIdx`: the blocks along an axis.
    Grid(usize),
    /// `threadIdx`: the threads of a block along an axis.
    Block(usize),
    /// `clusterCtaIdx`: the blocks of a cluster along an axis.
    Cluster(usize),
    /// A tag with an argument that no device needs: virtual threads, the preferred cluster.
    Ignored,
    /// The tag whose argument is the bytes of dynamic shared memory (DEV-48).
    Shared,
    /// A tag without an argument, see [`WorkSizes::cooperative`].
    Cooperative,
    /// A tag without an argument, see [`WorkSizes::programmatic`].
    Programmatic,
}

/// The launch tags of a kernel, in the order of their arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LaunchTags {
    tags: Vec<Tag>,
}

impl LaunchTags {
    /// Parses the tags of a function (DEV-47 to DEV-49).
    pub(crate) fn parse<S: AsRef<str>>(tags: &[S]) -> Result<LaunchTags> {
        let mut parsed = Vec::with_capacity(tags.len());
        for (at, tag) in tags.iter().enumerate() {
            let tag = parse_tag(tag.as_ref())?;
            let in_place = tag != Tag::Shared || at + 1 == tags.len();
            DEV_48.demand(Kind::Malformed, in_place, || {
                "kUseDynamicSharedMemoryTag should be the last tag in launch_param_tags.".into()
            })?;
            parsed.push(tag);
        }
        Ok(LaunchTags { tags: parsed })
    }

    /// Returns the number of launch arguments, which follow the kernel's own arguments.
    pub(crate) fn arguments(&self) -> usize {
        self.with_argument().count()
    }

    /// Returns the launch that these arguments describe (DEV-47). A missing axis is 1, and an extent of 0 or less also counts as 1.
    pub(crate) fn sizes(&self, arguments: &[i64]) -> Result<WorkSizes> {
        let wanted = self.arguments();
        DEV_47.demand(Kind::Type, arguments.len() == wanted, || {
            format!(
                "a launch with {} arguments, the tags ask for {wanted}",
                arguments.len()
            )
        })?;
        let mut sizes = WorkSizes {
            cooperative: self.tags.contains(&Tag::Cooperative),
            programmatic: self.tags.contains(&Tag::Programmatic),
            grid: [1; 3],
            block: [1; 3],
            cluster: [1; 3],
            shared: 0,
            dimensions: 1,
        };
        for (tag, &argument) in self.with_argument().zip(arguments) {
            // DEV-47: since 0.8, 0 and less count as 1. The driver rejects extents that are too large for the machine, as upstream.
            let extent = usize::try_from(argument.max(1)).unwrap_or(usize::MAX);
            match *tag {
                Tag::Grid(axis) => sizes.grid[axis] = extent,
                Tag::Block(axis) => sizes.block[axis] = extent,
                Tag::Cluster(axis) => sizes.cluster[axis] = extent,
                Tag::Shared => {
                    // DEV-48: uses the argument, not `extent`: 0 means no shared memory, and a negative number is an error.
                    let rejected = || {
                        let message = format!("{argument} bytes of shared memory");
                        DEV_48.rejected(Kind::Type, message)
                    };
                    sizes.shared = usize::try_from(argument).map_err(|_| rejected())?;
                }
                Tag::Ignored | Tag::Cooperative | Tag::Programmatic => {}
            }
            // DEV-47: OpenCL's axes are those of the grid and the block; a cluster adds none.
            if let Tag::Grid(axis) | Tag::Block(axis) = *tag {
                sizes.dimensions = sizes.dimensions.max(axis as u32 + 1);
            }
        }
        Ok(sizes)
    }

    /// Returns the tags that take one integer each from the call.
    fn with_argument(&self) -> impl Iterator<Item = &Tag> {
        self.tags.iter().filter(|tag| tag.carries_argument())
    }
}

impl Tag {
    fn carries_argument(self) -> bool {
        !matches!(self, Tag::Cooperative | Tag::Programmatic)
    }
}

/// A function that returns the tag of an axis.
type OfAxis = fn(usize) -> Tag;

/// The prefixes of axis names, with their tags.
const SCOPES: [(&str, OfAxis); 4] = [
    ("blockIdx.", Tag::Grid),
    ("threadIdx.", Tag::Block),
    ("clusterCtaIdx.", Tag::Cluster),
    ("preferredClusterCtaIdx.", |_| Tag::Ignored),
];

/// Parses one tag. `tir.` became `tirx.` in 0.24; "programtic" is upstream's spelling.
fn parse_tag(text: &str) -> Result<Tag> {
    // DEV-49: the whole text is compared. Upstream reads only one letter, and treats `blockIdx.x.y` as `blockIdx.x`.
    for (scope, of) in SCOPES {
        match text.strip_prefix(scope) {
            Some("x") => return Ok(of(0)),
            Some("y") => return Ok(of(1)),
            Some("z") => return Ok(of(2)),
            _ => {}
        }
    }
    let name = text.strip_prefix("tir.");
    match name.or_else(|| text.strip_prefix("tirx.")) {
        Some("use_dyn_shared_memory") => return Ok(Tag::Shared),
        Some("use_programtic_dependent_launch") => return Ok(Tag::Programmatic),
        Some("use_cooperative_launch") => return Ok(Tag::Cooperative),
        _ => {}
    }
    // DEV-49: upstream stores the extent of a virtual thread as that of `blockIdx.z`. This crate ignores it.
    if text.starts_with("vthread") || text == "cthread" {
        return Ok(Tag::Ignored);
    }
    reject(
        DEV_49,
        Kind::UnknownKind,
        format!("Unknown threadscope {text}"),
    )
}

/// The conversion of an argument before it is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArgType {
    /// 8 bytes, unchanged.
    Int64,
    /// 4 bytes; wider values wrap.
    Int32,
    /// 4 bytes; wider values wrap.
    Uint32,
    /// 8 bytes, unchanged.
    Float64,
    /// 4 bytes; rounded.
    Float32,
    /// A pointer.
    Handle,
}

impl ArgType {
    /// Returns the conversion for a type that a kernel can take (DEV-53).
    pub(crate) fn from_dtype(dtype: Dtype) -> Result<ArgType> {
        DEV_53.demand(Kind::Unsupported, dtype.lanes == 1, || {
            "Cannot pass vector type argument to device function for now".into()
        })?;
        Ok(match (dtype.code, dtype.bits) {
            (Dtype::INT, 64) => ArgType::Int64,
            (Dtype::INT, 32) => ArgType::Int32,
            (Dtype::UINT, 32) => ArgType::Uint32,
            (Dtype::FLOAT, 64) => ArgType::Float64,
            (Dtype::FLOAT, 32) => ArgType::Float32,
            // DEV-53: the bits of a handle do not matter, because upstream checks only its class.
            (Dtype::HANDLE, _) => ArgType::Handle,
            (code, bits) => {
                let message = format!(
                    "Cannot handle dtype of code {code} with {bits} bits as device function argument"
                );
                return reject(DEV_53, Kind::Unsupported, message);
            }
        })
    }

    /// Returns the size in bytes.
    #[cfg_attr(not(feature = "suite"), allow(dead_code))]
    pub(crate) fn nbytes(self) -> usize {
        match self {
            ArgType::Int32 | ArgType::Uint32 | ArgType::Float32 => 4,
            ArgType::Int64 | ArgType::Float64 | ArgType::Handle => 8,
        }
    }

    /// Returns the bytes of `arg` as this type, in the host's byte order. Only the first [`ArgType::nbytes`] are valid (DEV-50).
    fn bytes(self, arg: Arg) -> Result<[u8; 8]> {
        let mut slot = [0; 8];
        match (self, arg) {
            (ArgType::Int64, Arg::Int(value)) => slot = value.to_ne_bytes(),
            (ArgType::Int32 | ArgType::Uint32, Arg::Int(value)) => {
                // DEV-50: the lower half is taken, and the upper half is ignored.
                slot[..4].copy_from_slice(&(value as i32).to_ne_bytes());
            }
            (ArgType::Float64, Arg::Float(value)) => slot = value.to_ne_bytes(),
            // DEV-50: an integer for a float is converted; a float for an integer is rejected below.
            (ArgType::Float64, Arg::Int(value)) => slot = (value as f64).to_ne_bytes(),
            (ArgType::Float32, Arg::Float(value)) => {
                slot[..4].copy_from_slice(&(value as f32).to_ne_bytes())
            }
            (ArgType::Float32, Arg::Int(value)) => {
                slot[..4].copy_from_slice(&(value as f32).to_ne_bytes())
            }
            (ArgType::Handle, Arg::Handle(value)) => slot = (value as u64).to_ne_bytes(),
            (wanted, arg) => {
                return reject(
                    DEV_53,
                    Kind::Type,
                    format!("{arg:?} where the kernel takes {wanted:?}"),
                );
            }
        }
        Ok(slot)
    }
}

/// Separate arguments, for drivers that want an address or a slice for each (CUDA, OpenCL) (DEV-50).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packed {
    /// Eight bytes for each argument. The bytes after the size of its type are zero.
    slots: Vec<[u8; 8]>,
    /// The type of each argument, which determines the number of valid bytes.
    types: Vec<ArgType>,
}

impl Packed {
    /// Converts every argument to its type.
    pub(crate) fn new(types: &[ArgType], args: &[Arg]) -> Result<Packed> {
        if types.len() != args.len() {
            return reject(
                DEV_53,
                Kind::Type,
                format!(
                    "the kernel takes {} arguments, the call has {}",
                    types.len(),
                    args.len()
                ),
            );
        }
        let slots = types
            .iter()
            .zip(args)
            .map(|(of, arg)| of.bytes(*arg))
            .collect::<Result<_>>()?;
        Ok(Packed {
            slots,
            types: types.to_vec(),
        })
    }

    /// Returns the bytes of each argument.
    #[cfg_attr(not(feature = "suite"), allow(dead_code))]
    pub(crate) fn values(&self) -> impl Iterator<Item = (ArgType, &[u8])> {
        self.slots
            .iter()
            .zip(&self.types)
            .map(|(slot, of)| (*of, slot.get(..of.nbytes()).unwrap_or(slot)))
    }

    /// Returns the address of each argument, valid until `self` is moved or changed.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    pub(crate) fn addresses(&mut self) -> Vec<*mut c_void> {
        self.slots
            .iter_mut()
            .map(|slot| slot.as_mut_ptr().cast())
            .collect()
    }

    /// Returns the leading handles as numbers, and every scalar after them in a slot of `width` bytes (Vulkan, Metal) (DEV-51).
    ///
    /// A slot had 4 bytes up to 0.7, so that no 64-bit value could be passed. Since 0.8 it has 8 bytes.
    #[cfg_attr(not(feature = "suite"), allow(dead_code))]
    pub(crate) fn buffers_and_scalars(&self, width: usize) -> Result<(Vec<u64>, Vec<u8>)> {
        let buffers = self
            .types
            .iter()
            .take_while(|of| **of == ArgType::Handle)
            .count();
        let handles = self
            .slots
            .iter()
            .take(buffers)
            .map(|slot| u64::from_ne_bytes(*slot))
            .collect();
        let mut scalars = Vec::new();
        for (slot, of) in self.slots.iter().zip(&self.types).skip(buffers) {
            DEV_51.demand(Kind::Type, *of != ArgType::Handle, || {
                "Device function need to be organized: a handle follows a scalar".into()
            })?;
            DEV_51.demand(Kind::Unsupported, of.nbytes() <= width, || {
                "Donot support 64bit argument to device function".into()
            })?;
            // DEV-51: the rest of a slot is zero.
            scalars.extend_from_slice(slot.get(..width).unwrap_or(slot));
        }
        Ok((handles, scalars))
    }

    /// Returns all arguments in one block (ROCm). Up to 0.15 they were packed without gaps; since 0.16 each one is aligned
    /// (DEV-52).
    #[cfg_attr(not(any(feature = "suite", feature = "hip")), allow(dead_code))]
    pub(crate) fn block(&self, aligned: bool) -> Vec<u8> {
        let mut block = Vec::new();
        for (of, bytes) in self.values() {
            if aligned {
                // DEV-52: padding only precedes an argument, so no padding follows the last one.
                block.resize(block.len().next_multiple_of(of.nbytes()), 0);
            }
            block.extend_from_slice(bytes);
        }
        block
    }
}
