//! A block of 384 threads is launched with 168 registers for each: 40 + 2 x 232 fit, 32 + 2 x 240 do not, although the
//! multiprocessor has 65,536.

use hopper_std::sm90::RegisterBudget;

const FITS: () = RegisterBudget::<40, 232, 2>::FITS;
const HANGS: () = RegisterBudget::<32, 240, 2>::FITS;

fn main() {
    let _ = (FITS, HANGS);
}
