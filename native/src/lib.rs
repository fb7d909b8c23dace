//! A TensorFlow file system plugin for `hdfs://` and `viewfs://` (without a JVM, over the
//! `hdfs-native` crate), and for `tfy://`, by which a graph learns about its process.

// Every C function here gets its pointers from TensorFlow, under the contract of its header.
#![allow(clippy::missing_safety_doc)]

mod counters;
mod ffi;
mod files;
mod fork;
mod glob;
mod hdfs;
mod inflate;
mod input;
mod per_process;
mod process;
mod reader;
mod record;
mod records;
mod resync;
mod scheme;
mod settings;
mod site;
mod source;
mod status;
mod table;
mod task;
mod uri;
mod writer;

use std::ffi::c_char;
use std::panic::catch_unwind;
use std::ptr::null_mut;

use ffi::{allocate, allocate_array, release, PluginInfo, PluginOps};
use hdfs::Hdfs;
use table::plugin_ops;
use task::Task;

/// The entry point that TensorFlow looks for.
///
/// `tfy` comes first: TensorFlow registers in order and stops at a scheme that somebody has
/// registered before, so the name in its error tells a second load of this plugin from another
/// library's `hdfs`.
#[no_mangle]
pub unsafe extern "C" fn TF_InitPlugin(info: *mut PluginInfo) {
    if ffi::find_set_status().is_none() {
        eprintln!("tfy: no TensorFlow in this process (TF_SetStatus is missing), so no hdfs://");
        *info = PluginInfo { num_schemes: 0, ops: null_mut(), allocate, release };
        return;
    }
    let all = [plugin_ops::<Task>("tfy"), plugin_ops::<Hdfs>("hdfs"), plugin_ops::<Hdfs>("viewfs")];
    let num_schemes = all.len();
    let ops = allocate_array::<PluginOps>(num_schemes);
    for (i, scheme) in all.into_iter().enumerate() {
        ops.add(i).write(scheme);
    }
    *info = PluginInfo { num_schemes, ops, allocate, release };
}

/// The counters of this process as JSON text, without a closing zero byte.
///
/// Returns the length of the text, which is in `buffer` only if `length` is enough for it; -1 is
/// a fault of the plugin.
#[no_mangle]
pub unsafe extern "C" fn tfy_counters(buffer: *mut c_char, length: usize) -> i64 {
    let Ok(text) = catch_unwind(|| counters::current().to_json()) else {
        return -1;
    };
    if !buffer.is_null() && text.len() <= length {
        std::ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast(), text.len());
    }
    text.len() as i64
}
