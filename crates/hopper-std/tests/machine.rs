//! On the CPU, each wrapper asks the machine for its instruction: which, with what, and from where.
#![cfg(feature = "sim")]

use core::panic::Location;
use std::cell::RefCell;

use hopper_std::global::GlobalArray;
use hopper_std::half::{Bf16, F16, Half};
use hopper_std::ptx::wgmma::{Mma, Orientation, Registers, SparseMma};
use hopper_std::ptx::{
    async_copy, atomic, barrier, bulk, convert, fence, matrix, mbarrier, memory, special, tensor, warp,
};
use hopper_std::sim::{
    At, BulkWait, Fence, Machine, MatrixMove, Reduce, Shuffle, Special, StoreKind, Wgmma, with_machine,
};
use hopper_std::sm90::{Accumulator, BlockScope, EmptyBarrier, Phase, Pipeline, Shared};

/// Writes down what it is asked for, and answers with constants.
#[derive(Default)]
struct Recorder {
    calls: RefCell<Vec<(u32, String)>>,
}

impl Recorder {
    fn note(&self, at: At, call: String) {
        assert_eq!(at.file(), file!(), "{call}");
        self.calls.borrow_mut().push((at.line(), call));
    }
}

/// Methods that write down their name and operands, and answer with a constant where they answer.
macro_rules! recorded {
    ($($name:ident($($operand:ident: $type:ty),*) $(-> $answer:ty = $value:expr)?;)*) => {
        $(
            fn $name(&self, at: At $(, $operand: $type)*) $(-> $answer)? {
                let operands: &[String] = &[$(format!("{:?}", $operand)),*];
                self.note(at, format!("{}({})", stringify!($name), operands.join(", ")));
                $($value)?
            }
        )*
    };
}

impl Machine for Recorder {
    fn special(&self, register: Special) -> u64 {
        register as u64 + 100
    }

    fn dynamic_shared_address(&self) -> u32 {
        1024
    }

    fn load_global(&self, at: At, address: *const u8, bytes: &mut [u8]) {
        self.note(at, format!("load_global({})", bytes.len()));
        // SAFETY: the tests load from their own arrays.
        bytes.copy_from_slice(unsafe { core::slice::from_raw_parts(address, bytes.len()) });
    }

    fn load_shared(&self, at: At, address: u32, bytes: &mut [u8]) {
        self.note(at, format!("load_shared({address}, {})", bytes.len()));
        for (place, byte) in bytes.iter_mut().enumerate() {
            *byte = place as u8;
        }
    }

    fn ldmatrix(&self, at: At, address: u32, how: MatrixMove, matrices: &mut [u32]) {
        self.note(at, format!("ldmatrix({address}, {how:?}, {})", matrices.len()));
        matrices.fill(7);
    }

    fn wgmma(&self, at: At, product: Wgmma<'_>) {
        self.note(at, format!("{:?}", Wgmma { d: &mut [], ..product }));
        product.d.fill(product.d.len() as f32);
    }

    fn tie(&self, at: At, registers: &mut [f32]) {
        self.note(at, format!("tie({})", registers.len()));
    }

    recorded! {
        store_global(address: *mut u8, bytes: &[u8]);
        store_shared(address: u32, bytes: &[u8]);
        shuffle(kind: Shuffle, value: u32, lane: u32) -> u32 = value + 1;
        ballot(predicate: bool) -> u32 = 5;
        elect() -> bool = true;
        warp_sync();
        movmatrix_trans(pair: u32) -> u32 = pair;
        stmatrix(address: u32, how: MatrixMove, matrices: &[u32]);
        barrier_sync(id: u32, threads: Option<u32>);
        barrier_arrive(id: u32, threads: u32);
        fence(fence: Fence);
        setmaxnreg_dec(count: u32);
        setmaxnreg_inc(count: u32);
        atomic_add(address: *mut u32, value: u32) -> u32 = value + 1;
        reduce(kind: Reduce, value: u32) -> u32 = value;
        mapa(address: u32, rank: u32) -> u32 = address;
        cluster_arrive();
        cluster_wait();
        mbarrier_init(barrier: u32, count: u32);
        mbarrier_inval(barrier: u32);
        mbarrier_arrive(barrier: u32);
        mbarrier_arrive_cluster(barrier: u32);
        mbarrier_arrive_expect_tx(barrier: u32, bytes: u32);
        mbarrier_expect_tx(barrier: u32, bytes: u32);
        mbarrier_try_wait(barrier: u32, parity: u32) -> bool = true;
        mbarrier_test_wait(barrier: u32, parity: u32) -> bool = false;
        bulk_load(destination: u32, source: *const u8, bytes: u32, barrier: u32, mask: Option<u16>);
        bulk_store(destination: *mut u8, source: u32, bytes: u32);
        bulk_commit();
        bulk_wait(count: u32, what: BulkWait);
        tensor_load(destination: u32, map: *const u8, box_at: &[i32], barrier: u32, mask: Option<u16>);
        tensor_store(map: *const u8, box_at: &[i32], source: u32, kind: StoreKind);
        prefetch_tensormap(map: *const u8);
        cp_async(destination: u32, source: *const u8, bytes: u32, source_bytes: u32);
        cp_async_commit();
        cp_async_wait(count: u32);
        cp_async_mbarrier_arrive_noinc(barrier: u32);
        wgmma_fence();
        wgmma_commit();
        wgmma_wait(count: u32);
        use_f32(value: f32);
    }
}

/// Runs `body`, on one line of the test, and checks that exactly these calls came, all from that line.
#[track_caller]
fn asks<R>(body: impl FnOnce() -> R, calls: &[&str]) -> R {
    let recorder = Recorder::default();
    let result = with_machine(&recorder, body);
    let line = Location::caller().line();
    let expected: Vec<_> = calls.iter().map(|call| (line, String::from(*call))).collect();
    assert_eq!(recorder.calls.into_inner(), expected);
    result
}

/// A K-major or MN-major operand.
struct Operand<const TRANS: i32>;

impl<const TRANS: i32> Orientation for Operand<TRANS> {
    const TRANS: i32 = TRANS;
}

#[test]
#[rustfmt::skip]
fn wrappers_pass_their_operands() {
    let null = core::ptr::null::<u8>();
    let null_mut = core::ptr::null_mut::<u8>();
    // SAFETY: the recorder carries nothing out.
    unsafe {
        assert_eq!(asks(|| special::ctaid_y(), &[]), Special::CtaidY as u32 + 100);
        assert_eq!(asks(|| special::globaltimer(), &[]), Special::Globaltimer as u64 + 100);
        assert_eq!(asks(|| special::dynamic_shared_address(), &[]), 1024);
        assert_eq!(asks(|| warp::shfl_sync_up(6, 2), &["shuffle(Up, 6, 2)"]), 7);
        assert_eq!(asks(|| warp::vote_sync_ballot(true), &["ballot(true)"]), 5);
        assert!(asks(|| warp::elect_sync(), &["elect()"]));
        assert_eq!(asks(|| warp::redux_sync_min_u32(6), &["reduce(Min, 6)"]), 6);
        assert_eq!(asks(|| warp::redux_sync_max_u32(6), &["reduce(Max, 6)"]), 6);
        let word = null_mut.cast();
        assert_eq!(asks(|| atomic::atom_acq_rel_gpu_global_add_u32(word, 2), &["atomic_add(0x0, 2)"]), 3);
        assert_eq!(asks(|| matrix::ldmatrix_x2_trans(64), &["ldmatrix(64, Trans, 2)"]), [7, 7]);
        asks(|| matrix::stmatrix_x1(64, [3]), &["stmatrix(64, Plain, [3])"]);
        asks(|| barrier::barrier_sync(3, 128), &["barrier_sync(3, Some(128))"]);
        asks(|| barrier::barrier_sync_all(), &["barrier_sync(0, None)"]);
        asks(|| fence::fence_acq_rel_gpu(), &["fence(Gpu)"]);
        assert!(asks(|| mbarrier::mbarrier_try_wait_parity_cluster(8, 1), &["mbarrier_try_wait(8, 1)"]));
        assert!(!asks(|| mbarrier::mbarrier_test_wait_parity(8, 0), &["mbarrier_test_wait(8, 0)"]));
        asks(|| bulk::cp_async_bulk_global_to_shared_multicast(1, null, 16, 8, 3), &["bulk_load(1, 0x0, 16, 8, Some(3))"]);
        asks(|| bulk::cp_async_bulk_shared_to_global(null_mut, 32, 16), &["bulk_store(0x0, 32, 16)"]);
        asks(|| bulk::cp_async_bulk_wait_group_read::<2>(), &["bulk_wait(2, Read)"]);
        asks(|| tensor::cp_async_bulk_tensor_3d(1, null, [4, 5, 6], 8), &["tensor_load(1, 0x0, [4, 5, 6], 8, None)"]);
        asks(|| tensor::cp_reduce_async_bulk_tensor_2d_add(null, [4, -5], 64), &["tensor_store(0x0, [4, -5], 64, Add)"]);
        asks(|| async_copy::cp_async_cg_16(32, null, 12), &["cp_async(32, 0x0, 16, 12)"]);
        asks(|| async_copy::cp_async_wait_group::<1>(), &["cp_async_wait(1)"]);
    }
}

#[test]
#[rustfmt::skip]
fn memory_is_little_endian() {
    let words = [0x0403_0201u32, 0x0807_0605, 3, 4];
    let array = GlobalArrayOf(words.as_ptr()).array();
    // SAFETY: the addresses that are read are those of `words`; the recorder writes nothing.
    unsafe {
        assert_eq!(asks(|| memory::ld_global_nc_v4_u32(words.as_ptr()), &["load_global(16)"]), words);
        assert_eq!(asks(|| memory::ld_global_nc_l2_128b_v2_u32(words.as_ptr()), &["load_global(8)"]), words[..2]);
        assert_eq!(asks(|| memory::ld_global_nc_l2_128b_v4_u32(words.as_ptr()), &["load_global(16)"]), words);
        assert_eq!(asks(|| memory::ld_global_u16(words.as_ptr().cast()), &["load_global(2)"]), 0x0201);
        assert_eq!(asks(|| array.get(1), &["load_global(4)"]), 0x0807_0605);
        assert_eq!(asks(|| memory::ld_shared_v2_u32(96), &["load_shared(96, 8)"]), [0x0302_0100, 0x0706_0504]);
        asks(|| memory::st_shared_v2_u32(96, [0x0201, 3]), &["store_shared(96, [1, 2, 0, 0, 3, 0, 0, 0])"]);
        asks(|| memory::st_global_u16(core::ptr::null_mut(), 0x0201), &["store_global(0x0, [1, 2])"]);
        asks(|| memory::st_global_cs_v4_u32(core::ptr::null_mut(), [1, 0, 0, 2]), &["store_global(0x0, [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0])"]);
    }
}

/// Kernels receive a pointer where they name a [`GlobalArray`].
#[repr(transparent)]
struct GlobalArrayOf(*const u32);

impl GlobalArrayOf {
    fn array(self) -> GlobalArray<u32> {
        // SAFETY: both are transparent over a pointer.
        unsafe { core::mem::transmute::<Self, GlobalArray<u32>>(self) }
    }
}

#[test]
#[rustfmt::skip]
fn products_name_their_operands() {
    let mut d = [0.0; 8];
    // SAFETY: the recorder carries nothing out.
    unsafe {
        asks(|| <Bf16 as Mma<8>>::mma_shared::<Operand<1>, Operand<0>>(&mut d, 2, 3, 1),
            &["Wgmma { d: [], a: Shared(2, Mn), b: 3, b_major: K, scale_d: 1, element: Bf16, sparse: None }"]);
        assert_eq!(d, [8.0; 8], "the machine has the registers themselves");
        asks(|| <F16 as Mma<8>>::mma_registers::<Operand<1>>(&mut d, [4, 5, 6, 7], 3, 0),
            &["Wgmma { d: [], a: Registers([4, 5, 6, 7]), b: 3, b_major: Mn, scale_d: 0, element: F16, sparse: None }"]);
        asks(|| <F16 as SparseMma<8>>::mma_shared_sparse::<Operand<0>, 1>(&mut d, 2, 3, 0x4e, 0),
            &["Wgmma { d: [], a: Shared(2, K), b: 3, b_major: K, scale_d: 0, element: F16, sparse: Some((78, 1)) }"]);
    }
    asks(|| d.tie(), &["tie(8)"]);
}

#[test]
fn values_that_leave_registers_are_shown() {
    assert_eq!(asks(|| Bf16::pack(1.0, -2.0), &["use_f32(-2.0)", "use_f32(1.0)"]), 0xc000_3f80);
    assert_eq!(asks(|| F16::pack(1.0, -2.0), &["use_f32(-2.0)", "use_f32(1.0)"]), 0xc000_3c00);
    // SAFETY: arithmetic has no preconditions.
    let sum = asks(|| unsafe { convert::fma_rn_f32(2.0, 3.0, 4.0) }, &["use_f32(2.0)", "use_f32(3.0)", "use_f32(4.0)"]);
    assert_eq!(sum, 10.0);
}

#[test]
fn the_typed_machine_reports_the_line_of_its_caller() {
    // SAFETY: the recorder carries nothing out.
    unsafe {
        let empty = Shared::<EmptyBarrier>::from_address(2048);
        asks(|| empty.wait(Phase::BEFORE_FIRST), &["mbarrier_try_wait(2048, 1)"]);

        let (stages, barriers) = (Shared::<[[u8; 16]; 2]>::from_address(0), Shared::from_address(2048));
        let recorder = Recorder::default();
        let first = line!() + 2;
        with_machine(&recorder, || {
            let ring = Pipeline::<_, 2, BlockScope>::init(stages, barriers, 4);
            let mut producer = ring.publish().producer();
            let _slot = producer.acquire();
            Accumulator::<4>::zeroed().read();
        });
        // The recorder's %tid.x is not 0: nothing is initialised.
        let expected = [
            (1, "fence(MbarrierInit)"),
            (1, "fence(ProxyAsyncShared)"),
            (1, "barrier_sync(0, None)"),
            (2, "mbarrier_try_wait(2064, 1)"),
            (2, "mbarrier_arrive_expect_tx(2048, 16)"),
            (3, "tie(4)"),
        ];
        let expected: Vec<_> = expected.map(|(after, call)| (first + after, String::from(call))).into();
        assert_eq!(recorder.calls.into_inner(), expected);
    }
}

#[test]
fn without_a_machine_arithmetic_works_and_instructions_panic() {
    let mut registers = [1.0; 4];
    registers.tie();
    assert_eq!(registers, [1.0; 4]);
    assert_eq!(Bf16::pack(1.0, 0.0), 0x3f80);
    // SAFETY: nothing carries it out.
    assert!(std::panic::catch_unwind(|| unsafe { barrier::barrier_sync_all() }).is_err());
}
