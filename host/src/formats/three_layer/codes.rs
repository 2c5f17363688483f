//! Codes of groups: which of a group's four columns its two stored values are in, and what of it is surplus.

/// The code of a group by its occupancy, bit p for column p: bits 0 and 1 are the column of the first value, bits 2 and 3 that of the second.
///
/// Two of the nonzeros are stored. A third one is in the column of the first value plus two, modulo four: so the code of the second layer
/// follows from the first one's, and its first value is the surplus. With one nonzero or none the columns decrease, which no other group's
/// do but that of 1: then the place of the other value is free.
pub(super) const CODES: [u8; 16] = [
    0x3, // none: both free
    0x2, 0x6, 0x4, // 0; 1; 0 1
    0xb, 0x8, 0x9, 0x4, // 2; 0 2; 1 2; 0 1 and 2
    0x7, 0xc, 0xd, 0x1, // 3; 0 3; 1 3; 1 0 and 3
    0xe, 0xc, 0x9, 0x4, // 2 3; 0 3 and 2; 1 2 and 3; 0 1 and 2 3
];

/// The columns of the two values of a group with this code.
pub(super) const fn columns(code: u8) -> [usize; 2] {
    [(code & 3) as usize, (code >> 2 & 3) as usize]
}

/// The code of the group in the second layer.
pub(super) const fn second_layer(code: u8) -> u8 {
    code ^ 0xa
}

#[cfg(test)]
mod tests {
    use kernels_gpu::three_layer::layout::{SECOND_LAYER, free_slots};

    use super::*;

    #[test]
    fn every_occupancy_has_its_places() {
        for (mask, &code) in CODES.iter().enumerate() {
            let occupied = |column: usize| mask >> column & 1 == 1;
            let ([a, b], [c, d]) = (columns(code), columns(second_layer(code)));
            assert!(a != b && c != d, "{mask:04b}: no value has the place of another");
            assert_eq!(u32::from(second_layer(code)), (u32::from(code) ^ SECOND_LAYER) & 0xf);
            let free = free_slots(u32::from(code));
            let stored =
                [a, b].into_iter().enumerate().filter(|&(slot, _)| free >> slot & 1 == 0).map(|(_, column)| column);
            let stored: Vec<_> = stored.collect();
            assert!(stored.iter().all(|&column| occupied(column)), "{mask:04b}: what is not free is a nonzero");
            let surplus: Vec<_> = (0..4).filter(|&column| occupied(column) && !stored.contains(&column)).collect();
            match surplus[..] {
                [] => {}
                [one] => assert_eq!(one, c, "{mask:04b}: the surplus is the first value"),
                [one, two] => assert_eq!([one, two], [c, d], "{mask:04b}"),
                _ => panic!("{mask:04b}: two of four at most"),
            }
        }
    }
}
