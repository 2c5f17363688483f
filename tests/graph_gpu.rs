//! Launches that are captured in CUDA graphs and replayed, on a device.

#![cfg(feature = "gpu")]

#[path = "suite/gpu.rs"]
mod gpu;
mod suite;

use core::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cuda_loader::driver;
use cuda_loader::types::{CUgraph, CUgraphExec, CUstreamCaptureMode};
use hopper_sparse::formats::{DenseView, Layout, WcsrView, WindowShape};
use hopper_sparse::gpu::{Device, DeviceDense, DeviceDenseView, DeviceDenseViewMut, Stream};
use hopper_sparse::ops::csr::{CsrPlan, CsrSpmm};
use hopper_sparse::ops::wcsr::{WcsrPlan, WcsrSpmm};
use hopper_sparse::{Dtype, Result, bf16};
use suite::csr_rows::Rows;
use suite::operands::{Buffer, Padding, Random, Sparse, SparseArrays};
use suite::{Format, Placement};

/// Columns of B and C: whole lines of every tensor copy, so that no kernel wants a copy of B.
const NUM_COLS: usize = 64;
const WINDOW: WindowShape = WindowShape { rows: 64, group: 8 };
const PLACED: Placement = Placement { layout: Layout::RowMajor, padding: Padding::Tight };
/// How often a graph is replayed, each time with another B.
const NUM_REPLAYS: usize = 3;

/// Blocking copies run on the legacy default stream, which keeps the order with every [`Stream`]: while one is captured, no test may
/// copy.
fn alone() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A graph, destroyed when dropped.
struct Graph<'s> {
    stream: &'s Stream,
    captured: CUgraph,
    executable: CUgraphExec,
}

impl<'s> Graph<'s> {
    /// What `work` puts on the stream; `None` where the driver has no graph of it. What `work` returns is returned, too.
    fn capture(stream: &'s Stream, work: impl FnOnce() -> Result<()>) -> (Result<()>, Option<Self>) {
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        stream.device().make_current().expect("a context");
        let mut graph = Self { stream, captured: ptr::null_mut(), executable: ptr::null_mut() };
        // SAFETY: the stream is alive, and not the legacy default one; its context is current.
        assert_eq!(unsafe { driver::cuStreamBeginCapture_v2(stream.as_inner(), mode) }, cuda_loader::SUCCESS);
        let outcome = work();
        // SAFETY: this thread has begun the capture; the out-pointer is valid.
        let code = unsafe { driver::cuStreamEndCapture(stream.as_inner(), &mut graph.captured) };
        if code != cuda_loader::SUCCESS {
            return (outcome, None);
        }
        // SAFETY: the graph is alive; the out-pointer is valid.
        let code = unsafe { driver::cuGraphInstantiateWithFlags(&mut graph.executable, graph.captured, 0) };
        assert_eq!(code, cuda_loader::SUCCESS, "{}", cuda_loader::error_text(code));
        (outcome, Some(graph))
    }

    /// Launches what was captured.
    ///
    /// # Safety
    /// What was captured with is alive until the stream has been waited for, and nothing else uses it.
    unsafe fn launch(&self) {
        // SAFETY: graph and stream are alive, and of the current context; the rest is the caller's promise.
        let code = unsafe { driver::cuGraphLaunch(self.executable, self.stream.as_inner()) };
        assert_eq!(code, cuda_loader::SUCCESS, "{}", cuda_loader::error_text(code));
    }
}

impl Drop for Graph<'_> {
    fn drop(&mut self) {
        if !self.executable.is_null() {
            // SAFETY: it is destroyed nowhere else; the context is current.
            let _ = unsafe { driver::cuGraphExecDestroy(self.executable) };
        }
        if !self.captured.is_null() {
            // SAFETY: as above, and what was made of it is gone.
            let _ = unsafe { driver::cuGraphDestroy(self.captured) };
        }
    }
}

/// A launch of C = A B.
type Launch<'a> = &'a dyn Fn(&Stream, DeviceDenseView<'_, bf16>, &mut DeviceDenseViewMut<'_, f32>) -> Result<()>;

/// B and C on a device.
struct Factors {
    b: DeviceDense<bf16>,
    c: DeviceDense<f32>,
}

impl Factors {
    fn new(device: &Device, b: DenseView<'_, bf16>, num_rows: usize) -> Self {
        Self {
            b: DeviceDense::from_host(device, b).expect("memory for B"),
            c: DeviceDense::zeros(device, num_rows, NUM_COLS, Layout::RowMajor).expect("memory for C"),
        }
    }

    /// The bits of C, after NaN was put there and `work` has run and been waited for, with this B.
    fn product(&mut self, stream: &Stream, b: DenseView<'_, bf16>, work: impl FnOnce(&mut Self)) -> Vec<u32> {
        self.b.copy_from_host(b).expect("a copy");
        self.c.fill_bytes(0xFF).expect("a fill");
        work(self);
        stream.synchronize().expect("no fault");
        let mut c = Buffer::<f32>::poisoned(self.c.num_rows(), NUM_COLS, PLACED);
        self.c.to_host(&mut c.view_mut()).expect("a copy");
        c.view().data().iter().map(|value| value.to_bits()).collect()
    }
}

/// Replays of `launch` give the bits that plain launches give, and follow B.
fn check_replays(device: &Device, (num_rows, depth): (usize, usize), random: &mut Random, launch: Launch<'_>) {
    let stream = Stream::new(device).expect("a stream");
    let all: Vec<_> = (0..NUM_REPLAYS).map(|_| Buffer::<bf16>::random(depth, NUM_COLS, PLACED, random)).collect();
    let mut factors = Factors::new(device, all[0].view(), num_rows);
    let plain = |factors: &mut Factors| {
        launch(&stream, factors.b.view(), &mut factors.c.view_mut()).expect("a launch");
    };
    let expected: Vec<_> = all.iter().map(|b| factors.product(&stream, b.view(), plain)).collect();
    assert!(expected.windows(2).all(|pair| pair[0] != pair[1]), "C does not depend on B");
    assert!(expected.iter().flatten().all(|bits| f32::from_bits(*bits).is_finite()), "an element was left out");

    // Twice, so that the workspace of the first is free for the second.
    let (outcome, graph) = Graph::capture(&stream, || {
        launch(&stream, factors.b.view(), &mut factors.c.view_mut())?;
        launch(&stream, factors.b.view(), &mut factors.c.view_mut())
    });
    outcome.expect("launches");
    let graph = graph.expect("a graph");
    for (replay, (b, expected)) in all.iter().zip(&expected).enumerate() {
        // SAFETY: B, C and what is prepared are alive, and `product` waits for the stream.
        let found = factors.product(&stream, b.view(), |_| unsafe { graph.launch() });
        assert_eq!(&found, expected, "replay {replay}");
    }
    // Plain launches and replays do not disturb one another.
    assert_eq!(factors.product(&stream, all[0].view(), plain), expected[0]);
    // SAFETY: as above.
    let found = factors.product(&stream, all[1].view(), |_| unsafe { graph.launch() });
    assert_eq!(found, expected[1], "a replay after a plain launch");
}

/// Two windows of which the first is wide, one of its rows being full.
fn wide_windows() -> SparseArrays<bf16> {
    SparseArrays::random(Format::Wcsr(WINDOW), 70, 9000, 0.02, &mut Random::fresh())
}

fn windows_of(arrays: &SparseArrays<bf16>) -> WcsrView<'_, bf16> {
    let Sparse::Wcsr(a) = arrays.view() else { unreachable!("windows were asked for") };
    a
}

fn plan_windows(a: &WcsrView<'_, bf16>, num_multiprocessors: u32) -> WcsrPlan {
    let problem = WcsrSpmm::new(a, NUM_COLS, Dtype::F32, Layout::RowMajor, Layout::RowMajor);
    problem.plan(a, num_multiprocessors).expect("a plan")
}

/// Rows of which some are long.
fn long_rows() -> Rows<bf16> {
    Rows::of_lengths(&[3, 0, 2000, 17, 257, 1], 2500, &mut Random::fresh())
}

fn plan_rows(a: &Rows<bf16>) -> CsrPlan {
    let a = a.view();
    let problem = CsrSpmm::new(&a, NUM_COLS, Dtype::F32, Layout::RowMajor, Layout::RowMajor);
    problem.plan(&a).expect("a plan")
}

#[test]
fn products_replay_from_a_graph() {
    let Some(device) = gpu::device_or_skip("products_replay_from_a_graph") else { return };
    let _alone = alone();
    let mut random = Random::fresh();

    let arrays = wide_windows();
    let a = windows_of(&arrays);
    let plan = plan_windows(&a, device.num_multiprocessors());
    assert!(plan.num_splits() > 0 && plan.workspace_bytes() > 0, "{plan}");
    let windows = plan.prepare(&device, &a).expect("memory");
    check_replays(&device, (a.num_rows, a.num_cols), &mut random, &|stream, b, c| {
        // SAFETY: `check_replays` keeps B and C until the stream has been waited for.
        unsafe { windows.launch(stream, 1.0, b, 0.0, c) }
    });

    let rows = long_rows();
    let plan = plan_rows(&rows);
    assert!(plan.num_long_rows() > 0 && plan.num_workspace_bytes() > 0, "{plan}");
    let entries = plan.prepare(&device, &rows.view()).expect("memory");
    check_replays(&device, (rows.view().num_rows, rows.view().num_cols), &mut random, &|stream, b, c| {
        // SAFETY: as above.
        unsafe { entries.launch(stream, 1.0, b, 0.0, c) }
    });
}

/// The tensor maps of a B are uploaded on the first launch with it, which is no work for a graph.
#[test]
fn the_first_launch_with_a_b_is_refused_in_a_capture() {
    let Some(device) = gpu::device_or_skip("the_first_launch_with_a_b_is_refused_in_a_capture") else { return };
    let _alone = alone();
    let mut random = Random::fresh();
    let arrays = wide_windows();
    let a = windows_of(&arrays);
    let plan = plan_windows(&a, device.num_multiprocessors());
    let prepared = plan.prepare(&device, &a).expect("memory");
    let stream = Stream::new(&device).expect("a stream");
    let b = Buffer::<bf16>::random(a.num_cols, NUM_COLS, PLACED, &mut random);
    let mut factors = Factors::new(&device, b.view(), a.num_rows);
    let launch = |factors: &mut Factors| {
        // SAFETY: `Factors::product` keeps B and C until the stream has been waited for; what is refused is not run.
        unsafe { prepared.launch(&stream, 1.0, factors.b.view(), 0.0, &mut factors.c.view_mut()) }
    };
    let (outcome, graph) = Graph::capture(&stream, || launch(&mut factors));
    assert!(outcome.is_err() && graph.is_none(), "{outcome:?}");
    // The stream and what is prepared are as they were.
    let bits = factors.product(&stream, b.view(), |factors| launch(factors).expect("a launch"));
    assert!(bits.iter().all(|bits| f32::from_bits(*bits).is_finite()));
    let (outcome, graph) = Graph::capture(&stream, || launch(&mut factors));
    assert!(outcome.is_ok() && graph.is_some(), "{outcome:?}");
}

/// Without a device: what is replayed has workspaces, on a card of as many multiprocessors as an H200.
#[test]
fn what_is_replayed_is_split() {
    let arrays = wide_windows();
    let plan = plan_windows(&windows_of(&arrays), 132);
    assert!(plan.num_splits() > 0 && plan.workspace_bytes() > 0, "{plan}");
    let plan = plan_rows(&long_rows());
    assert!(plan.num_long_rows() > 0 && plan.num_workspace_bytes() > 0, "{plan}");
}
