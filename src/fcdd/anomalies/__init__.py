"""Anomalies to learn from: synthetic defects, Outlier Exposure, planted cues, and the demo's plates."""
