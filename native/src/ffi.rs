//! Mirror of `tensorflow/c/experimental/filesystem/filesystem_interface.h` (every API and ABI
//! number is 0 in TensorFlow 2.21), and the memory that changes hands over it.

use std::ffi::{c_char, c_int, c_void, CString};
use std::sync::OnceLock;

use crate::status::Code;

#[repr(C)]
pub struct TfFile {
    pub state: *mut c_void,
}
#[repr(C)]
pub struct TfFilesystem {
    pub state: *mut c_void,
}
pub enum TfStatus {}
#[repr(C)]
pub struct TfStatistics {
    pub length: i64,
    pub mtime_nsec: i64,
    pub is_directory: bool,
}

pub type OnPath = unsafe extern "C" fn(*const TfFilesystem, *const c_char, *mut TfStatus);
pub type OnTwoPaths =
    unsafe extern "C" fn(*const TfFilesystem, *const c_char, *const c_char, *mut TfStatus);
pub type OpenFile =
    unsafe extern "C" fn(*const TfFilesystem, *const c_char, *mut TfFile, *mut TfStatus);
pub type ListNames = unsafe extern "C" fn(
    *const TfFilesystem,
    *const c_char,
    *mut *mut *mut c_char,
    *mut TfStatus,
) -> c_int;
pub type OnWriter = unsafe extern "C" fn(*const TfFile, *mut TfStatus);

#[repr(C)]
pub struct ReaderOps {
    pub cleanup: unsafe extern "C" fn(*mut TfFile),
    pub read: unsafe extern "C" fn(*const TfFile, u64, usize, *mut c_char, *mut TfStatus) -> i64,
}

#[repr(C)]
pub struct WriterOps {
    pub cleanup: unsafe extern "C" fn(*mut TfFile),
    pub append: unsafe extern "C" fn(*const TfFile, *const c_char, usize, *mut TfStatus),
    pub tell: unsafe extern "C" fn(*const TfFile, *mut TfStatus) -> i64,
    pub flush: OnWriter,
    pub sync: OnWriter,
    pub close: OnWriter,
}

#[repr(C)]
pub struct FilesystemOps {
    pub init: unsafe extern "C" fn(*mut TfFilesystem, *mut TfStatus),
    pub cleanup: unsafe extern "C" fn(*mut TfFilesystem),
    pub new_random_access_file: OpenFile,
    pub new_writable_file: OpenFile,
    pub new_appendable_file: OpenFile,
    pub new_read_only_memory_region_from_file: *const c_void,
    pub create_dir: OnPath,
    pub recursively_create_dir: OnPath,
    pub delete_file: OnPath,
    pub delete_dir: OnPath,
    pub delete_recursively:
        unsafe extern "C" fn(*const TfFilesystem, *const c_char, *mut u64, *mut u64, *mut TfStatus),
    pub rename_file: OnTwoPaths,
    pub copy_file: OnTwoPaths,
    pub path_exists: OnPath,
    pub paths_exist: *const c_void,
    pub stat:
        unsafe extern "C" fn(*const TfFilesystem, *const c_char, *mut TfStatistics, *mut TfStatus),
    pub is_directory:
        unsafe extern "C" fn(*const TfFilesystem, *const c_char, *mut TfStatus) -> bool,
    pub get_file_size:
        unsafe extern "C" fn(*const TfFilesystem, *const c_char, *mut TfStatus) -> i64,
    pub translate_name: unsafe extern "C" fn(*const TfFilesystem, *const c_char) -> *mut c_char,
    pub get_children: ListNames,
    pub get_matching_paths: ListNames,
    pub flush_caches: unsafe extern "C" fn(*const TfFilesystem),
    /// Transactions (6) and configuration (5): TensorFlow does without them.
    pub unused: [*const c_void; 11],
}

#[repr(C)]
pub struct PluginOps {
    pub scheme: *mut c_char,
    pub filesystem_abi: c_int,
    pub filesystem_api: c_int,
    pub filesystem_size: usize,
    pub filesystem: *mut FilesystemOps,
    pub reader_abi: c_int,
    pub reader_api: c_int,
    pub reader_size: usize,
    pub reader: *mut ReaderOps,
    pub writer_abi: c_int,
    pub writer_api: c_int,
    pub writer_size: usize,
    pub writer: *mut WriterOps,
    pub region_abi: c_int,
    pub region_api: c_int,
    pub region_size: usize,
    pub region: *mut c_void,
}

#[repr(C)]
pub struct PluginInfo {
    pub num_schemes: usize,
    pub ops: *mut PluginOps,
    pub allocate: unsafe extern "C" fn(usize) -> *mut c_void,
    pub release: unsafe extern "C" fn(*mut c_void),
}

/// `TF_READ_ONLY_MEMORY_REGION_OPS`: three pointers, a table that we do not supply.
pub const REGION_OPS_SIZE: usize = 3 * size_of::<usize>();
// TensorFlow copies as much of a table as its size says: a wrong size would cut entries off.
const _: () = assert!(size_of::<FilesystemOps>() == 33 * size_of::<usize>());
const _: () = assert!(size_of::<ReaderOps>() == 2 * size_of::<usize>());
const _: () = assert!(size_of::<WriterOps>() == 6 * size_of::<usize>());
const _: () = assert!(size_of::<PluginOps>() == 104 && size_of::<PluginInfo>() == 32);

type SetStatus = unsafe extern "C" fn(*mut TfStatus, c_int, *const c_char);

/// `TF_SetStatus` of the TensorFlow in this process, None where there is none.
///
/// Looked up at run time, so that the plugin is not tied to a TensorFlow library by name.
pub fn find_set_status() -> Option<SetStatus> {
    static FOUND: OnceLock<Option<SetStatus>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let name = c"TF_SetStatus".as_ptr();
        let mut symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name) };
        for library in [c"libtensorflow_framework.so.2", c"libtensorflow_cc.so.2"] {
            if !symbol.is_null() {
                break;
            }
            let flags = libc::RTLD_NOW | libc::RTLD_NOLOAD;
            let handle = unsafe { libc::dlopen(library.as_ptr(), flags) };
            if !handle.is_null() {
                symbol = unsafe { libc::dlsym(handle, name) };
            }
        }
        let found = !symbol.is_null();
        found.then(|| unsafe { std::mem::transmute::<*mut c_void, SetStatus>(symbol) })
    })
}

/// Fills TensorFlow's status; `TF_InitPlugin` has made sure that it can be.
pub unsafe fn set_status(status: *mut TfStatus, code: Code, message: &str) {
    let text = CString::new(message.replace('\0', "?")).unwrap_or_default();
    if let Some(set) = find_set_status() {
        set(status, code as c_int, text.as_ptr());
    }
}

/// What TensorFlow releases with `release` has to come from the C allocator.
pub unsafe extern "C" fn allocate(size: usize) -> *mut c_void {
    libc::malloc(size.max(1))
}

pub unsafe extern "C" fn release(memory: *mut c_void) {
    libc::free(memory)
}

/// Room for `count` values from the C allocator.
pub unsafe fn allocate_array<T>(count: usize) -> *mut T {
    let memory = allocate(size_of::<T>() * count).cast::<T>();
    if memory.is_null() {
        std::alloc::handle_alloc_error(std::alloc::Layout::new::<T>());
    }
    memory
}

/// A value in memory that TensorFlow may release.
pub unsafe fn give<T>(value: T) -> *mut T {
    let memory = allocate_array::<T>(1);
    memory.write(value);
    memory
}

/// A C string in memory that TensorFlow may release.
pub unsafe fn give_text(text: &str) -> *mut c_char {
    let memory = allocate_array::<u8>(text.len() + 1);
    std::ptr::copy_nonoverlapping(text.as_ptr(), memory, text.len());
    memory.add(text.len()).write(0);
    memory.cast()
}

/// An array of C strings in memory that TensorFlow may release.
pub unsafe fn give_texts(texts: &[String]) -> *mut *mut c_char {
    let memory = allocate_array::<*mut c_char>(texts.len());
    for (i, text) in texts.iter().enumerate() {
        memory.add(i).write(give_text(text));
    }
    memory
}
