//! C = alpha A B + beta C with A in [WCSR](crate::formats::WcsrView): which kernel, which tiles, in which order.
//!
//! [`WcsrSpmm`] is the problem, [`WcsrPlan`] the choice; both print, and planning needs no GPU. On a device a plan is
//! prepared (`WcsrPlan::prepare`, feature `gpu`) and then launched many times.
//!
//! Where the rows of A are in an order ([`RowOrder`](crate::formats::RowOrder)), C comes out in the rows' own: sums are stored in the row
//! that stands at their place. Each has the bits that it has in the product of the matrix whose rows are permuted. A row-major C costs a
//! look-up for each row of a tile; of a column-major one neighbours lie apart, and are stored one by one.

#[cfg(any(feature = "gpu", feature = "sim"))]
mod launch;
#[cfg(feature = "gpu")]
mod prepared;
mod schedule;
#[cfg(feature = "sim")]
mod simulated;

use core::fmt;

use kernels_gpu::wcsr::{CONFIGURATIONS, Configuration, Dtype as KernelDtype};

use super::{DenseFactors, Operand, PlanError, Refusal};
use crate::element::{Dtype, Element};
use crate::formats::{Layout, WcsrView, WindowShape};

#[cfg(feature = "gpu")]
pub use prepared::WcsrPrepared;
use schedule::Schedule;

/// The family's name in sentences.
const KERNEL: &str = "WCSR";

/// A problem: C (M x N) = alpha A (M x K) B (K x N) + beta C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WcsrSpmm {
    /// M.
    pub num_rows: usize,
    /// K.
    pub num_inner: usize,
    /// N.
    pub num_cols: usize,
    /// The shape of A's windows.
    pub window: WindowShape,
    /// The type of A and B.
    pub dtype: Dtype,
    /// The type of C: that of A and B, or f32.
    pub output: Dtype,
    /// The layout of B.
    pub b_layout: Layout,
    /// The layout of C.
    pub c_layout: Layout,
}

impl fmt::Display for WcsrSpmm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "wcsr {} {}", self.window, self.factors())
    }
}

/// How wide the tiles of C are, where the caller wants to say so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TileWidth {
    /// As the number of columns suggests.
    #[default]
    Auto,
    /// So many columns: 64 or 128, with windows of 128 rows also 256.
    Columns(usize),
}

/// What was chosen for a problem and a pattern.
#[derive(Clone, Debug)]
#[cfg_attr(not(any(feature = "gpu", feature = "sim")), allow(dead_code, reason = "only a launch reads the lists"))]
pub struct WcsrPlan {
    problem: WcsrSpmm,
    configuration: &'static Configuration,
    schedule: Schedule,
    num_panels: usize,
    is_ordered: bool,
}

impl WcsrSpmm {
    /// The problem of multiplying `a` with `num_cols` columns.
    pub fn new<T: Element>(a: &WcsrView<'_, T>, num_cols: usize, output: Dtype, b: Layout, c: Layout) -> Self {
        Self {
            num_rows: a.num_rows,
            num_inner: a.num_cols,
            num_cols,
            window: a.window,
            dtype: T::DTYPE,
            output,
            b_layout: b,
            c_layout: c,
        }
    }

    /// Whether a kernel serves the problem at all.
    ///
    /// # Errors
    /// The reason, where none does.
    pub fn check(&self) -> Result<(), Refusal> {
        if kernel_dtype(self.dtype).is_none() {
            return Err(Refusal::Dtype { kernel: KERNEL, dtype: self.dtype, offered: "bf16 and f16" });
        }
        self.factors().check_output(KERNEL)?;
        if !CONFIGURATIONS.iter().any(|configuration| self.serves(configuration)) {
            return Err(Refusal::Window { window: self.window });
        }
        if self.b_layout != Layout::RowMajor {
            return Err(Refusal::LayoutOfB { kernel: KERNEL, offered: Layout::RowMajor });
        }
        // Coordinates of tensor copies are signed 32-bit numbers, and the last tile may reach over the edge.
        self.factors().check_sizes(i32::MAX as u64 - 1024)
    }

    /// Whether `a` is the problem's A.
    fn check_sparse<T: Element>(&self, a: &WcsrView<'_, T>) -> Result<(), PlanError> {
        self.factors().check_sparse::<T>(a.num_rows, a.num_cols)?;
        if let Some(rows) = a.rows().filter(|rows| rows.len() != a.num_rows) {
            let (ordered, rows) = (rows.len() as u64, a.num_rows as u64);
            return Err(PlanError::Refused(Refusal::RowOrder { ordered, rows }));
        }
        if a.window == self.window { Ok(()) } else { Err(PlanError::NotPlanned { operand: Operand::A }) }
    }

    fn factors(&self) -> DenseFactors {
        let Self { num_rows, num_inner, num_cols, dtype, output, b_layout, c_layout, .. } = *self;
        DenseFactors { num_rows, num_inner, num_cols, dtype, output, b_layout, c_layout }
    }

    /// Whether `configuration` can serve the problem, as far as types and windows go.
    fn serves(&self, configuration: &Configuration) -> bool {
        kernel_dtype(self.dtype) == Some(configuration.dtype)
            && configuration.window_rows == self.window.rows
            && configuration.group == self.window.group
    }

    /// Chooses kernel, tiles and splits for a device with `multiprocessors` multiprocessors.
    ///
    /// How a window's sums are split depends on the pattern of A and on the device, never on B. A plan for rows in an order serves any
    /// order of theirs, and not the rows as they are.
    ///
    /// # Errors
    /// [`PlanError::Refused`] with the reason; [`PlanError::NotPlanned`] where `a` is not the problem's A.
    pub fn plan<T: Element>(&self, a: &WcsrView<'_, T>, multiprocessors: u32) -> Result<WcsrPlan, PlanError> {
        self.plan_with(a, multiprocessors, TileWidth::Auto)
    }

    /// As [`plan`](Self::plan), with tiles of the caller's width.
    ///
    /// # Errors
    /// As [`plan`](Self::plan); [`Refusal::Tile`] where no kernel has such tiles.
    pub fn plan_with<T: Element>(
        &self,
        a: &WcsrView<'_, T>,
        multiprocessors: u32,
        width: TileWidth,
    ) -> Result<WcsrPlan, PlanError> {
        self.check().map_err(PlanError::Refused)?;
        self.check_sparse(a)?;
        let num_lines = a.num_panels() as u64 * self.window.rows as u64;
        if num_lines > i32::MAX as u64 - 1024 {
            let (size, most) = (num_lines, i32::MAX as u64 - 1024);
            return Err(PlanError::Refused(Refusal::Size { size, most }));
        }
        let configuration = CONFIGURATIONS
            .iter()
            .filter(|configuration| self.serves(configuration))
            .filter(|configuration| match width {
                TileWidth::Auto => true,
                TileWidth::Columns(columns) => configuration.tile_n == columns,
            })
            .min_by_key(|configuration| self.preference(configuration))
            .ok_or(PlanError::Refused(match width {
                TileWidth::Auto => Refusal::Window { window: self.window },
                TileWidth::Columns(columns) => Refusal::Tile { window: self.window, columns },
            }))?;
        let panels_of_b = self.num_cols.div_ceil(configuration.tile_n) as u32;
        Ok(WcsrPlan {
            problem: *self,
            configuration,
            schedule: Schedule::new(a.window_offsets, panels_of_b, multiprocessors, configuration),
            num_panels: a.num_panels(),
            is_ordered: a.order.is_some(),
        })
    }

    /// Smaller is better: no more columns than are needed, then as few tiles as can be, since each reads A once.
    fn preference(&self, configuration: &Configuration) -> (usize, usize) {
        let tiles = self.num_cols.div_ceil(configuration.tile_n).max(1);
        // A wide tile that is mostly empty costs what a narrow one does not; up to a third more columns it is worth its width.
        let wasteful = tiles * configuration.tile_n * 3 > self.num_cols.next_multiple_of(64).max(64) * 4;
        (usize::from(wasteful), tiles)
    }
}

const fn kernel_dtype(dtype: Dtype) -> Option<KernelDtype> {
    match dtype {
        Dtype::Bf16 => Some(KernelDtype::Bf16),
        Dtype::F16 => Some(KernelDtype::F16),
        Dtype::F32 | Dtype::F64 => None,
    }
}

impl WcsrPlan {
    /// The problem.
    pub fn problem(&self) -> &WcsrSpmm {
        &self.problem
    }

    /// The kernel.
    pub fn configuration(&self) -> &'static Configuration {
        self.configuration
    }

    /// Blocks of the launch.
    pub fn grid(&self) -> u32 {
        self.schedule.dealt.num_workers()
    }

    /// Tiles: windows times panels of B, those of split windows once for each part.
    pub fn num_tiles(&self) -> usize {
        self.schedule.dealt.tiles.iter().map(|tile| tile.windows as usize).sum()
    }

    /// Tiles of C that are summed up from parts by a second kernel.
    pub fn num_splits(&self) -> usize {
        self.schedule.splits.len()
    }

    /// The largest share of work over the mean share: 1 is perfect balance.
    pub fn imbalance(&self) -> f64 {
        self.schedule.dealt.imbalance()
    }

    /// Memory for the sums of parts, in bytes, for the time of a launch.
    pub fn workspace_bytes(&self) -> usize {
        let tile = self.configuration.window_rows * self.configuration.tile_n;
        self.schedule.num_slots as usize * tile * size_of::<f32>()
    }
}

impl fmt::Display for WcsrPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} tiles of {}x{} on {} workers, {} of them parts, {} stages of {} columns, imbalance {:.2}",
            self.configuration.spec.name,
            self.num_tiles(),
            self.configuration.window_rows,
            self.configuration.tile_n,
            self.grid(),
            self.schedule.num_slots,
            self.configuration.stages,
            self.configuration.stage_panels * kernels_gpu::wcsr::PANEL_COLS,
            self.imbalance()
        )?;
        if self.is_ordered { f.write_str(", rows of C put back in their own order") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
