"""What tasks and driver ask of the object store that holds the checkpoint, as metrics of the batch."""

from __future__ import annotations

from service.checkpoint.files import Files
from service.runtime.task_metrics import TaskMetrics


def count_traffic(metrics: TaskMetrics, files: Files) -> None:
    """Count what this process has asked of the store of `files` since this was last called: of a folder, nothing."""
    traffic = files.traffic.take()
    for operation, times in traffic.operations.items():
        metrics.count("store_operations_total", times, operation=operation)
    metrics.count("store_read_bytes_total", traffic.read)
    metrics.count("store_written_bytes_total", traffic.written)
