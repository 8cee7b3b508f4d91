//! Comparison of the shards of a tensor cache with its index (TEN-54, TEN-58).

use super::document::newest_of;
use super::{Reading, Subject};
use crate::blob::container::FileForm;
use crate::file_name::is_file_name;
use crate::rule::Findings;
use crate::tensor::TensorCache;

/// A shard whose file was compared with the index.
#[derive(Debug)]
pub(crate) struct ReadShard {
    /// The name of its file.
    pub(crate) path: String,
    /// The faults and oddities. None of them has an offset.
    pub(crate) reading: Reading,
}

impl Subject<'_> {
    /// Returns the tensor cache if this file is its index. Returns `None` for any other file, and for an index that breaks a rule.
    pub fn tensor_cache(&self) -> Option<TensorCache> {
        if self.file.form != FileForm::TensorCache {
            return None;
        }
        let newest = newest_of(self.name);
        TensorCache::read(self.bytes, newest, &mut Findings::default()).ok()
    }

    /// Compares the shards of a tensor cache with this file, its index. `open` returns the content of the file with this name in the
    /// same folder, or `None` if there is no such file. Only one file is open at a time, and only files that the index names are
    /// requested (TEN-61).
    pub fn read_shards<B: AsRef<[u8]>>(&mut self, mut open: impl FnMut(&str) -> Option<B>) {
        let Some(cache) = self.tensor_cache() else {
            return;
        };
        let beside = cache.shards.into_iter();
        let shards = beside
            .filter(|shard| is_file_name(&shard.path))
            .map(|shard| {
                let content = open(&shard.path);
                let mut findings = Findings::default();
                let broken = shard.check(content.as_ref().map(AsRef::as_ref), &mut findings);
                ReadShard {
                    path: shard.path,
                    reading: Reading::without_spans(findings, broken.err()),
                }
            });
        self.shards = shards.collect();
    }
}
