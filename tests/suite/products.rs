//! Products by the GPU kernels, on whatever runs them: a device, or the simulator.

use hopper_sparse::formats::{BcsrView, BlockShape, CsrView, DenseView, DenseViewMut, Layout};
use hopper_sparse::ops::bcsr::Cluster;
use hopper_sparse::ops::csr::RowSharing;
use hopper_sparse::reference::naive::Unit;
use hopper_sparse::{Element, Result, bf16, f16};

use super::operands::{Padding, Random, Sparse};
use super::{Case, Format, Placement, Specials};

/// Plans a product and runs its kernel.
pub trait Runner {
    /// C = alpha A B + beta C, A in blocks.
    fn multiply_bcsr<T: Element, U: Element>(
        &self,
        cluster: Cluster,
        factors: (f64, f64),
        a: BcsrView<'_, T>,
        b: DenseView<'_, T>,
        c: &mut DenseViewMut<'_, U>,
    ) -> Result<()>;

    /// C = alpha A B + beta C, A by entries.
    fn multiply_csr<T: Element, U: Element>(
        &self,
        sharing: RowSharing,
        factors: (f64, f64),
        a: CsrView<'_, T>,
        b: DenseView<'_, T>,
        c: &mut DenseViewMut<'_, U>,
    ) -> Result<()>;
}

/// Puts the kernels of a block shape through the suite.
pub fn check_bcsr<T: Element, U: Element>(runner: &impl Runner, block: BlockShape, cluster: Cluster) {
    super::check::<T, U>(Format::Bcsr(block), Unit::TensorCore, |alpha, a, b, beta, c| {
        multiply(runner, cluster, alpha, a, b, beta, c)
    });
}

/// Puts the kernels for single entries through the suite.
pub fn check_csr<T: Element, U: Element>(runner: &impl Runner) {
    super::check::<T, U>(Format::Csr, Unit::Core, |alpha, a, b, beta, c| {
        multiply(runner, Cluster::Auto, alpha, a, b, beta, c)
    });
}

/// Runs one problem; blocks are multiplied in clusters as `cluster` says.
pub fn check_case<T: Element, U: Element>(runner: &impl Runner, case: &Case, specials: Specials, cluster: Cluster) {
    super::check_case::<T, U>(case, specials, &|alpha, a, b, beta, c: &mut _| {
        multiply(runner, cluster, alpha, a, b, beta, c)
    });
}

/// Every width of load of the kernels for single entries, and several chunks of columns: numbers of columns that the suite
/// does not have.
pub fn check_csr_widths(runner: &impl Runner, (num_rows, depth): (usize, usize)) {
    let mut random = Random::fresh();
    for num_cols in [2, 4, 6, 12, 24, 66, 132, 264, 520, 1027] {
        for (alpha, beta) in [(1.0, 0.0), (-0.5, 1.5)] {
            let placed = Placement { layout: Layout::RowMajor, padding: Padding::Tight };
            let case = Case {
                format: Format::Csr,
                shape: (num_rows, num_cols, depth),
                density: 0.2,
                b: placed,
                c: placed,
                alpha,
                beta,
                seed: random.next(),
                unit: Unit::Core,
            };
            check_case::<bf16, bf16>(runner, &case, Specials::Some, Cluster::Auto);
            check_case::<f16, f32>(runner, &case, Specials::Some, Cluster::Auto);
            check_case::<f32, f32>(runner, &case, Specials::Some, Cluster::Auto);
        }
    }
}

fn multiply<T: Element, U: Element>(
    runner: &impl Runner,
    cluster: Cluster,
    alpha: f64,
    a: Sparse<'_, T>,
    b: DenseView<'_, T>,
    beta: f64,
    c: &mut DenseViewMut<'_, U>,
) -> Result<()> {
    match a {
        Sparse::Wcsr(_) => unreachable!("the suite of windows has runners of its own"),
        Sparse::Bcsr(a) => runner.multiply_bcsr(cluster, (alpha, beta), a, b, c),
        Sparse::Csr(a) => runner.multiply_csr(RowSharing::default(), (alpha, beta), a, b, c),
    }
}
