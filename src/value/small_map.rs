//! A map of few entries: a list that is looked through from the front.

/// What a thread knows of its devices, or a process of its device types: a hash would cost more than it saves.
#[derive(Debug)]
pub(crate) struct SmallMap<K, V>(Vec<(K, V)>);

impl<K, V> SmallMap<K, V> {
    /// An empty one.
    pub(crate) const fn new() -> SmallMap<K, V> {
        SmallMap(Vec::new())
    }

    /// What stands under `key`.
    pub(crate) fn find<Q: ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: PartialEq<Q>,
    {
        for (known, value) in &self.0 {
            if known == key {
                return Some(value);
            }
        }
        None
    }

    /// Puts `value` under `key` and returns what stood there.
    pub(crate) fn put(&mut self, key: K, value: V) -> Option<V>
    where
        K: PartialEq,
    {
        for (known, there) in &mut self.0 {
            if *known == key {
                return Some(std::mem::replace(there, value));
            }
        }
        self.0.push((key, value));
        None
    }
}
