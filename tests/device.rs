//! The device layer: what it says where there is no GPU, and what it does where there is one.
#![cfg(feature = "gpu")]

#[path = "suite/gpu.rs"]
mod gpu;

use std::env;
use std::process::Command;
use std::thread;

use gpu::device_or_skip;
use hopper_sparse::formats::{Dense, DenseView, DenseViewMut, Layout};
use hopper_sparse::gpu::{
    Device, DeviceBuffer, DeviceDense, DeviceDenseView, DevicePtr, Event, GpuError, Kernel, L2Promotion, LaunchRefusal,
    SpecProperty, Stream, TensorElement, TensorMap, TensorMapSpec, TensorMapSwizzle, TensorMaps,
};
use hopper_sparse::{Element, bf16};
use hopper_std::KernelSpec;
use hopper_std::spec::MAX_SHARED_BYTES;

const PTX: &str = include_str!("ptx/device.ptx");
const FILL: KernelSpec = KernelSpec::new("fill", 128, 1, 1, 0);

#[test]
fn the_device_is_hopper_or_refused_in_a_sentence() {
    match Device::hopper() {
        Ok(device) => {
            assert_eq!(device.compute_capability(), (9, 0));
            assert!(!device.name().is_empty() && device.num_multiprocessors() > 0 && device.l2_bytes() > 0);
        }
        Err(GpuError::NoDriver { reason }) => {
            let sentence = GpuError::NoDriver { reason }.to_string();
            assert!(sentence.starts_with("no GPU can be used, because "), "{sentence}");
            assert!(sentence.contains("`libcuda.so.1`"), "{sentence}");
            assert!(!sentence.contains('\n'), "{sentence}");
        }
        Err(GpuError::NoDevice) => {
            assert!(matches!(Device::hopper_at(0), Err(GpuError::NoDevice)), "both ways of asking agree");
        }
        Err(refused @ GpuError::NotHopper { .. }) => {
            assert!(refused.to_string().contains("9.0 (Hopper)"), "{refused}");
        }
        Err(other) => panic!("not a reason for having no device: {other}"),
    }
}

#[test]
fn what_is_on_the_device_can_go_to_any_thread() {
    fn goes_anywhere<T: Send + Sync>() {}
    goes_anywhere::<Device>();
    goes_anywhere::<Kernel>();
    goes_anywhere::<Stream>();
    goes_anywhere::<Event>();
    goes_anywhere::<DeviceBuffer<bf16>>();
    goes_anywhere::<DeviceDense<bf16>>();
    goes_anywhere::<TensorMaps<3>>();
    goes_anywhere::<GpuError>();
}

#[test]
fn a_device_is_opened_once_and_an_index_too_large_is_refused() {
    let Some(device) = device_or_skip("a_device_is_opened_once_and_an_index_too_large_is_refused") else { return };
    assert_eq!(Device::hopper().expect("opened before"), device);
    let count = Device::count().expect("opened before");
    match Device::hopper_at(count) {
        Err(GpuError::DeviceIndex { index, count: found }) => assert_eq!((index, found), (count, count)),
        other => panic!("{other:?}"),
    }
    let (free, total) = device.memory_info().expect("memory can be asked for");
    assert!(0 < free && free <= total);
}

#[test]
fn buffers_come_back_as_they_went() {
    let Some(device) = device_or_skip("buffers_come_back_as_they_went") else { return };
    for len in [0, 1, 255, 1_000_003] {
        let sent: Vec<u32> = (0..len as u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
        let mut buffer = DeviceBuffer::from_slice(&device, &sent).expect("fits");
        assert_eq!(buffer.to_vec().expect("downloads"), sent);
        assert_eq!(buffer.ptr().0 % 256, 0);
        buffer.fill_bytes(0xAB).expect("fills");
        assert!(buffer.to_vec().expect("downloads").iter().all(|&word| word == 0xABAB_ABAB));
        let error = buffer.upload(&vec![0; len + 1]).expect_err("one too many");
        assert!(matches!(error, GpuError::Length { device, host } if (device, host) == (len as u64, len as u64 + 1)));
    }
}

/// Uploads a matrix whose lines lie `leading_dimension` apart, downloads it into one with the same gaps, and compares
/// both the elements and the gaps.
fn round_trip<T: Element>(device: &Device, num_rows: usize, num_cols: usize, layout: Layout, gap: usize) {
    let (num_lines, line_len) = match layout {
        Layout::RowMajor => (num_rows, num_cols),
        Layout::ColumnMajor => (num_cols, num_rows),
    };
    let ld = line_len + gap;
    let sent: Vec<T> = (0..num_lines * ld).map(|i| T::from_f64((i % 251) as f64)).collect();
    let view = DenseView::try_new(&sent, num_rows, num_cols, ld, layout).expect("lines fit");
    let on_device = DeviceDense::from_host(device, view).expect("fits");
    let case = format!("{} {num_rows} x {num_cols} {layout:?}, gap {gap}", T::DTYPE);
    assert_eq!(on_device.leading_dimension() * size_of::<T>() % 16, 0, "{case}");
    assert_eq!(on_device.view().ptr().0 % 256, 0, "{case}");

    let untouched = T::from_f64(-1.0);
    let mut received = vec![untouched; sent.len()];
    let mut view = DenseViewMut::try_new(&mut received, num_rows, num_cols, ld, layout).expect("lines fit");
    on_device.to_host(&mut view).expect("downloads");
    for (i, (&sent, &received)) in sent.iter().zip(&received).enumerate() {
        let expected = if i % ld < line_len { sent } else { untouched };
        assert_eq!(received, expected, "{case}, element {i}");
    }
}

#[test]
fn matrices_come_back_as_they_went_and_gaps_stay() {
    let Some(device) = device_or_skip("matrices_come_back_as_they_went_and_gaps_stay") else { return };
    for (num_rows, num_cols) in [(1, 1), (3, 5), (17, 300), (300, 17), (1, 1000), (1000, 1), (64, 64), (0, 4), (4, 0)] {
        for layout in [Layout::RowMajor, Layout::ColumnMajor] {
            for gap in [0, 3] {
                round_trip::<bf16>(&device, num_rows, num_cols, layout, gap);
                round_trip::<f32>(&device, num_rows, num_cols, layout, gap);
            }
        }
    }
}

#[test]
fn matrices_of_another_shape_or_layout_are_refused() {
    let Some(device) = device_or_skip("matrices_of_another_shape_or_layout_are_refused") else { return };
    let mut on_device = DeviceDense::<f32>::zeros(&device, 3, 5, Layout::RowMajor).expect("fits");
    let wide = Dense::zeros(3, 6, Layout::RowMajor);
    let error = on_device.copy_from_host(wide.view()).expect_err("6 columns");
    assert!(matches!(error, GpuError::Shape { device: [3, 5], host: [3, 6] }), "{error}");
    let turned = Dense::zeros(3, 5, Layout::ColumnMajor);
    assert!(matches!(on_device.copy_from_host(turned.view()), Err(GpuError::Layout)));
}

#[test]
fn a_buffer_is_a_matrix_where_it_is_long_enough() {
    let Some(device) = device_or_skip("a_buffer_is_a_matrix_where_it_is_long_enough") else { return };
    let buffer = DeviceBuffer::<f32>::filled(&device, 21, 0).expect("fits");
    let view = DeviceDenseView::of_buffer(&buffer, 3, 5, 8, Layout::RowMajor).expect("reaches over 21");
    assert_eq!((view.ptr(), view.line_len(), view.num_lines()), (buffer.ptr(), 5, 3));
    let error = DeviceDenseView::of_buffer(&buffer, 3, 6, 8, Layout::RowMajor).expect_err("reaches over 22");
    assert!(matches!(error, GpuError::TooShort { found: 21, needed: 22 }), "{error}");
}

#[test]
fn poison_is_nan_everywhere() {
    let Some(device) = device_or_skip("poison_is_nan_everywhere") else { return };
    let mut on_device = DeviceDense::<bf16>::zeros(&device, 7, 9, Layout::ColumnMajor).expect("fits");
    let mut host = Dense::<bf16>::zeros(7, 9, Layout::ColumnMajor);
    on_device.fill_bytes(0xFF).expect("fills");
    on_device.to_host(&mut host.view_mut()).expect("downloads");
    assert!(host.data().iter().all(|value| value.is_nan()));
}

#[test]
fn too_much_memory_is_refused_with_bytes_wanted_and_free() {
    let Some(device) = device_or_skip("too_much_memory_is_refused_with_bytes_wanted_and_free") else { return };
    let (_, total) = device.memory_info().expect("memory can be asked for");
    for (len, wanted) in [(1_usize << 45, 1_u64 << 48), (usize::MAX, u64::MAX)] {
        match DeviceBuffer::<u64>::filled(&device, len, 0) {
            Err(error @ GpuError::OutOfMemory { wanted_bytes, free_bytes }) => {
                assert_eq!(wanted_bytes, wanted);
                assert!(0 < free_bytes && free_bytes <= total);
                assert!(error.to_string().contains(&wanted.to_string()), "{error}");
                assert!(!error.loses_context());
            }
            other => panic!("{other:?}"),
        }
    }
    assert_filled(&device, 41);
}

#[test]
fn tensor_maps_are_made_and_lie_apart() {
    let Some(device) = device_or_skip("tensor_maps_are_made_and_lie_apart") else { return };
    let matrix = DeviceDense::<bf16>::zeros(&device, 1000, 300, Layout::RowMajor).expect("fits");
    let column = DeviceDense::<f32>::zeros(&device, 1000, 1, Layout::RowMajor).expect("fits");
    let largest = TensorMapSpec {
        element: TensorElement::U8,
        address: matrix.view().ptr(),
        dims: [1 << 32, 1 << 20, 1, 1, 1],
        strides_bytes: [1, (1 << 40) - 16, (1 << 40) - 16, (1 << 40) - 16, (1 << 40) - 16],
        box_dims: [256, 256, 1, 1, 1],
        element_strides: [1; 5],
        swizzle: TensorMapSwizzle::None,
        l2_promotion: L2Promotion::None,
    };
    let maps = [
        TensorMap::new(&device, &TensorMapSpec::matrix(&matrix.view(), [64, 128], TensorMapSwizzle::Bytes128)),
        TensorMap::new(&device, &TensorMapSpec::matrix(&column.view(), [8, 256], TensorMapSwizzle::Bytes32)),
        TensorMap::new(&device, &largest),
    ]
    .map(|map| map.expect("within the constraints"));
    let maps = TensorMaps::upload(&device, &maps).expect("fits");
    let [first, second, third] = maps.addresses().map(|address| address.0);
    assert_eq!([first % 128, second - first, third - second], [0, 128, 128]);

    let odd = TensorMapSpec::<2> {
        address: matrix.view().ptr().byte_add(2),
        ..TensorMapSpec::matrix(&matrix.view(), [64, 128], TensorMapSwizzle::Bytes128)
    };
    assert!(matches!(TensorMap::new(&device, &odd), Err(GpuError::TensorMap(_))));
}

/// Fills 1000 words by a kernel, of which the last block is ragged, and checks them all.
fn assert_filled(device: &Device, value: u32) {
    let kernel = Kernel::from_ptx(device, &FILL, PTX).expect("compiles");
    let stream = Stream::new(device).expect("a stream");
    fill_and_check(&kernel, &stream, value);
}

fn fill_and_check(kernel: &Kernel, stream: &cust::stream::Stream, value: u32) {
    let out = DeviceBuffer::<u32>::filled(kernel.device(), 1001, 0xFF).expect("fits");
    // SAFETY: `fill` takes an address, a value and a length, writes 1000 words of the 1001 that `out` has, and `out`
    // lives until the download has waited for it.
    unsafe { kernel.launch(8, stream, (out.ptr(), value, 1000_u32)) }.expect("launches");
    let words = out.to_vec().expect("downloads");
    assert!(words[..1000].iter().all(|&word| word == value), "every word is written");
    assert_eq!(words[1000], u32::MAX, "and none beyond");
}

#[test]
fn a_kernel_from_ptx_is_described_and_runs() {
    let Some(device) = device_or_skip("a_kernel_from_ptx_is_described_and_runs") else { return };
    let kernel = Kernel::from_ptx(&device, &FILL, PTX).expect("compiles");
    assert_eq!((kernel.local_bytes(), kernel.static_shared_bytes()), (0, 0));
    assert!((1..=32).contains(&kernel.registers()), "{} registers", kernel.registers());
    assert_eq!(kernel.max_active_blocks(), 16, "2048 threads of a multiprocessor make 16 blocks of 128");
    if let Some(bytes) = kernel.param_bytes() {
        assert_eq!(bytes, [8, 4, 4]);
    }
    let stream = Stream::new(&device).expect("a stream");
    fill_and_check(&kernel, &stream, 7);
    // A stream of the caller's own, made by cust.
    let own = cust::stream::Stream::new(cust::stream::StreamFlags::DEFAULT, None).expect("a stream");
    fill_and_check(&kernel, &own, 8);
}

#[test]
fn kernels_that_do_not_fit_their_specification_are_refused() {
    let Some(device) = device_or_skip("kernels_that_do_not_fit_their_specification_are_refused") else { return };
    let load = |spec: &KernelSpec, ptx: &str| Kernel::from_ptx(&device, spec, ptx);

    let wide = KernelSpec::new("fill", 256, 1, 1, 0);
    assert!(matches!(
        load(&wide, PTX),
        Err(GpuError::SpecMismatch { property: SpecProperty::Threads, stated: 256, compiled: 128, .. })
    ));
    let crowded = KernelSpec::new("fill", 128, 3, 1, 100 * 1024);
    assert!(matches!(
        load(&crowded, PTX),
        Err(GpuError::SpecMismatch { property: SpecProperty::BlocksPerMultiprocessor, stated: 3, compiled: 2, .. })
    ));
    let absent = KernelSpec::new("absent", 128, 1, 1, 0);
    assert!(matches!(load(&absent, PTX), Err(GpuError::NoSuchEntry { kernel: "absent" })));
    assert!(matches!(device.kernel(&absent), Err(GpuError::NoSuchKernel { kernel: "absent" })));
    match load(&FILL, &PTX.replace("st.global.u32", "st.nowhere.u32")) {
        Err(GpuError::Ptx { kernel: "fill", log, .. }) => assert!(log.contains("nowhere"), "{log}"),
        other => panic!("{other:?}"),
    }
    assert_filled(&device, 42);
}

#[test]
fn a_refused_launch_leaves_the_device_usable() {
    let Some(device) = device_or_skip("a_refused_launch_leaves_the_device_usable") else { return };
    let stream = Stream::new(&device).expect("a stream");
    let fill = Kernel::from_ptx(&device, &FILL, PTX).expect("compiles");
    let params = (DevicePtr::NULL, 0_u32, 0_u32);

    // SAFETY: nothing is launched.
    let empty = unsafe { fill.launch(0, &stream, params) };
    assert!(matches!(
        empty,
        Err(GpuError::Refused { reason: LaunchRefusal::GridSize { axis: 'x', blocks: 0, .. }, .. })
    ));
    if fill.param_bytes().is_some() {
        // SAFETY: nothing is launched.
        let short = unsafe { fill.launch(1, &stream, (DevicePtr::NULL, 0_u32)) };
        assert!(matches!(
            short,
            Err(GpuError::Refused { reason: LaunchRefusal::ParamCount { expected: 3, found: 2 }, .. })
        ));
    }
    // What only the driver knows: this kernel takes 128 threads, not fewer.
    let narrow = Kernel::from_ptx(&device, &KernelSpec::new("exactly_128", 64, 1, 1, 0), PTX).expect("compiles");
    // SAFETY: the kernel takes no parameter and does nothing.
    let refused = unsafe { narrow.launch((2, 3), &stream, ()) }.expect_err("64 threads");
    assert!(matches!(refused, GpuError::Launch { kernel: "exactly_128", grid: [2, 3, 1], .. }), "{refused}");
    assert!(!refused.loses_context(), "{refused}");

    stream.synchronize().expect("the stream is as it was");
    fill_and_check(&fill, &stream, 43);
}

#[test]
fn every_kernel_of_the_library_loads_without_local_memory() {
    let Some(device) = device_or_skip("every_kernel_of_the_library_loads_without_local_memory") else { return };
    let mut num_kernels = 0;
    for spec in kernels_gpu::specs() {
        let kernel = device.kernel(spec).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(kernel.local_bytes(), 0, "{kernel:?}");
        num_kernels += 1;
    }
    assert!(num_kernels > 0);
}

#[test]
fn clusters_are_launched_as_specified() {
    let Some(device) = device_or_skip("clusters_are_launched_as_specified") else { return };
    let kernel = Kernel::from_ptx(&device, &KernelSpec::new("ranks", 32, 1, 4, 0), PTX).expect("compiles");
    let stream = Stream::new(&device).expect("a stream");
    let out = DeviceBuffer::<u32>::filled(&device, 8, 0xFF).expect("fits");
    // SAFETY: `ranks` writes one word for each of 8 blocks, and `out` lives until the download has waited for it.
    unsafe { kernel.launch(8, &stream, (out.ptr(),)) }.expect("launches");
    let words = out.to_vec().expect("downloads");
    assert_eq!(words, [0x400, 0x401, 0x402, 0x403, 0x400, 0x401, 0x402, 0x403]);
    // SAFETY: nothing is launched.
    let ragged = unsafe { kernel.launch(6, &stream, (out.ptr(),)) };
    assert!(matches!(ragged, Err(GpuError::Refused { reason: LaunchRefusal::Cluster { blocks: 6, cluster: 4 }, .. })));
}

#[test]
fn all_of_shared_memory_can_be_used() {
    let Some(device) = device_or_skip("all_of_shared_memory_can_be_used") else { return };
    let spec = KernelSpec::new("last_shared_word", 32, 1, 1, MAX_SHARED_BYTES as usize);
    let kernel = Kernel::from_ptx(&device, &spec, PTX).expect("compiles");
    let stream = Stream::new(&device).expect("a stream");
    let out = DeviceBuffer::<u32>::filled(&device, 1, 0).expect("fits");
    // SAFETY: the kernel writes the last word of its shared memory, then one word of `out`, which lives until the
    // download has waited for it.
    unsafe { kernel.launch(1, &stream, (out.ptr(), 0x5EED_u32, MAX_SHARED_BYTES)) }.expect("launches");
    assert_eq!(out.to_vec().expect("downloads"), [0x5EED]);
}

#[test]
fn threads_launch_at_once_on_streams_of_their_own() {
    let Some(device) = device_or_skip("threads_launch_at_once_on_streams_of_their_own") else { return };
    let kernel = Kernel::from_ptx(&device, &FILL, PTX).expect("compiles");
    thread::scope(|scope| {
        for worker in 0..2_u32 {
            let kernel = kernel.clone();
            scope.spawn(move || {
                let stream = Stream::new(kernel.device()).expect("a stream");
                for round in 0..50 {
                    fill_and_check(&kernel, &stream, worker << 16 | round);
                }
            });
        }
    });
}

#[test]
fn events_time_what_lies_between_them() {
    let Some(device) = device_or_skip("events_time_what_lies_between_them") else { return };
    let kernel = Kernel::from_ptx(&device, &FILL, PTX).expect("compiles");
    let stream = Stream::new(&device).expect("a stream");
    let out = DeviceBuffer::<u32>::filled(&device, 1 << 26, 0).expect("256 MiB fit");
    let [start, end] = [(); 2].map(|()| Event::new(&device).expect("an event"));
    start.record(&stream).expect("records");
    // SAFETY: `fill` writes 2^26 words, which `out` has, and `out` lives until `end` is waited for.
    unsafe { kernel.launch(1 << 19, &stream, (out.ptr(), 1_u32, 1_u32 << 26)) }.expect("launches");
    end.record(&stream).expect("records");
    let ms = end.elapsed_ms(&start).expect("both are recorded");
    // 256 MiB at 4.8 TB/s, the fastest memory of a Hopper device, take 0.056 ms.
    assert!(ms > 0.04, "{ms} ms");
}

/// The variable by which the test below tells its child that it is the child.
const FAULT: &str = "HOPPER_TEST_FAULT";

/// A fault makes the context useless for the whole process, so it happens in a process of its own.
#[test]
fn a_fault_is_reported_as_one() {
    let name = "a_fault_is_reported_as_one";
    let Some(device) = device_or_skip(name) else { return };
    if env::var_os(FAULT).is_none() {
        let executable = env::current_exe().expect("the test has a path");
        let child = Command::new(executable).args(["--exact", name]).env(FAULT, "1").output().expect("starts");
        assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
        return;
    }
    let kernel = Kernel::from_ptx(&device, &FILL, PTX).expect("compiles");
    let stream = Stream::new(&device).expect("a stream");
    // SAFETY: none, on purpose: address 16 is nobody's, and the device traps the access.
    unsafe { kernel.launch(1, &stream, (DevicePtr(16), 1_u32, 1_u32)) }.expect("launches");
    let fault = stream.synchronize().expect_err("address 16 cannot be written");
    assert!(fault.loses_context(), "{fault}");
    assert!(fault.to_string().contains("cannot be used any more by this process"), "{fault}");
    let later = DeviceBuffer::from_slice(&device, &[1_u32]).expect_err("the context is lost");
    assert!(later.loses_context(), "{later}");
}
