//! The target of a thread, which `with target:` sets. Compilers look it up if no target is passed.

use crate::rule::{Kind, Violation};
use crate::target::{TGT_72, TGT_73, Target};
use crate::thread_local::with_kept;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;

thread_local! {
    /// The targets of this thread's scopes, innermost last.
    static SCOPES: RefCell<Vec<Arc<Target>>> = const { RefCell::new(Vec::new()) };
}

/// A scope, which ends when this value is dropped, on the thread that entered it.
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
    /// The target of the scope.
    target: Arc<Target>,
    /// Makes the type `!Send`, because the stack of scopes belongs to one thread.
    _here: PhantomData<*const ()>,
}

impl TargetScope {
    /// Enters a scope: `target` is the current target of this thread until the scope ends.
    #[must_use = "the scope ends where this is dropped"]
    pub fn enter(target: impl Into<Arc<Target>>) -> TargetScope {
        let target = target.into();
        enter_scope(target.clone());
        let _here = PhantomData;
        TargetScope { target, _here }
    }

    /// Returns the target of the scope.
    pub fn target(&self) -> &Arc<Target> {
        &self.target
    }
}

impl Drop for TargetScope {
    fn drop(&mut self) {
        // A scope that is dropped before its inner scopes remains on the stack. The violation of TGT-73 cannot be returned to a
        // caller here.
        let _ = exit_scope(&self.target);
    }
}

/// Returns the target of the innermost scope of this thread (TGT-72).
///
/// # Errors
///
/// Returns TGT-72, missing, if the thread is in no scope.
pub fn current() -> Result<Arc<Target>, Violation> {
    // TGT-72: only of this thread. In 0.2, one Python variable contains the current target of all threads.
    let target = with_kept(&SCOPES, |scopes| scopes.last().cloned());
    let message = "Target context required. Please set it by constructing a TargetContext";
    target.ok_or_else(|| TGT_72.rejected(Kind::Missing, message))
}

/// Enters a scope that [`exit_scope`] ends, for frontends with a separate call for each. Rust code uses [`TargetScope`].
pub fn enter_scope(target: Arc<Target>) {
    with_kept(&SCOPES, |scopes| scopes.push(target.clone()));
}

/// Ends the innermost scope of this thread.
///
/// # Errors
///
/// Returns TGT-73: missing if the thread is in no scope, malformed if the innermost scope belongs to another object. The scope then
/// remains.
pub fn exit_scope(target: &Arc<Target>) -> Result<(), Violation> {
    with_kept(&SCOPES, |scopes| {
        TGT_73.demand(Kind::Missing, !scopes.is_empty(), || {
            "the thread is in no scope of a target".to_owned()
        })?;
        // TGT-73: compared by identity, as upstream does, because another scope may have an equal target.
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
