//! A scripted receiver, a log and a queue in memory.

mod calls;
mod deliveries;
mod memory;
