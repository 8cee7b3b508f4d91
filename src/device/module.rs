//! Device modules: kernels of one kind. A driver loads them when a kernel is first launched.

use crate::device::error::reject;
use crate::device::launch::{Arg, ArgType, LaunchTags, Packed, WorkSizes};
use crate::device::stream::{self, current_device};
use crate::device::{DEV_59, Device, Dtype, Result, Stream};
use crate::rule::Kind;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The description of a kernel in its module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KernelDescription {
    /// The name of the kernel in the module.
    pub(crate) name: String,
    /// The types of the kernel's own arguments.
    pub(crate) arg_types: Vec<ArgType>,
    /// The launch tags, which give the meaning of the arguments that follow.
    pub(crate) tags: LaunchTags,
}

impl KernelDescription {
    /// Parses types and tags (DEV-47 to DEV-49, DEV-53).
    pub(crate) fn new<S: AsRef<str>>(
        name: &str,
        arg_types: &[Dtype],
        tags: &[S],
    ) -> Result<KernelDescription> {
        Ok(KernelDescription {
            name: name.to_owned(),
            arg_types: arg_types
                .iter()
                .map(|dtype| ArgType::from_dtype(*dtype))
                .collect::<Result<_>>()?,
            tags: LaunchTags::parse(tags)?,
        })
    }
}

/// The code of a module, for the driver that runs it.
pub(crate) trait ModuleCode: Send + Sync {
    /// Returns the device type that the code runs on.
    fn device_kind(&self) -> i32;

    /// Loads the code on device `id`. It is called once per device, at the first launch there (DEV-54).
    fn load(&self, id: i32) -> Result<Arc<dyn LoadedCode>>;

    /// Returns whether modules of this kind have a barrier of all blocks (DEV-59).
    fn has_barrier(&self) -> bool {
        false
    }
}

/// Code that is loaded on a device.
pub(crate) trait LoadedCode: Send + Sync {
    /// Queues a launch.
    ///
    /// # Safety
    ///
    /// The kernel is compiled code. Its arguments are those that it was compiled for, with memory of this device that is large
    /// enough and stays until the launch is complete. `stream` is one of this device.
    unsafe fn launch(
        &self,
        kernel: &KernelDescription,
        args: &mut Packed,
        sizes: &WorkSizes,
        stream: Stream,
    ) -> Result<()>;

    /// Queues a write of 0 to the state of the barrier of all blocks (DEV-59). The code must have a true [`ModuleCode::has_barrier`].
    fn reset_barrier(&self, stream: Stream) -> Result<()>;
}

/// A module of device code.
pub struct DeviceModule {
    /// The kind of the module: `cuda`, ...
    kind: String,
    /// The code, which a device loads at its first launch.
    code: Box<dyn ModuleCode>,
    /// The kernels, in the order of the payload.
    kernels: Vec<Arc<KernelDescription>>,
    /// The loaded code by the index of the device. Each device loads it once, even if several threads launch (DEV-54).
    loaded: Mutex<HashMap<i32, Arc<dyn LoadedCode>>>,
}

impl DeviceModule {
    /// Creates a module of `kind` with these kernels. It loads nothing yet (DEV-54).
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

    /// Returns the module's kind: `opencl`, `cuda`, `hip`, `hsaco`, `vulkan`.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Returns the names of its kernels.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.kernels.iter().map(|kernel| kernel.name.as_str())
    }

    /// Returns the kernel of this name, or `None`: an unknown name is not an error (DEV-56).
    pub fn kernel(self: &Arc<Self>, name: &str) -> Option<Kernel> {
        let of_name =
            |kernel: &Arc<KernelDescription>| (kernel.name == name).then(|| kernel.clone());
        Some(Kernel {
            module: self.clone(),
            info: self.kernels.iter().find_map(of_name)?,
        })
    }

    /// Returns whether [`DeviceModule::reset_barrier`] can succeed, which is true only for CUDA modules (DEV-59).
    pub(crate) fn has_barrier(&self) -> bool {
        self.code.has_barrier()
    }

    /// Queues a write of 0 to the module's `__tvm_global_barrier_state` (DEV-59), on this thread's current device and its stream
    /// there. Loads the code if it is not loaded yet.
    ///
    /// # Errors
    ///
    /// Returns DEV-59 if the code has no variable of this name and 32 bits, as in every module of another kind than `cuda`; the driver's
    /// error.
    pub fn reset_barrier(&self) -> Result<()> {
        if !self.has_barrier() {
            let message = format!("no kernel of a `{}` module waits for all blocks", self.kind);
            return reject(DEV_59, Kind::Missing, message);
        }
        // DEV-59: on the stream of the launch that follows, so that the kernel finds the 0 (DEV-37).
        let (id, stream) = self.current();
        self.code_on_device(id)?.reset_barrier(stream)
    }

    /// Returns this thread's current device of the module's type (DEV-55), and its stream there.
    fn current(&self) -> (i32, Stream) {
        let kind = self.code.device_kind();
        let id = current_device(kind);
        (id, stream::current(Device::new(kind, id)))
    }

    /// Returns the code on device `id`, and loads it if it is not loaded yet. The table is locked during the load, so that two
    /// threads do not load the same device twice (DEV-54). Once the code is loaded, a launch holds the lock only for the lookup.
    fn code_on_device(&self, id: i32) -> Result<Arc<dyn LoadedCode>> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(there) = loaded.get(&id) {
            return Ok(there.clone());
        }
        // DEV-54: a failure leaves no entry, so the next launch loads again.
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
    /// The module, whose code stays loaded as long as the kernel exists.
    module: Arc<DeviceModule>,
    /// The types and tags, shared with the module.
    info: Arc<KernelDescription>,
}

debug_fields!(Kernel: info);

impl Kernel {
    /// Returns the description of the kernel.
    pub(crate) fn info(&self) -> &KernelDescription {
        &self.info
    }

    /// Returns the number of arguments of a call: the kernel's own and those of the launch.
    pub fn arity(&self) -> usize {
        self.info.arg_types.len() + self.info.tags.arguments()
    }

    /// Queues the kernel on this thread's current device of its type (DEV-55), on this thread's stream there.
    ///
    /// # Errors
    ///
    /// Returns DEV-47 and DEV-53 for arguments that do not match the kernel's types; the driver's error.
    ///
    /// # Safety
    ///
    /// The kernel is compiled code. Its arguments are those that it was compiled for, with memory of that device that is large
    /// enough and stays until the launch is complete.
    pub unsafe fn call(&self, args: &[Arg]) -> Result<()> {
        // `Packed::new` rejects too few arguments (DEV-53); the split must not panic on them.
        let own = self.info.arg_types.len().min(args.len());
        let (own, launch) = args.split_at(own);
        let launch: Vec<i64> = launch
            .iter()
            .map(|arg| match arg {
                Arg::Int(value) => *value,
                // DEV-47: upstream reads the 64 bits of an extent as an integer, also if they are a float. Here a float is
                // converted.
                Arg::Float(value) => *value as i64,
                Arg::Handle(value) => *value as i64,
            })
            .collect();
        let mut packed = Packed::new(&self.info.arg_types, own)?;
        let sizes = self.info.tags.sizes(&launch)?;
        // DEV-54: arguments are checked first, so that a wrong call loads no driver.
        let (id, stream) = self.module.current();
        let code = self.module.code_on_device(id)?;
        // SAFETY: the caller keeps the requirements of this function; `stream::set` lets only a stream of this type of device
        // become this thread's.
        unsafe { code.launch(&self.info, &mut packed, &sizes, stream) }
    }
}
