"""The performance archive: finished runs, whole, in one SQLite file. How a run is made or shown is not its business."""
