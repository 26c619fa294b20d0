"""Ask a service whether it is ready, until it is or the time is over; then whether it tells its metrics."""

import sys
import time
import urllib.error
import urllib.request


def get(url):
    """Status and text of the answer; a service that does not answer has status 0."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)


service, seconds = sys.argv[1], float(sys.argv[2])
deadline = time.monotonic() + seconds
status, said = get(service + "/readyz")
while status != 200 and time.monotonic() < deadline:
    time.sleep(2)
    status, said = get(service + "/readyz")
if status != 200:
    sys.exit(f"not ready after {seconds:.0f} s: {said.strip()}")
print("ready")
status, said = get(service + "/metrics")
samples = [line for line in said.splitlines() if line.startswith("tailrace_")]
if status != 200 or not samples:
    sys.exit(f"no metrics (status {status})")
print(f"{len(samples)} metrics")
