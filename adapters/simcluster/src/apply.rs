//! Server-side apply: who owns which field, and what an apply changes, keeps and removes.

pub(crate) mod field_set;
pub(crate) mod managed;
pub(crate) mod merge;
pub(crate) mod schema;
pub(crate) mod server_side;
pub(crate) mod strategic;
