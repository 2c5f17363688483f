//! `hopper-sparse info`: the device, its driver, and the kernels.

use serde_json::{Value, json};

use crate::args::InfoArgs;
use crate::error::Result;
use crate::table::{Table, bytes, count};
use crate::{print, print_json};
