//! The program as its users meet it: a process with flags, files, signals, exit codes and text.

mod demo;
// Marked, so that it may `unwrap` as tests do.
#[cfg(test)]
mod harness;
mod help;
mod history;
mod package;
mod serve;
mod settings;
