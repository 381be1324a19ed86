//! VNF packages: from the bytes of a CSAR (SOL004) to the descriptor and the manifests in it.
//!
//! Bytes in, model out: this crate holds nothing, fetches nothing, and runs nothing that a package
//! brings. A package comes from outside, so everything is bounded ([`Limits`]) and every refusal
//! says what is wrong where ([`PackageError`]); no input makes it panic.
//!
//! Start reading at [`Package::read`]: unpack, TOSCA metadata and hashes, definitions with their
//! imports, the VNFD, the manifests, and whether they fit together.

mod archive;
mod build;
mod digest;
mod error;
mod hooks;
mod manifests;
mod meta;
mod pack;
mod package;
mod source;
mod tosca;
mod unsupported;
mod vnfd;
mod yaml;

pub use archive::Limits;
pub use build::build;
pub use error::{ErrorKind, PackageError};
pub use manifests::Manifest;
pub use package::Package;

#[cfg(test)]
mod tests;
