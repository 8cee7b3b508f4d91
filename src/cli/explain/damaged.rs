//! Files whose container is broken.

use super::account::{Account, loads};
use super::here::Linked;
use super::library::library;
use crate::cli::input::Input;
use crate::cli::subject::{self, Format, Unit};
use std::borrow::Cow;
use tvmspec::blob::container::{self, Form, Size};
use tvmspec::blob::detect;
use tvmspec::examine::loading::Load;
use tvmspec::release::Release;
use tvmspec::rule::Violation;

/// What can be said of a file whose container breaks a rule.
pub(super) fn damaged(input: &Input, broken: &Violation, only: Option<Release>) -> Account {
    if let Some(account) = overlong(input, broken, only) {
        return account;
    }
    let form = Form::of(input.bytes());
    let load = |_| Load::unknown(format!("it breaks {broken}"));
    let mut account = Account::new(
        format!("{}: {}", input.name, subject::form_name(form)),
        loads(only, load),
    );
    account.remarks.push(
        "The file around the library is broken. What becomes of it is a matter of the linker and the loader of the system, before TVM reads anything."
            .into(),
    );
    account
}

/// A blob whose header asks for more than its symbol has (BLOB-53): no release looks at the size of the symbol.
fn overlong(input: &Input, broken: &Violation, only: Option<Release>) -> Option<Account> {
    if broken.rule().id() != "BLOB-53" {
        return None;
    }
    let offset = broken.offset()?;
    let start = usize::try_from(offset).ok()?;
    // With a header of nothing the rest of the container can be read.
    let mut bytes = input.bytes().to_vec();
    bytes.get_mut(start..)?.first_chunk_mut::<8>()?.fill(0);
    let file = container::open(&bytes).ok()?;
    let (index, part) = file
        .parts
        .iter()
        .enumerate()
        .find(|(_, part)| part.blobs.iter().any(|blob| blob.offset == Some(offset)))?;
    let blob = part.blobs.iter().find(|blob| blob.offset == Some(offset))?;
    let granted = match blob.size {
        Size::Known(size) => size,
        Size::Derived { room } => room,
    };
    let granted = usize::try_from(granted).ok()?;
    let content = input.bytes().get(start..)?.get(..granted)?;
    let unit = Unit {
        name: format!("{}, symbol {}", input.name, blob.symbol),
        offset: Some(offset),
        format: Format::Library {
            layout: detect::detect(content, Some(&blob.symbol)),
            symbol: blob.symbol.clone(),
        },
        bytes: Cow::Borrowed(content),
        part: index,
    };
    Some(library(&unit, part, &Linked::of(&file, &bytes), only))
}
