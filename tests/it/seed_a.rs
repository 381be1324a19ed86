//! Seed case A: whatever an operation failed at, it can go on, be undone, be given up or be stopped.
//!
//! One function runs any (operation, error point, way on); the named tests A1 to A7 and the matrix are lists of
//! such cases; A8 is a story of its own. Faults are set once for a whole batch, each for its own instance, so cases run side by side.

pub mod case;
mod matrix;
mod named;
