//! Cases in the simulator.

use hopper_sim::{Address, Memory, Report, Schedule, TensorMap, launch};
use kernels_gpu::probe::warp;

use crate::cases::{Case, Probe, Runner, Tensor};

/// The simulator, under one schedule.
pub struct Simulated(pub Schedule);

impl Simulated {
    /// The result, and what was found.
    pub fn report(&self, case: &Case) -> (Vec<u32>, Report) {
        let mut memory = Memory::new();
        let mut upload = |name: &str, words: &[u32]| Address::new(memory.upload(name, words));
        // Every probe's result lies in one allocation.
        let (report, out, len) = match &case.probe {
            Probe::SharedProduct { kernel, operands, scale_d, a, b, d } => {
                let bytes = 4 * operands.len() as u32;
                let (operands, out) = (upload("operands", operands), upload("d", d));
                // SAFETY: the table's operands keep the contract.
                let body = || unsafe { kernel(operands.get(), bytes, *scale_d, *a, *b, out.get()) };
                (launch(case.spec, [1; 3], &memory, self.0, body), out, d.len())
            }
            Probe::RegisterProduct { kernel, operands, scale_d, a, b, d } => {
                let bytes = 4 * operands.len() as u32;
                let (operands, a, out) = (upload("operands", operands), upload("a", a), upload("d", d));
                // SAFETY: as above.
                let body = || unsafe { kernel(operands.get(), bytes, *scale_d, a.get(), *b, out.get()) };
                (launch(case.spec, [1; 3], &memory, self.0, body), out, d.len())
            }
            Probe::SparseProduct { kernel, operands, scale_d, a, b, metadata, d } => {
                let bytes = 4 * operands.len() as u32;
                let (operands, metadata) = (upload("operands", operands), upload("metadata", metadata));
                let out = upload("d", d);
                // SAFETY: as above.
                let body = || unsafe { kernel(operands.get(), bytes, *scale_d, *a, *b, metadata.get(), out.get()) };
                (launch(case.spec, [1; 3], &memory, self.0, body), out, d.len())
            }
            Probe::Load { kernel, tensor, at: [c0, c1, c2, c3, c4], offset, bytes } => {
                let (global, len) = (upload("tensor", &tensor.words), *bytes as usize / 4);
                let out = upload("out", &vec![0; len]);
                let map = map(&mut memory, tensor, global);
                let box_bytes = tensor.box_bytes();
                // SAFETY: as above.
                let body =
                    || unsafe { kernel(map.get(), *c0, *c1, *c2, *c3, *c4, *offset, box_bytes, out.get(), *bytes) };
                (launch(case.spec, [1; 3], &memory, self.0, body), out, len)
            }
            Probe::Store { kernel, tensor, at: [c0, c1, c2, c3, c4], offset, operands } => {
                let bytes = 4 * operands.len() as u32;
                let (global, operands) = (upload("tensor", &tensor.words), upload("operands", operands));
                let map = map(&mut memory, tensor, global);
                // SAFETY: as above.
                let body = || unsafe { kernel(map.get(), *c0, *c1, *c2, *c3, *c4, *offset, operands.get(), bytes) };
                (launch(case.spec, [1; 3], &memory, self.0, body), global, tensor.words.len())
            }
            Probe::MatrixLoad { kernel, operands, offsets } => {
                let (bytes, len) = (4 * operands.len() as u32, 4 * warp::THREADS as usize);
                let (operands, offsets) = (upload("operands", operands), upload("offsets", offsets));
                let out = upload("out", &vec![0; len]);
                // SAFETY: as above.
                let body = || unsafe { kernel(operands.get(), bytes, offsets.get(), out.get()) };
                (launch(case.spec, [1; 3], &memory, self.0, body), out, len)
            }
            Probe::MatrixStore { kernel, words, offsets, bytes } => {
                let (words, offsets) = (upload("words", words), upload("offsets", offsets));
                let len = *bytes as usize / 4;
                let out = upload("out", &vec![0; len]);
                // SAFETY: as above.
                let body = || unsafe { kernel(words.get(), offsets.get(), out.get(), *bytes) };
                (launch(case.spec, [1; 3], &memory, self.0, body), out, len)
            }
            Probe::Words { kernel, words } => {
                let (len, out) = (words.len(), upload("out", &vec![0; words.len()]));
                let words = upload("words", words);
                // SAFETY: as above.
                let body = || unsafe { kernel(words.get(), out.get()) };
                (launch(case.spec, [1; 3], &memory, self.0, body), out, len)
            }
            Probe::Shuffles { kernel, words, lanes } => {
                let len = 4 * words.len();
                let (words, lanes, out) =
                    (upload("words", words), upload("lanes", lanes), upload("out", &vec![0; len]));
                // SAFETY: as above.
                let body = || unsafe { kernel(words.get(), lanes.get(), out.get()) };
                (launch(case.spec, [1; 3], &memory, self.0, body), out, len)
            }
        };
        (memory.download(out.get(), len), report)
    }
}

fn map(memory: &mut Memory, tensor: &Tensor, base: Address<u32>) -> Address<u8> {
    let Tensor { element, dims, strides, box_dims, swizzle, .. } = tensor;
    let map = TensorMap::new(*element, base.get().cast(), dims, strides, box_dims, *swizzle);
    let address = map.and_then(|map| memory.tensor_map(map)).unwrap_or_else(|sentence| panic!("{sentence}"));
    Address::new(address.cast_mut())
}

impl Runner for Simulated {
    fn run(&self, case: &Case) -> Vec<u32> {
        let (result, report) = self.report(case);
        assert!(report.findings.is_empty(), "{}: {report}", case.name);
        result
    }
}
