//! The functions of the registry that frontends reach sessions by, from C as from Rust (RPC-103).

use super::module::RemoteModule;
use super::options::{RemoteHop, SessionOptions};
use super::session::Session;
use crate::function::{Error, ErrorKind, Function, Result, registry};
use crate::module::{Module, ModuleKind};
use crate::rpc::RPC_103;
use crate::rule::Kind;
use crate::value::{Any, AnyView, cast};

/// Registers them where no runtime has: `libtvm_runtime.so` in the same process has its own.
pub(crate) fn provide() {
    // RPC-103: from 0.7 on by these names: `rpc._Connect` and so on from 0.4 to 0.6, `contrib.rpc._Connect` before, have no place here.
    registry::provide("rpc.Connect", Function::from_packed(connect));
    registry::provide("rpc.LoadRemoteModule", Function::named(None, load));
    registry::provide("rpc.ImportRemoteModule", Function::named(None, import));
    registry::provide("rpc.SessTableIndex", Function::named(None, number));
}

/// The module that a session is to a frontend: its functions are the global functions of the server.
struct SessionModule(Session);

impl ModuleKind for SessionModule {
    fn kind(&self) -> &str {
        "rpc"
    }

    fn function(&self, _: &Module, name: &str) -> Result<Option<Function>> {
        self.0.function(name)
    }
}

/// `rpc.Connect`: host, port, key, from 0.9 on whether to log, and what makes the session at the server.
fn connect(args: &[AnyView<'_>]) -> Result<Any> {
    let mut args = args;
    // RPC-103: the call has no place for a release, so that the session speaks as the server does (RPC-100).
    let mut options = SessionOptions::default();
    let first = place(&mut args)?;
    // Each server on the way is named in the same manner, behind the name of the function that connects to it.
    while let [function, rest @ ..] = args {
        let name: String = cast(*function).map_err(wrong)?;
        if name != "rpc.Connect" {
            let message = format!("a session that `{name}` makes is none of this client");
            return Err(RPC_103.rejected(Kind::Unsupported, message).into());
        }
        args = rest;
        options.hops.push(place(&mut args)?);
    }
    let session = Session::connect(&first.host, first.port, &first.key, &options)?;
    Ok(Module::new(SessionModule(session)).into())
}

/// Takes host, port and key off `args`, and the flag of a log, which 0.9 put behind them.
fn place(args: &mut &[AnyView<'_>]) -> Result<RemoteHop> {
    let [host, port, key, rest @ ..] = *args else {
        let message = "rpc.Connect takes a host, a port and a key".to_owned();
        return Err(RPC_103.rejected(Kind::Type, message).into());
    };
    let place = RemoteHop {
        host: cast(*host).map_err(wrong)?,
        port: cast(*port).map_err(wrong)?,
        key: cast(*key).map_err(wrong)?,
    };
    *args = match rest {
        // A log of the channel, which this client does not write.
        [flag, rest @ ..] if cast::<i64>(*flag).is_ok() => rest,
        rest => rest,
    };
    Ok(place)
}

/// An argument of another type.
fn wrong(broken: crate::rule::Violation) -> Error {
    let message = format!("an argument of rpc.Connect: {}", broken.message());
    RPC_103.rejected(Kind::Type, message).into()
}

/// `rpc.LoadRemoteModule`: a session, and the name of a file that was uploaded to it.
fn load(session: &Module, name: String) -> Result<Module> {
    of(session)?.load_module(&name)
}

/// `rpc.ImportRemoteModule`: two modules of one session, of which the first imports the second.
fn import(parent: &Module, child: &Module) -> Result<()> {
    let Some(remote) = RemoteModule::of(parent) else {
        return Err(stranger(parent));
    };
    remote.session().import(parent, child)
}

/// `rpc.SessTableIndex`: the number of a session, by which its devices are known (DEV-57).
fn number(module: &Module) -> Result<i64> {
    Ok(match RemoteModule::of(module) {
        Some(remote) => remote.session().number().into(),
        None => of(module)?.number().into(),
    })
}

/// The session that a module is to a frontend.
fn of(module: &Module) -> Result<&Session> {
    let kind: Option<&dyn std::any::Any> = module.implementation().map(|kind| kind as _);
    let session = kind.and_then(|kind| kind.downcast_ref::<SessionModule>());
    session
        .map(|module| &module.0)
        .ok_or_else(|| stranger(module))
}

fn stranger(module: &Module) -> Error {
    let text = format!("a module of kind `{}` is of no RPC session", module.kind());
    Error::new(ErrorKind::Type, text)
}
