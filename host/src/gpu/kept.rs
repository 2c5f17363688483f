//! What is made on first use and kept: tensor maps and lists, by the memory that they are for.

use core::hash::Hash;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::error::GpuError;

/// So many values are kept; one more, and all are made anew.
const MAX_KEPT: usize = 64;

/// Values in device memory, by key.
#[derive(Debug)]
pub(crate) struct Kept<K, V: ?Sized>(Mutex<HashMap<K, Arc<V>>>);

impl<K, V: ?Sized> Default for Kept<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash, V: ?Sized> Kept<K, V> {
    /// The value for `key`; made, where it is not there.
    pub(crate) fn get_or(&self, key: K, make: impl FnOnce() -> Result<Arc<V>, GpuError>) -> Result<Arc<V>, GpuError> {
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = values.get(&key) {
            return Ok(Arc::clone(value));
        }
        let value = make()?;
        if values.len() >= MAX_KEPT {
            // Freeing device memory waits for the launches that may still read it.
            values.clear();
        }
        values.insert(key, Arc::clone(&value));
        Ok(value)
    }
}
