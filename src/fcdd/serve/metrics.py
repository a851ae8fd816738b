"""What a server counts, in Prometheus form."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from fcdd.serve.decoders import Decoders
from fcdd.serve.limits import Admission

CONTENT_TYPE = CONTENT_TYPE_LATEST
SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
SIZES = (1, 2, 4, 8, 16, 32)


class Metrics:
    """Counters of one server in a registry of its own, so that several can live in one process."""

    def __init__(self, admission: Admission, decoders: Decoders) -> None:
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self.requests = Counter("fcdd_requests", "Answered requests", ["route", "method", "status"], registry=registry)
        self.seconds = Histogram(
            "fcdd_request_seconds", "Time to the whole answer", ["route"], buckets=SECONDS, registry=registry
        )
        self.images = Counter("fcdd_images", "Judged images", ["model", "verdict"], registry=registry)
        self.batches = Histogram(
            "fcdd_batch_images", "Images computed together", ["model"], buckets=SIZES, registry=registry
        )
        self.looks = Gauge(
            "fcdd_looks_differ",
            "1 where the last images differ in this from the calibration images",
            ["model", "trait"],
            registry=registry,
        )
        waiting = Gauge("fcdd_queue_images", "Images in the server", registry=registry)
        waiting.set_function(lambda: admission.images)
        received = Gauge("fcdd_received_bytes", "Bytes of bodies in the server", registry=registry)
        received.set_function(lambda: admission.received)
        restarts = Gauge("fcdd_decoder_restarts", "Decoder processes that a job has cost", registry=registry)
        restarts.set_function(lambda: decoders.restarts)
        limit = Gauge("fcdd_queue_limit", "Images the server takes at most", registry=registry)
        limit.set(admission.limits.queue)

    def text(self) -> bytes:
        return generate_latest(self._registry)
