//! Device modules: kernels of one kind, loaded by a driver when one is first launched.

use crate::device::error::reject;
use crate::device::launch::{Arg, ArgType, LaunchTags, Packed, WorkSizes};
use crate::device::stream::{self, current_device};
use crate::device::{DEV_59, Device, Dtype, Result, Stream};
use crate::rule::Kind;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A kernel as its module describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KernelDescription {
    /// The name under which the module finds it.
    pub(crate) name: String,
    /// Types of its own arguments.
    pub(crate) arg_types: Vec<ArgType>,
    /// What the arguments behind them mean.
    pub(crate) tags: LaunchTags,
}

impl KernelDescription {
    /// Reads types and tags (DEV-47 to DEV-49, DEV-53).
    pub(crate) fn new<S: AsRef<str>>(
        name: &str,
        arg_types: &[Dtype],
        tags: &[S],
    ) -> Result<KernelDescription> {
        Ok(KernelDescription {
            name: name.to_owned(),
            arg_types: arg_types
                .iter()
                .map(|dtype| ArgType::of(*dtype))
                .collect::<Result<_>>()?,
            tags: LaunchTags::parse(tags)?,
        })
    }
}

/// The code of a module, for the driver that runs it.
pub(crate) trait ModuleCode: Send + Sync {
    /// The device type that it launches on.
    fn device_kind(&self) -> i32;

    /// Loads the code on device `id`: called once per device, at the first launch there (DEV-54).
    fn load(&self, id: i32) -> Result<Arc<dyn LoadedCode>>;

    /// Whether modules of this kind have a barrier of all blocks (DEV-59).
    fn has_barrier(&self) -> bool {
        false
    }
}

/// Code that is on a device.
pub(crate) trait LoadedCode: Send + Sync {
    /// Queues a launch.
    ///
    /// # Safety
    ///
    /// The kernel is compiled code: its arguments are those that it was compiled for, with memory of this device that is large enough and
    /// stays until the launch is done. `stream` is one of this device.
    unsafe fn launch(
        &self,
        kernel: &KernelDescription,
        args: &mut Packed,
        sizes: &WorkSizes,
        stream: Stream,
    ) -> Result<()>;

    /// Queues the write of 0 to the state of the barrier of all blocks (DEV-59), in code whose [`ModuleCode::has_barrier`] is true.
    fn reset_barrier(&self, stream: Stream) -> Result<()>;
}

/// A module of device code.
pub struct DeviceModule {
    /// What the module chapter calls it: `cuda`, ...
    kind: String,
    /// What a device loads at its first launch.
    code: Box<dyn ModuleCode>,
    /// In the order of the payload.
    kernels: Vec<Arc<KernelDescription>>,
    /// By the index of the device: each loads once, whichever thread comes first (DEV-54).
    loaded: Mutex<HashMap<i32, Arc<dyn LoadedCode>>>,
}

impl DeviceModule {
    /// A module of `kind` with these kernels. Nothing is loaded yet (DEV-54).
    pub(crate) fn new(
        kind: &str,
        code: Box<dyn ModuleCode>,
        kernels: Vec<KernelDescription>,
    ) -> Arc<DeviceModule> {
        Arc::new(DeviceModule {
            kind: kind.to_owned(),
            code,
            kernels: kernels.into_iter().map(Arc::new).collect(),
            loaded: Mutex::default(),
        })
    }

    /// The module's kind: `opencl`, `cuda`, `hip`, `hsaco`, `vulkan`.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Names of its kernels.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.kernels.iter().map(|kernel| kernel.name.as_str())
    }

    /// The kernel of this name; a name that the module does not have is no error (DEV-56).
    pub fn kernel(self: &Arc<Self>, name: &str) -> Option<Kernel> {
        let of_name =
            |kernel: &Arc<KernelDescription>| (kernel.name == name).then(|| kernel.clone());
        Some(Kernel {
            module: self.clone(),
            info: self.kernels.iter().find_map(of_name)?,
        })
    }

    /// Whether [`DeviceModule::reset_barrier`] can succeed: for modules of CUDA alone (DEV-59).
    pub(crate) fn has_barrier(&self) -> bool {
        self.code.has_barrier()
    }

    /// Queues the write of 0 to the module's `__tvm_global_barrier_state` (DEV-59), on this thread's current device and its stream there. The
    /// code is loaded if it never was.
    ///
    /// # Errors
    ///
    /// DEV-59, missing, where the code has no variable of this name and 32 bits; DEV-59, unsupported, for a module of another kind than
    /// `cuda`; what the driver returns.
    pub fn reset_barrier(&self) -> Result<()> {
        if !self.has_barrier() {
            let message = format!("no kernel of a `{}` module waits for all blocks", self.kind);
            return reject(DEV_59, Kind::Unsupported, message);
        }
        // DEV-59: on the stream of the launch that follows, so that the kernel finds the 0 (DEV-37).
        let (id, stream) = self.current();
        self.on(id)?.reset_barrier(stream)
    }

    /// This thread's current device of the module's type (DEV-55), and its stream there.
    fn current(&self) -> (i32, Stream) {
        let kind = self.code.device_kind();
        let id = current_device(kind);
        (id, stream::current(Device::new(kind, id)))
    }

    /// The code on device `id`, loaded now if it never was. The table is locked meanwhile, so that two threads do not load the same
    /// device twice (DEV-54); once loaded, a launch holds it for the look alone.
    fn on(&self, id: i32) -> Result<Arc<dyn LoadedCode>> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(there) = loaded.get(&id) {
            return Ok(there.clone());
        }
        // DEV-54: a failure leaves no entry behind: the next launch loads again.
        let there = self.code.load(id)?;
        loaded.insert(id, there.clone());
        Ok(there)
    }
}

impl fmt::Debug for DeviceModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceModule")
            .field("kind", &self.kind)
            .field("kernels", &self.names().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// A kernel that can be called. It keeps its module alive.
#[derive(Clone)]
pub struct Kernel {
    /// Keeps the code loaded.
    module: Arc<DeviceModule>,
    /// Types and tags, shared with the module.
    info: Arc<KernelDescription>,
}

impl Kernel {
    /// What it takes.
    pub(crate) fn info(&self) -> &KernelDescription {
        &self.info
    }

    /// How many arguments a call has: the kernel's own and those of the launch.
    pub fn arity(&self) -> usize {
        self.info.arg_types.len() + self.info.tags.arguments()
    }

    /// Queues the kernel on this thread's current device of its type (DEV-55), on this thread's stream there.
    ///
    /// # Errors
    ///
    /// DEV-47 and DEV-53 for arguments that are not of the kernel's types; what the driver returns.
    ///
    /// # Safety
    ///
    /// The kernel is compiled code: its arguments are those that it was compiled for, with memory of that device that is large enough and
    /// stays until the launch is done.
    pub unsafe fn call(&self, args: &[Arg]) -> Result<()> {
        // Too few arguments are for `Packed::new` to reject (DEV-53); the split must not panic on them.
        let own = self.info.arg_types.len().min(args.len());
        let (own, launch) = args.split_at(own);
        let launch: Vec<i64> = launch
            .iter()
            .map(|arg| match arg {
                Arg::Int(value) => *value,
                // DEV-47: upstream reads the 64 bits of an extent as an integer, whatever class they have; a float here is converted.
                Arg::Float(value) => *value as i64,
                Arg::Handle(value) => *value as i64,
            })
            .collect();
        let mut packed = Packed::new(&self.info.arg_types, own)?;
        let sizes = self.info.tags.sizes(&launch)?;
        // DEV-54: arguments are checked first, so that a call that is wrong loads no driver.
        let (id, stream) = self.module.current();
        let code = self.module.on(id)?;
        // SAFETY: as for this function; `stream::set` lets only a stream of this type of device become this thread's.
        unsafe { code.launch(&self.info, &mut packed, &sizes, stream) }
    }
}
