//! Delivery of lifecycle notifications (SOL003 5.3.9).
//!
//! [`Dispatcher`] reads the log, makes out what each subscription is owed, and sends it: strictly in order per
//! subscription and instance, with the same body however often it is sent, until it is accepted or given up.
//! [`HttpCallbacks`] speaks HTTP and decides which addresses may be called. [`SolRenderer`] makes the bodies from
//! the streams folded up to their event.
//!
//! Nothing here decides what happened, and no connection to the database is held during a call.

mod address;
mod callbacks;
mod dispatcher;
mod render;
#[cfg(test)]
mod tests;

pub use address::AddressRules;
pub use callbacks::{CallbackSetupError, HttpCallbacks};
pub use dispatcher::{Dispatcher, DispatcherPorts};
pub use render::SolRenderer;
