//! Global memory: what a launch may read and write.

use core::mem::size_of;
use core::ops::Range;
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytemuck::Pod;
use memmap2::{MmapMut, MmapOptions};

use crate::tensor_map::{EncodedTensorMap, TensorMap};

/// 256 bytes, aligned as a device's allocator aligns.
#[derive(Clone, Copy)]
#[repr(C, align(256))]
struct Line([u8; 256]);

// SAFETY: zero bytes are bytes.
unsafe impl bytemuck::Zeroable for Line {}
// SAFETY: an array of bytes, as long as it is aligned.
unsafe impl Pod for Line {}

/// What an allocation lies in.
enum Place {
    /// Memory of the program's allocator.
    Lines(Box<[Line]>),
    /// Pages of the system's, which take no memory until they are touched.
    Pages(MmapMut),
}

/// From so many bytes on an allocation is pages.
const PAGES_FROM: usize = 1 << 28;

/// One allocation.
struct Allocation {
    name: String,
    place: Place,
    num_bytes: usize,
}

impl Allocation {
    /// Zeros.
    fn new(name: &str, num_bytes: usize) -> Self {
        let place = if num_bytes < PAGES_FROM {
            Place::Lines(vec![Line([0; 256]); num_bytes.div_ceil(256).max(1)].into_boxed_slice())
        } else {
            let pages = MmapOptions::new().len(num_bytes).no_reserve_swap().map_anon();
            Place::Pages(pages.unwrap_or_else(|error| panic!("{num_bytes} bytes for `{name}`: {error}")))
        };
        Self { name: name.to_owned(), place, num_bytes }
    }

    fn start(&self) -> usize {
        match &self.place {
            Place::Lines(lines) => lines.as_ptr() as usize,
            Place::Pages(pages) => pages.as_ptr() as usize,
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.place {
            Place::Lines(lines) => bytemuck::cast_slice_mut(lines),
            Place::Pages(pages) => pages,
        }
    }
}

/// The allocations and tensor maps of a launch. Kernels get their addresses; what lies outside of them is a finding.
#[derive(Default)]
pub struct Memory {
    allocations: Vec<Allocation>,
    #[expect(clippy::vec_box, reason = "kernels hold the addresses of the maps, which must not move")]
    maps: Vec<Box<EncodedTensorMap>>,
    /// Held while a sum is read, added to and written.
    reductions: Mutex<()>,
}

// SAFETY: the pointers of tensor maps name allocations; the simulator reads and writes those with atomic operations.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// An allocation that holds `values`. The address stays the same for as long as the memory lives.
    pub fn upload<T: Pod>(&mut self, name: &str, values: &[T]) -> *mut T {
        self.upload_pieces(name, values, core::iter::once(0..values.len()))
    }

    /// As [`upload`](Self::upload), of some pieces of `values`, by their positions: what lies between them is zeros, and takes no
    /// memory where it is large.
    ///
    /// # Panics
    /// Where a piece is not within `values`.
    pub fn upload_pieces<T: Pod>(
        &mut self,
        name: &str,
        values: &[T],
        pieces: impl IntoIterator<Item = Range<usize>>,
    ) -> *mut T {
        let mut allocation = Allocation::new(name, size_of_val(values));
        for piece in pieces {
            let bytes: &[u8] = bytemuck::cast_slice(&values[piece.clone()]);
            allocation.bytes_mut()[piece.start * size_of::<T>()..][..bytes.len()].copy_from_slice(bytes);
        }
        let pointer = allocation.bytes_mut().as_mut_ptr().cast();
        self.allocations.push(allocation);
        pointer
    }

    /// The `count` elements from `pointer` on.
    ///
    /// # Panics
    /// Where they are not within one allocation.
    pub fn download<T: Pod>(&self, pointer: *const T, count: usize) -> Vec<T> {
        let mut values = vec![T::zeroed(); count];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut values);
        assert!(self.find(pointer as usize, bytes.len()).is_ok(), "the elements are not within one allocation");
        // SAFETY: they are.
        unsafe { read(pointer.cast(), bytes) };
        values
    }

    /// A tensor map, by the address that a kernel receives.
    ///
    /// # Errors
    /// A sentence that names the first rule which the map does not keep.
    pub fn tensor_map(&mut self, map: TensorMap) -> Result<*const u8, String> {
        let encoded = Box::new(map.encode()?);
        let address = encoded.address();
        self.maps.push(encoded);
        Ok(address)
    }

    /// The tensor map at `address`.
    pub(crate) fn map(&self, address: *const u8) -> Option<&TensorMap> {
        self.maps.iter().find(|map| map.address() == address).map(|map| map.map())
    }

    /// Keeps other blocks from adding to memory: a reduction is atomic, element by element.
    pub(crate) fn reduce(&self) -> MutexGuard<'_, ()> {
        self.reductions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the bytes lie in one allocation; else a sentence.
    pub(crate) fn find(&self, address: usize, num_bytes: usize) -> Result<(), String> {
        let inside = |allocation: &Allocation| {
            let offset = address.checked_sub(allocation.start());
            offset.is_some_and(|offset| offset <= allocation.num_bytes && num_bytes <= allocation.num_bytes - offset)
        };
        if self.allocations.iter().any(inside) {
            return Ok(());
        }
        let near = self.allocations.iter().min_by_key(|allocation| {
            let (start, end) = (allocation.start(), allocation.start() + allocation.num_bytes);
            if address < start { start - address } else { address.saturating_sub(end) }
        });
        Err(match near {
            Some(near) => format!(
                "{num_bytes} bytes at byte {} of `{}`, which has {}",
                address as i128 - near.start() as i128,
                near.name,
                near.num_bytes
            ),
            None => format!("{num_bytes} bytes at {address:#x}, but nothing is allocated"),
        })
    }
}

/// Reads bytes that other blocks may write at the same time.
///
/// # Safety
/// They are allocated.
pub(crate) unsafe fn read(address: *const u8, bytes: &mut [u8]) {
    if (address as usize).is_multiple_of(4) && bytes.len().is_multiple_of(size_of::<u32>()) {
        for (index, word) in bytes.chunks_exact_mut(4).enumerate() {
            // SAFETY: allocated (the caller's promise) and aligned; atomic, so that a race of blocks is a wrong number only.
            let value = unsafe { AtomicU32::from_ptr(address.cast_mut().cast::<u32>().add(index)) };
            word.copy_from_slice(&value.load(Ordering::Relaxed).to_le_bytes());
        }
        return;
    }
    for (index, byte) in bytes.iter_mut().enumerate() {
        // SAFETY: as above.
        *byte = unsafe { AtomicU8::from_ptr(address.cast_mut().add(index)) }.load(Ordering::Relaxed);
    }
}

/// Adds to a word, and gives back what it was before: what another block wrote before it added is there to be read.
///
/// # Safety
/// It is allocated and aligned.
pub(crate) unsafe fn add(address: *mut u32, value: u32) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { AtomicU32::from_ptr(address) }.fetch_add(value, Ordering::AcqRel)
}

/// Writes bytes that other blocks may read at the same time.
///
/// # Safety
/// They are allocated.
pub(crate) unsafe fn write(address: *mut u8, bytes: &[u8]) {
    if (address as usize).is_multiple_of(4) && bytes.len().is_multiple_of(size_of::<u32>()) {
        for (index, word) in bytes.chunks_exact(4).enumerate() {
            let mut value = [0; 4];
            value.copy_from_slice(word);
            // SAFETY: as in `read`.
            let place = unsafe { AtomicU32::from_ptr(address.cast::<u32>().add(index)) };
            place.store(u32::from_le_bytes(value), Ordering::Relaxed);
        }
        return;
    }
    for (index, byte) in bytes.iter().enumerate() {
        // SAFETY: as in `read`.
        unsafe { AtomicU8::from_ptr(address.add(index)) }.store(*byte, Ordering::Relaxed);
    }
}
