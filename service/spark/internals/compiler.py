"""Janino, the Java compiler among Spark's archives: Spark compiles projections with it, we compile our own classes.

So no JDK is needed, only the Java that Spark runs on. It knows no lambdas and checks no type arguments: our sources
have neither.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

COMPILER = "org.codehaus.janino.Compiler"
"""The class of the compiler."""


class NotCompiled(Exception):
    """A source that the compiler has refused; the text is that of the compiler."""


def compile_java(java: str, sources: Sequence[Path], class_path: Sequence[Path], target: Path) -> None:
    """Compile `sources` with the archives of `class_path`, which hold the compiler, into the folder `target`, in a JVM
    of its own. Raises NotCompiled."""
    port, secret = launch_gateway(
        jarpath=str(next(jar for jar in class_path if jar.name.startswith("py4j"))),
        classpath=os.pathsep.join(map(str, class_path)),
        java_path=java,
        die_on_exit=True,
        redirect_stderr=subprocess.DEVNULL,
        enable_auth=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=secret))
    try:
        file = gateway.jvm.java.io.File

        def files(paths: Sequence[Path]) -> object:
            array = gateway.new_array(file, len(paths))
            for number, path in enumerate(paths):
                array[number] = file(str(path))
            return array

        compiler = getattr(gateway.jvm, COMPILER)()
        compiler.setDestinationDirectory(file(str(target)), False)
        compiler.setTargetVersion(8)  # static methods of interfaces can be called
        compiler.setClassPath(files(class_path))
        compiler.compile(files(sources))
    except Py4JJavaError as error:
        raise NotCompiled(str(error.java_exception.toString())) from None
    finally:
        gateway.shutdown()
