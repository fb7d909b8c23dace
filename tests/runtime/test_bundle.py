"""Whether a checkpoint is all there, on TensorFlow's own files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.runtime.checkpoint_makers import cut, data_file, index_file, save
from tests.runtime.hdfs_files import read, write
from tfy.runtime.bundle import MalformedIndexError, find_flaw, parse_index


def sizes(prefix: str) -> list[int]:
    """The lengths of the data files, in order."""
    folder, name = Path(prefix).parent, Path(prefix).name
    return [path.stat().st_size for path in sorted(folder.glob(f"{name}.data-*"))]


def write_sharded(tf: Any, prefix: Path) -> str:
    variables = [tf.Variable(tf.random.normal([100])) for _ in range(30)]
    policy = tf.train.experimental.MaxShardSizePolicy(max_shard_size=4000)
    options = tf.train.CheckpointOptions(experimental_sharding_callback=policy)
    return str(tf.train.Checkpoint(v=variables).write(str(prefix), options=options))


@pytest.mark.parametrize("count", [0, 1, 3000])
def test_what_tensorflow_wrote_is_whole_and_its_lengths_are_exact(
    tf: Any, tmp_path: Path, count: int
) -> None:
    variables = [tf.Variable(tf.random.normal([count % 7, 5])) for _ in range(count)]
    checkpoint = tf.train.Checkpoint(v=variables, text=tf.Variable(["a", "bb" * 300]), n=tf.Variable(count))
    prefix = checkpoint.write(str(tmp_path / "ckpt"))
    assert find_flaw(prefix) is None
    assert parse_index(index_file(prefix).read_bytes()) == sizes(prefix)


def test_every_shard_is_needed_to_its_end(tf: Any, tmp_path: Path) -> None:
    prefix = write_sharded(tf, tmp_path / "ckpt")
    shards = sorted(tmp_path.glob("ckpt.data-*"))
    assert find_flaw(prefix) is None
    assert len(shards) > 2
    assert parse_index(index_file(prefix).read_bytes()) == sizes(prefix)
    for path in shards:
        whole = path.read_bytes()
        cut(path)
        assert str(find_flaw(prefix)) == f"{path.name} has {len(whole) - 1} of {len(whole)} bytes"
        path.unlink()
        flaw = find_flaw(prefix)
        assert flaw
        assert (flaw.text, flaw.unfinished) == (f"{path.name} is missing", False)
        path.write_bytes(whole)
    assert find_flaw(prefix) is None


def test_slices_of_a_partitioned_variable_count(tf: Any, tmp_path: Path) -> None:
    parts = [f"{tmp_path}/part-{at}" for at in range(2)]
    for at, part in enumerate(parts):
        slices = [f"10 4 {5 * at},5:0,4"]
        tf.raw_ops.SaveV2(prefix=part, tensor_names=["v"], shape_and_slices=slices, tensors=[tf.ones([5, 4])])
    prefix = f"{tmp_path}/ckpt"
    tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=parts, destination_prefix=prefix)
    assert find_flaw(prefix) is None
    assert parse_index(index_file(prefix).read_bytes()) == [80, 80]
    cut(Path(f"{prefix}.data-00001-of-00002"))
    assert str(find_flaw(prefix)) == "ckpt.data-00001-of-00002 has 79 of 80 bytes"


def test_an_index_cut_anywhere_is_unfinished(tf: Any, tmp_path: Path) -> None:
    prefix = save(tf, tmp_path / "ckpt")
    whole = index_file(prefix).read_bytes()
    for length in range(len(whole)):
        index_file(prefix).write_bytes(whole[:length])
        flaw = find_flaw(prefix)
        assert flaw, length
        assert flaw.unfinished, length
    index_file(prefix).unlink()
    flaw = find_flaw(prefix)
    assert flaw
    assert (flaw.text, flaw.unfinished) == ("it has no .index file", True)


def test_a_data_file_cut_to_nothing_is_told(tf: Any, tmp_path: Path) -> None:
    prefix = save(tf, tmp_path / "ckpt")
    length = data_file(prefix).stat().st_size
    data_file(prefix).write_bytes(b"")
    assert str(find_flaw(prefix)) == f"ckpt.data-00000-of-00001 has 0 of {length} bytes"


def test_no_byte_of_an_index_can_make_it_crash_or_loop(tf: Any, tmp_path: Path) -> None:
    whole = index_file(save(tf, tmp_path / "ckpt")).read_bytes()
    told = 0
    for at in range(len(whole)):
        for value in (0x00, 0x7F, 0x80, 0xFF):
            damaged = bytearray(whole)
            damaged[at] = value
            (tmp_path / "ckpt.index").write_bytes(bytes(damaged))
            told += find_flaw(f"{tmp_path}/ckpt") is not None
    assert told > 100
    with pytest.raises(MalformedIndexError):
        parse_index(bytes(500) + whole[-48:])


def test_a_compressed_index_needs_one_data_file_of_each_number(tf: Any, tmp_path: Path) -> None:
    prefix = write_sharded(tf, tmp_path / "odd[1]-*")
    data = bytearray(index_file(prefix).read_bytes())
    # The last block, which lists the others, ends 5 bytes (compression, CRC) before the footer.
    data[-48 - 5] = 1
    index_file(prefix).write_bytes(bytes(data))
    assert find_flaw(prefix) is None
    next(path for path in tmp_path.iterdir() if ".data-00001-of-" in path.name).unlink()
    assert str(find_flaw(prefix)) == "some of its data files are missing"


@pytest.mark.cluster
@pytest.mark.timeout(180)
def test_on_hdfs_too(tf: Any, folder: str) -> None:
    prefix = save(tf, f"{folder}/ckpt")
    assert find_flaw(prefix) is None
    shard = f"{prefix}.data-00000-of-00001"
    whole = read(tf, shard)
    write(tf, shard, whole[:-1])
    assert str(find_flaw(prefix)) == f"ckpt.data-00000-of-00001 has {len(whole) - 1} of {len(whole)} bytes"
    tf.io.gfile.remove(shard)
    assert str(find_flaw(prefix)) == "ckpt.data-00000-of-00001 is missing"
    tf.io.gfile.remove(f"{prefix}.index")
    assert str(find_flaw(prefix)) == "it has no .index file"
