"""The chart is rendered by Helm's own code, which has no package for Macs with Intel processors."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("helm_python") else ["test_*.py"]
