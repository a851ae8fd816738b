"""fcdd: fully convolutional data description, an anomaly detector whose score is its explanation."""

__version__ = "0.1.0"
