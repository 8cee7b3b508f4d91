//! The target of a thread: what `with target:` sets, and compilers look up where no target is passed.

use crate::rule::{Kind, Violation};
use crate::target::{TGT_72, TGT_73, Target};
use crate::thread_local::with_kept;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;

thread_local! {
    /// The targets of the scopes that this thread is in, innermost last.
    static SCOPES: RefCell<Vec<Arc<Target>>> = const { RefCell::new(Vec::new()) };
}

/// A scope, which ends where this is dropped, on the thread that entered it.
///
/// ```
/// use tvmspec::release::Release;
/// use tvmspec::target::{TargetScope, Targets, current};
///
/// let targets = Targets::new(Release::of(27));
/// let scope = TargetScope::enter(targets.read("c")?);
/// assert_eq!(current()?.kind, "c");
/// drop(scope);
/// assert!(current().is_err());
/// # Ok::<(), tvmspec::rule::Violation>(())
/// ```
#[derive(Debug)]
pub struct TargetScope {
    /// What was entered.
    target: Arc<Target>,
    /// The stack is that of a thread, so that no scope goes to another.
    _here: PhantomData<*const ()>,
}

impl TargetScope {
    /// Enters a scope: `target` is the current one of this thread until the scope ends.
    #[must_use = "the scope ends where this is dropped"]
    pub fn enter(target: impl Into<Arc<Target>>) -> TargetScope {
        let target = target.into();
        enter_scope(target.clone());
        let _here = PhantomData;
        TargetScope { target, _here }
    }

    /// The target of the scope.
    pub fn target(&self) -> &Arc<Target> {
        &self.target
    }
}

impl Drop for TargetScope {
    fn drop(&mut self) {
        // One that is dropped before the scopes inside of it ends with them missing: no caller is there to get the violation of TGT-73.
        let _ = exit_scope(&self.target);
    }
}

/// The target of the innermost scope of this thread (TGT-72).
///
/// # Errors
///
/// TGT-72 (missing) where the thread is in none.
pub fn current() -> Result<Arc<Target>, Violation> {
    // TGT-72: of this thread alone. In 0.2 one variable of Python is the current target of all threads.
    let target = with_kept(&SCOPES, |scopes| scopes.last().cloned());
    let message = "Target context required. Please set it by constructing a TargetContext";
    target.ok_or_else(|| TGT_72.rejected(Kind::Missing, message))
}

/// Enters a scope that [`exit_scope`] ends, for frontends that have a call for each; Rust has [`TargetScope`].
pub fn enter_scope(target: Arc<Target>) {
    with_kept(&SCOPES, |scopes| scopes.push(target.clone()));
}

/// Ends the innermost scope of this thread.
///
/// # Errors
///
/// TGT-73: missing where the thread is in no scope, malformed where the innermost one is not of this very object. It stays then.
pub fn exit_scope(target: &Arc<Target>) -> Result<(), Violation> {
    with_kept(&SCOPES, |scopes| {
        TGT_73.demand(Kind::Missing, !scopes.is_empty(), || {
            "the thread is in no scope of a target".to_owned()
        })?;
        // TGT-73: by identity, as upstream compares: an equal target may be that of another scope.
        let innermost = scopes.last().is_some_and(|last| Arc::ptr_eq(last, target));
        TGT_73.demand(Kind::Malformed, innermost, || {
            format!(
                "the innermost scope is not that of this target: {}",
                target.kind
            )
        })?;
        scopes.pop();
        Ok(())
    })
}
