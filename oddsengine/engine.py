"""The engine: batches of quotes in, updates out; the same batches give the same updates, bytes and all."""
