//! The contract of the attention kernels, kept by one thread a block in the plainest way: what the host hands to a kernel
//! can be tested without one.

use hopper_sim::{EncodedTensorMap, TensorElement, TensorMap};
use hopper_sparse::{bf16, f16};
use hopper_std::{KernelSpec, thread};
use kernels_gpu::attention::{Arguments, Configuration, Dtype};

const ROWS: usize = 48;
const KEYS: usize = 40;

static SPEC: KernelSpec = KernelSpec::new("attention_plain", 32, 1, 1, 0);

/// For each type.
pub static CONFIGURATIONS: [Configuration; 2] = [of(Dtype::Bf16), of(Dtype::F16)];

const fn of(dtype: Dtype) -> Configuration {
    Configuration { spec: &SPEC, dtype, head_dim: 256, rows: ROWS, keys: KEYS, masked: false, simulate: attend }
}

/// The address of an element, if it is within the map's bounds.
fn element(map: &TensorMap, at: [i64; 4]) -> Option<*mut u16> {
    let inside = at.iter().zip(&map.dims).all(|(&at, &extent)| (0..extent as i64).contains(&at));
    let outer: i64 = at[1..].iter().zip(&map.strides).map(|(&at, &stride)| at * stride as i64).sum();
    inside.then(|| map.base.wrapping_offset((2 * at[0] + outer) as isize).cast())
}

fn load(map: &TensorMap, at: [i64; 4]) -> f32 {
    // SAFETY: what lies within the bounds of the launch's maps is memory of the launch.
    element(map, at).map_or(0.0, |address| widen(map.element, unsafe { address.read() }))
}

fn widen(element: TensorElement, bits: u16) -> f32 {
    if element == TensorElement::Bf16 { bf16::from_bits(bits).to_f32() } else { f16::from_bits(bits).to_f32() }
}

fn round(element: TensorElement, value: f32) -> u16 {
    if element == TensorElement::Bf16 { bf16::from_f32(value).to_bits() } else { f16::from_f32(value).to_bits() }
}

/// # Safety
/// The launch contract of [`Arguments`], for maps of the simulator.
unsafe fn attend(maps: [*const u8; 4], arguments: Arguments) {
    if thread::thread_idx_x() != 0 {
        return;
    }
    // SAFETY: the addresses are those of maps that live as long as the launch.
    let maps = maps.map(|map| unsafe { &*map.cast::<EncodedTensorMap>() }.map());
    let block = thread::block_idx_x();
    // SAFETY: there is an offset more than there are blocks.
    let [begin, end] = [block, block + 1].map(|worker| unsafe { arguments.tile_offsets.get(worker) });
    for tile in begin..end {
        // SAFETY: the list has three entries for each tile.
        let entries = [0, 1, 2].map(|entry| unsafe { arguments.tiles.get(3 * tile + entry) });
        attend_tile(maps, arguments, entries);
    }
}

fn attend_tile([q, o, k, v]: [&TensorMap; 4], arguments: Arguments, entries: [[u32; 4]; 3]) {
    let [
        [query_token, query_outer, query_head, key_head],
        [key_token, key_outer, first_tile, end_tile],
        [row, num_queries, num_keys, lse_index],
    ] = entries.map(|entry| entry.map(|word| i64::from(word as i32)));
    let columns = q.dims[0] as i64;
    for at in 0..ROWS as i64 {
        let query = |d| [d, query_token + at, query_head, query_outer];
        let diagonal = row + at + num_keys - num_queries;
        let (mut scores, mut keys) = (Vec::new(), Vec::new());
        for key in first_tile * KEYS as i64..end_tile * KEYS as i64 {
            let seen = diagonal - i64::from(arguments.left)..=diagonal + i64::from(arguments.right);
            if key >= num_keys || !seen.contains(&key) {
                continue;
            }
            let place = [0, key_token + key, key_head, key_outer];
            let product: f32 =
                (0..columns).map(|d| load(q, query(d)) * load(k, [d, place[1], place[2], place[3]])).sum();
            // For powers of 2.
            let score = arguments.scale * product;
            scores.push(if arguments.softcap == 0.0 { score } else { arguments.softcap * score.tanh() });
            keys.push(place);
        }
        let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let exponentials: Vec<f32> = scores.iter().map(|score| (score - most).exp2()).collect();
        let sum: f32 = exponentials.iter().sum();
        for d in 0..columns {
            let value: f32 = exponentials
                .iter()
                .zip(&keys)
                .map(|(&exponential, &[_, token, head, outer])| {
                    widen(q.element, round(q.element, exponential)) * load(v, [d, token, head, outer])
                })
                .sum();
            if let Some(address) = element(o, query(d)) {
                // SAFETY: what lies within the bounds of the map is memory of the launch, and no other tile has the row.
                unsafe { address.write(round(o.element, if keys.is_empty() { 0.0 } else { value / sum })) };
            }
        }
        if !arguments.lse.is_null() && row + at < num_queries {
            let lse = (most + sum.log2()) * core::f32::consts::LN_2;
            // SAFETY: the array has a place for each row.
            unsafe { arguments.lse.add((lse_index + at) as u32 as usize).write(lse) };
        }
    }
}
