"""A host with GPUs, for tests on one without: a program that answers as nvidia-smi does.

What it prints is written by us, after the form of `nvidia-smi -x -q`; no device stands behind it.
"""

from __future__ import annotations

from pathlib import Path

_GPU = """
  <gpu id="00000000:0{number}:00.0">
    <product_name>No real device</product_name>
    <uuid>{uuid}</uuid>
    <minor_number>{number}</minor_number>
    <fb_memory_usage><total>16384 MiB</total><used>0 MiB</used><free>16384 MiB</free></fb_memory_usage>
    <utilization><gpu_util>0 %</gpu_util><memory_util>0 %</memory_util></utilization>
    <temperature>
      <gpu_temp>30 C</gpu_temp>
      <gpu_temp_max_threshold>90 C</gpu_temp_max_threshold>
      <gpu_temp_slow_threshold>85 C</gpu_temp_slow_threshold>
    </temperature>
    <processes>{processes}</processes>
  </gpu>"""
_PROCESS = "<process_info><pid>1</pid><type>C</type><used_memory>1 MiB</used_memory></process_info>"


def make_smi_xml(uuids: tuple[str, ...], busy: tuple[str, ...] = ()) -> str:
    """What nvidia-smi prints of these devices, numbered from 0; on the `busy` ones something computes."""
    gpus = "".join(
        _GPU.format(number=number, uuid=uuid, processes=_PROCESS if uuid in busy else "")
        for number, uuid in enumerate(uuids)
    )
    return (
        '<?xml version="1.0" ?>\n<nvidia_smi_log>\n  <driver_version>580.1</driver_version>\n'
        f"  <attached_gpus>{len(uuids)}</attached_gpus>{gpus}\n</nvidia_smi_log>\n"
    )


def write_smi(folder: Path, uuids: tuple[str, ...]) -> Path:
    """A program `nvidia-smi` in `folder` that shows these devices."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "gpus.xml").write_text(make_smi_xml(uuids))
    smi = folder / "nvidia-smi"
    smi.write_text(f"#!/bin/sh\nexec cat {folder}/gpus.xml\n")
    smi.chmod(0o755)
    return smi
