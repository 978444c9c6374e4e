"""What can be seen of machines and servers from outside the load: facts once, memory while it runs."""
