//! What a call of a kernel means: which arguments are the kernel's, which are its launch, and how both reach a driver.
//!
//! A kernel is called with its own arguments in the order of its types, then one integer per launch tag that carries one,
//! then the bytes of dynamic shared memory if it uses any.

use crate::device::error::reject;
use crate::device::{DEV_47, DEV_48, DEV_49, DEV_51, DEV_53, Dtype, Result};
use crate::rule::Kind;
use std::ffi::c_void;

/// An argument of a kernel, before it is packed. These are all: kernels take integers, floats and handles (DEV-53).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arg {
    /// Any integer or bool.
    Int(i64),
    /// Any float.
    Float(f64),
    /// Memory of the device, or another pointer.
    Handle(*mut c_void),
}

// SAFETY: a handle is a number: only a kernel that is launched, which is `unsafe`, follows it.
unsafe impl Send for Arg {}
// SAFETY: a handle is a number: only a kernel that is launched, which is `unsafe`, follows it.
unsafe impl Sync for Arg {}

/// Threads, blocks and the rest of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WorkSizes {
    /// Blocks per axis.
    pub(crate) grid: [usize; 3],
    /// Threads of a block per axis.
    pub(crate) block: [usize; 3],
    /// Blocks of a cluster per axis (0.25 on).
    pub(crate) cluster: [usize; 3],
    /// Bytes of dynamic shared memory.
    pub(crate) shared: usize,
    /// All blocks run at once and may wait for each other.
    pub(crate) cooperative: bool,
    /// The kernel may start before the one in front of it is done.
    pub(crate) programmatic: bool,
    /// Axes in use: the highest with a tag, one at least.
    pub(crate) dimensions: u32,
}

impl WorkSizes {
    /// Blocks per axis for drivers that take 32 bits; an extent beyond that is one that they reject.
    #[cfg(any(feature = "cuda", feature = "hip", feature = "vulkan"))]
    pub(crate) fn grid_u32(&self) -> [u32; 3] {
        self.grid.map(extent_u32)
    }

    /// Threads per axis, as [`WorkSizes::grid_u32`].
    #[cfg(any(feature = "cuda", feature = "hip"))]
    pub(crate) fn block_u32(&self) -> [u32; 3] {
        self.block.map(extent_u32)
    }

    /// Bytes of dynamic shared memory, as [`WorkSizes::grid_u32`].
    #[cfg(any(feature = "cuda", feature = "hip"))]
    pub(crate) fn shared_u32(&self) -> u32 {
        extent_u32(self.shared)
    }
}

/// `extent`, or the largest number of 32 bits, which no driver launches: it is the driver that rejects it, as upstream (DEV-47).
#[cfg(any(feature = "cuda", feature = "hip", feature = "vulkan"))]
fn extent_u32(extent: usize) -> u32 {
    u32::try_from(extent).unwrap_or(u32::MAX)
}

/// What a launch tag means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tag {
    /// `blockIdx`: blocks along an axis.
    Grid(usize),
    /// `threadIdx`: threads of a block along an axis.
    Block(usize),
    /// `clusterCtaIdx`: blocks of a cluster along an axis.
    Cluster(usize),
    /// Carries an argument that no device needs: virtual threads, the preferred cluster.
    Ignored,
    /// Carries bytes of dynamic shared memory (DEV-48).
    Shared,
    /// Carries no argument: see [`WorkSizes::cooperative`].
    Cooperative,
    /// Carries no argument: see [`WorkSizes::programmatic`].
    Programmatic,
}

/// The launch tags of a kernel, in the order of their arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LaunchTags {
    tags: Vec<Tag>,
}

impl LaunchTags {
    /// Reads the tags of a function (DEV-47 to DEV-49).
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

    /// How many arguments behind the kernel's own belong to the launch.
    pub(crate) fn arguments(&self) -> usize {
        self.with_argument().count()
    }

    /// The launch of these arguments (DEV-47): a missing axis is 1, and so is 0 or less.
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
            // DEV-47: 0 and less are 1, since 0.8. What is too large for the machine is for the driver to reject, as upstream.
            let extent = usize::try_from(argument.max(1)).unwrap_or(usize::MAX);
            match *tag {
                Tag::Grid(axis) => sizes.grid[axis] = extent,
                Tag::Block(axis) => sizes.block[axis] = extent,
                Tag::Cluster(axis) => sizes.cluster[axis] = extent,
                Tag::Shared => {
                    // DEV-48: the argument and not `extent`: no shared memory is none, and less is an error.
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

    /// The tags that take an integer each from the call.
    fn with_argument(&self) -> impl Iterator<Item = &Tag> {
        self.tags.iter().filter(|tag| tag.carries_argument())
    }
}

impl Tag {
    fn carries_argument(self) -> bool {
        !matches!(self, Tag::Cooperative | Tag::Programmatic)
    }
}

/// The tag of an axis.
type OfAxis = fn(usize) -> Tag;

/// What is in front of the name of an axis.
const SCOPES: [(&str, OfAxis); 4] = [
    ("blockIdx.", Tag::Grid),
    ("threadIdx.", Tag::Block),
    ("clusterCtaIdx.", Tag::Cluster),
    ("preferredClusterCtaIdx.", |_| Tag::Ignored),
];

/// One tag; `tir.` became `tirx.` in 0.24, and "programtic" is how it is spelled.
fn parse_tag(text: &str) -> Result<Tag> {
    // DEV-49: the whole text counts. Upstream looks at one letter, and takes `blockIdx.x.y` for `blockIdx.x`.
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
    // DEV-49: upstream's slot of a virtual thread is that of `blockIdx.z`; here its argument goes nowhere.
    if text.starts_with("vthread") || text == "cthread" {
        return Ok(Tag::Ignored);
    }
    reject(
        DEV_49,
        Kind::UnknownKind,
        format!("Unknown threadscope {text}"),
    )
}

/// How an argument is converted before it is packed.
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
    /// The types that a kernel can take (DEV-53).
    pub(crate) fn of(dtype: Dtype) -> Result<ArgType> {
        DEV_53.demand(Kind::Unsupported, dtype.lanes == 1, || {
            "Cannot pass vector type argument to device function for now".into()
        })?;
        Ok(match (dtype.code, dtype.bits) {
            (Dtype::INT, 64) => ArgType::Int64,
            (Dtype::INT, 32) => ArgType::Int32,
            (Dtype::UINT, 32) => ArgType::Uint32,
            (Dtype::FLOAT, 64) => ArgType::Float64,
            (Dtype::FLOAT, 32) => ArgType::Float32,
            // DEV-53: whatever its bits are: upstream looks at the class of a handle alone.
            (Dtype::HANDLE, _) => ArgType::Handle,
            (code, bits) => {
                let message = format!(
                    "Cannot handle dtype of code {code} with {bits} bits as device function argument"
                );
                return reject(DEV_53, Kind::Unsupported, message);
            }
        })
    }

    /// Bytes that it takes.
    #[cfg_attr(not(feature = "suite"), allow(dead_code))]
    pub(crate) fn nbytes(self) -> usize {
        match self {
            ArgType::Int32 | ArgType::Uint32 | ArgType::Float32 => 4,
            ArgType::Int64 | ArgType::Float64 | ArgType::Handle => 8,
        }
    }

    /// The bytes of `arg` as this type, in the order of the host; the first [`ArgType::nbytes`] count (DEV-50).
    fn bytes(self, arg: Arg) -> Result<[u8; 8]> {
        let mut slot = [0; 8];
        match (self, arg) {
            (ArgType::Int64, Arg::Int(value)) => slot = value.to_ne_bytes(),
            (ArgType::Int32 | ArgType::Uint32, Arg::Int(value)) => {
                // DEV-50: the low half, whatever the upper one holds.
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

/// Arguments one by one, for drivers that want an address or a slice each (CUDA, OpenCL) (DEV-50).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packed {
    /// Eight bytes for each argument, those behind its type's size zero.
    slots: Vec<[u8; 8]>,
    /// What each is, which says how many of its bytes count.
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

    /// The bytes of each argument.
    #[cfg_attr(not(feature = "suite"), allow(dead_code))]
    pub(crate) fn values(&self) -> impl Iterator<Item = (ArgType, &[u8])> {
        self.slots
            .iter()
            .zip(&self.types)
            .map(|(slot, of)| (*of, slot.get(..of.nbytes()).unwrap_or(slot)))
    }

    /// The address of each argument, valid while `self` is neither moved into nor changed.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    pub(crate) fn addresses(&mut self) -> Vec<*mut c_void> {
        self.slots
            .iter_mut()
            .map(|slot| slot.as_mut_ptr().cast())
            .collect()
    }

    /// The leading handles as numbers, and every scalar behind them in a slot of `width` bytes (Vulkan, Metal) (DEV-51).
    ///
    /// A slot had 4 bytes up to 0.7, so that nothing of 64 bits could be passed; since 0.8 it has 8.
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

    /// All arguments in one block (ROCm): up to 0.15 one behind the other, since 0.16 each at its own alignment (DEV-52).
    #[cfg_attr(not(any(feature = "suite", feature = "hip")), allow(dead_code))]
    pub(crate) fn block(&self, aligned: bool) -> Vec<u8> {
        let mut block = Vec::new();
        for (of, bytes) in self.values() {
            if aligned {
                // DEV-52: the gap is in front of an argument, so that nothing follows the last one.
                block.resize(block.len().next_multiple_of(of.nbytes()), 0);
            }
            block.extend_from_slice(bytes);
        }
        block
    }
}
