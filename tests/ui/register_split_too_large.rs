//! A multiprocessor has 65,536 registers: 40 + 2 x 232 for each of 128 threads fit, 40 + 2 x 240 do not.

use hopper_std::sm90::RegisterBudget;

const FITS: () = RegisterBudget::<40, 232, 2>::FITS;
const HANGS: () = RegisterBudget::<40, 240, 2>::FITS;

fn main() {
    let _ = (FITS, HANGS);
}
