//! Global functions by which frontends use sessions, from C as from Rust (RPC-103).

use super::module::RemoteModule;
use super::options::{RemoteHop, SessionOptions};
use super::session::Session;
use crate::function::{Error, ErrorKind, Function, Result, registry};
use crate::module::{Module, ModuleKind};
use crate::rpc::RPC_103;
use crate::rule::Kind;
use crate::value::{Any, AnyView, cast};

/// Registers the functions that no other runtime has registered. In the same process, `libtvm_runtime.so` has its own functions.
pub(crate) fn provide() {
    // RPC-103: these names are valid from 0.7 on. The earlier ones, `rpc._Connect` from 0.4 to 0.6 and `contrib.rpc._Connect` before, are
    // not provided.
    registry::provide("rpc.Connect", Function::from_packed(connect));
    registry::provide("rpc.LoadRemoteModule", Function::named(None, load));
    registry::provide("rpc.ImportRemoteModule", Function::named(None, import));
    registry::provide("rpc.SessTableIndex", Function::named(None, number));
}

/// The module that represents a session to a frontend: its functions are the global functions of the server.
struct SessionModule(Session);

impl ModuleKind for SessionModule {
    fn kind(&self) -> &str {
        "rpc"
    }

    fn function(&self, _: &Module, name: &str) -> Result<Option<Function>> {
        self.0.function(name)
    }
}

/// Implements `rpc.Connect`: host, port, key, from 0.9 on a logging flag, and the constructor of the session on the server.
fn connect(args: &[AnyView<'_>]) -> Result<Any> {
    let mut args = args;
    // RPC-103: the call cannot state a release, so that the client detects the server's era (RPC-100).
    let mut options = SessionOptions::default();
    let first = take_hop(&mut args)?;
    // Each further hop has the same form, after the name of the function that connects to it.
    while let [function, rest @ ..] = args {
        let name: String = cast(*function).map_err(type_error)?;
        if name != "rpc.Connect" {
            let message = format!("a session that `{name}` creates does not belong to this client");
            return Err(RPC_103.rejected(Kind::Unsupported, message).into());
        }
        args = rest;
        options.hops.push(take_hop(&mut args)?);
    }
    let session = Session::connect(&first.host, first.port, &first.key, &options)?;
    Ok(Module::new(SessionModule(session)).into())
}

/// Removes host, port and key from the front of `args`, and the logging flag that 0.9 added after them.
fn take_hop(args: &mut &[AnyView<'_>]) -> Result<RemoteHop> {
    let [host, port, key, rest @ ..] = *args else {
        let message = "rpc.Connect takes a host, a port and a key".to_owned();
        return Err(RPC_103.rejected(Kind::Type, message).into());
    };
    let place = RemoteHop {
        host: cast(*host).map_err(type_error)?,
        port: cast(*port).map_err(type_error)?,
        key: cast(*key).map_err(type_error)?,
    };
    *args = match rest {
        // The flag requests a log of the channel, which this client does not write.
        [flag, rest @ ..] if cast::<i64>(*flag).is_ok() => rest,
        rest => rest,
    };
    Ok(place)
}

/// Creates the error for an argument of a wrong type.
fn type_error(broken: crate::rule::Violation) -> Error {
    let message = format!("an argument of rpc.Connect: {}", broken.message());
    RPC_103.rejected(Kind::Type, message).into()
}

/// Implements `rpc.LoadRemoteModule`: takes a session and the name of an uploaded file.
fn load(session: &Module, name: String) -> Result<Module> {
    session_of_module(session)?.load_module(&name)
}

/// Implements `rpc.ImportRemoteModule`: takes two modules of one session; the first imports the second.
fn import(parent: &Module, child: &Module) -> Result<()> {
    let Some(remote) = RemoteModule::from_module(parent) else {
        return Err(not_remote_module_error(parent));
    };
    remote.session().import(parent, child)
}

/// Implements `rpc.SessTableIndex`: returns the number of a session, which is part of its device types (DEV-57).
fn number(module: &Module) -> Result<i64> {
    Ok(match RemoteModule::from_module(module) {
        Some(remote) => remote.session().number().into(),
        None => session_of_module(module)?.number().into(),
    })
}

/// Returns the session that a module represents.
fn session_of_module(module: &Module) -> Result<&Session> {
    let kind: Option<&dyn std::any::Any> = module.implementation().map(|kind| kind as _);
    let session = kind.and_then(|kind| kind.downcast_ref::<SessionModule>());
    session
        .map(|module| &module.0)
        .ok_or_else(|| not_remote_module_error(module))
}

fn not_remote_module_error(module: &Module) -> Error {
    let text = format!("a module of kind `{}` is of no RPC session", module.kind());
    Error::new(ErrorKind::Type, text)
}
