//! Modules of the server as modules of this process.

use super::super::RPC_101;
use super::call_result::call;
use super::link::RemoteHandle;
use super::session::Session;
use crate::function::{Error, ErrorKind, Function};
use crate::module::{Module, ModuleKind};
use crate::rule::Kind;
use crate::value::Any;

/// A module of a server. The server looks up its functions, also in the modules that it imports there.
pub struct RemoteModule {
    pub(super) handle: RemoteHandle,
}

impl std::fmt::Debug for RemoteModule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RemoteModule({})", self.handle.handle)
    }
}

impl RemoteModule {
    pub(super) fn new(handle: RemoteHandle) -> RemoteModule {
        RemoteModule { handle }
    }

    /// Returns the remote module that `module` represents, if it is one.
    pub fn from_module(module: &Module) -> Option<&RemoteModule> {
        let kind: &dyn std::any::Any = module.implementation()?;
        kind.downcast_ref()
    }

    /// Returns the session of the module.
    pub fn session(&self) -> Session {
        Session::of_link(&self.handle.link)
    }
}

impl ModuleKind for RemoteModule {
    fn kind(&self) -> &str {
        "rpc"
    }

    fn function(&self, module: &Module, name: &str) -> Result<Option<Function>, Error> {
        const LOOKUP: &str = "tvm.rpc.server.ModuleGetFunction";
        let link = &self.handle.link;
        let lookup = link.cached_global(LOOKUP)?.ok_or_else(|| {
            let text = format!("the server has no global function `{LOOKUP}`");
            Error::new(ErrorKind::Attribute, text)
        })?;
        // This process does not know the remote imports. The third argument asks the server to search them, as clients from 0.9 on do.
        let args = [Any::from(module.clone()), name.into(), true.into()];
        let views = [args[0].view(), args[1].view(), args[2].view()];
        let found = call(link, lookup, &views)?;
        // RPC-101: in both eras a server returns none for a name that its module lacks; the caller then searches elsewhere.
        if found.is_none() {
            return Ok(None);
        }
        let function = found.into_object().ok().map(Function::from_object);
        match function {
            Some(Ok(function)) => Ok(Some(function)),
            _ => Err(RPC_101
                .rejected(
                    Kind::Type,
                    format!("the server returns no function for `{name}`"),
                )
                .into()),
        }
    }
}
