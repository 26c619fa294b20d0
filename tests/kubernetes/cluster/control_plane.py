"""The control plane: etcd, API server, controllers, scheduler, and what stands for the add-ons of every cluster, the
proxy of Services and the name server."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.kubernetes.cluster import network
from tests.kubernetes.cluster.certificates import Authority
from tests.kubernetes.cluster.process import Process
from tests.kubernetes.cluster.tools import tool

AUDITED: dict[str, object] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "userGroups": ["system:serviceaccounts:kube-system"]},
        {"level": "Metadata", "userGroups": ["system:serviceaccounts"]},
        {"level": "None"},
    ],
}
"""What the audit log tells: who of the service accounts outside of the control plane asked for what, and the answer."""


class ControlPlane:
    """A control plane with RBAC and Pod Security admission. `admin` is the kubeconfig of who may do everything."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: list[Process] = []
        network.start()
        for address in (network.MACHINE, network.NAME_SERVER):
            network.add_address(address)
        self.authority = Authority(folder / "certificates")
        self.admin = self._user("admin", group="system:masters")
        self.audit_log = folder / "audit.log"

    def start(self) -> None:
        """Start everything; return when the API server answers and knows its own namespaces."""
        self._run("etcd", *_ETCD, f"--data-dir={self._folder / 'etcd'}")
        api_server = self._run("kube-apiserver", *self._api_server())
        api_server.ready("the API server is ready", self._asked("get", "--raw", "/readyz"))
        for component in ("kube-controller-manager", "kube-scheduler"):
            self._run(component, *self._component(component))
        self._run("kube-proxy", f"--config={self._write('kube-proxy.yaml', self._proxy())}")
        names = self._run("dns", "-conf", str(self._write("Corefile", self._corefile())))
        names.ready("the name server answers", lambda: "CoreDNS" in names.log.read_text())
        api_server.ready("service accounts can be used", self._asked("get", "serviceaccount", "default"))

    def stop(self) -> None:
        """End everything."""
        for process in reversed(self._processes):
            process.stop()

    def _run(self, name: str, *arguments: str) -> Process:
        self._processes.append(Process(name, [tool(name), *arguments], self._folder))
        return self._processes[-1]

    def _asked(self, *arguments: str) -> Callable[[], bool]:
        command = [tool("kubectl"), f"--kubeconfig={self.admin}", *arguments]
        return lambda: subprocess.run(command, capture_output=True).returncode == 0

    def _user(self, name: str, *, user: str = "", group: str = "") -> Path:
        return self.authority.kubeconfig(name, network.API_SERVER, user=user or f"system:{name}", group=group)

    def _write(self, name: str, content: object) -> Path:
        path = self._folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def _api_server(self) -> list[str]:
        names = [
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            f"kubernetes.default.svc.{network.DOMAIN}",
        ]
        server = self.authority.issue("server", user="kube-apiserver", hosts=[*names, "10.96.0.1", network.MACHINE])
        to_kubelets = self.authority.issue("to-kubelets", user="kube-apiserver", group="system:masters")
        accounts = self.authority.issue("accounts", user="service-accounts")
        return [
            "--etcd-servers=http://127.0.0.1:2379",
            f"--bind-address={network.MACHINE}",
            f"--advertise-address={network.MACHINE}",
            f"--service-cluster-ip-range={network.SERVICES}",
            f"--client-ca-file={self.authority.file}",
            f"--tls-cert-file={server.certificate}",
            f"--tls-private-key-file={server.key}",
            f"--kubelet-client-certificate={to_kubelets.certificate}",
            f"--kubelet-client-key={to_kubelets.key}",
            "--kubelet-preferred-address-types=InternalIP",  # nobody knows the names of the nodes
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={accounts.certificate}",
            f"--service-account-signing-key-file={accounts.key}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            f"--audit-policy-file={self._write('audit-policy.yaml', AUDITED)}",
            f"--audit-log-path={self.audit_log}",
        ]

    def _component(self, name: str) -> list[str]:
        me = str(self._user(name))
        common = [f"--kubeconfig={me}", f"--authentication-kubeconfig={me}", f"--authorization-kubeconfig={me}"]
        common += ["--bind-address=127.0.0.1", "--leader-elect=false"]
        if name == "kube-scheduler":
            return common
        certificates = self.authority.file.parent
        return [
            *common,
            "--use-service-account-credentials",
            f"--root-ca-file={self.authority.file}",
            f"--service-account-private-key-file={certificates / 'accounts.key'}",
        ]

    def _proxy(self) -> dict[str, object]:
        return {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "nftables",
            "clientConnection": {"kubeconfig": str(self._user("kube-proxy"))},
            "clusterCIDR": "10.200.0.0/16",
            "hostnameOverride": "node-1",
            "healthzBindAddress": "127.0.0.1:10256",
            # Those of the machine stay as they are.
            "conntrack": {"maxPerCore": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        }

    def _corefile(self) -> str:
        return f"""
.:53 {{
    bind {network.NAME_SERVER}
    errors
    kubernetes {network.DOMAIN} in-addr.arpa ip6.arpa {{
        kubeconfig {self._user("dns", group="system:masters")}
        ttl 5
    }}
}}
"""


_ETCD = (
    "--listen-client-urls=http://127.0.0.1:2379",
    "--advertise-client-urls=http://127.0.0.1:2379",
    "--listen-peer-urls=http://127.0.0.1:2380",
    # What it keeps goes with the test.
    "--unsafe-no-fsync",
    "--log-level=warn",
)
