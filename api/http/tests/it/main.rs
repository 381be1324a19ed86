//! The API over fakes of its ports: what reaches them, and what comes back.

mod bodies;
mod conditions;
mod failures;
mod fakes;
mod lists;
mod operations;
mod own;
mod packages;
mod routes;
mod server;
mod versions;
