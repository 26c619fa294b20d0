"""Where the lock of a checkpoint keeps every other driver out, and not only those that ask for it on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from service.host.checkpoint_lock import CheckpointInUse, CheckpointLock, excludes_others

MOUNTS = r"""
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 27 0:40 / /data rw,relatime - nfs4 server:/data rw
31 30 8:16 / /data/own rw - xfs /dev/sdb rw
32 27 8:32 / /with\040space rw - fuse.s3fs s3fs rw
33 27 8:48 / /twice rw - ext4 /dev/sdc rw
35 27 0:42 / /größe rw - nfs4 server:/data rw
34 33 0:41 / /twice rw - cifs //server/share rw
""".strip()


@pytest.mark.parametrize(
    ("checkpoint", "excludes"),
    [
        ("/var/lib/tailrace/job", True),
        ("file:///var/lib/tailrace/job", True),
        ("file:/var/lib/tailrace/job", True),
        ("/data/job", False),
        ("/data/own/job", True),
        ("/database/job", True),
        ("/with space/job", False),
        ("/twice/job", False),
        ("/größe/job", False),
        ("s3a://bucket/job", False),
    ],
)
def test_a_lock_counts_in_a_file_system_of_this_machine_alone(checkpoint: str, excludes: bool, tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)
    assert excludes_others(checkpoint, mounts) is excludes


def test_where_the_mounts_are_not_known_nothing_is(tmp_path: Path) -> None:
    assert not excludes_others("/var/lib/tailrace/job", tmp_path / "nowhere")


def test_a_second_driver_is_kept_out_until_the_first_one_ends(tmp_path: Path) -> None:
    with CheckpointLock(str(tmp_path)), pytest.raises(CheckpointInUse):
        CheckpointLock(str(tmp_path)).__enter__()
    with CheckpointLock(str(tmp_path)):
        pass
