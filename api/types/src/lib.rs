//! The JSON that the outside sees: SOL003 and SOL005 shapes, those of our own API, and the conversions from the
//! domain. No behaviour of its own and no I/O; nothing here decides what is legal.
//!
//! Answers are built by destructuring domain values, so that a new field fails to compile here and somebody has
//! to say whether the world sees it. Secrets never pass: see [`shown`]. Requests are checked for their shape in
//! [`request`]; what they mean against VNFD and record is the executor's to say.
//!
//! Start reading at [`vnf_instance`], then [`notification`].

pub mod api_versions;
pub mod attributes;
pub mod cairn;
pub mod lccn_subscription;
pub mod link;
pub mod notification;
pub mod problem_details;
pub mod public_url;
pub mod request;
pub mod shown;
pub mod vnf_instance;
pub mod vnf_lcm_op_occ;
pub mod vnf_pkg_info;

pub use problem_details::ProblemDetails;
pub use public_url::{InvalidPublicUrl, PublicUrl};
