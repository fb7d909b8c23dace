//! State that belongs to one process: a forked child makes its own, because the threads of its
//! parent do not exist in it.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

struct Entry<T> {
    pid: u32,
    value: T,
}

/// A lazily made value, one for each process. A parent's value is leaked in the child, on purpose.
pub struct PerProcess<T> {
    entry: AtomicPtr<Entry<T>>,
    making: Mutex<()>,
}

impl<T: Send + Sync> PerProcess<T> {
    pub const fn new() -> Self {
        Self { entry: AtomicPtr::new(null_mut()), making: Mutex::new(()) }
    }

    /// The value of this process; `make` runs where there is none yet.
    pub fn get<E>(&'static self, make: impl FnOnce() -> Result<T, E>) -> Result<&'static T, E> {
        if let Some(value) = self.made() {
            return Ok(value);
        }
        let _one_at_a_time = lock(&self.making);
        if let Some(value) = self.made() {
            return Ok(value);
        }
        let entry = Box::leak(Box::new(Entry { pid: std::process::id(), value: make()? }));
        self.entry.store(entry, Ordering::Release);
        Ok(&entry.value)
    }

    fn made(&self) -> Option<&'static T> {
        // Entries are never freed.
        let entry = unsafe { self.entry.load(Ordering::Acquire).as_ref() };
        entry.filter(|entry| entry.pid == std::process::id()).map(|entry| &entry.value)
    }
}

/// The lock, whether or not another thread panicked while it held it.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_is_made_once_and_an_error_makes_none() {
        static VALUE: PerProcess<u32> = PerProcess::new();
        assert_eq!(VALUE.get(|| Err("no")), Err("no"));
        assert_eq!(VALUE.get(|| Ok::<_, ()>(1)), Ok(&1));
        assert_eq!(VALUE.get(|| Ok::<_, ()>(2)), Ok(&1));
    }

    #[test]
    fn a_forked_child_makes_its_own() {
        static VALUE: PerProcess<u32> = PerProcess::new();
        assert_eq!(VALUE.get(|| Ok::<_, ()>(1)), Ok(&1));
        let mut status = 0;
        unsafe {
            let child = libc::fork();
            if child == 0 {
                let fresh = VALUE.get(|| Ok::<_, ()>(2)) == Ok(&2);
                libc::_exit(if fresh { 0 } else { 1 });
            }
            libc::waitpid(child, &mut status, 0);
        }
        assert_eq!(status, 0);
        assert_eq!(VALUE.get(|| Ok::<_, ()>(3)), Ok(&1));
    }
}
