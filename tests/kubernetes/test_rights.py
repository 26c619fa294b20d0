"""The Role of the driver is as small as can be: every verb of it is used, and nothing beyond it is asked for."""

from __future__ import annotations

from collections.abc import Iterator

from tests.kubernetes.cluster import audit
from tests.kubernetes.cluster.cluster import Cluster
from tests.kubernetes.cluster.kubectl import Kubectl
from tests.kubernetes.orders import Orders
from tests.kubernetes.release import EXECUTORS, NAME, MakeRelease, Values
from tests.kubernetes.waiting import until

FORBIDDEN = 'cannot create resource \\"pods\\"'

KILL_JAVA = """
for process in /proc/[0-9]*; do
    if [ "$(cat $process/comm)" = java ]; then kill -KILL ${process#/proc/}; fi
done
"""

VALUES: Values = {**EXECUTORS, "spark": {"executor": {"instances": 1}}}

Right = tuple[str, str]
"""A verb and the resource that it is for."""


def granted(kubectl: Kubectl) -> Iterator[Right]:
    """What the Role of the release allows."""
    role = kubectl.get("role", NAME)
    for rule in role["rules"] if role else ():
        yield from ((verb, resource) for resource in rule["resources"] for verb in rule["verbs"])


def test_without_any_one_of_its_verbs_the_driver_would_be_refused_something(
    cluster: Cluster, orders: Orders, answered: MakeRelease
):
    """Each is asked for in the life of a release: without it a request would be refused, which fails this test."""
    running = answered(VALUES)
    role = set(granted(running.kubectl))
    # The pod of an executor that dies stays, until the driver deletes it.
    running.kubectl("exec", running.executors()[0]["metadata"]["name"], "--", "sh", "-c", KILL_JAVA)
    orders.feed(1000)
    orders.until_answered(running.report)
    running.stop()
    asked = [each for each in audit.requests(cluster.audit_log, running.namespace) if each.user == NAME]
    assert not [str(each) for each in asked if not each.allowed]
    assert {(each.verb, each.resource) for each in asked} == role


def test_a_driver_that_may_not_make_pods_says_so(orders: Orders, release: MakeRelease):
    """It also shows that a refused request is noticed, here and at the end of every other test."""
    running = release({**VALUES, "rbac": {"create": False}, "pipeline": {"sql": orders.pipeline}})
    running.kubectl("create", "role", NAME, "--verb=get,list,watch,delete,deletecollection", "--resource=pods")
    account = f"{running.namespace}:{NAME}"
    running.kubectl("create", "rolebinding", NAME, f"--role={NAME}", f"--serviceaccount={account}")
    running.install()
    until("the driver says what it may not", lambda: FORBIDDEN in running.log(), explain=running.report)
    assert not running.ready()
    running.refused = {"create pods"}
