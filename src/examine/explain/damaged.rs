//! Files whose container is broken.

use super::account::{Account, loads};
use super::library::library;
use super::linked::{LinkedImage, is_image};
use super::raw;
use crate::blob::container::{self, FileForm, Size};
use crate::blob::{ForeignKinds, detect};
use crate::examine::loading::Load;
use crate::examine::{Format, Unit};
use crate::payload::file;
use crate::release::Release;
use crate::rule::Violation;
use std::borrow::Cow;

/// What can be reported of a file whose container breaks a rule.
///
/// The outcome is unknown for every release, except where the only fault is a header that counts too much (BLOB-53).
pub fn damaged(name: &str, bytes: &[u8], broken: &Violation, only: Option<Release>) -> Account {
    if let Some(account) = overlong(name, bytes, broken, only) {
        return account;
    }
    if let Some(account) = module_file(name, broken, only) {
        return account;
    }
    let form = FileForm::of(bytes);
    let load = |_| Load::unknown(format!("it breaks {broken}"));
    // The form is that of the first bytes (BLOB-69): it needs no container that can be read.
    let mut account = Account::new(format!("{name}: {}", form.title()), loads(only, load));
    account.is_broken = true;
    account.remarks.push(
        "The file around the library is broken. What becomes of it is a matter of the linker and the loader of the system, before TVM reads anything."
            .into(),
    );
    account
}

/// A device module in a file, whose side file is missing or broken (PAY-23). `None` for any other file.
fn module_file(name: &str, broken: &Violation, only: Option<Release>) -> Option<Account> {
    // The chapter of these rules: a container breaks those of chapter blob.
    broken.rule().id().starts_with("PAY-").then_some(())?;
    let format = file::file_format(file::extension(name)?)?;
    let side = file::side_file_name(name);
    let is_missing = broken.rule().id() == "PAY-23";
    let load = |release: Release| match format.loader(release) {
        None => Load::fails(format!("it has no loader of `.{}` files", format.extension)),
        Some(loader) if is_missing => Load::fails(format!("`{loader}` finds no `{side}`")),
        Some(_) => Load::unknown(format!("it breaks {broken}")),
    };
    let title = format!("{name}: code of a module of kind `{}`", format.kind);
    let mut account = Account::new(title, loads(only, load));
    account.remarks.push(if is_missing {
format!(
            "The side file `{side}` is missing, which says how the functions of this code are launched. `tvmspec verify` shows the rule."
        )
} else {
format!(
            "The code and its side file `{side}` do not make a module: {}.",
            broken.message()
        )
});
    Some(account)
}

/// A blob whose header asks for more than its symbol has (BLOB-53): no release looks at the size of the symbol.
///
/// `None` where another rule is broken, or another one besides.
fn overlong(
    name: &str,
    whole: &[u8],
    broken: &Violation,
    only: Option<Release>,
) -> Option<Account> {
    if broken.rule().id() != "BLOB-53" {
        return None;
    }
    let offset = broken.offset()?;
    let start = usize::try_from(offset).ok()?;
    // BLOB-53 is checked where the container is opened: with a header that counts nothing the rest of it can be read.
    let mut bytes = whole.to_vec();
    bytes.get_mut(start..)?.first_chunk_mut::<8>()?.fill(0);
    let file = container::open(&bytes).ok()?;
    // The violation has the offset of the library binary and not its symbol: it is found again by that.
    let (index, part) = file
        .parts
        .iter()
        .enumerate()
        .find(|(_, part)| part.blobs.iter().any(|blob| blob.offset == Some(offset)))?;
    let blob = part.blobs.iter().find(|blob| blob.offset == Some(offset))?;
    // BLOB-53: where the format has no sizes of symbols, the next symbol or the end of the section is the bound.
    let available = match blob.size {
        Size::Known(size) => size,
        Size::Derived { room } => room,
    };
    let available = usize::try_from(available).ok()?;
    // From the file as it is: with its own header, which the loaders trust.
    let content = whole.get(start..)?.get(..available)?;
    let unit = Unit {
        name: format!("{name}, symbol {}", blob.symbol),
        offset: Some(offset),
        format: Format::Library {
            layout: detect::detect(content, Some(&blob.symbol)),
            symbol: blob.symbol.clone(),
        },
        bytes: Cow::Borrowed(content),
        part: index,
        foreign: ForeignKinds::default(),
    };
    let linked = LinkedImage::of(&file, &bytes);
    let mut account = library(&unit, part, is_image(file.form), &linked, only);
    account.raw = raw(&file);
    account.looked_at = linked.looked_at();
    Some(account)
}
