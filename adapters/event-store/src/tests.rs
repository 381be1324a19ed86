//! Both databases, each test on a fresh one of each.

mod fixture;
mod golden;
mod log;
mod queue;
mod reliance;
mod sealed;
mod shelf;
mod stock;
mod work;
