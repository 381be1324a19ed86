//! Every shape against the published schemas, for operations and instances in every state that a story reaches.

mod judge;
mod notifications;
mod occurrences;
mod secrets;
