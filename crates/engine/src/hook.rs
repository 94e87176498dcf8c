//! A room that is called back by one it calls: the lower room names what it calls in a trait, the upper one
//! implements it and is set here at the start. Held weakly, so that an engine that is dropped is freed.

use std::sync::{Arc, OnceLock, Weak};

pub struct Hook<T: ?Sized>(OnceLock<Weak<T>>);

impl<T: ?Sized> Default for Hook<T> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

impl<T: ?Sized> Hook<T> {
    /// Set once, before anything runs.
    pub fn set(&self, target: &Arc<T>) {
        let is_first = self.0.set(Arc::downgrade(target)).is_ok();
        debug_assert!(is_first, "a hook is set once");
    }

    /// Nothing before it is set, and nothing once the engine is gone.
    pub fn get(&self) -> Option<Arc<T>> {
        self.0.get()?.upgrade()
    }
}
