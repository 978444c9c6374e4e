"""Seeded faults with known labels: how often the diagnosis is right."""
