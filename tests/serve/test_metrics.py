"""The exposition, read back by an independent parser."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from fcdd.serve.decoders import Decoders
from fcdd.serve.limits import Admission, Limits
from fcdd.serve.metrics import Metrics


def test_what_is_counted_can_be_read_back() -> None:
    limits = Limits(queue=9, images=9)
    admission, decoders = Admission(limits), Decoders(limits, 1)
    metrics, other = Metrics(admission, decoders), Metrics(Admission(Limits()), decoders)
    metrics.images.labels('a "quoted" name', "NG").inc(3)
    metrics.seconds.labels("/x").observe(0.3)
    with admission.entered():
        families = {family.name: family for family in text_string_to_metric_families(metrics.text().decode())}
    (images,) = (sample for sample in families["fcdd_images"].samples if sample.name.endswith("_total"))
    assert images.labels == {"model": 'a "quoted" name', "verdict": "NG"}
    assert images.value == 3
    buckets = {s.labels["le"]: s.value for s in families["fcdd_request_seconds"].samples if "le" in s.labels}
    assert (buckets["0.25"], buckets["0.5"], buckets["+Inf"]) == (0, 1, 1)
    assert families["fcdd_queue_images"].samples[0].value == 1
    assert families["fcdd_queue_limit"].samples[0].value == 9
    assert b"quoted" not in other.text()
