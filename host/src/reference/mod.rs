//! Float64 references: plain, slow, right.
