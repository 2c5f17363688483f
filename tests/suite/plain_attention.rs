//! The contract of the attention kernels, kept by one thread a block in the plainest way: what the host hands to a kernel
//! can be tested without one.

use hopper_sim::{EncodedTensorMap, TensorElement, TensorMap};
use hopper_sparse::{bf16, f16};
use hopper_std::{KernelSpec, thread};
use kernels_gpu::attention::{Arguments, COLUMNS, Configuration, Dtype, Serves};

const ROWS: usize = 48;
const KEYS: usize = 40;

/// Rows and keys of a tile with a list.
const LISTED: usize = 64;

static SPEC: KernelSpec = KernelSpec::new("attention_plain", 32, 1, 1, 0);

/// Columns of the maps, at most.
const HEAD_DIM: usize = 256;

/// For each type: for any sequences, for those of one query, and for lists of keys.
pub static CONFIGURATIONS: [Configuration; 6] = [
    of(Dtype::Bf16, Serves::Either),
    of(Dtype::F16, Serves::Either),
    of(Dtype::Bf16, Serves::FewRows),
    of(Dtype::F16, Serves::FewRows),
    of_lists(Dtype::Bf16),
    of_lists(Dtype::F16),
];

const fn of(dtype: Dtype, serves: Serves) -> Configuration {
    let simulate = attend::<ROWS, KEYS, false>;
    Configuration { spec: &SPEC, dtype, head_dim: HEAD_DIM, rows: ROWS, keys: KEYS, serves, simulate }
}

const fn of_lists(dtype: Dtype) -> Configuration {
    let simulate = attend::<LISTED, LISTED, true>;
    Configuration { rows: LISTED, keys: LISTED, simulate, ..of(dtype, Serves::Blocks) }
}

/// A row of a map, token, head, outer and shift coordinate; `None` beyond the map's bounds.
fn row(map: &TensorMap, at: [i64; 4]) -> Option<*mut u16> {
    let inside = at.iter().zip(&map.dims[1..]).all(|(&at, &extent)| (0..extent as i64).contains(&at));
    let offset =
        at.iter().zip(&map.strides).fold(0i64, |sum, (&at, &stride)| sum.wrapping_add(at.wrapping_mul(stride as i64)));
    inside.then(|| map.base.wrapping_offset(offset as isize).cast())
}

/// The elements of a row; zeros beyond the map's bounds.
fn load(map: &TensorMap, at: [i64; 4]) -> Vec<f32> {
    let columns = map.dims[0] as usize;
    let Some(row) = row(map, at) else { return vec![0.0; columns] };
    // SAFETY: what lies within the bounds of the launch's maps is memory of the launch.
    (0..columns).map(|column| widen(map.element, unsafe { row.add(column).read() })).collect()
}

fn widen(element: TensorElement, bits: u16) -> f32 {
    if element == TensorElement::Bf16 { bf16::from_bits(bits).to_f32() } else { f16::from_bits(bits).to_f32() }
}

fn round(element: TensorElement, value: f32) -> u16 {
    if element == TensorElement::Bf16 { bf16::from_f32(value).to_bits() } else { f16::from_f32(value).to_bits() }
}

/// # Safety
/// The launch contract of [`Arguments`], for maps of the simulator.
unsafe fn attend<const ROWS: usize, const KEYS: usize, const LISTS: bool>(
    [q, o, k, v, ..]: [*const u8; 6],
    arguments: Arguments,
) {
    if thread::thread_idx_x() != 0 {
        return;
    }
    // SAFETY: the addresses are those of maps that live as long as the launch.
    let maps = [q, o, k, v].map(|map| unsafe { &*map.cast::<EncodedTensorMap>() }.map());
    let block = thread::block_idx_x();
    // SAFETY: there is an offset more than there are blocks.
    let [begin, end] = [block, block + 1].map(|worker| unsafe { arguments.tile_offsets.get(worker) });
    for tile in begin..end {
        // SAFETY: the list has three entries for each tile.
        let entries = [0, 1, 2].map(|entry| unsafe { arguments.tiles.get(3 * tile + entry) });
        let [first, end] = [entries[1][2], entries[1][3]];
        let keys = (first..end).flat_map(|position| keys_at::<KEYS, LISTS>(arguments, position)).collect();
        attend_tile::<ROWS>(maps, arguments, entries, keys);
    }
}

/// The keys of a tile of keys: the next after those of the tiles before, or what a list says.
fn keys_at<const KEYS: usize, const LISTS: bool>(arguments: Arguments, position: u32) -> Vec<i64> {
    let keys = KEYS as u32;
    let consecutive = |first: u32| (first..first + keys).map(i64::from).collect();
    if !LISTS {
        return consecutive(position * keys);
    }
    // SAFETY: a tile's positions are in the list of entries.
    match unsafe { arguments.blocks.get(position) } {
        entry if entry & COLUMNS == 0 => consecutive(entry),
        entry => {
            let first = entry & !COLUMNS;
            // SAFETY: an entry's columns are in the list of columns.
            (first..first + keys).map(|column| i64::from(unsafe { arguments.columns.get(column) })).collect()
        }
    }
}

fn attend_tile<const ROWS: usize>(
    [q, o, k, v]: [&TensorMap; 4],
    arguments: Arguments,
    entries: [[u32; 4]; 3],
    mut keys: Vec<i64>,
) {
    let [
        [query_token, query_outer, query_head, key_head],
        [key_token, key_outer, _, _],
        [first_diagonal, num_rows, num_keys, lse_index],
    ] = entries.map(|entry| entry.map(|word| i64::from(word as i32)));
    keys.retain(|&key| key < num_keys);
    let loaded = |map| -> Vec<Vec<f32>> {
        keys.iter()
            .map(|&key| load(map, [key_token + key, key_head, key_outer, i64::from(arguments.key_shift)]))
            .collect()
    };
    let (key_rows, value_rows) = (loaded(k), loaded(v));
    for at in 0..ROWS as i64 {
        let place = [query_token + at, query_head, query_outer, i64::from(arguments.query_shift)];
        let query = load(q, place);
        let diagonal = first_diagonal + at * i64::from(arguments.diagonal_step);
        let seen = diagonal - i64::from(arguments.left)..=diagonal + i64::from(arguments.right);
        let (scores, values): (Vec<f32>, Vec<&[f32]>) = keys
            .iter()
            .zip(key_rows.iter().zip(&value_rows))
            .filter(|(key, _)| seen.contains(key))
            .map(|(_, (key, value))| {
                let product: f32 = query.iter().zip(key).map(|(q, k)| q * k).sum();
                // For powers of 2.
                let score = arguments.scale * product;
                (if arguments.softcap == 0.0 { score } else { arguments.softcap * score.tanh() }, value.as_slice())
            })
            .unzip();
        let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let (mut sum, mut result) = (0.0, vec![0.0; query.len()]);
        for (score, value) in scores.iter().zip(&values) {
            let exponential = (score - most).exp2();
            sum += exponential;
            let rounded = widen(q.element, round(q.element, exponential));
            result.iter_mut().zip(*value).for_each(|(to, element)| *to += rounded * element);
        }
        if !arguments.partial.is_null() {
            for (column, value) in result.iter().enumerate().filter(|_| at < num_rows) {
                let value = if scores.is_empty() { 0.0 } else { value / sum };
                let to = (lse_index + at) as u32 as usize * HEAD_DIM + column;
                // SAFETY: the array has a line for each row.
                unsafe { arguments.partial.add(to).write(value) };
            }
        } else if let Some(to) = row(o, place) {
            for (column, value) in result.iter().enumerate() {
                let value = if scores.is_empty() { 0.0 } else { value / sum };
                // SAFETY: what lies within the bounds of the map is memory of the launch, and no other tile has the row.
                unsafe { to.add(column).write(round(o.element, value)) };
            }
        }
        if !arguments.lse.is_null() && at < num_rows {
            let lse = (most + sum.log2()) * core::f32::consts::LN_2;
            // SAFETY: the array has a place for each row.
            unsafe { arguments.lse.add((lse_index + at) as u32 as usize).write(lse) };
        }
    }
}
