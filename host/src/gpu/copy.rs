//! Copies of matrix lines between host and device.

use core::ffi::c_void;
use core::ptr;

use cuda_loader::driver;
use cuda_loader::types::{CUDA_MEMCPY2D, CUmemorytype};

use super::buffer::wait_for_default_stream;
use super::error::{GpuError, check};
use crate::tensor_map::DevicePtr;

/// The largest distance between lines, in bytes, that one two-dimensional copy can have (`CU_DEVICE_ATTRIBUTE_MAX_PITCH`).
const MAX_PITCH_BYTES: usize = i32::MAX as usize;

/// The host's side of a copy.
pub(super) enum Host<'a, T> {
    /// To the device.
    Read(&'a [T]),
    /// From the device.
    Write(&'a mut [T]),
}

impl<T> Host<'_, T> {
    /// The elements of the slice.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Read(slice) => slice.len(),
            Self::Write(slice) => slice.len(),
        }
    }
}

/// Lines of equal length at one distance on the device and another on the host, all in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lines {
    pub(super) num_lines: usize,
    pub(super) line_bytes: usize,
    pub(super) device_pitch: usize,
    pub(super) host_pitch: usize,
}

impl Lines {
    /// Copies all lines, and waits until they have arrived.
    ///
    /// # Safety
    /// The context of `device` is current; there are these lines on both sides.
    pub(super) unsafe fn copy<T>(self, device: DevicePtr, mut host: Host<'_, T>) -> Result<(), GpuError> {
        for piece in self.pieces() {
            // SAFETY: a piece is some of the lines.
            unsafe { piece.copy_once(device, &mut host) }?;
        }
        match host {
            Host::Read(_) => wait_for_default_stream(),
            // The driver returns when the bytes have arrived.
            Host::Write(_) => Ok(()),
        }
    }

    /// What single calls of the driver can copy, in order: everything, unless the lines lie too far apart.
    fn pieces(self) -> impl Iterator<Item = Piece> {
        let Self { num_lines, line_bytes, device_pitch, host_pitch } = self;
        let (count, lines) = if device_pitch == line_bytes && host_pitch == line_bytes {
            (1, Self { num_lines: 1, line_bytes: line_bytes * num_lines, ..self })
        } else if device_pitch.max(host_pitch) <= MAX_PITCH_BYTES {
            (1, self)
        } else {
            (num_lines, Self { num_lines: 1, ..self })
        };
        (0..count).map(move |index| Piece {
            device_offset: index * device_pitch,
            host_offset: index * host_pitch,
            lines,
        })
    }
}

/// Lines that one call copies, and where they start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    device_offset: usize,
    host_offset: usize,
    lines: Lines,
}

impl Piece {
    /// # Safety
    /// As for [`Lines::copy`].
    unsafe fn copy_once<T>(self, device: DevicePtr, host: &mut Host<'_, T>) -> Result<(), GpuError> {
        let Self { device_offset, host_offset, lines } = self;
        let device = device.byte_add(device_offset as u64).0;
        match host {
            Host::Read(slice) if lines.num_lines == 1 => {
                let from = slice.as_ptr().cast::<c_void>().wrapping_byte_add(host_offset);
                // SAFETY: the line is there on both sides, and the context is current.
                check("cuMemcpyHtoD_v2", unsafe { driver::cuMemcpyHtoD_v2(device, from, lines.line_bytes) })
            }
            Host::Write(slice) if lines.num_lines == 1 => {
                let to = slice.as_mut_ptr().cast::<c_void>().wrapping_byte_add(host_offset);
                // SAFETY: as above; every bit pattern is an element.
                check("cuMemcpyDtoH_v2", unsafe { driver::cuMemcpyDtoH_v2(to, device, lines.line_bytes) })
            }
            Host::Read(slice) => {
                let copy = CUDA_MEMCPY2D {
                    srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
                    srcHost: slice.as_ptr().cast::<c_void>().wrapping_byte_add(host_offset),
                    srcPitch: lines.host_pitch,
                    dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
                    dstDevice: device,
                    dstPitch: lines.device_pitch,
                    ..lines.no_copy()
                };
                // SAFETY: the lines are there on both sides, at these distances, and the context is current.
                check("cuMemcpy2D_v2", unsafe { driver::cuMemcpy2D_v2(&copy) })
            }
            Host::Write(slice) => {
                let copy = CUDA_MEMCPY2D {
                    srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
                    srcDevice: device,
                    srcPitch: lines.device_pitch,
                    dstMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
                    dstHost: slice.as_mut_ptr().cast::<c_void>().wrapping_byte_add(host_offset),
                    dstPitch: lines.host_pitch,
                    ..lines.no_copy()
                };
                // SAFETY: as above; every bit pattern is an element.
                check("cuMemcpy2D_v2", unsafe { driver::cuMemcpy2D_v2(&copy) })
            }
        }
    }
}

impl Lines {
    /// The driver's description of a copy of these lines, from nowhere to nowhere.
    pub(super) fn no_copy(self) -> CUDA_MEMCPY2D {
        CUDA_MEMCPY2D {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
            srcHost: ptr::null(),
            srcDevice: 0,
            srcArray: ptr::null_mut(),
            srcPitch: 0,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
            dstHost: ptr::null_mut(),
            dstDevice: 0,
            dstArray: ptr::null_mut(),
            dstPitch: 0,
            WidthInBytes: self.line_bytes,
            Height: self.num_lines,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: Lines = Lines { num_lines: 3, line_bytes: 10, device_pitch: 16, host_pitch: 10 };

    #[test]
    fn padded_lines_are_one_piece() {
        let pieces: Vec<_> = LINES.pieces().collect();
        assert_eq!(pieces, [Piece { device_offset: 0, host_offset: 0, lines: LINES }]);
    }

    #[test]
    fn lines_without_padding_are_one_long_line() {
        let dense = Lines { device_pitch: 10, ..LINES };
        let pieces: Vec<_> = dense.pieces().collect();
        let line = Lines { num_lines: 1, line_bytes: 30, ..dense };
        assert_eq!(pieces, [Piece { device_offset: 0, host_offset: 0, lines: line }]);
    }

    #[test]
    fn lines_too_far_apart_for_the_driver_go_one_by_one() {
        let far = Lines { host_pitch: MAX_PITCH_BYTES + 1, ..LINES };
        let offsets: Vec<_> = far.pieces().map(|piece| (piece.device_offset, piece.host_offset)).collect();
        assert_eq!(offsets, [(0, 0), (16, 1 << 31), (32, 2 << 31)]);
        assert!(far.pieces().all(|piece| piece.lines.num_lines == 1 && piece.lines.line_bytes == 10));
    }
}
