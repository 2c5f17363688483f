//! Cases on a GPU.

use hopper_sim::{TensorElement as Element, TensorSwizzle as Swizzle};
use hopper_sparse::gpu::{
    Device, DeviceBuffer, DevicePtr, GpuError, KernelParams, L2Promotion, Stream, TensorElement, TensorMap,
    TensorMapSpec, TensorMapSwizzle, TensorMaps,
};
use hopper_std::KernelSpec;
use kernels_gpu::probe::{product, warp};

use crate::cases::{Case, Probe, Runner, Tensor};

/// A device, and a stream of it.
pub struct OnDevice {
    device: Device,
    stream: Stream,
}

impl OnDevice {
    /// Cases on `device`.
    pub fn new(device: Device) -> Self {
        let stream = Stream::new(&device).expect("a stream");
        Self { device, stream }
    }

    fn upload(&self, words: &[u32]) -> DeviceBuffer<u32> {
        DeviceBuffer::from_slice(&self.device, words).expect("fits")
    }

    /// Launches one block, and waits for it.
    ///
    /// # Safety
    /// The parameters keep the probe's contract, and what they name lives.
    unsafe fn launch(&self, spec: &KernelSpec, params: impl KernelParams) {
        let kernel = self.device.kernel(spec).unwrap_or_else(|error| panic!("{error}"));
        // SAFETY: the caller's promise; the stream is the device's.
        unsafe { kernel.launch(1, &self.stream, params) }.unwrap_or_else(|error| panic!("{error}"));
        self.stream.synchronize().unwrap_or_else(|error| panic!("{}: {error}", spec.name));
    }

    fn map(&self, tensor: &Tensor, address: DevicePtr) -> TensorMaps<1> {
        let map = match tensor.dims.len() {
            1 => self.map_of::<1>(tensor, address),
            2 => self.map_of::<2>(tensor, address),
            3 => self.map_of::<3>(tensor, address),
            4 => self.map_of::<4>(tensor, address),
            _ => self.map_of::<5>(tensor, address),
        };
        let map = map.unwrap_or_else(|error| panic!("{error}"));
        TensorMaps::upload(&self.device, &[map]).expect("fits")
    }

    fn map_of<const RANK: usize>(&self, tensor: &Tensor, address: DevicePtr) -> Result<TensorMap, GpuError> {
        let spec = TensorMapSpec::<RANK> {
            element: element(tensor.element),
            address,
            dims: core::array::from_fn(|dim| tensor.dims[dim]),
            strides_bytes: core::array::from_fn(|dim| match dim {
                0 => u64::from(tensor.element.bytes()),
                _ => tensor.strides[dim - 1],
            }),
            box_dims: core::array::from_fn(|dim| tensor.box_dims[dim]),
            element_strides: [1; RANK],
            swizzle: swizzle(tensor.swizzle),
            l2_promotion: L2Promotion::None,
        };
        TensorMap::new(&self.device, &spec)
    }
}

fn element(element: Element) -> TensorElement {
    match element {
        Element::U8 => TensorElement::U8,
        Element::U16 => TensorElement::U16,
        Element::U32 => TensorElement::U32,
        Element::F16 => TensorElement::F16,
        Element::Bf16 => TensorElement::Bf16,
        Element::F32 => TensorElement::F32,
        Element::F64 => TensorElement::F64,
    }
}

fn swizzle(swizzle: Swizzle) -> TensorMapSwizzle {
    match swizzle {
        Swizzle::None => TensorMapSwizzle::None,
        Swizzle::B32 => TensorMapSwizzle::Bytes32,
        Swizzle::B64 => TensorMapSwizzle::Bytes64,
        Swizzle::B128 => TensorMapSwizzle::Bytes128,
    }
}

impl Runner for OnDevice {
    fn run(&self, case: &Case) -> Vec<u32> {
        let spec = case.spec;
        let result = match &case.probe {
            Probe::SharedProduct { operands, scale_d, a, b, d, .. } => {
                let bytes = 4 * operands.len() as u32;
                let (operands, d) = (self.upload(operands), self.upload(d));
                assert_eq!(d.len() as u32 % product::THREADS, 0);
                // SAFETY: the table's operands keep the contract.
                unsafe { self.launch(spec, (operands.ptr(), bytes, *scale_d, *a, *b, d.ptr())) };
                d
            }
            Probe::RegisterProduct { operands, scale_d, a, b, d, .. } => {
                let bytes = 4 * operands.len() as u32;
                let (operands, a, d) = (self.upload(operands), self.upload(a), self.upload(d));
                // SAFETY: as above.
                unsafe { self.launch(spec, (operands.ptr(), bytes, *scale_d, a.ptr(), *b, d.ptr())) };
                d
            }
            Probe::SparseProduct { operands, scale_d, a, b, metadata, d, .. } => {
                let bytes = 4 * operands.len() as u32;
                let (operands, metadata, d) = (self.upload(operands), self.upload(metadata), self.upload(d));
                // SAFETY: as above.
                unsafe { self.launch(spec, (operands.ptr(), bytes, *scale_d, *a, *b, metadata.ptr(), d.ptr())) };
                d
            }
            Probe::Load { tensor, at: [c0, c1, c2, c3, c4], offset, bytes, .. } => {
                let global = self.upload(&tensor.words);
                let map = self.map(tensor, global.ptr());
                let [map_address] = map.addresses();
                let out = DeviceBuffer::filled(&self.device, *bytes as usize / 4, 0).expect("fits");
                let box_bytes = tensor.box_bytes();
                // SAFETY: as above.
                unsafe {
                    self.launch(spec, (map_address, *c0, *c1, *c2, *c3, *c4, *offset, box_bytes, out.ptr(), *bytes));
                }
                out
            }
            Probe::Store { tensor, at: [c0, c1, c2, c3, c4], offset, operands, .. } => {
                let bytes = 4 * operands.len() as u32;
                let (global, operands) = (self.upload(&tensor.words), self.upload(operands));
                let map = self.map(tensor, global.ptr());
                let [map_address] = map.addresses();
                // SAFETY: as above.
                unsafe {
                    self.launch(spec, (map_address, *c0, *c1, *c2, *c3, *c4, *offset, operands.ptr(), bytes));
                }
                global
            }
            Probe::MatrixLoad { operands, offsets, .. } => {
                let bytes = 4 * operands.len() as u32;
                let (operands, offsets) = (self.upload(operands), self.upload(offsets));
                let out = DeviceBuffer::filled(&self.device, 4 * warp::THREADS as usize, 0).expect("fits");
                // SAFETY: as above.
                unsafe { self.launch(spec, (operands.ptr(), bytes, offsets.ptr(), out.ptr())) };
                out
            }
            Probe::MatrixStore { words, offsets, bytes, .. } => {
                let (words, offsets) = (self.upload(words), self.upload(offsets));
                let out = DeviceBuffer::filled(&self.device, *bytes as usize / 4, 0).expect("fits");
                // SAFETY: as above.
                unsafe { self.launch(spec, (words.ptr(), offsets.ptr(), out.ptr(), *bytes)) };
                out
            }
            Probe::Words { words, .. } => {
                let out = DeviceBuffer::filled(&self.device, words.len(), 0).expect("fits");
                let words = self.upload(words);
                // SAFETY: as above.
                unsafe { self.launch(spec, (words.ptr(), out.ptr())) };
                out
            }
            Probe::Shuffles { words, lanes, .. } => {
                let out = DeviceBuffer::filled(&self.device, 4 * words.len(), 0).expect("fits");
                let (words, lanes) = (self.upload(words), self.upload(lanes));
                // SAFETY: as above.
                unsafe { self.launch(spec, (words.ptr(), lanes.ptr(), out.ptr())) };
                out
            }
        };
        result.to_vec().unwrap_or_else(|error| panic!("{}: {error}", case.name))
    }
}
