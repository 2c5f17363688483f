//! The GPU kernels in the simulator.
#![cfg(feature = "sim")]

mod suite;

use hopper_sparse::formats::{BlockShape, Layout};
use hopper_sparse::ops::bcsr::{BcsrSpmm, Cluster};
use hopper_sparse::reference::naive::Unit;
use hopper_sparse::sim::{Mode, Schedule, Simulated};
use hopper_sparse::{Element, bf16};
use suite::operands::{Padding, Random, Sparse};
use suite::{Case, Format, Placement, Specials};

#[test]
fn one() {
    let placed = Placement { layout: Layout::RowMajor, padding: Padding::Tight };
    let mut random = Random::fresh();
    let case = Case {
        format: Format::Bcsr(BlockShape { rows: 128, cols: 64 }),
        shape: (130, 264, 200),
        density: 0.5,
        b: placed,
        c: placed,
        alpha: 1.0,
        beta: 0.0,
        seed: random.next(),
        unit: Unit::TensorCore,
    };
    for mode in Mode::ALL {
        let start = std::time::Instant::now();
        suite::check_case::<bf16, bf16>(&case, Specials::None, &|alpha, a, b, beta, c: &mut _| match a {
            Sparse::Bcsr(a) => {
                let plan = BcsrSpmm::new(&a, b.num_cols(), bf16::DTYPE, b.layout(), c.layout()).plan_with(
                    &a,
                    2,
                    Cluster::One,
                )?;
                println!("{plan}");
                let device = Simulated::new(Schedule::new(mode, 1));
                let report = plan.simulate(&device, &a, alpha as f32, b, beta as f32, c)?;
                println!("{report} {}", report.num_instructions);
                report.assert_clean();
                Ok(())
            }
            Sparse::Csr(_) => unreachable!(),
        });
        println!("{mode:?} {:?}", start.elapsed());
    }
}
