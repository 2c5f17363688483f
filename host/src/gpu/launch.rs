//! Launches, checked against the kernel's specification.

use core::ffi::c_void;
use core::ptr;

use cuda_loader::driver;
use cuda_loader::types::{CUlaunchAttribute, CUlaunchConfig};
use cust::function::GridSize;
use cust::stream::Stream;
use hopper_std::KernelSpec;

use super::error::{GpuError, LaunchRefusal};
use super::module::Kernel;
use crate::tensor_map::DevicePtr;

/// The most blocks along x, y and z.
const MAX_GRID: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];

/// A value that a kernel takes as one parameter.
///
/// # Safety
/// The type has the size, alignment and layout of the kernel's parameter, whose bytes are copied at launch: a primitive,
/// or a `#[repr(C)]` or `#[repr(transparent)]` type without padding.
pub unsafe trait KernelParam: Copy {}

macro_rules! primitive_params {
    ($($type:ty),*) => {
        $(
            // SAFETY: a primitive of the same size on host and device.
            unsafe impl KernelParam for $type {}
        )*
    };
}

primitive_params!(u8, u16, u32, u64, i8, i16, i32, i64, f32, f64);

// SAFETY: transparent over `u64`, which is the size of a pointer on the device.
unsafe impl KernelParam for DevicePtr {}

mod sealed {
    pub trait Sealed {}
}

/// The parameters of a launch: a tuple of up to 20 values, in the kernel's order.
pub trait KernelParams: sealed::Sealed {
    /// Hands the address and the size in bytes of every parameter to `call`. The addresses are valid during the call.
    #[doc(hidden)]
    fn with_pointers<Output>(&self, call: impl FnOnce(&mut [*mut c_void], &[usize]) -> Output) -> Output;
}

macro_rules! tuple_params {
    ($($type:ident)*) => {
        impl<$($type: KernelParam),*> sealed::Sealed for ($($type,)*) {}

        impl<$($type: KernelParam),*> KernelParams for ($($type,)*) {
            #[allow(non_snake_case)]
            fn with_pointers<Output>(&self, call: impl FnOnce(&mut [*mut c_void], &[usize]) -> Output) -> Output {
                let ($($type,)*) = self;
                call(&mut [$(ptr::from_ref($type).cast_mut().cast::<c_void>()),*], &[$(size_of::<$type>()),*])
            }
        }
    };
}

tuple_params!();
tuple_params!(A);
tuple_params!(A B);
tuple_params!(A B C);
tuple_params!(A B C D);
tuple_params!(A B C D E);
tuple_params!(A B C D E F);
tuple_params!(A B C D E F G);
tuple_params!(A B C D E F G H);
tuple_params!(A B C D E F G H I);
tuple_params!(A B C D E F G H I J);
tuple_params!(A B C D E F G H I J K);
tuple_params!(A B C D E F G H I J K L);
tuple_params!(A B C D E F G H I J K L M);
tuple_params!(A B C D E F G H I J K L M N);
tuple_params!(A B C D E F G H I J K L M N O);
tuple_params!(A B C D E F G H I J K L M N O P);
tuple_params!(A B C D E F G H I J K L M N O P Q);
tuple_params!(A B C D E F G H I J K L M N O P Q R);
tuple_params!(A B C D E F G H I J K L M N O P Q R S);
tuple_params!(A B C D E F G H I J K L M N O P Q R S T);

impl Kernel {
    /// Launches the kernel on `stream` and returns without waiting for it. Threads, shared memory and cluster come from
    /// the kernel's specification; `grid` is in blocks.
    ///
    /// A launch that is refused, here or by the driver, leaves the device as it was. A fault while the kernel runs is
    /// reported by a later call (see [`GpuError::loses_context`]).
    ///
    /// # Errors
    /// [`GpuError::Refused`] where the grid is empty, too large or no multiple of the cluster along x, or where number
    /// or sizes of the parameters differ from the kernel's (with a driver that tells them, CUDA 12.4 and newer);
    /// [`GpuError::Launch`] where the driver refuses.
    ///
    /// # Safety
    /// - The parameters keep the kernel's own contract; they are of the types that it takes, in its order.
    /// - Device memory that the kernel reads or writes stays allocated until the launch is done, which
    ///   [`Stream::synchronize`], or a blocking copy of this library, waits for. It is not used by another launch
    ///   meanwhile, unless both only read it.
    /// - `stream` belongs to the kernel's device.
    pub unsafe fn launch<P: KernelParams>(
        &self,
        grid: impl Into<GridSize>,
        stream: &Stream,
        params: P,
    ) -> Result<(), GpuError> {
        let spec = self.spec();
        let grid = grid.into();
        let grid = [grid.x, grid.y, grid.z];
        let refused = |reason| GpuError::Refused { kernel: spec.name, reason };
        check_grid(spec, grid).map_err(refused)?;
        self.device().make_current()?;

        params.with_pointers(|pointers, sizes| {
            check_params(self.param_bytes(), sizes).map_err(refused)?;
            let mut cluster = [CUlaunchAttribute::cluster(spec.cluster, 1, 1)];
            let config = CUlaunchConfig {
                gridDimX: grid[0],
                gridDimY: grid[1],
                gridDimZ: grid[2],
                blockDimX: spec.threads,
                blockDimY: 1,
                blockDimZ: 1,
                sharedMemBytes: spec.shared_bytes,
                hStream: stream.as_inner(),
                attrs: cluster.as_mut_ptr(),
                numAttrs: u32::from(spec.cluster > 1),
            };
            // SAFETY: the configuration and the parameters' addresses are valid during the call, which copies them;
            // the kernel is loaded in the current context. The rest is the caller's.
            let code =
                unsafe { driver::cuLaunchKernelEx(&config, self.as_raw(), pointers.as_mut_ptr(), ptr::null_mut()) };
            match code {
                cuda_loader::SUCCESS => Ok(()),
                code => Err(GpuError::Launch { kernel: spec.name, grid, code }),
            }
        })
    }
}

/// A grid that the hardware can run: not empty, not too large, and whole clusters along x.
fn check_grid(spec: &KernelSpec, grid: [u32; 3]) -> Result<(), LaunchRefusal> {
    for ((axis, blocks), most) in ['x', 'y', 'z'].into_iter().zip(grid).zip(MAX_GRID) {
        if blocks == 0 || blocks > most {
            return Err(LaunchRefusal::GridSize { axis, blocks, most });
        }
    }
    if !grid[0].is_multiple_of(spec.cluster) {
        return Err(LaunchRefusal::Cluster { blocks: grid[0], cluster: spec.cluster });
    }
    Ok(())
}

/// The sizes given, against those that the kernel takes where they are known.
fn check_params(expected: Option<&[usize]>, found: &[usize]) -> Result<(), LaunchRefusal> {
    let Some(expected) = expected else { return Ok(()) };
    if expected.len() != found.len() {
        return Err(LaunchRefusal::ParamCount { expected: expected.len(), found: found.len() });
    }
    match expected.iter().zip(found).position(|(expected, found)| expected != found) {
        Some(index) => Err(LaunchRefusal::ParamSize { index, expected: expected[index], found: found[index] }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIRS: KernelSpec = KernelSpec::new("pairs", 128, 1, 2, 0);

    #[test]
    fn a_grid_has_whole_clusters_and_at_least_one_block() {
        assert_eq!(check_grid(&PAIRS, [4, 1, 1]), Ok(()));
        assert_eq!(check_grid(&PAIRS, [2, 65_535, 65_535]), Ok(()));
        assert_eq!(check_grid(&PAIRS, [3, 1, 1]), Err(LaunchRefusal::Cluster { blocks: 3, cluster: 2 }));
        let size = |axis, blocks, most| Err(LaunchRefusal::GridSize { axis, blocks, most });
        assert_eq!(check_grid(&PAIRS, [0, 1, 1]), size('x', 0, 2_147_483_647));
        assert_eq!(check_grid(&PAIRS, [1 << 31, 1, 1]), size('x', 1 << 31, 2_147_483_647));
        assert_eq!(check_grid(&PAIRS, [2, 65_536, 1]), size('y', 65_536, 65_535));
        assert_eq!(check_grid(&PAIRS, [2, 1, 0]), size('z', 0, 65_535));
    }

    #[test]
    fn parameters_are_compared_where_the_driver_tells_them() {
        assert_eq!(check_params(None, &[8, 4]), Ok(()));
        assert_eq!(check_params(Some(&[8, 4]), &[8, 4]), Ok(()));
        assert_eq!(check_params(Some(&[8, 4]), &[8]), Err(LaunchRefusal::ParamCount { expected: 2, found: 1 }));
        assert_eq!(
            check_params(Some(&[8, 4]), &[8, 8]),
            Err(LaunchRefusal::ParamSize { index: 1, expected: 4, found: 8 })
        );
    }

    #[test]
    fn parameters_are_handed_over_in_order() {
        let values = (7_u32, 0.5_f32, 1_u64 << 40);
        values.with_pointers(|pointers, sizes| {
            assert_eq!(sizes, [4, 4, 8]);
            // SAFETY: the pointers are those of the tuple's fields, alive during the call.
            let read = unsafe { (*pointers[0].cast::<u32>(), *pointers[1].cast::<f32>(), *pointers[2].cast::<u64>()) };
            assert_eq!(read, values);
        });
        ().with_pointers(|pointers, sizes| assert!(pointers.is_empty() && sizes.is_empty()));
    }
}
