"""The only place where numbers and slugs become words."""
