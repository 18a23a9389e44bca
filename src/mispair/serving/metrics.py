"""Counters in the text format of Prometheus."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict

_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """Requests by route and status, and how long they took. Safe across threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._below: Counter[tuple[str, float]] = Counter()
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def observe(self, route: str, status: int, seconds: float) -> None:
        """One request that was answered."""
        with self._lock:
            self._requests[route, status] += 1
            self._seconds[route] += seconds
            for bound in _BOUNDS:
                if seconds <= bound:
                    self._below[route, bound] += 1

    def text(self) -> str:
        """The page `/metrics`."""
        with self._lock:
            lines = ["# HELP mispair_requests_total Requests answered.", "# TYPE mispair_requests_total counter"]
            for (route, status), count in sorted(self._requests.items()):
                lines.append(f'mispair_requests_total{{route="{route}",status="{status}"}} {count}')
            lines += ["# HELP mispair_request_seconds Time to answer.", "# TYPE mispair_request_seconds histogram"]
            for route in sorted(self._seconds):
                total = sum(count for (name, _), count in self._requests.items() if name == route)
                for bound in _BOUNDS:
                    count = self._below[route, bound]
                    lines.append(f'mispair_request_seconds_bucket{{route="{route}",le="{bound}"}} {count}')
                lines.append(f'mispair_request_seconds_bucket{{route="{route}",le="+Inf"}} {total}')
                lines.append(f'mispair_request_seconds_sum{{route="{route}"}} {self._seconds[route]:.6f}')
                lines.append(f'mispair_request_seconds_count{{route="{route}"}} {total}')
        return "\n".join(lines) + "\n"
