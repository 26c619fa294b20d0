"""A node: a kubelet with a containerd of its own, in a mount namespace where /var/lib, /var/log and /run are theirs, so
that several nodes fit on one machine. Pods get network namespaces from Debian's CNI plugins."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.kubernetes.cluster import network
from tests.kubernetes.cluster.certificates import Authority
from tests.kubernetes.cluster.cgroups import make_cgroup
from tests.kubernetes.cluster.images import share
from tests.kubernetes.cluster.process import Process
from tests.kubernetes.cluster.tools import TOOLS, tool

PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
SOCKET = "/run/containerd/containerd.sock"

# A kubelet sets these for its whole machine. Here it writes into copies.
SYSCTLS = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops")

_ENTER = """
set -e
mount --bind "$1/lib" /var/lib
mount --bind "$1/log" /var/log
mount -t tmpfs tmpfs /run
shift
for name; do
    cat "/proc/sys/$name" >"/run/${name##*/}"
    mount --bind "/run/${name##*/}" "/proc/sys/$name"
done
echo entered
exec sleep infinity
"""


class Node:
    """One node of the cluster, called node-1, node-2, ..."""

    def __init__(self, number: int, folder: Path, authority: Authority, pause_image: str) -> None:
        self.name = f"node-{number}"
        self._number = number
        self._folder = folder / self.name
        self._authority = authority
        self._pause_image = pause_image
        self._processes: list[Process] = []
        for place in ("lib", "log"):
            (self._folder / place).mkdir(parents=True)

    def start(self, images: Path) -> None:
        """Start containerd with a copy of these images, then the kubelet. The node joins the cluster by itself."""
        network.add_address(network.node_address(self._number))
        share(images, self._folder / "lib" / "containerd")
        enter = ["unshare", "--mount", "sh", "-c", _ENTER, "enter", str(self._folder), *SYSCTLS]
        self._place = self._keep(Process("mounts", enter, self._folder))
        self._place.ready("the node has its folders", lambda: "entered" in self._place.log.read_text())
        containerd = self._run("containerd", f"--config={self._containerd()}")
        containerd.ready("containerd answers", lambda: "successfully booted" in containerd.log.read_text())
        self._run("kubelet", f"--config={self._kubelet()}", *self._identity())

    def stop(self) -> None:
        """End it as if its plug had been pulled; its pods run on until the machine ends."""
        for process in self._processes:
            process.stop()

    def tail(self) -> str:
        """The end of the logs of its kubelet and its containerd."""
        return "\n".join(process.tail() for process in self._processes)

    def _run(self, name: str, *arguments: str) -> Process:
        command = [*self._inside(), tool(name), *arguments]
        return self._keep(Process(name, command, self._folder, {"PATH": f"{TOOLS}:{PATH}"}))

    def _keep(self, process: Process) -> Process:
        self._processes.append(process)
        return process

    def _inside(self) -> list[str]:
        return ["nsenter", f"--mount=/proc/{self._place.pid}/ns/mnt", "--"]

    def _identity(self) -> list[str]:
        me = self._authority.kubeconfig(
            self.name, network.API_SERVER, user=f"system:node:{self.name}", group="system:nodes"
        )
        return [
            f"--kubeconfig={me}",
            f"--hostname-override={self.name}",
            f"--node-ip={network.node_address(self._number)}",
        ]

    def _kubelet(self) -> Path:
        address = network.node_address(self._number)
        server = self._authority.issue(f"{self.name}-server", user=self.name, hosts=[address])
        return self._write(
            "kubelet.yaml",
            {
                "apiVersion": "kubelet.config.k8s.io/v1beta1",
                "kind": "KubeletConfiguration",
                "address": address,
                "healthzPort": 0,
                "tlsCertFile": str(server.certificate),
                "tlsPrivateKeyFile": str(server.key),
                "authentication": {"x509": {"clientCAFile": str(self._authority.file)}},
                "containerRuntimeEndpoint": f"unix://{SOCKET}",
                "clusterDNS": [network.NAME_SERVER],
                "clusterDomain": network.DOMAIN,
                "resolvConf": "",
                "cgroupDriver": "cgroupfs",
                "cgroupRoot": make_cgroup(self.name),
                # Machines of every kind run the tests: with the older control groups, with swap, with a full disk.
                "failCgroupV1": False,
                "failSwapOn": False,
                "evictionHard": {"memory.available": "100Mi"},
                "imageGCHighThresholdPercent": 100,
                "nodeStatusUpdateFrequency": "5s",
            },
        )

    def _containerd(self) -> Path:
        networks = self._folder / "networks"
        networks.mkdir()
        (networks / "pods.conflist").write_text(json.dumps(self._pod_network()))
        path = self._folder / "containerd.toml"
        path.write_text(f"""\
version = 3
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
  pinned_images = {{ sandbox = "{self._pause_image}" }}
[plugins."io.containerd.cri.v1.runtime"]
  disable_apparmor = true
  restrict_oom_score_adj = true
  cni = {{ bin_dirs = ["/usr/lib/cni"], conf_dir = "{networks}" }}
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
  options = {{ BinaryName = "{shutil.which("runc", path=PATH)}" }}
""")
        return path

    def _pod_network(self) -> dict[str, object]:
        """Each pod has a wire to the machine, which routes: without a bridge every packet meets the proxy's rules."""
        addresses = {
            "type": "host-local",
            "ranges": [[{"subnet": network.pod_range(self._number)}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        }
        return {"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "ptp", "ipam": addresses}]}

    def _write(self, name: str, content: dict[str, object]) -> Path:
        path = self._folder / name
        path.write_text(json.dumps(content))
        return path
