//! The C functions that TensorFlow calls: each makes Rust values of its arguments, runs one
//! operation of a `Scheme`, and turns the outcome into a status. No panic gets past here: the
//! HDFS client panics on some wrong arguments.

use std::borrow::Cow;
use std::ffi::{c_char, c_int, CStr};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::{null, null_mut};

use crate::ffi::*;
use crate::files::{reader_ops, writer_ops};
use crate::scheme::{ReadFile, Scheme, WriteFile};
use crate::status::{Code, Error, Outcome};

/// A path as TensorFlow hands it over.
unsafe fn text<'a>(path: *const c_char) -> Cow<'a, str> {
    CStr::from_ptr(path).to_string_lossy()
}

/// Runs an operation and fills the status; `otherwise` is returned where it failed.
pub unsafe fn run<T>(
    status: *mut TfStatus,
    otherwise: T,
    operation: impl FnOnce() -> Outcome<T>,
) -> T {
    let outcome = catch_unwind(AssertUnwindSafe(operation)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        let what = format!("a fault of the plugin: {}", text.unwrap_or("unknown"));
        Err(Error { code: Code::Internal, message: what })
    });
    match outcome {
        Ok(value) => {
            set_status(status, Code::Ok, "");
            value
        }
        Err(error) => {
            set_status(status, error.code, &error.message);
            otherwise
        }
    }
}

unsafe extern "C" fn init(_: *mut TfFilesystem, status: *mut TfStatus) {
    set_status(status, Code::Ok, "");
}

unsafe extern "C" fn cleanup(_: *mut TfFilesystem) {}

/// Defines the C form of operations that take paths and return nothing.
macro_rules! on_paths {
    ($($name:ident($($path:ident),+) = $operation:ident;)+) => {$(
        unsafe extern "C" fn $name<S: Scheme>(
            _: *const TfFilesystem,
            $($path: *const c_char,)+
            status: *mut TfStatus,
        ) {
            run(status, (), || S::$operation($(&text($path)),+))
        }
    )+};
}

on_paths! {
    create_dir(path) = make_directory;
    recursively_create_dir(path) = make_directories;
    delete_file(path) = delete_file;
    delete_dir(path) = delete_directory;
    rename_file(from, to) = rename;
    copy_file(from, to) = copy;
}

/// Defines the C form of operations that open a file.
macro_rules! opening {
    ($($name:ident = $operation:ident -> $file:ident;)+) => {$(
        unsafe extern "C" fn $name<S: Scheme>(
            _: *const TfFilesystem,
            path: *const c_char,
            file: *mut TfFile,
            status: *mut TfStatus,
        ) {
            run(status, (), || {
                let opened: Box<dyn $file> = S::$operation(&text(path))?;
                (*file).state = Box::into_raw(Box::new(opened)).cast();
                Ok(())
            })
        }
    )+};
}

opening! {
    new_random_access_file = open -> ReadFile;
    new_writable_file = create -> WriteFile;
    new_appendable_file = append_to -> WriteFile;
}

/// Defines the C form of operations that return an array of names.
macro_rules! listing {
    ($($name:ident = $operation:ident;)+) => {$(
        unsafe extern "C" fn $name<S: Scheme>(
            _: *const TfFilesystem,
            path: *const c_char,
            entries: *mut *mut *mut c_char,
            status: *mut TfStatus,
        ) -> c_int {
            *entries = null_mut();
            run(status, -1, || {
                let names = S::$operation(&text(path))?;
                *entries = give_texts(&names);
                Ok(names.len() as c_int)
            })
        }
    )+};
}

listing! {
    get_children = list;
    get_matching_paths = glob;
}

unsafe extern "C" fn delete_recursively<S: Scheme>(
    _: *const TfFilesystem,
    path: *const c_char,
    undeleted_files: *mut u64,
    undeleted_dirs: *mut u64,
    status: *mut TfStatus,
) {
    (*undeleted_files, *undeleted_dirs) = (0, 1);
    run(status, (), || {
        S::delete_tree(&text(path))?;
        *undeleted_dirs = 0;
        Ok(())
    })
}

unsafe extern "C" fn path_exists<S: Scheme>(
    _: *const TfFilesystem,
    path: *const c_char,
    status: *mut TfStatus,
) {
    run(status, (), || S::stat(&text(path)).map(drop))
}

unsafe extern "C" fn stat<S: Scheme>(
    _: *const TfFilesystem,
    path: *const c_char,
    statistics: *mut TfStatistics,
    status: *mut TfStatus,
) {
    run(status, (), || {
        let stat = S::stat(&text(path))?;
        let mtime_nsec = (stat.modified_ms as i64).saturating_mul(1_000_000);
        let is_directory = stat.is_directory;
        *statistics = TfStatistics { length: stat.length as i64, mtime_nsec, is_directory };
        Ok(())
    })
}

unsafe extern "C" fn is_directory<S: Scheme>(
    _: *const TfFilesystem,
    path: *const c_char,
    status: *mut TfStatus,
) -> bool {
    run(status, false, || {
        let path = text(path);
        match S::stat(&path)?.is_directory {
            true => Ok(true),
            false => Err(Error::new(Code::FailedPrecondition, &path, "not a directory")),
        }
    })
}

unsafe extern "C" fn get_file_size<S: Scheme>(
    _: *const TfFilesystem,
    path: *const c_char,
    status: *mut TfStatus,
) -> i64 {
    run(status, -1, || {
        let path = text(path);
        let stat = S::stat(&path)?;
        match stat.is_directory {
            false => Ok(stat.length as i64),
            true => Err(Error::new(Code::FailedPrecondition, &path, "is a directory")),
        }
    })
}

unsafe extern "C" fn translate_name<S: Scheme>(
    _: *const TfFilesystem,
    path: *const c_char,
) -> *mut c_char {
    let path = text(path);
    let translated = catch_unwind(|| S::translate(&path));
    give_text(&translated.unwrap_or_else(|_| path.to_string()))
}

unsafe extern "C" fn flush_caches<S: Scheme>(_: *const TfFilesystem) {
    // Nobody to report a panic to.
    let _ = catch_unwind(S::flush_caches);
}

fn filesystem_ops<S: Scheme>() -> FilesystemOps {
    FilesystemOps {
        init,
        cleanup,
        new_random_access_file: new_random_access_file::<S>,
        new_writable_file: new_writable_file::<S>,
        new_appendable_file: new_appendable_file::<S>,
        new_read_only_memory_region_from_file: null(),
        create_dir: create_dir::<S>,
        recursively_create_dir: recursively_create_dir::<S>,
        delete_file: delete_file::<S>,
        delete_dir: delete_dir::<S>,
        delete_recursively: delete_recursively::<S>,
        rename_file: rename_file::<S>,
        copy_file: copy_file::<S>,
        path_exists: path_exists::<S>,
        paths_exist: null(),
        stat: stat::<S>,
        is_directory: is_directory::<S>,
        get_file_size: get_file_size::<S>,
        translate_name: translate_name::<S>,
        get_children: get_children::<S>,
        get_matching_paths: get_matching_paths::<S>,
        flush_caches: flush_caches::<S>,
        unused: [null(); 11],
    }
}

/// The tables of one scheme, in memory that TensorFlow releases.
pub unsafe fn plugin_ops<S: Scheme>(name: &str) -> PluginOps {
    PluginOps {
        scheme: give_text(name),
        filesystem_abi: 0,
        filesystem_api: 0,
        filesystem_size: size_of::<FilesystemOps>(),
        filesystem: give(filesystem_ops::<S>()),
        reader_abi: 0,
        reader_api: 0,
        reader_size: size_of::<ReaderOps>(),
        reader: give(reader_ops()),
        writer_abi: 0,
        writer_api: 0,
        writer_size: size_of::<WriterOps>(),
        writer: give(writer_ops()),
        region_abi: 0,
        region_api: 0,
        region_size: REGION_OPS_SIZE,
        region: null_mut(),
    }
}
