"""Read by every Python process that Spark starts, before anything else: import installed packages, not zip files.

Spark puts its own copy of PySpark first, in a zip file, which keeps no bytecode: each of the dozen helper processes of
a starting query would compile it anew. This folder is on the path of those processes only.
"""

import sys

sys.path.sort(key=lambda entry: entry.endswith(".zip"))
