//! A map whose box is one tile does not fill another.

use hopper_std::sm90::{BlockScope, EmptySlot, Shared, Swizzle128, TensorMapRef, Tile};

type A = Tile<u16, 128, 64, Swizzle128>;
type B = Tile<u16, 64, 64, Swizzle128>;

fn fill(slot: EmptySlot<A, BlockScope>, tile: Shared<A>, map: TensorMapRef<B>) {
    unsafe { slot.load_2d(tile, map, [0, 0]) };
}

fn main() {
    let _: fn(EmptySlot<A, BlockScope>, Shared<A>, TensorMapRef<B>) = fill;
}
