//! A session, and access to the functions, modules, files and memory of its server.

use super::super::transport::{RpcStream, Transport};
use super::super::{RPC_23, RPC_100};
use super::device::remote_devices;
use super::hello_error::unanswered;
use super::link::{HandleKind, Link, RemoteHandle};
use super::options::{RemoteHop, SessionOptions};
use super::session_place::SessionPlace;
use super::session_start::{accepted_server_name, begin, connected, greet, shake_hands};
use super::{call_result, session_table};
use crate::device::tensor::{HostCopy, allocate, copy_bytes};
use crate::device::{
    Attribute, AttributeValue, Device, Dtype, Manager, Space, TensorRef, bring_remote,
};
use crate::function::{Error, ErrorKind, Function, IntoArgs, Result};
use crate::module::Module;
use crate::object::Tensor;
use crate::release::Release;
use crate::rule::Kind;
use crate::value::{Any, Bytes};
use std::sync::Arc;
use std::time::Instant;

/// A session with a server. Clones share it, as do its functions, modules and tensors; it ends when the last of them is dropped.
#[derive(Clone)]
pub struct Session(Arc<Link>);

impl Session {
    /// Connects to the server at `host`, whose key is `key`. Many servers have an empty key.
    ///
    /// # Errors
    ///
    /// * A ConnectionError if nothing answers there, or if no server has the key.
    /// * A TimeoutError.
    /// * RPC-100 of kind unsupported if the server is not of the stated release's era.
    /// * RPC-23 for a release before 0.7.
    /// * The errors of a hop.
    pub fn connect(host: &str, port: u16, key: &str, options: &SessionOptions) -> Result<Session> {
        Session::connect_or_probe(host, port, key, options, false)
    }

    /// Connects like [`Session::connect`]. If `may_ask`, an address that does not answer is probed for a tracker, for a better error.
    pub(super) fn connect_or_probe(
        host: &str,
        port: u16,
        key: &str,
        options: &SessionOptions,
        may_ask: bool,
    ) -> Result<Session> {
        let mut options = options.clone();
        if options.release.is_none() && !options.hops.is_empty() {
            // The names of hops are values in the encoding of an era, which a session without hops detects first.
            let plain = SessionOptions {
                hops: Vec::new(),
                ..options.clone()
            };
            let probe = Session::connect_or_probe(host, port, key, &plain, may_ask)?;
            // RPC-100: in the older era no release is stated, because the newest one has codes that the server may lack.
            options.release = (probe.0.era.is_ffi()).then_some(Release::LAST);
            let hops = std::mem::take(&mut options.hops);
            let legacy = !probe.0.era.is_ffi();
            probe.close();
            return Session::open((host, port), key, &options, hops, legacy, may_ask);
        }
        let hops = std::mem::take(&mut options.hops);
        Session::open((host, port), key, &options, hops, false, may_ask)
    }

    /// Begins a session over an existing connection, such as a pair of sockets in a test.
    ///
    /// Hops ([`SessionOptions::hops`]) need a stated release: their names are values in the encoding of an era.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Session::connect`], and RPC-100 of kind unsupported for hops without a release.
    pub fn over(
        stream: impl RpcStream + 'static,
        key: &str,
        options: &SessionOptions,
    ) -> Result<Session> {
        let is_known = options.release.is_some() || options.hops.is_empty();
        RPC_100.demand(Kind::Unsupported, is_known, || {
            "a session over servers between needs the release by whose rules they speak".to_owned()
        })?;
        let mut transport = Transport::new(stream);
        transport.set_deadline(Some(Instant::now() + options.connect_timeout));
        let server = shake_hands(&mut transport, key, options)?;
        Session::start(transport, server, options, &options.hops, false)
    }

    /// Connects over a new socket. `legacy` states that an earlier session found a server of 0.8 to 0.20.
    fn open(
        place: (&str, u16),
        key: &str,
        options: &SessionOptions,
        hops: Vec<RemoteHop>,
        legacy: bool,
        may_ask: bool,
    ) -> Result<Session> {
        let deadline = Instant::now() + options.connect_timeout;
        let socket = connected(place.0, place.1, options.connect_timeout)?;
        let mut transport = Transport::tcp(socket)?;
        transport.set_deadline(Some(deadline));
        let answer = greet(&mut transport, key, options)
            .map_err(|error| unanswered(error, place, key, options, may_ask))?;
        let server = accepted_server_name(answer, key)?;
        Session::start(transport, server, options, &hops, legacy)
    }

    /// Writes InitServer, and takes a free place in the table of sessions.
    fn start(
        mut transport: Transport,
        server: String,
        options: &SessionOptions,
        hops: &[RemoteHop],
        legacy: bool,
    ) -> Result<Session> {
        let oldest = Release::of(8);
        // RPC-22: the names of hops are values, which are written before an answer shows the encoding. An earlier session has detected it.
        let release = options
            .release
            .unwrap_or(if legacy { oldest } else { Release::LAST });
        RPC_23.demand(Kind::Unsupported, release.minor() >= 7, || {
            format!("release {release} has another protocol: this client speaks those from 0.7 on")
        })?;
        let era = begin(&mut transport, release, options.release.is_some(), hops)?;
        // DEV-03: registered with the first session, because no device of a server can be named before.
        bring_remote(remote_devices());
        // DEV-57: taken after the answer, so that a peer that is not a server takes none of the 32 numbers.
        let place = SessionPlace::take()?;
        let link = Link::new(transport, era, options.timeout, place, server);
        let link = Arc::new(link?);
        session_table::store_session(&link);
        Ok(Session(link))
    }

    /// Returns the release whose rules the session follows: the stated one, or the newest of the server's era.
    pub fn release(&self) -> Release {
        self.0.era.release
    }

    /// Returns the server's name for itself: `server:` and its key.
    pub fn server(&self) -> &str {
        &self.0.server
    }

    /// Returns the place of the session in the table of this process. The type of its device `d` is `d + 128 * (number + 1)` (DEV-57).
    pub fn number(&self) -> i32 {
        self.0.place.number()
    }

    /// Converts a device of the server to a device of this process.
    ///
    /// # Errors
    ///
    /// Returns DEV-57 for a device that is already remote.
    pub fn device(&self, there: Device) -> Result<Device> {
        self.0.masked(there)
    }

    /// Looks up the global function `name` of the server.
    ///
    /// # Errors
    ///
    /// Returns errors of the connection.
    pub fn function(&self, name: &str) -> Result<Option<Function>> {
        let handle = self.0.global(name)?;
        if handle == 0 {
            return Ok(None);
        }
        let handle = RemoteHandle::new(&self.0, handle, HandleKind::Function);
        Ok(Some(call_result::function(handle)))
    }

    /// Looks up a function like [`Session::function`], and fails if there is no such function.
    ///
    /// # Errors
    ///
    /// Returns an AttributeError if the server has no such function, and the errors of [`Session::function`].
    pub fn require(&self, name: &str) -> Result<Function> {
        self.function(name)?.ok_or_else(|| {
            let text = format!("the server has no global function `{name}`");
            Error::new(ErrorKind::Attribute, text)
        })
    }

    /// Writes a file into the directory of the session.
    ///
    /// # Errors
    ///
    /// Returns errors of the server.
    pub fn upload(&self, name: &str, content: &[u8]) -> Result<()> {
        let function = self.require("tvm.rpc.server.upload")?;
        function.call((name, Bytes::new(content)))?;
        Ok(())
    }

    /// Returns the content of a file in the directory of the session.
    ///
    /// # Errors
    ///
    /// Returns errors of the server; a TypeError for a result that is not bytes.
    pub fn download(&self, name: &str) -> Result<Vec<u8>> {
        let content = self.require("tvm.rpc.server.download")?.call((name,))?;
        match Bytes::from_any(content) {
            Ok(content) => Ok(content.as_bytes().to_vec()),
            Err(_) => Err(Error::new(ErrorKind::Type, "the server returns no bytes")),
        }
    }

    /// Removes a file from the directory of the session.
    ///
    /// # Errors
    ///
    /// Returns errors of the server; a server of 0.27 reports none for a missing file.
    pub fn remove(&self, name: &str) -> Result<()> {
        let function = self.require("tvm.rpc.server.remove")?;
        function.call((name,)).map(drop)
    }

    /// Loads an uploaded library. The server runs its code.
    ///
    /// # Errors
    ///
    /// Returns errors of the server; a TypeError for a result that is not a module.
    pub fn load_module(&self, name: &str) -> Result<Module> {
        let loaded = self.require("tvm.rpc.server.load_module")?.call((name,))?;
        Ok(Module::try_from(loaded)?)
    }

    /// Adds `child` to the imports of `parent`; both are modules of this session.
    ///
    /// # Errors
    ///
    /// Returns a TypeError for a module of another session; errors of the server.
    pub fn import(&self, parent: &Module, child: &Module) -> Result<()> {
        let import = self.require("tvm.rpc.server.ImportModule")?;
        import.call((parent.clone(), child.clone())).map(drop)
    }

    /// Allocates a tensor in memory of `device`, a device of this session or of the server. Its elements are not initialized.
    ///
    /// # Errors
    ///
    /// Returns errors of the server.
    pub fn empty(&self, shape: &[i64], dtype: Dtype, device: Device) -> Result<Tensor> {
        let device = self.0.masked(self.0.unmasked(device)?)?;
        allocate(shape, dtype, device)
    }

    /// Copies a tensor of the host to memory of `device`.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Session::empty`], and OBJ-11 for a tensor that is not on the host.
    pub fn send(&self, tensor: &Tensor, device: Device) -> Result<Tensor> {
        let bytes = tensor.to_bytes()?;
        let copy = self.empty(tensor.shape(), tensor.dl().dtype, device)?;
        // SAFETY: the memory of the tensor was just taken, and `bytes` is read for the call alone.
        unsafe {
            copy_bytes(
                &reference(&copy),
                Space::host(bytes.as_ptr()),
                bytes.len(),
                HostCopy::In,
            )
        }?;
        Ok(copy)
    }

    /// Copies a tensor of this session to the host.
    ///
    /// # Errors
    ///
    /// Returns errors of the server.
    pub fn fetch(&self, tensor: &Tensor) -> Result<Tensor> {
        fetch(tensor)
    }

    /// Returns the devices of type `kind` of the server, as devices of this process, from number 0 up to the first gap.
    ///
    /// # Errors
    ///
    /// Returns errors of the connection.
    pub fn devices(&self, kind: i32) -> Result<Vec<Device>> {
        // The CPU claims to exist for every number, so that only one is asked for.
        let most = if kind == Device::CPU.kind { 1 } else { 64 };
        let mut found = Vec::new();
        for id in 0..most {
            let device = self.0.masked(Device::new(kind, id))?;
            let exists = Manager::global().attribute(device, Attribute::Exist)?;
            if exists != AttributeValue::Int(1) {
                break;
            }
            found.push(device);
        }
        Ok(found)
    }

    /// Calls the global function `name` of the server. `args` are a tuple, an array or a slice of values.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Session::require`] and of the function.
    pub fn call(&self, name: &str, args: impl IntoArgs) -> Result<Any> {
        self.require(name)?.call(args)
    }

    /// Ends the session, even if functions and tensors of it are still in use: every later use fails. A call in progress on another thread
    /// is ended as by [`Session::cancel`], not waited for.
    pub fn close(&self) {
        self.0.close();
    }

    /// Returns the session of a connection.
    pub(super) fn of_link(link: &Arc<Link>) -> Session {
        Session(Arc::clone(link))
    }

    /// Ends the session at once, from any thread. A call in progress returns a ConnectionError without waiting for its answer, and so does
    /// every later use of the session. The server sees only the end of the connection, and may finish its computation.
    ///
    /// A session over a stream without a [duplicate](RpcStream::duplicate) ends after the call in progress.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// Returns the connection, which the handles of the session share.
    pub(super) fn link(&self) -> &Arc<Link> {
        &self.0
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Session({}, {})", self.0.place.number(), self.0.server)
    }
}

/// Copies a tensor of any session to the host.
pub(super) fn fetch(tensor: &Tensor) -> Result<Tensor> {
    let host = Tensor::empty(tensor.shape(), tensor.dl().dtype)?;
    let space = Space(host.dl().data);
    // SAFETY: the tensor holds its memory, and `host`, which nothing else knows yet, has as many bytes.
    unsafe { copy_bytes(&reference(tensor), space, host.nbytes(), HostCopy::Out) }?;
    Ok(host)
}

/// Describes a tensor for the device API.
fn reference(tensor: &Tensor) -> TensorRef<'_> {
    let dl = tensor.dl();
    TensorRef {
        data: Space(dl.data),
        device: dl.device,
        dtype: dl.dtype,
        shape: tensor.shape(),
        strides: None,
        byte_offset: dl.byte_offset,
    }
}
