//! Generated matrices, seeded.
