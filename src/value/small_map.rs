//! A map with few entries: a list with linear search.

/// A map for few keys, such as the device types of a process or the device names of a thread. Hashing would cost more than it saves.
#[derive(Debug)]
pub(crate) struct SmallMap<K, V>(Vec<(K, V)>);

impl<K, V> Default for SmallMap<K, V> {
    fn default() -> SmallMap<K, V> {
        SmallMap::new()
    }
}

impl<K, V> SmallMap<K, V> {
    /// Creates an empty map.
    pub(crate) const fn new() -> SmallMap<K, V> {
        SmallMap(Vec::new())
    }

    /// Returns the value of `key`.
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

    /// Sets the value of `key` and returns the previous one.
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
