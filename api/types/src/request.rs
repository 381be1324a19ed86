//! Request bodies: which members they have and of which type (SOL003 5.5.2, SOL005 9.5.2, and our own API).
//!
//! Only the shape is checked here. A wrong member is refused by name (422); a member that SOL003 v3.3.1 does not
//! know is ignored and reported, for newer clients send newer attributes; our own API refuses it. What passed is
//! handed on as JSON, since the executor seals secrets in it before it becomes anything else.

mod shape;
mod shapes;

pub use shape::{Checked, Shape};
pub use shapes::*;
