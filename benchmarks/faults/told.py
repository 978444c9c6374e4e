"""A stand-in for `metrics.server_summary.told`, until that is there."""

from __future__ import annotations

from nilometer.metrics.server_watch import Watch


def told(seen: Watch) -> dict[str, float]:
    f, found = seen.figures, {"pages": float(seen.pages), "covered_s": seen.covered_s}
    for name in ("running", "waiting", "kv_usage"):
        gauge = getattr(seen, name)
        if gauge is not None:
            found[f"{name}_mean"], found[f"{name}_max"] = gauge.mean, gauge.max
    if seen.waiting is not None:
        found["waiting_above_zero"] = seen.waiting.above_zero
    for name in ("preemptions", "prompt_tokens", "generation_tokens", "prefix_hit_ratio", "requests", "step_tokens_mean"):
        if (value := getattr(f, name)) is not None:
            found[name] = value
    if f.kv_capacity_tokens is not None:
        found["kv_capacity_tokens"] = f.kv_capacity_tokens
    if f.spec is not None:
        for name in ("acceptance_ratio", "acceptance_length", "draft_tokens"):
            if (value := getattr(f.spec, name)) is not None:
                found[name] = value
    for name in ("ttft", "queue", "prefill", "decode", "e2e", "per_token"):
        if name in f.latencies and f.latencies[name].mean_s is not None:
            found[f"{name}_mean_s"] = f.latencies[name].mean_s or 0.0
    return found
