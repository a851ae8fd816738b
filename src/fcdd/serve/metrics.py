"""What a server counts, in Prometheus form."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from fcdd.serve.limits import Admission

CONTENT_TYPE = CONTENT_TYPE_LATEST
SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
SIZES = (1, 2, 4, 8, 16, 32)


class Metrics:
    """Counters of one server in a registry of its own, so that several can live in one process."""

    def __init__(self, admission: Admission) -> None:
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self.requests = Counter("fcdd_requests", "Answered requests", ["route", "method", "status"], registry=registry)
        self.seconds = Histogram(
            "fcdd_request_seconds", "Time to the whole answer", ["route"], buckets=SECONDS, registry=registry
        )
        self.pictures = Counter("fcdd_pictures", "Judged pictures", ["model", "verdict"], registry=registry)
        self.batches = Histogram(
            "fcdd_batch_pictures", "Pictures computed together", ["model"], buckets=SIZES, registry=registry
        )
        waiting = Gauge("fcdd_queue_pictures", "Pictures in the server", registry=registry)
        waiting.set_function(lambda: admission.pictures)
        limit = Gauge("fcdd_queue_limit", "Pictures the server takes at most", registry=registry)
        limit.set(admission.limits.queue)

    def text(self) -> bytes:
        return generate_latest(self._registry)
