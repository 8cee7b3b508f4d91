//! The report of a tensor cache: its shards and their tensors.

use super::memory_limit::MemoryBudget;
use crate::examine::Subject;
use crate::tensor::json::from_dtype;
use serde_json::{Map, Value, json};

/// Adds the members `cache` and `params` of `inspect.json` if the file is the index of a tensor cache.
pub(super) fn describe(subject: &Subject<'_>, top: &mut Map<String, Value>, room: &MemoryBudget) {
    let Some(cache) = subject.tensor_cache() else {
        return;
    };
    let shards = room.list(&cache.shards, |shard| {
        let read = subject.shards.iter().find(|read| read.path == shard.path);
        // Null if no file was searched, because the index came through a pipe or from inside another program.
        let state = read.map(|read| match &read.reading.broken {
            None => "good".to_owned(),
            Some(broken) => broken.message().to_owned(),
        });
        json!({
            "path": shard.path,
            "bytes": shard.nbytes,
            "md5sum": shard.md5sum,
            "tensors": shard.tensors.len(),
            "state": state,
        })
    });
    let tensors = cache.shards.iter().flat_map(|shard| &shard.tensors);
    let tensors = room.list(tensors, |tensor| {
        json!({
            "name": tensor.name,
            "dtype": from_dtype(tensor.dtype),
            "shape": room.list(&tensor.shape, |extent| json!(extent)),
            "bytes": tensor.nbytes,
            "format": tensor.encoding.name(),
        })
    });
    top.insert(
        "cache".into(),
        json!({ "metadata": cache.metadata, "shards": shards }),
    );
    top.insert("params".into(), tensors.into());
}
