//! Operations. Problem -> plan -> prepared -> launch.

use core::fmt;

/// Why no plan serves a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {}

impl fmt::Display for PlanError {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

impl std::error::Error for PlanError {}
