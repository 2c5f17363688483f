//! Whether what was written to run beside products does: the assembler may move a wait for products before the
//! arithmetic that is to hide them, and no test of results would see it.
//!
//! A step of attention issues S = Q K^T and O += P V, waits for S alone (`WARPGROUP.DEPBAR.LE gsb0, 0x1`), does the softmax,
//! and waits for O (`0x0`). Its powers of 2 must lie between both waits.

/// Powers of 2 that may come after the wait for O: those of the factors of earlier sums.
const MOST_LATE: usize = 4;

/// Whether a kernel has steps that must overlap.
pub(crate) fn is_checked(kernel: &str) -> bool {
    kernel.starts_with("attention_") && !kernel.starts_with("attention_combine_")
}

/// Why the machine code of an attention kernel does not overlap its softmax with products, if it does not.
pub(crate) fn complaint(kernel: &str, code: &str) -> Option<String> {
    let mut place = Place::Elsewhere;
    let (mut beside, mut late, mut steps) = (0, 0, 0);
    for line in code.lines() {
        if line.contains("WARPGROUP.DEPBAR.LE gsb0, 0x1") {
            (place, steps) = (Place::BesideProducts, steps + 1);
        } else if line.contains("WARPGROUP.DEPBAR.LE gsb0, 0x0") {
            place = if place == Place::BesideProducts { Place::AfterProducts } else { Place::Elsewhere };
        } else if line.contains("HGMMA") || line.contains("UTMASTG") {
            place = Place::Elsewhere;
        } else if line.contains("MUFU.EX2") {
            match place {
                Place::BesideProducts => beside += 1,
                Place::AfterProducts => late += 1,
                Place::Elsewhere => {}
            }
        }
    }
    if steps == 0 {
        return Some(format!("{kernel} has no step that waits for its scores alone"));
    }
    (late > MOST_LATE || beside <= late).then(|| {
        format!("{kernel} does not overlap: {beside} powers of 2 run beside products, {late} after the wait for them")
    })
}

/// Where an instruction stands in a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Between the wait for S and the one for O.
    BesideProducts,
    /// After the wait for O, before the next product or store.
    AfterProducts,
    /// In no step.
    Elsewhere,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(before: usize, after: usize) -> String {
        let powers = |count| "  MUFU.EX2 R1, R2 ;\n".repeat(count);
        format!(
            "  HGMMA.64x128x16.F32.BF16 R24 ;\n  WARPGROUP.DEPBAR.LE gsb0, 0x1 ;\n{}  WARPGROUP.DEPBAR.LE gsb0, 0x0 ;\n{}  UTMASTG.5D [UR8] ;\n{}",
            powers(before),
            powers(after),
            powers(50)
        )
    }

    #[test]
    fn powers_after_the_wait_are_found() {
        assert_eq!(complaint("attention_x", &step(130, 0)), None);
        assert_eq!(complaint("attention_x", &step(66, 2)), None);
        let sentence = complaint("attention_x", &step(64, 66)).expect("no overlap");
        assert_eq!(
            sentence,
            "attention_x does not overlap: 64 powers of 2 run beside products, 66 after the wait for them"
        );
        assert!(complaint("attention_x", "  HGMMA ;\n").is_some());
    }

    #[test]
    fn what_combines_has_no_products() {
        assert!(is_checked("attention_bf16_d64") && !is_checked("attention_combine_bf16") && !is_checked("bcsr_bf16"));
    }
}
