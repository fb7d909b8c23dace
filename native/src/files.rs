//! The C functions on open files. TensorFlow holds a `Box<dyn ReadFile>` or `Box<dyn WriteFile>`.

use std::ffi::c_char;
use std::panic::{catch_unwind, AssertUnwindSafe};

use crate::ffi::*;
use crate::scheme::{ReadFile, WriteFile};
use crate::status::{Code, Error, Outcome};
use crate::table::run;

const BEFORE_FORK: &str = "the file was opened before fork(), by the parent process";

pub fn reader_ops() -> ReaderOps {
    ReaderOps { cleanup: close_reader, read }
}

pub fn writer_ops() -> WriterOps {
    WriterOps { cleanup: close_writer, append, tell, flush, sync, close }
}

unsafe extern "C" fn close_reader(file: *mut TfFile) {
    // A panic has nobody to be reported to, and the file is gone in any case.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let reader = Box::from_raw((*file).state.cast::<Box<dyn ReadFile>>());
        if !reader.is_ours() {
            // Its connections belong to the parent.
            std::mem::forget(reader);
        }
    }));
}

unsafe extern "C" fn read(
    file: *const TfFile,
    offset: u64,
    length: usize,
    buffer: *mut c_char,
    status: *mut TfStatus,
) -> i64 {
    let reader = &*(*file).state.cast::<Box<dyn ReadFile>>();
    let count = run(status, -1, || {
        if !reader.is_ours() {
            return Err(Error::new(Code::FailedPrecondition, reader.name(), BEFORE_FORK));
        }
        if length == 0 {
            return Ok(0);
        }
        let buffer = std::slice::from_raw_parts_mut(buffer.cast::<u8>(), length);
        Ok(reader.read(offset, buffer)? as i64)
    });
    if (0..length as i64).contains(&count) {
        let what = format!("end of file: {count} of {length} bytes at offset {offset}");
        let error = Error::new(Code::OutOfRange, reader.name(), what);
        set_status(status, error.code, &error.message);
    }
    count
}

unsafe extern "C" fn close_writer(file: *mut TfFile) {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let writer = Box::from_raw((*file).state.cast::<Box<dyn WriteFile>>());
        if !writer.is_ours() {
            std::mem::forget(writer);
        } else if let Err(error) = writer.close() {
            // The program never closed it, so there is no status to put the error into.
            eprintln!("tfy: {} (while dropping a file that was not closed)", error.message);
        }
    }));
}

unsafe fn on_writer<T>(
    file: *const TfFile,
    status: *mut TfStatus,
    otherwise: T,
    operation: impl FnOnce(&dyn WriteFile) -> Outcome<T>,
) -> T {
    let writer = &*(*file).state.cast::<Box<dyn WriteFile>>();
    run(status, otherwise, || match writer.is_ours() {
        true => operation(writer.as_ref()),
        false => Err(Error::new(Code::FailedPrecondition, writer.name(), BEFORE_FORK)),
    })
}

unsafe extern "C" fn append(
    file: *const TfFile,
    data: *const c_char,
    length: usize,
    status: *mut TfStatus,
) {
    on_writer(file, status, (), |writer| match length {
        0 => Ok(()),
        _ => writer.append(std::slice::from_raw_parts(data.cast::<u8>(), length)),
    })
}

unsafe extern "C" fn tell(file: *const TfFile, status: *mut TfStatus) -> i64 {
    on_writer(file, status, -1, |writer| Ok(writer.tell()? as i64))
}

unsafe extern "C" fn flush(file: *const TfFile, status: *mut TfStatus) {
    on_writer(file, status, (), |writer| writer.flush())
}

unsafe extern "C" fn sync(file: *const TfFile, status: *mut TfStatus) {
    on_writer(file, status, (), |writer| writer.sync())
}

unsafe extern "C" fn close(file: *const TfFile, status: *mut TfStatus) {
    on_writer(file, status, (), |writer| writer.close())
}
