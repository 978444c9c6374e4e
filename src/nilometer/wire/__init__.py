"""What goes over the wire: request bodies out, answers in. Bytes and values only; no socket, no clock."""
