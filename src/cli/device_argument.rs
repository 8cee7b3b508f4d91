//! Devices of the command line. Those of this machine are given by name, those of servers as `rpc://host:port/key#cpu:0`.
//! `rpc-tracker://host:port/key#cpu:0` requests a server from a tracker.

use super::CliError;
#[cfg(feature = "rpc")]
use super::output;
#[cfg(feature = "rpc")]
use std::cell::Cell;
use std::path::Path;
#[cfg(feature = "rpc")]
use std::sync::mpsc::RecvTimeoutError;
#[cfg(feature = "rpc")]
use std::time::{Duration, Instant};
use tvmspec::device::Device;
use tvmspec::module::Module;
#[cfg(feature = "rpc")]
use tvmspec::rpc::client::{RemoteAddress, Session};
use tvmspec::value::device_from_text;

/// The devices that a command runs on, and the session that they belong to.
pub(crate) struct Places {
    /// The devices, in the order of the command line.
    pub(crate) devices: Vec<Device>,
    #[cfg(feature = "rpc")]
    session: Option<Session>,
}

impl Places {
    /// Finds the devices that `texts` name. Devices of servers must belong to one server, which is connected to.
    pub(crate) fn resolve<T: AsRef<str>>(texts: &[T]) -> Result<Places, CliError> {
        #[cfg(feature = "rpc")]
        if texts
            .iter()
            .any(|text| RemoteAddress::is_remote(text.as_ref()))
        {
            return Places::resolve_remote(texts);
        }
        let devices = texts.iter().map(|text| local(text.as_ref()));
        Ok(Places {
            devices: devices.collect::<Result<_, CliError>>()?,
            #[cfg(feature = "rpc")]
            session: None,
        })
    }

    /// Like [`Places::resolve`], if a device of a server is among them.
    #[cfg(feature = "rpc")]
    fn resolve_remote<T: AsRef<str>>(texts: &[T]) -> Result<Places, CliError> {
        // If a device of this process is among them, its text does not parse.
        let addresses = texts.iter().map(|text| RemoteAddress::parse(text.as_ref()));
        let addresses: Vec<RemoteAddress> = addresses
            .collect::<Result<_, _>>()
            .map_err(CliError::from_library_error)?;
        let [first, rest @ ..] = addresses.as_slice() else {
            return Err(CliError::new("no device is named"));
        };
        let server = |address: &RemoteAddress| {
            let RemoteAddress {
                host,
                port,
                key,
                tracker,
                ..
            } = address.clone();
            (host, port, key, tracker)
        };
        // One process runs a model, and memory of two servers could be exchanged only through the host.
        if rest.iter().any(|other| server(other) != server(first)) {
            return Err(CliError::new(
                "the devices are of several servers: name those of one",
            ));
        }
        let session = connect(first).map_err(CliError::from_library_error)?;
        let devices = addresses
            .iter()
            .map(|address| session.device(address.device));
        Ok(Places {
            devices: devices
                .collect::<Result<_, _>>()
                .map_err(CliError::from_library_error)?,
            session: Some(session),
        })
    }

    /// Returns whether the devices belong to a server.
    pub(crate) fn is_remote(&self) -> bool {
        #[cfg(feature = "rpc")]
        return self.session.is_some();
        #[cfg(not(feature = "rpc"))]
        false
    }

    /// Loads a library for remote devices: its code on the server, and here the executor for a model in it. Returns `None` if the
    /// devices are local.
    pub(crate) fn load(&self, path: &Path) -> Result<Option<Module>, CliError> {
        #[cfg(feature = "rpc")]
        if let Some(session) = &self.session {
            let content = super::input::read(path)?;
            // The server chooses a loader by the extension. The rest of the path is not needed there.
            let name = path
                .file_name()
                .map_or("library.so".into(), |name| name.to_string_lossy());
            return session
                .load_model(&name, content)
                .map(Some)
                .map_err(CliError::from_library_error);
        }
        // Without the feature `rpc` the path is unused.
        let _ = path;
        Ok(None)
    }
}

/// The delay before a message tells the user that the command waits.
#[cfg(feature = "rpc")]
const SILENCE: Duration = Duration::from_secs(2);

/// Connects. After [`SILENCE`], prints the reason for the wait: no free server at the tracker, or no answer from the server.
#[cfg(feature = "rpc")]
fn connect(address: &RemoteAddress) -> tvmspec::function::Result<Session> {
    if address.tracker.is_none() {
        return connect_to_server(address);
    }
    let (began, is_noted) = (Instant::now(), Cell::new(false));
    address.connect_while(&|| {
        if let Some(choice) = address.tracker
            && began.elapsed() >= SILENCE
            && !is_noted.replace(true)
        {
            let RemoteAddress { host, port, key, .. } = address;
            let wait = choice.wait.as_secs_f64().round();
            output::note(format_args!(
                "waiting for a server of key `{key}` of the tracker at {host}:{port}, up to {wait} s"
            ));
        }
        true
    })
}

/// Connects to one server. A server has one client at a time (RPC-80), and the next client gets no answer.
#[cfg(feature = "rpc")]
fn connect_to_server(address: &RemoteAddress) -> tvmspec::function::Result<Session> {
    let (connected, is_connected) = std::sync::mpsc::channel::<()>();
    let RemoteAddress { host, port, .. } = address;
    let wait = address.options.connect_timeout.as_secs_f64().round();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if is_connected
                .recv_timeout(SILENCE)
                .is_err_and(|end| end == RecvTimeoutError::Timeout)
            {
                output::note(format_args!(
                    "waiting for the server at {host}:{port} to answer, up to {wait} s"
                ));
            }
        });
        let session = address.connect();
        // Ends the wait of the thread above, which the scope joins.
        drop(connected);
        session
    })
}

/// Finds a device of this machine.
fn local(text: &str) -> Result<Device, CliError> {
    device_from_text(text).map_err(CliError::new)
}
