"""Reports: the data model, its files, and what is written for readers."""
