"""What the engine records: operations, statements, and the rules for shapes, dtypes and memory order."""
