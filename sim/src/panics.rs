//! A panic inside a task ends that task and nobody hears of it; here it ends the run.

use std::cell::RefCell;
use std::sync::Once;

thread_local! {
    static FIRST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// From now on panics of this thread are remembered. Each run has a thread to itself.
pub fn watch() {
    static HOOKED: Once = Once::new();
    HOOKED.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            FIRST.with(|first| {
                first.borrow_mut().get_or_insert_with(|| info.to_string());
            });
            before(info);
        }));
    });
    take();
}

pub fn take() -> Option<String> {
    FIRST.with(|first| first.borrow_mut().take())
}
