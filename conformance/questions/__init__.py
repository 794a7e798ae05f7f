"""Questions across libraries: one table per question, every backend asked the same, all rows made of answers."""
