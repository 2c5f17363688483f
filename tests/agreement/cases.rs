//! The table: probes, and operands that are small whole numbers, so that every sum is exact.

use half::{bf16, f16};
use hopper_sim::{TensorElement, TensorSwizzle};
use hopper_std::KernelSpec;
use kernels_gpu::probe::{self, product, tensor, warp};

/// Both operands of a product in shared memory.
pub type SharedProduct = unsafe fn(*const u32, u32, u32, u64, u64, *mut u32);
/// The left operand in registers.
pub type RegisterProduct = unsafe fn(*const u32, u32, u32, *const u32, u64, *mut u32);
/// The left operand sparse.
pub type SparseProduct = unsafe fn(*const u32, u32, u32, u64, u64, *const u32, *mut u32);
/// A box to shared memory.
pub type Load = unsafe fn(*const u8, i32, i32, i32, i32, i32, u32, u32, *mut u32, u32);
/// A box from shared memory.
pub type Store = unsafe fn(*const u8, i32, i32, i32, i32, i32, u32, *const u32, u32);
/// Matrices to registers.
pub type MatrixLoad = unsafe fn(*const u32, u32, *const u32, *mut u32);
/// Matrices from registers.
pub type MatrixStore = unsafe fn(*const u32, *const u32, *mut u32, u32);
/// A word of each lane to a word of each lane.
pub type Words = unsafe fn(*const u32, *mut u32);
/// A word and a lane of each lane to four words of each lane.
pub type Shuffles = unsafe fn(*const u32, *const u32, *mut u32);

/// A tensor, with its contents and the box that one copy moves.
pub struct Tensor {
    /// The type of the elements.
    pub element: TensorElement,
    /// Elements of each dimension.
    pub dims: Vec<u64>,
    /// Bytes from one to the next in each dimension but the first.
    pub strides: Vec<u64>,
    /// Elements of the box.
    pub box_dims: Vec<u32>,
    /// How the box lies in shared memory.
    pub swizzle: TensorSwizzle,
    /// All its bytes.
    pub words: Vec<u32>,
}

impl Tensor {
    /// Bytes of one box.
    pub fn box_bytes(&self) -> u32 {
        self.box_dims.iter().product::<u32>() * self.element.bytes()
    }
}

/// What is launched, with what. The result of each is a list of words.
pub enum Probe {
    /// The result is D.
    SharedProduct { kernel: SharedProduct, operands: Vec<u32>, scale_d: u32, a: u64, b: u64, d: Vec<u32> },
    /// The result is D.
    RegisterProduct { kernel: RegisterProduct, operands: Vec<u32>, scale_d: u32, a: Vec<u32>, b: u64, d: Vec<u32> },
    /// The result is D.
    SparseProduct {
        kernel: SparseProduct,
        operands: Vec<u32>,
        scale_d: u32,
        a: u64,
        b: u64,
        metadata: Vec<u32>,
        d: Vec<u32>,
    },
    /// The result is `bytes` of shared memory.
    Load { kernel: Load, tensor: Tensor, at: [i32; 5], offset: u32, bytes: u32 },
    /// The result is the tensor.
    Store { kernel: Store, tensor: Tensor, at: [i32; 5], offset: u32, operands: Vec<u32> },
    /// The result is four words of each lane.
    MatrixLoad { kernel: MatrixLoad, operands: Vec<u32>, offsets: Vec<u32> },
    /// The result is `bytes` of shared memory.
    MatrixStore { kernel: MatrixStore, words: Vec<u32>, offsets: Vec<u32>, bytes: u32 },
    /// The result is a word of each lane.
    Words { kernel: Words, words: Vec<u32> },
    /// The result is four words of each lane.
    Shuffles { kernel: Shuffles, words: Vec<u32>, lanes: Vec<u32> },
}

/// One line of the table.
pub struct Case {
    /// What it is.
    pub name: String,
    /// The kernel's specification.
    pub spec: &'static KernelSpec,
    /// The launch.
    pub probe: Probe,
}

/// Carries out cases: a device, or the simulator.
pub trait Runner {
    /// The result, as the case's [`Probe`] says.
    fn run(&self, case: &Case) -> Vec<u32>;
}

/// All cases.
pub fn all() -> Vec<Case> {
    let mut table = Table { random: 0x5eed, cases: Vec::new() };
    table.products();
    table.sparse_products();
    table.loads();
    table.stores();
    table.warps();
    table.cases
}

fn spec(name: &str) -> &'static KernelSpec {
    probe::specs().find(|spec| spec.name == name).expect("a probe")
}

/// The name of an entry, and the entry.
macro_rules! entries {
    ($module:ident: $($name:ident $(($($with:expr),*))?),* $(,)?) => {
        [$((stringify!($name), $module::entries::$name as _, $($($with),*)?)),*]
    };
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Major {
    K,
    Mn,
}

#[derive(Clone, Copy)]
enum Half {
    Bf16,
    F16,
}

impl Half {
    fn bits(self, value: i32) -> u16 {
        match self {
            Self::Bf16 => bf16::from_f32(value as f32).to_bits(),
            Self::F16 => f16::from_f32(value as f32).to_bits(),
        }
    }
}

/// How an operand lies: a descriptor that begins at 0, and the bytes that it may reach.
#[derive(Clone)]
struct Layout {
    text: String,
    bits: u64,
    bytes: u32,
}

/// The swizzles, with their number in a descriptor.
const SWIZZLES: [(u32, u64); 3] = [(32, 3), (64, 2), (128, 1)];

/// Ways in which `num_mn` by `num_k` elements may lie.
fn layouts(major: Major, num_mn: u32, num_k: u32) -> Vec<Layout> {
    let mut layouts = Vec::new();
    let mut add = |what: &str, start: u32, leading: u32, stride: u32, mode: u64, bytes: u32| {
        let field = |bytes: u32| u64::from(bytes >> 4);
        layouts.push(Layout {
            text: format!("{what} at {start}, leading {leading}, stride {stride}"),
            bits: field(start) | field(leading) << 16 | field(stride) << 32 | mode << 62,
            bytes,
        });
    };
    // Core matrices next to each other along one index, then along the other, then with gaps.
    let (num_along_k, num_along_mn) = (num_k / 8, num_mn / 8);
    for (along_k, along_mn) in [(128, 128 * num_along_k), (128 * num_along_mn, 128), (256, 256 * num_along_k + 16)] {
        let bytes = (num_along_k - 1) * along_k + (num_along_mn - 1) * along_mn + 128;
        add("plain", 0, along_k, along_mn, 0, bytes);
        add("plain", 16, along_k, along_mn, 0, bytes + 16);
    }
    for (span, mode) in SWIZZLES {
        let what = format!("swizzle {span}");
        let atom = 8 * span;
        match major {
            Major::K => {
                let line = num_k * 2;
                for start in (0..span).step_by(16).filter(|start| start + line <= span) {
                    add(&what, start, 16, atom, mode, num_along_mn * atom);
                }
                if line <= span && num_mn <= 64 {
                    add(&what, 0, 16, 2 * atom, mode, 2 * num_along_mn * atom);
                    // Not at a multiple of 1024 bytes, where the span is short.
                    add(&what, atom, 16, atom, mode, (num_along_mn + 1) * atom);
                }
            }
            Major::Mn => {
                let chunks = (num_mn * 2).div_ceil(span);
                let bytes = chunks * num_along_k * atom;
                add(&what, 0, num_along_k * atom, atom, mode, bytes);
                add(&what, 0, atom, chunks * atom, mode, bytes);
                // Between eight lines of K other chunks may lie.
                add(&what, atom, atom, 2 * chunks * atom, mode, 2 * bytes);
                if num_mn * 2 < span {
                    add(&what, span - num_mn * 2, num_along_k * atom, atom, mode, bytes);
                }
            }
        }
    }
    layouts
}

struct Table {
    random: u64,
    cases: Vec<Case>,
}

impl Table {
    /// SplitMix64 (Steele, Lea and Flood, 2014).
    fn next(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// -8 to 8.
    fn small(&mut self) -> i32 {
        (self.next() % 17) as i32 - 8
    }

    /// Words that are no NaNs, wherever they are cut: by a NaN the simulator marks a register that is in flight.
    fn words(&mut self, count: u32) -> Vec<u32> {
        let byte = |byte: u8| if byte & 0x7f == 0x7f { byte ^ 1 } else { byte };
        (0..count).map(|_| u32::from_le_bytes((self.next() as u32).to_le_bytes().map(byte))).collect()
    }

    fn halves(&mut self, half: Half, num_words: u32) -> Vec<u32> {
        (0..num_words).map(|_| u32::from(half.bits(self.small())) | u32::from(half.bits(self.small())) << 16).collect()
    }

    fn floats(&mut self, count: u32) -> Vec<u32> {
        (0..count).map(|_| (self.small() as f32).to_bits()).collect()
    }

    /// `num_bytes` of elements that can be added.
    fn elements(&mut self, element: TensorElement, num_bytes: u32) -> Vec<u32> {
        match element {
            TensorElement::F16 => self.halves(Half::F16, num_bytes / 4),
            TensorElement::Bf16 => self.halves(Half::Bf16, num_bytes / 4),
            TensorElement::F32 => self.floats(num_bytes / 4),
            TensorElement::F64 => {
                let of = |bits: u64| [bits as u32, (bits >> 32) as u32];
                (0..num_bytes / 8).flat_map(|_| of(f64::from(self.small()).to_bits())).collect()
            }
            TensorElement::U8 | TensorElement::U16 | TensorElement::U32 => self.words(num_bytes / 4),
        }
    }

    fn push(&mut self, name: &str, details: &str, probe: Probe) {
        self.cases.push(Case { name: format!("{name}: {details}"), spec: spec(name), probe });
    }

    fn products(&mut self) {
        use Half::{Bf16, F16};
        use Major::{K, Mn};
        let shared: [(&str, SharedProduct, Half, u32, Major, Major); 20] = entries![product:
            probe_wgmma_bf16_n8_kk(Bf16, 8, K, K),
            probe_wgmma_bf16_n8_km(Bf16, 8, K, Mn),
            probe_wgmma_bf16_n8_mk(Bf16, 8, Mn, K),
            probe_wgmma_bf16_n16_mk(Bf16, 16, Mn, K),
            probe_wgmma_bf16_n64_kk(Bf16, 64, K, K),
            probe_wgmma_bf16_n64_km(Bf16, 64, K, Mn),
            probe_wgmma_bf16_n64_mk(Bf16, 64, Mn, K),
            probe_wgmma_bf16_n256_kk(Bf16, 256, K, K),
            probe_wgmma_bf16_n256_km(Bf16, 256, K, Mn),
            probe_wgmma_bf16_n256_mk(Bf16, 256, Mn, K),
            probe_wgmma_f16_n8_kk(F16, 8, K, K),
            probe_wgmma_f16_n8_km(F16, 8, K, Mn),
            probe_wgmma_f16_n8_mk(F16, 8, Mn, K),
            probe_wgmma_f16_n16_mk(F16, 16, Mn, K),
            probe_wgmma_f16_n64_kk(F16, 64, K, K),
            probe_wgmma_f16_n64_km(F16, 64, K, Mn),
            probe_wgmma_f16_n64_mk(F16, 64, Mn, K),
            probe_wgmma_f16_n256_kk(F16, 256, K, K),
            probe_wgmma_f16_n256_km(F16, 256, K, Mn),
            probe_wgmma_f16_n256_mk(F16, 256, Mn, K),
        ];
        for (name, kernel, half, n, a_major, b_major) in shared {
            for (index, (a, b)) in pairs(layouts(a_major, 64, 16), layouts(b_major, n, 16)).into_iter().enumerate() {
                let b_start = a.bytes.next_multiple_of(1024);
                let operands = self.halves(half, (b_start + b.bytes).next_multiple_of(16) / 4);
                let d = self.floats(64 * n);
                let b_bits = b.bits + u64::from(b_start >> 4);
                let scale_d = index as u32 % 2;
                let details = format!("A {}; B {}; scale {scale_d}", a.text, b.text);
                self.push(name, &details, Probe::SharedProduct { kernel, operands, scale_d, a: a.bits, b: b_bits, d });
            }
        }
        let registers: [(&str, RegisterProduct, Half, Major); 4] = entries![product:
            probe_wgmma_bf16_n64_rk(Bf16, K),
            probe_wgmma_bf16_n64_rm(Bf16, Mn),
            probe_wgmma_f16_n64_rk(F16, K),
            probe_wgmma_f16_n64_rm(F16, Mn),
        ];
        for (name, kernel, half, b_major) in registers {
            for b in layouts(b_major, 64, 16) {
                let operands = self.halves(half, b.bytes.next_multiple_of(16) / 4);
                let (a, d) = (self.halves(half, 4 * product::THREADS), self.floats(64 * 64));
                self.push(
                    name,
                    &format!("B {}", b.text),
                    Probe::RegisterProduct { kernel, operands, scale_d: 1, a, b: b.bits, d },
                );
            }
        }
    }

    fn sparse_products(&mut self) {
        use Half::{Bf16, F16};
        use Major::{K, Mn};
        let sparse: [(&str, SparseProduct, Half, u32, Major); 8] = entries![product:
            probe_wgmma_sparse_bf16_n64_s0_k(Bf16, 0, K),
            probe_wgmma_sparse_bf16_n64_s0_m(Bf16, 0, Mn),
            probe_wgmma_sparse_bf16_n64_s1_k(Bf16, 1, K),
            probe_wgmma_sparse_bf16_n64_s1_m(Bf16, 1, Mn),
            probe_wgmma_sparse_f16_n64_s0_k(F16, 0, K),
            probe_wgmma_sparse_f16_n64_s0_m(F16, 0, Mn),
            probe_wgmma_sparse_f16_n64_s1_k(F16, 1, K),
            probe_wgmma_sparse_f16_n64_s1_m(F16, 1, Mn),
        ];
        for (name, kernel, half, selector, b_major) in sparse {
            for (a, b) in pairs(layouts(K, 64, 16), layouts(b_major, 64, 32)) {
                let b_start = a.bytes.next_multiple_of(1024);
                let operands = self.halves(half, (b_start + b.bytes).next_multiple_of(16) / 4);
                let d = self.floats(64 * 64);
                let metadata = (0..product::THREADS).map(|thread| self.metadata(thread, selector)).collect();
                let b_bits = b.bits + u64::from(b_start >> 4);
                let details = format!("A {}; B {}", a.text, b.text);
                let probe = Probe::SparseProduct { kernel, operands, scale_d: 1, a: a.bits, b: b_bits, metadata, d };
                self.push(name, &details, probe);
            }
        }
    }

    /// A thread's word: places that differ, in either order, where it is read; anything where it is not.
    fn metadata(&mut self, thread: u32, selector: u32) -> u32 {
        let anything = self.next() as u32;
        if thread % 4 / 2 != selector {
            return anything;
        }
        (0..8).fold(0, |word, group| {
            let first = (self.next() % 4) as u32;
            let second = (first + 1 + (self.next() % 3) as u32) % 4;
            word | (first | second << 2) << (4 * group)
        })
    }

    /// A tensor whose lines lie 16 bytes further apart than they must.
    fn tensor(&mut self, element: TensorElement, dims: &[u64], box_dims: &[u32], swizzle: TensorSwizzle) -> Tensor {
        let mut bytes = (dims[0] * u64::from(element.bytes())).next_multiple_of(16);
        let mut strides = Vec::new();
        for &extent in &dims[1..] {
            bytes += 16;
            strides.push(bytes);
            bytes *= extent;
        }
        let words = self.elements(element, bytes as u32);
        Tensor { element, dims: dims.to_vec(), strides, box_dims: box_dims.to_vec(), swizzle, words }
    }

    fn loads(&mut self) {
        use TensorElement::{F32, F64, U8, U16, U32};
        use TensorSwizzle::{B32, B64, B128, None};
        let kernels: [(&str, Load); 5] = entries![tensor:
            probe_tensor_1d_load,
            probe_tensor_2d_load,
            probe_tensor_3d_load,
            probe_tensor_4d_load,
            probe_tensor_5d_load,
        ];
        let boxes: [(TensorElement, &[u64], &[u32], TensorSwizzle); 17] = [
            (U16, &[1000], &[64], None),
            (U8, &[1000], &[256], None),
            (F32, &[1000], &[32], B128),
            (U16, &[100, 37], &[40, 16], None),
            (U16, &[100, 37], &[16, 16], B32),
            (U16, &[100, 37], &[32, 16], B64),
            (U16, &[100, 37], &[64, 16], B128),
            // Lines that are shorter than the swizzle's span.
            (U16, &[100, 37], &[8, 16], B32),
            (U16, &[100, 37], &[16, 16], B64),
            (U16, &[100, 37], &[24, 16], B128),
            (U8, &[100, 37], &[128, 16], B128),
            (F64, &[11, 37], &[8, 16], B64),
            (U32, &[33, 9, 7], &[32, 5, 4], B128),
            (F32, &[33, 9, 7], &[12, 5, 4], None),
            (U16, &[40, 9, 7, 5], &[16, 3, 4, 2], B32),
            (U16, &[40, 6, 5, 4, 3], &[32, 3, 2, 2, 2], B64),
            (U8, &[40, 6, 5, 4, 3], &[16, 3, 2, 2, 4], None),
        ];
        for (element, dims, box_dims, swizzle) in boxes {
            let (name, kernel) = kernels[dims.len() - 1];
            // Inside, over the ends, before the beginnings, in part, and altogether outside; an atom's beginning, and not.
            // In the contiguous dimension a box begins at a multiple of 16 bytes.
            let unit = 16 / element.bytes() as i32;
            let past = |units: i32, by: i32| -> [i32; 5] {
                core::array::from_fn(|dim| match dims.get(dim) {
                    Some(&extent) if dim == 0 => (extent as i32 - 1) / unit * unit + units * unit,
                    Some(&extent) => extent as i32 + by,
                    Option::None => 0,
                })
            };
            let places = [
                ([0; 5], 0),
                ([unit, 1, 1, 1, 1], 1024),
                (past(0, -2), 384),
                ([-unit, -1, -1, -1, 0], 128),
                ([-2 * unit, 2, 0, 1, 1], 0),
                (past(2, 9), 0),
            ];
            for (at, offset) in places {
                let tensor = self.tensor(element, dims, box_dims, swizzle);
                let bytes = (offset + 2 * tensor.box_bytes()).next_multiple_of(1024);
                let details = format!("{element:?} {dims:?}, box {box_dims:?} {swizzle:?} at {at:?}, offset {offset}");
                self.push(name, &details, Probe::Load { kernel, tensor, at, offset, bytes });
            }
        }
    }

    fn stores(&mut self) {
        use TensorElement::{Bf16, F16, F32, F64, U16, U32};
        use TensorSwizzle::{B32, B64, B128, None};
        let [stores_2d, stores_3d, adds_2d, adds_3d]: [(&str, Store); 4] = entries![tensor:
            probe_tensor_2d_store,
            probe_tensor_3d_store,
            probe_tensor_2d_add,
            probe_tensor_3d_add,
        ];
        let boxes: [(_, TensorElement, &[u64], &[u32], TensorSwizzle); 13] = [
            (stores_2d, U16, &[100, 37], &[40, 16], None),
            (stores_2d, U16, &[100, 37], &[16, 16], B32),
            (stores_2d, U32, &[100, 37], &[16, 16], B64),
            (stores_2d, U16, &[100, 37], &[64, 16], B128),
            (stores_3d, F32, &[33, 9, 7], &[12, 5, 4], None),
            (stores_3d, F32, &[33, 9, 7], &[32, 5, 4], B128),
            (adds_2d, F32, &[100, 37], &[40, 16], None),
            (adds_2d, F16, &[100, 37], &[64, 16], B128),
            (adds_2d, Bf16, &[100, 37], &[32, 16], B64),
            (adds_2d, F64, &[21, 37], &[4, 16], B32),
            (adds_2d, U32, &[100, 37], &[32, 16], B128),
            (adds_3d, F32, &[33, 9, 7], &[32, 5, 4], B128),
            (adds_3d, Bf16, &[33, 9, 7], &[24, 5, 4], None),
        ];
        for ((name, kernel), element, dims, box_dims, swizzle) in boxes {
            let unit = 16 / element.bytes() as i32;
            let last = (dims[0] as i32 - 1) / unit * unit;
            for (at, offset) in
                [([0; 5], 0), ([2 * unit, 3, 1, 0, 0], 384), ([last, 30, 5, 0, 0], 1024), ([unit, 8, 8, 0, 0], 0)]
            {
                let tensor = self.tensor(element, dims, box_dims, swizzle);
                let operands = self.elements(element, (offset + tensor.box_bytes()).next_multiple_of(1024));
                let details = format!("{element:?} {dims:?}, box {box_dims:?} {swizzle:?} at {at:?}, offset {offset}");
                self.push(name, &details, Probe::Store { kernel, tensor, at, offset, operands });
            }
        }
    }

    fn warps(&mut self) {
        let loads: [(&str, MatrixLoad); 2] = entries![warp: probe_ldmatrix_x4, probe_ldmatrix_x4_trans];
        let stores: [(&str, MatrixStore); 2] = entries![warp: probe_stmatrix_x4, probe_stmatrix_x4_trans];
        let bytes = 2048;
        // Rows next to each other; 64 bytes apart, those of two matrices in falling order.
        let offsets = [
            ("dense", Vec::from_iter((0..32).map(|lane| 16 * lane))),
            ("spread", Vec::from_iter((0..16).rev().chain(16..32).map(|lane| 64 * lane))),
        ];
        for (what, offsets) in offsets {
            for (name, kernel) in loads {
                let operands = self.words(bytes / 4);
                self.push(name, what, Probe::MatrixLoad { kernel, operands, offsets: offsets.clone() });
            }
            for (name, kernel) in stores {
                let words = self.words(4 * warp::THREADS);
                self.push(name, what, Probe::MatrixStore { kernel, words, offsets: offsets.clone(), bytes });
            }
        }
        let words = self.words(warp::THREADS);
        self.push("probe_movmatrix", "random", Probe::Words { kernel: warp::entries::probe_movmatrix, words });
        for (what, lanes) in [
            ("all by 1", vec![1; 32]),
            ("all by 16", vec![16; 32]),
            ("all by 31", vec![31; 32]),
            ("each its own", (0..32).map(|lane| lane * 7 % 32).collect()),
        ] {
            let words = self.words(warp::THREADS);
            self.push("probe_shuffle", what, Probe::Shuffles { kernel: warp::entries::probe_shuffle, words, lanes });
        }
    }
}

/// Every one of both, each with one of the others.
fn pairs(a: Vec<Layout>, b: Vec<Layout>) -> Vec<(Layout, Layout)> {
    let count = a.len().max(b.len());
    a.into_iter().cycle().zip(b.into_iter().cycle()).take(count).collect()
}
